package ecs

import (
	"fmt"
	"math"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

func figure1(*lab.Lab) (*lab.Findings, error) {
	table := lab.NewTable("Deviations of CPU use (Table I), which the models follow, and phases of the models",
		"benchmark",
		"kind", "map task, paper", "model", "reduce task, paper", "model", "phases of a map task", "phases of a reduce task")
	least, most := math.Inf(1), 0.0
	for i := range benchmarks {
		b := &benchmarks[i]
		row := []string{b.name, b.kind}
		for k, phases := range [][]cluster.Phase{usual.phasesOfMap(b, 1), usual.phasesOfReduce(b, 1)} {
			deviates := deviationOf(phases)
			least, most = min(least, deviates), max(most, deviates)
			paper := "–"
			if b.listed {
				paper = lab.Decimals(b.deviations[k], 2)
			}
			row = append(row, paper, lab.Decimals(deviates, 2))
		}
		table.Add(append(row, phasesText(usual.phasesOfMap(b, 1)), phasesText(usual.phasesOfReduce(b, 1)))...)
	}
	shown := benchmarkOf("wordcount")
	maps, reduces := usual.phasesOfMap(shown, 1), usual.phasesOfReduce(shown, 1)
	plot := &chart.Plot{Title: "CPU of tasks of wordcount", Subtitle: "synthetic", X: "time, s", Y: "cores",
		Series: []chart.Series{coresOf("map task", maps), coresOf("reduce task", reduces)}}
	claims := fig1Claims(least, most, shareBelow(maps), shareBelow(reduces), reduces)
	real, err := recorded()
	if err != nil {
		return nil, err
	}
	return &lab.Findings{Tables: append([]lab.Table{table}, real.Tables...), Claims: append(claims, real.Claims...),
		Pictures: append([]lab.Picture{{Name: "wordcount",
			Caption: "CPU that a map task and a reduce task of wordcount demand over time (synthetic)", Picture: plot}},
			real.Pictures...)}, nil
}

// phasesText names phases with how long they last and what CPU they demand.
func phasesText(phases []cluster.Phase) (text string) {
	for i, p := range phases {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %s s of %s", p.Name, lab.Decimals(p.Duration.Seconds(), 0),
			lab.Decimals(float64(p.Demand[resource.CPU])/float64(resource.Core), 1))
	}
	return text + " cores"
}

// coresOf draws the CPU that phases demand.
func coresOf(name string, phases []cluster.Phase) chart.Series {
	s := lab.StepsOf(name, phases, resource.CPU)
	for i := range s.Y {
		s.Y[i] *= 1e6 / float64(resource.Core) // StepsOf draws millions
	}
	return s
}

// shareBelow is the share of the time with at most half of the largest demand of CPU.
func shareBelow(phases []cluster.Phase) (share float64) {
	u := lab.UsageOf(phases)
	for _, p := range phases {
		if p.Demand[resource.CPU] <= u.Peak[resource.CPU]/2 {
			share += p.Duration.Seconds() / u.Lasts
		}
	}
	return share
}

// fig1Claims judges the least and the largest deviation of all tasks, for which share of its time a map and a
// reduce task of wordcount demand little, and the phases of the latter.
func fig1Claims(least, most, maps, reduces float64, phases []cluster.Phase) []lab.Claim {
	const fig = "ecs/fig1"
	u, first := lab.UsageOf(phases), phases[0].Demand[resource.CPU]
	peak, average := float64(u.Peak[resource.CPU]), float64(u.Mean[resource.CPU])
	return []lab.Claim{
		Paper.Stated(fig, "deviations").MadeSo(lab.Decimals(least, 2)+" to "+lab.Decimals(most, 2), lab.Within(least, 0.115,
			0.125) &&
			lab.Within(most, 0.325, 0.335)),
		Paper.Stated(fig, "low").MadeSo(fmt.Sprintf("at most half of the peak: map %s, reduce %s of the time",
			lab.Percent(maps),
			lab.Percent(reduces)), maps > 0.5 && reduces > 0.5),
		Paper.Stated(fig, "peak").Judge(fmt.Sprintf("%s of the peak initially; the peak is %s times the mean",
			lab.Percent(float64(first)/peak), lab.Decimals(peak/average, 1)), float64(first) == peak, peak > 2*average),
	}
}

// deviation is the standard deviation over time of what was used of a resource, of its peak, where it is known; low
// is the share of the time with at most half of the peak.
func usedDeviation(r *lab.Recording, k resource.Kind) (deviates, low float64) {
	mean, _ := r.Share(k)
	peak, whole, squares := float64(r.Peak(k)), 0.0, 0.0
	for i := range r.Spans {
		s := &r.Spans[i]
		if s.Unknown.Has(k) {
			continue
		}
		lasts, used := s.Length.Seconds(), float64(s.Usage[k])/peak
		whole, squares = whole+lasts, squares+(used-mean)*(used-mean)*lasts
		if used <= 0.5 {
			low += lasts
		}
	}
	return math.Sqrt(squares / whole), low / whole
}

// recorded are the recordings of real programs.
func recorded() (*lab.Findings, error) {
	all, err := lab.Recorded()
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Recorded programs (not jobs of the paper; of peaks of half a second or more)", "program",
		"what it does", "run time", "phases found", "deviation of CPU", "of memory", "CPU, mean of peak",
		"memory, mean of peak", "time with at most half of its CPU peak")
	p := &chart.Tracks{Title: "CPU of real programs", Subtitle: "recorded; each to its own scale, the first 70 s",
		X: "time, s", To: 70}
	var deviates [][2]float64
	idle := 0
	for i := range all {
		r := &all[i]
		run, _ := profile.Segment(r.Spans)
		cpu, low := usedDeviation(r, resource.CPU)
		memory, _ := usedDeviation(r, resource.Memory)
		meanCPU, _ := r.Share(resource.CPU)
		meanMemory, _ := r.Share(resource.Memory)
		table.Add(r.Name, r.What, lab.Decimals(run.Duration.Seconds(), 0)+" s", strconv.Itoa(len(run.Phases)),
			lab.Decimals(cpu, 2),
			lab.Decimals(memory, 2), lab.Percent(meanCPU), lab.Percent(meanMemory), lab.Percent(low))
		deviates = append(deviates, [2]float64{cpu, memory})
		if low > 0.5 {
			idle++
		}
		p.Rows = append(p.Rows, coresTrack(r, run.Phases))
	}
	return &lab.Findings{Tables: []lab.Table{table}, Claims: recordedClaims(deviates, idle),
		Pictures: []lab.Picture{{Name: "recorded",
			Caption: "CPU of real programs over time, and the demand of the phases found (recorded)",
			Picture: p}}}, nil
}

// recordedClaims judges the deviations of CPU and memory of programs, and how many programs use little CPU for
// more than half of their time.
func recordedClaims(deviates [][2]float64, idle int) []lab.Claim {
	const least = 0.12
	both, cpu, memory := 0, 0, 0
	for _, d := range deviates {
		if d[0] >= least {
			cpu++
		}
		if d[1] >= least {
			memory++
		}
		if min(d[0], d[1]) >= least {
			both++
		}
	}
	all := len(deviates)
	return []lab.Claim{
		Paper.Stated("ecs/fig1", "fluctuate").Judge(fmt.Sprintf("CPU of %d and memory of %d of %d programs, both of %d", cpu,
			memory, all, both), both == all, 2*max(cpu, memory) > all),
		Paper.Stated("ecs/fig1", "idle").Judge(fmt.Sprintf("%d of %d programs", idle, all), 2*idle > all, idle > 0),
	}
}

// coresTrack draws what CPU was used, and what the phases demand.
func coresTrack(r *lab.Recording, phases []cluster.Phase) chart.Track {
	t := chart.Track{Name: r.Name, Top: 1.05 * float64(r.Peak(resource.CPU)) / float64(resource.Core), High: 60}
	t.Notes = []string{"peak " + lab.Decimals(t.Top/1.05, 2) + " cores"}
	used, at := chart.Area{Name: "used", Color: 1}, 0.0
	for i := range r.Spans {
		t.X, used.Y = append(t.X, at),
			append(used.Y, min(t.Top, float64(r.Spans[i].Usage[resource.CPU])/float64(resource.Core)))
		at += r.Spans[i].Length.Seconds()
	}
	t.X, used.Y = append(t.X, at), append(used.Y, 0)
	demand := coresOf("demand of the phases found", phases)
	demand.Color = 2
	t.Areas, t.Lines = []chart.Area{used}, []chart.Series{demand}
	return t
}
