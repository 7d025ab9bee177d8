package profiler

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// beside is a program that takes 10 s of CPU time alone and twice that with a neighbour that keeps a core busy.
type beside struct {
	busy func(run int) bool // whether the neighbour is at work, by the number of the run
	runs int
}

func (b *beside) Run(context.Context, resource.Amount) (Measurement, error) {
	b.runs++
	m := Measurement{Duration: 10 * time.Second, CPU: 10 * time.Second, Others: 100, OthersKnown: true}
	if b.busy(b.runs) {
		m.Duration, m.Others = 20*time.Second, 1100
	}
	return m, nil
}

// noisy counts the sizes whose repeats differ too much to learn from them.
func noisy(r *Result) (n int) {
	for _, s := range slices.Concat(r.Fitted, r.HeldOut) {
		if noise, known := s.Noise(); known && noise > profile.MostNoise {
			n++
		}
	}
	return n
}

// TestNeighboursAreSetAside: the CPU use of other programs shows that a run was disturbed, and the run does not count.
func TestNeighboursAreSetAside(t *testing.T) {
	sizes := []resource.Amount{64 * mib, 128 * mib}
	for _, c := range []struct {
		name     string
		busy     func(run int) bool
		runs     int // at most
		setAside int // of both sizes
		noisy    int
	}{
		{"alone", func(int) bool { return false }, 7, 0, 0},
		{"in the second round", func(run int) bool { return run == 4 || run == 5 }, 7, 2, 0},
		{"in the first two rounds", func(run int) bool { return run <= 5 }, 9, 4, 0},
		{"all the time", func(int) bool { return true }, 7, 0, 0},
		{"all but one run of each", func(run int) bool { return run > 3 }, 19, 0, 2},
	} {
		program := &beside{busy: c.busy}
		p := Plan{Fitted: sizes, Repeats: 3, MostRepeats: 9}
		res, err := Measure(context.Background(), program, &p, nil)
		if err != nil {
			t.Fatal(err)
		}
		setAside := res.Beside[sizes[0]].SetAside + res.Beside[sizes[1]].SetAside
		if program.runs != c.runs || setAside != c.setAside || noisy(res) != c.noisy {
			t.Errorf("%s: %d runs, %d set aside, %d sizes too noisy; want %d, %d, %d", c.name, program.runs, setAside,
				noisy(res), c.runs, c.setAside, c.noisy)
		}
	}
}

func TestBusy(t *testing.T) {
	for _, c := range []struct {
		stat         string
		want, stolen time.Duration
		ok           bool
	}{
		{"cpu  100 10 20 5000 300 3 4 50 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n", 1870 * time.Millisecond, 500 * time.Millisecond,
			true},
		{"cpu  100 10\n", 0, 0, false},
		{"", 0, 0, false},
	} {
		if got, stolen, ok := cpuTimesOf(c.stat); got != c.want || stolen != c.stolen || ok != c.ok {
			t.Errorf("%q: %v, %v, %v, want %v, %v, %v", c.stat, got, stolen, ok, c.want, c.stolen, c.ok)
		}
	}
	if got := others(15*time.Second, 10*time.Second, 10*time.Second); got != 500 {
		t.Errorf("5 s during a run of 10 s: %d millicores", got)
	}
	if got := others(time.Second, 2*time.Second, time.Second); got != 0 {
		t.Errorf("clocks that differ: %d millicores", got)
	}
}
