package prophet

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
)

// TestFiguresHaveTheProduct: Prophet as people get it, and policy bellows, are rows of the figures. They have no
// setting of their own, and nodes report as real ones do.
func TestFiguresHaveTheProduct(t *testing.T) {
	for _, name := range []string{"prophet", policy.Default} {
		n := 0
		for _, c := range schedulers() {
			if c.Policy == name && c.IsProduct() {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s as people get it is %d rows of the figures", name, n)
		}
	}
	if own.IsProduct() || plain.IsProduct() {
		t.Error("a row of the paper counts as the product's")
	}
	config := usual.cluster()
	if below := config.Machine.PressedBelow; below != 0 {
		t.Errorf("servers are pressed below %v, whoever schedules, instead of below %v", below, cluster.PressedBelow)
	}
}
