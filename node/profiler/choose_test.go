package profiler

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// curve is a program whose run time in seconds depends on the size; 0 is a failure. It counts its runs.
type curve struct {
	seconds func(mebibytes float64) float64
	runs    []resource.Amount
}

func (c *curve) Run(_ context.Context, memory resource.Amount) (Measurement, error) {
	c.runs = append(c.runs, memory)
	s := c.seconds(float64(memory) / float64(mib))
	if s == 0 {
		return Measurement{Failure: "the kernel killed it for memory"}, nil
	}
	return Measurement{Duration: time.Duration(s * 1e9)}, nil
}

// TestSizesAreChosenWhereItBends: run time is the same above 200 MiB and below 50 MiB; between, it falls to a tenth.
func TestSizesAreChosenWhereItBends(t *testing.T) {
	program := &curve{seconds: func(m float64) float64 {
		return math.Pow(10, 1-math.Log(min(max(m, 50), 200)/50)/math.Log(4))
	}}
	p := Plan{Fitted: []resource.Amount{16 * mib, 1024 * mib}, Choose: 8, Try: 3, Repeats: 1}
	res, err := Measure(context.Background(), program, &p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var bending []string
	for _, s := range res.Fitted {
		if s.Memory >= 45*mib && s.Memory <= 220*mib {
			bending = append(bending, resource.FormatMemory(s.Memory))
		}
	}
	// Evenly spaced, a third would lie there.
	if len(res.Fitted) != 10 || len(bending) < 5 || len(res.HeldOut) != 3 {
		t.Errorf("%d of %d sizes where it bends (%v), %d held out", len(bending), len(res.Fitted), bending, len(res.HeldOut))
	}
	m, _, err := profile.Fit(res.Fitted, profile.Program{Buffer: profile.WholeMemory})
	if err != nil {
		t.Fatal(err)
	}
	e, err := profile.Evaluate(m, res.Fitted, res.HeldOut)
	if err != nil || e.ModelMean > 0.1 {
		t.Errorf("%s misses by %.0f %% on average, %v", m.Kind, 100*e.ModelMean, err)
	}
}

func TestACliffIsFound(t *testing.T) {
	program := &curve{seconds: func(m float64) float64 {
		if m < 70 {
			return 50
		}
		return 5
	}}
	p := Plan{Fitted: []resource.Amount{30 * mib, 300 * mib}, Choose: 4, Repeats: 1}
	res, err := Measure(context.Background(), program, &p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range res.Fitted[1:] {
		if before := res.Fitted[i]; before.Duration > s.Duration && s.Memory > before.Memory*6/5 {
			t.Errorf("the cliff is between %v and %v", resource.FormatMemory(before.Memory), resource.FormatMemory(s.Memory))
		}
	}
}

// TestLeastIsFoundByBisection: whatever the smallest size that works, it is found to a twentieth, in at most 12 runs
// that never go below the smallest size given, and is fitted to.
func TestLeastIsFoundByBisection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := resource.Amount(rapid.Int64Range(2, 500).Draw(t, "given")) * mib
		most := given + resource.Amount(rapid.Int64Range(2, 1<<20).Draw(t, "more"))*mib
		works := rapid.Float64Range(float64(given/mib)+1, float64(most/mib)).Draw(t, "works")
		program := &curve{seconds: func(m float64) float64 {
			if m < works {
				return 0
			}
			return 1
		}}
		p := Plan{Fitted: []resource.Amount{given, most}, Search: true, Repeats: 1}
		res, err := Measure(context.Background(), program, &p, nil)
		if err != nil {
			t.Fatal(err)
		}
		// The largest size twice, the given one once.
		if n := len(program.runs) - 3; n > mostSearched {
			t.Fatalf("%d runs to search %v", n, program.runs)
		}
		if slices.Min(program.runs) < given {
			t.Fatalf("below the smallest size: %v", program.runs)
		}
		least, failed := res.Fitted[0].Memory, res.Failed[len(res.Failed)-1].Memory
		if float64(least) > 1.06*float64(failed)+float64(2*mib) || float64(least) < works*float64(mib) {
			t.Fatalf("found %s, it fails with %s and works from %f MiB", resource.FormatMemory(least),
				resource.FormatMemory(failed), works)
		}
	})
}

// TestNoSearchWithoutFailure: nothing is searched where the smallest size works, or the sizes are given.
func TestNoSearchWithoutFailure(t *testing.T) {
	for _, c := range []struct {
		search bool
		works  float64
	}{{true, 0}, {false, 100}} {
		program := &curve{seconds: func(m float64) float64 { return max(0, min(1, m-c.works)) }}
		p := Plan{Fitted: []resource.Amount{10 * mib, 300 * mib}, Search: c.search, Repeats: 1}
		if _, err := Measure(context.Background(), program, &p, nil); err != nil || len(program.runs) != 3 {
			t.Errorf("search %v: runs with %v, %v; want three", c.search, program.runs, err)
		}
	}
}

func TestGapsAreBetweenNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sizes []resource.Amount
		at := resource.Amount(2)
		for range rapid.IntRange(1, 8).Draw(t, "sizes") {
			sizes = append(sizes, at*mib)
			at += resource.Amount(rapid.Int64Range(1, 300).Draw(t, "step"))
		}
		n := rapid.IntRange(0, 5).Draw(t, "n")
		found := gaps(sizes, n)
		if len(found) > n || !slices.IsSorted(found) {
			t.Fatalf("%v of %v", found, sizes)
		}
		for _, m := range found {
			if i, exact := slices.BinarySearch(sizes, m); exact || i == 0 || i == len(sizes) {
				t.Fatalf("%v of %v", found, sizes)
			}
		}
	})
}
