package timeline

import (
	"math/bits"

	"github.com/bellows-rm/bellows/core/resource"
)

// Area is an amount of one resource times time, such as byte-seconds, of any sign. The zero Area is nothing.
//
// It counts base units times nanoseconds as a 128-bit integer, and so is exact: 10 TB for a year are 3.2e29 of these
// units. 64 bits end at 9.2e18. 128 bits end at 1.7e38, more than the largest Amount for all of time. A float64 would
// be wide enough, but its sums would depend on their order and on the processor, which may fuse multiplication and
// addition.
type Area struct {
	hi int64
	lo uint64
}

// AreaOf returns amount × t, which is the area of the amount from the origin to t. Areas between two times are
// differences.
func AreaOf(amount resource.Amount, t Time) Area {
	hi, lo := bits.Mul64(uint64(amount), uint64(t))
	// uint64(x) of a negative x is x + 2^64.
	if amount < 0 {
		hi -= uint64(t)
	}
	if t < 0 {
		hi -= uint64(amount)
	}
	return Area{int64(hi), lo}
}

// addProduct adds amount × length.
func (a *Area) addProduct(amount, length uint64) {
	hi, lo := bits.Mul64(amount, length)
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi += int64(hi + carry)
}

// times returns a × n, for a of at least 0.
func (a Area) times(n uint64) Area {
	hi, lo := bits.Mul64(a.lo, n)
	return Area{int64(hi) + a.hi*int64(n), lo}
}

// Add returns a + b.
func (a Area) Add(b Area) Area {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return Area{a.hi + b.hi + int64(carry), lo}
}

// Sub returns a - b.
func (a Area) Sub(b Area) Area {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return Area{a.hi - b.hi - int64(borrow), lo}
}

// UnitSeconds returns a in base units times seconds: byte-seconds for memory, millicore-seconds for CPU. Only this
// method rounds.
func (a Area) UnitSeconds() float64 {
	if a.hi < 0 { // the magnitude, since hi and lo of a small negative number would cancel out
		b := Area{}.Sub(a)
		return -unitSeconds(uint64(b.hi), b.lo)
	}
	return unitSeconds(uint64(a.hi), a.lo)
}

func unitSeconds(hi, lo uint64) float64 { return (float64(hi)*(1<<64) + float64(lo)) / 1e9 }
