package cluster

// relend gives what a running task does not hold while it stands still to its node, or takes it back: a task that is about to
// go on does not lend. Memory is lent apart, if it has left: see TaskState.Out.
func (s *Snapshot) relend(t *TaskState) {
	s.relendMemory(t)
	if t.Still && !t.goesOnSoon() {
		s.lend(t)
	} else {
		s.takeBack(t)
	}
}

// goesOnSoon reports whether a task that stands still is about to go on: the engine has ordered that it goes on, which has not
// failed, and the memory manager does not hold it.
func (t *TaskState) goesOnSoon() bool {
	return t.heldBy() == 0 && t.StillBy&HeldByMemory == 0 && (t.Hold == nil || !t.Hold.Failed)
}

// lend gives what a task does not hold while it stands still to its node, if the snapshot lends.
func (s *Snapshot) lend(t *TaskState) {
	if !s.Lends || t.Lends {
		return
	}
	t.Lends = true
	t.Node.setUnused(t.Node.Unused().Add(t.lent()))
	t.Job.Used = t.Job.Used.Sub(t.lent())
	s.touch(t.Node)
	s.Changes.Jobs = append(s.Changes.Jobs, t.Job)
}

// takeBack takes back what a task has lent. If other tasks use it, the node is overdrawn until they end.
func (s *Snapshot) takeBack(t *TaskState) {
	if !t.Lends {
		return
	}
	t.Lends = false
	t.Node.setUnused(t.Node.Unused().Sub(t.lent()))
	t.Job.Used = t.Job.Used.Add(t.lent())
	s.reindex(t.Node)
	s.Changes.Jobs = append(s.Changes.Jobs, t.Job)
}
