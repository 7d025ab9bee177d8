package live

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/usage"
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
		r.startOn(fifo(t), partly{r.fake, map[resource.Kind]string{resource.Network: "count network bytes: the kernel has no BPF", resource.CPU: "never shown"}})
		defer r.end()
		r.runUsing(twoPhases(0), used(10)) // neither disk nor network
		id := r.submit(twoPhases(0))
		e, err := r.Explain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		learned, err := r.Learned(t.Context(), user.UID, "two-phases")
		if err != nil {
			t.Fatal(err)
		}
		for _, notes := range [][]string{e.Forecasts[0].Notes, learned[0].Notes} {
			if n := len(notes); n < 2 || notes[n-1] != "network: cannot be measured here: count network bytes: the kernel has no BPF." || !strings.Contains(notes[n-2], "never measured") {
				t.Errorf("notes %q", notes)
			}
		}
	})
}
