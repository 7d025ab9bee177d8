package sparkstream

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/sim/trial"
)

// machine is what the machine did during a run, all programs together.
type machine struct {
	Used  float64 `json:"used_cpu_s"`
	Steal float64 `json:"steal_cpu_s"` // which the host gave to others
	Load  float64 `json:"load"`        // mean of a minute, at the end
}

// ticks is the number of units of /proc/stat in a second.
const ticks = 100

func readMachine() (m machine, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m, err
	}
	fields := strings.Fields(strings.SplitN(string(stat), "\n", 2)[0])
	const steal = 8 // cpu user nice system idle iowait irq softirq steal
	for i, text := range fields[:min(len(fields), steal+1)] {
		n, _ := strconv.ParseFloat(text, 64)
		switch i {
		case 1, 2, 3, 6, 7:
			m.Used += n / ticks
		case steal:
			m.Steal += n / ticks
		}
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		m.Load, err = strconv.ParseFloat(strings.Fields(string(load))[0], 64)
	}
	return m, err
}

func (m machine) since(before machine) machine {
	return machine{m.Used - before.Used, m.Steal - before.Steal, m.Load}
}

// mean is the mean time of a query, seconds.
func (r *Run) mean() (s float64) {
	for i := range r.Queries {
		s += r.Queries[i].Took / float64(len(r.Queries))
	}
	return s
}

// start is a quantile of the times until a job had its first task, seconds.
func (r *Run) start(q float64) float64 {
	all := slices.Sorted(slices.Values(r.Starts))
	if len(all) == 0 {
		return math.NaN()
	}
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

// words sums a run up.
func (r *Run) words() string {
	return fmt.Sprintf("%5.1f s, a query %.2f s, first task after %.0f, %.0f and %.0f ms (p50, p75, p95), CPU %.0f s, "+
		"steal %.0f s, load %.1f", r.Took, r.mean(), 1e3*r.start(0.5), 1e3*r.start(0.75), 1e3*r.start(0.95), r.Machine.Used,
		r.Machine.Steal, r.Machine.Load)
}

// column is a number of a run that is compared.
type column struct {
	head, format string
	of           func(*Run) float64
}

var columns = []column{
	{"STREAM, s", "%.1f", func(r *Run) float64 { return r.Took }},
	{"QUERY, s", "%.2f", (*Run).mean},
	{"P50, ms", "%.0f", func(r *Run) float64 { return 1e3 * r.start(0.5) }},
	{"P75, ms", "%.0f", func(r *Run) float64 { return 1e3 * r.start(0.75) }},
	{"CPU, s", "%.0f", func(r *Run) float64 { return r.Machine.Used }},
}

// median of a number over the runs of a contender.
func (r *Result) median(name string, of func(*Run) float64) float64 {
	var all []float64
	for i := range r.Runs {
		if r.Runs[i].Contender == name {
			all = append(all, of(&r.Runs[i]))
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return math.NaN()
	}
	return all[len(all)/2]
}

// ratio estimates a number of bellows over that of another contender, round by round.
func (r *Result) ratio(other string, of func(*Run) float64) trial.Estimate {
	mine, theirs := map[int]float64{}, map[int]float64{}
	for i := range r.Runs {
		switch run := &r.Runs[i]; run.Contender {
		case ours:
			mine[run.Round] = of(run)
		case other:
			theirs[run.Round] = of(run)
		}
	}
	var ratios []float64
	for round, value := range theirs {
		if mine[round] > 0 && value > 0 {
			ratios = append(ratios, mine[round]/value)
		}
	}
	return trial.GeometricMean(ratios)
}

// Write prints the result.
func (r *Result) Write(w io.Writer) error {
	text := fmt.Sprintf("%d applications run %d queries of TPC-H each, and think %v between them on average, on %d "+
		"executors of one core. Medians of %d rounds; P50 and P75 are the times until a job had its first task. "+
		"QUERY OF BELLOWS compares the mean time of a query, round by round.", r.Applications,
		r.Queries, r.Think.Round(time.Millisecond), r.Executors, len(r.Runs)/len(contenders))
	fmt.Fprintln(w, terminal.Fold(text, terminal.Width, ""))
	fmt.Fprintln(w)
	heads := []string{"CONTENDER"}
	for _, c := range columns {
		heads = append(heads, ">"+c.head)
	}
	t := terminal.NewTable(append(heads, ">QUERY OF BELLOWS")...)
	t.Shrinks = 0
	for i := range contenders {
		row := []string{contenders[i].Name}
		for _, c := range columns {
			row = append(row, fmt.Sprintf(c.format, r.median(row[0], c.of)))
		}
		takes := "-"
		if e := r.ratio(row[0], (*Run).mean); row[0] != ours && e.Known() {
			takes = interval(e)
		}
		t.Add(append(row, takes)...)
	}
	return t.Write(w)
}

func interval(e trial.Estimate) string {
	if !e.Interval() {
		return fmt.Sprintf("%.2f", e.Mean)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", e.Mean, e.Low, e.High)
}
