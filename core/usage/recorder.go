package usage

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Sample is what a container's counters and levels show at one moment.
type Sample struct {
	// At is since the container's program began.
	At time.Duration
	// Value has counters since the program began, and levels now.
	Value Amounts
	Known Set
	// Suspended is how long the program stood still since it began, because it was suspended, paused or throttled.
	Suspended time.Duration
	// Pressed is how long the disk was pressed while the program used it, since the program began.
	Pressed time.Duration
	// Idle is how long the program used next to nothing, since it began, although nothing kept it from more.
	Idle time.Duration
	// Curbed is for how long the program got less CPU than it would have used, since it began: see Span.Curbed.
	Curbed time.Duration
	// Bound is how many bytes per second the kernel lets the container read, and as many it lets it write; 0 is no bound.
	Bound int64
}

// GapAfter is the longest time between two samples of one span: after a longer time the new span is a gap.
const GapAfter = 15 * time.Second

// Tolerance is how far the samples of one span may differ from each other, in the unit of their rates.
type Tolerance Amounts

// The tolerance of what is granted is a part of the grant: half of the change that must be noticed. The tolerance of
// rates of bytes is a part of the largest rate, because disk and network are not granted as a rule.
const (
	parts      = 20
	partsBytes = 8
	leastCPU   = 20 // millicores
	leastBytes = int64(resource.MiB)
)

// ToleranceFor returns the tolerance for a container with a grant.
func ToleranceFor(grant resource.Vector) Tolerance {
	memory := max(int64(grant[resource.Memory])/parts, leastBytes)
	return Tolerance{CPU: max(int64(grant[resource.CPU])/parts, leastCPU), Memory: memory, Swap: memory,
		Read: leastBytes, Written: leastBytes, Received: leastBytes, Sent: leastBytes}
}

// of returns the tolerance of a kind for samples up to most.
func (t *Tolerance) of(k Kind, most int64) int64 {
	if k >= Read {
		return max(t[k], most/partsBytes)
	}
	return t[k]
}

// recorder turns samples into spans.
type recorder struct {
	tolerance Tolerance
	last      Sample
	// open is the span that may still grow, if there is one; low and high bound the rates of its samples.
	open      []Span
	low, high Amounts
}

// add takes a sample in and returns the span that it completes, if it does. A sample that is not later than the last
// one is dropped.
func (r *recorder) add(s Sample) (complete []Span) {
	for _, d := range []*time.Duration{&s.At, &s.Suspended, &s.Pressed, &s.Idle, &s.Curbed} {
		*d = d.Truncate(time.Millisecond)
	}
	for k := Memory; k < NumKinds; k++ {
		s.Value[k] -= s.Value[k] % int64(resource.KiB)
	}
	length := s.At - r.last.At
	if length <= 0 {
		return nil
	}
	span := r.since(s, length)
	r.carry(&s)
	r.last = s
	if len(r.open) > 0 && r.fits(&span) {
		r.open[0] = join(r.open[0], span)
		return nil
	}
	complete = r.open
	r.open = []Span{span}
	for _, k := range Kinds() {
		rate, _ := span.Rate(k)
		r.low[k], r.high[k] = rate, rate
	}
	return complete
}

// since returns the span from the last sample to s. A counter that was never known before began at 0. One that fell is
// unknown.
func (r *recorder) since(s Sample, length time.Duration) Span {
	span := Span{Length: length, Known: s.Known, Gap: length > GapAfter,
		Suspended: min(max(0, s.Suspended-r.last.Suspended), length)}
	span.Pressed = min(max(0, s.Pressed-r.last.Pressed), span.Active())
	span.Idle = min(max(0, s.Idle-r.last.Idle), span.Active())
	span.Curbed = min(max(0, s.Curbed-r.last.Curbed), span.Active())
	if span.Gap {
		span.Known &^= levels
	}
	for _, k := range Kinds() {
		switch {
		case !span.Known.Has(k):
		case k.IsLevel():
			span.Used[k] = s.Value[k]
		case s.Value[k] < r.last.Value[k]:
			span.Known &^= 1 << k
		default:
			span.Used[k] = s.Value[k] - r.last.Value[k]
		}
	}
	span.Bounded = span.bounded(s.Bound)
	return span
}

// A bound keeps transfers back if their rate is at least atBound of it. If the programs stood still for more than
// mostStill of the time, that explains the rate, and not the bound.
const (
	atBound   = 0.8
	mostStill = 0.1
)

// bounded reports whether a bound kept back the transfers of s.
func (s *Span) bounded(bound int64) bool {
	if bound <= 0 || float64(s.Suspended) > mostStill*float64(s.Length) {
		return false
	}
	for _, k := range []Kind{Read, Written} {
		if rate, known := s.Rate(k); !known || float64(rate) >= atBound*float64(bound) {
			return true
		}
	}
	return false
}

// carry copies counters that the sample does not have from the last sample.
func (r *recorder) carry(s *Sample) {
	for _, k := range Kinds() {
		if !s.Known.Has(k) && !k.IsLevel() {
			s.Value[k] = r.last.Value[k]
		}
	}
}

// fits reports whether a span may be joined with the open one, and widens the bounds if so.
func (r *recorder) fits(span *Span) bool {
	open := &r.open[0]
	if open.Known != span.Known || open.Gap != span.Gap || open.Bounded != span.Bounded {
		return false
	}
	low, high := r.low, r.high
	for _, k := range Kinds() {
		rate, known := span.Rate(k)
		if !known {
			continue
		}
		low[k], high[k] = min(low[k], rate), max(high[k], rate)
		if !span.Gap && high[k]-low[k] > r.tolerance.of(k, high[k]) {
			return false
		}
	}
	r.low, r.high = low, high
	return true
}
