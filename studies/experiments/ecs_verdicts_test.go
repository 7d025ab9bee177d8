package experiments

import (
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
)

// ecsMade has trials of one cluster and one run: of each benchmark what of returns for it under a scheduler.
func ecsMade(of func(b *ecsBenchmark, scheduler string) ecsTrial) ecsTrials {
	var rows [][][]ecsTrial
	for i := range ecsBenchmarks {
		var row [][]ecsTrial
		for _, c := range ecsContenders {
			row = append(row, []ecsTrial{of(&ecsBenchmarks[i], c.Label)})
		}
		rows = append(rows, row)
	}
	return ecsTrials{append(rows, make([][]ecsTrial, len(ecsContenders)))}
}

// leveledTo is a trial of some seconds with over-allocation, a share of the cluster, after some problems.
func leveledTo(seconds, over float64, problems int) ecsTrial {
	return ecsTrial{Makespan: seconds, Over: over, ecsWork: ecsWork{Asks: problems}}
}

// TestVerdictsOfECS: the paper's own numbers hold, and numbers on either side of a criterion do not.
func TestVerdictsOfECS(t *testing.T) {
	same := func(*ecsBenchmark, string) ecsTrial {
		return ecsTrial{Completion: 1, Map: 1, Reduce: 1, Containers: 1, CPU: 0.5, Memory: 0.5}
	}
	// paper has the numbers of the paper; the savings of time are times a factor.
	paper := func(factor float64) func(b *ecsBenchmark, scheduler string) ecsTrial {
		saved := map[string][2]float64{"wordcount": {0.29, 0.17}, "terasort": {0.19, 0.14}, "inverted-index": {0.26, 0.17},
			"pagerank": {0.2, 0.1}, "join": {0.21, 0.1}, "k-means": {0.02, 0.01}, "bayes": {0.04, 0.01}}
		gains := map[string]float64{"wordcount": 0.25, "inverted-index": 0.25, "k-means": 0.02, "bayes": 0.04}
		return func(b *ecsBenchmark, scheduler string) ecsTrial {
			one := same(b, scheduler)
			gain, named := gains[b.name]
			if !named {
				gain = 0.23
			}
			switch own := 1 - factor*saved[b.name][0]; scheduler {
			case "ECS":
				one = ecsTrial{Completion: own, Map: 1 + 0.11*factor, Reduce: 1 + 0.11*factor, Containers: 1 + factor*0.5,
					CPU: 0.5 + gain*factor, Memory: 0.5 + 0.04*factor}
			case "PRISM":
				one = ecsTrial{Completion: own / (1 - factor*saved[b.name][1]), Map: 1.4, Reduce: 1.4, Containers: 1,
					CPU: 0.5 + gain*factor - 0.12*factor, Memory: 0.5 + 0.01*factor}
			}
			return one
		}
	}
	verdicts := func(v Verdict, n int) (all []Verdict) {
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
		return []cluster.Phase{ecsPhase("", 9, ecsDemand(first, 1)), ecsPhase("", 1, ecsDemand(last, 1))}
	}
	// problems have one problem of each reading: of both by phases, how much is left of what was over-allocated, and
	// which set moves.
	problems := func(proved bool, node, core float64, nodeMoves, coreMoves string) [][]ecsSolved {
		of := func(left float64, moves string) []ecsSolved {
			return []ecsSolved{{Proved: proved, AtOnce: 1, Over: left, Moved: []string{moves}}}
		}
		return [][]ecsSolved{of(node, nodeMoves), of(core, coreMoves), of(0, "B"), of(0, "B")}
	}
	// sweep has the detector's settings: none, a threshold of 0, the defaults, and these with λ 0.97.
	sweep := func(always, own, plain ecsTrial) *detectorSweep {
		d := ecsDefaults()
		s := &detectorSweep{settings: []detected{{}, {"0", "0.9"}, d, {d.threshold, "0.97"}}}
		for range ecsTreated {
			s.trials = append(s.trials, [][]ecsTrial{{leveledTo(100, 0.1, 0)}, {always}, {own}, {plain}})
		}
		return s
	}
	// wrongs have right forecasts, with 10 stops and 0.1 over-allocated without leveling, and wrong ones: what leveling
	// leads to.
	wrongs := func(wrong ...ecsTrial) wrongSweep {
		without := []ecsTrial{leveledTo(100, 0.1, 0)}
		of := [][2][]ecsTrial{{without, {{Makespan: 100, ecsWork: ecsWork{Stops: 10}}}}}
		for _, w := range wrong {
			of = append(of, [2][]ecsTrial{without, {w}})
		}
		return wrongSweep{of, of}
	}
	stopped := func(seconds, over float64, stops int) ecsTrial {
		return ecsTrial{Makespan: seconds, Over: over, ecsWork: ecsWork{Stops: stops}}
	}
	// overheads have problems with states by size and interval, and trials: of the default, and of all other settings.
	overheads := func(states func(size, interval int) int, own, rest ecsTrial) *overheadSweep {
		s := &overheadSweep{}
		var sizes [][][]ecsSolved
		for i := range ecsSizes {
			var of [][]ecsSolved
			for k := range ecsIntervals {
				of = append(of, []ecsSolved{{States: states(i, k)}})
			}
			sizes = append(sizes, of)
		}
		s.problems = [][][][]ecsSolved{sizes, sizes}
		for range ecsClusters {
			of := [][]ecsTrial{{leveledTo(100, 0.1, 0)}}
			for point := 1; point <= len(ecsIntervals)*len(ecsMovable); point++ {
				one := rest
				if overheadContender(point).Label == ecsDefaultSize {
					one = own
				}
				of = append(of, []ecsTrial{one})
			}
			s.trials = append(s.trials, of)
		}
		return s
	}
	answered := func(seconds, over float64, proved int) ecsTrial {
		return ecsTrial{Makespan: seconds, Over: over, ecsWork: ecsWork{Answers: 10, Proved: proved}}
	}
	// recorded are outcomes of one draw of each source, under all conditions alike.
	recorded := func(of func(source, scheduler string) ecsOutcome) (all ecsOutcomes) {
		for _, s := range ecsSources {
			var one [][]ecsOutcome
			for _, c := range ecsOnRecorded("") {
				one = append(one, []ecsOutcome{of(s.name, c.Label)})
			}
			all = append(all, [][][]ecsOutcome{one, one, one, one})
		}
		return all
	}
	// real has ECS, PRISM that completes jobs at a time, and others that take 1.
	real := func(own ecsOutcome, spark, prism float64) []Claim {
		return ecsRealClaims(ecsSources, recorded(func(source, scheduler string) ecsOutcome {
			o := ecsOutcome{Makespan: 1, Completion: 1, CPU: 0.4, Over: 0.1}
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
	half := verdicts(Partly, 14)
	half[4], half[6], half[11], half[13] = Holds, Holds, Holds, Holds // those without a number of the paper
	for _, c := range []struct {
		name string
		made []Claim
		want []Verdict
	}{
		{"Fig. 8 and 9", ecsFig8Claims(ecsMade(paper(1))), verdicts(Holds, 14)},
		{"Fig. 8 and 9, half the gains", ecsFig8Claims(ecsMade(paper(0.5))), half},
		{"Fig. 8 and 9, no gain", ecsFig8Claims(ecsMade(same)),
			append(append(verdicts(Fails, 4), Holds), verdicts(Fails, 9)...)},
		{"Fig. 10", ecsFig10Claims(sets([3]float64{0.20, 0.23, 0.15}, [3]float64{0.1, 0, 0.02})), verdicts(Holds, 4)},
		{"Fig. 10, twice as fragmented", ecsFig10Claims(sets([3]float64{0.20, 0.26, 0.25}, [3]float64{0.04, 0.02, 0.03})),
			verdicts(Partly, 4)},
		{"Fig. 10, all alike", ecsFig10Claims(sets([3]float64{0.04, 0.04, 0.04}, [3]float64{0.04, 0.04, 0.04})),
			verdicts(Fails, 4)},
		{"Fig. 10, too fragmented", ecsFig10Claims(sets([3]float64{0.2, 0.4, 0.3}, [3]float64{0.1, 0, 0.05})),
			[]Verdict{Holds, Holds, Fails, Holds}},
		{"Fig. 2 and 3", ecsFig2Claims(cases(ecsCase{Makespan: 80, Mean: 14, Init: 10, Used: 0.6, Over: 0.1, Beyond: 0.2},
			0)), verdicts(Holds, 4)},
		{"Fig. 2 and 3, hardly",
			ecsFig2Claims(cases(ecsCase{Makespan: 97, Mean: 14, Init: 15, Used: 0.5, Over: 0.1, Beyond: 0.2}, 0.1)),
			verdicts(Partly, 4)},
		{"Fig. 2 and 3, no better",
			ecsFig2Claims(cases(ecsCase{Makespan: 100, Mean: 10, Init: 25, Used: 0.5, Over: 0, Beyond: 0}, 0)),
			verdicts(Fails, 4)},
		{"Fig. 2 and 3, few at first",
			ecsFig2Claims(cases(ecsCase{Makespan: 80, Mean: 14, Init: 4, Used: 0.6, Over: 0.1, Beyond: 0.2}, 0))[:1],
			verdicts(Fails, 1)},
		{"assumed, all near", ecsAssumedClaims([]float64{0.25, 0.4}, []float64{0.12, 0.25}, []float64{0.1, 0.2}),
			verdicts(Holds, 3)},
		{"assumed, half", ecsAssumedClaims([]float64{0.15, 0.3}, []float64{0.1, 0.17}, []float64{-0.1, 0.2}),
			verdicts(Partly, 3)},
		{"assumed, too much", ecsAssumedClaims([]float64{0.29, 0.9}, []float64{0.17, 0.6}, []float64{-0.1, -0.2}),
			verdicts(Fails, 3)},
		{"Fig. 1", ecsFig1Claims(0.12, 0.33, 0.6, 0.7, phases(1, 0.2)), []Verdict{Untested, Untested, Holds}},
		{"Fig. 1, busy", ecsFig1Claims(0.12, 0.30, 0.6, 0.4, phases(0.2, 1)), []Verdict{Fails, Fails, Partly}},
		{"Fig. 1, steady", ecsFig1Claims(0.10, 0.33, 0.4, 0.6, phases(0.9, 1)), []Verdict{Fails, Fails, Fails}},
		{"Table V", ecsTable5Claims(problems(true, 0.5, 0.1, "E", "F")), verdicts(Holds, 3)},
		{"Table V, of a core alone", ecsTable5Claims(problems(true, 0.6, 0.5, "B", "F")), []Verdict{Holds, Partly, Partly}},
		{"Table V, other sets", ecsTable5Claims(problems(false, 0.6, 0.6, "B", "D")), verdicts(Fails, 3)},
		{"detector", ecsDetectorClaims(sweep(leveledTo(100, 0.05, 100), leveledTo(100, 0.05, 20),
			leveledTo(100, 0.05, 100)), ecsDefaults()), verdicts(Holds, 4)},
		{"detector, more problems than need be",
			ecsDetectorClaims(sweep(leveledTo(100, 0.05, 100), leveledTo(100, 0.06, 60), leveledTo(100, 0.07, 50)),
				ecsDefaults()), verdicts(Partly, 4)},
		{"detector, in vain",
			ecsDetectorClaims(sweep(leveledTo(100, 0.05, 100), leveledTo(103, 0.1, 60), leveledTo(100, 0.05, 50)),
				ecsDefaults()), verdicts(Fails, 4)},
		{"wrong", ecsWrongClaims(wrongs(stopped(110, 0.05, 20), stopped(90, 0.05, 5))), verdicts(Holds, 3)},
		{"wrong, slower", ecsWrongClaims(wrongs(stopped(115, 0.05, 40), stopped(90, 0.05, 5), stopped(100, 0.2, 5))),
			verdicts(Partly, 3)},
		{"wrong, too slow", ecsWrongClaims(wrongs(stopped(125, 0.2, 41))), verdicts(Fails, 3)},
		{"overhead", ecsOverheadClaims(overheads(func(i, k int) int { return (1 + i) * (1 + k) }, answered(101, 0.06, 9),
			answered(100, 0.05, 10))), verdicts(Holds, 3)},
		{"overhead, of sizes alone",
			ecsOverheadClaims(overheads(func(i, _ int) int { return 1 + i }, answered(101, 0.09, 9), answered(100, 0.05, 5))),
			verdicts(Partly, 3)},
		{"overhead, alike", ecsOverheadClaims(overheads(func(_, _ int) int { return 1000 }, answered(103, 0.05, 9),
			answered(100, 0.05, 4))), verdicts(Fails, 3)},
		{"Table IV", ecsTable4Claims(true, 10, 10, map[string]float64{"CPU": 0.1, "I/O": 0.2, "hybrid": 0.2}, 1.5),
			[]Verdict{Untested, Holds, Holds, Holds}},
		{"Table IV, hardly", ecsTable4Claims(true, 6, 10, map[string]float64{"CPU": 0.15, "I/O": 0.2, "hybrid": 0.2}, 1.25),
			[]Verdict{Untested, Partly, Partly, Partly}},
		{"Table IV, not", ecsTable4Claims(false, 5, 10, map[string]float64{"CPU": 0.2, "I/O": 0.2, "hybrid": 0.2}, 1.2),
			verdicts(Fails, 4)},
		{"real", real(ecsOutcome{Makespan: 1.1, Completion: 0.71, CPU: 0.5, Over: 0.05}, 0.71, 0.85), verdicts(Holds, 6)},
		{"real, hardly", real(ecsOutcome{Makespan: 1.2, Completion: 0.9, CPU: 0.44, Over: 0.09}, 1, 1.07),
			verdicts(Partly, 6)},
		{"real, no gain", real(ecsOutcome{Makespan: 1.3, Completion: 1, CPU: 0.4, Over: 0.1}, 1, 1), verdicts(Fails, 6)},
		{"real, too much", real(ecsOutcome{Makespan: 1, Completion: 0.1, CPU: 0.8, Over: 0}, 0.1, 0.3)[:4],
			[]Verdict{Fails, Holds, Fails, Fails}},
		{"recorded, all", ecsRecordedClaims([][2]float64{{0.12, 0.3}, {0.2, 0.12}}, 2), []Verdict{Holds, Holds}},
		{"recorded, CPU alone", ecsRecordedClaims([][2]float64{{0.12, 0}, {0.2, 0}}, 1), []Verdict{Partly, Partly}},
		{"recorded, none", ecsRecordedClaims([][2]float64{{0.11, 0}, {0.1, 0.2}}, 0), []Verdict{Fails, Fails}},
	} {
		if got := verdictsOf(c.made); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
			for _, claim := range c.made {
				t.Logf("%s: %s: %s", claim.Ours, claim.Says, claim.Holds)
			}
		}
	}
}
