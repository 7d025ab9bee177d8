package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/leveling"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// The sweep of section V.E: control intervals in seconds, and how many sets of tasks move on a node.
var (
	intervals = []int{5, 10, 20, 40, 60}
	ecsSizes  = []int{4, 6, 12, 20, 50} // of problems
	movable   = []int{4, 12, 50}        // on the nodes of clusters: ecs.sets
)

const (
	mostIntervals = 20 // of a problem of policy ecs, which makes intervals longer if need be
	setTasks      = 36 // tasks of all sets of a node: six sets of six
	draws         = 10 // problems of each size and interval in a run
)

// defaultSets is how many sets move by default.
const defaultSets = 12

// units are what α and β are of.
var units = []struct {
	name string
	of   resource.Amount
}{{"node", nodeCores}, {"core", resource.Core}}

// sizedProblem draws a program like that of Table V with sets of tasks that move beside a critical one, in control
// intervals of some seconds. Sets last as long, and have as much float, as those of Table V. However many there are,
// they demand as much together.
func sizedProblem(unit resource.Amount, sets, seconds int, r *rand.Rand) *leveling.Problem {
	const window = ecsWindow * interval
	every := max(time.Duration(seconds)*time.Second, window/mostIntervals)
	intervals := int((window + every - 1) / every)
	p := &leveling.Problem{Capacity: nodeCores, Suspension: unit * 3 / 10, Delay: unit / 20}
	demandOf := func(s cluster.Stage) []resource.Amount {
		demand := demandsOf(&s, every)
		for t := range demand {
			demand[t] /= resource.Amount(sets + 1)
		}
		return demand
	}
	p.Fixed = demandOf(setOf("", ecsWindow, setTasks, true, r))
	for range sets {
		demand := demandOf(setOf("", ecsSets[1+r.IntN(len(ecsSets)-1)].lasts, setTasks, false, r))
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

func overhead(l *lab.Lab) (*lab.Findings, error) {
	draws, part := draws, part
	if l.Quick {
		draws, part = 1, 8*part
	}
	s := overheadSweep{}
	for _, unit := range units {
		solved, err := lab.EachRun(l, "problems, "+unit.name, len(ecsSizes)*len(intervals),
			func(point, run int) (all []ecsSolved, err error) {
				r := rand.New(rand.NewPCG(l.RunSeed(run), 0x0e))
				for range draws {
					s, err := solvedOf(sizedProblem(unit.of, ecsSizes[point/len(intervals)], intervals[point%len(intervals)],
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
			for k := range intervals {
				of = append(of, slices.Concat(solved[i*len(intervals)+k]...))
			}
			sizes = append(sizes, of)
		}
		s.problems = append(s.problems, sizes)
	}
	for i := range clusters {
		t, err := lab.EachRun(l, clusters[i].name, 1+len(intervals)*len(movable),
			func(point, run int) (ecsTrial, error) {
				return replayECS(overheadContender(point), clusters[i].cluster(), usual.loaded(part, l.RunSeed(run)))
			})
		if err != nil {
			return nil, err
		}
		s.trials = append(s.trials, t)
	}
	f := &lab.Findings{Claims: overheadClaims(&s), Data: s.data(),
		Pictures: []lab.Picture{{Name: "states",
			Caption: "States that a search for a solution looks at, by how many sets move and by the control interval " +
				"(computed)",
			Picture: s.picture()}}}
	for u := range units {
		f.Tables = append(f.Tables, s.problemTable(u))
	}
	for i := range clusters {
		f.Tables = append(f.Tables, s.clusterTable(i))
	}
	return f, nil
}

// overheadContender is ECS with a setting of the sweep.
func overheadContender(point int) lab.Contender {
	if point == 0 {
		return with("no leveling", "short", "false", "leveling", "false")
	}
	seconds, sets := intervals[(point-1)/len(movable)], movable[(point-1)%len(movable)]
	return with(fmt.Sprintf("%d s, %d sets", seconds, sets), "short", "false", "interval",
		fmt.Sprintf("%ds", seconds), "sets", strconv.Itoa(sets))
}

func (s *overheadSweep) problemTable(u int) lab.Table {
	table := lab.NewTable("Problems of a node, α and β of a "+units[u].name+" (median of the draws, and range)",
		"sets that move", "control interval", "intervals", "proved optimal", "worst optimality gap", "states",
		"at 5 µs per state", "over-allocation if all run at once, of the node", "leveled")
	for i, sets := range ecsSizes {
		for k, seconds := range intervals {
			of := s.problems[u][i][k]
			_, gap := lab.Extremes(lab.Values(of, func(p ecsSolved) float64 { return p.Gap }))
			// Amounts are over one interval.
			share := func(number func(ecsSolved) float64) string {
				return lab.Percent(lab.Mean(lab.Values(of, number)) / float64(problemIntervals(seconds)))
			}
			table.Add(strconv.Itoa(sets), fmt.Sprintf("%d s", seconds), strconv.Itoa(problemIntervals(seconds)),
				lab.Percent(proved(of)), lab.Percent(gap), lab.AcrossTraces(lab.Values(of, statesOf), 0),
				searches(lab.Median(lab.Values(of, statesOf))),
				share(atOnce), share(leveled))
		}
	}
	return table
}

// problemIntervals is how many intervals a problem has.
func problemIntervals(seconds int) int {
	return len(sizedProblem(nodeCores, 1, seconds, rand.New(rand.NewPCG(1, 1))).Fixed)
}

func statesOf(s ecsSolved) float64 { return float64(s.States) }

// searches is the simulated time of a search for a solution.
func searches(states float64) string { return lab.Decimals(1000*states*perState.Seconds(), 1) + " ms" }

// workOf adds up what leveling did in all trials.
func workOf(all []ecsTrial) (w work) {
	for _, t := range all {
		w.Asks, w.Answers, w.Proved, w.States, w.Most = w.Asks+t.Asks, w.Answers+t.Answers, w.Proved+t.Proved,
			w.States+t.States, max(w.Most, t.Most)
	}
	return w
}

// provedShare is the share of the answers that were optimal; NaN without answers.
func (w *work) provedShare() float64 { return float64(w.Proved) / float64(w.Answers) }

func (s *overheadSweep) clusterTable(at int) lab.Table {
	table := lab.NewTable("A loaded cluster, "+clusters[at].name+" (means of the runs)", "control interval, sets at most",
		"makespan", "over that without leveling", "over-allocation, seconds of the cluster", "problems to solve",
		"proved optimal", "search, mean", "longest", "stops of tasks")
	t := s.trials[at]
	for point := range t {
		of := func(number func(*ecsTrial) float64) float64 { return lab.Mean(numbersOf(t[point], number)) }
		w := workOf(t[point])
		table.Add(overheadContender(point).Label, lab.Decimals(of(ends), 0)+" s", lab.Decimals(s.ends(at, point), 3),
			lab.Decimals(of(overTime), 1), lab.Decimals(of(asks), 0), lab.Percent(w.provedShare()),
			searches(float64(w.States)/float64(w.Answers)), searches(float64(w.Most)), lab.Decimals(of(ecsStops), 0))
	}
	return table
}

// ends is the makespan with a setting over that without leveling.
func (s *overheadSweep) ends(at, point int) float64 {
	return trial.GeometricMean(lab.Ratios(numbersOf(s.trials[at][point], ends), numbersOf(s.trials[at][0], ends))).Mean
}

// removed is the share of the over-allocation without leveling that a setting removes.
func (s *overheadSweep) removed(at, point int) float64 {
	return 1 - lab.Mean(numbersOf(s.trials[at][point], overTime))/lab.Mean(numbersOf(s.trials[at][0], overTime))
}

func (s *overheadSweep) data() []lab.Table {
	problems := lab.NewTable("problems", "unit", "sets", "interval_s", "draw", "value", "bound", "proved", "gap", "states",
		"at_once", "over", "suspensions")
	for u, unit := range units {
		for i, sets := range ecsSizes {
			for k, seconds := range intervals {
				for draw, p := range s.problems[u][i][k] {
					problems.Put(unit.name, sets, seconds, draw, p.Value, p.Bound, p.Proved, p.Gap, p.States, p.AtOnce, p.Over,
						p.Stops)
				}
			}
		}
	}
	trials := lab.NewTable("trials", "cluster", "setting", "run", "makespan_s", "oa_s", "stops", "problems", "answers",
		"proved", "states", "most_states")
	for i := range clusters {
		for point := range s.trials[i] {
			for run, t := range s.trials[i][point] {
				trials.Put(clusters[i].name, overheadContender(point).Label, run, t.Makespan, overTime(&t), t.Stops, t.Asks,
					t.Answers, t.Proved, t.States, t.Most)
			}
		}
	}
	return []lab.Table{problems, trials}
}

// states is how many states a search looks at, mean of the problems of a size and an interval.
func (s *overheadSweep) states(u, size, interval int) float64 {
	return lab.Mean(lab.Values(s.problems[u][size][interval], statesOf))
}

// picture draws the states of problems with α and β of a core: a line for each interval.
func (s *overheadSweep) picture() *chart.Plot {
	p := &chart.Plot{Title: "States of a search",
		Subtitle: "computed, α and β of a core, mean of the draws; the budget is 400,000", X: "sets that move", Y: "states",
		LogX: true, LogY: true}
	for k, seconds := range intervals {
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

// overheadClaims judges the sweep.
func overheadClaims(s *overheadSweep) []lab.Claim {
	const fig = "ecs/overhead"
	states := func(i, k int) float64 { return (s.states(0, i, k) + s.states(1, i, k)) / 2 }
	var byInterval, bySize []float64 // the mean of the states at each
	for k := range intervals {
		var all []float64
		for i := range ecsSizes {
			all = append(all, states(i, k))
		}
		byInterval = append(byInterval, lab.Mean(all))
	}
	for i := range ecsSizes {
		var all []float64
		for k := range intervals {
			all = append(all, states(i, k))
		}
		bySize = append(bySize, lab.Mean(all))
	}
	interval, size := spread(byInterval), spread(bySize)
	return []lab.Claim{
		Paper.Stated(fig, "sensitive").Judge(
			fmt.Sprintf("states of a search differ by a factor of %s between intervals, and of %s between numbers of "+
				"sets that are searched", lab.Decimals(interval, 1), lab.Decimals(size, 1)), min(interval, size) >= 2,
			max(interval, size) >= 2),
		s.fineGrained(),
	}
}

// fineGrained judges how much over-allocation is removed by each interval with which tasks are stopped.
func (s *overheadSweep) fineGrained() lab.Claim {
	c := Paper.Stated("ecs/overhead", "fine-grained")
	var removed []float64
	var text []string
	finer := true
	for k, seconds := range intervals {
		r, stops, point := 0.0, 0.0, 1+k*len(movable)+slices.Index(movable, defaultSets)
		for at := range s.trials {
			r += s.removed(at, point) / float64(len(s.trials))
			stops += lab.Mean(numbersOf(s.trials[at][point], ecsStops))
		}
		if stops > 0 {
			finer = finer && (len(removed) == 0 || r < removed[len(removed)-1])
			removed, text = append(removed, r), append(text, fmt.Sprintf("%s with %d s", lab.Percent(r), seconds))
		}
	}
	if len(removed) < 2 {
		return c.NeverActed("tasks are stopped with one interval at most", "With others leveling")
	}
	return c.Judge("removed are "+strings.Join(text, ", "), finer, removed[0] > removed[len(removed)-1])
}
