package profile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Sample is the measurements at one memory size.
type Sample struct {
	Memory   resource.Amount // bytes granted to the task
	Duration time.Duration   // the run time for this size: Fastest or Median of the repeats
	// Spilled is the number of bytes written to spill files; meaningful only if SpilledKnown.
	Spilled      resource.Amount
	SpilledKnown bool
	Repeats      []time.Duration // run times of all repeats, in any order; may be empty
}

// Fastest returns the shortest of repeats, 0 if there are none. On a machine that also does other work it is the best
// measure of the program itself: neighbours only ever add time.
func Fastest(repeats []time.Duration) time.Duration {
	if len(repeats) == 0 {
		return 0
	}
	return slices.Min(repeats)
}

// Median returns the median of repeats (of an even number the mean of the middle two), 0 if there are none.
func Median(repeats []time.Duration) time.Duration {
	if len(repeats) == 0 {
		return 0
	}
	d := slices.Sorted(slices.Values(repeats))
	lower, upper := d[(len(d)-1)/2], d[len(d)/2]
	return lower + (upper-lower)/2
}

// Spread returns the difference of the slowest and fastest repeat as a share of Duration. ok is false with fewer than
// two repeats.
func (s Sample) Spread() (share float64, ok bool) {
	if len(s.Repeats) < 2 || s.Duration <= 0 {
		return 0, false
	}
	return float64(slices.Max(s.Repeats)-slices.Min(s.Repeats)) / float64(s.Duration), true
}

// MostNoise is the largest noise of the repeats at one size from which a model is learned, and the largest error of a
// model at a size that it was fitted to. It is a share.
const MostNoise = 0.15

// Noise returns the difference of the median and the fastest repeat as a share of the fastest. A few slow repeats do
// not change it, and more repeats do not reduce it by chance. ok is false with fewer than two repeats.
func (s Sample) Noise() (share float64, ok bool) {
	if len(s.Repeats) < 2 || Fastest(s.Repeats) <= 0 {
		return 0, false
	}
	return float64(Median(s.Repeats))/float64(Fastest(s.Repeats)) - 1, true
}

// Contradicts reports whether the run time that a model predicts for this size is more than MostNoise below the fastest
// repeat, or above the slowest.
func (s Sample) Contradicts(predicted time.Duration) bool {
	fastest, slowest := s.Duration, s.Duration
	for _, d := range s.Repeats {
		fastest, slowest = min(fastest, d), max(slowest, d)
	}
	return relative(predicted, fastest) < -MostNoise || relative(predicted, slowest) > MostNoise
}

// sorted returns a checked copy of samples in ascending order of memory.
func sorted(samples []Sample) ([]Sample, error) {
	s := slices.Clone(samples)
	slices.SortFunc(s, func(a, b Sample) int { return cmp.Compare(a.Memory, b.Memory) })
	for i, x := range s {
		switch {
		case x.Memory <= 0 || x.Memory > maxMemory:
			return nil, fmt.Errorf("sample memory %d bytes: must be 1 to %d", x.Memory, maxMemory)
		case x.Duration <= 0 || x.Duration.Seconds() > maxSeconds:
			return nil, fmt.Errorf("sample at %s: duration %v: must be above 0 and at most %.0f s",
				resource.FormatMemory(x.Memory), x.Duration, maxSeconds)
		case x.SpilledKnown && (x.Spilled < 0 || x.Spilled > maxMemory):
			return nil, fmt.Errorf("sample at %s: spilled %d bytes: must be 0 to %d", resource.FormatMemory(x.Memory),
				x.Spilled, maxMemory)
		case i > 0 && x.Memory == s[i-1].Memory:
			return nil, fmt.Errorf("sample memory %s: must be given once; put repeats into one sample",
				resource.FormatMemory(x.Memory))
		}
	}
	return s, nil
}

// spillNoise is the share of the largest spill up to which a size counts as not spilling: counters of a container also
// count an occasional page of a log file.
const spillNoise = 0.02

// firstWellSized returns the index of the smallest size from which on no run spilled, len(s) if the largest size
// spilled too. ok is false if the spilled bytes do not determine it: they are unknown for some size, or no size
// spilled. s is in ascending order.
func firstWellSized(s []Sample) (index int, ok bool) {
	var most resource.Amount
	for _, x := range s {
		if !x.SpilledKnown {
			return 0, false
		}
		most = max(most, x.Spilled)
	}
	if most == 0 {
		return 0, false
	}
	index = len(s)
	for index > 0 && float64(s[index-1].Spilled) <= spillNoise*float64(most) {
		index--
	}
	return index, true
}
