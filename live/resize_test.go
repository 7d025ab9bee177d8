package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/view"
)

// resizer starts tasks by phase, and resizes the first task of the first job when the test says so.
type resizer struct {
	policy.Policy
	want resource.Vector
}

func (p *resizer) Decide(now timeline.Time, plan *book.Plan) {
	if len(plan.Jobs) > 0 && plan.Jobs[0].Ready(0) && len(plan.Jobs[0].Stages[0].Phases) > 0 {
		plan.StartPhased(plan.Jobs[0], 0, plan.Nodes[0], plan.Jobs[0].GrantIn(0, 0),
			cluster.BecausePhaseDemands(0, plan.Jobs[0].GrantIn(0, 0)))
	}
	if p.want != (resource.Vector{}) {
		plan.Resize(plan.Jobs[0].Tasks[0], p.want, cluster.BecausePhaseDemands(1, p.want))
		p.want = resource.Vector{}
	}
	p.Policy.Decide(now, plan)
}

// A task of a job that is granted resources by phase is told the size of its largest phase. It is resized, which is
// shown until the next daemon has taken over what its machine found; and by how much the node is over-granted
// meanwhile.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &resizer{Policy: fifo(t)}
		r := newRig(t, p)
		s := submission(1)
		cores := func(millis resource.Amount) resource.Vector { return resource.Of(millis, 500*resource.MiB) }
		s.Job.Stages[0].Phases = []cluster.Phase{{Duration: 9, Demand: cores(300)}, {Duration: 9, Demand: cores(1500)}}
		s.Job.Stages[0].Args = []string{"true", "{memory:MiB}", "{cpus:milli}"}
		id := r.submit(s)
		start := r.order(cluster.Start)
		if got := strings.Join(start.Launch.Args, " "); got != "true 484 1500" || start.Grant != cores(300) ||
			!start.ByPhase {
			t.Fatalf("%q is started with %v", got, start.Grant)
		}
		r.fake.launched(start)
		small := submission(1)
		small.Job.Stages[0].Ideal = resource.Of(1000, 100*resource.MiB)
		r.submit(small)
		other := r.order(cluster.Start)
		r.fake.launched(other)

		resize := func(to resource.Vector) cluster.Order {
			t.Helper()
			if err := r.do(t.Context(), func() { p.want = to }); err != nil {
				t.Fatal(err)
			}
			r.fake.events <- cluster.Event{Kind: cluster.NodeMemory, Held: to[resource.CPU]} // so that there is a step
			o := r.order(cluster.Resize)
			if o.Container != start.Container || o.Grant != to || o.Envelope.Min != to[resource.Memory] {
				t.Fatalf("order %+v", o)
			}
			return o
		}
		is := func(grant resource.Vector, want api.Resized) {
			t.Helper()
			synctest.Wait()
			e, err := r.Explain(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []*api.Resized{e.Job.Tasks[0].Resized, e.Tasks[0].Resized} {
				if got == nil || got.Since.IsZero() {
					t.Fatalf("resized %+v", got)
				}
				if got := (api.Resized{Was: got.Was, Why: got.Why, InForce: got.InForce, Failed: got.Failed}); got != want {
					t.Errorf("resized %+v, want %+v", got, want)
				}
			}
			if e.Job.Tasks[0].Grant != view.Grant(grant) || e.Tasks[0].Grant != view.Grant(grant) || !e.Tasks[0].ByPhase ||
				e.Job.Tasks[0].UnderSized {
				t.Errorf("%+v and %+v, want %v", e.Job.Tasks[0], e.Tasks[0], grant)
			}
		}
		more := resize(cores(1500))
		why := "its phase 2 is granted 1.5 cores and 500MiB"
		is(cores(1500), api.Resized{Was: view.Grant(cores(300)), Why: why})
		r.hears(more, cluster.DecisionDone, "")
		is(cores(1500), api.Resized{Was: view.Grant(cores(300)), Why: why, InForce: true})
		if e, err := r.Explain(t.Context(), id); err != nil || e.Decisions[len(e.Decisions)-1].Answer != api.AnswerDone ||
			*e.Decisions[len(e.Decisions)-1].Grant != view.Grant(cores(1500)) {
			t.Errorf("decisions %+v (%v)", e.Decisions, err)
		}

		waits := r.submit(small)
		synctest.Wait()
		e, err := r.Explain(t.Context(), waits)
		const words = "The next task of the job has not started: no node has 1 core free. Running tasks were granted " +
			"more cores than were free: together they are granted 500m cores more than the node has. 1.5 cores are held " +
			"by job 1, 1 core by job 2."
		if err != nil || e.Why != words {
			t.Errorf("explained %q (%v)", e.Why, err)
		}
		if s, err := r.Status(t.Context()); err != nil || s.Nodes[0].OverdrawnCPU != 500 {
			t.Errorf("%+v (%v)", s.Nodes, err)
		}

		failing := resize(cores(200))
		r.hears(failing, cluster.DecisionFailed, "no")
		is(cores(1500), api.Resized{Was: view.Grant(cores(1500)), Why: "its phase 2 is granted 200m cores and 500MiB",
			Failed: "no"})

		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		found := cluster.Event{Kind: cluster.TaskAdopted, Task: start.Task, Run: 1, Grant: cores(1500), Launched: 1,
			Found: &cluster.Condition{ByPhase: true, Was: cores(300), Why: more.Reason, Resized: 7}}
		r.fake = newFake(found, cluster.Event{Kind: cluster.TaskAdopted, Task: other.Task, Run: 1, Grant: other.Grant,
			Launched: 1})
		r.start(p)
		defer r.end()
		is(cores(1500), api.Resized{Was: view.Grant(cores(300)), Why: why, InForce: true})
		if s, err := r.Status(t.Context()); err != nil || s.Nodes[0].OverdrawnCPU != 500 || s.Nodes[0].CPU != 2000 {
			t.Errorf("%+v (%v)", s.Nodes, err)
		}
	})
}

// Where a grant of CPU is a weight, a program is told what it requested, and may use what its node has. That is shown
// while it is more than its grant, also by a next daemon whose policy has quotas.
func TestGrantIsAWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ecs := func(cpu string) policy.Policy {
			p, err := policy.New("ecs", map[string]string{"ecs.cpu": cpu, "ecs.short": "false"})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		r := newRig(t, ecs("weight"))
		cores := func(millis resource.Amount) resource.Vector { return resource.Of(millis, 400*resource.MiB) }
		s := submission(1)
		s.Job.Stages[0].Ideal = cores(1800)
		s.Job.Stages[0].Phases = []cluster.Phase{{Duration: time.Minute, Demand: cores(300)},
			{Duration: time.Minute, Demand: cores(1500)}}
		s.Job.Stages[0].Args = []string{"true", "{cpus:milli}"}
		id := r.submit(s)
		start := r.order(cluster.Start)
		if got := strings.Join(start.Launch.Args, " "); got != "true 1800" || start.Grant != cores(300) ||
			start.Envelope.MostCPU != 2000 {
			t.Fatalf("%q is started with %v, %+v", got, start.Grant, start.Envelope)
		}
		launched := timeline.Time(time.Now().UnixNano())
		r.fake.events <- cluster.Event{Kind: cluster.DecisionDone, Task: start.Task, Run: 1, Decision: start.ID,
			Launched: launched}
		shows := func(grant resource.Vector) {
			t.Helper()
			synctest.Wait()
			e, err := r.Explain(t.Context(), id)
			if err != nil || e.Job.Tasks[0].MostCPU != 2000 || e.Tasks[0].MostCPU != 2000 ||
				e.Tasks[0].Grant != view.Grant(grant) {
				t.Fatalf("%+v (%v)", e, err)
			}
		}
		shows(cores(300))
		time.Sleep(time.Minute)
		o := r.order(cluster.Resize)
		if o.Grant != cores(1500) || o.Envelope.MostCPU != 2000 {
			t.Errorf("resized to %v, %+v", o.Grant, o.Envelope)
		}
		r.hears(o, cluster.DecisionDone, "")
		shows(cores(1500))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: start.Task, Run: 1, Grant: cores(1500),
			Launched: launched, Found: &cluster.Condition{ByPhase: true, MostCPU: 2000}})
		r.start(ecs("quota"))
		defer r.end()
		shows(cores(1500))
	})
}
