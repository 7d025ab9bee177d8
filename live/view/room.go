package view

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Ends returns when a task is expected to end; ok is false if that is unknown.
type Ends func(*book.TaskState) (at timeline.Time, ok bool)

// EarliestRoom returns when the next task of a stage has room if nothing else is started, or all remaining tasks if
// they start together. Each has the given need. ok is false if that depends on tasks whose ends are unknown.
//
// Tasks that start together are spread over the nodes as policy prophet does it: to different nodes if there are as
// many as tasks of the stage, or else evenly.
func EarliestRoom(s *book.Snapshot, j *book.JobState, stage int, need resource.Vector, now timeline.Time,
	ends Ends) (at timeline.Time, ok bool) {
	tasks, nodes := 1, 0
	for _, n := range s.Nodes {
		if n.Holds(need) {
			nodes++
		}
	}
	together := j.Stages[stage].Together
	if together {
		tasks = j.Progress[stage].Pending
	}
	each := (tasks + nodes - 1) / max(1, nodes)
	var outlook book.Outlook
	var places []timeline.Time // when each place for a task becomes free
	for _, n := range s.Nodes {
		if n.Paused || !n.Holds(need) {
			continue
		}
		from, known := now, true
		if together && j.Stages[stage].Tasks <= nodes {
			from, known = freeOf(n, j.ID, stage, now, ends)
		}
		outlook.Look(n, ends)
		for k := 1; k <= each && known; k++ {
			var t timeline.Time
			if t, known = outlook.RoomFor(k, need, from); known {
				places = append(places, t)
			}
		}
	}
	if len(places) < tasks {
		return timeline.Never, false
	}
	slices.Sort(places)
	return places[tasks-1], true
}

// freeOf returns when no task of a stage runs on n any more.
func freeOf(n *book.NodeState, job cluster.JobID, stage int, now timeline.Time, ends Ends) (at timeline.Time,
	known bool) {
	at, known = now, true
	for _, t := range n.Tasks {
		if t.ID.Job == job && int(t.ID.Stage) == stage {
			end, ok := ends(t)
			at, known = max(at, end), known && ok
		}
	}
	return at, known
}

// LeftMemory returns a sentence on memory that a waiting task needs, and that outlives the tasks that have used it.
// It is empty if the task waits for something else.
func LeftMemory(s *book.Snapshot, need resource.Vector) string {
	var left resource.Amount
	for _, n := range s.Nodes {
		switch {
		case n.Gone:
		case n.Free[resource.Memory] >= need[resource.Memory]:
			return ""
		default:
			left += n.Leftover
		}
	}
	if left == 0 {
		return ""
	}
	return fmt.Sprintf(" %s outlives the tasks that have used it: files in memory, such as those in /dev/shm, or "+
		"segments that programs shared.", resource.FormatMemory(left))
}

// KeptCores returns a sentence on tasks that hold the cores which a waiting task needs: suspended tasks that keep
// their cores, resumed tasks and executors that had lent them, or tasks that were granted more while they ran. It is
// empty if the task waits for something else.
func KeptCores(s *book.Snapshot, need resource.Vector) string {
	suspended, overdrawn, grown := 0, resource.Amount(0), false
	for _, n := range s.Nodes {
		if n.Gone {
			continue
		}
		if n.Free[resource.CPU] >= need[resource.CPU] {
			return ""
		}
		for _, t := range n.Tasks {
			if t.Suspended && !t.Lends() {
				suspended++
			}
			grown = grown || t.Resized != nil && t.Grant[resource.CPU] > t.Resized.Was[resource.CPU]
		}
		overdrawn += n.Overdrawn()[resource.CPU]
	}
	switch {
	case overdrawn > 0 && grown:
		return fmt.Sprintf(" Running tasks were granted more cores than were free: together they are granted %s more "+
			"than the node has.", resource.CPU.Format(overdrawn))
	case overdrawn > 0:
		return fmt.Sprintf(" Tasks that go on share the node with tasks that borrowed their cores: together they are "+
			"granted %s more than the node has.", resource.CPU.Format(overdrawn))
	case suspended == 0:
		return ""
	case suspended == 1:
		return " A suspended task keeps its cores."
	}
	return fmt.Sprintf(" %d suspended tasks keep their cores.", suspended)
}
