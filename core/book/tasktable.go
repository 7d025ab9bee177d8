package book

import "github.com/bellows-rm/bellows/core/cluster"

// taskTable finds the booked and running tasks by their IDs. It is a hash table with open addressing: several lookups
// per event are much of what an event costs, and a map takes several times as long.
type taskTable struct {
	slots []*TaskState // as many as a power of two, nil is free; a task is in the first slot that was free from its own on
	tasks int
	spare []*TaskState // of tasks that have ended, to be used again
}

// spared returns a TaskState to be used again, or a new one.
func (x *taskTable) spared() (t *TaskState) {
	last := len(x.spare) - 1
	if last < 0 {
		return new(TaskState)
	}
	t, x.spare = x.spare[last], x.spare[:last]
	return t
}

// slot is where a task is looked for first. Neighbours in a stage must not be neighbours here.
func (x *taskTable) slot(id cluster.TaskID) int {
	h := uint64(id.Job)*0x9E3779B97F4A7C15 ^ (uint64(id.Stage)<<32|uint64(uint32(id.Index)))*0xD6E8FEB86659FD93
	return int(h>>32^h>>48) & (len(x.slots) - 1)
}

// get returns the task with the given ID.
func (x *taskTable) get(id cluster.TaskID) (t *TaskState, ok bool) {
	if x.tasks == 0 {
		return nil, false
	}
	for i := x.slot(id); x.slots[i] != nil; i = (i + 1) & (len(x.slots) - 1) {
		if x.slots[i].ID == id {
			return x.slots[i], true
		}
	}
	return nil, false
}

// add adds a task that is not in the table. At most half of the slots are taken, so that a search ends soon.
func (x *taskTable) add(t *TaskState) {
	if 2*x.tasks >= len(x.slots) {
		old := x.slots
		x.slots = make([]*TaskState, max(16, 2*len(old)))
		for _, t := range old {
			if t != nil {
				x.place(t)
			}
		}
	}
	x.place(t)
	x.tasks++
}

func (x *taskTable) place(t *TaskState) {
	i := x.slot(t.ID)
	for x.slots[i] != nil {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i] = t
}

// remove removes a task that is in the table. It moves up the tasks that are behind their own slots because of it.
func (x *taskTable) remove(t *TaskState) {
	last := len(x.slots) - 1
	free := x.slot(t.ID)
	for x.slots[free] != t {
		free = (free + 1) & last
	}
	for i := (free + 1) & last; x.slots[i] != nil; i = (i + 1) & last {
		if own := x.slot(x.slots[i].ID); (i-own)&last >= (i-free)&last {
			x.slots[free] = x.slots[i]
			free = i
		}
	}
	x.slots[free] = nil
	x.tasks--
}
