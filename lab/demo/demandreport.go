package demo

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/lab/chart"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/trial"
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
	t.say("%d existing programs share a disk of %s, %s cores of %d and %s. Medians of %s, with the least and the most.", len(r.Programs), rate(r.Speed),
		resource.FormatCPU(r.Node[resource.CPU]), r.CPUs, resource.FormatMemory(r.Node[resource.Memory]), rounds(r.Policies[0].Rounds))
	t.WriteString("\n")
	times := [][]string{{"POLICY", "MAKESPAN, s", "OVER PROPHET", "MEAN WAIT, s"}}
	areas := [][]string{{"POLICY", "FA, GB", "OA, GB", "RUNNING", "SLOWDOWN"}}
	cpu := [][]string{{"POLICY", "CPU, s", "BUSY, s", "STEAL, s"}}
	for i := range r.Policies {
		s := &r.Policies[i]
		times = append(times, []string{s.Policy, s.Makespan.spread(1, 1), ratioText(s.Ratio), s.Wait.spread(1, 1)})
		areas = append(areas, []string{s.Policy, s.Idle.spread(2, 1e9), s.Beyond.spread(2, 1e9), s.AtOnce.spread(1, 1), s.Slowdown.spread(2, 1)})
		cpu = append(cpu, []string{s.Policy, s.CPU.spread(1, 1), s.Busy.spread(1, 1), s.Stolen.spread(1, 1)})
	}
	t.table(times)
	t.table(areas)
	t.table(cpu)
	t.say("OVER PROPHET is the mean ratio of the makespans of one round, with its 95 %% confidence interval. FA is what the disk could have transferred and did not, OA what the running programs demanded beyond its speed, by what each demanded alone at the same progress. RUNNING is how many programs ran at once on average, SLOWDOWN their mean time over that alone. CPU is of the programs, BUSY of the machine with what was stolen from it, STEAL.")
	t.WriteString("\n")
	alone := [][]string{{"ALONE", "TIME, s", "CPU, s", "DISK, MB", "PEAK, MB/s", "PEAK/SPEED"}}
	for _, p := range r.Programs {
		alone = append(alone, []string{p.Name, p.Alone.spread(1, 1), fmt.Sprintf("%.1f", p.CPU), fmt.Sprintf("%.0f", p.Bytes/1e6),
			fmt.Sprintf("%.1f", float64(p.Peak)/1e6), fmt.Sprintf("%.2f", float64(p.Peak)/float64(r.Speed))})
	}
	t.table(alone)
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
	for i := range r.Policies {
		if s := &r.Policies[i]; s.Makespan.Least < shortestRun.Seconds() {
			why = append(why, fmt.Sprintf("a run of %s took %.0f s, and %v are needed", s.Policy, s.Makespan.Least, shortestRun))
		}
	}
	if times := r.peaks(); times < leastPeaks || times > mostPeaks {
		why = append(why, fmt.Sprintf("the peaks are %.2f times the speed of the disk, and must be %v to %v times", times, leastPeaks, mostPeaks))
	}
	return why
}

// claims returns what prophet promises, judged by the result.
func (r *DemandResult) claims() (all []claim) {
	prophet := &r.Policies[len(r.Policies)-1]
	for i := range r.Policies[:len(r.Policies)-1] {
		s := &r.Policies[i]
		words := "prophet ends earlier than %s: that takes %s times as long"
		switch {
		case !s.Ratio.Interval():
			words += " (one round has no interval)"
		case s.Ratio.Low <= 1 && s.Ratio.High >= 1:
			words += " (the interval has 1 in it)"
		}
		all = append(all, claim{fmt.Sprintf(words+".", s.Policy, ratioText(s.Ratio)), s.Ratio.Interval() && s.Ratio.Low > 1},
			claim{fmt.Sprintf("prophet leaves less of the disk idle than %s: %.2f GB instead of %.2f GB.", s.Policy, prophet.Idle.Median/1e9, s.Idle.Median/1e9),
				prophet.Idle.Median < s.Idle.Median},
			claim{fmt.Sprintf("prophet over-allocates no more than %s: %.2f GB and %.2f GB.", s.Policy, prophet.Beyond.Median/1e9, s.Beyond.Median/1e9),
				prophet.Beyond.Median <= s.Beyond.Median})
	}
	return all
}

// why says what bounds the makespans.
func (t *text) why(r *DemandResult) {
	longest := slices.MaxFunc(r.Programs, func(a, b DemandProgram) int { return int(math.Round(a.Alone.Median - b.Alone.Median)) })
	t.say("No schedule is shorter than %.1f s: the longest program alone takes %.1f s (%s), at most %d programs run at once, and all bytes pass through the disk.", r.Least.Seconds(), longest.Alone.Median, longest.Name, demandAtOnce)
	t.say("The disk serves one transfer after the other, without an arm that moves: what is demanded beyond its speed slows the programs down, and costs no transfer. So a policy loses time here by what it leaves idle, and not by over-allocation.")
	for _, s := range r.Policies {
		t.say("%s took %.2f times that. Of what the disk transferred, %.0f %% were counted for programs, and so known to the forecasts.", s.Policy, s.Makespan.Median/r.Least.Seconds(), 100*s.Counted.Median)
	}
}

// Pictures returns what the disk and the jobs did over time under each policy, of the run whose makespan is the median;
// nothing if the part was left out.
func (r *DemandResult) Pictures() []Picture {
	if r.Why != "" {
		return nil
	}
	p := &chart.Tracks{Title: fmt.Sprintf("%d programs share a disk of %s", len(r.Programs), rate(r.Speed)), X: sinceFirst,
		Subtitle: "real runs, each the median of its policy: what the disk transferred, and which programs ran"}
	if len(r.trial()) > 0 {
		p.Title += " (trial)"
	}
	for i := range demandPolicies {
		run := typical(r.of(&demandPolicies[i]), (*DemandRun).Makespan)
		p.To = max(p.To, run.Makespan().Seconds())
		p.Rows = append(p.Rows, r.diskTrack(run), run.jobsTrack(r))
	}
	return []Picture{{"demand", p}}
}

// diskTrack draws what the disk transferred, beside what was counted for the programs.
func (r *DemandResult) diskTrack(run *DemandRun) chart.Track {
	t := chart.Track{Name: run.Policy, High: 80, Top: float64(r.Speed) * 1.1, Notes: []string{
		fmt.Sprintf("makespan %.1f s", run.Makespan().Seconds()), fmt.Sprintf("FA %.2f, OA %.2f GB", run.Areas.Idle/1e9, run.Areas.Beyond/1e9)}}
	disk := chart.Area{Name: "transferred by the disk", Color: 6}
	for i, n := range run.Disk {
		t.X, disk.Y = append(t.X, float64(i)), append(disk.Y, float64(n))
	}
	t.X, disk.Y = append(t.X, run.Makespan().Seconds()), append(disk.Y, 0)
	t.Areas = []chart.Area{disk}
	speed := float64(r.Speed)
	t.Lines = []chart.Series{{Name: "speed of the disk", X: []float64{0, run.Makespan().Seconds()}, Y: []float64{speed, speed}, Dashed: true, Color: 8}}
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
