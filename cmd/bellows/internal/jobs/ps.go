package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

func psCommand() *cobra.Command {
	var p place.Place
	var all, overTime, watch, asJSON bool
	var filter api.JobFilter
	cmd := &cobra.Command{
		Use:        "ps [JOB]",
		SuggestFor: []string{"list", "ls", "jobs", "squeue", "qstat", "sacct", "queue"},
		Short:      "List jobs, or the tasks of one job",
		Long: `List the jobs that have not ended, or with --all every job; or the tasks of a
job. STATUS and STATE say what stops or slows a task: paused by its owner,
suspended by the memory manager, waiting for memory, leveled, throttled. ASKED
is the limit that was asked for, RESV what is reserved for a task, USED what it
holds without page cache, SWAP what is in swap; in a list USED has both. WHY
says why a task is stopped or a job waits.

With --usage, what each run used over time: mean, peak and a picture; "-" was
not measured, which differs from 0. With --status, --user or --name, only jobs
that have all that is stated. With --watch, the list changes on the terminal
until Ctrl-C; with --json, each line is what has changed. Of jobs of other users
only size and progress are shown, except to operators. See docs/watching.md.`,
		Example: `  bellows ps
  bellows ps --all
  bellows ps --status failed --user ada
  bellows ps 7
  bellows ps 7 --usage
  bellows ps --watch
  bellows ps --json | jq '.jobs[].status'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneJob(cmd, args)
		},
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
			switch {
			case filter != (api.JobFilter{}) && (watch || len(args) > 0):
				return command.Usagef(
					"--status, --user, --name: choose from a list of jobs, and go neither with --watch nor with a job")
			case watch && (all || overTime || len(args) > 0):
				return command.Usagef(
					"--watch: shows the jobs that have not ended, and goes neither with --all nor with --usage nor with a job")
			case watch:
				return watchJobs(cmd, client, asJSON)
			case overTime && len(args) == 0:
				return command.Usagef("--usage: needs the id of a job, such as `bellows ps 7 --usage`")
			case overTime:
				return showUsage(cmd, client, args[0], asJSON)
			case len(args) == 1:
				return showJob(cmd, client, args[0], asJSON)
			}
			var status cluster.JobStatus
			if err := status.UnmarshalText([]byte(filter.Status)); filter.Status != "" && err != nil {
				return command.Usagef("--status %q: must be pending, running, set-aside, succeeded, failed or cancelled",
					filter.Status)
			}
			return showJobs(cmd, client, client.JobPages(cmd.Context(), all || filter.Status != "" && status.Ended(), filter),
				asJSON)
		}),
		ValidArgsFunction: completeJobs(&p),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list ended jobs, too")
	cmd.Flags().StringVar(&filter.Status, "status", "",
		"list only jobs of this `status`: pending, running, or one of jobs that have ended, which implies --all: "+
			"succeeded, failed, cancelled")
	cmd.Flags().StringVar(&filter.User, "user", "", "list only jobs of the user of this `name`")
	cmd.Flags().StringVar(&filter.Name, "name", "", "list only jobs of this `name`")
	cmd.Flags().BoolVar(&overTime, "usage", false, "what the tasks of the job used over time")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep the jobs that have not ended on the terminal, as they change")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, false)
	return cmd
}

func showJobs(cmd *cobra.Command, client *client.Client, pages iter.Seq2[[]api.Job, error], asJSON bool) error {
	tasks, err := client.Tasks(cmd.Context(), true)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJobs(cmd.OutOrStdout(), pages, tasks)
	}
	if err := printJobs(cmd.OutOrStdout(), pages, tasks, time.Now()); err != nil {
		return err
	}
	// Trouble of the daemon may be why no job makes progress.
	if s, err := client.Status(cmd.Context()); err == nil && s.Trouble != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "bellows: trouble: %s\n", s.Trouble)
	}
	return nil
}

// writeJobs prints jobs and tasks as one JSON value, each page as soon as it has arrived.
func writeJobs(w io.Writer, pages iter.Seq2[[]api.Job, error], tasks []api.Task) error {
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
func printJobs(w io.Writer, pages iter.Seq2[[]api.Job, error], tasks []api.Task, now time.Time) error {
	of := map[cluster.JobID]started{}
	for i := range tasks {
		t := &tasks[i]
		of[t.Task.Job] = of[t.Task.Job].with(t)
	}
	t := terminal.NewTable(">JOB", "NAME", "OWNER", "STATUS", ">TASKS", ">ASKED", ">RESV", ">USED", ">TIME", "WHY")
	t.Shrinks, t.Notes = 1, true
	for page, err := range pages {
		if err != nil {
			return err
		}
		for i := range page {
			j := &page[i]
			s := of[j.ID]
			t.Add(strconv.FormatInt(int64(j.ID), 10), terminal.Cut(j.Name, 14), terminal.Cut(j.Owner, 8), s.status(j),
				fmt.Sprintf("%d/%d", j.SucceededCount, j.TaskCount), terminal.MemoryOrDash(s.asked),
				terminal.MemoryOrDash(s.reserved), terminal.MemoryOrDash(s.held), took(j.Started, j.Finished, now),
				s.whyOf(j, tasks))
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// hindrance is what keeps a started task from making progress at its usual pace.
type hindrance uint8

const (
	paused hindrance = iota
	suspended
	waiting
	leveled
	throttled
	unhindered
)

var hindranceNames = [...]string{paused: "paused", suspended: "suspended", waiting: "waiting", leveled: "leveled",
	throttled: "throttled"}

// hindranceOf returns what hinders a task. Whether its programs have been stopped is known from the engine, as in
// "bellows explain"; whether they wait for memory to start is a reading of the container, because only the node knows
// it.
func hindranceOf(t *api.Task) hindrance {
	switch {
	case t.State == api.TaskStarting && t.Usage != nil && t.Usage.State == cluster.ContainerWaiting:
		return waiting
	case t.State != api.TaskRunning:
		return unhindered
	case t.Paused != nil && t.Paused.Failed == "":
		return paused
	case t.Suspended != nil && t.Suspended.By == cluster.HeldByLeveling:
		return leveled
	case t.Suspended != nil:
		return suspended
	case t.Throttle != nil && t.Throttle.InForce:
		return throttled
	}
	return unhindered
}

// started describes the tasks of a job that have started and not ended.
type started struct {
	tasks                 int
	asked, reserved, held int64 // asked is 0 if no limit was asked for
	of                    [unhindered]hindered
}

// hindered counts tasks with the same hindrance; first is one of them, reason its reason.
type hindered struct {
	tasks  int
	first  *api.Task
	reason string
}

func startedOf(tasks []api.Task) started {
	var s started
	for i := range tasks {
		s = s.with(&tasks[i])
	}
	return s
}

func (s started) with(t *api.Task) started {
	if t.State == api.TaskEnded {
		return s
	}
	s.tasks++
	s.asked += t.AskedBytes
	s.reserved += t.MemoryBytes
	s.held += held(t)
	if h := hindranceOf(t); h != unhindered {
		of := &s.of[h]
		if of.tasks++; of.tasks == 1 {
			of.first, of.reason = t, hindranceWhy(t, h)
		}
	}
	return s
}

// hindranceWhy says why a task is hindered; empty if that is unknown.
func hindranceWhy(t *api.Task, h hindrance) string {
	switch {
	case h == paused:
		return pausedWords(t)
	case h == leveled:
		return leveledWords(t.Leveled)
	case h == throttled:
		return throttleWords(t.Throttle)
	case t.Usage != nil:
		return t.Usage.Why
	}
	return ""
}

// holder names the task that may use most of the memory of the node of the first such task.
func (s hindered) holder(tasks []api.Task) string {
	if s.tasks == 0 {
		return ""
	}
	var most *api.Task
	for i := range tasks {
		t := &tasks[i]
		switch {
		case t.State == api.TaskEnded || hindranceOf(t) == waiting || t.Node != s.first.Node || t.Task == s.first.Task:
		case most == nil || Limit(t) > Limit(most):
			most = t
		}
	}
	if most == nil {
		return ""
	}
	return fmt.Sprintf("task %s may hold %s", most.Task, resource.FormatMemory(resource.Amount(Limit(most))))
}

// status returns the status of the job: paused if the whole job is, or the hindrance of its started tasks if all are
// hindered.
func (s started) status(j *api.Job) string {
	if j.Paused != nil && !j.Status.Ended() {
		return hindranceNames[paused]
	}
	left := s.tasks
	for h := range s.of {
		left -= s.of[h].tasks
	}
	switch {
	case s.tasks == 0 || left > 0 || j.Status != cluster.StatusRunning && j.Status != cluster.StatusPending:
		return jobStatus(j)
	case s.of[throttled].tasks > 0: // It makes progress, whatever the other tasks do.
		return hindranceNames[throttled]
	}
	return hindranceNames[slices.IndexFunc(s.of[:], func(h hindered) bool { return h.tasks > 0 })]
}

// whyOf says why a job is in its state; all are the tasks of all jobs.
func (s started) whyOf(j *api.Job, all []api.Task) string {
	return terminal.OneLine(join(s.why(), s.of[suspended].holder(all), j.Waiting))
}

func (s started) why() string {
	var clauses []string
	for h := range s.of {
		clauses = append(clauses, s.of[h].why(hindrance(h), s.tasks))
	}
	return join(clauses...)
}

// why says how many of the started tasks of a job have a hindrance, and why the first of them has.
func (s hindered) why(h hindrance, of int) string {
	if s.tasks == 0 || of == 1 {
		return s.reason
	}
	what := hindranceNames[h]
	if h == waiting {
		what = "waiting for memory"
	}
	if after, says := strings.CutPrefix(s.reason, what+" "); says { // as "paused by ann"
		return fmt.Sprintf("%d of %d %s %s", s.tasks, of, what, after)
	}
	return fmt.Sprintf("%d of %d %s: %s", s.tasks, of, what, s.reason)
}

func jobStatus(j *api.Job) string {
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

func showJob(cmd *cobra.Command, client *client.Client, arg string, asJSON bool) error {
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
func printTasks(w io.Writer, j *api.Job, now time.Time) error {
	pending := 0
	for _, s := range j.Stages {
		pending += s.Pending
	}
	name := ""
	if j.Name != "" { // the name of a job of another user is not shown
		name = " (" + terminal.Cut(j.Name, 24) + ")"
	}
	head := fmt.Sprintf("job %d%s of %s: %s, submitted %s", j.ID, name, j.Owner, startedOf(j.Tasks).status(j),
		j.Submitted.Local().Format(time.DateTime))
	if pending > 0 {
		head += fmt.Sprintf(", %s waiting", terminal.Count(pending, "task"))
	}
	fmt.Fprintln(w, terminal.Fold(head, terminal.Width-2, "  "))
	for _, fact := range expectations(j) {
		fmt.Fprintf(w, "  %s\n", terminal.Fold(fact, terminal.Width-4, "    "))
	}
	fmt.Fprintln(w)
	heads := []string{"TASK", ">RUN", "STATE", ">ASKED", ">RESV", ">USED", ">SWAP", ">TIME", "WHY"}
	const swap = 6
	swaps := slices.ContainsFunc(j.Tasks, func(k api.Task) bool { return swapped(&k) > 0 || flex(stageOf(j, k.Task)) })
	columns := func(cells []string) []string {
		if !swaps {
			return slices.Delete(cells, swap, swap+1)
		}
		return cells
	}
	t := terminal.NewTable(columns(heads)...)
	for i := range j.Tasks {
		k := &j.Tasks[i]
		most := int64(0)
		if s := stageOf(j, k.Task); s != nil {
			most = int64(s.MaxMemory)
		}
		t.Add(columns([]string{k.Task.String(), strconv.Itoa(k.Run), taskState(k), terminal.MemoryOrDash(k.AskedBytes),
			terminal.MemoryOrDash(k.MemoryBytes), terminal.MemoryOrDash(used(k)), terminal.MemoryOrDash(swapped(k)),
			took(k.Started, k.Ended, now), terminal.OneLine(taskWhy(k, most))})...)
	}
	t.Notes = true
	if err := t.Write(w); err != nil || len(j.Earlier) == 0 {
		return err
	}
	return printEarlier(w, j)
}

// printEarlier prints one row for each earlier run of a task.
func printEarlier(w io.Writer, j *api.Job) error {
	fmt.Fprint(w, "\nearlier runs:\n")
	t := terminal.NewTable("TASK", ">RUN", "NODE", "STATE", "STARTED", ">TIME", "WHY")
	for i := range j.Earlier {
		k := &j.Earlier[i]
		begun := "-"
		if !k.Started.IsZero() {
			begun = k.Started.Local().Format(time.DateTime)
		}
		t.Add(k.Task.String(), strconv.Itoa(k.Run), terminal.Cut(k.Node, 12), taskState(k), begun,
			took(k.Started, k.Ended, k.Ended), terminal.OneLine(k.Detail))
	}
	t.Notes = true
	return t.Write(w)
}

// stageOf returns the stage of a task; nil if the job has no stage of that number.
func stageOf(j *api.Job, id cluster.TaskID) *api.Stage {
	if id.Stage < 0 || int(id.Stage) >= len(j.Stages) {
		return nil
	}
	return &j.Stages[id.Stage]
}

func flex(s *api.Stage) bool { return s != nil && s.Class == cluster.Flex }

func taskState(t *api.Task) string {
	if h := hindranceOf(t); h != unhindered {
		return hindranceNames[h]
	}
	if t.State != api.TaskEnded {
		return t.State.String()
	}
	if t.Exit != nil && t.Exit.Code != 0 && t.Outcome == cluster.Failed {
		return fmt.Sprintf("%s (%d)", t.Outcome, t.Exit.Code)
	}
	return t.Outcome.String()
}

// Limit returns the memory limit of a task: its grant, unless its container is FLEX.
func Limit(t *api.Task) int64 {
	if u := t.Usage; u != nil && u.State != 0 && u.Limit != nil {
		return *u.Limit
	}
	return t.MemoryBytes
}

// taskWhy returns the cause of a failure, or what hinders a task or why the memory manager last acted, and the phase
// that the task is in. most is the maximum of the task, 0 for none.
func taskWhy(t *api.Task, most int64) string {
	u, h := t.Usage, hindranceOf(t)
	switch {
	case !t.RetryAt.IsZero():
		return join(t.Detail, "its next attempt begins at "+t.RetryAt.Local().Format(time.TimeOnly))
	case t.Detail != "":
		return t.Detail
	case t.Paused != nil && t.State == api.TaskRunning: // also if that failed
		return join(pausedWords(t), phaseWords(&t.InPhase))
	case h == leveled || t.Leveled != nil && t.Leveled.Failed != "":
		return join(leveledWords(t.Leveled), phaseWords(&t.InPhase))
	case h == throttled:
		return join(hindranceWhy(t, h), phaseWords(&t.InPhase))
	case u == nil || u.State == 0:
		return join(cluster.WhyMoreMemory(t.Why), phaseWords(&t.InPhase))
	case atMaximum(u, most):
		return join("has its maximum, "+terminal.MemoryOrDash(most), phaseWords(&t.InPhase))
	}
	return join(cmp.Or(u.Why, cluster.WhyMoreMemory(t.Why)), phaseWords(&t.InPhase))
}

// phaseWords names the phase that a task is in; empty if it has no forecast.
func phaseWords(p *api.InPhase) string {
	if p.Phase == 0 {
		return ""
	}
	text := fmt.Sprintf("phase %d of %d", p.Phase, p.Phases)
	if p.Name != "" {
		text += " (" + cluster.Printable(p.Name) + ")"
	}
	return text
}

// atMaximum reports whether a running container has reached its maximum, so that it gets no more memory of its node.
func atMaximum(r *cluster.Reading, most int64) bool {
	return r.State == cluster.ContainerRunning && most > 0 && r.Limit != nil && *r.Limit >= most
}

func join(clauses ...string) string {
	return strings.Join(slices.DeleteFunc(clauses, func(c string) bool { return c == "" }), "; ")
}

// used returns a task's memory use without page cache or, once the task has ended, the most that it held or, if that
// was not measured, its container's peak use with page cache.
func used(t *api.Task) int64 {
	switch {
	case t.Usage != nil && t.Usage.Anonymous != nil:
		return *t.Usage.Anonymous
	case t.Exit != nil:
		return int64(cmp.Or(t.Exit.Used, t.Exit.Peak))
	}
	return 0
}

// swapped returns the bytes of a task in swap.
func swapped(t *api.Task) int64 {
	if t.Usage != nil && t.Usage.Swap != nil {
		return *t.Usage.Swap
	}
	return 0
}

// held returns the bytes of a running task in memory and in swap.
func held(t *api.Task) int64 { return used(t) + swapped(t) }
