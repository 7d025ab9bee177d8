package book

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Hold is the newest order to stop a running task or to let it go on.
type Hold struct {
	Order
	// By are the holders that the order names, never the memory manager; 0 if the task may go on. Owner and Leveling are
	// the records of these holders, zero for a holder that By does not name.
	By              cluster.Holders
	Owner, Leveling Held
}

// Held is what is recorded of one holder of a task.
type Held struct {
	// Since is when the holder began to hold the task, and Why is the reason of the newest decision about it. Both are
	// zero if the task was found held.
	Since timeline.Time
	Why   cluster.Reason
	// Until is when leveling ends its hold, and For is the task that keeps going because of it, zero if there is none.
	// Both are zero for the owner.
	Until timeline.Time
	For   cluster.TaskID
	// PageOut says that the memory of the task is to be paged out while the holder holds it.
	PageOut bool
}

// Suspend stops the programs of a running task on behalf of its owner, who wants its memory to be paged out or to stay,
// until Resume names the owner. It is ignored if nothing would change, or if the task is being killed.
func (p *Plan) Suspend(t *TaskState, pageOut bool, why cluster.Reason) {
	h := t.heldFor()
	if h.By |= cluster.HeldByOwner; h.Owner.Since == 0 {
		h.Owner.Since = p.now
	}
	h.Owner.Why, h.Owner.PageOut = why, pageOut
	p.hold(t, h, why)
}

// SuspendUntil stops the programs of a running task on behalf of leveling until the given time, which must be in the
// future and not Never. The engine then ends the hold; Resume for HeldByLeveling ends it earlier. forTask is the task
// that keeps going because of it, zero if there is none. A later SuspendUntil of the task replaces the end.
// SuspendUntil is ignored if nothing would change, or if the task is being killed.
func (p *Plan) SuspendUntil(t *TaskState, until timeline.Time, forTask cluster.TaskID, why cluster.Reason) {
	p.suspendUntil(t, until, forTask, false, why)
}

// PageOutUntil is SuspendUntil with the memory of the task paged out, so that what has left can be granted to others.
// When the hold ends, the task takes its memory back: it goes on once that is free.
func (p *Plan) PageOutUntil(t *TaskState, until timeline.Time, why cluster.Reason) {
	p.suspendUntil(t, until, cluster.TaskID{}, true, why)
}

func (p *Plan) suspendUntil(t *TaskState, until timeline.Time, forTask cluster.TaskID, pageOut bool,
	why cluster.Reason) {
	h := t.heldFor()
	switch {
	case t.Killing:
		return
	case until <= p.now || until == timeline.Never:
		p.fail("suspend task %s until %v: must be after now, %v, and not for ever", t.ID, until, p.now)
		return
	case forTask == t.ID:
		p.fail("suspend task %s for task %s: must be another task", t.ID, forTask)
		return
	}
	since := h.Leveling.Since
	if h.By&cluster.HeldByLeveling == 0 {
		since = p.now
	}
	h.By, h.Leveling = h.By|cluster.HeldByLeveling, Held{Since: since, Why: why, Until: until, For: forTask,
		PageOut: pageOut}
	p.hold(t, h, why)
}

// Resume ends the hold of some holders of a task; it is ignored if these do not hold the task. The programs go on
// once the task has no holder.
func (p *Plan) Resume(t *TaskState, by cluster.Holders, why cluster.Reason) {
	h := t.heldFor()
	if h.By &^= by; h.By&cluster.HeldByOwner == 0 {
		h.Owner = Held{}
	}
	if h.By&cluster.HeldByLeveling == 0 {
		h.Leveling = Held{}
	}
	p.hold(t, h, why)
}

// wanted is the hold that the order demands.
func (h *Hold) wanted() cluster.Hold {
	return cluster.Hold{By: h.By, Until: h.Leveling.Until, For: h.Leveling.For,
		PageOut: h.Owner.PageOut || h.Leveling.PageOut}
}

// pagesOut reports whether the newest order wants the memory of t to be paged out.
func (t *TaskState) pagesOut() bool { return t.Hold != nil && t.Hold.wanted().PageOut }

// heldBy returns the holders that the newest order names.
func (t *TaskState) heldBy() cluster.Holders {
	if t.Hold == nil {
		return 0
	}
	return t.Hold.By
}

// heldFor returns the holders that the newest order names, with their records.
func (t *TaskState) heldFor() (h Hold) {
	if t.Hold != nil {
		h.By, h.Owner, h.Leveling = t.Hold.By, t.Hold.Owner, t.Hold.Leveling
	}
	return h
}

// HeldUntil returns when leveling ends its hold of t, and more about it; ok is false if leveling does not hold t.
// Other holders may hold the task for longer.
func (t *TaskState) HeldUntil() (h Held, ok bool) {
	if t.heldBy()&cluster.HeldByLeveling == 0 {
		return Held{}, false
	}
	return t.Hold.Leveling, true
}

// WaitsForMemory returns the hold of a task that the policy has stopped before a phase, or in one, which needs more
// memory than is free, with its memory paged out; ok is false if it has not. Such tasks of a node stand in line, in
// the order of Since.
func (t *TaskState) WaitsForMemory() (h Held, ok bool) {
	h, ok = t.HeldUntil()
	return h, ok && h.PageOut
}

// ResumesAt returns the earliest time from now on at which a task can make progress: now, unless leveling has stopped
// it.
func (t *TaskState) ResumesAt(now timeline.Time) timeline.Time {
	if h, ok := t.HeldUntil(); ok && t.SuspendedBy&cluster.HeldByLeveling != 0 {
		return max(now, h.Until)
	}
	return now
}

// hold orders that a task is held as newer says, unless it is.
func (p *Plan) hold(t *TaskState, newer Hold, why cluster.Reason) {
	was := t.heldFor()
	is := newer.wanted()
	switch {
	case t.Killing || is == was.wanted():
		return
	case !t.Running:
		p.fail("suspend or resume task %s for %q: it is not running", t.ID, is.By)
		return
	}
	kind := cluster.Suspend
	if is.By == 0 {
		kind = cluster.Resume
	}
	d := p.add(kind, t.ID, t.Node.ID, why)
	d.By, d.At, d.For, d.PageOut = is.By, is.Until, is.For, is.PageOut
	newer.Order = t.order(cluster.WantHold).next(d.ID, resource.Vector{})
	t.Hold = &newer
	p.leveled.note(t)
	p.relend(t) // now: the policy must not lend the cores of a task that is about to go on once more
	t.Job.Version++
	t.Node.Version++
	p.Changes.Progress = append(p.Changes.Progress, t.Node.ID)
}

// answeredHold is what follows from the answer to the newest Suspend or Resume of t. Whether its programs stand still
// is another event.
func (s *Snapshot) answeredHold(t *TaskState) {
	if h := t.Hold; h.InForce && h.By == 0 && len(h.earlier) == 0 {
		t.Hold = nil
	}
	s.relend(t)
}
