package live

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Resized is the last change of the grant of a running task.
type Resized struct {
	Was     Grant     `json:"was" doc:"what the task was granted before"`
	Since   time.Time `json:"since,omitzero" doc:"when the change was decided"`
	Why     string    `json:"why,omitempty" doc:"one clause on why it was decided"`
	InForce bool      `json:"in_force" doc:"whether it has been carried out"`
	Failed  string    `json:"failed,omitempty" doc:"why it could not be carried out: the grant is as before"`
}

// resizedOf returns the last change of the grant of a task; nil if there was none.
func resizedOf(t *book.TaskState, r *run) *Resized {
	s := t.Resized
	if s == nil {
		return nil
	}
	out := &Resized{Was: grantOf(s.Was), Since: instant(s.Since), InForce: s.InForce}
	if s.Why != (cluster.Reason{}) {
		out.Why = s.Why.Words(clock)
	}
	if s.Failed && r != nil {
		out.Failed = r.unresized
	}
	return out
}

// resizing is an order to resize a run that has not been answered.
type resizing struct {
	decision cluster.DecisionID
	grant    resource.Vector
}

func (r *run) resizingAt(id cluster.DecisionID) int {
	return slices.IndexFunc(r.resizes, func(o resizing) bool { return o.decision == id })
}

// resize makes the order to change the grant of a task.
func (d *Driver) resize(j *job, decision *cluster.Decision) {
	r := j.newest(decision.Task)
	if r == nil || r.ended() {
		return // The engine is yet to learn that it has ended, which answers the order.
	}
	r.resizes, r.unresized = append(r.resizes, resizing{decision.ID, decision.Grant}), ""
	d.remember(j, r)
	d.log.Debug("resizing container", "job", j.ID, "container", r.Container, "grant", decision.Grant, "reason",
		decision.Reason.Words(clock))
	d.out.orders = append(d.out.orders, cluster.Order{Decision: *decision, Container: r.Container})
}

// resized handles the answer to an order to resize a run.
func (d *Driver) resized(j *job, r *run, e cluster.Event) {
	at := r.resizingAt(e.Decision)
	newest, grant := at == len(r.resizes)-1, r.resizes[at].grant
	r.resizes = slices.Delete(r.resizes, at, at+1)
	switch {
	case newest && e.Kind == cluster.DecisionSuperseded:
		d.log.Warn("ignored that the newest order is superseded", "container", r.Container, "decision", e.Decision)
		return
	case e.Kind == cluster.DecisionDone:
		r.Grant = grant
		d.out.putRun(r)
	case newest && e.Kind == cluster.DecisionFailed:
		r.unresized = e.Detail
		d.log.Warn("cannot resize container", "job", j.ID, "container", r.Container, "reason", e.Detail)
	}
	d.step(e)
	d.remember(j, r)
	d.tell(j)
}

// adoptGrant takes over the grant that a Backend found, which counts: an order may not have arrived.
func (d *Driver) adoptGrant(r *run, e *cluster.Event) {
	if r.Grant != e.Grant {
		r.Grant = e.Grant
		d.out.putRun(r)
	}
}

// Sized says how the grant of a running task came about.
type Sized struct {
	ByPhase bool     `json:"by_phase,omitempty" doc:"the task is granted what each phase of its forecast demands; omitted if its grant stays the same"`
	MostCPU int64    `json:"most_cpu_millicores,omitempty" doc:"the most CPU that the task may use while others leave it: its grant of CPU is its share of the cores; omitted if its grant is the most"`
	Lends   bool     `json:"lends,omitempty" doc:"its program has nothing to do, and it lends its cores to other tasks until it has"`
	Resized *Resized `json:"resized,omitempty" doc:"the last change of its grant while it ran; omitted if there was none"`
}

// put adds the grant of a task, which may be changing.
func (s *Sized) put(t *book.TaskState, r *run) {
	s.ByPhase, s.Resized = t.ByPhase, resizedOf(t, r)
	s.Lends = t.Idle && t.Lends
	if t.MostCPU > t.Grant[resource.CPU] {
		s.MostCPU = int64(t.MostCPU)
	}
}
