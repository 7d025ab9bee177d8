package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/resource"
)

func explainCommand() *cobra.Command {
	var p place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain JOB",
		Short: "Say why a job waits, or has the memory it has",
		Long: `Say where a job stands: why its next task has not started, why its running tasks
have the memory they have, when they and the job should end, and what was last
decided about it.`,
		Example: `  bellows explain 7`,
		Args:    oneJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseJob(args[0])
			if err != nil {
				return err
			}
			client, err := p.client()
			if err != nil {
				return err
			}
			e, err := client.Explain(cmd.Context(), id)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), e)
			}
			return printExplanation(cmd.OutOrStdout(), &e, time.Now())
		},
		ValidArgsFunction: completeJobs(&p),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.flags(cmd, false)
	return cmd
}

// printExplanation prints sentences, folded, newest decisions last.
func printExplanation(w io.Writer, e *live.Explanation, now time.Time) error {
	fmt.Fprintf(w, "job %d (%s): %s\n", e.Job.ID, e.Job.Name, jobStatus(&e.Job))
	say := func(text string) { fmt.Fprintf(w, "  %s\n", fold(text, width-2, "  ")) }
	if e.Why != "" {
		say(e.Why)
	}
	if e.Job.Detail != "" && e.Job.Detail != e.Why {
		say(e.Job.Detail)
	}
	if e.EarliestStart.After(now) {
		say("There should be room for its next task " + when(e.EarliestStart, now) + " at the earliest.")
	}
	if e.EstimatedEnd.After(now) {
		say("It should end " + when(e.EstimatedEnd, now) + ".")
	}
	if len(e.Tasks) > 0 {
		fmt.Fprintln(w, "\nrunning:")
	}
	for _, t := range e.Tasks {
		text := fmt.Sprintf("%s has %s", t.Task, resource.FormatMemory(resource.Amount(t.MemoryBytes)))
		if t.MemoryBytes < t.IdealBytes {
			text += fmt.Sprintf(" of %s, and so takes %.2f times as long", resource.FormatMemory(resource.Amount(t.IdealBytes)), t.Slowdown)
		}
		if !t.EstimatedEnd.IsZero() {
			text += "; it should end " + when(t.EstimatedEnd, now)
		}
		say(text + ": " + t.Why)
		if t.Usage != nil {
			say(breathing(t.Usage, now))
		}
	}
	if len(e.Decisions) > 0 {
		fmt.Fprintln(w, "\ndecided:")
	}
	var err error
	for _, d := range e.Decisions {
		head := fmt.Sprintf("  %s  %-9s %-8s ", d.At.Local().Format(time.TimeOnly), d.Kind, d.Task)
		indent := fmt.Sprintf("%*s", len(head), "")
		_, err = fmt.Fprintf(w, "%s%s\n", head, fold(d.Why, width-len(head), indent))
	}
	return err
}

// breathing says what the memory manager does with a FLEX container.
func breathing(r *cluster.Reading, now time.Time) string {
	if r.State == "waiting" {
		return fmt.Sprintf("it has waited for %s to start: %s", age(now.Sub(r.Since)), r.Why)
	}
	text := fmt.Sprintf("it holds %s of %s, and %s in swap", bytesOf(r.Anonymous), bytesOf(r.Limit), bytesOf(r.Swap))
	if r.State == "suspended" {
		text += fmt.Sprintf("; suspended for %s, until it may hold all of that", age(now.Sub(r.Since)))
	}
	if r.Why != "" {
		text += ": " + r.Why
	}
	return text
}

func bytesOf(v *int64) string {
	if v == nil {
		return "an unknown amount"
	}
	return resource.FormatMemory(resource.Amount(*v))
}

// when prints a time as seen from now.
func when(t, now time.Time) string {
	if d := t.Sub(now); d > 0 {
		return "in " + age(d)
	}
	return "now"
}
