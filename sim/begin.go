package sim

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Begin is a cluster that runs already, with which a simulation begins.
//
// The tasks that were found running have come as far as the engine believes. Where their true run time is another
// than the estimated, they have the same share of it before them; where no end is known, what their truth leaves
// after the time that they have run. A task that should have ended ends at once.
type Begin struct {
	// At is when the simulation begins: jobs of the workload that were not found are submitted then or later.
	At timeline.Time
	// Found is what book.Snapshot.Inventory returns: Config.Nodes are its nodes, and its jobs are in the workload, with
	// their truth. With Synced as its last event, the policy considers everything as changed, as another policy than
	// that of the cluster must.
	Found []cluster.Event
	// ContainersPerCore is as in book.Snapshot.
	ContainersPerCore int
}

// check returns an error if a simulation cannot begin with b.
func (b *Begin) check(c *Config) error {
	if b == nil {
		return nil
	}
	nodes := 0
	for i := range b.Found {
		switch b.Found[i].Kind {
		case cluster.NodeJoined:
			nodes++
		case cluster.NodeLeft:
			return fmt.Errorf("begin: node %d has left: all nodes must be in the cluster", b.Found[i].Node)
		}
	}
	switch last := len(b.Found) - 1; {
	case last < 0 || b.Found[last].Kind != cluster.Synced && b.Found[last].Kind != cluster.Continued:
		return fmt.Errorf("begin: the inventory must end with %s or %s", cluster.Continued, cluster.Synced)
	case c.Heartbeat > 0:
		return fmt.Errorf("begin: heartbeat %v: must be 0, because nodes were found that report at once", c.Heartbeat)
	case nodes != len(c.Nodes):
		return fmt.Errorf("begin: %d nodes were found: must be those of the cluster, which has %d", nodes, len(c.Nodes))
	}
	return nil
}

// stopsTasks reports whether tasks were found that stand still or are throttled.
func (b *Begin) stopsTasks() bool {
	if b == nil {
		return false
	}
	for i := range b.Found {
		e := &b.Found[i]
		found := e.Condition()
		if e.Kind == cluster.JobPaused || e.NewJob != nil && e.NewJob.Held || e.Kind == cluster.TaskAdopted &&
			(found.HeldBy != 0 || found.Bound != resource.Vector{} || found.Progress != nil && found.Progress.SuspendedBy != 0) {
			return true
		}
	}
	return false
}

// begin brings the cluster to where it was found. The engine hears of it first, and decides last.
func (r *run) begin() {
	b := r.config.Begin
	r.now = b.At
	var told []cluster.Event
	for i := range b.Found {
		switch e := &b.Found[i]; e.Kind {
		case cluster.NodeMemory, cluster.Synced, cluster.Continued: // the memory managers report anew
			continue
		case cluster.JobSubmitted:
			r.foundJob(e.NewJob)
		case cluster.TaskEnded:
			if j := r.byID[e.Task.Job]; j != nil && e.Outcome == cluster.Succeeded {
				j.unstarted--
				j.unended--
				r.waiting--
				j.early.end(e.Task.Stage)
			}
		case cluster.JobCancelled:
			if j := r.byID[e.Job]; j != nil {
				j.failing = "it was being ended"
			}
		}
		told = append(told, b.Found[i])
	}
	if r.err != nil {
		return
	}
	r.step(told)
	for i := range b.Found {
		if e := &b.Found[i]; e.Kind == cluster.TaskAdopted && r.err == nil {
			r.adopt(e)
		}
	}
	r.conclude() // the containers get their memory before the policy decides
	if r.err == nil {
		r.stepOne(b.Found[len(b.Found)-1])
		r.conclude()
	}
}

// foundJob counts a job that was found as submitted.
func (r *run) foundJob(found *cluster.Job) {
	j := r.byID[found.ID]
	if j == nil {
		r.err = fmt.Errorf("begin: job %d was found, and is not in the workload", found.ID)
		return
	}
	j.arrived = true
	r.waiting += j.unstarted
}

// adopt makes a task go on that was found running.
func (r *run) adopt(e *cluster.Event) {
	j := r.byID[e.Task.Job]
	stage, memory := &j.Stages[e.Task.Stage], e.Grant[resource.Memory]
	found := e.Condition()
	j.unstarted--
	r.waiting--
	t := r.tasks.add()
	t.job, t.id, t.node, t.grant, t.mostCPU = j, e.Task, e.Node, e.Grant, found.MostCPU
	t.found = e
	res := &t.result
	res.ID, res.Node, res.Memory, res.Decided = e.Task, e.Node, memory, e.Launched
	res.Coordinator, res.UnderSized = stage.Coordinator, memory < stage.Ideal[resource.Memory] && !found.ByPhase
	if r.keepers != nil {
		envelope := r.engine.Snapshot().Envelope(&j.Job.Job, int(e.Task.Stage), memory, &r.config.Nodes[e.Node])
		envelope.MostCPU = found.MostCPU
		t.run, t.envelope = 1, &envelope
	}
	j.remember(t.id, t.index)
	r.grant(t.node, resource.Vector{}, r.heldBy(t))
	if r.mayLaunch(t) {
		r.launch(t)
	}
}

// asFound lets a task that was found running, and does so now, be as it was found: throttled, or standing still.
func (r *run) asFound(t *task) {
	found := t.found.Condition()
	t.found = nil
	if !r.fluid || t.result.Coordinator || t.ending != 0 {
		return
	}
	if found.Bound != (resource.Vector{}) && found.Until > r.now {
		t.throttle = new(throttling)
		r.hinder(t, found.Bound, found.Until)
		r.rebound(t)
		r.agenda.push(found.Until, wanted, t.index)
	}
	var told cluster.Holders
	if p := found.Progress; p != nil {
		told = p.SuspendedBy
	}
	if found.HeldBy == 0 && told == 0 {
		return
	}
	t.holding = &holding{by: found.HeldBy, told: told}
	if out := found.Out; out > 0 && r.keepers == nil {
		t.holding.wanted = found.PageOut
		r.holdStill(t, true)
		r.leave(t, out)
		if !found.PageOut {
			r.returning = append(r.returning, t)
		}
	}
	r.holdStill(t, found.HeldBy != 0 || t.holding.away())
	r.reportStill(t)
}

// left is for how long a task that was found running goes on if nothing hinders it.
func (r *run) left(t *task) time.Duration {
	e := t.found
	found, stage, memory := e.Condition(), &t.job.Stages[e.Task.Stage], e.Grant[resource.Memory]
	if found.ByPhase {
		memory = stage.Ideal[resource.Memory]
	}
	truth := trueDuration(t.job.Job, int(e.Task.Stage), e.Task.Index, t.result.Warmth, memory)
	estimate, _ := stage.DurationAt(memory)
	now, stood, ends := r.config.Begin.At, time.Duration(0), timeline.Time(0)
	if p := found.Progress; p != nil {
		if p.SuspendedBy != 0 {
			now = p.SuspendedSince
		}
		stood, ends = p.SuspendedFor, p.Ends
		// The engine rounds the end that follows from a reported phase.
		rest, _ := workload.SumPhases(stage.Phases[min(int(p.Phase), len(stage.Phases)):])
		if exact := p.PhaseSince.Add(rest); p.Phase > 0 && p.Ends > exact.Add(-time.Microsecond) &&
			p.Ends < exact.Add(time.Microsecond) {
			ends = exact
		}
	}
	left := truth - (now.Sub(e.Launched) - stood)
	if estimate > 0 && ends > 0 {
		if left = ends.Sub(now); truth != estimate {
			left = time.Duration(float64(left) * (float64(truth) / float64(estimate)))
		}
	}
	return max(0, left)
}

// skip makes a flow that has not begun enter the phase in which it still has the given time before it, or the phase
// that was reported if that is a later one.
func (r *run) skip(t *task, left time.Duration) {
	f, here := t.flow, &r.nodes[t.node]
	reported := 0
	if p := t.found.Condition().Progress; p != nil && len(f.phases) == len(t.job.Stages[t.id.Stage].Phases) {
		reported = int(p.Phase)
	}
	at, rest := len(f.phases)-1, float64(left)
	for at > reported {
		n, ok := f.needOf(&f.phases[at], &r.config.Machine, here.swap)
		if !ok || rest <= n.length {
			break
		}
		rest -= n.length
		at--
	}
	f.at = at - 1
	r.nextPhase(t)
	if t.ending == 0 {
		f.left = min(f.left, rest)
		here.endAt(t.slot, f.ends(r.now))
	}
}
