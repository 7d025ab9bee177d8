package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// A job whose last tasks were ordered to start, and do not run yet, says so.
func TestExplainWhileTasksAreStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(2))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		check := func(status cluster.JobStatus, want string) {
			t.Helper()
			synctest.Wait()
			if e, err := r.Explain(t.Context(), id); err != nil || e.Job.Status != status || e.Why != want {
				t.Errorf("%v: job is %v: %s", err, e.Job.Status, e.Why)
			}
		}
		check(cluster.StatusPending, "The remaining tasks of the job are being started.")
		r.fake.launched(first)
		check(cluster.StatusRunning, "The remaining tasks of the job are running.")
		r.fake.ended(first.Container, cluster.Succeeded, 0)
		check(cluster.StatusRunning, "The last task of the job is being started.")
		r.fake.launched(second)
		check(cluster.StatusRunning, "The last task of the job is running.")
	})
}

// Tasks that start together have room when the last of them has.
func TestExplainWhenAGangHasRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := policy.New("prophet", map[string]string{"prophet.window": "1"})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, p)
		defer r.end()
		begun := time.Now()
		run := func(tasks int, duration time.Duration, together bool) cluster.JobID {
			s := submission(tasks)
			s.Job.Stages[0].Duration, s.Job.Stages[0].Together = duration, together
			return r.submit(s)
		}
		run(1, 3*time.Minute, false)
		r.fake.launched(r.order(cluster.Start))
		gang := run(2, time.Minute, true)
		check := func(id cluster.JobID, want time.Duration) {
			t.Helper()
			synctest.Wait()
			e, err := r.Explain(t.Context(), id)
			if err != nil || !e.EarliestStart.Equal(begun.Add(want)) {
				t.Errorf("job %d has room after %v, want %v: %s %v", id, e.EarliestStart.Sub(begun), want, e.Why, err)
			}
		}
		check(gang, 3*time.Minute) // one of its tasks has room now
		if e, err := r.Explain(t.Context(), gang); err != nil ||
			e.Why != "The next task of the job has not started: its 2 tasks start at once, and there is room for 1." {
			t.Errorf("%v: %s", err, e.Why)
		}
		run(1, time.Minute, false)
		r.fake.launched(r.order(cluster.Start))
		check(gang, 3*time.Minute)
		check(run(3, time.Minute, false), time.Minute) // they start one by one
	})
}

// partly is a fake that cannot measure everything.
type partly struct {
	*fake
	why map[resource.Kind]string
}

func (p partly) Unmeasured(k resource.Kind) string { return p.why[k] }

// A kind that no run measured is unknown, and explained, if the machine cannot measure it.
func TestExplainWhatIsNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		r.open()
		r.startOn(fifo(t), partly{r.fake,
			map[resource.Kind]string{resource.Network: "count network bytes: the kernel has no BPF",
				resource.CPU: "never shown"}})
		defer r.end()
		r.runUsing(twoPhases(0), used(10)) // neither disk nor network
		id := r.submit(twoPhases(0))
		e, err := r.Explain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		learned, err := r.Learned(t.Context(), user.UID, user.User, "two-phases")
		if err != nil {
			t.Fatal(err)
		}
		for _, notes := range [][]string{e.Forecasts[0].Notes, learned[0].Notes} {
			if n := len(notes); n < 2 ||
				notes[n-1] != "network: cannot be measured here: count network bytes: the kernel has no BPF." ||
				!strings.Contains(notes[n-2], "never measured") {
				t.Errorf("notes %q", notes)
			}
		}
	})
}
