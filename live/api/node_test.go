package api

import "testing"

// Containers may use what is reserved for them or, if flex containers have grown, more.
func TestLimits(t *testing.T) {
	for _, c := range []struct{ free, left, over, held, reserved, limits int64 }{{800, 0, 0, 0, 200, 200},
		{800, 0, 0, 990, 200, 990}, {800, 0, 0, 100, 200, 200}, {700, 100, 0, 0, 200, 200}, {0, 0, 50, 1010, 1050, 1050}} {
		n := Node{Memory: 1000, FreeMemory: c.free, LeftoverMemory: c.left, OverdrawnMemory: c.over, HeldMemory: c.held}
		if n.Reserved() != c.reserved || n.Holds() != c.limits {
			t.Errorf("%+v: %d reserved, %d in limits", c, n.Reserved(), n.Holds())
		}
	}
}
