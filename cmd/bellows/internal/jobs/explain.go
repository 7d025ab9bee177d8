package jobs

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/cmd/internal/terminal"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/server"
)

func explainCommand() *cobra.Command {
	var p place.Place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain JOB",
		Short: "Explain why a job waits, its memory and its forecast",
		Long: `Explain the state of a job: why its next task has not started, why its running
tasks have their memory, stand still or are throttled, when tasks and job should
end, and the latest decisions about the job. A task that is suspended or waits
for memory has no expected end, because it is unknown how long it will wait.

The forecast is what a task should demand when: its phases, learned from earlier
runs of its application or stated, and by which model, from how many runs and
with what error; or why nothing is known. A forecast reserves nothing.`,
		Example: `  bellows explain 7`,
		Args:    oneJob,
		RunE: p.Run(func(cmd *cobra.Command, client *server.Client, args []string) error {
			id, err := parseJob(args[0])
			if err != nil {
				return err
			}
			e, err := client.Explain(cmd.Context(), id)
			if err != nil {
				return err
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), e)
			}
			return printExplanation(cmd.OutOrStdout(), &e, time.Now())
		}),
		ValidArgsFunction: completeJobs(&p),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, false)
	return cmd
}

// printExplanation prints sentences, folded, newest decisions last.
func printExplanation(w io.Writer, e *live.Explanation, now time.Time) error {
	fmt.Fprintf(w, "job %d (%s): %s\n", e.Job.ID, cluster.Printable(e.Job.Name), explainedStatus(e))
	say := func(text string) { fmt.Fprintf(w, "  %s\n", terminal.Fold(text, terminal.Width-2, "  ")) }
	if e.Why != "" {
		say(e.Why)
	}
	if e.Job.Detail != "" && e.Job.Detail != e.Why {
		say(e.Job.Detail)
	}
	for i := range e.Job.Tasks {
		if t := &e.Job.Tasks[i]; t.Exit != nil && t.Exit.Left > 0 && !strings.Contains(e.Job.Detail, t.Detail) {
			say(fmt.Sprintf("Task %s %s.", t.Task, t.Detail))
		}
	}
	if e.Job.Input {
		say("It reads the input of the command that submitted it, so it starts once, whatever happens to it.")
	}
	if e.EarliestStart.After(now) {
		say("There should be room for its next task " + when(e.EarliestStart, now) + " at the earliest.")
	}
	if e.EstimatedEnd.After(now) {
		say("It should end " + when(e.EstimatedEnd, now) + ".")
	}
	if e.Job.App != "" {
		say("Its application is " + appOf(&e.Job) + ".")
	}
	for i := range e.Forecasts {
		if err := printForecast(w, &e.Forecasts[i], len(e.Forecasts) > 1); err != nil {
			return err
		}
	}
	if len(e.Tasks) > 0 {
		fmt.Fprintln(w, "\ntasks:")
	}
	for i := range e.Tasks {
		explainTask(say, &e.Job, &e.Tasks[i], now)
	}
	if len(e.Decisions) > 0 {
		fmt.Fprintln(w, "\ndecided:")
	}
	var err error
	for _, d := range e.Decisions {
		head := fmt.Sprintf("  %s  %-9s %-8s ", d.At.Local().Format(time.TimeOnly), d.Kind, d.Task)
		indent := fmt.Sprintf("%*s", len(head), "")
		_, err = fmt.Fprintf(w, "%s%s\n", head, terminal.Fold(d.Why, terminal.Width-len(head), indent))
	}
	return err
}

// explainTask says why a running task has its memory, and when it should end.
func explainTask(say func(string), j *live.Job, t *live.TaskExplanation, now time.Time) {
	has := "has"
	if t.Usage != nil {
		has = "was granted" // its limit now is printed below
	}
	text := fmt.Sprintf("%s %s %s", t.Task, has, resource.FormatMemory(resource.Amount(t.MemoryBytes)))
	if t.MemoryBytes < t.IdealBytes {
		text += fmt.Sprintf(" of %s, and so takes %.2f times as long", resource.FormatMemory(resource.Amount(t.IdealBytes)), t.Slowdown)
	}
	if t.Phase > 0 {
		text += fmt.Sprintf("; it is in phase %d of %d", t.Phase, t.Phases)
	}
	switch {
	case t.EstimatedEnd.IsZero():
	case t.EstimatedEnd.After(now):
		text += "; it should end " + when(t.EstimatedEnd, now)
	default:
		text += "; by its duration it should have ended"
	}
	if !t.Limited.IsZero() {
		text += "; its time limit ends it " + when(t.Limited, now)
	}
	say(text + ": " + t.Why)
	if t.Throttle != nil {
		say(throttleWords(t.Throttle))
	}
	if t.Usage != nil {
		most := int64(0)
		if s := stageOf(j, t.Task); s != nil {
			most = int64(s.MaxMemory)
		}
		say(memoryOf(t.Usage, most, now))
		if text := holders(t.Holders); text != "" {
			say(text)
		}
	}
}

// memoryOf says what the memory manager does with a container. most is the maximum of the container, 0 for none.
func memoryOf(r *cluster.Reading, most int64, now time.Time) string {
	if r.State == cluster.ContainerWaiting {
		return fmt.Sprintf("it has waited for %s to start: %s", terminal.Age(now.Sub(r.Since)), r.Why)
	}
	text := fmt.Sprintf("it holds %s in memory, of %s that it may", bytesOf(r.Anonymous), bytesOf(r.Limit))
	if atMaximum(r, most) {
		text += ", its maximum"
	}
	if r.Swap == nil || *r.Swap > 0 {
		text += fmt.Sprintf(", and %s in swap", bytesOf(r.Swap))
	}
	if r.State == cluster.ContainerSuspended {
		text += fmt.Sprintf("; suspended for %s, until it may have all of that in memory", terminal.Age(now.Sub(r.Since)))
	}
	if r.Why == "" || atMaximum(r, most) {
		return text
	}
	return text + ": " + r.Why
}

// holders names the tasks that may use most of the memory that a task waits for.
func holders(all []live.Holder) string {
	if len(all) == 0 {
		return ""
	}
	const most = 3
	names := make([]string, 0, most)
	for _, h := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%s (up to %s)", h.Task, resource.FormatMemory(resource.Amount(h.Bytes))))
	}
	text := "meanwhile the memory of its node is with " + strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// explainedStatus returns the status of the job; the states of its tasks are explained separately.
func explainedStatus(e *live.Explanation) string {
	tasks := slices.Clone(e.Job.Tasks)
	for i := range tasks {
		if at := slices.IndexFunc(e.Tasks, func(t live.TaskExplanation) bool { return t.Task == tasks[i].Task }); at >= 0 {
			tasks[i].Usage = e.Tasks[at].Usage
		}
	}
	return startedOf(tasks).status(&e.Job)
}

func bytesOf(v *int64) string {
	if v == nil {
		return "an unknown amount"
	}
	return resource.FormatMemory(resource.Amount(*v))
}

// when prints a time relative to now.
func when(t, now time.Time) string {
	if d := t.Sub(now); d > 0 {
		return "in " + terminal.Age(d)
	}
	return "now"
}
