package ecs

import (
	"testing"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// TestFiguresHaveTheProduct: ECS as people get it, and policy bellows, are rows of the figures, without a setting of
// their own.
func TestFiguresHaveTheProduct(t *testing.T) {
	for figure, rows := range map[string][]lab.Contender{"fig2-3": cases, "fig8-9": contenders, "fig10": levelers,
		"real": ecsOnRecorded("1m"), "assumed": rivals,
		"slow-start": slow, "over-allocated": lostUnder} {
		for _, name := range []string{"ecs", policy.Default} {
			n := 0
			for _, c := range rows {
				if c.Policy == name && c.IsProduct() {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s has %d rows of %s as people get it", figure, n, name)
			}
		}
	}
	for _, c := range []lab.Contender{own, weight} {
		if c.IsProduct() {
			t.Errorf("%s counts as what people get", c.Label)
		}
	}
}
