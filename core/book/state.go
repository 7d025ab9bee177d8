package book

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// apply records an event. It returns an error, and changes nothing, if the event is impossible in this cluster.
func (s *Snapshot) apply(now timeline.Time, e *cluster.Event) error {
	switch e.Kind {
	case cluster.NodeJoined:
		return s.join(e.NewNode)
	case cluster.NodeLeft:
		return s.leave(now, e.Node)
	case cluster.JobSubmitted:
		return s.submit(e.NewJob)
	case cluster.JobRevised:
		return s.revise(now, e.NewJob)
	case cluster.JobGrew:
		return s.grow(now, e.Job, e.Condition().Growth)
	case cluster.JobCancelled:
		return s.cancel(now, e.Job)
	case cluster.Heartbeat:
		n, err := s.node(e.Node)
		if err != nil {
			return err
		}
		n.LastHeartbeat, n.started = now, 0
		s.Changes.Heartbeats = append(s.Changes.Heartbeats, n.ID)
	case cluster.DecisionDone, cluster.DecisionFailed, cluster.DecisionSuperseded:
		return s.answer(now, e)
	case cluster.TaskEnded:
		return s.end(now, e.Condition().Ended, e.Task, e.Outcome)
	case cluster.TaskAdopted:
		return s.adopt(now, e)
	case cluster.Synced:
		s.Synced, s.gate.anew = true, true
		s.demand()
	case cluster.Woken:
		s.Changes.Woken = true
	case cluster.NodeMemory:
		return s.hold(e.Node, e.Held)
	case cluster.NodeLeftover:
		return s.leaveBehind(e.Node, e.Held)
	case cluster.Continued:
		s.goOnAsTold()
	case cluster.NodeKept:
		return s.foundReserved(e.Node, e.Task)
	case cluster.NodePaused, cluster.NodeResumed:
		return s.pause(e.Node, e.Kind == cluster.NodePaused)
	case cluster.NodePressed:
		return s.press(e.Node, e.Condition().Bound)
	case cluster.NodeSuits:
		return s.suit(e.Node, e.Job, e.Condition())
	case cluster.NodePagedOut:
		return s.pageOut(e.Node, e.Held)
	case cluster.TaskPhase:
		return s.enterPhase(now, e)
	case cluster.TaskSuspended:
		return s.stand(now, e.Task, e.By)
	case cluster.TaskResumed:
		return s.goOn(now, e.Task)
	case cluster.TaskIdle:
		return s.leaves(now, e.Task, leftBy(e.Condition()))
	case cluster.TaskHolds:
		return s.holds(e.Task, e.Held)
	case cluster.TaskPagedOut:
		return s.takeOut(e.Task, e.Condition().Out)
	case cluster.JobPaused:
		return s.pauseWork(e.Job, e.Task, e.Condition().PageOut)
	case cluster.JobResumed:
		return s.resumeWork(now, e.Job, e.Task)
	case cluster.Answered:
		return s.answered(now, e)
	case cluster.QuotasSet:
		return s.setQuotas(e.Condition().Quotas)
	default:
		return fmt.Errorf("event %s: unknown", e.Kind)
	}
	return nil
}

func (s *Snapshot) node(id cluster.NodeID) (*NodeState, error) {
	if id < 0 || int(id) >= len(s.Nodes) || s.Nodes[id].Gone {
		return nil, fmt.Errorf("node %d: not in the cluster", id)
	}
	return s.Nodes[id], nil
}

func (s *Snapshot) join(n *cluster.Node) error {
	again := n != nil && n.ID >= 0 && int(n.ID) < len(s.Nodes) && s.Nodes[n.ID].Gone
	if n == nil || !again && int(n.ID) != len(s.Nodes) {
		return fmt.Errorf("node joined: its id must be %d, the number of nodes so far, or that of a node that left",
			len(s.Nodes))
	}
	if err := n.Check(); err != nil {
		return err
	}
	cores := max(1, int(n.Capacity[resource.CPU]/resource.Core))
	state := NodeState{Node: *n, Free: n.Room(), most: s.ContainersPerCore * cores}
	if again {
		old := s.Nodes[n.ID]
		if s.byName[old.Name] == old {
			delete(s.byName, old.Name)
		}
		state.Version, state.unfiled = old.Version+1, old.unfiled
		*old = state
	} else {
		s.Nodes = append(s.Nodes, &state)
	}
	s.byName[n.Name] = s.Nodes[n.ID]
	s.count(n)
	s.touch(s.Nodes[n.ID])
	return nil
}

func (s *Snapshot) leave(now timeline.Time, id cluster.NodeID) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	for len(n.Tasks) > 0 {
		if err := s.end(now, now, n.Tasks[0].ID, cluster.Lost); err != nil {
			return err
		}
	}
	if n.ReservedFor != nil {
		s.unreserve(n)
	}
	n.Gone, n.Asked, n.Leveled = true, nil, nil
	for _, j := range s.Jobs {
		j.suit(Suit{Node: id})
	}
	s.recount()
	s.reindex(n)
	return nil
}

// hold records what the containers of a node hold.
func (s *Snapshot) hold(id cluster.NodeID, held resource.Amount) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	if held < 0 {
		return fmt.Errorf("node %q holds %d bytes: must not be negative", n.Name, held)
	}
	heldBefore, before := n.Held, n.Available()
	n.Held = held
	switch {
	case held < heldBefore || n.Available() > before:
		s.touch(n)
	case held > heldBefore || n.Available() < before:
		s.reindex(n)
	}
	return nil
}

// leaveBehind records how much of the memory of a node outlives containers.
func (s *Snapshot) leaveBehind(id cluster.NodeID, left resource.Amount) error {
	n, err := s.node(id)
	switch {
	case err != nil:
		return err
	case left < 0:
		return fmt.Errorf("node %q: containers left %d bytes in use: must not be negative", n.Name, left)
	}
	before, unused := n.Leftover, n.Unused()
	n.Leftover = left
	n.setUnused(unused)
	switch {
	case left < before:
		s.touch(n)
	case left > before:
		s.reindex(n)
	}
	return nil
}

// pageOut records how much memory of programs on a node is in swap.
func (s *Snapshot) pageOut(id cluster.NodeID, out resource.Amount) error {
	n, err := s.node(id)
	switch {
	case err != nil:
		return err
	case out < 0:
		return fmt.Errorf("node %q: %d bytes are in swap: must not be negative", n.Name, out)
	}
	n.Out = out
	return nil
}

// press records what a node gives of each resource that is under pressure.
func (s *Snapshot) press(id cluster.NodeID, gives resource.Vector) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	for k, a := range gives {
		if kind := resource.Kind(k); a < 0 || a > 0 && !kind.IsRate() {
			return fmt.Errorf("node %q is pressed and gives %d of %s: only rates are pressed, and must not be negative",
				n.Name, a, kind)
		}
	}
	n.Pressed = gives
	n.Version++
	s.Changes.Pressed = append(s.Changes.Pressed, id)
	return nil
}

// pause makes a node withhold its free resources, or offer them again.
func (s *Snapshot) pause(id cluster.NodeID, paused bool) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	if n.Paused == paused {
		return fmt.Errorf("node %q: paused is %v already", n.Name, paused)
	}
	n.Paused, n.Doubtful = paused, true
	n.setUnused(n.Unused())
	if paused {
		s.reindex(n)
	} else {
		s.touch(n)
	}
	return nil
}

// demand notes that a job has new runnable tasks. Where nodes report by heartbeats, nodes that did not change take no
// work.
func (s *Snapshot) demand() { s.Changes.Demand = s.AtOnce() }

func (s *Snapshot) submit(job *cluster.Job) error {
	if job == nil {
		return fmt.Errorf("job submitted: the event holds no job")
	}
	if _, twice := s.byJob[job.ID]; twice {
		return fmt.Errorf("job %d: submitted twice", job.ID)
	}
	if err := job.Check(); err != nil {
		return err
	}
	j := &JobState{Job: job, Slot: s.slots.take(), Progress: make([]StageState, len(job.Stages)), Steered: true,
		Since: job.Submitted}
	if job.Held {
		j.paused.parts = []pausedPart{{}}
	}
	for i := range job.Stages {
		p := &j.Progress[i]
		if job.Drives {
			continue
		}
		p.Pending, p.parentsLeft = job.Stages[i].Tasks, len(job.Stages[i].Parents)
		for _, parent := range job.Stages[i].Parents {
			j.Progress[parent].read = true
			j.Progress[parent].passable = j.Progress[parent].passable || job.Stages[i].StartShare > 0
		}
		if job.Stages[i].Coordinator {
			j.Steered = false
		}
	}
	if job.Drives { // Stages that demand nothing have ended, as far as is known.
		j.conclude()
	}
	at, _ := slices.BinarySearchFunc(s.Jobs, job.ID, byID)
	s.Jobs = slices.Insert(s.Jobs, at, j)
	s.byJob[job.ID] = j
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	s.Changes.Arrived = true
	s.demand()
	return nil
}

func byID(j *JobState, id cluster.JobID) int {
	switch {
	case j.ID < id:
		return -1
	case j.ID > id:
		return 1
	}
	return 0
}

// cancel ends a job at once if none of its tasks is running. Otherwise it marks the job: the job's pending tasks never
// start, the engine kills its running tasks, and the job ends with the last of them.
func (s *Snapshot) cancel(now timeline.Time, id cluster.JobID) error {
	j, ok := s.byJob[id]
	if !ok {
		return fmt.Errorf("job %d: not here, or already ended", id)
	}
	s.Changes.Arrived = true
	s.stop(now, j, cluster.StatusCancelled)
	return nil
}

// stop ensures that no further task of j starts.
func (s *Snapshot) stop(now timeline.Time, j *JobState, status cluster.JobStatus) {
	if !j.Status.Ended() {
		j.Status = status
	}
	s.giveBack(j)
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	if len(j.Tasks) == 0 {
		s.retire(now, j)
	}
}

// giveBack ends all reservations of j.
func (s *Snapshot) giveBack(j *JobState) {
	for i := 0; j.Reservations > 0; i++ {
		if n := s.Nodes[i]; n.ReservedFor == j {
			s.unreserve(n)
		}
	}
}

// retire removes an ended job from the snapshot, unless that has been done.
func (s *Snapshot) retire(now timeline.Time, j *JobState) {
	at, here := slices.BinarySearchFunc(s.Jobs, j.ID, byID)
	if !here {
		return
	}
	j.Finish = now
	s.giveBack(j)
	s.Jobs = slices.Delete(s.Jobs, at, at+1)
	delete(s.byJob, j.ID)
	s.slots.vacated = append(s.slots.vacated, j.Slot)
}

// slots are the slots of jobs: as many as were ever taken at a time; free ones; and those of jobs that were retired in
// this step, in which a policy may still look up what it filed there.
type slots struct {
	taken         int
	free, vacated []int
}

// take returns a free slot for a job.
func (s *slots) take() int {
	if last := len(s.free) - 1; last >= 0 {
		slot := s.free[last]
		s.free = s.free[:last]
		return slot
	}
	s.taken++
	return s.taken - 1
}

// clear frees the slots that were vacated, at the end of a step.
func (s *slots) clear() { s.free, s.vacated = append(s.free, s.vacated...), s.vacated[:0] }

// answer records what became of a decision that a driver carries out.
func (s *Snapshot) answer(now timeline.Time, e *cluster.Event) error {
	t, _ := s.byTask.get(e.Task)
	if t != nil && t.ordered() {
		for f := range cluster.NumWantFields {
			if t.order(f).awaits(e.Decision) {
				return s.answerOrder(now, t, f, e)
			}
		}
	}
	switch e.Kind {
	case cluster.DecisionDone:
		return s.launch(now, e.Task, t)
	case cluster.DecisionFailed:
		if t != nil && t.Running {
			return fmt.Errorf("task %s: decision %d failed, but it is not under way, and the task runs", e.Task, e.Decision)
		}
		return s.end(now, now, e.Task, cluster.Lost)
	}
	return fmt.Errorf("task %s: decision %d is superseded, but it was not under way", e.Task, e.Decision)
}

// launch records that a task was launched; t is nil if there is none of this ID.
func (s *Snapshot) launch(now timeline.Time, id cluster.TaskID, t *TaskState) error {
	if t == nil {
		return fmt.Errorf("task %s: launched, but was never started", id)
	}
	if t.Running {
		return fmt.Errorf("task %s: launched twice", id)
	}
	s.markRunning(t, now)
	return nil
}

func (s *Snapshot) markRunning(t *TaskState, at timeline.Time) {
	before := t.Node.Available()
	t.Running, t.Launched, t.PhaseSince = true, at, at
	t.Node.Doubtful = false
	t.Node.booked -= t.Grant[resource.Memory]
	s.foreseeEnd(t)
	t.Node.Version++
	if t.Node.Available() > before {
		s.touch(t.Node) // its memory was counted twice
	}
	t.Job.Version++
	p := &t.Job.Progress[t.ID.Stage]
	p.Booked--
	p.Running++
	if t.Job.Status == cluster.StatusPending {
		t.Job.Status, t.Job.Started = cluster.StatusRunning, at
	}
	if t.Job.Paused(t.ID) {
		s.unmet(t.Job) // it is to stand still
	}
	if t.Stage().Coordinator && !t.Job.Steered {
		t.Job.Steered, t.Job.Since = true, max(t.Job.Since, at)
		s.Changes.Jobs = append(s.Changes.Jobs, t.Job)
		s.demand()
	}
	s.Changes.Tasks = true
	s.Estimates.stale(at)
	s.Changes.Progress = append(s.Changes.Progress, t.Node.ID)
}

// adopt takes over a task that was found running. Only before Synced.
func (s *Snapshot) adopt(now timeline.Time, e *cluster.Event) error {
	j, ok := s.byJob[e.Task.Job]
	if !ok {
		return fmt.Errorf("task %s: adopted, but its job is not here", e.Task)
	}
	n, err := s.node(e.Node)
	if err != nil {
		return fmt.Errorf("task %s: adopted: %w", e.Task, err)
	}
	if s.Synced {
		return fmt.Errorf("task %s: adopted, but the inventory is complete", e.Task)
	}
	if k, bad := e.Grant.Negative(); bad {
		return fmt.Errorf("task %s: adopted with %s %d: must not be negative", e.Task, k, e.Grant[k])
	}
	found := e.Condition()
	if k, bad := found.Bound.Negative(); bad {
		return fmt.Errorf("task %s: adopted with a bound of %d of %s: must not be negative", e.Task, found.Bound[k], k)
	}
	if err := j.checkProgress(e.Task, found.Progress); err != nil {
		return fmt.Errorf("task %s: adopted: %w", e.Task, err)
	}
	if found.MostCPU < 0 {
		return fmt.Errorf("task %s: adopted with at most %d millicores: must not be negative", e.Task, found.MostCPU)
	}
	if found.Out < 0 || found.Out > e.Grant[resource.Memory] {
		return fmt.Errorf("task %s: adopted with %d bytes of its memory out: must be from 0 to its grant", e.Task, found.Out)
	}
	if e.Grant[resource.Memory]-found.Out > n.Capacity[resource.Memory]-n.inMemory() {
		return fmt.Errorf("task %s: adopted with %v, but node %q has %v free", e.Task, e.Grant, n.Name, n.Unused())
	}
	if err := j.take(e.Task); err != nil {
		return fmt.Errorf("task %s: adopted: %w", e.Task, err)
	}
	t := s.book(cmp.Or(found.Booked, e.Launched), j, e.Task, n, e.Grant, found.ByPhase)
	t.MostCPU, t.Decision = found.MostCPU, e.Decision
	if found.Booked != 0 {
		return nil
	}
	s.markRunning(t, e.Launched)
	s.adoptOrders(now, t, &found)
	t.resume(now, found.Progress)
	t.Out, t.Leaves = found.Out, leftBy(found)
	s.relend(t)
	return nil
}

// take removes one particular task from the tasks to be started, or to be started when they are paused no more.
func (j *JobState) take(id cluster.TaskID) error {
	if j.Drives {
		return j.attach(id)
	}
	if int(id.Stage) >= len(j.Progress) || id.Stage < 0 || id.Index < 0 || int(id.Index) >= j.Stages[id.Stage].Tasks {
		return fmt.Errorf("the job has no such task")
	}
	p := &j.Progress[id.Stage]
	if at := slices.Index(p.retry, id.Index); at >= 0 {
		p.retry = slices.Delete(p.retry, at, at+1)
		p.Pending--
		return nil
	}
	if at := slices.Index(p.held, id.Index); at >= 0 {
		p.held = slices.Delete(p.held, at, at+1)
		return nil
	}
	if at := p.laterAt(id.Index); at >= 0 {
		p.later = slices.Delete(p.later, at, at+1)
		return nil
	}
	if id.Index < p.next {
		return fmt.Errorf("it is not pending")
	}
	for ; p.next < id.Index; p.next++ {
		p.retry = append(p.retry, p.next)
	}
	p.next++
	p.Pending--
	return nil
}

// nextIndex removes the next task of a stage from the tasks to be started, and returns its index.
func (p *StageState) nextIndex() int32 {
	p.Pending--
	if len(p.retry) > 0 {
		i := p.retry[0]
		p.retry = p.retry[1:]
		return i
	}
	p.next++
	return p.next - 1
}

// book places a task on a node.
func (s *Snapshot) book(at timeline.Time, j *JobState, id cluster.TaskID, n *NodeState, grant resource.Vector,
	byPhase bool) *TaskState {
	t := s.byTask.spared()
	stage := &j.Stages[id.Stage]
	*t = TaskState{} // a literal with these fields would be copied
	t.Waits = stage.StartShare > 0 && j.Progress[id.Stage].parentsLeft > 0
	t.ID, t.Job, t.Node, t.Grant, t.Booked = id, j, n, grant, at
	t.Steers, t.ByPhase = stage.Coordinator, byPhase
	t.inNode, t.inJob = int32(len(n.Tasks)), int32(len(j.Tasks))
	t.Duration = t.durationWith(grant)
	s.foreseeEnd(t)
	unused := n.Unused().Sub(grant)
	n.Tasks, j.Tasks = append(n.Tasks, t), append(j.Tasks, t)
	n.setUnused(unused)
	j.Used = j.Used.Add(grant)
	n.booked += grant[resource.Memory]
	s.size(t)
	j.Progress[id.Stage].Booked++
	if j.NeverStarted() {
		s.Waits.count(j.Submitted, at)
	}
	j.begun = true
	j.Version++
	j.Waiting, j.Since = cluster.Reason{}, max(j.Since, at)
	s.byTask.add(t)
	if !stage.Coordinator {
		s.Running++
	}
	s.reindex(n)
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	return t
}

// end releases the resources of a task and records its outcome. ended is when a task ended that ended before Synced.
func (s *Snapshot) end(now, ended timeline.Time, id cluster.TaskID, outcome cluster.Outcome) error {
	if outcome < cluster.Succeeded || outcome > cluster.Preempted {
		return fmt.Errorf("task %s: ended with outcome %d: unknown", id, outcome)
	}
	t, ok := s.byTask.get(id)
	if !ok {
		return s.endBeforeSync(now, ended, id, outcome)
	}
	j, n, stage := t.Job, t.Node, t.Stage()
	p := &j.Progress[id.Stage]
	if t.Running {
		p.Running--
	} else {
		p.Booked--
	}
	s.release(t)
	n.ended.add(now, t.Grant[resource.Memory])
	j.Version++
	s.Changes.Tasks = true
	s.staleByEnd(now, t)
	s.touch(n)
	if !stage.Coordinator {
		s.Running--
	}
	if outcome == cluster.Killed && t.Preempting {
		outcome = cluster.Preempted
	}
	if stage.AtOnce > 0 {
		s.demand() // another task of the stage may start now
	}
	if j.AtMostOnce && t.Running && (outcome == cluster.Lost || outcome == cluster.Preempted) {
		outcome = cluster.Failed
	}
	switch {
	case j.Drives:
		s.detach(now, j, id)
	case outcome == cluster.Succeeded:
		s.succeed(now, j, id.Stage)
	default:
		s.fail(now, now, j, id, outcome)
	}
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	if j.Retired() {
		s.retire(now, j)
	}
	// The caller may still read t during this step; it is reused only by later bookings.
	s.byTask.spare = append(s.byTask.spare, t)
	return nil
}

// endBeforeSync records a task that ended while the engine was not running.
func (s *Snapshot) endBeforeSync(now, ended timeline.Time, id cluster.TaskID, outcome cluster.Outcome) error {
	j, ok := s.byJob[id.Job]
	if !ok || s.Synced || j.Drives {
		return fmt.Errorf("task %s: ended, but is not running", id)
	}
	if err := j.take(id); err != nil {
		return fmt.Errorf("task %s: ended: %w", id, err)
	}
	j.begun = true
	j.Version++
	if outcome == cluster.Succeeded {
		s.succeed(now, j, id.Stage)
	} else {
		s.fail(now, ended, j, id, outcome)
	}
	if j.Retired() {
		s.retire(now, j)
	}
	return nil
}

func (s *Snapshot) release(t *TaskState) {
	j, n := t.Job, t.Node
	last := n.Tasks[len(n.Tasks)-1]
	n.Tasks[t.inNode], last.inNode = last, t.inNode
	n.Tasks = n.Tasks[:len(n.Tasks)-1]
	last = j.Tasks[len(j.Tasks)-1]
	j.Tasks[t.inJob], last.inJob = last, t.inJob
	j.Tasks = j.Tasks[:len(j.Tasks)-1]
	holds := t.Holds()
	n.setUnused(n.Unused().Add(holds))
	j.Used = j.Used.Sub(holds)
	if !t.Running {
		n.booked -= t.Grant[resource.Memory]
	}
	if t.UnderSized {
		n.UnderSizedDisk -= t.Stage().Elasticity.DiskRate
	}
	s.byTask.remove(t)
}

func (s *Snapshot) succeed(now timeline.Time, j *JobState, stage int32) {
	p := &j.Progress[stage]
	p.Ended++
	s.endStage(now, j, stage)
	s.mayStartEarly(now, j, int(stage))
}

// endStage is what follows from the end of a task for good, if it was the last one of its stage.
func (s *Snapshot) endStage(now timeline.Time, j *JobState, stage int32) {
	p := &j.Progress[stage]
	if p.Ended < j.Stages[stage].Tasks {
		return
	}
	if p.Failed == 0 {
		s.pass(now, j, int(stage))
	}
	if j.KeepGoing && j.goneAsFar() {
		s.stop(now, j, cluster.StatusFailed)
		return
	}
	j.conclude()
}

// goneAsFar reports whether tasks of j have failed for good, and all others have ended but those of stages that depend
// on theirs.
func (j *JobState) goneAsFar() bool {
	failed := false
	for i := range j.Progress {
		p := &j.Progress[i]
		if failed = failed || p.Failed > 0; p.parentsLeft == 0 && p.Ended < j.Stages[i].Tasks {
			return false
		}
	}
	return failed
}

// fail records that a task ended without success, at a time that may be before now.
func (s *Snapshot) fail(now, ended timeline.Time, j *JobState, id cluster.TaskID, outcome cluster.Outcome) {
	if j.Status.Ended() {
		return
	}
	p := &j.Progress[id.Stage]
	if outcome != cluster.Lost && outcome != cluster.Preempted {
		if p.attempts == nil {
			p.attempts = map[int32]int{}
		}
		p.attempts[id.Index]++
		if p.attempts[id.Index] >= max(1, j.MaxAttempts) || !j.RetryOn.After(outcome) {
			if j.KeepGoing {
				p.Ended, p.Failed = p.Ended+1, p.Failed+1
				s.endStage(now, j, id.Stage)
				return
			}
			s.stop(now, j, cluster.StatusFailed)
			return
		}
		if at := ended.Add(j.Pause(p.attempts[id.Index])); at > now {
			s.pauseAfter(j, id.Stage, again{id.Index, at})
			return
		}
	}
	if j.paused.part(id) != nil {
		p.held = append(p.held, id.Index)
		return
	}
	p.again(id.Index)
	j.Since = max(j.Since, now)
	s.demand()
}

// again adds a task that has run to those that are to be started.
func (p *StageState) again(index int32) {
	p.Pending++
	p.retry = append(p.retry, index)
}

// foundReserved reserves a node that was found reserved. Only before Synced.
func (s *Snapshot) foundReserved(id cluster.NodeID, of cluster.TaskID) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	j, here := s.byJob[of.Job]
	if !here || of.Stage < 0 || int(of.Stage) >= len(j.Stages) || n.ReservedFor != nil || s.Synced {
		return fmt.Errorf("node %q was found reserved for stage %d of job %d: there is none, or the node is reserved, "+
			"or the inventory is complete", n.Name, of.Stage, of.Job)
	}
	s.reserve(n, j, int(of.Stage))
	return nil
}

func (s *Snapshot) reserve(n *NodeState, j *JobState, stage int) {
	n.ReservedFor, n.ReservedStage = j, stage
	j.Reservations++
	s.reindex(n)
}

func (s *Snapshot) unreserve(n *NodeState) {
	n.ReservedFor.Reservations--
	n.ReservedFor, n.ReservedStage, n.KeptUntil = nil, 0, 0
	s.touch(n)
}
