package demo

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
)

// rate prints bytes per second.
func rate(r resource.Amount) string { return fmt.Sprintf("%.1f MB/s", float64(r)/1e6) }

// Write prints the result, for people.
func (r *DemandResult) Write(w io.Writer) error {
	var t text
	t.WriteString("\n")
	if r.Why != "" {
		t.say("The part demand was left out: %s.", r.Why)
	} else {
		t.demand(r)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func (t *text) demand(r *DemandResult) {
	if trials := r.trial(); len(trials) > 0 {
		t.say("TRIAL, no result: %s.", strings.Join(trials, "; "))
		t.WriteString("\n")
	}
	t.say("%d existing programs share a disk of %s, %s cores of %d and %s. Medians of %s, with the least and the most.",
		len(r.Programs), rate(r.Speed), resource.FormatCPU(r.Node[resource.CPU]), r.CPUs,
		resource.FormatMemory(r.Node[resource.Memory]), rounds(r.Policies[0].Rounds))
	t.WriteString("\n")
	t.demandTables(r)
	t.WriteString("\n")
	t.alone(r)
	for _, s := range r.Policies {
		t.say("%s: %s.", s.Policy, s.About)
	}
	var achieved []string
	for _, c := range r.Verified {
		achieved = append(achieved, fmt.Sprintf("%s under %s", rate(c.Achieved), c.What))
	}
	t.say("The disk achieved %s.", strings.Join(achieved, ", "))
	t.WriteString("\n")
	t.claims(r.claims())
	t.WriteString("\n")
	t.why(r)
}

// demandTables writes the tables with a row for each policy, and what their columns mean.
func (t *text) demandTables(r *DemandResult) {
	last := r.mix().last().Label
	versus := "OVER " + strings.ToUpper(last)
	times := [][]string{{"POLICY", "MAKESPAN, s", versus, "MEAN WAIT, s"}}
	jobs := [][]string{{"POLICY", "JOB TIME, s", versus}}
	areas := [][]string{{"POLICY", "FA, GB", "OA, GB", "RUNNING", "SLOWDOWN"}}
	cores := [][]string{{"POLICY", "CORES, %", "OVER, s", "STOPS", "STILL, s", "RESIZES"}}
	cpu := [][]string{{"POLICY", "CPU, s", "BUSY, s", "STEAL, s"}}
	for i := range r.Policies {
		s := &r.Policies[i]
		times = append(times, []string{s.Policy, s.Makespan.spread(1, 1), ratioText(s.Ratio), s.Wait.spread(1, 1)})
		areas = append(areas, []string{s.Policy, s.Idle.spread(2, 1e9), s.Beyond.spread(2, 1e9), s.AtOnce.spread(1, 1),
			s.Slowdown.spread(2, 1)})
		cpu = append(cpu, []string{s.Policy, s.CPU.spread(1, 1), s.Busy.spread(1, 1), s.Stolen.spread(1, 1)})
		if c := s.Sharing; c != nil {
			jobs = append(jobs, []string{s.Policy, c.JobTime.spread(1, 1), ratioText(c.JobRatio)})
			cores = append(cores, []string{s.Policy, c.Used.spread(0, 0.01), c.Over.spread(0, 1), c.Stops.spread(0, 1),
				c.Suspended.spread(1, 1), c.Resizes.spread(0, 1)})
		}
	}
	t.table(times)
	if r.mix().byCores() {
		t.table(jobs)
		t.table(cores)
	}
	t.table(areas)
	t.table(cpu)
	compared := "makespans"
	if r.mix().byCores() {
		compared = "times"
	}
	t.say("%s is the mean ratio of the %s of one round, with its 95 %% confidence interval. FA is what the disk "+
		"could have transferred and did not, OA what the running programs demanded beyond its speed, by what each "+
		"demanded alone at the same progress. RUNNING is how many programs ran at once on average, SLOWDOWN their "+
		"mean time over that alone. CPU is of the programs, BUSY of the machine with what was stolen from it, STEAL.",
		versus, compared)
	if r.mix().byCores() {
		t.say("JOB TIME is the mean from submission to end. CORES is the CPU time of the programs over that of the "+
			"cores. OVER is how long the running programs demanded more than %.2f times the cores, by what each used "+
			"alone at the same progress. STOPS is how often a program was stopped so that others keep going, STILL how "+
			"long all programs stood still, RESIZES how often a grant changed.", overAllocated)
	}
}

// alone writes what the programs do alone.
func (t *text) alone(r *DemandResult) {
	heads := []string{"ALONE", "TIME, s", "CPU, s", "DISK, MB", "PEAK, MB/s", "PEAK/SPEED"}
	if r.mix().byCores() {
		heads = []string{"ALONE", "TIME, s", "CPU, s", "BOX, cores", "PEAK, cores", "PHASES", "DISK, MB"}
	}
	rows := [][]string{heads}
	for _, p := range r.Programs {
		disk := fmt.Sprintf("%.0f", p.Bytes/1e6)
		row := []string{p.Name, p.Alone.spread(1, 1), fmt.Sprintf("%.1f", p.CPU)}
		if r.mix().byCores() {
			row = append(row, resource.FormatCPU(p.Cores), fmt.Sprintf("%.2f", float64(p.PeakCPU)/float64(resource.Core)),
				fmt.Sprint(p.Count), disk)
		} else {
			row = append(row, disk, fmt.Sprintf("%.1f", float64(p.Peak)/1e6),
				fmt.Sprintf("%.2f", float64(p.Peak)/float64(r.Speed)))
		}
		rows = append(rows, row)
	}
	t.table(rows)
}

func ratioText(e *trial.Estimate) string {
	switch {
	case e == nil || !e.Known():
		return "-"
	case !e.Interval():
		return fmt.Sprintf("%.3f", e.Mean)
	}
	return fmt.Sprintf("%.3f (%.3f–%.3f)", e.Mean, e.Low, e.High)
}

// trial says why the runs are a trial and no result; empty if they are a result.
func (r *DemandResult) trial() (why []string) {
	if r.Tenths != fullTenths {
		why = append(why, fmt.Sprintf("the inputs have %d tenths of their size", r.Tenths))
	}
	if n := r.Policies[0].Rounds; n < demandRounds {
		why = append(why, fmt.Sprintf("there are %s, and %d are needed", rounds(n), demandRounds))
	}
	if round, mean := r.shortestRound(); mean < shortestRun {
		why = append(why, fmt.Sprintf("the runs of round %d took %.0f s on average, and %v are needed", round,
			mean.Seconds(), shortestRun))
	}
	if times := r.peaks(); !r.mix().byCores() && (times < leastPeaks || times > mostPeaks) {
		why = append(why, fmt.Sprintf("the peaks are %.2f times the speed of the disk, and must be %v to %v times", times,
			leastPeaks, mostPeaks))
	}
	return why
}

// shortestRound returns the round whose runs took the shortest time on average, and that time. One run alone may be
// shorter than the others: its policy would disqualify itself by ending early.
func (r *DemandResult) shortestRound() (round int, mean time.Duration) {
	sum, n := map[int]time.Duration{}, map[int]time.Duration{}
	for i := range r.Runs {
		sum[r.Runs[i].Round] += r.Runs[i].Makespan()
		n[r.Runs[i].Round]++
	}
	for _, k := range slices.Sorted(maps.Keys(n)) {
		if m := sum[k] / n[k]; round == 0 || m < mean {
			round, mean = k, m
		}
	}
	return round, mean
}

// claims returns what the last policy promises, judged by the result.
func (r *DemandResult) claims() (all []claim) {
	last := &r.Policies[len(r.Policies)-1]
	for i := range r.Policies[:len(r.Policies)-1] {
		s := &r.Policies[i]
		all = append(all, shorter(fmt.Sprintf("%s ends earlier than %s: that takes %%s times as long", last.Policy,
			s.Policy), s.Ratio))
		if c, of := last.Sharing, s.Sharing; c != nil {
			all = append(all, shorter(
				fmt.Sprintf("under %s the mean time of a job is shorter than under %s: that takes %%s times as long", last.Policy,
					s.Policy), of.JobRatio),
				claim{fmt.Sprintf("%s uses more of the cores than %s: %.0f %% instead of %.0f %%.", last.Policy, s.Policy,
					100*c.Used.Median, 100*of.Used.Median), c.Used.Median > of.Used.Median},
				claim{fmt.Sprintf("under %s programs demand more than the cores for no longer than under %s: %.0f s and %.0f s.",
					last.Policy, s.Policy, c.Over.Median, of.Over.Median), c.Over.Median <= of.Over.Median})
			continue
		}
		all = append(all, claim{fmt.Sprintf("%s leaves less of the disk idle than %s: %.2f GB instead of %.2f GB.",
			last.Policy, s.Policy, last.Idle.Median/1e9, s.Idle.Median/1e9), last.Idle.Median < s.Idle.Median},
			claim{fmt.Sprintf("%s over-allocates no more than %s: %.2f GB and %.2f GB.", last.Policy, s.Policy,
				last.Beyond.Median/1e9, s.Beyond.Median/1e9), last.Beyond.Median <= s.Beyond.Median})
	}
	return all
}

// shorter returns the claim that a ratio is above 1. words have a place for it.
func shorter(words string, ratio *trial.Estimate) claim {
	switch {
	case !ratio.Interval():
		words += " (one round has no interval)"
	case ratio.Low <= 1 && ratio.High >= 1:
		words += " (the interval has 1 in it)"
	}
	return claim{fmt.Sprintf(words+".", ratioText(ratio)), ratio.Interval() && ratio.Low > 1}
}

// why says what bounds the makespans.
func (t *text) why(r *DemandResult) {
	if r.mix().byCores() {
		t.say("No schedule is shorter than %.1f s: no job ends earlier alone, the programs need their CPU time, and "+
			"all bytes pass through the disk.", r.Least.Seconds())
	} else {
		longest := slices.MaxFunc(r.Programs, func(a, b DemandProgram) int {
			return int(math.Round(a.Alone.Median - b.Alone.Median))
		})
		t.say("No schedule is shorter than %.1f s: the longest program alone takes %.1f s (%s), at most %d programs "+
			"run at once, and all bytes pass through the disk.", r.Least.Seconds(), longest.Alone.Median, longest.Name,
			r.mix().atOnce)
		t.say("The disk serves one transfer after the other, without an arm that moves: what is demanded beyond its " +
			"speed slows the programs down, and costs no transfer. So a policy loses time here by what it leaves idle, " +
			"and not by over-allocation.")
	}
	for _, s := range r.Policies {
		t.say("%s took %.2f times that. Of what the disk transferred, %.0f %% were counted for programs, and so known "+
			"to the forecasts.", s.Policy, s.Makespan.Median/r.Least.Seconds(), 100*s.Counted.Median)
	}
}

// Pictures returns what the disk, or the cores, and the programs did over time under each policy, of the run whose
// makespan is the median; nothing if the part was left out.
func (r *DemandResult) Pictures() []Picture {
	if r.Why != "" {
		return nil
	}
	p := &chart.Tracks{Title: fmt.Sprintf("%d programs share a disk of %s", len(r.Programs), rate(r.Speed)), X: sinceFirst,
		Subtitle: "real runs, each the median of its policy: what the disk transferred, and which programs ran"}
	if r.mix().byCores() {
		p.Title = fmt.Sprintf("%d programs share %s cores", len(r.Programs), resource.FormatCPU(r.Node[resource.CPU]))
		p.Subtitle = "real runs, each the median of its policy: the cores that programs used, and which programs ran"
	}
	if len(r.trial()) > 0 {
		p.Title += " (trial)"
	}
	for _, c := range r.mix().policies {
		run := typical(r.of(&c), (*DemandRun).Makespan)
		p.To = max(p.To, run.Makespan().Seconds())
		track := run.track(run.Disk, r.Speed, "transferred by the disk", "speed of the disk",
			fmt.Sprintf("FA %.2f, OA %.2f GB", run.Areas.Idle/1e9, run.Areas.Beyond/1e9))
		if r.mix().byCores() {
			track = run.track(run.cores(), r.Node[resource.CPU], "millicores used", "cores", fmt.Sprintf("%d stops", run.Stops))
		}
		p.Rows = append(p.Rows, track, run.jobsTrack(r))
	}
	return []Picture{{"demand", p}}
}

// cores returns how many millicores the programs used in each second.
func (run *DemandRun) cores() []resource.Amount {
	all := make([]resource.Amount, len(run.Disk))
	for i := range all {
		for _, j := range run.Jobs {
			now, _ := j.Use.at(time.Duration(i)*time.Second + time.Second/2 - j.Started)
			all[i] += now.CPU
		}
	}
	return all
}

// track draws what was used of a resource in each second, beside its capacity.
func (run *DemandRun) track(used []resource.Amount, capacity resource.Amount, name, limit, note string) chart.Track {
	most := float64(capacity)
	t := chart.Track{Name: run.Policy, High: 80, Top: most * 1.1,
		Notes: []string{fmt.Sprintf("makespan %.1f s", run.Makespan().Seconds()), note}}
	area := chart.Area{Name: name, Color: 6}
	for i, n := range used {
		t.X, area.Y = append(t.X, float64(i)), append(area.Y, float64(n))
	}
	t.X, area.Y = append(t.X, run.Makespan().Seconds()), append(area.Y, 0)
	t.Areas = []chart.Area{area}
	t.Lines = []chart.Series{{Name: limit, X: []float64{0, run.Makespan().Seconds()}, Y: []float64{most, most},
		Dashed: true, Color: 8}}
	return t
}

// jobsTrack stacks the programs that ran.
func (run *DemandRun) jobsTrack(r *DemandResult) chart.Track {
	var times []time.Duration
	for _, j := range run.Jobs {
		times = append(times, j.Started, j.Ended)
	}
	slices.Sort(times)
	t := chart.Track{Notes: []string{"programs running"}, High: 60, Top: float64(len(run.Jobs))}
	for i, j := range run.Jobs {
		x, y := steps(times, func(at time.Duration) float64 {
			if j.Started <= at && at < j.Ended {
				return 1
			}
			return 0
		})
		t.X, t.Areas = x, append(t.Areas, chart.Area{Name: j.Name, Y: y, Color: i + 1})
	}
	return t
}
