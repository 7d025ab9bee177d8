package timeline

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"

	"github.com/bellows-rm/bellows/resource"
)

// Area is an amount of each resource times time, such as byte-seconds. The zero Area is nothing.
//
// It counts base units times nanoseconds as a 128-bit integer, and so is exact: 10 TB for a year are 3.2e29 of them,
// where 64 bits end at 9.2e18 and 128 bits at 1.7e38, more than the largest Amount for all of time. A float64 would be
// wide enough, but its sums would depend on where the steps lie and on the processor, which may fuse multiplication
// and addition. Areas are therefore equal (==) whenever the functions are. Rounding happens once, in UnitSeconds.
type Area struct {
	hi [resource.NumKinds]int64
	lo [resource.NumKinds]uint64
}

// Integral returns the area between t and zero in s: amounts below zero count negative. It is zero if s is empty. A
// span up to Never ends at the last nanosecond before it, so cut it to what is meant first.
func (t *Timeline) Integral(s Span) Area {
	var a Area
	if s.IsEmpty() {
		return a
	}
	for c := t.cursor(s); ; c.next() {
		ns := c.span.nanoseconds()
		for k, x := range c.value {
			hi, lo := bits.Mul64(uint64(x), ns)
			if x < 0 {
				hi -= ns // uint64(x) was x + 2^64
			}
			a.accumulate(k, int64(hi), lo)
		}
		if c.span.To == s.To {
			return a
		}
	}
}

// AreaAbove returns, for each component, the area in s where t is above o, between the two. With t a demand and o what
// is available it is the over-allocation. Spans as in Integral.
func (t *Timeline) AreaAbove(o *Timeline, s Span) Area {
	var a Area
	if s.IsEmpty() {
		return a
	}
	p, q, now := t.cursor(s), o.cursor(s), s.From
	for {
		to := min(p.span.To, q.span.To)
		a.addExcess(&p.value, &q.value, Span{now, to}.nanoseconds())
		if to == s.To {
			return a
		}
		if p.span.To == to {
			p.next()
		}
		if q.span.To == to {
			q.next()
		}
		now = to
	}
}

// AreaBelow returns, for each component, the area in s where t is below o, between the two. With t a demand and o what
// is available it is the fragmentation. Spans as in Integral.
func (t *Timeline) AreaBelow(o *Timeline, s Span) Area { return o.AreaAbove(t, s) }

// AreaAboveLevel is AreaAbove for a capacity that is the same at all times.
func (t *Timeline) AreaAboveLevel(capacity resource.Vector, s Span) Area {
	level := [...]Step{{Earliest, capacity}} // not canonical if zero, which reading does not mind
	return t.AreaAbove(&Timeline{buf: level[:]}, s)
}

// AreaBelowLevel is AreaBelow for a capacity that is the same at all times.
func (t *Timeline) AreaBelowLevel(capacity resource.Vector, s Span) Area {
	level := [...]Step{{Earliest, capacity}}
	return (&Timeline{buf: level[:]}).AreaAbove(t, s)
}

// addExcess adds max(0, v-w) * ns.
func (a *Area) addExcess(v, w *resource.Vector, ns uint64) {
	for k := range v {
		if v[k] > w[k] {
			hi, lo := bits.Mul64(uint64(v[k])-uint64(w[k]), ns)
			a.accumulate(k, int64(hi), lo)
		}
	}
}

func (a *Area) accumulate(k int, hi int64, lo uint64) {
	sum, carry := bits.Add64(a.lo[k], lo, 0)
	a.lo[k] = sum
	a.hi[k] += hi + int64(carry)
}

// UnitSeconds returns component k in base units times seconds: millicore-seconds for CPU, byte-seconds for Memory,
// bytes for Disk and Network.
func (a Area) UnitSeconds(k resource.Kind) float64 {
	hi, lo := uint64(a.hi[k]), a.lo[k]
	if a.hi[k] < 0 { // the magnitude, since hi and lo of a small negative number would cancel out
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
		return -unitSeconds(hi, lo)
	}
	return unitSeconds(hi, lo)
}

func unitSeconds(hi, lo uint64) float64 { return (float64(hi)*(1<<64) + float64(lo)) / 1e9 }

// Add returns a + b.
func (a Area) Add(b Area) Area {
	for k := range b.lo {
		a.accumulate(k, b.hi[k], b.lo[k])
	}
	return a
}

// Sub returns a - b.
func (a Area) Sub(b Area) Area {
	for k := range b.lo {
		diff, borrow := bits.Sub64(a.lo[k], b.lo[k], 0)
		a.lo[k] = diff
		a.hi[k] -= b.hi[k] + int64(borrow)
	}
	return a
}

// Compare returns -1, 0 or +1 as component k of a is below, at or above that of b. It is exact.
func (a Area) Compare(b Area, k resource.Kind) int {
	if c := cmp.Compare(a.hi[k], b.hi[k]); c != 0 {
		return c
	}
	return cmp.Compare(a.lo[k], b.lo[k])
}

// IsZero reports whether every component is zero.
func (a Area) IsZero() bool { return a == Area{} }

// String prints what is not zero in base units times seconds, rounded to six digits: "cpu=2000 memory=4.29497e+09".
func (a Area) String() string {
	var parts []string
	for k := range resource.NumKinds {
		if a.hi[k] != 0 || a.lo[k] != 0 {
			parts = append(parts, fmt.Sprintf("%s=%.6g", k, a.UnitSeconds(k)))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, " ")
}
