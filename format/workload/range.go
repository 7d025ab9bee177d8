package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Range is the interval from which a generator draws, from Min to Max.
type Range[T ~int | ~int64] struct{ Min, Max T }

// ParseTasks reads a number of tasks, "MIN:MAX", such as "1:300".
func ParseTasks(text string) (Range[int], error) {
	return parseRange("tasks", text, 1, cluster.MostTasks, strconv.Itoa, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("%q is no whole number", cluster.Clip(s))
		}
		return n, nil
	})
}

// ParseTaskMemory reads an amount of memory, "MIN:MAX" with units, such as "1GB:10GB".
func ParseTaskMemory(text string) (Range[resource.Amount], error) {
	return parseRange("task memory", text, 1, resource.MostMemory, resource.FormatMemoryExact, resource.ParseMemory)
}

// ParseTaskDuration reads a run time, "MIN:MAX" with units, such as "1s:500s".
func ParseTaskDuration(text string) (Range[time.Duration], error) {
	return parseRange("task duration", text, time.Millisecond, cluster.LongestTime, time.Duration.String, parseTime)
}

// ParseArrivals reads times of submission, "MIN:MAX" with units, such as "0s:1000s". A bare 0 needs no unit.
func ParseArrivals(text string) (Range[time.Duration], error) {
	return parseRange("arrivals", text, 0, cluster.LongestTime, time.Duration.String, parseTime)
}

func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration with its unit, such as 90s, up to %v", cluster.Clip(text),
			cluster.LongestTime)
	}
	return d, nil
}

func parseRange[T ~int | ~int64](what, text string, least, most T, show func(T) string,
	parse func(string) (T, error)) (Range[T], error) {
	low, high, found := strings.Cut(text, ":")
	if !found {
		return Range[T]{}, fmt.Errorf("%s %q: must be MIN:MAX", what, cluster.Clip(text))
	}
	var r Range[T]
	var err error
	if r.Min, err = parse(low); err == nil {
		r.Max, err = parse(high)
	}
	if err != nil {
		return Range[T]{}, fmt.Errorf("%s %q: %w", what, cluster.Clip(text), err)
	}
	return r, r.check(what, least, most, show)
}

func (r Range[T]) check(what string, least, most T, show func(T) string) error {
	if r.Min < least || r.Min > r.Max || r.Max > most {
		return fmt.Errorf("%s %s:%s: must be ascending, from %s to %s", what, show(r.Min), show(r.Max), show(least),
			show(most))
	}
	return nil
}

// at returns the value at the given share (0 to 1) of the way from Min to Max, in whole grains above Min.
func (r Range[T]) at(share float64, grain T) T {
	return r.Min + T(math.Floor(share*float64(r.Max-r.Min)/float64(grain)))*grain
}
