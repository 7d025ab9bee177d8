package sim

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

func phasesOf(list ...cluster.Phase) []cluster.Phase { return list }

func reads(length time.Duration, cpu, disk resource.Amount) cluster.Phase {
	return cluster.Phase{Duration: length, Demand: resource.Of(cpu, 0).With(resource.Disk, disk)}
}

func TestDemandError(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		a, b []cluster.Phase
		want float64
	}{
		"equal":             {phasesOf(reads(s, 5, 0), reads(s, 1, 7)), phasesOf(reads(s, 5, 0), reads(s, 1, 7)), 0},
		"the same in parts": {phasesOf(reads(2*s, 5, 0)), phasesOf(reads(s, 5, 0), reads(s, 5, 0)), 0},
		"nothing":           {nil, phasesOf(reads(s, 0, 0)), 0},
		"all is missed":     {nil, phasesOf(reads(s, 5, 0)), 1},
		"half as long":      {phasesOf(reads(s, 5, 0)), phasesOf(reads(2*s, 5, 0)), 0.5},
		"one of two":        {phasesOf(reads(s, 5, 0)), phasesOf(reads(s, 5, 9)), 0.5},
		// CPU: 4 and 4 of 12; disk, 10 for the other half: nothing in common.
		"at another time": {phasesOf(reads(s, 4, 10), reads(s, 4, 0)), phasesOf(reads(s, 4, 0), reads(s, 8, 10)),
			(4.0/12 + 1) / 2},
	} {
		if got, back := demandError(c.a, c.b), demandError(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%s: %v and %v, want %v", name, got, back, c.want)
		}
	}
}
