package leveling

import "github.com/bellows-rm/bellows/core/resource"

// DefaultStates is a budget with which problems of the paper's size, up to 6 sets and 15 intervals, are proved, and
// which takes less than 50 ms for most larger ones.
const DefaultStates = 400_000

// Solution is the best schedule that was found.
type Solution struct {
	// Runs says of each set and each interval whether the set runs.
	Runs [][]bool
	// Value is Cost.Value of the schedule. Bound is what no schedule is below; Proved says that they are equal.
	Value, Bound resource.Amount
	Proved       bool
	// States is how many states were looked at.
	States int
}

// Gap returns the optimality gap: by how much the value may be above the least one, as a share of the value.
func (s *Solution) Gap() float64 {
	if s.Proved {
		return 0
	}
	return float64(s.Value-s.Bound) / float64(s.Value)
}

// Solve returns the best schedule of p, or the best that it finds while it looks at up to budget states. A state is
// how much each set has done when and whether it stands still, or a part of that. With a budget of 0 it only moves
// one set at a time. The error is ErrImpossible, or says which field of p is wrong.
//
// It finds a first schedule by moving sets one at a time, and a bound by prices of demand; then it goes forward over
// the intervals with the best states, ever more of them, until it has dropped none that could be better.
func Solve(p *Problem, budget int) (Solution, error) {
	if err := p.check(); err != nil {
		return Solution{}, err
	}
	g, err := newProgram(p)
	if err != nil {
		return Solution{}, err
	}
	g.earliest(g.schedule)
	g.descend(g.schedule)
	g.ascend()
	for j := range g.runs {
		copy(g.schedule[j], g.runs[j])
	}
	g.descend(g.schedule)
	states := 0
	if g.bound < g.value {
		g.priced(g.prices)
		states = g.search(budget)
	}
	return Solution{
		Runs: g.runs, States: states, Proved: g.bound >= g.value,
		Value: resource.Amount(g.value) * g.unit, Bound: resource.Amount(min(g.bound, g.value)) * g.unit,
	}, nil
}
