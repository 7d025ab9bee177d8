package timeline

import (
	"math"
	"time"
)

// Time is a point in time in nanoseconds since the origin of a run: the start of a simulation, or the Unix epoch in a
// live run. It is data; the core never reads a clock.
type Time int64

const (
	// Never is later than every other Time. Adding to it leaves it unchanged.
	Never Time = math.MaxInt64
	// Earliest is before every other Time, some 292 years before the origin.
	Earliest Time = math.MinInt64
)

// Add returns t + d; it saturates at Earliest and Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never || (d > 0 && t > Never-Time(d)) {
		return Never
	}
	if d < 0 && t < Earliest-Time(d) {
		return Earliest
	}
	return t + Time(d)
}

// Sub returns t - u; it saturates at the largest and the smallest Duration, about 292 years.
func (t Time) Sub(u Time) time.Duration {
	d := t - u
	if t >= u && d < 0 {
		return math.MaxInt64
	}
	if t < u && d >= 0 {
		return math.MinInt64
	}
	return time.Duration(d)
}

// Seconds returns t in seconds since the origin.
func (t Time) Seconds() float64 { return time.Duration(t).Seconds() }

// String prints t as a duration since the origin, for example "1m30s", or "never".
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return time.Duration(t).String()
}

// Seconds returns the Time s seconds after the origin, rounded to the nanosecond. It saturates at Earliest and Never;
// NaN gives Never.
func Seconds(s float64) Time {
	ns := math.Round(s * 1e9)
	switch {
	case ns <= math.MinInt64:
		return Earliest
	case ns < math.MaxInt64: // as a float64 the bound is 2^63, one above Never
		return Time(ns)
	}
	return Never
}

// Milliseconds returns the Time ms milliseconds after the origin. It saturates at Earliest and Never.
func Milliseconds(ms int64) Time {
	const perMs = int64(time.Millisecond)
	switch {
	case ms > math.MaxInt64/perMs:
		return Never
	case ms < math.MinInt64/perMs:
		return Earliest
	}
	return Time(ms * perMs)
}
