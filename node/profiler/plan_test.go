package profiler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

const mib = resource.MiB

func TestSplitKeepsBothEnds(t *testing.T) {
	for n := 1; n < 20; n++ {
		sizes := make([]resource.Amount, n)
		for i := range sizes {
			sizes[i] = resource.Amount(i+2) * mib
		}
		fitted, heldOut := Split(sizes)
		both := slices.Sorted(slices.Values(slices.Concat(fitted, heldOut)))
		if !slices.Equal(both, sizes) {
			t.Errorf("%d sizes: %v and %v are not all", n, fitted, heldOut)
		}
		if fitted[0] != sizes[0] || fitted[len(fitted)-1] != sizes[n-1] {
			t.Errorf("%d sizes: fitted %v leaves out an end", n, fitted)
		}
		if (len(heldOut) > 0) != (n >= 4) {
			t.Errorf("%d sizes: held out %v", n, heldOut)
		}
	}
}

// ran records the runs of a program that takes the same time with any size.
type ran []resource.Amount

func (r *ran) Run(_ context.Context, memory resource.Amount) (Measurement, error) {
	*r = append(*r, memory/mib)
	return Measurement{Duration: time.Second}, nil
}

func TestRunsAlternate(t *testing.T) {
	p := Plan{Fitted: []resource.Amount{2 * mib, 8 * mib}, HeldOut: []resource.Amount{4 * mib}, Repeats: 3}
	var got ran
	if _, err := Measure(context.Background(), &got, &p, nil); err != nil {
		t.Fatal(err)
	}
	if want := (ran{8, 2, 4, 8, 8, 4, 2, 2, 4, 8}); !slices.Equal(got, want) {
		t.Errorf("runs with %v MiB, want %v", got, want)
	}
}

func TestPlanCheck(t *testing.T) {
	two := []resource.Amount{2 * mib, 8 * mib}
	tests := []struct {
		plan Plan
		want string // part of the error; empty if there is none
	}{
		{Plan{Fitted: two, Repeats: 1}, ""},
		{Plan{Fitted: two, HeldOut: []resource.Amount{4 * mib}, Repeats: 1}, ""},
		{Plan{Fitted: two}, "repeats 0"},
		{Plan{Fitted: two, Repeats: 1, Choose: -1}, "chosen sizes -1, 0"},
		{Plan{Fitted: two[:1], Repeats: 1}, "at least two"},
		{Plan{Fitted: []resource.Amount{8 * mib, 2 * mib}, Repeats: 1}, "ascending"},
		{Plan{Fitted: []resource.Amount{mib, 2 * mib}, Repeats: 1}, "at least 2MiB"},
		{Plan{Fitted: two, HeldOut: []resource.Amount{2 * mib}, Repeats: 1}, "must not be one"},
		{Plan{Fitted: two, HeldOut: []resource.Amount{9 * mib}, Repeats: 1}, "between"},
	}
	for _, tt := range tests {
		err := tt.plan.Check()
		if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v, want %q", tt.plan, err, tt.want)
		}
	}
}
