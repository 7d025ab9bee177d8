package bound

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// row is one way to count the use of a resource: every task has a size, and the sizes of tasks that run together on a
// node never add up to more than the node's size. The area of the tasks, size × time, is therefore bounded like the
// area of the resource itself.
//
// Dual feasible functions give such sizes (Fekete and Schepers, New classes of fast lower bounds for bin packing
// problems, 2001, section 2; Clautiaux, Alves, Valério de Carvalho, A survey of dual-feasible and superadditive
// functions, 2010, section 3). All of our functions are superadditive and non-decreasing, hence f(a) + f(b) <= f(a+b)
// <= f(capacity) for tasks that fit together, on nodes of any capacity up to the reference.
type row struct {
	kind      resource.Kind
	shape     shape
	parameter resource.Amount
	reference resource.Amount // the largest capacity among the nodes
	total     float64         // f of each node's capacity, summed up
}

// shape is a family of dual feasible functions.
type shape uint8

const (
	area   shape = iota // f(x) = x
	ladder              // u^(k): rounds up just above multiples of 1/(k+1)
	gap                 // U^(ε): above 1-ε counts as all, below ε as nothing
	stairs              // f_CCM(λ): rounds in steps of λ, up above a half and down below
)

// size is f(a), at most about 1 for what fits on the largest node. 0 <= a <= reference.
func (r *row) size(a resource.Amount) float64 {
	c, p := r.reference, r.parameter
	switch r.shape {
	case ladder:
		q := (p + 1) * a
		if q%c == 0 {
			return float64(q/c) / float64(p+1)
		}
		return float64(q/c) / float64(p)
	case gap:
		switch {
		case a > c-p:
			return 1
		case a < p:
			return 0
		}
	case stairs:
		steps := float64(c / p)
		switch {
		case 2*a == c:
			return 0.5
		case 2*a < c:
			return float64(a/p) / steps
		}
		return 1 - float64((c-a)/p)/steps
	}
	return float64(a) / float64(c)
}

// String names the row in a report.
func (r *row) String() string {
	name := r.kind.String()
	amount := fmt.Sprint(int64(r.parameter))
	if r.kind == resource.Memory {
		amount = resource.FormatMemory(r.parameter)
	}
	switch r.shape {
	case ladder:
		return fmt.Sprintf("%s in parts of 1/%d", name, r.parameter+1)
	case gap:
		return fmt.Sprintf("%s beside tasks above all but %s", name, amount)
	case stairs:
		return fmt.Sprintf("%s in steps of %s", name, amount)
	}
	return name
}

// Numbers of parameters tried per family.
const (
	mostLadders = 12
	mostCuts    = 16
	fewestSteps = 50 // largest number of steps of a stair
)

// rowsOf returns the rows of all resources that count: the resources that every node has.
func rowsOf(nodes []cluster.Node, stages []stage) []row {
	var rows []row
	for k := range resource.NumKinds {
		least, most := nodes[0].Capacity[k], nodes[0].Capacity[k]
		for _, n := range nodes {
			least, most = min(least, n.Capacity[k]), max(most, n.Capacity[k])
		}
		if least <= 0 {
			continue
		}
		add := func(s shape, parameter resource.Amount) {
			r := row{kind: k, shape: s, parameter: parameter, reference: most}
			for _, n := range nodes {
				r.total += r.size(n.Capacity[k])
			}
			if r.total > 0 {
				rows = append(rows, r)
			}
		}
		add(area, 0)
		for p := resource.Amount(1); p <= mostLadders; p++ {
			add(ladder, p)
		}
		for _, cut := range cuts(stages, k, most) {
			add(gap, cut)
			if most/cut <= fewestSteps {
				add(stairs, cut)
			}
		}
	}
	return rows
}

// cuts returns sizes of tasks, up to half of a node, evenly chosen among all different ones. The rest of a node next to
// a task counts as a size, too.
func cuts(stages []stage, k resource.Kind, reference resource.Amount) []resource.Amount {
	var all []resource.Amount
	for i := range stages {
		for _, a := range []resource.Amount{stages[i].ideal[k], reference - stages[i].ideal[k],
			reference - stages[i].ideal[k] + 1} {
			if a > 0 && a <= reference/2 {
				all = append(all, a)
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) <= mostCuts {
		return all
	}
	chosen := make([]resource.Amount, mostCuts)
	for i := range chosen {
		chosen[i] = all[i*(len(all)-1)/(mostCuts-1)]
	}
	return chosen
}
