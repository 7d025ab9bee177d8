package ecs

import (
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/studies/coreshare"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// made has trials of one cluster and one run: of each benchmark what of returns for it under a scheduler.
func made(of func(b *benchmark, scheduler string) ecsTrial) trials {
	var rows [][][]ecsTrial
	for i := range benchmarks {
		var row [][]ecsTrial
		for _, c := range contenders {
			row = append(row, []ecsTrial{of(&benchmarks[i], c.Label)})
		}
		rows = append(rows, row)
	}
	return trials{append(rows, make([][]ecsTrial, len(contenders)))}
}

// leveledTo is a trial of some seconds with over-allocation, a share of the cluster, after some problems.
func leveledTo(seconds, over float64, problems int) ecsTrial {
	return ecsTrial{Makespan: seconds, Over: over, work: work{Asks: problems}}
}

// TestVerdictsOfECS: the paper's own numbers hold, and numbers on either side of a criterion do not.
func TestVerdictsOfECS(t *testing.T) {
	same := func(*benchmark, string) ecsTrial {
		return ecsTrial{Completion: 1, Map: 1, Reduce: 1, Containers: 1, CPU: 0.5, Memory: 0.5, work: work{Stops: 1}}
	}
	// paper has the numbers of the paper; the savings of time are times a factor.
	paper := func(factor float64) func(b *benchmark, scheduler string) ecsTrial {
		saved := map[string][2]float64{"wordcount": {0.29, 0.17}, "terasort": {0.19, 0.14}, "inverted-index": {0.26, 0.17},
			"pagerank": {0.2, 0.1}, "join": {0.21, 0.1}, "k-means": {0.02, 0.01}, "bayes": {0.04, 0.01}}
		gains := map[string]float64{"wordcount": 0.25, "inverted-index": 0.25, "k-means": 0.02, "bayes": 0.04}
		return func(b *benchmark, scheduler string) ecsTrial {
			one := same(b, scheduler)
			gain, named := gains[b.name]
			if !named {
				gain = 0.23
			}
			switch own := 1 - factor*saved[b.name][0]; scheduler {
			case "ECS":
				one = ecsTrial{Completion: own, Map: 1 + 0.11*factor, Reduce: 1 + 0.11*factor, Containers: 1 + factor*0.5,
					CPU: 0.5 + gain*factor, Memory: 0.5 + 0.04*factor, work: one.work}
			case "PRISM":
				one = ecsTrial{Completion: own / (1 - factor*saved[b.name][1]), Map: 1.4, Reduce: 1.4, Containers: 1,
					CPU: 0.5 + gain*factor - 0.12*factor, Memory: 0.5 + 0.01*factor}
			}
			return one
		}
	}
	// idle has the numbers of the paper, and leveling that never acts.
	idle := func(b *benchmark, scheduler string) ecsTrial {
		one := paper(1)(b, scheduler)
		one.Stops = 0
		return one
	}
	verdicts := func(v lab.Verdict, n int) (all []lab.Verdict) {
		for range n {
			all = append(all, v)
		}
		return all
	}
	sets := func(idle, over [3]float64) (t [][]ecsProfile) {
		for i := range idle {
			t = append(t, []ecsProfile{{Idle: idle[i], Over: over[i]}})
		}
		return t
	}
	// cases are native containers, which demand too much for a share of the time, and elastic ones.
	cases := func(elastic ecsCase, beyond float64) [][]ecsCase {
		return [][]ecsCase{{{Makespan: 100, Mean: 10, Init: 10, Used: 0.5, Beyond: beyond}}, {elastic}}
	}
	phases := func(first, last float64) []cluster.Phase {
		return []cluster.Phase{phase("", 9, demand(first, 1)), phase("", 1, demand(last, 1))}
	}
	// problems have one problem of each reading: of both by phases, how much is left of what was over-allocated, and
	// which sets move.
	problems := func(proved bool, node, core float64, nodeMoves, coreMoves string) [][]ecsSolved {
		of := func(left float64, moves string) []ecsSolved {
			return []ecsSolved{{Proved: proved, AtOnce: 1, Over: left, Moved: strings.Fields(moves)}}
		}
		return [][]ecsSolved{of(node, nodeMoves), of(core, coreMoves), of(0, "B"), of(0, "B")}
	}
	// sweep has the detector's settings: none, a threshold of 0, the defaults, and these with λ 0.97.
	sweep := func(always, own, plain ecsTrial) *detectorSweep {
		d := defaults()
		s := &detectorSweep{settings: []detected{{}, {"0", "0.9"}, d, {d.threshold, "0.97"}}}
		for range treated {
			s.trials = append(s.trials, [][]ecsTrial{{leveledTo(100, 0.1, 0)}, {always}, {own}, {plain}})
		}
		return s
	}
	// wrongs have right forecasts, with 10 stops and 0.1 over-allocated without leveling, and wrong ones: what leveling
	// leads to.
	wrongs := func(wrong ...ecsTrial) wrongSweep {
		without := []ecsTrial{leveledTo(100, 0.1, 0)}
		of := [][2][]ecsTrial{{without, {{Makespan: 100, work: work{Stops: 10}}}}}
		for _, w := range wrong {
			of = append(of, [2][]ecsTrial{without, {w}})
		}
		return wrongSweep{of, of}
	}
	stopped := func(seconds, over float64, stops int) ecsTrial {
		return ecsTrial{Makespan: seconds, Over: over, work: work{Stops: stops}}
	}
	// overheads have problems with states by size and interval, and what is left of over-allocation of 0.1 by each
	// interval; where all is left, no task is stopped.
	overheads := func(states func(size, interval int) int, left ...float64) *overheadSweep {
		s := &overheadSweep{}
		var sizes [][][]ecsSolved
		for i := range ecsSizes {
			var of [][]ecsSolved
			for k := range intervals {
				of = append(of, []ecsSolved{{States: states(i, k)}})
			}
			sizes = append(sizes, of)
		}
		s.problems = [][][][]ecsSolved{sizes, sizes}
		for range clusters {
			of := [][]ecsTrial{{leveledTo(100, 0.1, 0)}}
			for point := 1; point <= len(intervals)*len(movable); point++ {
				one := leveledTo(100, left[(point-1)/len(movable)], 1)
				if one.Over < 0.1 {
					one.Stops = 1
				}
				of = append(of, []ecsTrial{one})
			}
			s.trials = append(s.trials, of)
		}
		return s
	}
	// recorded are outcomes of one draw of each source, under all conditions alike.
	recorded := func(of func(source, scheduler string) outcome) (all outcomes) {
		for _, s := range ecsSources {
			var one [][]outcome
			for _, c := range ecsOnRecorded("") {
				one = append(one, []outcome{of(s.name, c.Label)})
			}
			all = append(all, [][][]outcome{one, one, one, one})
		}
		return all
	}
	// real has ECS, PRISM that completes jobs at a time, and others that take 1.
	real := func(own outcome, spark, prism float64) []lab.Claim {
		return realClaims(ecsSources, recorded(func(source, scheduler string) outcome {
			o := outcome{Makespan: 1, Completion: 1, CPU: 0.4, Over: 0.1}
			switch {
			case scheduler == "PRISM":
				o.Completion = prism
			case scheduler == "ECS" && source == "Spark q72":
				o = own
				o.Completion = spark
			case scheduler == "ECS":
				o = own
			}
			return o
		}))
	}
	// slowly has ECS without leveling, with 0.1 of 100 s over-allocated, and ECS.
	slowly := func(own ecsTrial) []lab.Claim {
		return slowClaims(slowTrials{{{leveledTo(100, 0.1, 0)}, {own}}})
	}
	ordered := func(one ecsTrial, asks, impossible int) ecsTrial {
		one.Asks, one.Impossible = asks, impossible
		return one
	}
	// lostTo has workloads with makespans of ECS over ECS without leveling by loss: nothing, measured, half; and what of
	// the work of 2 and of 16 programs is left that share a core.
	lostTo := func(two, most float64, stops int, ends ...[3]float64) []lab.Claim {
		var all lostTrials
		for _, by := range ends {
			var of [][][]ecsTrial
			for _, over := range by {
				plain, own := stopped(100, 0.1, 0), stopped(100*over, 0.05, stops)
				of = append(of, [][]ecsTrial{{plain, plain}, {own, own}}) // an interval needs two runs
			}
			all = append(all, of)
		}
		run := func(cpu float64) coreshare.Run { return coreshare.Run{Wall: 1, CPU: cpu} }
		point := func(copies int, left float64) coreshare.Point {
			return coreshare.Point{Copies: copies, Pairs: []coreshare.Pair{{Together: run(1), Apart: run(left)}}}
		}
		list := losses()
		return lostClaims(all, []lost{list[0], list[1], list[len(list)-1]}, coreshare.Series{Programs: []coreshare.Program{
			{Ordinary: true, Points: []coreshare.Point{point(2, two), point(16, most)}}}})
	}
	acts := []bool{true, true}
	half := verdicts(lab.Partly, 14)
	half[4], half[6], half[11], half[13] = lab.Holds, lab.Holds, lab.Holds,
		lab.Holds // those without a number of the paper
	for _, c := range []struct {
		name string
		made []lab.Claim
		want []lab.Verdict
	}{
		{"Fig. 8 and 9", fig8Claims(made(paper(1))), verdicts(lab.Holds, 14)},
		{"Fig. 8 and 9, half the gains", fig8Claims(made(paper(0.5))), half},
		{"Fig. 8 and 9, no gain", fig8Claims(made(same)),
			append(append(verdicts(lab.Fails, 4), lab.Holds), verdicts(lab.Fails, 9)...)},
		{"Fig. 8 and 9, leveling never acts", fig8Claims(made(idle)),
			append(append(verdicts(lab.Holds, 9), lab.Untested), verdicts(lab.Holds, 4)...)},
		{"Fig. 10", fig10Claims(sets([3]float64{0.20, 0.23, 0.15}, [3]float64{0.1, 0, 0.02})), verdicts(lab.Holds, 4)},
		{"Fig. 10, twice as fragmented", fig10Claims(sets([3]float64{0.20, 0.26, 0.25}, [3]float64{0.04, 0.02, 0.03})),
			verdicts(lab.Partly, 4)},
		{"Fig. 10, all alike", fig10Claims(sets([3]float64{0.04, 0.04, 0.04}, [3]float64{0.04, 0.04, 0.04})),
			verdicts(lab.Fails, 4)},
		{"Fig. 10, too fragmented", fig10Claims(sets([3]float64{0.2, 0.4, 0.3}, [3]float64{0.1, 0, 0.05})),
			[]lab.Verdict{lab.Holds, lab.Holds, lab.Fails, lab.Holds}},
		{"Fig. 2 and 3", fig2Claims(cases(ecsCase{Makespan: 80, Mean: 14, Init: 10, Used: 0.6, Over: 0.1, Beyond: 0.2},
			0)), verdicts(lab.Holds, 4)},
		{"Fig. 2 and 3, hardly",
			fig2Claims(cases(ecsCase{Makespan: 97, Mean: 14, Init: 15, Used: 0.5, Over: 0.1, Beyond: 0.2}, 0.1)),
			verdicts(lab.Partly, 4)},
		{"Fig. 2 and 3, no better",
			fig2Claims(cases(ecsCase{Makespan: 100, Mean: 10, Init: 25, Used: 0.5, Over: 0, Beyond: 0}, 0)),
			verdicts(lab.Fails, 4)},
		{"Fig. 2 and 3, few at first",
			fig2Claims(cases(ecsCase{Makespan: 80, Mean: 14, Init: 4, Used: 0.6, Over: 0.1, Beyond: 0.2}, 0))[:1],
			verdicts(lab.Fails, 1)},
		{"assumed, all near", assumedClaims([]float64{0.25, 0.4}, []float64{0.12, 0.25}, []float64{0.1, 0.2}, acts),
			verdicts(lab.Holds, 3)},
		{"assumed, half", assumedClaims([]float64{0.15, 0.3}, []float64{0.1, 0.17}, []float64{-0.1, 0.2}, acts),
			verdicts(lab.Partly, 3)},
		{"assumed, too much", assumedClaims([]float64{0.29, 0.9}, []float64{0.17, 0.6}, []float64{-0.1, -0.2}, acts),
			verdicts(lab.Fails, 3)},
		{"assumed, leveling acts once", assumedClaims([]float64{0.25, 0.4}, []float64{0, 0.25}, []float64{0.1, 0.2},
			[]bool{false, true}), verdicts(lab.Holds, 3)},
		{"assumed, leveling never acts", assumedClaims([]float64{0.25, 0.4}, []float64{0.12, 0.25}, []float64{0.1, 0.2},
			[]bool{false, false}), []lab.Verdict{lab.Holds, lab.Untested, lab.Holds}},
		{"Fig. 1", fig1Claims(0.12, 0.33, 0.6, 0.7, phases(1, 0.2)), []lab.Verdict{lab.Untested, lab.Untested, lab.Holds}},
		{"Fig. 1, busy", fig1Claims(0.12, 0.30, 0.6, 0.4, phases(0.2, 1)), []lab.Verdict{lab.Fails, lab.Fails, lab.Partly}},
		{"Fig. 1, steady", fig1Claims(0.10, 0.33, 0.4, 0.6, phases(0.9, 1)), []lab.Verdict{lab.Fails, lab.Fails, lab.Fails}},
		{"Table V", table5Claims(problems(true, 0.5, 0.1, "E F", "D F E")), verdicts(lab.Holds, 3)},
		{"Table V, one of both", table5Claims(problems(true, 0.5, 0.1, "E", "F")), []lab.Verdict{lab.Holds, lab.Holds,
			lab.Fails}},
		{"Table V, of a core alone", table5Claims(problems(true, 0.6, 0.5, "B", "E F")), []lab.Verdict{lab.Holds, lab.Partly,
			lab.Partly}},
		{"Table V, other sets", table5Claims(problems(false, 0.6, 0.6, "B", "D")), verdicts(lab.Fails, 3)},
		{"detector", detectorClaims(sweep(leveledTo(100, 0.05, 100), leveledTo(100, 0.05, 20),
			leveledTo(100, 0.05, 100)), defaults()), verdicts(lab.Holds, 4)},
		{"detector, more problems than need be",
			detectorClaims(sweep(leveledTo(100, 0.05, 100), leveledTo(100, 0.06, 60), leveledTo(100, 0.07, 50)),
				defaults()), verdicts(lab.Partly, 4)},
		{"detector, in vain",
			detectorClaims(sweep(leveledTo(100, 0.05, 100), leveledTo(103, 0.1, 60), leveledTo(100, 0.05, 50)),
				defaults()), verdicts(lab.Fails, 4)},
		{"wrong", wrongClaims(wrongs(stopped(101, 0.05, 20), stopped(90, 0.05, 5))), verdicts(lab.Holds, 3)},
		{"wrong, leveling acts on one kind", wrongClaims(wrongs(stopped(125, 0.2, 0), stopped(100, 0.05, 5))),
			verdicts(lab.Holds, 3)},
		{"wrong, leveling never acts", wrongClaims(wrongs(stopped(100, 0.1, 0))), verdicts(lab.Untested, 3)},
		{"wrong, slower", wrongClaims(wrongs(stopped(103, 0.05, 40), stopped(90, 0.05, 5), stopped(100, 0.2, 5))),
			verdicts(lab.Partly, 3)},
		{"wrong, too slow", wrongClaims(wrongs(stopped(125, 0.2, 41))), verdicts(lab.Fails, 3)},
		{"slow start", slowly(ordered(stopped(101, 0.049, 9), 40, 0)), verdicts(lab.Holds, 3)},
		{"slow start, hardly", slowly(ordered(stopped(103, 0.09, 9), 40, 2)), verdicts(lab.Partly, 3)},
		{"slow start, not", slowly(ordered(stopped(104, 0.1, 9), 40, 3)), verdicts(lab.Fails, 3)},
		{"slow start, no problem", slowly(stopped(100, 0.1, 0)), verdicts(lab.Untested, 3)},
		{"slow start, leveling never acts", slowly(ordered(stopped(100, 0.1, 0), 40, 0)),
			[]lab.Verdict{lab.Holds, lab.Untested, lab.Untested}},
		{"over-allocated", lostTo(0.9, 0.2, 5, [3]float64{1, 0.98, 0.9}, [3]float64{1, 0.99, 0.9}), verdicts(lab.Holds, 2)},
		{"over-allocated, hardly", lostTo(0.9, 0.79, 5, [3]float64{1, 1, 0.9}, [3]float64{1, 1.1, 1}),
			verdicts(lab.Partly, 2)},
		{"over-allocated, one with what was measured", lostTo(0.9, 0.79, 5, [3]float64{1, 0.9, 1}, [3]float64{1, 1, 1}),
			verdicts(lab.Partly, 2)},
		{"over-allocated, not", lostTo(0.9, 0.85, 5, [3]float64{0.9, 1, 1}, [3]float64{0.9, 1.1, 1.1}),
			verdicts(lab.Fails, 2)},
		{"over-allocated, nothing is lost, and leveling never acts", lostTo(1, 1, 0, [3]float64{1, 1, 1},
			[3]float64{1, 1, 1}), []lab.Verdict{lab.Fails, lab.Untested}},
		{"overhead", overheadClaims(overheads(func(i, k int) int { return (1 + i) * (1 + k) }, 0.05, 0.06, 0.07, 0.08,
			0.1)), verdicts(lab.Holds, 2)},
		{"overhead, of sizes alone", overheadClaims(overheads(func(i, _ int) int { return 1 + i }, 0.05, 0.07, 0.06, 0.08,
			0.1)), verdicts(lab.Partly, 2)},
		{"overhead, alike", overheadClaims(overheads(func(_, _ int) int { return 1000 }, 0.08, 0.06, 0.05, 0.05, 0.1)),
			verdicts(lab.Fails, 2)},
		{"overhead, one interval acts", overheadClaims(overheads(func(_, _ int) int { return 1000 }, 0.05, 0.1, 0.1, 0.1,
			0.1)), []lab.Verdict{lab.Fails, lab.Untested}},
		{"Table IV", table4Claims(true, 10, 10, map[string]float64{"CPU": 0.1, "I/O": 0.2, "hybrid": 0.2}, 1.5),
			[]lab.Verdict{lab.Untested, lab.Holds, lab.Holds, lab.Holds}},
		{"Table IV, hardly", table4Claims(true, 6, 10, map[string]float64{"CPU": 0.15, "I/O": 0.2, "hybrid": 0.2}, 1.25),
			[]lab.Verdict{lab.Untested, lab.Partly, lab.Partly, lab.Partly}},
		{"Table IV, not", table4Claims(false, 5, 10, map[string]float64{"CPU": 0.2, "I/O": 0.2, "hybrid": 0.2}, 1.2),
			verdicts(lab.Fails, 4)},
		{"real", real(outcome{Makespan: 1.01, Completion: 0.71, CPU: 0.5, Over: 0.05, Stops: 1}, 0.71, 0.85),
			verdicts(lab.Holds, 6)},
		{"real, leveling never acts", real(outcome{Makespan: 1.01, Completion: 0.71, CPU: 0.5, Over: 0.05}, 0.71, 0.85),
			append(verdicts(lab.Holds, 3), verdicts(lab.Untested, 3)...)},
		{"real, hardly", real(outcome{Makespan: 1.03, Completion: 0.9, CPU: 0.44, Over: 0.09, Stops: 1}, 1, 1.07),
			verdicts(lab.Partly, 6)},
		{"real, no gain", real(outcome{Makespan: 1.3, Completion: 1, CPU: 0.4, Over: 0.1, Stops: 1}, 1, 1),
			verdicts(lab.Fails, 6)},
		{"real, too much", real(outcome{Makespan: 1, Completion: 0.1, CPU: 0.8, Over: 0, Stops: 1}, 0.1, 0.3)[:4],
			[]lab.Verdict{lab.Fails, lab.Holds, lab.Fails, lab.Fails}},
		{"recorded, all", recordedClaims([][2]float64{{0.12, 0.3}, {0.2, 0.12}}, 2), []lab.Verdict{lab.Holds, lab.Holds}},
		{"recorded, CPU alone", recordedClaims([][2]float64{{0.12, 0}, {0.2, 0}}, 1), []lab.Verdict{lab.Partly, lab.Partly}},
		{"recorded, none", recordedClaims([][2]float64{{0.11, 0}, {0.1, 0.2}}, 0), []lab.Verdict{lab.Fails, lab.Fails}},
	} {
		if got := lab.Verdicts(c.made); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
			for _, claim := range c.made {
				t.Logf("%s: %s: %s", claim.Ours, claim.Says, claim.Holds)
			}
		}
	}
}
