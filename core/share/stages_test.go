package share

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestStages(t *testing.T) {
	var s Stages
	for _, c := range []struct {
		name      string
		executors int
		path      Path
		stages    []Stage
		want      []int
	}{
		{"figure 8: two independent stages run at once, each on its own executors", 4, SumOfPaths,
			[]Stage{{Ready: true, Left: 4, Next: []int{2}}, {Ready: true, Left: 4, Next: []int{2}}, {Left: 4}}, []int{2, 2, 0}},
		{"a stage that ends leaves its executors to the other", 4, SumOfPaths,
			[]Stage{{Ready: true, Left: 1, Held: 2, Next: []int{2}}, {Ready: true, Left: 3, Held: 2, Next: []int{2}},
				{Left: 4}}, []int{1, 3, 0}},
		{"the longer path has more executors", 6, LongestPath,
			[]Stage{{Ready: true, Left: 10, Next: []int{2}}, {Ready: true, Left: 10}, {Left: 10}}, []int{4, 2, 0}},
		{"two paths from one stage count both", 8, SumOfPaths,
			[]Stage{{Ready: true, Left: 10, Next: []int{2, 3}}, {Ready: true, Left: 10}, {Left: 10}, {Left: 10}},
			[]int{6, 2, 0, 0}},
		{"nobody has more executors than tasks", 9, LongestPath,
			[]Stage{{Ready: true, Left: 3, Next: []int{2}}, {Ready: true, Left: 20}, {Left: 1000}}, []int{3, 6, 0}},
	} {
		if got := s.Divide(c.executors, c.stages, c.path, make([]int, len(c.stages))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// No executor is idle beside a waiting task, and a deep DAG with many paths keeps its weights within their range.
func TestStagesAreNeverIdle(t *testing.T) {
	var s Stages
	check(t, func(t *rapid.T) {
		stages := make([]Stage, rapid.IntRange(0, 60).Draw(t, "n"))
		left := 0
		for i := range stages {
			st := &stages[i]
			*st = Stage{Ready: rapid.Bool().Draw(t, "ready"), Left: rapid.IntRange(0, 5000).Draw(t, "left"),
				Held: rapid.IntRange(0, 9).Draw(t, "held")}
			for n := i + 1; n < min(len(stages), i+4); n++ {
				st.Next = append(st.Next, n)
			}
			if st.Ready {
				left += st.Left
			}
		}
		executors := rapid.IntRange(0, 10000).Draw(t, "executors")
		sum := 0
		for i, n := range s.Divide(executors, stages, SumOfPaths, make([]int, len(stages))) {
			sum += n
			if n > stages[i].Left || n > 0 && !stages[i].Ready {
				t.Errorf("stage %d has %d executors: %+v", i, n, stages[i])
			}
		}
		if sum != min(executors, left) {
			t.Errorf("%d of %d executors work for %d tasks", sum, executors, left)
		}
	})
}
