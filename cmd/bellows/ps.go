package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/server"
)

func psCommand() *cobra.Command {
	var p place
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "ps [JOB]",
		Short: "List jobs, or the tasks of one job",
		Long: `List the jobs that have not ended, or with --all every job; or the tasks of one.

Of a job: TASKS is how many of its tasks have succeeded, of how many; MEMORY
what its running tasks were granted; TIME since it began, or how long it ran.

Of a task: MEMORY is what it was granted, or of class flex what it may hold now;
IDEAL its ideal memory, USED what its container holds now, or held at most once
it has ended.`,
		Example: `  bellows ps
  bellows ps --all
  bellows ps 7
  bellows ps --json | jq '.jobs[].status'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("job: must be the id of one job, but %d were given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := p.client()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return showJob(cmd, client, args[0], asJSON)
			}
			return showJobs(cmd, client, all, asJSON)
		},
		ValidArgsFunction: completeJobs(&p),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also jobs that have ended")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.flags(cmd, false)
	return cmd
}

func showJobs(cmd *cobra.Command, client *server.Client, all, asJSON bool) error {
	jobs, err := client.Jobs(cmd.Context(), all)
	if err != nil {
		return err
	}
	tasks, err := client.Tasks(cmd.Context(), asJSON)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), map[string]any{"jobs": orEmpty(jobs), "tasks": orEmpty(tasks)})
	}
	if err := printJobs(cmd.OutOrStdout(), jobs, tasks, time.Now()); err != nil {
		return err
	}
	// Whoever looks at jobs wants to know why none of them moves.
	if s, err := client.Status(cmd.Context()); err == nil && s.Trouble != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "bellows: trouble: %s\n", s.Trouble)
	}
	return nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// printJobs prints one row per job.
func printJobs(w io.Writer, jobs []live.Job, tasks []live.Task, now time.Time) error {
	granted := map[cluster.JobID]int64{}
	for _, t := range tasks {
		if t.State != "ended" {
			granted[t.Task.Job] += t.MemoryBytes
		}
	}
	t := newTable(">JOB", "NAME", "OWNER", "STATUS", ">TASKS", ">MEMORY", ">TIME", "WAITS BECAUSE")
	for _, j := range jobs {
		var all, done int
		for _, s := range j.Stages {
			all, done = all+s.Tasks, done+s.Succeeded
		}
		t.add(strconv.FormatInt(int64(j.ID), 10), cut(j.Name, 14), cut(j.Owner, 8), jobStatus(&j), fmt.Sprintf("%d/%d", done, all),
			memoryOrDash(granted[j.ID]), jobTime(&j, now), oneLine(j.Waiting))
	}
	t.shrinks = len(t.heads) - 1
	return t.write(w)
}

func jobStatus(j *live.Job) string {
	if j.Ended && j.ExitCode != nil && *j.ExitCode != 0 {
		return fmt.Sprintf("%s (%d)", j.Status, *j.ExitCode)
	}
	return j.Status
}

func jobTime(j *live.Job, now time.Time) string {
	switch {
	case j.Started.IsZero():
		return "-"
	case j.Finished.IsZero():
		return age(now.Sub(j.Started))
	}
	return age(j.Finished.Sub(j.Started))
}

// age prints a duration in at most six characters.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func memoryOrDash(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return resource.FormatMemory(resource.Amount(bytes))
}

func showJob(cmd *cobra.Command, client *server.Client, arg string, asJSON bool) error {
	id, err := parseJob(arg)
	if err != nil {
		return err
	}
	job, err := client.Job(cmd.Context(), id, true)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), job)
	}
	return printTasks(cmd.OutOrStdout(), &job, time.Now())
}

// printTasks prints one row per task of a job that has started.
func printTasks(w io.Writer, j *live.Job, now time.Time) error {
	pending := 0
	for _, s := range j.Stages {
		pending += s.Pending
	}
	head := fmt.Sprintf("job %d (%s) of %s: %s, submitted %s", j.ID, cut(j.Name, 24), j.Owner, jobStatus(j), j.Submitted.Local().Format(time.DateTime))
	if pending > 0 {
		head += fmt.Sprintf(", %s waiting", count(pending, "task"))
	}
	fmt.Fprintf(w, "%s\n\n", fold(head, width-2, "  "))
	t := newTable("TASK", ">RUN", "STATE", ">MEMORY", ">IDEAL", ">USED", ">TIME", "DETAIL")
	for i := range j.Tasks {
		k := &j.Tasks[i]
		ideal := int64(0)
		if int(k.Task.Stage) < len(j.Stages) {
			ideal = j.Stages[k.Task.Stage].IdealBytes
		}
		t.add(k.Task.String(), strconv.Itoa(k.Run), taskState(k), memoryOrDash(limit(k)), memoryOrDash(ideal), memoryOrDash(used(k)),
			taskTime(k, now), oneLine(taskDetail(k)))
	}
	t.shrinks = len(t.heads) - 1
	return t.write(w)
}

func taskState(t *live.Task) string {
	switch {
	case t.Usage != nil && (t.Usage.State == "suspended" && t.State == "running" || t.Usage.State == "waiting" && t.State == "starting"):
		return t.Usage.State
	case t.State != "ended":
		return t.State
	}
	if t.Exit != nil && t.Exit.Code != 0 && t.Outcome == "failed" {
		return fmt.Sprintf("%s (%d)", t.Outcome, t.Exit.Code)
	}
	return t.Outcome
}

// limit is what a task may hold: what it was granted, unless its container breathes.
func limit(t *live.Task) int64 {
	if u := t.Usage; u != nil && u.State != "" && u.Limit != nil {
		return *u.Limit
	}
	return t.MemoryBytes
}

// taskDetail is what went wrong, or what the memory manager did last.
func taskDetail(t *live.Task) string {
	u := t.Usage
	if t.Detail != "" || u == nil || u.State == "" {
		return t.Detail
	}
	if u.Swap != nil && *u.Swap >= int64(resource.MiB) {
		return join(resource.FormatMemory(resource.Amount(*u.Swap))+" in swap", u.Why)
	}
	return u.Why
}

func join(clauses ...string) string {
	return strings.Join(slices.DeleteFunc(clauses, func(c string) bool { return c == "" }), "; ")
}

func used(t *live.Task) int64 {
	switch {
	case t.Usage != nil && t.Usage.Memory != nil:
		return *t.Usage.Memory
	case t.Exit != nil:
		return int64(t.Exit.Peak)
	}
	return 0
}

func taskTime(t *live.Task, now time.Time) string {
	switch {
	case t.Started.IsZero():
		return "-"
	case t.Ended.IsZero():
		return age(now.Sub(t.Started))
	}
	return age(t.Ended.Sub(t.Started))
}
