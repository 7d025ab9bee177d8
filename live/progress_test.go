package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// threePhases is a task of three phases of a minute, each of which demands 20 MB/s of disk.
func threePhases() Submission {
	s := submission(1)
	stage := &s.Job.Stages[0]
	for range 3 {
		stage.Phases = append(stage.Phases,
			cluster.Phase{Duration: time.Minute, Demand: resource.Vector{}.With(resource.Disk, 20*resource.MB)})
	}
	return s
}

// known is what the engine knows of the task: how far it has come, and when it should end.
func (r *throttled) known() (p cluster.Progress, end timeline.Time) {
	r.t.Helper()
	synctest.Wait()
	if err := r.do(r.t.Context(), func() {
		job, _ := r.engine.Snapshot().Job(r.job)
		p = job.Tasks[0].Progress()
		end, _ = r.engine.Snapshot().EstimatedEnd(job.Tasks[0], r.now())
	}); err != nil {
		r.t.Fatal(err)
	}
	return p, end
}

func (r *throttled) happens(kind cluster.EventKind, phase int32) {
	e := cluster.Event{Kind: kind, Task: r.start.Task, Run: 1, Phase: phase}
	if kind == cluster.TaskSuspended {
		e.By = cluster.HeldByMemory
	}
	r.fake.events <- e
}

// found reports that the task is found in a phase that it entered at a time.
func (r *throttled) found(phase int32, since timeline.Time) {
	e := cluster.Event{Kind: cluster.TaskPhase, Task: r.start.Task, Run: 1, Phase: phase}
	e.SetCondition(cluster.Condition{Progress: &cluster.Progress{PhaseSince: since}})
	r.fake.events <- e
	synctest.Wait()
}

// A driver knows what the driver before it knew of a running task: the phase that was reported, how long it stood
// still, what throttled it, and hence when it should end. What happened between the two is as the machine found it.
func TestProgressOutlivesTheDriver(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*throttled) // while the first driver runs
		still  bool             // found by the second
		bound  resource.Amount  // found by the second
		after  func(*throttled)
		phase  int32         // as shown, the first is 1
		since  time.Duration // as shown, after the launch
		late   time.Duration
	}{
		"nothing is known": {before: func(*throttled) {}, phase: 1},
		"time has passed":  {before: func(*throttled) { time.Sleep(70 * time.Second) }, phase: 2, since: time.Minute},
		"a phase came soon": {before: func(r *throttled) { r.happens(cluster.TaskPhase, 2) }, phase: 3,
			late: -2 * time.Minute},
		"a phase was found late": {before: func(r *throttled) {
			time.Sleep(50 * time.Second)
			r.found(1, r.now().Add(-30*time.Second))
		}, phase: 2, late: -40 * time.Second},
		"it is slower than forecast": {before: func(r *throttled) {
			time.Sleep(70 * time.Second)
			r.found(0, r.now().Add(-40*time.Second))
		}, phase: 1, late: 30 * time.Second},
		"a phase was left too early": {before: func(r *throttled) {
			r.happens(cluster.TaskPhase, 2)
			time.Sleep(10 * time.Second)
			r.found(0, r.begun)
		}, phase: 1},
		"phases that cannot be": {before: func(r *throttled) {
			for _, k := range []int32{0, 3, -1} {
				r.happens(cluster.TaskPhase, k)
			}
			r.happens(cluster.TaskSuspended, 0)
			r.happens(cluster.TaskPhase, 1)
			r.happens(cluster.TaskResumed, 0)
			r.found(1, r.now().Add(time.Second))
			r.found(0, r.begun)
			r.found(1, r.begun.Add(-time.Second))
		}, phase: 1},
		"it stood still": {before: func(r *throttled) {
			r.happens(cluster.TaskSuspended, 0)
			time.Sleep(90 * time.Second)
			r.happens(cluster.TaskResumed, 0)
		}, phase: 1, late: 90 * time.Second},
		"it stands still": {before: func(r *throttled) {
			r.happens(cluster.TaskSuspended, 0)
			time.Sleep(90 * time.Second)
		}, still: true, after: func(r *throttled) {
			r.happens(cluster.TaskSuspended, 0) // as an agent repeats
			time.Sleep(20 * time.Second)
			r.happens(cluster.TaskResumed, 0)
		}, phase: 1, late: 120 * time.Second},
		"it went on between them": {before: func(r *throttled) {
			r.happens(cluster.TaskSuspended, 0)
			time.Sleep(90 * time.Second)
		}, phase: 1, late: 100 * time.Second},
		"it stood still since": {before: func(*throttled) {}, still: true, after: func(*throttled) {
			time.Sleep(20 * time.Second)
		}, phase: 1, late: 20 * time.Second},
		"it is throttled": {before: func(r *throttled) {
			r.answer(cluster.DecisionDone, r.throttle(5*resource.MB, 80*time.Second), "")
			time.Sleep(10 * time.Second)
		}, bound: 5 * resource.MB, phase: 1, late: time.Minute},
		"the throttle is over": {before: func(r *throttled) {
			r.answer(cluster.DecisionDone, r.throttle(5*resource.MB, 12*time.Second), "")
			time.Sleep(10 * time.Second)
		}, phase: 1, late: 9 * time.Second},
		"the throttle did not arrive": {before: func(r *throttled) { r.throttle(5*resource.MB, 80*time.Second) }, phase: 1},
		"all of it": {before: func(r *throttled) {
			r.happens(cluster.TaskPhase, 1) // a minute too soon
			r.answer(cluster.DecisionDone, r.throttle(5*resource.MB, 40*time.Second), "")
			time.Sleep(20 * time.Second)
			r.happens(cluster.TaskSuspended, 0)
			time.Sleep(30 * time.Second)
		}, phase: 2, late: -time.Minute + 15*time.Second + 40*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newThrottledOf(t, threePhases())
				c.before(r)
				old, _ := r.known()
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				recites(t, r.EventLog())
				time.Sleep(10 * time.Second)
				e := cluster.Event{Kind: cluster.TaskAdopted, Task: r.start.Task, Run: 1, Grant: r.start.Grant, Launched: r.begun}
				if c.still {
					e.By = cluster.HeldByMemory
				}
				if c.bound > 0 {
					e.SetCondition(cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, c.bound), Until: r.policy.until})
				}
				r.fake = newFake(e)
				r.rig.start(r.policy)
				defer r.end()
				if c.after != nil {
					c.after(r)
				}
				p, end := r.known()
				if want := r.begun.Add(3*time.Minute + c.late); end.Sub(want).Abs() > time.Microsecond {
					t.Errorf("should end at %v, want %v", end, want)
				}
				if p.Phase != old.Phase || p.PhaseSince != old.PhaseSince || p.SuspendedFor < old.SuspendedFor {
					t.Errorf("knows %+v, and the driver before knew %+v", p, old)
				}
				explained, err := r.Explain(t.Context(), r.job)
				got := explained.Tasks[0]
				if err != nil || got.Phase != int(c.phase) || got.Phases != 3 || got.Since.IsZero() {
					t.Errorf("in phase %d of %d since %v, want %d (%v)", got.Phase, got.Phases, got.Since, c.phase, err)
				}
				if c.since != 0 && !got.Since.Equal(instant(r.begun.Add(c.since))) {
					t.Errorf("in phase %d since %v after the launch, want %v", got.Phase, got.Since.Sub(instant(r.begun)), c.since)
				}
				listed, err := r.Tasks(t.Context(), false)
				if err != nil || listed[0].InPhase != got.InPhase || (listed[0].Suspended != nil) != (p.SuspendedBy != 0) {
					t.Errorf("listed %+v, explained %+v: %v", listed[0], got, err)
				}
				recites(t, r.EventLog())
			})
		})
	}
}
