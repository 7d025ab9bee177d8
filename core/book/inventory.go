package book

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Inventory returns events from which another engine learns, before it decides anything, what s knows of the cluster
// at now: its nodes, its quotas, its jobs, and the tasks that have ended or run. The last event is Continued. The
// events share no memory with s that s changes.
//
// The other engine decides anew what s holds as decided: orders without an answer, questions about nodes, which tasks
// to preempt, which jobs back off, and until when nodes are kept. A node that is paused may start tasks again, and a
// task that is being started is running.
func (s *Snapshot) Inventory(now timeline.Time) (all []cluster.Event) {
	for _, n := range s.Nodes {
		node := n.Node
		all = append(all, cluster.Event{Kind: cluster.NodeJoined, NewNode: &node})
	}
	for _, n := range s.Nodes {
		if n.Gone {
			all = append(all, cluster.Event{Kind: cluster.NodeLeft, Node: n.ID})
		}
	}
	if q := s.gate.quotas; !q.None() {
		all = append(all, cluster.Event{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: q}})
	}
	var running []*TaskState
	for _, j := range s.Jobs {
		all = append(append(all, j.inventory(now)...), j.suited()...)
		running = append(running, j.Tasks...)
	}
	slices.SortStableFunc(running, func(a, b *TaskState) int {
		return cmp.Or(cmp.Compare(a.launchedBy(now), b.launchedBy(now)), cmp.Compare(a.Decision, b.Decision))
	})
	for _, t := range running {
		all = append(all, t.adopted(now))
	}
	for _, n := range s.Nodes {
		if j := n.ReservedFor; j != nil {
			all = append(all, cluster.Event{Kind: cluster.NodeKept, Node: n.ID,
				Task: cluster.TaskID{Job: j.ID, Stage: int32(n.ReservedStage)}})
		}
		if n.Held > 0 && !n.Gone {
			all = append(all, cluster.Event{Kind: cluster.NodeMemory, Node: n.ID, Held: n.Held})
		}
		if n.Leftover > 0 && !n.Gone {
			all = append(all, cluster.Event{Kind: cluster.NodeLeftover, Node: n.ID, Held: n.Leftover})
		}
		if n.Out > 0 && !n.Gone {
			all = append(all, cluster.Event{Kind: cluster.NodePagedOut, Node: n.ID, Held: n.Out})
		}
		if pressed := (cluster.Condition{Bound: n.Pressed}); pressed != (cluster.Condition{}) && !n.Gone {
			all = append(all, cluster.Event{Kind: cluster.NodePressed, Node: n.ID, Found: &pressed})
		}
	}
	for _, j := range s.Jobs {
		if j.Drives && !j.Open { // Without executors it would have ended.
			all = append(all, cluster.Event{Kind: cluster.JobGrew, Job: j.ID,
				Found: &cluster.Condition{Growth: &cluster.Growth{Closes: true}}})
		}
		if j.Status.Ended() { // its last tasks are being killed
			all = append(all, cluster.Event{Kind: cluster.JobCancelled, Job: j.ID})
		}
	}
	return append(all, cluster.Event{Kind: cluster.Continued})
}

// TakeOver is Inventory for an engine that takes the place of that of s and gets the answers to its orders: tasks
// that are being started are being started. s must be Quiet.
func (s *Snapshot) TakeOver(now timeline.Time) []cluster.Event {
	all := s.Inventory(now)
	for i := range all {
		e := &all[i]
		if e.Kind != cluster.TaskAdopted {
			continue
		}
		t, _ := s.byTask.get(e.Task)
		if e.Decision = t.Decision; !t.Running {
			found := e.Condition()
			e.Launched, found.Booked = 0, t.Booked
			e.SetCondition(found)
		}
	}
	return all
}

// Quiet reports whether no order but starts is under way, no question is open, and no node is paused. Then another
// engine can take over.
func (s *Snapshot) Quiet() bool {
	for _, n := range s.Nodes {
		if n.Asking() || n.Paused {
			return false
		}
		for _, t := range n.Tasks {
			if t.underWay() {
				return false
			}
		}
	}
	return true
}

// goOnAsTold begins to decide after an Inventory. What must be done about jobs that are ended or paused is still to
// be done.
func (s *Snapshot) goOnAsTold() {
	s.Synced = true
	s.Changes.reset()
	for _, j := range s.Jobs {
		if j.Status.Ended() || j.paused.unmet {
			s.Changes.Jobs = append(s.Changes.Jobs, j)
		}
	}
}

// inventory returns the submission of j, its pauses, and the ends of its tasks, as of now.
func (j *JobState) inventory(now timeline.Time) (all []cluster.Event) {
	spec := *j.Job
	if spec.Held = j.PausedWhole(); j.grown {
		spec.Stages = slices.Clone(spec.Stages) // they change when j grows
	}
	closed := !j.Open && slices.ContainsFunc(j.Stages, func(s cluster.Stage) bool { return s.Tasks == 0 })
	spec.Open = j.Open || closed || j.Drives // No closed job is submitted with empty stages.
	all = append(all, cluster.Event{Kind: cluster.JobSubmitted, Job: j.ID, NewJob: &spec})
	for _, p := range j.paused.parts {
		if p.pageOut || p.task != (cluster.TaskID{}) { // the submission says whether the whole job is paused
			e := cluster.Event{Kind: cluster.JobPaused, Job: j.ID, Task: p.task}
			e.SetCondition(cluster.Condition{PageOut: p.pageOut})
			all = append(all, e)
		}
	}
	if j.Drives {
		if demands := j.demands(); len(demands) > 0 {
			all = append(all, cluster.Event{Kind: cluster.JobGrew, Job: j.ID,
				Found: &cluster.Condition{Growth: &cluster.Growth{Demands: demands}}})
		}
		return all
	}
	runs := map[cluster.TaskID]bool{}
	for _, t := range j.Tasks {
		runs[t.ID] = true
	}
	for i := range j.Progress {
		p := &j.Progress[i]
		id := cluster.TaskID{Job: j.ID, Stage: int32(i)}
		for ; id.Index < p.next; id.Index++ {
			again := slices.Contains(p.retry, id.Index) || slices.Contains(p.held, id.Index) || p.laterAt(id.Index) >= 0
			if !again && !runs[id] {
				all = append(all, cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Succeeded})
			}
			if runs[id] {
				all = append(all, p.failed(id)...)
			}
		}
		for _, id.Index = range slices.Concat(p.retry, p.held) { // in the order in which they are to run again
			failed := p.failed(id)
			if len(failed) == 0 {
				failed = []cluster.Event{{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Lost}} // which does not count
			}
			all = append(all, failed...)
		}
		for _, next := range p.later {
			id.Index = next.index
			failed := p.failed(id)
			if next.at > now {
				failed[len(failed)-1].Found = &cluster.Condition{Ended: next.at.Add(-j.Pause(len(failed)))}
			}
			all = append(all, failed...)
		}
	}
	if closed {
		all = append(all, cluster.Event{Kind: cluster.JobGrew, Job: j.ID,
			Found: &cluster.Condition{Growth: &cluster.Growth{Closes: true}}})
	}
	return all
}

// failed returns the runs of a task that count as attempts.
func (p *StageState) failed(id cluster.TaskID) (all []cluster.Event) {
	for range p.attempts[id.Index] {
		all = append(all, cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Failed})
	}
	return all
}

// launchedBy is when t was launched, or now if it is being started.
func (t *TaskState) launchedBy(now timeline.Time) timeline.Time {
	if !t.Running {
		return now
	}
	return t.Launched
}

// adopted returns the event that says how t runs.
func (t *TaskState) adopted(now timeline.Time) cluster.Event {
	e := cluster.Event{Kind: cluster.TaskAdopted, Task: t.ID, Node: t.Node.ID, Grant: t.Grant, Launched: t.launchedBy(now)}
	found := cluster.Condition{ByPhase: t.ByPhase, MostCPU: t.MostCPU, Out: t.Out}
	left := Leaving(t.Leaves)
	found.Idle, found.Leaves = left.Idle, left.Leaves
	if t.Running {
		p := t.Progress()
		found.Progress = &p
	}
	if bound, ok := t.Bounded(now); ok {
		found.Bound, found.Until = bound.Most, bound.Until
	}
	if h := t.Hold; h != nil && (h.By != 0 || h.Failed) {
		is := h.wanted()
		found.HeldBy, found.PageOut, found.HeldUntil, found.HeldFor = is.By, is.PageOut, is.Until, is.For
		found.HeldSince, found.HeldWhy, found.HoldFailed = h.Leveling.Since, h.Leveling.Why, h.Failed
	}
	if r := t.Resized; r != nil && r.InForce {
		found.Was, found.Why, found.Resized = r.Was, r.Why, r.Since
	}
	e.SetCondition(found)
	return e
}
