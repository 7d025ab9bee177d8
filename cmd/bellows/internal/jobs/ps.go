package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/terminal"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/server"
)

func psCommand() *cobra.Command {
	var p place.Place
	var all, overTime, asJSON bool
	cmd := &cobra.Command{
		Use:   "ps [JOB]",
		Short: "List jobs, or the tasks of one job",
		Long: `List the jobs that have not ended, or with --all every job; or the tasks of a
job.

Columns of a job: STATUS is suspended or waiting if all its started tasks are;
TASKS is the number of tasks that succeeded, of all; MEMORY is the sum of the
memory limits of its tasks; HELD is what they use, in memory and in swap; TIME
is the time since the job started, or how long it ran; WHY says why the job
stands still and which task has the largest limit on its node meanwhile, or why
the next task waits.

Columns of a task: MEMORY is its memory limit, which is its grant unless its
class is flex; IDEAL is its ideal memory; USED and SWAP are what it uses, in
memory and in swap. Page cache does not count, except in USED of a task that has
ended, which is the peak of its container. STATE is throttled while its use of
disk or network is bounded. A task that ran more than once is listed with its
newest run, and its earlier runs below.

With --usage, what each run of a task used over time: mean and peak, and a
picture of all runs together. CPU is in cores; MEMORY is without page cache;
READ and WRITTEN are from and to disks, per second. A peak is of a second as a
rule. "-" was not measured, which differs from 0; columns that would have only
zeros are left out.`,
		Example: `  bellows ps
  bellows ps --all
  bellows ps 7
  bellows ps 7 --usage
  bellows ps --json | jq '.jobs[].status'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneJob(cmd, args)
		},
		RunE: p.Run(func(cmd *cobra.Command, client *server.Client, args []string) error {
			switch {
			case overTime && len(args) == 0:
				return command.Usagef("--usage: needs the id of a job, such as `bellows ps 7 --usage`")
			case overTime:
				return showUsage(cmd, client, args[0], asJSON)
			case len(args) == 1:
				return showJob(cmd, client, args[0], asJSON)
			}
			return showJobs(cmd, client, all, asJSON)
		}),
		ValidArgsFunction: completeJobs(&p),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list ended jobs, too")
	cmd.Flags().BoolVar(&overTime, "usage", false, "what the tasks of the job used over time")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, false)
	return cmd
}

func showJobs(cmd *cobra.Command, client *server.Client, all, asJSON bool) error {
	tasks, err := client.Tasks(cmd.Context(), true)
	if err != nil {
		return err
	}
	pages := openJobs(cmd.Context(), client)
	if all {
		pages = client.AllJobs(cmd.Context())
	}
	if asJSON {
		return writeJobs(cmd.OutOrStdout(), pages, tasks)
	}
	if err := printJobs(cmd.OutOrStdout(), pages, tasks, time.Now()); err != nil {
		return err
	}
	// The user should see why no job makes progress.
	if s, err := client.Status(cmd.Context()); err == nil && s.Trouble != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "bellows: trouble: %s\n", s.Trouble)
	}
	return nil
}

// openJobs returns all jobs that have not ended, as one page.
func openJobs(ctx context.Context, client *server.Client) iter.Seq2[[]live.Job, error] {
	return func(yield func([]live.Job, error) bool) { yield(client.Jobs(ctx)) }
}

// writeJobs prints jobs and tasks as one JSON value, each page as soon as it has arrived.
func writeJobs(w io.Writer, pages iter.Seq2[[]live.Job, error], tasks []live.Task) error {
	text := bytes.NewBufferString("{\n  \"jobs\": [")
	between := "\n    "
	for page, err := range pages {
		if err != nil {
			return err
		}
		for i := range page {
			job, err := json.MarshalIndent(&page[i], "    ", "  ")
			if err != nil {
				return fmt.Errorf("print JSON: %w", err)
			}
			text.WriteString(between + string(job))
			between = ",\n    "
		}
		if _, err := text.WriteTo(w); err != nil {
			return err
		}
	}
	rest, err := json.MarshalIndent(terminal.OrEmpty(tasks), "  ", "  ")
	if err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	_, err = fmt.Fprintf(w, "\n  ],\n  \"tasks\": %s\n}\n", rest)
	return err
}

// printJobs prints one row per job, each page as soon as it has arrived.
func printJobs(w io.Writer, pages iter.Seq2[[]live.Job, error], tasks []live.Task, now time.Time) error {
	of := map[cluster.JobID]started{}
	for i := range tasks {
		t := &tasks[i]
		of[t.Task.Job] = of[t.Task.Job].with(t)
	}
	t := terminal.NewTable(">JOB", "NAME", "OWNER", "STATUS", ">TASKS", ">MEMORY", ">HELD", ">TIME", "WHY")
	t.Shrinks, t.Notes = 1, true
	for page, err := range pages {
		if err != nil {
			return err
		}
		for i := range page {
			j := &page[i]
			s := of[j.ID]
			t.Add(strconv.FormatInt(int64(j.ID), 10), terminal.Cut(j.Name, 14), terminal.Cut(j.Owner, 8), s.status(j), fmt.Sprintf("%d/%d", j.SucceededCount, j.TaskCount),
				terminal.MemoryOrDash(s.limit), terminal.MemoryOrDash(s.held), took(j.Started, j.Finished, now), terminal.OneLine(join(s.why(), s.suspended.holder(tasks), j.Waiting)))
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// started describes the tasks of a job that have started and not ended.
type started struct {
	tasks              int
	limit, held        int64
	suspended, waiting standing
}

// standing counts tasks that are suspended or waiting; first is one of them, reason its reason.
type standing struct {
	tasks  int
	first  *live.Task
	reason string
}

func startedOf(tasks []live.Task) started {
	var s started
	for i := range tasks {
		s = s.with(&tasks[i])
	}
	return s
}

func (s started) with(t *live.Task) started {
	if t.State == live.TaskEnded {
		return s
	}
	s.tasks++
	s.limit += limit(t)
	s.held += held(t)
	switch still(t) {
	case cluster.ContainerSuspended:
		s.suspended = s.suspended.with(t)
	case cluster.ContainerWaiting:
		s.waiting = s.waiting.with(t)
	}
	return s
}

func (s standing) with(t *live.Task) standing {
	if s.tasks++; s.tasks == 1 {
		s.first, s.reason = t, t.Usage.Why
	}
	return s
}

// holder names the task that may use most of the memory of the node of the first such task.
func (s standing) holder(tasks []live.Task) string {
	if s.tasks == 0 {
		return ""
	}
	var most *live.Task
	for i := range tasks {
		t := &tasks[i]
		switch {
		case t.State == live.TaskEnded || still(t) == cluster.ContainerWaiting || t.Node != s.first.Node || t.Task == s.first.Task:
		case most == nil || limit(t) > limit(most):
			most = t
		}
	}
	if most == nil {
		return ""
	}
	return fmt.Sprintf("task %s may hold %s", most.Task, resource.FormatMemory(resource.Amount(limit(most))))
}

// status returns the status of the job, or suspended or waiting if all its started tasks are.
func (s started) status(j *live.Job) string {
	switch standing := s.suspended.tasks + s.waiting.tasks; {
	case standing == 0 || standing < s.tasks || j.Status != cluster.StatusRunning && j.Status != cluster.StatusPending:
		return jobStatus(j)
	case s.suspended.tasks > 0:
		return cluster.ContainerSuspended.String()
	}
	return cluster.ContainerWaiting.String()
}

func (s started) why() string {
	return join(s.suspended.why("suspended", s.tasks), s.waiting.why("waiting for memory", s.tasks))
}

func (s standing) why(what string, of int) string {
	if s.tasks == 0 || of == 1 {
		return s.reason
	}
	return fmt.Sprintf("%d of %d %s: %s", s.tasks, of, what, s.reason)
}

func jobStatus(j *live.Job) string {
	if j.Ended && j.ExitCode != nil && *j.ExitCode != 0 {
		return fmt.Sprintf("%s (%d)", j.Status, *j.ExitCode)
	}
	return j.Status.String()
}

// took prints how long something ran, or has run until now; "-" if it has not started.
func took(started, ended, now time.Time) string {
	switch {
	case started.IsZero():
		return "-"
	case ended.IsZero():
		return terminal.Age(now.Sub(started))
	}
	return terminal.Age(ended.Sub(started))
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
		return terminal.WriteJSON(cmd.OutOrStdout(), job)
	}
	return printTasks(cmd.OutOrStdout(), &job, time.Now())
}

// printTasks prints one row per task of a job that has started.
func printTasks(w io.Writer, j *live.Job, now time.Time) error {
	pending := 0
	for _, s := range j.Stages {
		pending += s.Pending
	}
	head := fmt.Sprintf("job %d (%s) of %s: %s, submitted %s", j.ID, terminal.Cut(j.Name, 24), j.Owner, startedOf(j.Tasks).status(j), j.Submitted.Local().Format(time.DateTime))
	if pending > 0 {
		head += fmt.Sprintf(", %s waiting", terminal.Count(pending, "task"))
	}
	fmt.Fprintln(w, terminal.Fold(head, terminal.Width-2, "  "))
	for _, fact := range expectations(j) {
		fmt.Fprintf(w, "  %s\n", terminal.Fold(fact, terminal.Width-4, "    "))
	}
	fmt.Fprintln(w)
	heads := []string{"TASK", ">RUN", "STATE", ">MEMORY", ">IDEAL", ">USED", ">SWAP", ">TIME", "WHY"}
	const swap = 6
	swaps := slices.ContainsFunc(j.Tasks, func(k live.Task) bool { return swapped(&k) > 0 || flex(stageOf(j, k.Task)) })
	columns := func(cells []string) []string {
		if !swaps {
			return slices.Delete(cells, swap, swap+1)
		}
		return cells
	}
	t := terminal.NewTable(columns(heads)...)
	for i := range j.Tasks {
		k := &j.Tasks[i]
		ideal, most := int64(0), int64(0)
		if s := stageOf(j, k.Task); s != nil {
			ideal, most = s.IdealBytes, int64(s.MaxMemory)
		}
		t.Add(columns([]string{k.Task.String(), strconv.Itoa(k.Run), taskState(k), terminal.MemoryOrDash(limit(k)), terminal.MemoryOrDash(ideal), terminal.MemoryOrDash(used(k)),
			terminal.MemoryOrDash(swapped(k)), took(k.Started, k.Ended, now), terminal.OneLine(taskWhy(k, most))})...)
	}
	t.Notes = true
	if err := t.Write(w); err != nil || len(j.Earlier) == 0 {
		return err
	}
	return printEarlier(w, j)
}

// printEarlier prints one row for each earlier run of a task.
func printEarlier(w io.Writer, j *live.Job) error {
	fmt.Fprint(w, "\nearlier runs:\n")
	t := terminal.NewTable("TASK", ">RUN", "NODE", "STATE", "STARTED", ">TIME", "WHY")
	for i := range j.Earlier {
		k := &j.Earlier[i]
		begun := "-"
		if !k.Started.IsZero() {
			begun = k.Started.Local().Format(time.DateTime)
		}
		t.Add(k.Task.String(), strconv.Itoa(k.Run), terminal.Cut(k.Node, 12), taskState(k), begun, took(k.Started, k.Ended, k.Ended), terminal.OneLine(k.Detail))
	}
	t.Notes = true
	return t.Write(w)
}

// stageOf returns the stage of a task; nil if the job has no stage of that number.
func stageOf(j *live.Job, id cluster.TaskID) *live.Stage {
	if id.Stage < 0 || int(id.Stage) >= len(j.Stages) {
		return nil
	}
	return &j.Stages[id.Stage]
}

func flex(s *live.Stage) bool { return s != nil && s.Class == cluster.Flex }

// still returns the state of the task's container if it is suspended or waiting, otherwise 0.
func still(t *live.Task) cluster.ContainerState {
	u := t.Usage
	if u != nil && (u.State == cluster.ContainerSuspended && t.State == live.TaskRunning || u.State == cluster.ContainerWaiting && t.State == live.TaskStarting) {
		return u.State
	}
	return 0
}

func taskState(t *live.Task) string {
	if state := still(t); state != 0 {
		return state.String()
	}
	if throttled(t) != nil {
		return "throttled"
	}
	if t.State != live.TaskEnded {
		return t.State.String()
	}
	if t.Exit != nil && t.Exit.Code != 0 && t.Outcome == cluster.Failed {
		return fmt.Sprintf("%s (%d)", t.Outcome, t.Exit.Code)
	}
	return t.Outcome.String()
}

// limit returns the memory limit of a task: its grant, unless its container is FLEX.
func limit(t *live.Task) int64 {
	if u := t.Usage; u != nil && u.State != 0 && u.Limit != nil {
		return *u.Limit
	}
	return t.MemoryBytes
}

// taskWhy returns the cause of a failure, what throttles a task, or why the memory manager last acted. most is the maximum of the task, 0 for
// none.
func taskWhy(t *live.Task, most int64) string {
	switch u := t.Usage; {
	case t.Detail == "" && still(t) == 0 && throttled(t) != nil:
		return throttleWords(t.Throttle)
	case t.Detail != "" || u == nil || u.State == 0:
		return t.Detail
	case atMaximum(u, most):
		return "has its maximum, " + terminal.MemoryOrDash(most)
	default:
		return u.Why
	}
}

// atMaximum reports whether a running container has reached its maximum, so that it gets no more memory of its node.
func atMaximum(r *cluster.Reading, most int64) bool {
	return r.State == cluster.ContainerRunning && most > 0 && r.Limit != nil && *r.Limit >= most
}

func join(clauses ...string) string {
	return strings.Join(slices.DeleteFunc(clauses, func(c string) bool { return c == "" }), "; ")
}

// used returns a task's memory use without page cache or, once the task has ended, its container's peak use with page
// cache.
func used(t *live.Task) int64 {
	switch {
	case t.Usage != nil && t.Usage.Anonymous != nil:
		return *t.Usage.Anonymous
	case t.Exit != nil:
		return int64(t.Exit.Peak)
	}
	return 0
}

// swapped returns the bytes of a task in swap.
func swapped(t *live.Task) int64 {
	if t.Usage != nil && t.Usage.Swap != nil {
		return *t.Usage.Swap
	}
	return 0
}

// held returns the bytes of a running task in memory and in swap.
func held(t *live.Task) int64 { return used(t) + swapped(t) }
