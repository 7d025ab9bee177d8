package share

import (
	"cmp"
	"math/bits"
	"slices"
)

// Claim is what one of several parties may have of a number of executors. A party is an application, a queue with all
// that is below it, or a stage.
type Claim struct {
	Weight int64 // its part relative to others, 1 to MaxWeight
	Demand int   // how many executors it could use now, with the ones that it holds
	Min    int   // what it is granted before others have more than their Min, as far as it demands it
	Max    int   // what it is never granted more than; 0 is without a limit
	Held   int   // how many executors it holds: between two equally fair divisions the one is chosen that moves fewer
}

const (
	// MaxWeight is the greatest Weight of a Claim.
	MaxWeight = 1e9
	// MaxClaims is how many parties can share at once.
	MaxClaims = 1 << indexBits

	indexBits = 20
)

// high is the most that c can be granted.
func (c *Claim) high() int {
	if c.Max > 0 {
		return min(c.Demand, c.Max)
	}
	return c.Demand
}

// low is what c is granted if the Min of every party can be.
func (c *Claim) low() int { return min(c.Min, c.high()) }

// Fair divides executors by weighted max-min fairness: no party is granted more than it demands, and what one party
// leaves is divided among the others by their weights. Its zero value is ready; it keeps buffers, so one Fair serves
// one goroutine.
type Fair struct {
	open   []party  // whose share is not decided yet
	keys   []uint64 // of the parties that could be granted one more
	claims []Claim  // of the children of one node
}

// Divide writes to granted how many of total executors each party is granted, and returns granted. granted has the
// length of claims, which has at most MaxClaims parties.
//
// With no rounding, party i would be granted w_i·λ, not less than its low and not more than its high, with the one λ
// that grants total executors in all. Divide grants the next lower or the next higher whole number. Of the parties
// that could be granted the higher one, those come first that hold as many already, so that no party loses an
// executor for the sake of rounding. Then come those with the greater rest (to 32 bits), then those that come first
// in claims. If the low of all parties together is more than total, the parties share total by weight up to their
// low.
func (f *Fair) Divide(total int, claims []Claim, granted []int) []int {
	lows, highs := 0, 0
	for i := range claims {
		lows += claims[i].low()
		highs += claims[i].high()
	}
	if highs <= total {
		for i := range claims {
			granted[i] = claims[i].high()
		}
		return granted
	}
	f.open = f.open[:0]
	for i := range claims {
		c := &claims[i]
		p := party{i, c.low(), c.high(), uint64(c.Weight)}
		if lows > total {
			p.low, p.high = 0, p.low
		}
		f.open = append(f.open, p)
	}
	f.fill(max(0, total), claims, granted)
	return granted
}

// party is a party whose share is not decided yet.
type party struct {
	at, low, high int // its place in claims, and its bounds
	weight        uint64
}

// fill is Divide for a total that is between the sums of the bounds of f.open.
//
// It finds λ by pegging (Bretthauer and Shetty, "The nonlinear knapsack problem", section 3.1): λ is computed as if
// no open party had bounds. If the parties, each within its bounds, then get less than there is, the right λ is
// greater, so whoever is at its upper bound stays there; if they get more, whoever is at its lower bound stays there.
// Such parties are no longer open, and the others divide the rest. Each round decides one party at least; few rounds
// suffice.
func (f *Fair) fill(total int, claims []Claim, granted []int) {
	rest := uint64(total)
	for {
		var weights uint64
		for i := range f.open {
			weights += f.open[i].weight
		}
		// All sums are exact, in units of 1/weights of an executor.
		var got wide
		for i := range f.open {
			p := &f.open[i]
			got.add(within(product(p.weight, rest), product(uint64(p.low), weights), product(uint64(p.high), weights)))
		}
		side := got.compare(product(rest, weights))
		if side == 0 {
			f.round(rest, weights, claims, granted)
			return
		}
		open, due := f.open[:0], rest
		for _, p := range f.open {
			fair := product(p.weight, due)
			switch {
			case side < 0 && fair.compare(product(uint64(p.high), weights)) >= 0:
				granted[p.at] = p.high
			case side > 0 && fair.compare(product(uint64(p.low), weights)) <= 0:
				granted[p.at] = p.low
			default:
				open = append(open, p)
				continue
			}
			rest -= uint64(granted[p.at])
		}
		f.open = open
	}
}

// round grants the open parties whole executors.
func (f *Fair) round(rest, weights uint64, claims []Claim, granted []int) {
	left := int(rest)
	f.keys = f.keys[:0]
	for _, p := range f.open {
		high, low := bits.Mul64(p.weight, rest)
		whole, over := bits.Div64(high, low, weights)
		// A bound, which is a whole number, is met exactly, or is nearer than what the party would be granted without
		// bounds.
		switch {
		case whole < uint64(p.low):
			whole, over = uint64(p.low), 0
		case whole >= uint64(p.high):
			whole, over = uint64(p.high), 0
		}
		granted[p.at] = int(whole)
		left -= granted[p.at]
		if over > 0 {
			part, _ := bits.Div64(over>>32, over<<32, weights)
			key := part<<indexBits | uint64(1<<indexBits-1-p.at)
			if claims[p.at].Held > granted[p.at] {
				key |= 1 << 63
			}
			f.keys = append(f.keys, key)
		}
	}
	slices.Sort(f.keys)
	for _, key := range f.keys[len(f.keys)-left:] {
		granted[1<<indexBits-1-int(key&(1<<indexBits-1))]++
	}
}

// wide is an unsigned number of 128 bits.
type wide struct{ high, low uint64 }

func product(a, b uint64) wide {
	high, low := bits.Mul64(a, b)
	return wide{high, low}
}

func (w wide) compare(o wide) int {
	return cmp.Or(cmp.Compare(w.high, o.high), cmp.Compare(w.low, o.low))
}

// within returns w, or the bound that it is beyond.
func within(w, low, high wide) wide {
	switch {
	case w.compare(low) < 0:
		return low
	case w.compare(high) > 0:
		return high
	}
	return w
}

func (w *wide) add(o wide) {
	low, carry := bits.Add64(w.low, o.low, 0)
	w.low, w.high = low, w.high+o.high+carry
}

// Matters reports whether a party that was granted a number of executors, and now demands a different number than
// before, can change the division. It cannot if it was granted less than it demanded, and still is: the first two
// filters of Mira (section III.C).
func Matters(granted, before, now int) bool {
	return now != before && (granted >= before || granted >= now)
}
