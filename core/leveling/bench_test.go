package leveling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

// sizes are the numbers of sets, with a fixed one, and of intervals of random problems.
var sizes = []struct {
	sets, intervals int
	// What Solve achieves with DefaultStates, of tested problems of each kind: the least number proved, and the most of
	// the median gap.
	tested, proved int
	gap            float64
}{
	{6, 15, 50, 50, 0}, {10, 15, 20, 20, 0}, {12, 20, 20, 5, 0.06}, {10, 30, 5, 0, 0.15}, {20, 30, 5, 0, 0.2},
	{50, 60, 3, 0, 0.85},
}

// tablesV returns 50 problems of Table V.
func tablesV(k kind) (all []*Problem) {
	for seed := range uint64(50) {
		all = append(all, k.tableV(rand.New(rand.NewPCG(seed, 3))))
	}
	return all
}

func problemsOf(k kind, sets, intervals int) (all []*Problem) {
	for seed := range uint64(50) {
		all = append(all, k.random(rand.New(rand.NewPCG(seed, 2)), sets, intervals))
	}
	return all
}

// All problems of Table V are proved within DefaultStates.
func TestTableVIsProved(t *testing.T) {
	for _, k := range kinds {
		most := 0
		for seed, p := range tablesV(k) {
			s, err := Solve(p, DefaultStates)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, p, s)
			if most = max(most, s.States); !s.Proved {
				t.Errorf("%s, seed %d: gap %.1f %% after %d states", k, seed, 100*s.Gap(), s.States)
			}
		}
		t.Logf("%s: at most %d states", k, most)
	}
}

// So are all of up to the paper's size. Of larger ones most are, or the gap is known.
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	for _, size := range sizes {
		for _, k := range kinds {
			proved, most := 0, 0
			var gaps []float64
			for _, p := range problemsOf(k, size.sets, size.intervals)[:size.tested] {
				s, err := Solve(p, DefaultStates)
				if err != nil {
					t.Fatal(err)
				}
				verify(t, p, s)
				if s.Proved {
					proved++
				}
				gaps, most = append(gaps, s.Gap()), max(most, s.States)
			}
			slices.Sort(gaps)
			t.Logf("%d sets, %d intervals, %s: %d of %d proved, gap median %.1f %%, worst %.1f %%, at most %d states",
				size.sets, size.intervals, k, proved, size.tested, 100*gaps[size.tested/2], 100*gaps[size.tested-1], most)
			if proved < size.proved || gaps[size.tested/2] > size.gap {
				t.Errorf("%d sets, %d intervals, %s: want %d proved, median gap at most %v", size.sets, size.intervals, k,
					size.proved, size.gap)
			}
		}
	}
}

// BenchmarkSolve reports the median and the worst CPU time of 50 problems, and of those of Table V.
func BenchmarkSolve(b *testing.B) {
	run := func(name string, problems []*Problem) {
		b.Run(name, func(b *testing.B) {
			times := make([][]time.Duration, len(problems))
			for b.Loop() {
				for i, p := range problems {
					began := cpuTime()
					if _, err := Solve(p, DefaultStates); err != nil {
						b.Fatal(err)
					}
					times[i] = append(times[i], cpuTime()-began)
				}
			}
			var typical []float64
			for _, all := range times { // the median of a problem's repeats: the processor is shared
				slices.Sort(all)
				typical = append(typical, float64(all[len(all)/2])/1e6)
			}
			slices.Sort(typical)
			b.ReportMetric(typical[len(typical)/2], "median-ms")
			b.ReportMetric(typical[len(typical)-1], "worst-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
	for _, k := range kinds {
		for _, size := range sizes[:3] {
			run(fmt.Sprintf("n%d-T%d/%s", size.sets, size.intervals, k), problemsOf(k, size.sets, size.intervals))
		}
		run("tableV/"+k.String(), tablesV(k))
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
