package timeline

import "time"

// Span is the half-open stretch of time [From, To): From belongs to it, To does not. It is empty if To <= From.
// To may be Never: the span then has no end.
type Span struct {
	From, To Time
}

// Always is all of time.
var Always = Span{Earliest, Never}

// For returns the span of the given length from t. It is empty if length <= 0.
func For(t Time, length time.Duration) Span { return Span{t, t.Add(length)} }

// IsEmpty reports whether no Time belongs to s.
func (s Span) IsEmpty() bool { return s.To <= s.From }

// Contains reports whether t belongs to s.
func (s Span) Contains(t Time) bool { return s.From <= t && t < s.To }

// Length returns To - From, or 0 if s is empty. It saturates at about 292 years.
func (s Span) Length() time.Duration {
	if s.IsEmpty() {
		return 0
	}
	return s.To.Sub(s.From)
}

// Intersect returns the part of s that also belongs to o; it may be empty.
func (s Span) Intersect(o Span) Span { return Span{max(s.From, o.From), min(s.To, o.To)} }

// String prints s as "[10s,1m0s)".
func (s Span) String() string { return "[" + s.From.String() + "," + s.To.String() + ")" }

// nanoseconds returns the exact length of s, which may exceed the largest Duration. s must not be empty.
func (s Span) nanoseconds() uint64 { return uint64(s.To) - uint64(s.From) }
