package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// looksAhead is a policy that is notified of the progress of tasks.
type looksAhead struct{ policy.Policy }

func (looksAhead) Traits() policy.Traits { return policy.Traits{LooksAhead: true} }

// newFollowed is a rig with a running task that reads 40 MB/s for a minute and then computes for a minute, as forecast.
func newFollowed(t *testing.T, p policy.Policy) *throttled {
	s := submission(1)
	s.Job.Stages[0].Phases = []cluster.Phase{{Duration: time.Minute,
		Demand: resource.Vector{100, 100 * resource.MiB, 40 * resource.MB}},
		{Duration: time.Minute, Demand: resource.Vector{1000, 100 * resource.MiB, 0}}}
	return newThrottledBy(t, p, s)
}

// spent is a number of seconds with constant use.
func spent(seconds, millicores int64, disk resource.Amount) usage.Span {
	known := usage.SetOf(usage.CPU, usage.Memory, usage.Swap, usage.Read, usage.Written)
	s := usage.Span{Length: time.Duration(seconds) * time.Second, Known: known}
	s.Used[usage.CPU], s.Used[usage.Memory], s.Used[usage.Read] = seconds*millicores, 100*int64(resource.MiB),
		seconds*int64(disk*resource.MB)
	return s
}

// waited is a number of seconds in which the task waited of its own.
func waited(seconds int64) usage.Span {
	s := spent(seconds, 2, 0)
	s.Idle = s.Length
	return s
}

// uses says what the task used so far.
func (r *throttled) uses(spans ...usage.Span) {
	r.fake.measuring.Lock()
	defer r.fake.measuring.Unlock()
	r.fake.usage = map[cluster.ContainerID]usage.Usage{{Task: r.start.Task, Run: 1}: {Spans: spans}}
}

// A task whose disk is slow is in the phase that its use says, and should end accordingly; also under the next
// driver. Where the use says nothing, it is in the phase that it should have reached.
func TestPhasesFollowUse(t *testing.T) {
	for name, c := range map[string]struct {
		policy func(*testing.T) policy.Policy // looksAhead, unless it is set
		uses   []usage.Span
		happen func(*throttled) // nil is nothing
		phase  int              // after a minute and a half, the first is 1
		left   time.Duration
		told   bool
	}{
		"nothing was measured": {phase: 2, left: 30 * time.Second},
		"as forecast":          {uses: []usage.Span{spent(60, 90, 38), spent(30, 950, 0)}, phase: 2, left: 30 * time.Second},
		"slow":                 {uses: []usage.Span{spent(90, 40, 16)}, phase: 1, left: 75 * time.Second, told: true},
		"slow before": {uses: []usage.Span{spent(80, 75, 30), spent(10, 950, 0)}, phase: 2, left: 50 * time.Second,
			told: true},
		"a little slow": {uses: []usage.Span{spent(65, 90, 35), spent(25, 950, 0)}, phase: 2, left: 30 * time.Second},
		"fast": {uses: []usage.Span{spent(40, 120, 50), spent(50, 950, 0)}, phase: 2,
			left: 10 * time.Second, told: true},
		"it gets nothing": {uses: []usage.Span{spent(90, 2, 0)}, phase: 1, left: 118 * time.Second, told: true},
		"it waits":        {uses: []usage.Span{waited(90)}, phase: 2, left: 30 * time.Second},
		"it waits in between": {uses: []usage.Span{spent(30, 90, 38), waited(20), spent(30, 90, 38), spent(10, 950, 0)},
			phase: 2, left: 50 * time.Second, told: true},
		"another program":    {uses: []usage.Span{spent(90, 1000, 80)}, phase: 2, left: 30 * time.Second},
		"nobody looks ahead": {policy: fifoOf, uses: []usage.Span{spent(90, 40, 16)}, phase: 2, left: 30 * time.Second},
		"it stands still": {uses: []usage.Span{spent(90, 40, 16)}, happen: func(r *throttled) {
			r.happens(cluster.TaskSuspended, 0)
		}, phase: 2, left: 30 * time.Second},
		"it is throttled": {uses: []usage.Span{spent(90, 40, 16)}, happen: func(r *throttled) {
			r.answer(cluster.DecisionDone, r.throttle(50*resource.MB, time.Minute), "")
		}, phase: 2, left: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := policy.Policy(looksAhead{fifo(t)})
				if c.policy != nil {
					p = c.policy(t)
				}
				r := newFollowed(t, p)
				time.Sleep(90*time.Second - followEvery/2)
				synctest.Wait()
				if c.happen != nil {
					c.happen(r)
				}
				if c.uses != nil {
					r.uses(c.uses...)
				}
				time.Sleep(followEvery)
				synctest.Wait()
				check := func() (p cluster.Progress) {
					t.Helper()
					p, end := r.known()
					explained, err := r.Explain(t.Context(), r.job)
					if got := explained.Tasks[0].Phase; err != nil || got != c.phase {
						t.Errorf("in phase %d, want %d (%v)", got, c.phase, err)
					}
					want := r.begun.Add(90*time.Second + c.left)
					if p.SuspendedBy != 0 {
						want = want.Add(r.now().Sub(p.SuspendedSince))
					}
					if end.Sub(want).Abs() > followEvery {
						t.Errorf("should end at %v, want %v", end, want)
					}
					if told := p.Phase != 0 || p.PhaseSince != r.begun; told != c.told {
						t.Errorf("the engine was told: %v", told)
					}
					return p
				}
				before := check()
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				recites(t, r.EventLog())
				e := cluster.Event{Kind: cluster.TaskAdopted, Task: r.start.Task, Run: 1, Grant: r.start.Grant, Launched: r.begun,
					By: before.SuspendedBy}
				if r.policy.until != 0 {
					e.SetCondition(cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, r.policy.bound),
						Until: r.policy.until})
				}
				r.fake = newFake(e)
				r.rig.start(r.policy)
				defer r.end()
				if after := check(); after != before {
					t.Errorf("knows %+v, and the driver before knew %+v", after, before)
				}
			})
		})
	}
}

func fifoOf(t *testing.T) policy.Policy { return fifo(t) }

// A task that stays in a phase for much longer than forecast is reported now and then, and not at each look.
func TestFewReportsOfSlowTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFollowed(t, looksAhead{fifo(t)})
		defer r.end()
		reports, last := 0, cluster.Progress{}
		for second := int64(1); second < 300; second++ {
			r.uses(spent(second, 20, 8))
			time.Sleep(time.Second)
			if p, _ := r.known(); p != last {
				reports, last = reports+1, p
			}
		}
		if last.Phase != 0 || reports < 5 || reports > 40 {
			t.Errorf("%d reports, and it is in phase %d", reports, last.Phase)
		}
	})
}

// Where a busy disk takes long to return what a task used, the task is looked at as often as elsewhere: waiting for a
// disk is no work.
func TestPhasesFollowUseOnABusyDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFollowed(t, looksAhead{fifo(t)})
		defer r.end()
		r.fake.measuring.Lock()
		r.fake.reading = time.Second
		r.fake.measuring.Unlock()
		r.uses(spent(30, 90, 38)) // as forecast: nothing is reported
		time.Sleep(30 * time.Second)
		r.uses(spent(30, 90, 38), spent(30, 950, 0)) // the first phase was short
		time.Sleep(2*followEvery + 2*time.Second)
		synctest.Wait()
		if p, _ := r.known(); p.Phase != 1 {
			t.Errorf("in phase %d, want 1", p.Phase)
		}
	})
}
