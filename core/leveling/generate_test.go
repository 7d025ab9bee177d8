package leveling

import (
	"math/rand/v2"

	"github.com/bellows-rm/bellows/core/resource"
)

// kind is which of the readings of Table V and of the weights a problem follows.
type kind struct {
	Progress   bool // demands follow the work done; otherwise a set has one demand
	Node       bool // α and β are of the node; otherwise of a core
	Precedence bool // reduces shuffle without a pause, and reduce after the maps have ended
}

var kinds = []kind{{}, {Node: true}, {Progress: true}, {Progress: true, Node: true},
	{Precedence: true}, {Node: true, Precedence: true}, {Progress: true, Precedence: true},
	{Progress: true, Node: true, Precedence: true}}

func (k kind) String() string {
	name := "set"
	if k.Progress {
		name = "progress"
	}
	if k.Node {
		name += "-node"
	} else {
		name += "-cores"
	}
	if k.Precedence {
		name += "-precedence"
	}
	return name
}

// weigh sets α and β to the paper's 0.3 and 0.05.
func (k kind) weigh(p *Problem) {
	of := resource.Core
	if k.Node {
		of = p.Capacity
	}
	p.Suspension, p.Delay = of*3/10, of/20
}

// newSet returns a set of tasks with the CPU demands of Table IV, for I/O-intensive benchmarks: a map maps and sorts,
// a reduce shuffles, sorts and reduces. The lengths of phases are ours.
func (k kind) newSet(r *rand.Rand, duration, float, tasks int, reduce bool) (s Set) {
	s.Float = float
	phases := []struct {
		share  float64
		demand resource.Amount
	}{{0.7, resource.Core}, {1, resource.Core / 2}}
	if reduce {
		phases[0] = phases[1]
		phases[0].share, phases[0].demand = 0.4, 3*resource.Core/10
		phases[1].share, phases[1].demand = 0.6, resource.Core/2
		phases = append(phases, phases[1])
		phases[2].share, phases[2].demand = 1, resource.Core
	}
	at := 0
	one := phases[r.IntN(len(phases))].demand
	for i := range duration {
		for float64(i) >= phases[at].share*float64(duration) {
			at++
		}
		demand := phases[at].demand
		if reduce && at == 0 && k.Precedence {
			s.Shuffle = i + 1
		}
		if !k.Progress {
			demand = one
		}
		s.Demand = append(s.Demand, resource.Amount(tasks)*demand)
	}
	return s
}

// tableV returns the task sets of Table V. The paper does not have their demands: they are of 5 to 7 tasks, on 16
// cores.
func (k kind) tableV(r *rand.Rand) *Problem {
	p := &Problem{Capacity: 16 * resource.Core}
	critical := k.newSet(r, 15, 0, 5+r.IntN(3), false)
	p.Fixed = critical.Demand
	for i, duration := range []int{12, 2, 6, 8, 9} {
		p.Sets = append(p.Sets, k.newSet(r, duration, 15-duration, 5+r.IntN(3), i >= 2))
	}
	k.weigh(p)
	if k.Precedence {
		p.Sets[0].Float = 3
		p.Sets[2].After, p.Sets[3].After = []int{1}, []int{1}
	}
	return p
}

// random returns a problem of one fixed set and n-1 others, with 1.15 times the mean demand as capacity.
func (k kind) random(r *rand.Rand, n, intervals int) *Problem {
	p := &Problem{Fixed: k.newSet(r, intervals, 0, 5+r.IntN(3), false).Demand}
	var sum resource.Amount
	for _, a := range p.Fixed {
		sum += a
	}
	for range n - 1 {
		duration := 2 + r.IntN(max(1, intervals*3/4-1))
		s := k.newSet(r, duration, intervals-duration, 5+r.IntN(3), len(p.Sets) >= (n-1)/2)
		for _, a := range s.Demand {
			sum += a
		}
		p.Sets = append(p.Sets, s)
	}
	for j := range p.Sets {
		s := &p.Sets[j]
		for m := 0; s.Shuffle > 0 && m < (n-1)/2; m++ {
			if d := len(p.Sets[m].Demand); d+len(s.Demand)-s.Shuffle <= intervals && r.IntN(2) == 0 {
				s.After = append(s.After, m)
			}
		}
	}
	p.Capacity = (sum*115/100/resource.Amount(intervals) + 99) / 100 * 100
	k.weigh(p)
	return p
}
