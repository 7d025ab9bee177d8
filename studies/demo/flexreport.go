package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// Write prints the result, for people.
func (r *FlexResult) Write(w io.Writer) error {
	var t text
	t.WriteString("\n")
	if r.Why != "" {
		t.say("The FLEX part was left out: %s.", r.Why)
	} else {
		t.flex(r)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// flexLegend explains the columns.
const flexLegend = "KILLS are of programs, for memory: a job has %d attempts; JOB RUNTIME is the mean from " +
	"submission to end of jobs that finished; USED is the memory that programs held over that of the node; RUNNING " +
	"is how many ran at once, SUSPENDED how many stood still meanwhile, both on average. WAITING is how much of " +
	"the time a program was suspended, or a job not started, for lack of memory; USED THEN is the memory that " +
	"programs held during that time, GRANTED the limits of their containers, both over that of the node; CPU is " +
	"the CPU time of all jobs over that of the cores."

func (t *text) flex(r *FlexResult) {
	t.say("%d jobs whose memory comes and goes share %s and %s cores with a stream of short REGULAR jobs. Medians "+
		"of %s, with the least and the most.", r.Jobs, resource.FormatMemory(r.Node[resource.Memory]),
		resource.FormatCPU(r.Node[resource.CPU]), rounds(r.Summaries[0].Rounds))
	t.WriteString("\n")
	t.flexTables([]FlexResult{*r}, false)
	t.say(flexLegend, r.Attempts)
	t.WriteString("\n")
	t.flexAbout(r)
	t.WriteString("\n")
	t.claims(flexClaims(r))
	t.flexOthers(r.Summaries)
}

// flexTables writes three tables with a row for each summary. Where several numbers of jobs are compared, the rows have
// them too, and how many cores the jobs used.
func (t *text) flexTables(all []FlexResult, compared bool) {
	first := "ALLOCATION"
	if compared {
		first = "JOBS, ALLOCATION"
	}
	times := [][]string{{first, "FINISHED", "KILLS", "MAKESPAN, s", "JOB RUNTIME, s"}}
	waiting := [][]string{{first, "WAITING, %", "USED THEN, %", "GRANTED, %", "CPU, %"}}
	memory := [][]string{{first, "USED, %", "RUNNING", "SUSPENDED", "MOST IN SWAP"}}
	stream := [][]string{{"SHORT JOBS BESIDE", "JOBS", "p50, s", "p95, s", "p99, s"}}
	if compared {
		memory[0] = append(memory[0], "CORES")
	}
	for i := range all {
		for _, s := range all[i].Summaries {
			name, used := s.Allocation, s.memory()
			if compared {
				name, used = fmt.Sprintf("%d, %s", all[i].Jobs, name), append(used, fmt.Sprintf("%.2f", s.Cores.Median))
			}
			if all[i].Jobs > 0 {
				times = append(times, append([]string{name}, s.times()...))
				memory = append(memory, append([]string{name}, used...))
				waiting = append(waiting, append([]string{name}, s.waiting()...))
			}
			stream = append(stream, append([]string{name}, s.Stream.cells()...))
		}
	}
	t.table(times)
	t.table(memory)
	t.table(waiting)
	t.table(stream)
}

// times, memory and cells return the rows of the tables.
func (s *FlexSummary) times() []string {
	runtime := "-"
	if s.Finished.Most > 0 {
		runtime = s.Runtime.spread(1, 1)
	}
	return []string{s.Finished.spread(0, 1), s.Kills.spread(0, 1), s.Makespan.spread(1, 1), runtime}
}

func (s *FlexSummary) memory() []string {
	return []string{s.Used.spread(0, 0.01), fmt.Sprintf("%.2f", s.AtOnce.Median), s.Suspended.spread(2, 1),
		wholeMiB(s.Swapped)}
}

func (s *FlexSummary) waiting() []string {
	used, granted := "-", "-"
	if s.Waiting.Most > 0 {
		used, granted = s.UsedWaiting.spread(0, 0.01), s.GrantedWaiting.spread(0, 0.01)
	}
	return []string{s.Waiting.spread(0, 0.01), used, granted, s.CoresUsed.spread(0, 0.01)}
}

func wholeMiB(m resource.Amount) string {
	return resource.FormatMemory(m / resource.MiB * resource.MiB)
}

func (l *Latency) cells() []string {
	jobs := fmt.Sprint(l.Jobs)
	if l.Finished < l.Jobs {
		jobs = fmt.Sprintf("%d of %d", l.Finished, l.Jobs)
	}
	return []string{jobs, fmt.Sprintf("%.2f", l.P50), fmt.Sprintf("%.2f", l.P95), fmt.Sprintf("%.2f", l.P99)}
}

// flexAbout describes the mix and the runs.
func (t *text) flexAbout(r *FlexResult) {
	t.say("Programs: %s. Each checks what it computed.", strings.Join(r.Programs, "; "))
	for _, m := range r.Missing {
		t.say("Left out: %s.", m)
	}
	for i := range allocations {
		t.say("%s: %s.", allocations[i].Label, allocations[i].about)
	}
}

func (t *text) claims(all []claim) {
	for _, c := range all {
		t.say("%s: %s", c.verdict(), c.text)
	}
}

// claim is a sentence that is true or false.
type claim struct {
	text  string
	holds bool
}

func (c *claim) verdict() string {
	if c.holds {
		return "Holds"
	}
	return "Does not hold"
}

// enoughUsed is the share of the memory that programs are to use while anyone waits for memory.
const enoughUsed = 0.8

// flexClaims returns the promises of FLEX containers, judged by the result.
func flexClaims(r *FlexResult) []claim {
	peak, half, flex := &r.Summaries[0], &r.Summaries[1], &r.Summaries[2]
	jobs := float64(r.Jobs)
	claims := []claim{
		{fmt.Sprintf("too little memory kills with fixed containers (%.0f kills, %.0f of %d jobs finished) and not "+
			"with FLEX (%.0f kills, %.0f finished).", half.Kills.Median, half.Finished.Median, r.Jobs, flex.Kills.Median,
			flex.Finished.Median),
			half.Kills.Least > 0 && flex.Kills.Most == 0 && flex.Finished.Least == jobs},
		{fmt.Sprintf("memory was short enough for FLEX to suspend and to swap: %.2f jobs stood still on average, with "+
			"up to %s in swap.", flex.Suspended.Median, wholeMiB(flex.Swapped)),
			flex.Suspended.Least > 0 && flex.Swapped > 0},
	}
	words := "FLEX ends %.2f times as fast as containers of the peak: it ran %.2f jobs at once, they %.2f"
	if flex.Rounds > 1 && !flex.Makespan.Clearly(peak.Makespan) && !peak.Makespan.Clearly(flex.Makespan) {
		words += " (their rounds overlap)"
	}
	claims = append(claims,
		claim{fmt.Sprintf(words+".", peak.Makespan.Median/flex.Makespan.Median, flex.AtOnce.Median, peak.AtOnce.Median),
			flex.Makespan.Median < peak.Makespan.Median},
		claim{fmt.Sprintf("FLEX uses more of the memory: %.0f %% instead of %.0f %%.", 100*flex.Used.Median,
			100*peak.Used.Median), flex.Used.Median > peak.Used.Median},
		claim{fmt.Sprintf("FLEX uses at least %.0f %% of the memory while anyone waits for memory: %.0f %%.",
			100*enoughUsed, 100*flex.UsedWaiting.Median), flex.Waiting.Least > 0 && flex.UsedWaiting.Median >= enoughUsed},
		claim{fmt.Sprintf("short jobs wait less beside FLEX: p95 %.2f s instead of %.2f s.", flex.Stream.P95,
			peak.Stream.P95), flex.Stream.P95 < peak.Stream.P95})
	return claims
}

// flexOthers says how much other work on the machine disturbed the runs.
func (t *text) flexOthers(all []FlexSummary) {
	var cores []*Figure
	for i := range all {
		cores = append(cores, all[i].Others)
	}
	t.others("Other work on this machine, swapping among it, kept up to %.1f of its cores busy meanwhile.", cores)
}
