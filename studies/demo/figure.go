package demo

import (
	"cmp"
	"slices"
	"time"
)

// Figure is a number over several rounds.
type Figure struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// figure summarises values, at least one.
func figure(values []float64) Figure {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Figure{Median: (v[(n-1)/2] + v[n/2]) / 2, Least: v[0], Most: v[n-1]}
}

// over summarises a number of runs, at least one.
func over[R any](runs []*R, of func(*R) float64) Figure {
	var values []float64
	for _, r := range runs {
		values = append(values, of(r))
	}
	return figure(values)
}

// Clearly reports whether every round of f is below every round of g.
func (f Figure) Clearly(g Figure) bool { return f.Most < g.Least }

// among returns the runs that are meant.
func among[R any](runs []R, meant func(*R) bool) (found []*R) {
	for i := range runs {
		if meant(&runs[i]) {
			found = append(found, &runs[i])
		}
	}
	return found
}

// typical returns the run whose time is the median; for an even number of runs, the faster of the middle two.
func typical[R any](runs []*R, of func(*R) time.Duration) *R {
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b *R) int { return cmp.Compare(of(a), of(b)) })
	return sorted[(len(sorted)-1)/2]
}
