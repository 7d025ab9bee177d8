package pufferfish

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// squeezed is a program in a container that is too small for it, and its swap device.
type squeezed struct {
	inUse, resident, limit resource.Amount // bytes
	cpu                    float64         // CPU as a share of the cores that it needs
	speed                  float64         // of the swap device, bytes per second
	paging                 sim.Paging
}

// step simulates a second and returns the bytes written to and read from swap in it.
func (s *squeezed) step() (out, in float64) {
	out = min(s.speed, float64(max(0, s.resident-s.limit))) // pages above the limit are written first
	s.resident -= resource.Amount(out)
	if s.cpu == 0 || s.resident >= s.inUse {
		return out, 0
	}
	// A unit of work takes 1/cpu to compute and waits for wait; while it waits, the device reads its pages.
	wait := s.paging.Slowdown(s.resident, s.inUse) - 1
	moved := (s.speed - out) * wait / (1/s.cpu + wait)
	in = min(moved, float64(max(0, min(s.limit, s.inUse)-s.resident)))
	s.resident += resource.Amount(in)
	swapped := (moved - in) / 2 // in a full container, each page that is read displaces another
	return out + swapped, in + swapped
}

// returns is how many seconds after the restoration the given share of the working set is in memory.
func returns(run []squeezeMoment, share float64) int {
	for second := squeezeRestores; second < squeezeEnds; second++ {
		if run[second].resident >= share*45*float64(resource.GB) {
			return second + 1 - squeezeRestores
		}
	}
	return squeezeEnds
}

// squeezeMoment is a second of the run.
type squeezeMoment struct{ limit, resident, out, in float64 } // bytes, bytes per second

// squeeze simulates Fig. 3 with the given CPU during suspension, and returns its seconds.
func squeeze(suspended float64) []squeezeMoment {
	s := squeezed{inUse: 45 * resource.GB, resident: 45 * resource.GB, limit: 64 * resource.GB, cpu: 1,
		speed: 2 * float64(resource.GB), paging: sim.SSDPaging}
	var all []squeezeMoment
	for second := range squeezeEnds {
		switch second {
		case squeezeReclaims:
			s.limit = 4 * resource.GB
		case squeezeSuspends:
			s.cpu = suspended
		case squeezeRestores:
			s.limit, s.cpu = 64*resource.GB, 1
		}
		out, in := s.step()
		all = append(all, squeezeMoment{float64(s.limit), float64(s.resident), out, in})
	}
	return all
}

// Seconds of Fig. 3.
const (
	squeezeReclaims = 265
	squeezeSuspends = 450
	squeezeRestores = 750
	squeezeEnds     = 900
)

// oneOfEight is 1 % of one core for a program that uses eight.
const oneOfEight = 0.01 / 8

// squeezeLine is an amount of a run over time, in the given unit.
func squeezeLine(name string, run []squeezeMoment, unit resource.Amount, of func(squeezeMoment) float64) chart.Series {
	s := chart.Series{Name: name, Step: true}
	for second, m := range run {
		s.X, s.Y = append(s.X, float64(second)), append(s.Y, of(m)/float64(unit))
	}
	return s
}

// squeezeRate is the mean traffic in both directions in a span, MB/s.
func squeezeRate(run []squeezeMoment, from, to int) float64 {
	sum := 0.0
	for _, m := range run[from:to] {
		sum += (m.out + m.in) / float64(resource.MB)
	}
	return sum / float64(to-from)
}

func fig3Squeeze(*lab.Lab) (*lab.Findings, error) {
	data := lab.NewTable("seconds", "suspension", "time_s", "limit_bytes", "resident_bytes", "out_bytes_per_s",
		"in_bytes_per_s")
	slow, frozen := squeeze(oneOfEight), squeeze(0)
	for second := range slow {
		for _, c := range []struct {
			name string
			squeezeMoment
		}{{"1 % of a core", slow[second]}, {"frozen", frozen[second]}} {
			data.Put(c.name, second, c.limit, c.resident, c.out, c.in)
		}
	}
	table := lab.NewTable("Swapping, MB/s (simulated)", "span", "suspended at 1 % of a core", "frozen")
	for _, span := range []struct {
		name     string
		from, to int
	}{{"reclaimed, running (300 to 450 s)", 300, squeezeSuspends},
		{"suspended (450 to 750 s)", squeezeSuspends, squeezeRestores},
		{"restored (first 30 s)", squeezeRestores, squeezeRestores + 30}} {
		table.Add(span.name, lab.Decimals(squeezeRate(slow, span.from, span.to), 1),
			lab.Decimals(squeezeRate(frozen, span.from, span.to), 1))
	}
	memory := &chart.Plot{Title: "A container reclaimed at 265 s, suspended at 450 s, restored at 750 s",
		Subtitle: "simulated", X: "time, s", Y: "memory, GB", XMin: new(float64), Series: []chart.Series{
			squeezeLine("limit", slow, resource.GB, func(m squeezeMoment) float64 { return m.limit }),
			squeezeLine("resident", slow, resource.GB, func(m squeezeMoment) float64 { return m.resident }),
		}}
	traffic := &chart.Plot{Title: "Swapping of the same container",
		Subtitle: "simulated; frozen, it swaps nothing from 450 to 750 s", X: "time, s", Y: "MB/s", LogY: true,
		XMin: new(float64), Series: []chart.Series{
			squeezeLine("to swap", slow, resource.MB, func(m squeezeMoment) float64 { return m.out }),
			squeezeLine("from swap", slow, resource.MB, func(m squeezeMoment) float64 { return m.in }),
		}}
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "memory", Caption: "Limit and resident memory (simulated)", Picture: memory},
			{Name: "swapping", Caption: "Swapping at 1 % of a core in suspension (simulated)", Picture: traffic}},
		Claims: fig3SqueezeClaims(slow, frozen),
	}, nil
}

func fig3SqueezeClaims(slow, frozen []squeezeMoment) []lab.Claim {
	thrash, throttled := squeezeRate(slow, 300, squeezeSuspends), squeezeRate(slow, squeezeSuspends, squeezeRestores)
	nothing, burst := squeezeRate(frozen, squeezeSuspends, squeezeRestores),
		squeezeRate(frozen, squeezeRestores, squeezeRestores+5)
	most, all := returns(frozen, 0.9), returns(frozen, 0.99)
	return []lab.Claim{
		Paper.Stated("pufferfish/fig3", "throttled").
			Judge(fmt.Sprintf("from %s to %s MB/s; frozen: %s MB/s", lab.Decimals(thrash, 0), lab.Decimals(throttled, 0),
				lab.Decimals(nothing, 0)), throttled < 1, throttled < thrash/10),
		Paper.Stated("pufferfish/fig3", "burst").
			Judge(fmt.Sprintf("%s MB/s in the first 5 s; 90 %% of the working set is back after %d s, 99 %% after %d s",
				lab.Decimals(burst, 0), most, all), burst > 10*throttled && most <= 60, burst > throttled),
	}
}
