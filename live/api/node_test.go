package api

import "testing"

// What is left of a node's memory is neither granted nor held by flex containers that have grown.
func TestLeftMemory(t *testing.T) {
	for _, c := range []struct{ free, held, want int64 }{{800, 0, 800}, {800, 200, 800}, {800, 990, 10}, {0, 990, 0},
		{800, 1100, 0}} {
		if n := (Node{Memory: 1000, FreeMemory: c.free, HeldMemory: c.held}); n.LeftMemory() != c.want {
			t.Errorf("%d are not granted and %d held: %d are left, want %d", c.free, c.held, n.LeftMemory(), c.want)
		}
	}
}
