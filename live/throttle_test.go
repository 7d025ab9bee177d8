package live

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// throttler throttles the first task of the first job when the test says so.
type throttler struct {
	policy.Policy
	bound resource.Amount // of disk bandwidth
	until timeline.Time
	due   bool
}

func (p *throttler) Decide(now timeline.Time, plan *book.Plan) {
	if p.due {
		p.due = false
		plan.Throttle(plan.Jobs[0].Tasks[0], resource.Vector{}.With(resource.Disk, p.bound), p.until,
			cluster.BecauseNodePressure(resource.Disk, 40*resource.MB, 110*resource.MB))
	}
	p.Policy.Decide(now, plan)
}

// throttled is a rig with a running task and a policy that throttles it.
type throttled struct {
	*rig
	policy *throttler
	job    cluster.JobID
	start  cluster.Order
	begun  timeline.Time
}

func newThrottled(t *testing.T) *throttled { return newThrottledOf(t, submission(1)) }

func newThrottledOf(t *testing.T, s Submission) *throttled { return newThrottledBy(t, fifo(t), s) }

func newThrottledBy(t *testing.T, p policy.Policy, s Submission) *throttled {
	r := &throttled{policy: &throttler{Policy: p}}
	r.rig = newRig(t, r.policy)
	r.job = r.submit(s)
	r.start = r.order(cluster.Start)
	r.begun = r.now()
	r.fake.events <- cluster.Event{Kind: cluster.DecisionDone, Task: r.start.Task, Run: 1, Decision: r.start.ID,
		Launched: r.begun}
	synctest.Wait()
	return r
}

// throttle makes the policy throttle the task, and returns the order.
func (r *throttled) throttle(bound resource.Amount, lasts time.Duration) cluster.Order {
	r.t.Helper()
	if err := r.do(r.t.Context(), func() {
		r.policy.bound, r.policy.until, r.policy.due = bound, r.now().Add(lasts), true
	}); err != nil {
		r.t.Fatal(err)
	}
	r.fake.events <- cluster.Event{Kind: cluster.NodeMemory, Held: resource.Amount(lasts)} // so that there is a step
	o := r.order(cluster.Throttle)
	if o.Container != r.start.Container || o.Bound[resource.Disk] != bound {
		r.t.Fatalf("order %+v", o)
	}
	return o
}

func (r *throttled) answer(kind cluster.EventKind, o cluster.Order, detail string) {
	r.fake.events <- cluster.Event{Kind: kind, Task: o.Task, Run: o.Container.Run, Decision: o.ID, Detail: detail}
	synctest.Wait()
}

// is checks what the task's view and the engine say.
func (r *throttled) is(want *api.Throttle) {
	r.t.Helper()
	synctest.Wait()
	e, err := r.Explain(r.t.Context(), r.job)
	if err != nil || e.Job.Tasks[0].State != api.TaskRunning {
		r.t.Fatalf("%+v %v", e, err)
	}
	for _, got := range []*api.Throttle{e.Job.Tasks[0].Throttle, e.Tasks[0].Throttle} {
		if (got == nil) != (want == nil) || got != nil && (got.Disk != want.Disk || got.InForce != want.InForce ||
			got.How != want.How || got.Failed != want.Failed || got.Why != want.Why) {
			r.t.Errorf("throttled %+v, want %+v", got, want)
		}
	}
	var bound resource.Amount
	if err := r.do(r.t.Context(), func() {
		job, _ := r.engine.Snapshot().Job(r.job)
		if th, ok := job.Tasks[0].Bounded(r.now()); ok {
			bound = th.Most[resource.Disk]
		}
	}); err != nil {
		r.t.Fatal(err)
	}
	if want != nil && want.Failed == "" && int64(bound) != want.Disk || (want == nil || want.Failed != "") && bound != 0 {
		r.t.Errorf("the engine says %d, want %+v", bound, want)
	}
}

// decided checks how the newest decisions about the job were answered.
func (r *throttled) decided(want ...api.DecisionNote) {
	r.t.Helper()
	e, err := r.Explain(r.t.Context(), r.job)
	if err != nil || len(e.Decisions) < len(want) {
		r.t.Fatalf("%+v %v", e.Decisions, err)
	}
	for i, got := range e.Decisions[len(e.Decisions)-len(want):] {
		got.At, got.Until, got.Task, got.Why = time.Time{}, time.Time{}, cluster.TaskID{}, ""
		if got != want[i] {
			r.t.Errorf("decision %d is shown as %+v, want %+v", i, got, want[i])
		}
	}
}

const pressure = "node pressure: the node gives 40MB/s of disk, of 110MB/s"

// An owner that answers an order after the end of the throttle that it began is wrong, and is ignored.
func TestThrottleAnsweredAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newThrottled(t)
		defer r.end()
		first, end := r.throttle(2*resource.MB, time.Hour), r.throttle(0, 0)
		r.answer(cluster.DecisionDone, end, "")
		r.answer(cluster.DecisionDone, first, "slowly")
		if j, err := r.Job(t.Context(), r.job, false); err != nil || j.Tasks[0].Throttle != nil {
			t.Errorf("throttled %+v: %v", j.Tasks, err)
		}
	})
}

// A throttle is ordered, answered once, shown, replaced, and ends by itself or by an order.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newThrottled(t)
		defer r.end()
		r.is(nil)
		first := r.throttle(10*resource.MB, time.Minute)
		r.is(&api.Throttle{Bound: api.Bound{Disk: 10e6}, Why: pressure})
		shown := func(mbps int64, answer api.Answer, detail string) api.DecisionNote {
			return api.DecisionNote{Kind: cluster.Throttle, Bound: api.Bound{Disk: mbps * 1e6}, Answer: answer, Detail: detail}
		}
		r.decided(api.DecisionNote{Kind: cluster.Start, Answer: api.AnswerDone}, shown(10, api.AnswerPending, ""))
		if e, err := r.Explain(t.Context(), r.job); err != nil || !e.Decisions[1].Until.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("the throttle is shown as %+v: %v", e.Decisions[1], err)
		}
		r.answer(cluster.DecisionDone, first, "slowly")
		r.is(&api.Throttle{Bound: api.Bound{Disk: 10e6}, Why: pressure, InForce: true, How: "slowly"})
		r.answer(cluster.DecisionFailed, first, "answered twice") // is ignored
		r.is(&api.Throttle{Bound: api.Bound{Disk: 10e6}, Why: pressure, InForce: true, How: "slowly"})
		time.Sleep(time.Minute)
		r.is(nil)

		second, third := r.throttle(5*resource.MB, time.Hour), r.throttle(4*resource.MB, time.Hour)
		r.answer(cluster.DecisionSuperseded, second, "")
		r.is(&api.Throttle{Bound: api.Bound{Disk: 4e6}, Why: pressure})
		r.answer(cluster.DecisionDone, third, "")
		r.is(&api.Throttle{Bound: api.Bound{Disk: 4e6}, Why: pressure, InForce: true})

		failing := r.throttle(3*resource.MB, time.Hour)
		r.answer(cluster.DecisionFailed, failing, "no such thing")
		r.decided(shown(10, api.AnswerDone, "slowly"), shown(5, api.AnswerSuperseded, ""), shown(4, api.AnswerDone, ""),
			shown(3, api.AnswerFailed, "no such thing"))
		r.is(&api.Throttle{Bound: api.Bound{Disk: 3e6}, Why: pressure, Failed: "no such thing"})

		fourth := r.throttle(2*resource.MB, time.Hour)
		r.answer(cluster.DecisionDone, fourth, "")
		end := r.throttle(0, 0)
		r.is(nil)
		r.answer(cluster.DecisionDone, end, "")
		r.is(nil)

		late := r.throttle(resource.MB, time.Hour) // the end of the task answers it
		r.fake.ended(r.start.Container, cluster.Succeeded, 0)
		r.answer(cluster.DecisionFailed, late, "it has ended")
		r.answer(cluster.DecisionSuperseded, late, "it has ended")
		if j := r.wait(r.job); j.Status != cluster.StatusSucceeded || j.Tasks[0].Throttle != nil {
			t.Errorf("job %+v", j)
		}
		if got := r.Driver.health.broken; got != nil {
			t.Error(got)
		}
		if n := recites(t, r.EventLog()); n < 5 {
			t.Errorf("%d throttles are recorded", n)
		}
	})
}

// The end of a task answers a throttle that is under way.
func TestThrottleOfATaskThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newThrottledOf(t, submission(2))
		defer r.end()
		r.fake.launched(r.order(cluster.Start))
		r.throttle(10*resource.MB, time.Minute)
		r.fake.ended(r.start.Container, cluster.Succeeded, 0)
		synctest.Wait()
		r.decided(api.DecisionNote{Kind: cluster.Throttle, Bound: api.Bound{Disk: 10e6}, Answer: api.AnswerSuperseded,
			Detail: "its task ended first"})
	})
}

// recites checks that the log of a run with a throttler, told to a new engine, gives the same decisions: the policy
// throttles when it did, and all else follows from the events. It returns the number of throttles.
func recites(t *testing.T, path string) (throttles int) {
	t.Helper()
	p := &throttler{Policy: fifo(t)}
	_, log := readLog(t, path)
	e := engine.New(p, nil)
	for i := range log {
		if log[i].Events == nil {
			continue
		}
		var want []cluster.Decision
		if i+1 < len(log) {
			want = log[i+1].Decisions
		}
		for _, d := range want {
			if d.Kind == cluster.Throttle {
				p.bound, p.until, p.due = d.Bound[resource.Disk], d.At, true
				throttles++
			}
		}
		decisions, err := e.Step(log[i].Now, log[i].Events...)
		if err != nil || len(decisions) != len(want) || len(want) > 0 && !reflect.DeepEqual(decisions, want) {
			t.Errorf("at %v: %+v (%v), recorded %+v", log[i].Now, decisions, err, want)
		}
	}
	return throttles
}

// After a restart the task is throttled as the machine has it: as ordered, or not, if the order did not arrive.
func TestThrottleOutlivesTheDriver(t *testing.T) {
	for name, c := range map[string]struct {
		answered, found bool
		bound           resource.Amount // that was ordered last, after 7 MB/s if it is not that
	}{
		"in force":               {true, true, 7 * resource.MB},
		"in force, not answered": {false, true, 7 * resource.MB},
		"did not arrive":         {false, false, 7 * resource.MB},
		"the end did not arrive": {true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newThrottled(t)
				o := r.throttle(7*resource.MB, time.Hour)
				if c.answered {
					r.answer(cluster.DecisionDone, o, "slowly")
				}
				if c.bound == 0 {
					r.throttle(0, 0)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				e := cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: r.start.Grant, Launched: 1}
				if c.found {
					e.Detail = "slowly"
					e.SetCondition(cluster.Condition{Bound: o.Bound, Until: o.At})
				}
				r.fake = newFake(e)
				r.rig.start(r.policy)
				defer r.end()
				want := &api.Throttle{Bound: api.Bound{Disk: 7e6}, Why: pressure, InForce: true, How: "slowly"}
				if !c.found {
					want = nil
				}
				if c.bound == 0 {
					want.Why = ""
				}
				r.is(want)
				r.noOrder()
				r.answer(cluster.DecisionDone, r.throttle(5*resource.MB, time.Hour), "")
				r.is(&api.Throttle{Bound: api.Bound{Disk: 5e6}, Why: pressure, InForce: true})
			})
		})
	}
}
