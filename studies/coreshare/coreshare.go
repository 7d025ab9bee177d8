// Package coreshare has measurements of what ordinary programs lose when more of them want a core than it can run: the
// kernel gives each its part in turn, and switching costs time and caches. Pairs of runs do the same work, once all
// programs together on one core and once one after the other. Efficiency is their ratio, and Loss the curve of the
// simulator that it gives.
package coreshare

import (
	_ "embed" // the measurements are a file
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/sim"
)

// Series is one series of measurements, on one core of one machine.
type Series struct {
	Date      string    `json:"date"` // day of the measurement, YYYY-MM-DD
	Processor string    `json:"processor"`
	Caches    string    `json:"caches"` // of the core
	Kernel    string    `json:"kernel"`
	Groups    string    `json:"groups"`   // the control groups in which the programs ran, all of equal weight
	Counters  string    `json:"counters"` // what the machine counts, and what it does not
	Programs  []Program `json:"programs"`
}

// Program is the measurements of one program.
type Program struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	// Ordinary is false of programs that do nothing but wait for memory: they show how much can be lost at most.
	Ordinary bool    `json:"ordinary"`
	Points   []Point `json:"points"` // in ascending order of the number of programs
}

// Point is the pairs of runs with one number of programs, in the order in which they were measured.
type Point struct {
	Copies int    `json:"copies"` // programs that want the core at a time, at least 2
	Pairs  []Pair `json:"pairs"`
}

// Pair is two runs one right after the other: as many copies of a program at a time on one core, and one after the
// other there.
type Pair struct {
	Together Run     `json:"together"`
	Apart    Run     `json:"apart"`
	Load     float64 `json:"load"` // of the machine before the pair, over one minute
}

// Run is what all copies took.
type Run struct {
	Wall     float64 `json:"wall_s"`           // from the first start to the last end, seconds
	CPU      float64 `json:"cpu_s"`            // their CPU time, of the kernel for them as well, seconds
	Switches int64   `json:"switches"`         // how often a copy had to make room for another program
	Others   float64 `json:"others_s"`         // CPU time of other programs on the core, seconds
	Stolen   float64 `json:"stolen_s"`         // time that the host of the virtual machine took from the core, seconds
	Faults   int64   `json:"faults,omitempty"` // pages that had to be read from a disk
}

//go:embed coreshare.json
var measured []byte

// Measured returns our measurements.
func Measured() Series {
	s, err := read(measured)
	if err != nil {
		panic("coreshare.json: " + err.Error()) // a test reads it
	}
	return s
}

func read(data []byte) (s Series, err error) {
	if err := json.Unmarshal(data, &s); err != nil {
		return Series{}, err
	}
	for _, p := range s.Programs {
		for i, at := range p.Points {
			if at.Copies < 2 || i > 0 && at.Copies <= p.Points[i-1].Copies || len(at.Pairs) == 0 {
				return Series{}, fmt.Errorf("program %q: point %d: must have pairs of runs, and more copies than the one before",
					p.Name, i)
			}
			for _, pair := range at.Pairs {
				if !(pair.Together.CPU > 0 && pair.Apart.CPU > 0 && pair.Together.Wall > 0 && pair.Apart.Wall > 0) {
					return Series{}, fmt.Errorf("program %q with %d copies: times must be above 0", p.Name, at.Copies)
				}
			}
		}
	}
	return s, nil
}

// Ratio is the ratio of pairs of runs: the median, the least and the most.
type Ratio struct{ Median, Least, Most float64 }

// ratioOf returns the ratio of a number of runs, apart over together.
func (p *Point) ratioOf(number func(*Run) float64) Ratio {
	var all []float64
	for i := range p.Pairs {
		all = append(all, number(&p.Pairs[i].Apart)/number(&p.Pairs[i].Together))
	}
	slices.Sort(all)
	n := len(all)
	return Ratio{(all[(n-1)/2] + all[n/2]) / 2, all[0], all[n-1]}
}

// Efficiency is the work of a second of CPU time over that of a program that has the core for itself: 1 loses nothing.
// It does not depend on what else wants the core, except for the caches.
func (p *Point) Efficiency() Ratio { return p.ratioOf(func(r *Run) float64 { return r.CPU }) }

// Throughput is the work of all copies in a second, over that of one at a time. It includes what else ran on the core.
func (p *Point) Throughput() Ratio { return p.ratioOf(func(r *Run) float64 { return r.Wall }) }

// Mean returns the geometric mean of the ordinary programs' median efficiencies with a number of copies; ok is false if
// one of them was not measured with as many.
func (s *Series) Mean(copies int) (mean float64, ok bool) {
	sum, n := 0.0, 0
	for i := range s.Programs {
		if !s.Programs[i].Ordinary {
			continue
		}
		at := slices.IndexFunc(s.Programs[i].Points, func(p Point) bool { return p.Copies == copies })
		if at < 0 {
			return 0, false
		}
		sum += math.Log(s.Programs[i].Points[at].Efficiency().Median)
		n++
	}
	return math.Exp(sum / float64(n)), n > 0
}

// Loss returns the curve of the simulator: with a demand of twice the cores it has the mean efficiency of two programs
// on a core, and nowhere less than the least mean efficiency.
func (s *Series) Loss() sim.Loss {
	two, _ := s.Mean(2)
	least := two
	for _, p := range s.Programs[0].Points {
		if mean, ok := s.Mean(p.Copies); ok {
			least = min(least, mean)
		}
	}
	return lossOf(two, least)
}

// lossOf rounds to four digits.
func lossOf(two, least float64) sim.Loss {
	if two >= 1 {
		return sim.Loss{}
	}
	round := func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
	return sim.Loss{Slope: round(1/two - 1), Floor: round(min(1, least))}
}
