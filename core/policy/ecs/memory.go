package ecs

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Memory by phase. Shortly before a phase that needs more memory should begin, its task is granted that memory (see
// preparation) or, if it is not free on its node, stands in line for it, with its memory paged out. The phases in
// line begin in the order in which they began to wait, and nothing starts on the node meanwhile: a task waits no
// longer than until the tasks that run there have ended. Once those that still run have taken twice as long as was
// forecast, or if their ends are unknown, it goes on with what is free: a FLEX container that lacks memory is served
// by the memory manager of its node.

// inLine is a task whose phase needs more memory than it is granted.
type inLine struct {
	task  *book.TaskState
	phase int32           // that it is in
	needs int32           // that needs more memory: phase, or a later one
	grant resource.Vector // in phase, with the memory of needs
	held  bool            // it stands still for it
	runs  bool            // it turned out that it may run
	// it was let go on with less, because there was nothing to wait for, in this phase or one that needs as much
	less  bool
	since timeline.Time // when it began to need that, or stopped for it; zero, the first, if it was let go on with less
}

// pagesOut reports whether the tasks of a stage can be granted memory by phase: what they do not need can be taken
// from them.
func pagesOut(j *cluster.Job, stage int) bool {
	return j.Resizable(stage) && j.Stages[stage].HeartbeatTimeout == 0
}

// lineUp sets e.line to the tasks of n whose phases need more memory than they are granted, in the order in which
// they are served.
func (e *Leveler) lineUp(now timeline.Time, n *book.NodeState) {
	e.line = e.line[:0]
	for _, t := range n.Tasks {
		phase, grant, ok := e.phased.wants(now, t)
		held, waits := t.WaitsForMemory()
		lacks := grant[resource.Memory] > t.WantedGrant()[resource.Memory] && !t.Suspended && !failed(now, t, phase)
		if ok && (waits || lacks) {
			w := inLine{task: t, phase: phase, needs: phase, grant: grant, held: waits, since: held.Since}
			began := t.EnteredAt(now, phase)
			if next, soon := e.phased.prepared(now, t, phase); soon {
				w.needs, began = next.phase, now.Add(next.left-next.lead)
			}
			granted, before := grantedFor(t)
			w.less = !waits && before && e.phased.memoryIn(t.Job.Job, int(t.ID.Stage), granted) >= grant[resource.Memory]
			if !waits && !w.less {
				w.since = began
			}
			e.line = append(e.line, w)
		}
	}
	slices.SortFunc(e.line, func(a, b inLine) int {
		return cmp.Or(cmp.Compare(a.since, b.since), a.task.ID.Compare(b.task.ID))
	})
}

// grantedFor returns the phase for which the present grant of a task was decided, perhaps before that began; ok is
// false if it was not decided for a phase.
func grantedFor(t *book.TaskState) (phase int32, ok bool) {
	r := t.Resized
	if r == nil || r.Failed || r.Why.Code != cluster.PhaseDemands && r.Why.Code != cluster.PhaseAhead {
		return 0, false
	}
	return int32(r.Why.A) - 1, true
}

// serveMemory lets the phases in line begin for which n has memory, and stops the tasks of the others. It reports
// whether something was decided.
func (e *Leveler) serveMemory(now timeline.Time, p *book.Plan, n *book.NodeState) (decided bool) {
	e.lineUp(now, n)
	blocked := false
	for i := range e.line {
		w := &e.line[i]
		has, free := w.task.Holds()[resource.Memory], max(0, n.Spare()[resource.Memory])
		switch end := e.lastEnd(now, p.Snapshot, n); {
		case !blocked && w.fits(n):
			decided = e.begin(now, p, w) || decided
		case !blocked && end == now && has+free >= cluster.LeastRunMemory: // there is nothing to wait for
			w.grant[resource.Memory] = w.reduced(has + free)
			decided = e.begin(now, p, w) || decided
		case w.less: // or two tasks would take turns, and swap more than they compute
			w.runs = true
		case !w.held:
			p.PageOutUntil(w.task, end.Add(end.Sub(now)+time.Minute),
				cluster.BecauseMemoryWaits(w.needs, w.grant[resource.Memory], free))
			decided = true
			fallthrough
		default:
			blocked = true
		}
	}
	return decided
}

// fits reports whether n has the memory that w needs.
func (w *inLine) fits(n *book.NodeState) bool {
	return w.grant[resource.Memory]-w.task.Holds()[resource.Memory] <= max(0, n.Spare()[resource.Memory])
}

// page is the least change of a grant of memory.
const page = 4 * resource.KiB

// reduced returns the memory with which a task goes on that does not get all that its phase needs, of the most that
// it can have. That it goes on, and keeps its turn, is known by its last resize: a grant that would stay the same
// becomes a page less.
func (w *inLine) reduced(most resource.Amount) resource.Amount {
	memory, wanted := min(w.grant[resource.Memory], most), w.task.WantedGrant()[resource.Memory]
	switch {
	case !w.less && memory == wanted:
		return wanted - page
	case w.less && memory > wanted && memory <= wanted+page:
		return wanted
	}
	return memory
}

// begin lets a task go on to its phase, with a grant.
func (e *Leveler) begin(now timeline.Time, p *book.Plan, w *inLine) (decided bool) {
	w.runs = true
	decided = e.phased.regrant(now, p, w.task, w.phase, w.grant)
	if w.held {
		p.Resume(w.task, cluster.HeldByLeveling, e.phased.because(now, w.task, w.phase, w.task.WantedGrant()))
		decided = true
	}
	return decided
}

// lastEnd returns until when the tasks of n that do not wait for memory are waited for: until all have ended, or have
// taken twice as long as was forecast; now if there is none whose end is known.
func (e *Leveler) lastEnd(now timeline.Time, s *book.Snapshot, n *book.NodeState) (last timeline.Time) {
	last = now
	for _, t := range n.Tasks {
		if t.Steers || t.SuspendedBy&cluster.HeldByOwner != 0 ||
			slices.ContainsFunc(e.line, func(w inLine) bool { return w.task == t && !w.runs }) {
			continue
		}
		r, known := restOf(now, s, t, timeline.Never)
		switch end := r.from.Add(r.left); {
		case !known:
		case r.from == timeline.Never: // as if it had gone on
			end, _ = s.EstimatedEnd(t, timeline.Earliest)
			fallthrough
		default:
			last = max(last, end.Add(t.Duration))
		}
	}
	return last
}

// nextForMemory returns the earliest time after now at which a task of n is to be prepared for a phase, or is not
// prepared any longer, or at which the tasks in line should have nothing to wait for any more; Never if there is
// none.
func (e *Leveler) nextForMemory(now timeline.Time, s *book.Snapshot, n *book.NodeState) timeline.Time {
	at := timeline.Never
	for _, t := range n.Tasks {
		if phase, _, ok := e.phased.wants(now, t); ok && !t.Suspended {
			at = min(at, e.phased.nextPrepared(now, t, phase))
		}
	}
	e.lineUp(now, n)
	for i := range e.line { // as serveMemory does
		w := &e.line[i]
		if last := e.lastEnd(now, s, n); last > now {
			at = min(at, last)
		}
		if w.runs = w.less || w.fits(n); !w.runs {
			break
		}
	}
	return at
}

// suits reports whether the next task of a job may start on n, which has room for it: no phase waits for memory
// there, and all phases of the task would ever fit.
func (e *Leveler) suits(_ *book.Plan, j *book.JobState, n *book.NodeState) bool {
	if !e.phased.memory {
		return true
	}
	stage, _ := j.NextStage()
	e.lineUp(e.now, n)
	return len(e.line) == 0 && e.phased.mostMemory(j.Job, stage) <= n.Capacity[resource.Memory]
}

// why says why the next task of a job does not start: no node has room, or phases come first where there is.
func (e *Leveler) why(now timeline.Time, s *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
	need, _, _ := e.phased.grant(j, stage)
	if why, ok := s.NoRoom(need); ok || !e.phased.memory {
		return why, ok
	}
	e.now = now
	behind := cluster.JobID(0)
	for n, ok := s.FirstOpen(need, 0); ok; n, ok = s.FirstOpen(need, n.ID+1) {
		if e.suits(nil, j, n) {
			return cluster.Reason{}, false
		}
		if behind == 0 && len(e.line) > 0 {
			behind = e.line[0].task.ID.Job
		}
	}
	if behind != 0 {
		return cluster.BecauseBehindPhase(need[resource.Memory], behind), true
	}
	return cluster.BecauseNoRoom(need.With(resource.Memory, e.phased.mostMemory(j.Job, stage))), true
}
