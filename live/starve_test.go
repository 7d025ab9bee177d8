package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// large returns a submission of tasks of the given memory, in MiB, and CPU, in millicores.
func large(tasks int, memory, cpu resource.Amount) Submission {
	s := submission(tasks)
	s.Job.Stages[0].Ideal = resource.Of(cpu, memory*resource.MiB)
	return s
}

// attempt submits, and ignores that a quota refuses.
func (r *rig) attempt(s Submission) (id cluster.JobID, accepted bool) {
	r.t.Helper()
	id, err := r.Submit(r.t.Context(), s)
	if err != nil && api.KindOf(err) != api.OverQuota {
		r.t.Fatal(err)
	}
	return id, err == nil
}

// startsNow launches what is started, and reports whether that has a task of a job, without the end of another task.
func (r *rig) startsNow(id cluster.JobID) (starts bool) {
	for {
		synctest.Wait()
		select {
		case o := <-r.fake.orders:
			if o.Kind == cluster.Start {
				starts = starts || o.Task.Job == id
				r.fake.launched(o)
			}
		default:
			return starts
		}
	}
}

// However one user tries to take all of a machine, the job of another user starts at once, if each has quotas of less
// than the machine has. The node has 2 cores and 1 GiB.
func TestOneUserStarvesNobody(t *testing.T) {
	quotas := ofUsers(cluster.Limits{
		cluster.QuotaMemory: {Most: int64(600 * resource.MiB)}, cluster.QuotaCPU: {Most: int64(resource.Core)},
		cluster.QuotaRunning: {Most: 4},
		cluster.QuotaWaiting: {Most: 50, Refuses: true}, cluster.QuotaSubmissions: {Most: 100, Refuses: true}})
	for _, way := range []struct {
		name, policy string
		try          func(r *rig)
	}{
		{"a flood of submissions", "fifo", func(r *rig) {
			for range 5000 {
				r.attempt(large(1, 100, 100))
			}
		}},
		{"one job of very many tasks", "fifo", func(r *rig) { r.attempt(large(cluster.MostRunTasks, 10, 10)) }},
		{"one large task after the other", "fifo", func(r *rig) {
			for range 10 {
				r.attempt(large(1, 600, 1000))
			}
		}},
		{"many tiny jobs", "yarn-me", func(r *rig) {
			for range 60 {
				r.attempt(large(1, 1, 1))
			}
		}},
		{"paused jobs that keep their memory", "fifo", func(r *rig) {
			for range 10 {
				id, ok := r.attempt(large(2, 200, 300))
				r.startsNow(id)
				if !ok {
					continue
				}
				if err := r.Pause(r.t.Context(), user, id, cluster.TaskID{}, false); err != nil {
					r.t.Fatal(err)
				}
			}
		}},
		{"tasks that start together", "prophet", func(r *rig) {
			for range 10 {
				s := large(3, 200, 300)
				s.Job.Stages[0].Together = true
				r.attempt(s)
			}
		}},
		{"deadlines that have passed", "prophet", func(r *rig) {
			for range 10 {
				s := large(1, 600, 1000)
				s.Job.Deadline = time.Nanosecond
				r.attempt(s)
			}
			time.Sleep(time.Second)
		}},
		{"the greatest weight", "fair", func(r *rig) {
			s := large(1000, 50, 50)
			s.Job.Weight = cluster.MostWeight
			r.attempt(s)
		}},
		{"many queues", "fifo", func(r *rig) {
			for i := range 60 {
				s := large(5, 50, 50)
				s.Job.Queue = string(rune('a' + i%26))
				r.attempt(s)
			}
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := policy.New(way.policy, nil)
				if err != nil {
					t.Fatal(err)
				}
				r := &rig{t: t, dir: t.TempDir(), fake: newFake(), quotas: quotas}
				r.open()
				r.start(p)
				defer r.end()
				way.try(r)
				r.startsNow(0)
				if id := r.submit(by("bob", 2001, 1)); !r.startsNow(id) {
					t.Errorf("the job of another user waits: %s", r.job(id).Waiting)
				}
			})
		})
	}
}

// A flood of submissions above the quota of a minute does not use the engine.
func TestFloodIsRefusedWithoutTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, ofUsers(cluster.Limits{cluster.QuotaSubmissions: {Most: 1, Refuses: true}}))
		defer r.end()
		r.submit(submission(1))
		r.startsNow(0)
		before := r.steps(t)
		for range 1000 {
			if _, accepted := r.attempt(submission(1)); accepted {
				t.Fatal("more than the quota is accepted")
			}
		}
		if after := r.steps(t); after != before {
			t.Errorf("the engine has made %d steps", after-before)
		}
	})
}

func (r *rig) steps(t *testing.T) int64 {
	t.Helper()
	s, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.Steps
}
