package book

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
)

// TestTaskTable compares the table with a map.
func TestTaskTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x taskTable
		want := map[cluster.TaskID]*TaskState{}
		most := rapid.SampledFrom([]int32{2, 20, 200}).Draw(t, "indexes")
		for range rapid.IntRange(1, 500).Draw(t, "calls") {
			id := cluster.TaskID{Job: cluster.JobID(rapid.IntRange(1, 3).Draw(t, "job")),
				Stage: rapid.Int32Range(0, 1).Draw(t, "stage"), Index: rapid.Int32Range(0, most).Draw(t, "index")}
			if got, ok := x.get(id); ok != (want[id] != nil) || got != want[id] {
				t.Fatalf("%s is %v, want %v", id, got, want[id])
			}
			if task := want[id]; task != nil {
				x.remove(task)
				delete(want, id)
			} else {
				want[id] = &TaskState{ID: id}
				x.add(want[id])
			}
		}
		for id, task := range want {
			if got, _ := x.get(id); got != task || x.tasks != len(want) {
				t.Fatalf("%s is %v of %d, want %v of %d", id, got, x.tasks, task, len(want))
			}
		}
	})
}

// task returns the task with an ID, nil if it is neither booked nor running.
func (s *Snapshot) task(id cluster.TaskID) *TaskState {
	t, _ := s.byTask.get(id)
	return t
}
