package book

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// The index is compared with a scan of all nodes, with all resources and with nodes that close and open again.
func TestRoomIndexFindsWhatALookAtAllFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := func(what string) (v resource.Vector) {
			for k := range v {
				v[k] = resource.Amount(rapid.IntRange(0, 3).Draw(t, what))
			}
			return v
		}
		var x roomIndex
		var all []room
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			n, r := rapid.IntRange(0, len(all)).Draw(t, "node"), room{free: amounts("room")}
			r.available = resource.Amount(rapid.IntRange(0, 3).Draw(t, "available"))
			if rapid.IntRange(0, 4).Draw(t, "close") == 0 {
				r = closed
			}
			if n == len(all) {
				all = append(all, r)
			}
			all[n] = r
			x.set(cluster.NodeID(n), &r)
			need, from := amounts("need"), rapid.IntRange(0, len(all)).Draw(t, "from")
			want, most := -1, -1
			for i := len(all) - 1; i >= 0; i-- {
				if need.FitsIn(all[i].free) && i >= from {
					want = i
				}
				if need.FitsIn(all[i].free) && (most < 0 || all[i].available >= all[most].available) {
					most = i
				}
			}
			got, ok := x.first(need, cluster.NodeID(from))
			if ok != (want >= 0) || ok && int(got) != want {
				t.Fatalf("first of %v from %d is %d (%v), want %d, of %v", need, from, got, ok, want, all)
			}
			var each, fit []cluster.NodeID
			x.each(1, need, func(n cluster.NodeID) { each = append(each, n) })
			for i := range all {
				if need.FitsIn(all[i].free) {
					fit = append(fit, cluster.NodeID(i))
				}
			}
			if !slices.Equal(each, fit) {
				t.Fatalf("%v fits on %v, want %v, of %v", need, each, fit, all)
			}
			if got, ok := x.most(need); ok != (most >= 0) || ok && int(got) != most {
				t.Fatalf("most available with %v is %d (%v), want %d, of %v", need, got, ok, most, all)
			}
		}
	})
}

// BenchmarkMost finds the node with the most memory available. In the worst case every other node has more of it, but
// no CPU, so that all nodes must be visited.
func BenchmarkMost(b *testing.B) {
	for _, c := range []struct {
		name string
		cpu  resource.Amount // of every other node
	}{{"usual", resource.Core}, {"worst", 0}} {
		for _, nodes := range []int{100, 10000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", c.name, nodes), func(b *testing.B) {
				var x roomIndex
				for n := range nodes {
					r := room{free: resource.Of(resource.Core, 10*resource.GB), available: resource.Amount(n * 7919 % 1000)}
					if n%2 == 0 {
						r.free[resource.CPU], r.available = c.cpu, r.available+1000
					}
					x.set(cluster.NodeID(n), &r)
				}
				for b.Loop() {
					x.most(resource.Of(resource.Core, resource.GB))
				}
			})
		}
	}
}
