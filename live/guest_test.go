//go:build guest

package live_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/guest"
	"github.com/bellows-rm/bellows/internal/testgroups"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// TestGuest runs TestHostStops in a guest.
func TestGuest(t *testing.T) {
	t.Run("v2", func(t *testing.T) {
		guest.Run(t, guest.Config{Init: guest.Systemd, Cgroups: guest.Unified,
			Files: map[string]string{"sh": "/bin/sh", "sleep": "/bin/sleep"}, Timeout: 10 * time.Minute},
			guest.Build(t, ".", "guest"), "-test.run=^TestHostStops$")
	})
}

// A host stops the whole machine and lets it go on, while leveling holds a task, the owner holds one, and one is
// throttled. Afterwards nothing stays frozen, bounded or beyond its limits, but what the owner holds, and all goes
// on. The clocks of the machine jump, or they stand and the calendar is set: until a time means the time that has
// passed for the daemon.
func TestHostStops(t *testing.T) {
	guest.Need(t)
	for _, c := range []struct {
		name  string
		how   guest.Stop
		lasts time.Duration // by the clock of the host
		set   time.Duration // by how much the calendar is then set ahead
	}{
		// Longer than the hold and the throttle, than the node would let the hold last by itself, and than the lease of the
		// daemon.
		{"asleep", guest.Asleep, 14 * time.Second, 0},
		// For how long does not matter, because no clock of the machine knows it. A service for the time sets the calendar
		// soon afterwards.
		{"paused", guest.Paused, 3 * time.Second, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShifting(t, "fifo", 1) // which leaves alone what the policy of the test holds
			kept, leveled, slowed := s.begin("kept"), s.begin("leveled for 8s with kept"), s.begin("slowed for 8s with kept")
			for _, id := range s.told {
				s.await(id, "its program", func(task *api.Task) bool { return task.State == api.TaskRunning })
			}
			s.p.mustAsk(ask{Pause: kept})
			s.await(slowed, "its throttle", throttled)
			until := s.await(leveled, "its hold", stands(cluster.HeldByLeveling)).Leveled.Until

			before := time.Now()
			guest.StopMachine(t, c.how, c.lasts)
			passed := time.Since(before)
			t.Logf("stopped for %v, in which the clock went on by %v", c.lasts, passed)
			if jumped := passed >= c.lasts*9/10; jumped != (c.how == guest.Asleep) {
				t.Errorf("the clock went on by %v", passed)
			}
			guest.SetAhead(t, c.set)

			// What is ordered now lasts for its time, too. It is long enough to be seen on a machine that is short of CPU.
			next := s.begin("leveled for 15s")
			later := s.await(next, "its hold", stands(cluster.HeldByLeveling)).Leveled.Until
			s.endsInTime(leveled, until.Add(c.set))
			s.endsInTime(next, later.Add(c.set))
			s.await(slowed, "the end of its throttle", func(task *api.Task) bool { return task.Throttle == nil })
			for end := time.Now().Add(time.Minute); s.left(kept) != "" &&
				time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			}
			if what := s.left(kept); what != "" {
				t.Error(what)
			}
			s.await(s.begin("slowed"), "its throttle", throttled)
			if s.left(kept) == "" {
				t.Error("a throttle of an hour bounds nothing")
			}
			s.await(kept, "its pause", stands(cluster.HeldByOwner))
			s.p.mustAsk(ask{Resume: kept})
			s.await(kept, "the end of its pause", stands(0))
			s.finish()
		})
	}
}

// begin submits a job whose program waits until all may end.
func (s *shifting) begin(name string) cluster.JobID {
	s.t.Helper()
	job := cluster.Job{Name: name, Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(500, 16*resource.MiB),
		MaxCPU: 500, Command: cluster.Command{Args: []string{"sh", "-c", `until [ -e "$RAN/gate" ]; do sleep 0.2; done`}}}}}
	id := s.p.mustAsk(ask{Submit: &live.Submission{Job: job, Env: []string{"PATH=/usr/bin:/bin:/guest", "RAN=" + s.ran},
		Dir: "/"}}).ID
	s.told = append(s.told, id)
	return id
}

// await waits until the task of a job is as wanted, and returns it.
func (s *shifting) await(id cluster.JobID, what string, is func(*api.Task) bool) *api.Task {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		reply, ok := s.p.ask(askJobs()) // An emulated machine may be too slow for an answer.
		if !ok {
			break
		}
		for _, j := range reply.Jobs {
			if j.ID == id && len(j.Tasks) == 1 && is(&j.Tasks[0]) {
				return &j.Tasks[0]
			}
		}
	}
	s.t.Fatalf("job %d: %s never came; log:\n%s", id, what, s.p.errors)
	return nil
}

// stands returns a function that reports whether these holders, and no others, hold a task. Of leveling it also has
// the end of its hold.
func stands(by cluster.Holders) func(*api.Task) bool {
	return func(task *api.Task) bool {
		is := cluster.Holders(0)
		if task.Suspended != nil {
			is = task.Suspended.By
		}
		return is == by && (task.Leveled != nil) == (by&cluster.HeldByLeveling != 0)
	}
}

// throttled reports whether a throttle of a task is in force.
func throttled(task *api.Task) bool { return task.Throttle != nil && task.Throttle.InForce }

// endsInTime waits until leveling no longer holds the task of a job, which must not be before the given time of the
// calendar.
func (s *shifting) endsInTime(id cluster.JobID, until time.Time) {
	s.t.Helper()
	s.await(id, "the end of its hold", stands(0))
	if early := time.Until(until); early > 0 {
		s.t.Errorf("leveling ends its hold of job %d %v too early", id, early)
	}
}

// left says what still holds or bounds a program, or holds that of the job kept no longer; nothing if all is as its
// owners want it.
func (s *shifting) left(kept cluster.JobID) string {
	s.t.Helper()
	for _, w := range s.wanted("*") {
		if w.Bound != (cluster.Bound{}) {
			return fmt.Sprintf("a throttle is recorded: %+v", w.Bound)
		}
	}
	for _, id := range s.told {
		if s.held(id) {
			return fmt.Sprintf("a hold of leveling of job %d is recorded", id)
		}
	}
	for _, g := range testgroups.Busy(s.t, s.state, false) {
		if frozen, _ := g.Frozen(); frozen != strings.HasPrefix(g.Name(), fmt.Sprintf("%d-", kept)) {
			return fmt.Sprintf("%s: frozen is %v", g.Name(), frozen)
		}
		if why := s.limited(g); why != "" {
			return why
		}
		if path, ok := g.File(cgroup.IO, "io.max"); ok {
			if bounds, err := os.ReadFile(path); err != nil || len(bounds) > 0 {
				return fmt.Sprintf("%s: transfers are bounded: %s %v", g.Name(), bounds, err)
			}
		}
	}
	return ""
}
