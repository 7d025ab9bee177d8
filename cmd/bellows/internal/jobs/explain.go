package jobs

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

func explainCommand() *cobra.Command {
	var p place.Place
	var asJSON bool
	cmd := &cobra.Command{
		Use:        "explain JOB",
		SuggestFor: []string{"inspect", "describe", "show", "why"},
		Short:      "Explain why a job waits, its memory and its forecast",
		Long: `Explain the state of a job: why its next task has not started, who holds what it
waits for and what would release it, a missed deadline, why its running tasks
have their memory, are stopped or throttled, when tasks and job should end, and
the latest decisions about the job, with the answers to orders that are not in
force. A task that is suspended or waits for memory has no expected end,
because it is unknown how long it will wait.

The forecast is the expected demand of a task over time: its phases, stated or
learned from earlier runs of its application, with the model, the number of runs
and the error; or why nothing is known. It reserves nothing; what is reserved of
memory, if that is learned, is said with the runs that it is learned from.`,
		Example: `  bellows explain 7`,
		Args:    oneJob,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, false)
	return cmd
}

// printExplanation prints sentences, folded, newest decisions last.
func printExplanation(w io.Writer, e *api.Explanation, now time.Time) error {
	fmt.Fprintf(w, "job %d (%s): %s\n", e.Job.ID, cluster.Printable(e.Job.Name), startedOf(e.Job.Tasks).status(&e.Job))
	say := func(text string) { fmt.Fprintf(w, "  %s\n", terminal.Fold(text, terminal.Width-2, "  ")) }
	if e.Why != "" {
		say(e.Why)
	}
	if !strings.Contains(e.Why, e.Job.Detail) {
		say(e.Job.Detail)
	}
	for i := range e.Job.Tasks {
		if t := &e.Job.Tasks[i]; t.Exit != nil && t.Exit.Left > 0 && !strings.Contains(e.Job.Detail, t.Detail) {
			say(fmt.Sprintf("Task %s %s.", t.Task, t.Detail))
		}
	}
	for _, text := range e.Remedies {
		say(text)
	}
	if e.Job.Input {
		say("It reads the input of the command that submitted it, so it starts only once.")
	}
	if e.EarliestStart.After(now) {
		say("What it starts next should have room " + when(e.EarliestStart, now) + " at the earliest.")
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
	for i := range e.Levelings {
		say(levelingWords(&e.Levelings[i]))
	}
	if len(e.Decisions) > 0 {
		fmt.Fprintln(w, "\ndecided:")
	}
	var err error
	for _, d := range e.Decisions {
		head := fmt.Sprintf("  %s  %-9s %-8s ", d.At.Local().Format(time.TimeOnly), d.Kind, d.Task)
		indent := fmt.Sprintf("%*s", len(head), "")
		_, err = fmt.Fprintf(w, "%s%s\n", head, terminal.Fold(decisionWords(&d), terminal.Width-len(head), indent))
	}
	return err
}

// decisionWords says why a decision was taken and, of an order that is not in force, how it was answered.
func decisionWords(d *api.DecisionNote) string {
	text := d.Why
	if rates := ratesWords(d.Disk, d.Network); rates != "" {
		text = fmt.Sprintf("to %s until %s: %s", rates, d.Until.Local().Format(time.TimeOnly), d.Why)
	} else if !d.Until.IsZero() {
		text = fmt.Sprintf("until %s%s: %s", d.Until.Local().Format(time.TimeOnly), keepsGoing(d.For), d.Why)
	}
	if d.Grant != nil {
		text = "to " + grantWords(d.Grant) + ": " + d.Why
	}
	switch d.Answer {
	case api.AnswerPending:
		text += " (not carried out yet)"
	case api.AnswerFailed:
		text += " (failed: " + d.Detail + ")"
	case api.AnswerSuperseded:
		text += " (superseded" + strings.TrimSuffix(": "+d.Detail, ": ") + ")"
	}
	return text
}

// explainTask says why a running task has its memory, and when it should end.
func explainTask(say func(string), j *api.Job, t *api.TaskExplanation, now time.Time) {
	has := "has"
	if t.Usage != nil {
		has = "was granted" // its limit now is printed below
	}
	text := fmt.Sprintf("%s %s %s", t.Task, has, resource.FormatMemory(resource.Amount(t.MemoryBytes)))
	if t.MemoryBytes < t.IdealBytes && !t.ByPhase {
		text += fmt.Sprintf(" of %s, and so takes %.2f times as long", resource.FormatMemory(resource.Amount(t.IdealBytes)),
			t.Slowdown)
	}
	if rates := ratesWords(t.Disk, t.Network); rates != "" {
		text += "; it was granted " + rates
	}
	if t.ByPhase {
		text += "; its grant follows the phases of its forecast"
	}
	if t.MostCPU > 0 {
		text += fmt.Sprintf("; it may use up to %s that others leave", resource.CPU.Format(resource.Amount(t.MostCPU)))
	}
	if t.Phase > 0 {
		text += "; it is in " + phaseWords(&t.InPhase)
		if !t.Since.IsZero() {
			text += " since " + t.Since.Local().Format(time.TimeOnly)
		}
	}
	switch {
	case t.EstimatedEnd.IsZero():
	case t.EstimatedEnd.After(now):
		text += "; it should end " + when(t.EstimatedEnd, now)
	default:
		text += "; by its estimated duration it should have ended"
	}
	if !t.Limited.IsZero() {
		text += "; its time limit kills it " + when(t.Limited, now)
	}
	say(text + ": " + t.Why)
	if at := slices.IndexFunc(j.Tasks, func(k api.Task) bool { return k.Task == t.Task }); at >= 0 {
		explainHold(say, &j.Tasks[at], t)
	}
	if t.Throttle != nil {
		say(throttleWords(t.Throttle))
	}
	switch {
	case t.Lends && t.LentCPU < t.CPUMillicores:
		say("it uses less, and lends " + resource.FormatCPU(resource.Amount(t.LentCPU)) + " cores to other tasks")
	case t.Lends:
		say("it has nothing to do, and lends its cores to other tasks until it has")
	}
	if t.Resized != nil && (t.Renewed == nil || t.Resized.Why != t.Renewed.Why) {
		say(resizedWords(t.Resized, &t.Grant))
	}
	if t.Renewed != nil {
		say(renewedWords(t.Renewed))
	}
	if len(t.Shifts) > 0 {
		say(shiftsWords(t.Shifts))
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

// levelingWords says how the demand on a node is to be leveled, and how good that is.
func levelingWords(l *api.Leveling) string {
	text := fmt.Sprintf("leveling of %s, asked for at %s: %s", l.Node, l.Asked.Local().Format(time.TimeOnly), l.Result)
	if l.Used != nil && (l.Newest == nil || *l.Used != *l.Newest) {
		text += fmt.Sprintf("; an earlier schedule of value %.6g is used", l.Used.Value)
	}
	return text
}

// shiftsWords says when a task is to stand still.
func shiftsWords(shifts []api.Shift) string {
	var times []string
	for _, s := range shifts {
		times = append(times, "from "+s.From.Local().Format(time.TimeOnly)+" until "+s.To.Local().Format(time.TimeOnly))
	}
	return "to level its node, it is to stand still " + strings.Join(times, ", ")
}

// explainHold says which holders the engine has stopped a task for, until when, and what the task holds meanwhile.
func explainHold(say func(string), t *api.Task, more *api.TaskExplanation) {
	held := heldWords(t, more.Usage != nil)
	if t.Leveled != nil {
		text := leveledWords(t.Leveled)
		if m := more.MemoryWait; m != nil && t.Leveled.Failed == "" {
			text = memoryWaitWords(t.Leveled, m)
			if t.PagedOut != nil && t.Paused == nil {
				text += "; " + outWords(t)
			}
		}
		if t.Paused == nil {
			text += held
		}
		say(text)
	}
	if t.Paused != nil {
		say(pausedWords(t) + held)
	}
}

// heldWords says what a paused or leveled task holds and what it lends; empty while its programs run. managed says
// that its memory is described together with the memory manager.
func heldWords(t *api.Task, managed bool) string {
	if t.Suspended == nil {
		return ""
	}
	text := "; it keeps its cores"
	if t.Suspended.Lends {
		text = "; it lends its cores to other tasks"
	}
	if u := t.Usage; u != nil && !managed {
		text += fmt.Sprintf(", and holds %s in memory", bytesOf(u.Anonymous))
		if u.Swap == nil || *u.Swap > 0 {
			text += fmt.Sprintf(" and %s in swap", bytesOf(u.Swap))
		}
	}
	return text
}

// memoryOf says what the memory manager does with a container. most is the maximum of the container, 0 for none.
func memoryOf(r *cluster.Reading, most int64, now time.Time) string {
	if r.State == cluster.ContainerWaiting {
		return fmt.Sprintf("it has waited for %s to start: %s", terminal.Age(now.Sub(r.Since)), r.Why)
	}
	text := fmt.Sprintf("it holds %s in memory, of at most %s", bytesOf(r.Anonymous), bytesOf(r.Limit))
	if atMaximum(r, most) {
		text += ", its maximum"
	}
	if r.Swap == nil || *r.Swap > 0 {
		text += fmt.Sprintf(", and %s in swap", bytesOf(r.Swap))
	}
	if r.LimitShown {
		text += "; programs that size themselves by their control group take what it has when they start for all that it " +
			"may have"
	}
	if r.State == cluster.ContainerSuspended {
		text += fmt.Sprintf("; suspended for %s, until there is memory for all of it", terminal.Age(now.Sub(r.Since)))
	}
	if r.Why == "" || atMaximum(r, most) {
		return text
	}
	return text + ": " + r.Why
}

// holders names the tasks that may use most of the memory that a task waits for.
func holders(all []api.Holder) string {
	if len(all) == 0 {
		return ""
	}
	const most = 3
	names := make([]string, 0, most)
	for _, h := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%s (up to %s)", h.Task, resource.FormatMemory(resource.Amount(h.Bytes))))
	}
	text := "meanwhile the memory of its node is used by " + strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
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
