package cluster

import (
	"testing"

	"github.com/bellows-rm/bellows/resource"
	"pgregory.net/rapid"
)

// The index against a look at every node, with all resources and nodes that close and open again.
func TestRoomIndexFindsWhatALookAtAllFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := func(what string) (v resource.Vector) {
			for k := range v {
				v[k] = resource.Amount(rapid.IntRange(0, 3).Draw(t, what))
			}
			return v
		}
		var x roomIndex
		var all []resource.Vector
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			n, r := rapid.IntRange(0, len(all)).Draw(t, "node"), amounts("room")
			if rapid.IntRange(0, 4).Draw(t, "close") == 0 {
				r = closed
			}
			if n == len(all) {
				all = append(all, r)
			}
			all[n] = r
			x.set(NodeID(n), r)
			need, from := amounts("need"), rapid.IntRange(0, len(all)).Draw(t, "from")
			want := -1
			for i := len(all) - 1; i >= from; i-- {
				if need.FitsIn(all[i]) {
					want = i
				}
			}
			got, ok := x.first(need, NodeID(from))
			if ok != (want >= 0) || ok && int(got) != want {
				t.Fatalf("first of %v from %d is %d (%v), want %d, of %v", need, from, got, ok, want, all)
			}
		}
	})
}
