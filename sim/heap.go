package sim

import (
	"fmt"
	"math"
)

// Collection is what garbage collection costs a program, by its heap over its live set, r > 1. Its run time is
//
//	1 + Cost / (r - 1)²
//
// times that without collection: each collection works in proportion to the live set and is due when the rest of the
// heap has been filled; that generations make the rest matter more than in proportion is the square. When collection
// takes more than the share GiveUp of the run time, the program fails for lack of memory. The zero value costs nothing.
type Collection struct {
	Cost   float64 // at least 0
	GiveUp float64 // share of the run time, above 0 and at most 1; 0 is 1: it never gives up while the live set fits
}

// JVMCollection is fitted to Hertz and Berger (OOPSLA 2005): on average 17 % slower than explicit memory management with
// three times the memory, 70 % with twice as much and nothing with five times. HotSpot gives up when 98 % of the time
// goes into collection (quoted in Pufferfish section 5.2); that is a heap below 1.12 times the live set.
var JVMCollection = Collection{Cost: 0.7, GiveUp: 0.98}

// Slowdown returns how many times as long a program runs with a heap of the given size, in bytes; ok is false if it fails.
// A live set of 0 costs nothing.
func (c Collection) Slowdown(heap, live float64) (slower float64, ok bool) {
	switch {
	case live <= 0:
		return 1, true
	case heap < live:
		return 0, false
	case c.Cost == 0:
		return 1, true
	}
	above := heap/live - 1
	cost := c.Cost / (above * above)
	if c.GiveUp > 0 && !(cost/(1+cost) <= c.GiveUp) || math.IsInf(cost, 0) || math.IsNaN(cost) {
		return 0, false
	}
	return 1 + cost, true
}

func (c Collection) check() error {
	if !(c.Cost >= 0) || math.IsInf(c.Cost, 0) {
		return fmt.Errorf("collection cost %v: must be a number of at least 0", c.Cost)
	}
	if !(c.GiveUp >= 0 && c.GiveUp <= 1) {
		return fmt.Errorf("collection give-up share %v: must be from 0 to 1", c.GiveUp)
	}
	return nil
}
