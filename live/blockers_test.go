package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// A job that waits for room is told who holds it and what would release it: its owner's jobs by name, a paused one with
// the command that pages it out, the executors of a pool together. Jobs of other users are not named. A missed
// deadline is told.
func TestWhoHoldsTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t)) // 1 GiB, 2 cores
		defer r.end()
		run := func(name, app string, by cluster.Credentials, memory resource.Amount) cluster.JobID {
			s := submission(1)
			s.Job.Name, s.Job.App, s.Caller = name, app, by
			s.Job.Stages[0].Ideal = resource.Of(100, memory)
			id := r.submit(s)
			r.fake.launched(r.order(cluster.Start))
			return id
		}
		paused := run("a", "", user, 300*resource.MiB)
		run("p executor 1", "pool/p", user, 100*resource.MiB)
		run("p executor 2", "pool/p", user, 100*resource.MiB)
		run("secret", "pool/hidden", cluster.Credentials{UID: 2001, GID: 2001, User: "eve"}, 250*resource.MiB)
		run("b", "", user, 50*resource.MiB)
		if err := r.Pause(t.Context(), user, paused, cluster.TaskID{}, false); err != nil {
			t.Fatal(err)
		}
		o := r.order(cluster.Suspend)
		r.hears(o, cluster.DecisionDone, "")
		r.fake.events <- cluster.Event{Kind: cluster.TaskSuspended, Task: o.Task, Run: 1, By: cluster.HeldByOwner}
		s := submission(1)
		s.Job.Deadline = 2 * time.Second
		waits := r.submit(s)
		due := time.Now().Add(2 * time.Second)
		synctest.Wait()
		const who = " 300MiB of memory are held by paused job 1 (`bellows pause --page-out 1` frees up to 300MiB), " +
			"250MiB by jobs of other users," +
			" 200MiB by 2 executors of pool p (`bellows pool explain p` says why they stay), 50MiB by job 5."
		e, err := r.Explain(t.Context(), waits)
		if want := "The next task of the job has not started: no node has 400MiB free."; err != nil || e.Why != want+who {
			t.Errorf("explained %q, %v, want %q", e.Why, err, want+who)
		}
		if len(e.Blockers) != 4 ||
			e.Blockers[1] != (api.Blocker{OtherUsers: true, Tasks: 1, MemoryBytes: 250 << 20, CPUMillicores: 100}) {
			t.Errorf("blockers are %+v", e.Blockers)
		}
		time.Sleep(3 * time.Second)
		e, err = r.Explain(t.Context(), waits)
		if want := " It should have started by " + due.Format(time.TimeOnly) +
			": its deadline has passed, and policy fifo lets no job come first for that."; err != nil ||
			!strings.Contains(e.Why, want) {
			t.Errorf("explained %q, %v, want %q", e.Why, err, want)
		}
	})
}
