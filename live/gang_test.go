package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
)

// gangRig is a Driver under a policy that starts tasks together, with a gang of two whose orders it returns.
func gangRig(t *testing.T) (r *rig, id cluster.JobID, a, b cluster.Order) {
	t.Helper()
	r = newRig(t, gangPolicy(t))
	s := submission(2)
	s.Job.Stages[0].Together = true
	id = r.submit(s)
	return r, id, r.order(cluster.Start), r.order(cluster.Start)
}

func gangPolicy(t *testing.T) policy.Policy {
	t.Helper()
	p, err := policy.New("prophet", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A task of a gang that cannot be started is tried again alone, while the other one runs on.
func TestGangOfWhichATaskCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, id, a, b := gangRig(t)
		defer r.end()
		r.fake.launched(a)
		begun := time.Now()
		for run := 1; run <= 2; run++ {
			r.fake.events <- cluster.Event{Kind: cluster.DecisionFailed, Task: b.Task, Run: b.Container.Run, Decision: b.ID,
				Detail: "no"}
			if b = r.order(cluster.Start); b.Task.Job != id || b.Container.Run != run+1 {
				t.Fatalf("started %s", b.Container)
			}
		}
		if passed := time.Since(begun); passed != 3*time.Second {
			t.Errorf("it took %v", passed)
		}
		r.fake.launched(b)
		synctest.Wait()
		if j := r.job(id); j.Status != cluster.StatusRunning || j.Stages[0].Running != 2 {
			t.Errorf("job %+v", j)
		}
	})
}

// If a driver ends while a gang is being started, the next one keeps what runs and starts the rest; if nothing runs, it
// starts all of it together.
func TestRestartWhileAGangStarts(t *testing.T) {
	for _, runs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r, id, a, b := gangRig(t)
			defer r.end()
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r.fake = newFake()
			if runs {
				r.fake = newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: a.Task, Run: 1, Grant: a.Grant, Launched: 1})
			}
			r.start(gangPolicy(t))
			again := []cluster.Order{r.order(cluster.Start)}
			if !runs {
				again = append([]cluster.Order{r.order(cluster.Start)}, again...)
			}
			synctest.Wait()
			r.noOrder()
			for _, o := range again {
				if o.Task.Job != id || o.Container.Run != 2 || runs && o.Task != b.Task {
					t.Errorf("started %s", o.Container)
				}
				r.fake.launched(o)
			}
			synctest.Wait()
			if j := r.job(id); j.Stages[0].Running != 2 {
				t.Errorf("job %+v", j)
			}
		})
	}
}
