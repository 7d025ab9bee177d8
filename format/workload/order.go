package workload

import (
	"slices"
	"sort"
)

// AfterCycle returns the names along a cycle of jobs that wait for each other, and the index of the first; nil if there
// is no cycle.
func (w *Workload) AfterCycle() (first int, names []string) {
	const unseen, closed = 0, -1
	walk := make([]int, len(w.Jobs)) // the walk that visited each job, from 1
	for i := range w.Jobs {
		k := i
		for k >= 0 && walk[k] == unseen {
			walk[k] = i + 1
			k = w.Jobs[k].After
		}
		if k >= 0 && walk[k] == i+1 {
			names = append(names, w.Jobs[k].Name)
			for n := w.Jobs[k].After; n != k; n = w.Jobs[n].After {
				names = append(names, w.Jobs[n].Name)
			}
			return k, append(names, w.Jobs[k].Name)
		}
		for k = i; k >= 0 && walk[k] == i+1; k = w.Jobs[k].After {
			walk[k] = closed
		}
	}
	return 0, nil
}

// Sort puts the jobs in the order of submission: by Submitted, stable. Jobs that wait for another job come last,
// ordered by the length of their chain of waiting. There must be no cycle.
func (w *Workload) Sort() {
	depth := w.afterDepths()
	order := make([]int, len(w.Jobs))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		a, b = order[a], order[b]
		if depth[a] != depth[b] {
			return depth[a] < depth[b]
		}
		return w.Jobs[a].Submitted < w.Jobs[b].Submitted
	})
	jobs := make([]Job, len(order))
	now := make([]int, len(order)) // the new index, by the old one
	for at, was := range order {
		jobs[at], now[was] = w.Jobs[was], at
	}
	for i := range jobs {
		if jobs[i].After >= 0 {
			jobs[i].After = now[jobs[i].After]
		}
	}
	w.Jobs = jobs
}

// afterDepths returns, for each job, how many other jobs must end one after the other before it is submitted.
func (w *Workload) afterDepths() []int {
	depth := make([]int, len(w.Jobs)) // 0 is also unknown
	for i := range w.Jobs {
		var chain []int
		k := i
		for ; w.Jobs[k].After >= 0 && depth[k] == 0; k = w.Jobs[k].After {
			chain = append(chain, k)
		}
		for n, at := range slices.Backward(chain) {
			depth[at] = depth[k] + len(chain) - n
		}
	}
	return depth
}
