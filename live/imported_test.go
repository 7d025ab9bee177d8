package live

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/api"
)

// recorded is a history as another system recorded it: runs of one phase.
func recorded(t *testing.T, app string, durations ...time.Duration) *profile.History {
	t.Helper()
	h := &profile.History{}
	for i, d := range durations {
		r := profile.Run{Ended: timeline.Time(i + 1),
			Phases:  []cluster.Phase{{Duration: d, Demand: resource.Of(700, 100*resource.MiB)}},
			Unknown: resource.KindsOf(resource.Network)}
		if _, err := h.Observe(profile.App{Owner: "somebody", Name: app}, r); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// What another system recorded counts like own runs, for jobs that wait too; once, and for the user who imported it.
func TestImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		whole := twoPhases(0)
		whole.Job.Stages[0].Ideal = resource.Of(2000, 800*resource.MiB)
		r.submit(whole)
		o := r.order(cluster.Start)
		r.fake.launched(o)
		waiting := r.submit(whole)
		by, h := whole.Caller, recorded(t, "two-phases", 10*time.Second, 20*time.Second)
		for _, want := range []api.Imported{{Name: "two-phases", Runs: 2, Known: 0},
			{Name: "two-phases", Runs: 0, Known: 2}} {
			if got, err := r.Import(t.Context(), by, h); err != nil || !reflect.DeepEqual(got, []api.Imported{want}) {
				t.Errorf("%v %+v, want %+v", err, got, want)
			}
		}
		synctest.Wait()
		j, err := r.Job(t.Context(), waiting, false)
		if err != nil {
			t.Fatal(err)
		}
		if s := j.Stages[0]; s.Told.Samples != 2 || len(s.Phases) != 1 || s.Phases[0].Demand[resource.CPU] != 700 ||
			s.Phases[0].Demand[resource.Network] != s.Ideal[resource.Network] {
			t.Errorf("the job that waits is expected to %+v", s.Stage)
		}
		other := cluster.Credentials{UID: 3000, GID: 3000, User: "bob"}
		if all, err := r.Learned(t.Context(), other.UID, other.User, "two-phases"); err != nil || len(all) > 0 {
			t.Errorf("another user knows %+v, %v", all, err)
		}
		if got, err := r.Import(t.Context(), other, h); err != nil || got[0].Runs != 2 {
			t.Errorf("for another user %v %+v", err, got)
		}
		if _, err := r.Import(t.Context(), by, recorded(t, "two\nlines", time.Second)); api.KindOf(err) != api.Invalid ||
			!strings.Contains(err.Error(), `"two\nlines"`) {
			t.Error(err)
		}
	})
}

// An import brings what ends for want of memory have taught, too: the next job reserves more than they held.
func TestImportOfShortfalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		const held = 300 * resource.MiB
		h := &profile.History{}
		if err := h.ObserveShortfall(profile.App{Owner: "somebody", Name: "two-phases"},
			profile.Shortfall{Ended: 1, Held: held}); err != nil {
			t.Fatal(err)
		}
		text, err := h.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if h, _, err = profile.ReadHistory(text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []api.Imported{{Name: "two-phases", Runs: 1}, {Name: "two-phases", Known: 1}} {
			if got, err := r.Import(t.Context(), user, h); err != nil || !reflect.DeepEqual(got, []api.Imported{want}) {
				t.Errorf("%v %+v, want %+v", err, got, want)
			}
		}
		next := learner(1, 0)
		next.Job.App = "two-phases"
		j, err := r.Job(t.Context(), r.submit(next), false)
		if err != nil {
			t.Fatal(err)
		}
		if s := j.Stages[0]; s.Reserved == nil || s.Reserved.Short != held || s.Ideal[resource.Memory] <= held {
			t.Errorf("reserves %s by %+v", resource.FormatMemory(s.Ideal[resource.Memory]), s.Reserved)
		}
	})
}
