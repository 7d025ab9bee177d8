// Package resimulate estimates ends of jobs as the YARN-ME authors' simulator does: it simulates the cluster from now
// on under fair sharing (with reservations if the policy has them), without elasticity and without new jobs. Jobs that
// do not end within the horizon have no estimate. The horizon is the longest run time of a task started now plus the
// task's ideal duration: a later end cannot matter to a task that starts now.
//
// It works on flat copies that it reuses between calls, because it runs once per heartbeat.
package resimulate

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/heap"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Estimator simulates the cluster from now on. It reuses its copies of the cluster between calls.
type Estimator struct {
	reservations bool // fair sharing reserves nodes for the head of its queue

	now, horizon timeline.Time
	every        timeline.Time // nodes' heartbeat
	nodes        []simNode
	jobs         []simJob
	stages       []simStage
	tasks        []simTask
	queue        []int32 // jobs with runnable tasks, by fair order
	events       events
	step         atOnce
	running      int // tasks other than coordinators
	open         int // jobs that may still turn out to end within the horizon
}

type simNode struct {
	cpu, memory resource.Amount // free
	gone        bool
	holder      int32         // job that reserved the node, -1 if none
	heldFor     int32         // index in stages
	phase       timeline.Time // of its heartbeat
	nextOffer   timeline.Time // the offer that is already among the events, or before now
	due         bool          // its heartbeat of this moment is still to come
}

type simJob struct {
	state       *book.JobState
	used        float64
	weight      float64
	first, last int32 // its part of stages
	next        int32 // stage to start from next, -1 if nothing is runnable
	place       int32 // in queue, -1 if not there
	left        int   // tasks that have not ended, without coordinators
	pending     int   // tasks that have not started, without coordinators
	lastStart   timeline.Time
	held        int  // nodes that are reserved for it
	lost        bool // will not end within the horizon
	steered     bool
	end         timeline.Time // when the end of its latest task is known
}

type simStage struct {
	cpu, memory resource.Amount
	least       resource.Amount // minimum memory, when it is under-sized
	duration    time.Duration
	pending     int
	left        int // tasks not ended
	parents     int // stages not ended that it waits for
	job         int32
	coordinator bool
}

type simTask struct {
	cpu, memory resource.Amount
	stage, node int32
}

// events are ordered by time, then node, then kind: tasks end before the node is offered. The rank is the node and, in
// the lower 32 bits, the index of the task that ends, or one of the values below. Where nodes have no heartbeats the
// node is 0 for all events: ties go to the task started first.
type events = heap.Heap[timeline.Time, struct{}]

const (
	readyEvents uint32 = 1 << 30   // plus the index of a job whose coordinator is launched; belongs to no node
	offerEvent  uint32 = 1<<32 - 1 // the node takes new work
	nowhere     int32  = 1<<31 - 1 // node of events that belong to no node
)

// New returns an estimator for fair sharing with or without reservations.
func New(reservations bool) *Estimator { return &Estimator{reservations: reservations} }

// Estimate estimates the ends of all jobs of p.
func (r *Estimator) Estimate(now timeline.Time, p *book.Plan) {
	r.copyCluster(now, p)
	if r.every > 0 {
		r.playHeartbeats(p)
	} else {
		r.playAtOnce(p)
	}
	for i := range r.jobs {
		j := &r.jobs[i]
		end := p.LaunchTime(j.state.Submitted, j.end)
		if p.Heartbeats.Launch == 0 {
			end = j.end
		}
		end = max(end, now) // for a job that waits only for its coordinator
		p.EstimateAllStarted(j.state, j.lastStart, j.pending == 0)
		p.EstimateEnd(j.state, end, j.left == 0 && !j.lost && end.Add(p.Heartbeats.Launch) <= r.horizon)
	}
}

func (r *Estimator) playHeartbeats(p *book.Plan) {
	for len(r.events) > 0 && r.open > 0 {
		e := r.events.Pop()
		r.now = e.Key
		switch node, task := int32(e.Rank>>32), uint32(e.Rank); {
		case task == offerEvent:
			r.offerRepeatedly(p, node)
		case task >= readyEvents:
			r.steer(int32(task - readyEvents))
		default:
			r.endTask(task)
			if len(r.events) == 0 || r.events[0].Key != e.Key || r.events[0].Rank>>32 != e.Rank>>32 {
				r.offerRepeatedly(p, node)
			}
		}
	}
}

// DropCaches does nothing: only memory is reused between calls.
func (r *Estimator) DropCaches() {}

// copyCluster copies running tasks, queued tasks and reservations.
func (r *Estimator) copyCluster(now timeline.Time, p *book.Plan) {
	r.now, r.every = now, timeline.Time(p.Heartbeats.Every)
	r.nodes, r.jobs, r.stages = r.nodes[:0], r.jobs[:0], r.stages[:0]
	r.tasks, r.queue, r.events = r.tasks[:0], r.queue[:0], r.events[:0]
	r.running = p.Running
	index := int32(0)
	reach := time.Duration(0)
	for _, j := range p.Jobs {
		reach = max(reach, r.copyJob(j, index))
		index++
	}
	r.horizon = now.Add(reach + p.Heartbeats.Every)
	r.step.reset()
	r.open = 0
	for i := range r.jobs {
		if r.jobs[i].left > 0 {
			r.open++
		}
	}
	for _, n := range p.Nodes {
		r.copyNode(p, n)
	}
	for i := range r.jobs {
		r.settle(int32(i))
		if r.jobs[i].next >= 0 {
			r.queue = append(r.queue, int32(i))
		}
	}
	slices.SortFunc(r.queue, func(a, b int32) int {
		if r.before(a, b) {
			return -1
		}
		return 1
	})
	for at, j := range r.queue {
		r.jobs[j].place = int32(at)
	}
}

// copyJob copies a job and returns how far ahead to look for it.
func (r *Estimator) copyJob(s *book.JobState, index int32) (reach time.Duration) {
	j := simJob{state: s, used: float64(s.Used[resource.Memory]), weight: s.Weight, first: int32(len(r.stages)),
		place: -1, steered: s.Steered}
	if j.weight <= 0 {
		j.weight = 1
	}
	for i := range s.Stages {
		stage, progress := &s.Stages[i], &s.Progress[i]
		left := stage.Tasks - progress.Ended
		if !stage.Coordinator {
			j.left += left
			j.pending += progress.Pending
		}
		if reach == 0 && progress.Pending > 0 && !stage.Coordinator {
			reach = time.Duration(float64(stage.Duration) * (1 + stage.Elasticity.Worst()))
		}
		parents := 0
		for _, parent := range stage.Parents {
			if !s.StageEnded(parent) {
				parents++
			}
		}
		r.stages = append(r.stages, simStage{
			cpu: stage.Ideal[resource.CPU], memory: stage.Ideal[resource.Memory], least: stage.LeastNeed()[resource.Memory],
			duration: stage.Duration, pending: progress.Pending, left: left, parents: parents, job: index,
			coordinator: stage.Coordinator,
		})
	}
	j.last = int32(len(r.stages))
	r.jobs = append(r.jobs, j)
	return reach
}

func (r *Estimator) copyNode(p *book.Plan, n *book.NodeState) {
	index := int32(len(r.nodes))
	free := n.Spare()
	c := simNode{cpu: free[resource.CPU], memory: free[resource.Memory], gone: n.Gone, holder: -1, nextOffer: -1}
	if r.every > 0 {
		c.phase = n.LastHeartbeat % r.every
		c.due = r.now%r.every == c.phase && (n.LastHeartbeat < r.now || slices.Contains(p.Changes.Heartbeats, n.ID))
	}
	r.nodes = append(r.nodes, c)
	if n.Gone {
		return
	}
	for _, t := range n.Tasks {
		job := r.indexOf(p, t.Job)
		if job < 0 {
			continue // its job has failed or was cancelled; its memory stays in use
		}
		stage := r.jobs[job].first + t.ID.Stage
		if r.stages[stage].coordinator {
			if !t.Running {
				r.readyAt(p, job, t.Booked)
			}
			continue
		}
		if r.every == 0 {
			r.step.found = append(r.step.found, foundTask{t, index, stage})
			continue
		}
		r.addFound(p, foundTask{t, index, stage})
	}
	if n.ReservedFor != nil {
		holder := r.indexOf(p, n.ReservedFor)
		r.nodes[index].holder, r.nodes[index].heldFor = holder, r.jobs[holder].first+int32(n.ReservedStage)
		r.jobs[holder].held++
	}
	if r.every == 0 {
		return
	}
	if slices.ContainsFunc(n.Tasks, booked) || slices.Contains(p.Changes.Heartbeats, n.ID) {
		r.offerAt(index, r.nextReport(index, r.now))
	}
}

// booked selects nodes whose next heartbeat is due although no task ends there: heartbeats without news are skipped.
func booked(t *book.TaskState) bool { return !t.Running }

func (r *Estimator) indexOf(p *book.Plan, j *book.JobState) int32 {
	at, ok := slices.BinarySearchFunc(p.Jobs, j.ID, func(a *book.JobState, id cluster.JobID) int {
		return int(min(1, max(-1, a.ID-id)))
	})
	if !ok {
		return -1
	}
	return int32(at)
}

// foundTask is a task that runs now.
type foundTask struct {
	task        *book.TaskState
	node, stage int32
}

func (r *Estimator) addFound(p *book.Plan, f foundTask) {
	end, ok := p.EstimatedEnd(f.task, r.now)
	holds := f.task.Holds()
	r.addTask(simTask{holds[resource.CPU], holds[resource.Memory], f.stage, f.node}, end, ok)
}

// addTask schedules the end of a task. The node reports the end with its next heartbeat.
func (r *Estimator) addTask(t simTask, end timeline.Time, known bool) {
	j := &r.jobs[r.stages[t.stage].job]
	if !known || end > r.horizon {
		r.lose(j)
		return
	}
	report := r.nextReport(t.node, end)
	j.end = max(j.end, report)
	r.tasks = append(r.tasks, t)
	node := t.node
	if r.every == 0 {
		node = 0
	}
	r.push(report, node, uint32(len(r.tasks)-1))
}

// lose gives up on a job: it will not end within the horizon.
func (r *Estimator) lose(j *simJob) {
	if !j.lost && j.left > 0 {
		r.open--
	}
	j.lost = true
}

// nextReport returns the time of the node's first heartbeat after the given time.
func (r *Estimator) nextReport(node int32, after timeline.Time) timeline.Time {
	if r.every == 0 {
		return after
	}
	n := &r.nodes[node]
	at := after - after%r.every + n.phase
	if at < after || at == after && !n.due {
		at += r.every
	}
	return at
}

func (r *Estimator) offerAt(node int32, at timeline.Time) {
	if n := &r.nodes[node]; n.nextOffer < at {
		n.nextOffer = at
		r.push(at, node, offerEvent)
	}
}

func (r *Estimator) readyAt(p *book.Plan, job int32, booked timeline.Time) {
	at := p.LaunchTime(r.jobs[job].state.Submitted, booked)
	if p.Heartbeats.Launch > 0 {
		at -= timeline.Time(p.LaunchDelay) // a coordinator is launched by the heartbeat that finds it granted
	}
	r.push(max(at, r.now), nowhere, readyEvents+uint32(job))
}

// steer makes the tasks of a job runnable; every node is offered at its next heartbeat.
func (r *Estimator) steer(job int32) {
	r.jobs[job].steered = true
	r.requeue(job)
	r.offerToAll()
}

// settle finds the stage from which the job starts next.
func (r *Estimator) settle(job int32) {
	j := &r.jobs[job]
	j.next = -1
	for i := j.first; i < j.last; i++ {
		if s := &r.stages[i]; s.pending > 0 && s.parents == 0 && (j.steered || s.coordinator) {
			j.next = i
			return
		}
	}
}

func (r *Estimator) endTask(task uint32) {
	t := &r.tasks[task]
	n, s := &r.nodes[t.node], &r.stages[t.stage]
	j := &r.jobs[s.job]
	n.cpu += t.cpu
	n.memory += t.memory
	j.used -= float64(t.memory)
	r.running--
	s.left--
	j.left--
	if j.left == 0 && !j.lost {
		r.open--
	}
	if s.left == 0 {
		for i := range j.state.Stages {
			if slices.Contains(j.state.Stages[i].Parents, int(t.stage-j.first)) {
				r.stages[j.first+int32(i)].parents--
				r.offerToAll()
			}
		}
	}
	r.requeue(s.job)
}

func (r *Estimator) offerToAll() {
	if r.every == 0 {
		r.step.demand = true
		return
	}
	for n := range r.nodes {
		if r.nodes[n].gone {
			continue
		}
		r.offerAt(int32(n), r.nextReport(int32(n), r.now))
	}
}

// offerRepeatedly starts what the node takes now: one task per heartbeat, or without heartbeats until nothing fits.
func (r *Estimator) offerRepeatedly(p *book.Plan, node int32) {
	r.nodes[node].due = false
	if r.every > 0 && p.Heartbeats.Starts > 0 {
		for range p.Heartbeats.Starts {
			if !r.offer(p, node) {
				return
			}
		}
		r.offerAt(node, r.now+r.every)
		return
	}
	for r.offer(p, node) {
	}
}

// offer is fair.offer on the copy.
func (r *Estimator) offer(p *book.Plan, node int32) bool {
	n := &r.nodes[node]
	if n.holder >= 0 {
		if r.jobs[n.holder].next == n.heldFor {
			return r.start(p, node, n.holder)
		}
		r.giveBack(node)
	}
	for _, job := range r.queue {
		if r.start(p, node, job) {
			return true
		}
		if r.reservations && r.running > 0 && p.Nodes[node].Holds(r.ideal(r.jobs[job].next)) {
			n.holder, n.heldFor = job, r.jobs[job].next
			r.jobs[job].held++
			return false
		}
	}
	return false
}

// ideal is what a task of a stage needs.
func (r *Estimator) ideal(stage int32) resource.Vector {
	j := &r.jobs[r.stages[stage].job]
	return j.state.Stages[stage-j.first].Ideal
}

// giveBack ends the reservation of a node, if there is one.
func (r *Estimator) giveBack(node int32) {
	if n := &r.nodes[node]; n.holder >= 0 {
		r.jobs[n.holder].held--
		n.holder = -1
		if r.every == 0 {
			r.step.nodes = append(r.step.nodes, node)
		}
	}
}

func (r *Estimator) start(p *book.Plan, node, job int32) bool {
	n, j := &r.nodes[node], &r.jobs[job]
	stage := j.next
	s := &r.stages[stage]
	if s.memory > n.memory || s.cpu > n.cpu {
		return false
	}
	n.memory -= s.memory
	n.cpu -= s.cpu
	j.used += float64(s.memory)
	s.pending--
	if s.coordinator {
		r.readyAt(p, job, r.now)
	} else {
		r.running++
		j.pending--
		j.lastStart = r.now
		end := p.LaunchTime(j.state.Submitted, r.now).Add(s.duration)
		r.addTask(simTask{s.cpu, s.memory, stage, node}, end, s.duration > 0)
	}
	r.requeue(job)
	if n.holder == job {
		r.giveBack(node)
	}
	if r.every == 0 && j.next != stage {
		r.moveOn(job)
	}
	return true
}

// before orders jobs as fair does.
func (r *Estimator) before(a, b int32) bool {
	x, y := &r.jobs[a], &r.jobs[b]
	if kx, ky := x.used*y.weight, y.used*x.weight; kx != ky {
		return kx < ky
	}
	if x.state.Submitted != y.state.Submitted {
		return x.state.Submitted < y.state.Submitted
	}
	return x.state.ID < y.state.ID
}

// requeue files a job anew after its consumption or its runnable tasks changed.
func (r *Estimator) requeue(job int32) {
	r.settle(job)
	if r.every == 0 {
		r.step.jobs = append(r.step.jobs, job)
	}
	j := &r.jobs[job]
	switch {
	case j.next < 0 && j.place >= 0:
		at := j.place
		r.queue = append(r.queue[:at], r.queue[at+1:]...)
		for i := at; int(i) < len(r.queue); i++ {
			r.jobs[r.queue[i]].place = i
		}
		j.place = -1
		return
	case j.next < 0:
		return
	case j.place < 0:
		j.place = int32(len(r.queue))
		r.queue = append(r.queue, job)
	}
	at := j.place
	for ; at > 0 && r.before(job, r.queue[at-1]); at-- {
		r.put(at, r.queue[at-1])
	}
	for ; int(at) < len(r.queue)-1 && r.before(r.queue[at+1], job); at++ {
		r.put(at, r.queue[at+1])
	}
	r.put(at, job)
}

func (r *Estimator) put(at, job int32) {
	r.queue[at] = job
	r.jobs[job].place = at
}

// push adds an event if it lies within the horizon.
func (r *Estimator) push(at timeline.Time, node int32, task uint32) {
	if at <= r.horizon {
		r.events.Push(at, uint64(node)<<32|uint64(task), struct{}{})
	}
}
