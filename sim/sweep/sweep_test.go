package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestOrder: whatever the number of workers, results come in order, each once.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, workers := rapid.IntRange(0, 300).Draw(t, "n"), rapid.IntRange(-1, 9).Draw(t, "workers")
		var got []int
		err := Run(t.Context(), n, workers, func(i int) (int, error) { return i * i, nil }, func(i, square int) {
			if square != i*i {
				t.Fatalf("run %d delivered %d", i, square)
			}
			got = append(got, i)
		})
		if err != nil || len(got) != n || !slices.IsSorted(got) {
			t.Fatalf("%v, %v", err, got)
		}
	})
}

// TestFailure: the error of the lowest run that failed is returned, and what precedes it is delivered.
func TestFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, workers := rapid.IntRange(1, 200).Draw(t, "n"), rapid.IntRange(1, 7).Draw(t, "workers")
		bad := rapid.SliceOfN(rapid.IntRange(0, n-1), 1, 5).Draw(t, "bad")
		next := 0
		err := Run(t.Context(), n, workers, func(i int) (int, error) {
			if slices.Contains(bad, i) {
				return 0, fmt.Errorf("run %d", i)
			}
			return i, nil
		}, func(i, _ int) {
			if i != next {
				t.Fatalf("%d came after %d", i, next)
			}
			next++
		})
		if want := slices.Min(bad); next != want || err == nil || err.Error() != fmt.Sprintf("run %d", want) {
			t.Fatalf("delivered %d, %v; the first that failed was %d", next, err, want)
		}
	})
}

// TestAhead: no run begins that is further ahead than memory is bounded for.
func TestAhead(t *testing.T) {
	const workers = 3
	var delivered atomic.Int64
	err := Run(t.Context(), 2000, workers, func(i int) (int, error) {
		if d := int(delivered.Load()); i >= d+workers*ahead {
			return 0, fmt.Errorf("run %d began when %d were delivered", i, d)
		}
		return i, nil
	}, func(int, int) { delivered.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
}

// TestInterrupt: what was delivered stays delivered, in order, and the rest is not run.
func TestInterrupt(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var ran atomic.Int64
	next := 0
	err := Run(ctx, 1000, 2, func(i int) (int, error) { ran.Add(1); return i, nil }, func(i, _ int) {
		if i != next {
			t.Errorf("%d came after %d", i, next)
		}
		if next++; next == 10 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || next < 10 || ran.Load() > 10+3*ahead {
		t.Errorf("%v; %d delivered, %d ran", err, next, ran.Load())
	}
}
