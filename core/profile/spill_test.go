package profile

import (
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

const mb = resource.MB

// The slow twin fills a buffer one unit at a time.
func TestSpilledWholeIsFillingABuffer(t *testing.T) {
	for input := resource.Amount(1); input < 80; input++ {
		for buffer := resource.Amount(1); buffer < 90; buffer++ {
			var held, spilled resource.Amount
			for range input {
				if held++; held == buffer && input > buffer {
					spilled, held = spilled+held, 0
				}
			}
			if got := SpilledWhole(input, buffer); got != spilled {
				t.Fatalf("input %d, buffer %d: %d, filling it gives %d", input, buffer, got, spilled)
			}
		}
	}
}
