package pool_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/pool"
)

// An application gets an executor of which a quarter is in swap only after the others, until that executor has had
// something to do: its memory is back.
func TestExecutorsInSwapLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		workers := []*worker{register(t, p, 0), register(t, p, 1), register(t, p, 2)}
		out := func(executor int, swapped, all int64) {
			t.Helper()
			if err := p.PagedOut(t.Context(), executor, swapped, all); err != nil {
				t.Fatal(err)
			}
		}
		begin := func(key string, want ...int) {
			t.Helper()
			time.Sleep(pool.RestFor)
			enrol(t, p, key).grow(true, tasks(0, 1))
			synctest.Wait()
			w, err := p.Wanted(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var busy []int
			for _, m := range w.Members {
				if m.Busy {
					busy = append(busy, m.Number)
				}
			}
			if !slices.Equal(busy, want) {
				t.Errorf("executors %v are busy, want %v", busy, want)
			}
		}
		out(0, 25, 100)
		out(1, 24, 100)
		out(77, 1, 1)
		begin("a", 1)
		begin("b", 1, 2)
		begin("c", 0, 1, 2)
		for _, w := range workers {
			w.report(w.next(nil))
		}
		begin("d", 0)
	})
}
