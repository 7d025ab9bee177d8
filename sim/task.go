package sim

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// task is a task that has been started.
type task struct {
	job    *job
	id     cluster.TaskID
	index  int32
	node   cluster.NodeID
	result TaskResult // has an outcome once the process has ended; agenda items of the task are void then

	decision cluster.DecisionID
	grant    resource.Vector
	mostCPU  resource.Amount // as in its envelope
	// the most that it may use of each contended resource, 0 is no bound; known from its launch on
	bound     resource.Vector
	pending   []pending         // what is wanted of it and has not been carried out, in the order of the decisions
	throttle  *throttling       // nil if it was never throttled
	holding   *holding          // nil if it never stood still
	flow      *flow             // nil while the task is plain
	room      *flow             // memory for the flow of a new task; nil unless the task had been forgotten
	slot      int32             // index among the tasks of its node
	turn      uint64            // rank among tasks that end at the same time
	run       int32             // number of the run, from 1, if the workload has FLEX jobs
	envelope  *cluster.Envelope // nil without FLEX jobs
	container *container        // nil without FLEX jobs, before the request for memory, and after the end
	found     *cluster.Event    // it was found running, and how, until it goes on; nil for other tasks
	launched  bool
	ordered   bool            // order was called for the task: startup takes time
	executor  executor        // on which it runs, if startup takes time
	ending    cluster.Outcome // outcome of its imminent end by itself; 0 if that is not known yet
	killing   cluster.Outcome // outcome of a pending kill; 0 if there is none
}

func (t *task) ended() bool { return t.result.Ended() }

// tasks are the tasks that have been started, by index. Tasks that have succeeded are forgotten, so that a day of many
// million tasks needs memory only for the tasks that run.
type tasks struct {
	list  []*task // from the index first on; nil is forgotten
	first int32
	gone  int     // how many at the beginning of list are forgotten
	spare []task  // preallocated room for tasks to come
	free  []*task // forgotten tasks, whose memory new tasks take
}

// forgotten stands for every task that is forgotten: it has ended.
var forgotten = &task{result: TaskResult{Outcome: cluster.Succeeded}}

// get returns a task by its index.
func (s *tasks) get(index int32) *task {
	if index >= s.first {
		if t := s.list[index-s.first]; t != nil {
			return t
		}
	}
	return forgotten
}

// add adds an empty task. It takes the memory of a forgotten task, or allocates tasks in batches.
func (s *tasks) add() *task {
	var t *task
	if last := len(s.free) - 1; last >= 0 {
		t, s.free = s.free[last], s.free[:last]
		room := t.room
		*t = task{}
		t.room = room
	} else {
		if len(s.spare) == 0 {
			s.spare = make([]task, 256)
		}
		t, s.spare = &s.spare[0], s.spare[1:]
	}
	t.index = s.first + int32(len(s.list))
	s.list = append(s.list, t)
	return t
}

// forget gives the memory of a task that has ended to new tasks. Agenda items of the task are void, as for every
// ended task.
func (s *tasks) forget(t *task) {
	if t.flow != nil {
		t.room, t.flow = t.flow, nil
	}
	s.free = append(s.free, t)
	s.list[t.index-s.first] = nil
	for s.gone < len(s.list) && s.list[s.gone] == nil {
		s.gone++
	}
	if s.gone > len(s.list)/2 {
		s.first += int32(s.gone)
		s.list, s.gone = append(s.list[:0], s.list[s.gone:]...), 0
	}
}

// forgets reports whether tasks are forgotten once they have succeeded. They are not if the result lists them, or if
// something can look them up after their end: memory managers and incidents.
func (r *run) forgets() bool {
	return !r.config.KeepTasks && r.keepers == nil && len(r.config.Incidents) == 0
}

// remember records the newest run of a task.
func (j *job) remember(id cluster.TaskID, run int32) {
	if j.latest == nil {
		j.latest = make([][]int32, len(j.Stages))
	}
	runs := &j.latest[id.Stage]
	if *runs == nil {
		*runs = make([]int32, 0, j.Stages[id.Stage].Tasks)
	}
	for int(id.Index) >= len(*runs) {
		*runs = append(*runs, -1)
	}
	(*runs)[id.Index] = run
}

// latest returns the newest run of a task, nil if there is none, or if its job has ended and its tasks are forgotten.
func (r *run) latest(id cluster.TaskID) *task {
	j := r.byID[id.Job]
	if j.latest == nil || int(id.Index) >= len(j.latest[id.Stage]) || j.latest[id.Stage][id.Index] < 0 {
		return nil
	}
	return r.tasks.get(j.latest[id.Stage][id.Index])
}
