package sim

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// checkNodeUse checks that a node gives no more than its capacity.
func (r *run) checkNodeUse(t *rapid.T, p *node) {
	var demand resource.Vector
	var used [resource.NumKinds]float64
	flows := 0
	if first := p.first; !p.seek {
		if p.seekFirst(); p.first != first {
			t.Fatalf("%v: the first end of a phase is taken for %+v, and is %+v", r.now, first, p.first)
		}
	}
	for _, task := range p.tasks {
		use, pace := r.plainUse(task), 1.0
		if task.flow != nil {
			use, pace = task.flow.demand, task.flow.pace
			flows++
		}
		r.checkReported(t, task)
		for k, most := range task.bound {
			if f := task.flow; most > 0 && f != nil && f.pace > 0 &&
				float64(f.demand[k])*f.pace/f.speed > float64(most)*(1+1e-9) {
				t.Fatalf("%v: task %v uses %v of %s at pace %v of %v, but is kept to %d", r.now, task.id, f.demand[k],
					resource.Kind(k), f.pace, f.speed, most)
			}
		}
		if still := task.stillFor() != 0; !(pace > 0 && pace <= 1) && !(still && pace == 0) {
			t.Fatalf("%v: task %v goes on at pace %v", r.now, task.id, pace)
		}
		demand = demand.Add(use)
		for k := range use {
			used[k] += pace * float64(use[k])
		}
	}
	if demand != p.demand || flows != p.flows {
		t.Fatalf("%v: demand is booked as %v, %d flows; is %v, %d", r.now, p.demand, p.flows, demand, flows)
	}
	for _, k := range contended {
		if p.capacity[k] > 0 && used[k] > p.effective(k, &r.config.Machine)*(1+1e-9) {
			t.Fatalf("%v: %v of %s is used, capacity %v", r.now, used[k], k, p.capacity[k])
		}
	}
	if p.swap < 0 || p.swap > r.config.Machine.Swap {
		t.Fatalf("%v: %d bytes of swap are left", r.now, p.swap)
	}
}

// checkReported checks that a policy that looks ahead knows how a task comes along, where nodes report at once.
func (r *run) checkReported(t *rapid.T, task *task) {
	state := r.engine.Snapshot().Nodes[task.node].Tasks
	at := slices.IndexFunc(state, func(s *book.TaskState) bool { return s.ID == task.id })
	if _, atOnce := r.protocol.(*direct); !r.traits.LooksAhead || !atOnce || at < 0 || !state[at].Running {
		return
	}
	if still := task.stillFor() != 0; still != state[at].Suspended {
		t.Fatalf("%v: task %v stands still: %v, but the policy is told %v", r.now, task.id, still, state[at].Suspended)
	}
	f, told := task.flow, len(task.job.Stages[task.id.Stage].Phases)
	if f != nil && task.ending == 0 && told > 0 && len(f.phases) == told && f.at != int(state[at].Phase) {
		t.Fatalf("%v: task %v is in phase %d, but the policy is told %d", r.now, task.id, f.at, state[at].Phase)
	}
}

// For any workload, cluster, incidents and policy: time never goes back, no node gives more than it has, no task is
// lost or succeeds twice or has two runs at a time, every job ends or is reported with the reason, everything that was
// taken is released, and the same input gives the same result.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		if c.Machine.Swap > 0 && rapid.Bool().Draw(t, "little swap") {
			c.Machine.Swap = testGB / 2
		}
		w := randomWorkload(t, c.Nodes[0].Capacity)
		randomProtocol(t, &c, len(w.Jobs))
		c.Series.Nodes = rapid.Bool().Draw(t, "records nodes")
		make := randomPolicy(t, "prophet")
		if h, is := make().(haphazard); is {
			h.throttles, h.resizes = rapid.Bool().Draw(t, "throttles"), rapid.Bool().Draw(t, "resizes")
			make = func() policy.Policy { return h }
		}
		var last timeline.Time
		c.Observe = func(now timeline.Time, _ []cluster.Event, _ []cluster.Decision) {
			if now < last {
				t.Fatalf("step at %v after one at %v", now, last)
			}
			last = now
		}
		r, err := newRun(c, w, make())
		if err != nil {
			t.Fatal(err)
		}
		r.audit = func(p *node) { r.checkNodeUse(t, p) }
		res, err := r.play()
		if err != nil {
			t.Fatal(err)
		}
		r.checkJobs(t, res)
		r.checkTasks(t, res)
		r.checkLeftovers(t, res)
		c.Observe, last = nil, 0
		again, err := Run(c, w, make())
		if err != nil || !reflect.DeepEqual(res, again) {
			t.Fatalf("the same again gives\n%+v, not\n%+v (%v)", again, res, err)
		}
	})
}

func (r *run) checkJobs(t *rapid.T, res *Result) {
	for i, j := range res.Jobs {
		ways := 0
		for _, way := range []bool{j.Done, j.Failed, j.Stuck != ""} {
			if way {
				ways++
			}
		}
		if ways != 1 || j.Failed != (j.Failure != "") {
			t.Fatalf("job %d is neither done, nor failed, nor stuck, or more than one of them: %+v", j.ID, j)
		}
		if j.Stuck != "" {
			t.Fatalf("job %d is stuck: %s; %+v, runs %+v", j.ID, j.Stuck, j, res.Tasks)
		}
		if j.Done && r.jobs[i].unended != 0 {
			t.Fatalf("job %d is done, but %d of its tasks are not", j.ID, r.jobs[i].unended)
		}
	}
}

func (r *run) checkTasks(t *rapid.T, res *Result) {
	succeeded := map[cluster.TaskID]int{}
	free := map[cluster.TaskID]timeline.Time{} // the time at which the last run of the task ended
	for _, run := range res.Tasks {
		if run.Finished < run.Launched || run.Launched < run.Decided && run.Launched != 0 {
			t.Fatalf("task %v is decided at %v, launched at %v and ends at %v", run.ID, run.Decided, run.Launched, run.Finished)
		}
		if run.Outcome == cluster.Succeeded {
			succeeded[run.ID]++
		}
	}
	for _, run := range r.tasks.list {
		if since, again := free[run.id]; again && run.result.Decided < since {
			t.Fatalf("task %v is started at %v, but its last run ends at %v", run.id, run.result.Decided, since)
		}
		free[run.id] = run.result.Finished
	}
	for i := range r.jobs {
		j := r.jobs[i]
		for s := range j.Stages {
			for index := range j.Stages[s].Tasks {
				id := cluster.TaskID{Job: j.ID, Stage: int32(s), Index: int32(index)}
				if n := succeeded[id]; n > 1 || n == 0 && res.Jobs[i].Done {
					t.Fatalf("task %v of a job that is done: %v succeeded %d times; job %+v, runs %+v", id, res.Jobs[i].Done, n,
						res.Jobs[i], res.Tasks)
				}
			}
		}
	}
}

// checkLeftovers looks for resources still in use when all jobs have ended.
func (r *run) checkLeftovers(t *rapid.T, res *Result) {
	for _, task := range r.tasks.list {
		if !task.ended() {
			t.Fatalf("run of task %v has not ended: %+v", task.id, task.result)
		}
	}
	if r.used.held != 0 {
		t.Fatalf("%d bytes are still granted", r.used.held)
	}
	for i, p := range r.nodes {
		if len(p.tasks) != 0 || p.demand != (resource.Vector{}) || p.flows != 0 || p.swap != r.config.Machine.Swap {
			t.Fatalf("on node %d there is still %+v", i, p)
		}
	}
	for i, n := range res.Nodes {
		if last := n.Steps[len(n.Steps)-1]; last.Granted != (resource.Vector{}) || last.Demand != (resource.Vector{}) {
			t.Fatalf("node %d is recorded with %+v in the end", i, last)
		}
	}
	if !(res.MemoryUtilisation >= 0 && res.MemoryUtilisation <= 1+1e-9) {
		t.Fatalf("memory utilisation is %v", res.MemoryUtilisation)
	}
}
