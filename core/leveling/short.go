package leveling

import (
	"slices"
	"time"
)

// Short returns the longest duration that counts as short: tasks up to it stay where they are, and get their peak
// demand (section IV of the paper: task management). It is 0 if durations do not differ.
//
// The durations are divided into two clusters with the least squares of distances to the means: k-means with k = 2,
// whose best clusters are found here by trying all places to divide in order. It divides durations that are nearly
// equal too. The order of durations does not matter, and they are not changed.
func Short(durations []time.Duration) (longest time.Duration) {
	sorted := slices.Sorted(slices.Values(durations))
	if len(sorted) == 0 {
		return 0
	}
	// The squares are least where the sums of both clusters, squared and divided by their sizes, are most. Differences
	// from the shortest keep numbers small.
	var all, below float64
	for _, d := range sorted {
		all += (d - sorted[0]).Seconds()
	}
	best := 0.0
	for i, d := range sorted[:len(sorted)-1] {
		below += (d - sorted[0]).Seconds()
		above := all - below
		n, m := float64(i+1), float64(len(sorted)-i-1)
		if between := float64(below*below)/n + float64(above*above)/m - float64(all*all)/(n+m); d < sorted[i+1] &&
			between > best {
			best, longest = between, d
		}
	}
	return longest
}
