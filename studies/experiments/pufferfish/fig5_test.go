package pufferfish

import (
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

// TestContentionFits: with any manager, the limits never exceed the node's memory together, and two programs that fit
// side by side both end.
func TestContentionFits(t *testing.T) {
	small := contention{name: "both fit", most: 50 * resource.GB, speed: 2 * resource.GB, flex: withoutKills()}
	for _, c := range append(contentions(), small) {
		r, err := c.play()
		if err != nil {
			t.Fatal(err)
		}
		sums := map[int]resource.Amount{}
		for _, m := range r.watch.states {
			for i := range r.ids {
				if r.of(i)(m) {
					sums[i] = m.Limit
				}
			}
			if all := sums[0] + sums[1]; all > nodeHas {
				t.Fatalf("%s: limits of %d bytes together at %v", c.name, all, m.At)
			}
		}
		if c.name == small.name && (r.ended[0] == 0 || r.ended[1] == 0) {
			t.Errorf("%s: end at %v", c.name, r.ended)
		}
	}
}
