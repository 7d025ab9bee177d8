package prophet

import (
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// TestVerdictsOfProphet: the paper's own numbers hold, and numbers on either side of a criterion do not.
func TestVerdictsOfProphet(t *testing.T) {
	makespans := func(cs, fair, drf, tetris, without, with float64) (all [][]prophetTrial) {
		seconds := map[string]float64{"CS": cs, "Fair": fair, "DRF": drf, "Tetris": tetris, plain.Label: without,
			own.Label: with}
		for _, c := range schedulers() {
			all = append(all, []prophetTrial{{Makespan: seconds[c.Label]}})
		}
		return all
	}
	table := func(t [][]prophetTrial) []lab.Claim { return table3Claims(schedulers(), t) }
	one := func(v float64) []float64 { return []float64{v} }
	with := func(lose int, all ...float64) []float64 {
		for i := range 20 {
			if i < lose {
				all = append(all, -0.1)
			} else {
				all = append(all, all[0])
			}
		}
		return all
	}
	rates := func(disk, network resource.Amount) resource.Vector {
		return resource.Vector{}.With(resource.Disk, disk*resource.MB).With(resource.Network, network*resource.MB)
	}
	// missed has ten errors of each kind, of which n are small and the rest are 20 %.
	missed := func(small float64, n int) *misses {
		var all []float64
		for i := range 10 {
			if i < n {
				all = append(all, small)
			} else {
				all = append(all, 0.2)
			}
		}
		return &misses{all, all, all}
	}
	for _, c := range []struct {
		name string
		made []lab.Claim
		want []lab.Verdict
	}{
		{"Table III", table(makespans(16604, 18369, 18369, 25537, 15707, 11290)),
			[]lab.Verdict{lab.Holds, lab.Holds, lab.Holds, lab.Holds, lab.Holds, lab.Holds, lab.Holds}},
		{"Table III, all as long", table(makespans(1, 1, 1, 1, 1, 1)), []lab.Verdict{lab.Fails, lab.Fails, lab.Fails,
			lab.Fails, lab.Fails, lab.Fails,
			lab.Fails}},
		{"Table III, half the savings", table(makespans(100, 100, 100, 150, 99, 80)),
			[]lab.Verdict{lab.Partly, lab.Partly, lab.Holds, lab.Holds, lab.Partly, lab.Partly, lab.Partly}},
		{"Table III, too much saved", table(makespans(100, 110, 120, 150, 80, 20)),
			[]lab.Verdict{lab.Partly, lab.Partly, lab.Partly, lab.Partly, lab.Partly, lab.Partly, lab.Holds}},
		{"Fig. 7", fig7Claims("", with(1, 0.31), with(1, 0.4), one(0.18)), []lab.Verdict{lab.Holds, lab.Holds, lab.Holds,
			lab.Holds, lab.Holds}},
		{"Fig. 7, no application loses", fig7Claims("-whole", one(0.2), one(0.1), one(0.3)),
			[]lab.Verdict{lab.Partly, lab.Fails, lab.Partly, lab.Partly, lab.Holds}},
		{"Fig. 7, many lose", fig7Claims("", with(8, 0.5), with(8, 0.6), []float64{-0.2, -0.1, 0.1}),
			[]lab.Verdict{lab.Partly, lab.Partly, lab.Fails, lab.Fails, lab.Fails}},
		{"Fig. 8", fig8Claims(one(0.23), one(0.25), []float64{0.12, 0.36, 0.5}), []lab.Verdict{lab.Holds, lab.Holds,
			lab.Holds, lab.Holds}},
		{"Fig. 8, over CS alone", fig8Claims(one(0.23), one(0.01), one(0.05)), []lab.Verdict{lab.Fails, lab.Partly, lab.Fails,
			lab.Holds}},
		{"Fig. 8, slower", fig8Claims(one(-0.2), one(-0.2), one(-0.2)), []lab.Verdict{lab.Fails, lab.Fails, lab.Fails,
			lab.Fails}},
		{"Fig. 11", Fig11Claims(0.13, 0.1), []lab.Verdict{lab.Holds, lab.Holds}},
		{"Fig. 11, more", Fig11Claims(0.3, 0.3), []lab.Verdict{lab.Partly, lab.Partly}},
		{"Fig. 11, none", Fig11Claims(0, -0.1), []lab.Verdict{lab.Fails, lab.Fails}},
		{"assumed, all near", AssumedClaims([]float64{0.3, 0.35}, []float64{2.2, 2.3}), []lab.Verdict{lab.Holds, lab.Holds}},
		{"assumed, beyond", AssumedClaims([]float64{0.3, 0.5}, []float64{2.2, 4.4}), []lab.Verdict{lab.Partly, lab.Partly}},
		{"assumed, one near", AssumedClaims([]float64{0, 0.35}, []float64{1.1, 2.3}), []lab.Verdict{lab.Partly, lab.Partly}},
		{"assumed, none", AssumedClaims([]float64{0, 0.1}, []float64{0.9, 2.3}), []lab.Verdict{lab.Fails, lab.Fails}},
		{"eta, best", EtaClaims(1, 0), []lab.Verdict{lab.Holds}},
		{"eta, no difference", EtaClaims(0, 0), []lab.Verdict{lab.Partly}},
		{"eta, one is better", EtaClaims(3, 1), []lab.Verdict{lab.Fails}},
		{"Fig. 1", fig1Claims(rates(300, 160), 0.6, 0.7), []lab.Verdict{lab.Untested, lab.Untested}},
		{"Fig. 1, too slow, and busy", fig1Claims(rates(260, 160), 0.6, 0.4), []lab.Verdict{lab.Fails, lab.Fails}},
		{"Fig. 1, too fast, and busy", fig1Claims(rates(300, 190), 0.4, 0.6), []lab.Verdict{lab.Fails, lab.Fails}},
		{"recorded, all", recordedClaims(5, 3, 5), []lab.Verdict{lab.Holds, lab.Holds}},
		{"recorded, most", recordedClaims(3, 2, 5), []lab.Verdict{lab.Partly, lab.Partly}},
		{"recorded, few", recordedClaims(2, 0, 5), []lab.Verdict{lab.Fails, lab.Fails}},
		{"Fig. 3", fig3Claims(missed(0.02, 10), &predictions{*missed(0.05, 8), *missed(0.05, 8)}, &predictions{}),
			[]lab.Verdict{lab.Untested, lab.Holds, lab.Holds}},
		{"Fig. 3, half of them", fig3Claims(missed(0.07, 10), &predictions{*missed(0.05, 5), *missed(0.05, 7)},
			&predictions{}), []lab.Verdict{lab.Fails, lab.Partly, lab.Partly}},
		{"Fig. 3, less than half", fig3Claims(missed(0.02, 9), &predictions{*missed(0.05, 4), *missed(0.05, 0)},
			&predictions{}), []lab.Verdict{lab.Fails, lab.Fails, lab.Fails}},
	} {
		if got := lab.Verdicts(c.made); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
			for _, claim := range c.made {
				t.Logf("%s: %s", claim.Ours, claim.Says)
			}
		}
	}
}

// TestVerdictsOfUtilisation: over-allocation for a long time, little of it, and more demand than under Tetris are
// distinguished.
func TestVerdictsOfUtilisation(t *testing.T) {
	all := schedulers()
	// loads has areas of disk and of network by scheduler; those that are not named are empty.
	loads := func(of map[string][2]lab.Areas) (t [][]load) {
		for _, c := range all {
			a := of[c.Label]
			t = append(t, []load{{Servers: [][]lab.Areas{{a[0]}, {a[1]}}}})
		}
		return t
	}
	both := func(idle, over, beyond float64) [2]lab.Areas {
		return [2]lab.Areas{{Idle: idle, Over: over, Beyond: beyond}, {Idle: idle, Over: over, Beyond: beyond}}
	}
	full := both(0.4, 0.4, 0.5)
	for _, c := range []struct {
		name string
		of   map[string][2]lab.Areas
		want []lab.Verdict
	}{
		{"as in the paper", map[string][2]lab.Areas{"CS": full, "DRF": full, "Tetris": both(0.7, 0, 0),
			"Prophet": both(0.4, 0.1, 0.2)}, []lab.Verdict{lab.Holds, lab.Holds, lab.Holds}},
		{"Prophet over-allocates", map[string][2]lab.Areas{"CS": full, "DRF": full, "Tetris": both(0.7, 0, 0),
			"Prophet": full},
			[]lab.Verdict{lab.Holds, lab.Partly, lab.Holds}},
		{"disks alone", map[string][2]lab.Areas{"CS": {full[0], {Idle: 0.8, Over: 0, Beyond: 0}}, "DRF": {full[0], {Idle: 0.8,
			Over: 0, Beyond: 0}},
			"Tetris": both(0.7, 0, 0), "Prophet": both(0.75, 0.1, 0.1)}, []lab.Verdict{lab.Partly, lab.Partly, lab.Partly}},
		{"no scheduler", map[string][2]lab.Areas{"CS": both(0.8, 0.1, 0.05), "DRF": both(0.8, 0.1, 0.05),
			"Tetris": both(0.7, 0.1, 0.1), "Prophet": both(0.8, 0.1, 0)}, []lab.Verdict{lab.Fails, lab.Fails, lab.Fails}},
	} {
		if got := lab.Verdicts(fig9and10Claims(all, loads(c.of))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestArrivals: every run of a full experiment has 90 times of a trace, which ascend from 0.
func TestArrivals(t *testing.T) {
	seen := map[int64]bool{}
	for run := range 20 {
		times := swimArrivals(run)
		if len(times) != 90 || times[0] != 0 || !slices.IsSorted(times) {
			t.Errorf("run %d: %d times from %v", run, len(times), times[0])
		}
		seen[int64(times[89])] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d of 20 runs differ", len(seen))
	}
}
