package server

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// A stage arrives with the amounts of all resources, and the spec has each amount once.
func TestSpecHoldsAllResources(t *testing.T) {
	var want resource.Vector
	for k := range want {
		want[k] = resource.Amount(k + 1)
	}
	spec := api.SpecOf(cluster.Stage{Ideal: want})
	for k, field := range spec.Amounts() {
		if *field != want[k] || spec.Ideal[k] != 0 {
			t.Errorf("%v is %d in its field and %d in the list, want %d and 0", k, *field, spec.Ideal[k], want[k])
		}
	}
	if got := stageOf(&spec).Ideal; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
