package importer

import (
	"slices"
	"sort"
)

// interval is the time in which something ran, in any unit.
type interval struct{ begin, end int64 }

// precede returns for each interval the intervals that it waited for, if an interval that began after another's end
// waited for it: the interval order, without the pairs that follow from other pairs. The result is ascending.
//
// Among the intervals that had ended, an interval directly follows the ones that ended after the last of them had
// begun: all earlier ones ended before that one began.
func precede(all []interval) [][]int {
	all = slices.Clone(all)
	for i := range all {
		// An empty interval still took place: otherwise two intervals at one instant would wait for each other.
		all[i].end = max(all[i].end, all[i].begin+1)
	}
	byEnd := make([]int, len(all))
	for i := range byEnd {
		byEnd[i] = i
	}
	sort.SliceStable(byEnd, func(a, b int) bool { return all[byEnd[a]].end < all[byEnd[b]].end })
	parents := make([][]int, len(all))
	for i, x := range all {
		ended := sort.Search(len(byEnd), func(k int) bool { return all[byEnd[k]].end > x.begin })
		if ended == 0 {
			continue
		}
		lastBegin := all[byEnd[0]].begin
		for _, k := range byEnd[:ended] {
			if k != i {
				lastBegin = max(lastBegin, all[k].begin)
			}
		}
		for _, k := range byEnd[:ended] {
			if k != i && all[k].end > lastBegin {
				parents[i] = append(parents[i], k)
			}
		}
		sort.Ints(parents[i])
	}
	return parents
}
