package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/leveling"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// reading is how the program is read where the paper leaves it open (decision 43).
type reading struct {
	name string
	set  bool // a set demands the same in all intervals, and otherwise what its phases do
	core bool // α and β are of a core, and otherwise of the node
}

var readings = []reading{{"by phases, node", false, false}, {"by phases, core", false, true},
	{"one demand per set, node", true, false}, {"one demand per set, core", true, true}}

// nodeCores is the node of Fig. 10, as of one slave.
const nodeCores = 16 * resource.Core

// problem returns the program of Table V with demands drawn from r. All sets but the critical one, A, may move.
func (g reading) problem(r *rand.Rand) *leveling.Problem {
	p := &leveling.Problem{Capacity: nodeCores}
	of := p.Capacity
	if g.core {
		of = resource.Core
	}
	p.Suspension, p.Delay = of*3/10, of/20
	for i, s := range setsOf(r).Jobs[0].Stages {
		one := s.Phases[r.IntN(len(s.Phases))].Demand[resource.CPU]
		demand := demandsOf(&s, interval)
		for t := range demand {
			if g.set {
				demand[t] = resource.Amount(s.Tasks) * one
			}
		}
		if i == 0 {
			p.Fixed = demand
			continue
		}
		p.Sets = append(p.Sets, leveling.Set{Demand: demand, Float: ecsWindow - len(demand)})
	}
	return p
}

// demandsOf is the CPU that a set demands in each interval in which it runs: a phase holds for the intervals of which
// it has the middle.
func demandsOf(s *cluster.Stage, every time.Duration) []resource.Amount {
	const rounded = 10 * time.Millisecond // by which phases that were rounded may be too long together
	demand := make([]resource.Amount, (s.Duration-rounded+every-1)/every)
	at, ends := 0, s.Phases[0].Duration
	for t := range demand {
		for at < len(s.Phases)-1 && time.Duration(t)*every+every/2 > ends {
			at++
			ends += s.Phases[at].Duration
		}
		demand[t] = resource.Amount(s.Tasks) * s.Phases[at].Demand[resource.CPU]
	}
	return demand
}

// ecsSolved is a problem and its solution. Amounts are of the node over one interval.
type ecsSolved struct {
	Value  float64  `json:"value"`
	Bound  float64  `json:"bound"`
	Proved bool     `json:"proved"`
	Gap    float64  `json:"gap"`
	States int      `json:"states"`
	AtOnce float64  `json:"at_once"` // over-allocated if all sets run at once
	Over   float64  `json:"over"`    // by the solution
	Stops  int      `json:"stops"`
	Moved  []string `json:"moved"` // the sets that do not run at once
}

// solvedOf solves a problem; names are those of its sets, or nil.
func solvedOf(p *leveling.Problem, names []string) (s ecsSolved, err error) {
	solution, err := leveling.Solve(p, leveling.DefaultStates)
	if err != nil {
		return s, err
	}
	atOnce := make([][]bool, len(p.Sets))
	for j := range p.Sets {
		atOnce[j] = make([]bool, len(p.Fixed))
		for t := range p.Sets[j].Demand {
			atOnce[j][t] = true
		}
	}
	first, err := p.Cost(atOnce)
	if err != nil {
		return s, err
	}
	last, err := p.Cost(solution.Runs)
	if err != nil {
		return s, err
	}
	of := func(a resource.Amount) float64 { return float64(a) / float64(p.Capacity) }
	s = ecsSolved{of(solution.Value), of(solution.Bound), solution.Proved, solution.Gap(), solution.States,
		of(first.Over), of(last.Over), last.Suspensions, nil}
	for j, name := range names {
		if slices.Contains(solution.Runs[j][:len(p.Sets[j].Demand)], false) {
			s.Moved = append(s.Moved, name)
		}
	}
	return s, nil
}

func table5(l *lab.Lab) (*lab.Findings, error) {
	var names []string // of the sets that may move
	for _, s := range ecsSets[1:] {
		names = append(names, s.name)
	}
	t, err := lab.EachRun(l, "readings", len(readings), func(point, run int) (ecsSolved, error) {
		return solvedOf(readings[point].problem(rand.New(rand.NewPCG(l.RunSeed(run), 5))), names)
	})
	if err != nil {
		return nil, err
	}
	table := lab.NewTable(
		"Problems of Table V (amounts are of the node over one interval; median of the draws, and range)",
		"demand, unit of α and β", "proved optimal", "worst optimality gap", "states", "value",
		"over-allocation if all run at once", "over-allocation, leveled", "suspensions",
		"over-allocated at first, and a set moves", "E or F moves", "E and F move")
	data := lab.NewTable("problems", "reading", "run", "value", "bound", "proved", "gap", "states", "at_once", "over",
		"suspensions", "moved")
	for i, g := range readings {
		across := func(digits int, number func(ecsSolved) float64) string {
			return lab.AcrossTraces(lab.Values(t[i], number), digits)
		}
		m := movesOf(t[i])
		_, gap := lab.Extremes(lab.Values(t[i], func(s ecsSolved) float64 { return s.Gap }))
		table.Add(g.name, lab.Percent(proved(t[i])), lab.Percent(gap),
			across(0, func(s ecsSolved) float64 { return float64(s.States) }),
			across(2, func(s ecsSolved) float64 { return s.Value }), across(2, atOnce), across(2, leveled),
			across(0, func(s ecsSolved) float64 { return float64(s.Stops) }),
			fmt.Sprintf("%d of %d", m.any, m.over), fmt.Sprintf("%d of %d", m.late, m.over),
			fmt.Sprintf("%d of %d", m.both, m.over))
		for run, s := range t[i] {
			data.Put(g.name, run, s.Value, s.Bound, s.Proved, s.Gap, s.States, s.AtOnce, s.Over, s.Stops, s.Moved)
		}
	}
	return &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: table5Claims(t)}, nil
}

func atOnce(s ecsSolved) float64  { return s.AtOnce }
func leveled(s ecsSolved) float64 { return s.Over }

// proved is the share of problems that were solved to the optimum.
func proved(all []ecsSolved) float64 {
	return lab.Mean(lab.Values(all, func(s ecsSolved) float64 {
		if s.Proved {
			return 1
		}
		return 0
	}))
}

// moves count problems with over-allocation if all sets run at once, those where any set moves, those where E or F
// does, and those where both do.
type moves struct{ over, any, late, both int }

func movesOf(all []ecsSolved) (m moves) {
	for _, s := range all {
		if s.AtOnce == 0 {
			continue
		}
		m.over++
		e, f := slices.Contains(s.Moved, "E"), slices.Contains(s.Moved, "F")
		if len(s.Moved) > 0 {
			m.any++
		}
		if e || f {
			m.late++
		}
		if e && f {
			m.both++
		}
	}
	return m
}

// table5Claims judges solutions by reading and draw. What is removed, and which sets move, is judged by phases
// with both units.
func table5Claims(t [][]ecsSolved) []lab.Claim {
	const table = "ecs/table5"
	least, all := 1.0, 0
	for _, of := range t {
		least, all = min(least, proved(of)), all+len(of)
	}
	left := func(i int) float64 { return lab.Mean(lab.Values(t[i], leveled)) / lab.Mean(lab.Values(t[i], atOnce)) }
	node, core := movesOf(t[0]), movesOf(t[1])
	moving := func(m moves) bool { return 2*m.both >= m.over && m.over > 0 }
	return []lab.Claim{
		Paper.Stated(table, "optimal").Judge(fmt.Sprintf("%s or more of each of %d kinds of problems, %d in all",
			lab.Percent(least),
			len(t), all), least == 1, least >= 0.9),
		Paper.Stated(table, "leveled").Judge(fmt.Sprintf("%s removed with α and β of the node, %s with those of a core",
			lab.Percent(1-left(0)), lab.Percent(1-left(1))), max(left(0), left(1)) <= 0.5, min(left(0), left(1)) <= 0.5),
		Paper.Stated(table, "suspended").Because(node.late, node.over).Judge(
			fmt.Sprintf("both move in %d of %d problems with α and β of the node, in %d of %d with those of a core",
				node.both, node.over, core.both, core.over), moving(node) && moving(core), moving(node) || moving(core)),
	}
}
