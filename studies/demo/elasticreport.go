package demo

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// predictionGoal is the largest error of a good prediction.
const predictionGoal = 0.15

// Write prints the result, for people.
func (r *ElasticResult) Write(w io.Writer) error {
	var t text
	t.allocations(r)
	t.verdict(r)
	if !r.Simulated {
		t.predictions(r)
		var cores []*Figure
		for i := range r.Summaries {
			cores = append(cores, r.Summaries[i].Others)
		}
		t.others("Other work on this machine kept up to %.1f of its cores busy meanwhile: times are longer, and "+
			"differ more, than on a quiet machine.", cores)
		t.replays(r)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// legend explains the columns.
const legend = "USED is what programs fill with data, AT ONCE how many run, on average; SLOWDOWN is their time " +
	"over that with ideal memory; PROGRESS is AT ONCE over SLOWDOWN: as many tasks with ideal memory would get as " +
	"much done."

func (t *text) allocations(r *ElasticResult) {
	first := r.Predicted[0]
	t.WriteString("\n")
	about := fmt.Sprintf("%d jobs with %d tasks share %s and %s cores.", len(first.Jobs), len(first.Tasks),
		resource.FormatMemory(r.Node[resource.Memory]), resource.FormatCPU(r.Node[resource.CPU]))
	if r.Simulated {
		t.say("%s All of this is simulated, with profiles recorded on another machine.", about)
	} else {
		t.say("%s Medians of %s, with the least and the most; memory is the mean over the makespan.", about,
			rounds(r.Summaries[0].Rounds))
	}
	mark := ""
	if r.Simulated {
		mark = " (simulated)"
	}
	times := [][]string{{"ALLOCATION", "JOB RUNTIME, s", "MAKESPAN, s", "KILLS"}}
	memory := [][]string{{"ALLOCATION", "GRANTED, MiB", "USED, MiB", "AT ONCE", "SLOWDOWN", "PROGRESS"}}
	const mib = float64(resource.MiB)
	for _, s := range r.Summaries {
		times = append(times, []string{s.Configuration + mark, s.AverageJobRuntime.spread(1, 1), s.Makespan.spread(1, 1),
			s.Kills.spread(0, 1)})
		used := "-"
		if s.Used != nil {
			used = s.Used.spread(0, mib)
		}
		memory = append(memory, []string{s.Configuration + mark, s.Granted.spread(0, mib), used,
			fmt.Sprintf("%.2f", s.AtATime.Median), fmt.Sprintf("%.2f", s.Slowdown.Median), fmt.Sprintf("%.2f", s.speed())})
	}
	t.WriteString("\n")
	t.table(times)
	t.table(memory)
	t.say("%s", legend)
	t.WriteString("\n")
	for _, s := range r.Summaries {
		t.say("%s: policy %s, %s.", s.Configuration, s.Policy, s.About)
	}
	t.WriteString("\n")
}

// verdict says which allocation won, by how much, and why.
func (t *text) verdict(r *ElasticResult) {
	t.say("%s", verdictOn("Average job runtime", r, func(s *Summary) Figure { return s.AverageJobRuntime }))
	t.say("%s", verdictOn("Makespan", r, func(s *Summary) Figure { return s.Makespan }))
	t.WriteString("\n")
	t.say("Why: %s", why(r))
	if best := fastest(r, func(s *Summary) Figure { return s.AverageJobRuntime }); best.Configuration != elastic.Label {
		t.say("%s", whyNot(r, best))
	}
}

// speed is how many tasks with ideal memory would do as much work.
func (s *Summary) speed() float64 { return s.AtATime.Median / s.Slowdown.Median }

// why explains the times by the use of the cores.
func why(r *ElasticResult) string {
	cores := float64(r.Node[resource.CPU]) / float64(resource.Core)
	var clauses []string
	for i := range r.Summaries {
		s := &r.Summaries[i]
		idle := ""
		if share := 1 - s.AtATime.Median/cores; share > 0.2 {
			idle = fmt.Sprintf(" (%.0f %% of the cores idle)", 100*share)
		}
		sized := "none under-sized"
		if n := s.UnderSized.Median; n > 0 {
			sized = fmt.Sprintf("%.0f under-sized", n)
		}
		clauses = append(clauses,
			fmt.Sprintf("%s ran %.2f tasks at once%s, %s, each %.2f times as long as with ideal memory", s.Configuration,
				s.AtATime.Median, idle, sized, s.Slowdown.Median))
	}
	return strings.Join(clauses, "; ") + "."
}

// fastest returns the contender with the smallest median.
func fastest(r *ElasticResult, of func(*Summary) Figure) *Summary {
	best := &r.Summaries[0]
	for i := range r.Summaries {
		if of(&r.Summaries[i]).Median < of(best).Median {
			best = &r.Summaries[i]
		}
	}
	return best
}

// verdictOn compares the elastic allocation with every fixed one.
func verdictOn(what string, r *ElasticResult, of func(*Summary) Figure) string {
	at := slices.IndexFunc(r.Summaries, func(s Summary) bool { return s.Configuration == elastic.Label })
	ours := of(&r.Summaries[at])
	best := fastest(r, of)
	var clauses []string
	for i := range r.Summaries {
		if i == at {
			continue
		}
		s := &r.Summaries[i]
		theirs := of(s)
		clause := fmt.Sprintf("%.2f times as fast as %s", theirs.Median/ours.Median, s.Configuration)
		if theirs.Median < ours.Median {
			clause = fmt.Sprintf("%.2f times slower than %s", ours.Median/theirs.Median, s.Configuration)
		}
		if s.Rounds > 1 && !ours.Clearly(theirs) && !theirs.Clearly(ours) {
			clause += " (their rounds overlap)"
		}
		clauses = append(clauses, clause)
	}
	head := fmt.Sprintf("%s: yarn-me wins with %.1f s", what, ours.Median)
	if best.Configuration != elastic.Label {
		head = fmt.Sprintf("%s: yarn-me does not win with %.1f s, %s does with %.1f s; yarn-me is", what, ours.Median,
			best.Configuration, of(best).Median)
		return head + " " + strings.Join(clauses, ", ") + "."
	}
	return head + ": " + strings.Join(clauses, ", ") + "."
}

// whyNot says why a fixed allocation was better than the elastic allocation.
func whyNot(r *ElasticResult, best *Summary) string {
	ours := &r.Summaries[slices.IndexFunc(r.Summaries, func(s Summary) bool { return s.Configuration == elastic.Label })]
	switch {
	case best.speed() <= ours.speed():
		return fmt.Sprintf("%s got no more done at once, but served the jobs in an order that let short ones end earlier.",
			sentence(best.Configuration))
	case best.AtATime.Median > ours.AtATime.Median && best.Slowdown.Median >= ours.Slowdown.Median:
		return fmt.Sprintf("%s won because it kept more cores busy, and too little memory costs this mix less than an "+
			"idle core does.", sentence(best.Configuration))
	case best.Slowdown.Median < ours.Slowdown.Median:
		return fmt.Sprintf("%s won because its tasks ran faster: yarn-me under-sized tasks for which that is costly.",
			sentence(best.Configuration))
	}
	return fmt.Sprintf("%s won because it got more done at once.", sentence(best.Configuration))
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// predictions prints the simulator's predictions, made before the runs.
func (t *text) predictions(r *ElasticResult) {
	t.WriteString("\n")
	t.say("Predicted before the mix ran, from the profiles, the job file, and two figures of this machine: the "+
		"daemon adds %.0f ms to a task, and another task beside it makes a task %.2f times slower.",
		milliseconds(r.Machine.Launch), r.Machine.Neighbour)
	rows := [][]string{{"ALLOCATION", "JOB RUNTIME, s", "PREDICTED", "ERROR", "MAKESPAN, s", "PREDICTED", "ERROR"}}
	worst := 0.0
	for i, p := range r.Predictions {
		s := &r.Summaries[i]
		rows = append(rows, []string{p.Configuration, fmt.Sprintf("%.1f", s.AverageJobRuntime.Median),
			fmt.Sprintf("%.1f", p.AverageJobRuntime), percent(p.AverageJobRuntimeError),
			fmt.Sprintf("%.1f", s.Makespan.Median), fmt.Sprintf("%.1f", p.Makespan), percent(p.MakespanError)})
		worst = max(worst, math.Abs(p.AverageJobRuntimeError), math.Abs(p.MakespanError))
	}
	t.WriteString("\n")
	t.table(rows)
	if worst <= predictionGoal {
		t.say("The worst prediction is off by %.1f %%: within the goal of %.0f %%.", 100*worst, 100*predictionGoal)
	} else {
		t.say("The worst prediction is off by %.1f %%: the goal of %.0f %% is missed.", 100*worst, 100*predictionGoal)
	}
}

func percent(share float64) string { return fmt.Sprintf("%+.0f %%", 100*share) }

// replays says whether a new engine takes the recorded decisions again.
func (t *text) replays(r *ElasticResult) {
	var all, equal, differ int
	for _, run := range r.Runs {
		if run.Replay == nil {
			continue
		}
		all += run.Replay.Decisions
		equal += run.Replay.Equal
		if run.Replay.Changed < run.Replay.Decisions {
			differ++
		}
	}
	t.WriteString("\n")
	t.say("Replayed: the event logs of all %d runs, told to a new engine outside of any machine, gave %d of %d "+
		"decisions again. With one event of each changed (the first job wants 1 MiB less) the decisions differed in "+
		"%d of %d.", len(r.Runs), equal, all, differ, len(r.Runs))
}
