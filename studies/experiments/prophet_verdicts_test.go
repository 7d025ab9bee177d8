package experiments

import (
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

func verdictsOf(claims []Claim) (all []Verdict) {
	for _, c := range claims {
		all = append(all, c.Holds)
	}
	return all
}

// TestVerdictsOfProphet: the paper's own numbers hold, and numbers on either side of a criterion do not.
func TestVerdictsOfProphet(t *testing.T) {
	makespans := func(cs, fair, drf, tetris, plain, own float64) (all [][]prophetTrial) {
		for _, seconds := range []float64{cs, fair, drf, tetris, plain, own} {
			all = append(all, []prophetTrial{{Makespan: seconds}})
		}
		return all
	}
	table := func(t [][]prophetTrial) []Claim { return table3Claims(prophetSchedulers(), t) }
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
		made []Claim
		want []Verdict
	}{
		{"Table III", table(makespans(16604, 18369, 18369, 25537, 15707, 11290)),
			[]Verdict{Holds, Holds, Holds, Holds, Holds, Holds, Holds}},
		{"Table III, all as long", table(makespans(1, 1, 1, 1, 1, 1)), []Verdict{Fails, Fails, Fails, Fails, Fails, Fails,
			Fails}},
		{"Table III, half the savings", table(makespans(100, 100, 100, 150, 99, 80)),
			[]Verdict{Partly, Partly, Holds, Holds, Partly, Partly, Partly}},
		{"Table III, too much saved", table(makespans(100, 110, 120, 150, 80, 20)),
			[]Verdict{Partly, Partly, Partly, Partly, Partly, Partly, Holds}},
		{"Fig. 7", fig7Claims("", with(1, 0.31), with(1, 0.4), one(0.18)), []Verdict{Holds, Holds, Holds, Holds, Holds}},
		{"Fig. 7, no application loses", fig7Claims("-whole", one(0.2), one(0.1), one(0.3)),
			[]Verdict{Partly, Fails, Partly, Partly, Holds}},
		{"Fig. 7, many lose", fig7Claims("", with(8, 0.5), with(8, 0.6), []float64{-0.2, -0.1, 0.1}),
			[]Verdict{Partly, Partly, Fails, Fails, Fails}},
		{"Fig. 8", fig8Claims(one(0.23), one(0.25), []float64{0.12, 0.36, 0.5}), []Verdict{Holds, Holds, Holds, Holds}},
		{"Fig. 8, over CS alone", fig8Claims(one(0.23), one(0.01), one(0.05)), []Verdict{Fails, Partly, Fails, Holds}},
		{"Fig. 8, slower", fig8Claims(one(-0.2), one(-0.2), one(-0.2)), []Verdict{Fails, Fails, Fails, Fails}},
		{"Fig. 11", fig11Claims(0.13, 0.1), []Verdict{Holds, Holds}},
		{"Fig. 11, more", fig11Claims(0.3, 0.3), []Verdict{Partly, Partly}},
		{"Fig. 11, none", fig11Claims(0, -0.1), []Verdict{Fails, Fails}},
		{"assumed, all near", assumedClaims([]float64{0.3, 0.35}, []float64{2.2, 2.3}), []Verdict{Holds, Holds}},
		{"assumed, beyond", assumedClaims([]float64{0.3, 0.5}, []float64{2.2, 4.4}), []Verdict{Partly, Partly}},
		{"assumed, one near", assumedClaims([]float64{0, 0.35}, []float64{1.1, 2.3}), []Verdict{Partly, Partly}},
		{"assumed, none", assumedClaims([]float64{0, 0.1}, []float64{0.9, 2.3}), []Verdict{Fails, Fails}},
		{"eta, best", etaClaims(0), []Verdict{Holds}},
		{"eta, near the best", etaClaims(0.03), []Verdict{Partly}},
		{"eta, worse", etaClaims(0.06), []Verdict{Fails}},
		{"Fig. 1", fig1Claims(rates(300, 160), 0.6, 0.7), []Verdict{Untested, Untested}},
		{"Fig. 1, too slow, and busy", fig1Claims(rates(260, 160), 0.6, 0.4), []Verdict{Fails, Fails}},
		{"Fig. 1, too fast, and busy", fig1Claims(rates(300, 190), 0.4, 0.6), []Verdict{Fails, Fails}},
		{"recorded, all", recordedClaims(5, 3, 5), []Verdict{Holds, Holds}},
		{"recorded, most", recordedClaims(3, 2, 5), []Verdict{Partly, Partly}},
		{"recorded, few", recordedClaims(2, 0, 5), []Verdict{Fails, Fails}},
		{"Fig. 3", fig3Claims(missed(0.02, 10), &predictions{*missed(0.05, 8), *missed(0.05, 8)}, &predictions{}),
			[]Verdict{Untested, Holds, Holds}},
		{"Fig. 3, half of them", fig3Claims(missed(0.07, 10), &predictions{*missed(0.05, 5), *missed(0.05, 7)},
			&predictions{}), []Verdict{Fails, Partly, Partly}},
		{"Fig. 3, less than half", fig3Claims(missed(0.02, 9), &predictions{*missed(0.05, 4), *missed(0.05, 0)},
			&predictions{}), []Verdict{Fails, Fails, Fails}},
	} {
		if got := verdictsOf(c.made); !slices.Equal(got, c.want) {
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
	all := prophetSchedulers()
	// loads has areas of disk and of network by scheduler; those that are not named are empty.
	loads := func(of map[string][2]areas) (t [][]prophetLoad) {
		for _, c := range all {
			a := of[c.Label]
			t = append(t, []prophetLoad{{Servers: [][]areas{{a[0]}, {a[1]}}}})
		}
		return t
	}
	both := func(idle, over, beyond float64) [2]areas { return [2]areas{{idle, over, beyond}, {idle, over, beyond}} }
	full := both(0.4, 0.4, 0.5)
	for _, c := range []struct {
		name string
		of   map[string][2]areas
		want []Verdict
	}{
		{"as in the paper", map[string][2]areas{"CS": full, "DRF": full, "Tetris": both(0.7, 0, 0),
			"Prophet": both(0.4, 0.1, 0.2)}, []Verdict{Holds, Holds, Holds}},
		{"Prophet over-allocates", map[string][2]areas{"CS": full, "DRF": full, "Tetris": both(0.7, 0, 0), "Prophet": full},
			[]Verdict{Holds, Partly, Holds}},
		{"disks alone", map[string][2]areas{"CS": {full[0], {0.8, 0, 0}}, "DRF": {full[0], {0.8, 0, 0}},
			"Tetris": both(0.7, 0, 0), "Prophet": both(0.75, 0.1, 0.1)}, []Verdict{Partly, Partly, Partly}},
		{"no scheduler", map[string][2]areas{"CS": both(0.8, 0.1, 0.05), "DRF": both(0.8, 0.1, 0.05),
			"Tetris": both(0.7, 0.1, 0.1), "Prophet": both(0.8, 0.1, 0)}, []Verdict{Fails, Fails, Fails}},
	} {
		if got := verdictsOf(fig9and10Claims(all, loads(c.of))); !slices.Equal(got, c.want) {
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
