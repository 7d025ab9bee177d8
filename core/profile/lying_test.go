package profile

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// The runs of another program under the same name keep what is reserved too large for as long as they are kept, and no
// longer; if it needed less, one run of the present program suffices.
func TestAnotherProgramIsForgotten(t *testing.T) {
	app := App{Name: "train"}
	run := func(number int, memory resource.Amount) Run {
		return Run{Ended: timeline.Time(number+1) * timeline.Time(time.Hour),
			Phases: []cluster.Phase{{Duration: time.Minute, Demand: resource.Of(1000, memory)}}}
	}
	for _, c := range []struct {
		was, is resource.Amount
		runs    int // of the present program until what is reserved fits
	}{
		{20 * resource.MiB, resource.GiB, 1},
		{2 * resource.GiB, 20 * resource.MiB, MostRuns},
	} {
		h := &History{}
		for i := range MostRuns {
			if _, err := h.Observe(app, run(i, c.was)); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.ObserveShortfall(app, Shortfall{Ended: run(MostRuns, 0).Ended, Held: 3 * resource.GiB}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for fits := false; !fits && n <= MostRuns; n++ {
			if _, err := h.Observe(app, run(MostRuns+2+n, c.is)); err != nil {
				t.Fatal(err)
			}
			r, ok := h.Reserve(app, Features{}, 0)
			fits = ok && r.Bytes >= c.is && r.Bytes < 2*c.is && r.Short == 0
		}
		if n > c.runs {
			t.Errorf("from %s to %s: what is reserved fits after %d runs, want %d at most", resource.FormatMemory(c.was),
				resource.FormatMemory(c.is), n, c.runs)
		}
	}
}
