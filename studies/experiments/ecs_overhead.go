package experiments

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/leveling"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
)

// The sweep of section V.E: control intervals in seconds, and how many sets of tasks move on a node.
var (
	ecsIntervals = []int{5, 10, 20, 40, 60}
	ecsSizes     = []int{4, 6, 12, 20, 50} // of problems
	ecsMovable   = []int{4, 12, 50}        // on the nodes of clusters: ecs.sets
)

const (
	ecsMostIntervals = 20 // of a problem of policy ecs, which makes intervals longer if need be
	ecsSetTasks      = 36 // tasks of all sets of a node: six sets of six
	ecsDraws         = 10 // problems of each size and interval in a run
)

// ecsDefaultSize names the setting that policy ecs has by default.
const ecsDefaultSize = "10 s, 12 sets"

// ecsUnits are what α and β are of.
var ecsUnits = []struct {
	name string
	of   resource.Amount
}{{"node", ecsNodeCores}, {"core", resource.Core}}

// sizedProblem draws a program like that of Table V with sets of tasks that move beside a critical one, in control
// intervals of some seconds. Sets last as long, and have as much float, as those of Table V. However many there are,
// they demand as much together.
func sizedProblem(unit resource.Amount, sets, seconds int, r *rand.Rand) *leveling.Problem {
	const window = ecsWindow * ecsInterval
	every := max(time.Duration(seconds)*time.Second, window/ecsMostIntervals)
	intervals := int((window + every - 1) / every)
	p := &leveling.Problem{Capacity: ecsNodeCores, Suspension: unit * 3 / 10, Delay: unit / 20}
	demandOf := func(s cluster.Stage) []resource.Amount {
		demand := demandsOf(&s, every)
		for t := range demand {
			demand[t] /= resource.Amount(sets + 1)
		}
		return demand
	}
	p.Fixed = demandOf(setOf("", ecsWindow, ecsSetTasks, true, r))
	for range sets {
		demand := demandOf(setOf("", ecsSets[1+r.IntN(len(ecsSets)-1)].lasts, ecsSetTasks, false, r))
		p.Sets = append(p.Sets, leveling.Set{Demand: demand, Float: intervals - len(demand)})
	}
	return p
}

// overheadSweep has what the sweep gave: problems by unit, size, interval and draw, and trials by cluster, setting
// and run. The first setting does not level; the others are intervals, for each of which there are numbers of sets.
type overheadSweep struct {
	problems [][][][]ecsSolved
	trials   [][][]ecsTrial
}

func ecsOverhead(l *lab) (*Findings, error) {
	draws, part := ecsDraws, ecsPart
	if l.quick {
		draws, part = 1, 8*part
	}
	s := overheadSweep{}
	for _, unit := range ecsUnits {
		solved, err := eachRun(l, "problems, "+unit.name, len(ecsSizes)*len(ecsIntervals),
			func(point, run int) (all []ecsSolved, err error) {
				r := rand.New(rand.NewPCG(l.seed(run), 0x0e))
				for range draws {
					s, err := solvedOf(sizedProblem(unit.of, ecsSizes[point/len(ecsIntervals)], ecsIntervals[point%len(ecsIntervals)],
						r), nil)
					if err != nil {
						return nil, err
					}
					all = append(all, s)
				}
				return all, nil
			})
		if err != nil {
			return nil, err
		}
		var sizes [][][]ecsSolved
		for i := range ecsSizes {
			var of [][]ecsSolved
			for k := range ecsIntervals {
				of = append(of, slices.Concat(solved[i*len(ecsIntervals)+k]...))
			}
			sizes = append(sizes, of)
		}
		s.problems = append(s.problems, sizes)
	}
	for i := range ecsClusters {
		t, err := eachRun(l, ecsClusters[i].name, 1+len(ecsIntervals)*len(ecsMovable),
			func(point, run int) (ecsTrial, error) {
				return overheadContender(point).replayECS(ecsClusters[i].cluster(), ecsUsual.loaded(part, l.seed(run)))
			})
		if err != nil {
			return nil, err
		}
		s.trials = append(s.trials, t)
	}
	f := &Findings{Claims: ecsOverheadClaims(&s), Data: s.data(),
		Pictures: []Picture{{"states",
			"States that a search for a solution looks at, by how many sets move and by the control interval (computed)",
			s.picture()}}}
	for u := range ecsUnits {
		f.Tables = append(f.Tables, s.problemTable(u))
	}
	for i := range ecsClusters {
		f.Tables = append(f.Tables, s.clusterTable(i))
	}
	return f, nil
}

// overheadContender is ECS with a setting of the sweep.
func overheadContender(point int) contender {
	if point == 0 {
		return ecsWith("no leveling", "short", "false", "leveling", "false")
	}
	seconds, sets := ecsIntervals[(point-1)/len(ecsMovable)], ecsMovable[(point-1)%len(ecsMovable)]
	return ecsWith(fmt.Sprintf("%d s, %d sets", seconds, sets), "short", "false", "interval",
		fmt.Sprintf("%ds", seconds), "sets", strconv.Itoa(sets))
}

func (s *overheadSweep) problemTable(u int) Table {
	table := newTable("Problems of a node, α and β of a "+ecsUnits[u].name+" (median of the draws, and range)",
		"sets that move", "control interval", "intervals", "proved optimal", "worst optimality gap", "states",
		"at 5 µs per state", "over-allocation if all run at once, of the node", "leveled")
	for i, sets := range ecsSizes {
		for k, seconds := range ecsIntervals {
			of := s.problems[u][i][k]
			_, gap := extremes(values(of, func(p ecsSolved) float64 { return p.Gap }))
			// Amounts are over one interval.
			share := func(number func(ecsSolved) float64) string {
				return percent(mean(values(of, number)) / float64(problemIntervals(seconds)))
			}
			table.add(strconv.Itoa(sets), fmt.Sprintf("%d s", seconds), strconv.Itoa(problemIntervals(seconds)),
				percent(proved(of)), percent(gap), acrossTraces(values(of, statesOf), 0), searches(median(values(of, statesOf))),
				share(atOnce), share(leveled))
		}
	}
	return table
}

// problemIntervals is how many intervals a problem has.
func problemIntervals(seconds int) int {
	return len(sizedProblem(ecsNodeCores, 1, seconds, rand.New(rand.NewPCG(1, 1))).Fixed)
}

func statesOf(s ecsSolved) float64 { return float64(s.States) }

// searches is the simulated time of a search for a solution.
func searches(states float64) string { return decimals(1000*states*ecsPerState.Seconds(), 1) + " ms" }

// workOf adds up what leveling did in all trials.
func workOf(all []ecsTrial) (w ecsWork) {
	for _, t := range all {
		w.Asks, w.Answers, w.Proved, w.States, w.Most = w.Asks+t.Asks, w.Answers+t.Answers, w.Proved+t.Proved,
			w.States+t.States, max(w.Most, t.Most)
	}
	return w
}

// provedShare is the share of the answers that were optimal; NaN without answers.
func (w *ecsWork) provedShare() float64 { return float64(w.Proved) / float64(w.Answers) }

func (s *overheadSweep) clusterTable(at int) Table {
	table := newTable("A loaded cluster, "+ecsClusters[at].name+" (means of the runs)", "control interval, sets at most",
		"makespan", "over that without leveling", "over-allocation, seconds of the cluster", "problems to solve",
		"proved optimal", "search, mean", "longest", "stops of tasks")
	t := s.trials[at]
	for point := range t {
		of := func(number func(*ecsTrial) float64) float64 { return mean(numbersOf(t[point], number)) }
		w := workOf(t[point])
		table.add(overheadContender(point).Label, decimals(of(ecsEnds), 0)+" s", decimals(s.ends(at, point), 3),
			decimals(of(overTime), 1), decimals(of(ecsAsks), 0), percent(w.provedShare()),
			searches(float64(w.States)/float64(w.Answers)), searches(float64(w.Most)), decimals(of(ecsStops), 0))
	}
	return table
}

// ends is the makespan with a setting over that without leveling.
func (s *overheadSweep) ends(at, point int) float64 {
	return trial.GeometricMean(ratios(numbersOf(s.trials[at][point], ecsEnds), numbersOf(s.trials[at][0], ecsEnds))).Mean
}

// removed is the share of the over-allocation without leveling that a setting removes.
func (s *overheadSweep) removed(at, point int) float64 {
	return 1 - mean(numbersOf(s.trials[at][point], overTime))/mean(numbersOf(s.trials[at][0], overTime))
}

func (s *overheadSweep) data() []Table {
	problems := newTable("problems", "unit", "sets", "interval_s", "draw", "value", "bound", "proved", "gap", "states",
		"at_once", "over", "suspensions")
	for u, unit := range ecsUnits {
		for i, sets := range ecsSizes {
			for k, seconds := range ecsIntervals {
				for draw, p := range s.problems[u][i][k] {
					problems.put(unit.name, sets, seconds, draw, p.Value, p.Bound, p.Proved, p.Gap, p.States, p.AtOnce, p.Over,
						p.Stops)
				}
			}
		}
	}
	trials := newTable("trials", "cluster", "setting", "run", "makespan_s", "oa_s", "stops", "problems", "answers",
		"proved", "states", "most_states")
	for i := range ecsClusters {
		for point := range s.trials[i] {
			for run, t := range s.trials[i][point] {
				trials.put(ecsClusters[i].name, overheadContender(point).Label, run, t.Makespan, overTime(&t), t.Stops, t.Asks,
					t.Answers, t.Proved, t.States, t.Most)
			}
		}
	}
	return []Table{problems, trials}
}

// states is how many states a search looks at, mean of the problems of a size and an interval.
func (s *overheadSweep) states(u, size, interval int) float64 {
	return mean(values(s.problems[u][size][interval], statesOf))
}

// picture draws the states of problems with α and β of a core: a line for each interval.
func (s *overheadSweep) picture() *chart.Plot {
	p := &chart.Plot{Title: "States of a search",
		Subtitle: "computed, α and β of a core, mean of the draws; the budget is 400,000", X: "sets that move", Y: "states",
		LogX: true, LogY: true}
	for k, seconds := range ecsIntervals {
		line := chart.Series{Name: fmt.Sprintf("%d s", seconds)}
		for i, sets := range ecsSizes {
			line.X, line.Y = append(line.X, float64(sets)), append(line.Y, s.states(1, i, k))
		}
		p.Series = append(p.Series, line)
	}
	return p
}

// spread is the largest of numbers over the least, of those above 0: problems of very many sets are not searched.
func spread(all []float64) float64 {
	searched := slices.DeleteFunc(slices.Clone(all), func(n float64) bool { return n == 0 })
	return slices.Max(searched) / slices.Min(searched)
}

// ecsOverheadClaims judges the sweep.
func ecsOverheadClaims(s *overheadSweep) []Claim {
	const fig = "ecs/overhead"
	states := func(i, k int) float64 { return (s.states(0, i, k) + s.states(1, i, k)) / 2 }
	var byInterval, bySize []float64 // the mean of the states at each
	for k := range ecsIntervals {
		var all []float64
		for i := range ecsSizes {
			all = append(all, states(i, k))
		}
		byInterval = append(byInterval, mean(all))
	}
	for i := range ecsSizes {
		var all []float64
		for k := range ecsIntervals {
			all = append(all, states(i, k))
		}
		bySize = append(bySize, mean(all))
	}
	least, longest := 1.0, 0
	shortest, most, ends, removed := 1.0, 0.0, 0.0, 0.0 // of all settings, and of the default
	for point := 1; point < len(s.trials[0]); point++ {
		e, r := 0.0, 0.0
		for at := range s.trials {
			w := workOf(s.trials[at][point])
			if w.Answers > 0 {
				least = min(least, w.provedShare())
			}
			longest = max(longest, w.Most)
			e, r = e+s.ends(at, point)/float64(len(s.trials)), r+s.removed(at, point)/float64(len(s.trials))
		}
		shortest, most = min(shortest, e), max(most, r)
		if overheadContender(point).Label == ecsDefaultSize {
			ends, removed = e, r
		}
	}
	interval, size := spread(byInterval), spread(bySize)
	return []Claim{
		stated(fig, "optimizer").judge(
			fmt.Sprintf("with each setting at least %s of the problems are proved optimal; the longest search takes %s "+
				"at 5 µs per state", percent(least), searches(float64(longest))), least >= 0.9, least >= 0.5),
		stated(fig, "sensitive").judge(
			fmt.Sprintf("states of a search differ by a factor of %s between intervals, and of %s between numbers of "+
				"sets that are searched", decimals(interval, 1), decimals(size, 1)), min(interval, size) >= 2,
			max(interval, size) >= 2),
		stated(fig, "fine-grained").judge(
			fmt.Sprintf("makespan %s above the least of the sweep; %s of the over-allocation removed, at most %s",
				percent(ends/shortest-1), percent(removed), percent(most)), ends <= 1.02*shortest && removed >= most/2,
			ends <= 1.02*shortest),
	}
}
