package profiler

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/resource"
)

const mib = resource.MiB

func TestSizesSpanTheRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := resource.Amount(rapid.Int64Range(2<<20, 1<<34).Draw(t, "least"))
		most := least + resource.Amount(rapid.Int64Range(1, 1<<36).Draw(t, "more"))
		n := rapid.IntRange(2, 30).Draw(t, "n")
		sizes := Sizes(least, most, n)
		if len(sizes) < 1 || len(sizes) > n || sizes[0] != least || sizes[len(sizes)-1] != most {
			t.Fatalf("Sizes(%d, %d, %d) = %v", least, most, n, sizes)
		}
		if !slices.IsSorted(sizes) || len(slices.Compact(slices.Clone(sizes))) != len(sizes) {
			t.Fatalf("not strictly ascending: %v", sizes)
		}
	})
}

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

func TestRunsAlternate(t *testing.T) {
	p := Plan{Fitted: []resource.Amount{2 * mib, 8 * mib}, HeldOut: []resource.Amount{4 * mib}, Repeats: 3}
	want := []Run{{8 * mib, 0},
		{2 * mib, 1}, {4 * mib, 1}, {8 * mib, 1},
		{8 * mib, 2}, {4 * mib, 2}, {2 * mib, 2},
		{2 * mib, 3}, {4 * mib, 3}, {8 * mib, 3}}
	if got := p.Runs(); !reflect.DeepEqual(got, want) {
		t.Errorf("runs %v, want %v", got, want)
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
