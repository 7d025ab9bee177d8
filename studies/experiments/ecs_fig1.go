package experiments

import (
	"fmt"
	"math"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
)

func ecsFigure1(*lab) (*Findings, error) {
	table := newTable("Deviations of CPU use (Table I), which the models follow, and phases of the models", "benchmark",
		"kind", "map task, paper", "model", "reduce task, paper", "model", "phases of a map task", "phases of a reduce task")
	least, most := math.Inf(1), 0.0
	for i := range ecsBenchmarks {
		b := &ecsBenchmarks[i]
		row := []string{b.name, b.kind}
		for k, phases := range [][]cluster.Phase{ecsUsual.phasesOfMap(b, 1), ecsUsual.phasesOfReduce(b, 1)} {
			deviates := deviationOf(phases)
			least, most = min(least, deviates), max(most, deviates)
			paper := "–"
			if b.listed {
				paper = decimals(b.deviations[k], 2)
			}
			row = append(row, paper, decimals(deviates, 2))
		}
		table.add(append(row, phasesText(ecsUsual.phasesOfMap(b, 1)), phasesText(ecsUsual.phasesOfReduce(b, 1)))...)
	}
	shown := ecsBenchmarkOf("wordcount")
	maps, reduces := ecsUsual.phasesOfMap(shown, 1), ecsUsual.phasesOfReduce(shown, 1)
	plot := &chart.Plot{Title: "CPU of tasks of wordcount", Subtitle: "synthetic", X: "time, s", Y: "cores",
		Series: []chart.Series{coresOf("map task", maps), coresOf("reduce task", reduces)}}
	claims := ecsFig1Claims(least, most, shareBelow(maps), shareBelow(reduces), reduces)
	real, err := ecsRecorded()
	if err != nil {
		return nil, err
	}
	return &Findings{Tables: append([]Table{table}, real.Tables...), Claims: append(claims, real.Claims...),
		Pictures: append([]Picture{{"wordcount",
			"CPU that a map task and a reduce task of wordcount demand over time (synthetic)", plot}}, real.Pictures...)}, nil
}

// phasesText names phases with how long they last and what CPU they demand.
func phasesText(phases []cluster.Phase) (text string) {
	for i, p := range phases {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %s s of %s", p.Name, decimals(p.Duration.Seconds(), 0),
			decimals(float64(p.Demand[resource.CPU])/float64(resource.Core), 1))
	}
	return text + " cores"
}

// coresOf draws the CPU that phases demand.
func coresOf(name string, phases []cluster.Phase) chart.Series {
	s := stepsOf(name, phases, resource.CPU)
	for i := range s.Y {
		s.Y[i] *= 1e6 / float64(resource.Core) // stepsOf draws millions
	}
	return s
}

// shareBelow is the share of the time with at most half of the largest demand of CPU.
func shareBelow(phases []cluster.Phase) (share float64) {
	u := usageOf(phases)
	for _, p := range phases {
		if p.Demand[resource.CPU] <= u.peak[resource.CPU]/2 {
			share += p.Duration.Seconds() / u.lasts
		}
	}
	return share
}

// ecsFig1Claims judges the least and the largest deviation of all tasks, for which share of its time a map and a
// reduce task of wordcount demand little, and the phases of the latter.
func ecsFig1Claims(least, most, maps, reduces float64, phases []cluster.Phase) []Claim {
	const fig = "ecs/fig1"
	u, first := usageOf(phases), phases[0].Demand[resource.CPU]
	peak, average := float64(u.peak[resource.CPU]), float64(u.mean[resource.CPU])
	return []Claim{
		stated(fig, "deviations").madeSo(decimals(least, 2)+" to "+decimals(most, 2), within(least, 0.115, 0.125) &&
			within(most, 0.325, 0.335)),
		stated(fig, "low").madeSo(fmt.Sprintf("at most half of the peak: map %s, reduce %s of the time", percent(maps),
			percent(reduces)), maps > 0.5 && reduces > 0.5),
		stated(fig, "peak").judge(fmt.Sprintf("%s of the peak initially; the peak is %s times the mean",
			percent(float64(first)/peak), decimals(peak/average, 1)), float64(first) == peak, peak > 2*average),
	}
}

// deviation is the standard deviation over time of what was used of a resource, of its peak, where it is known; low
// is the share of the time with at most half of the peak.
func (r *recording) deviation(k resource.Kind) (deviates, low float64) {
	mean, _ := r.share(k)
	peak, whole, squares := float64(r.peak(k)), 0.0, 0.0
	for i := range r.spans {
		s := &r.spans[i]
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

// ecsRecorded are the recordings of real programs.
func ecsRecorded() (*Findings, error) {
	all, err := recorded()
	if err != nil {
		return nil, err
	}
	table := newTable("Recorded programs (not jobs of the paper; of peaks of half a second or more)", "program",
		"what it does", "run time", "phases found", "deviation of CPU", "of memory", "CPU, mean of peak",
		"memory, mean of peak", "time with at most half of its CPU peak")
	p := &chart.Tracks{Title: "CPU of real programs", Subtitle: "recorded; each to its own scale, the first 70 s",
		X: "time, s", To: 70}
	var deviates [][2]float64
	idle := 0
	for i := range all {
		r := &all[i]
		run, _ := profile.Segment(r.spans)
		cpu, low := r.deviation(resource.CPU)
		memory, _ := r.deviation(resource.Memory)
		meanCPU, _ := r.share(resource.CPU)
		meanMemory, _ := r.share(resource.Memory)
		table.add(r.name, r.what, decimals(run.Duration.Seconds(), 0)+" s", strconv.Itoa(len(run.Phases)), decimals(cpu, 2),
			decimals(memory, 2), percent(meanCPU), percent(meanMemory), percent(low))
		deviates = append(deviates, [2]float64{cpu, memory})
		if low > 0.5 {
			idle++
		}
		p.Rows = append(p.Rows, r.coresTrack(run.Phases))
	}
	return &Findings{Tables: []Table{table}, Claims: ecsRecordedClaims(deviates, idle),
		Pictures: []Picture{{"recorded", "CPU of real programs over time, and the demand of the phases found (recorded)",
			p}}}, nil
}

// ecsRecordedClaims judges the deviations of CPU and memory of programs, and how many programs use little CPU for
// more than half of their time.
func ecsRecordedClaims(deviates [][2]float64, idle int) []Claim {
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
	return []Claim{
		stated("ecs/fig1", "fluctuate").judge(fmt.Sprintf("CPU of %d and memory of %d of %d programs, both of %d", cpu,
			memory, all, both), both == all, 2*max(cpu, memory) > all),
		stated("ecs/fig1", "idle").judge(fmt.Sprintf("%d of %d programs", idle, all), 2*idle > all, idle > 0),
	}
}

// coresTrack draws what CPU was used, and what the phases demand.
func (r *recording) coresTrack(phases []cluster.Phase) chart.Track {
	t := chart.Track{Name: r.name, Top: 1.05 * float64(r.peak(resource.CPU)) / float64(resource.Core), High: 60}
	t.Notes = []string{"peak " + decimals(t.Top/1.05, 2) + " cores"}
	used, at := chart.Area{Name: "used", Color: 1}, 0.0
	for i := range r.spans {
		t.X, used.Y = append(t.X, at),
			append(used.Y, min(t.Top, float64(r.spans[i].Usage[resource.CPU])/float64(resource.Core)))
		at += r.spans[i].Length.Seconds()
	}
	t.X, used.Y = append(t.X, at), append(used.Y, 0)
	demand := coresOf("demand of the phases found", phases)
	demand.Color = 2
	t.Areas, t.Lines = []chart.Area{used}, []chart.Series{demand}
	return t
}
