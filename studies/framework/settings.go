package framework

import (
	"fmt"
	"math"

	"github.com/bellows-rm/bellows/core/resource"
)

// maxMemory and maxSeconds limit the values of a model, so that no sum of two values overflows.
const (
	maxMemory  resource.Amount = 1 << 52 // whole numbers up to here are exact in a float64
	maxSeconds                 = math.MaxInt64 / 4 / 1e9
)

// shareOf returns a share of an amount, at least 1 unless the share is 0.
func shareOf(share float64, of resource.Amount) resource.Amount {
	if share == 0 {
		return 0
	}
	if share == 1 {
		return max(of, 1)
	}
	return max(resource.Amount(share*float64(of)), 1)
}

func checkBytes(name string, n resource.Amount) error {
	if n < 1 || n > maxMemory {
		return fmt.Errorf("%s %d bytes: must be 1 to %d", name, n, maxMemory)
	}
	return nil
}

func checkCount(name string, n resource.Amount) error {
	if n < 0 || n > maxMemory {
		return fmt.Errorf("%s %d: must be 0 to %d", name, n, maxMemory)
	}
	return nil
}

func checkShare(name string, share float64, zero bool) error {
	if !(share >= 0 && share <= 1) || (share == 0 && !zero) {
		least := "above 0"
		if zero {
			least = "at least 0"
		}
		return fmt.Errorf("%s %v: must be %s and at most 1", name, share, least)
	}
	return nil
}

func checkFactor(factor int) error {
	if factor != 0 && (factor < 2 || factor > 10000) {
		return fmt.Errorf("sort-factor %d: must be 2 to 10000, or 0 for no bound", factor)
	}
	return nil
}
