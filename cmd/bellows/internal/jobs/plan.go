package jobs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/simulate"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/sim/foresee"
	"github.com/bellows-rm/bellows/sim/trial"
)

const planLong = `Say when a job would start and end if it were submitted now, and which other
jobs would start or end at another time because of it. Nothing is submitted, and
nothing changes in the daemon.

The answer is simulated, from the cluster as it is; no other job arrives. A task
takes as long as its job states, or as earlier runs of its application taught;
then a second line has the times if these took less or more, by their usual
error. A task of unknown run time runs for ever, or for --assume. --policy
simulates other policies. Of jobs of other users only size, class and times are
shown. docs/planning.md says how good the answer is.`

type planOptions struct {
	place    place.Place
	policies simulate.Policies
	assume   time.Duration
	asJSON   bool
}

func planCommand() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Say when a job would start and end, and what it would delay",
		Long:  planLong,
		Example: `  bellows plan job.yaml
  bellows plan --policy fair,srjf job.yaml
  bellows plan --assume 10m job.yaml`,
		Args: command.OneArgument("file: must be one file with a job, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.policies.Flags(cmd)
	f.Var(flags.Duration(&o.assume, time.Millisecond), "assume",
		"how long a task takes whose run time is unknown; default: for ever")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	o.place.Flags(cmd, false)
	return cmd
}

func (o *planOptions) run(cmd *cobra.Command, file string) error {
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	present, err := readPresent(cmd, client, file)
	if err != nil {
		return err
	}
	contenders, err := o.policies.Contenders(present.Header.Policy, present.Header.Settings, asItIs)
	if err != nil {
		return err
	}
	doc := planJSON{Simulated: true, At: instant(present.Now), Job: present.Job.Name, Policies: []policyPlanJSON{}}
	for i := range present.Job.Stages {
		doc.RunTimes = append(doc.RunTimes, runTimeOf(&present.Job, i))
	}
	for _, c := range contenders {
		answer, err := o.ask(cmd.Context(), present, c)
		if err != nil {
			return err
		}
		doc.Policies = append(doc.Policies, policyPlanOf(c.Label, answer))
	}
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), doc)
	}
	return doc.print(cmd.OutOrStdout())
}

// readPresent asks the daemon for its cluster, with the job of a file.
func readPresent(cmd *cobra.Command, client *client.Client, file string) (*eventlog.Present, error) {
	w, err := readLiveJobs(cmd.Context(), client, file)
	if err != nil {
		return nil, err
	}
	if len(w.Jobs) != 1 {
		return nil, command.Usagef("%s: has %d jobs: must have one, because jobs are planned one at a time", file,
			len(w.Jobs))
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	j := &w.Jobs[0]
	for k := range j.Stages {
		if s := &j.Stages[k]; s.Input == 0 {
			s.Input = readsFiles(&s.Command, dir)
		}
	}
	if err := fitMachine(cmd.Context(), client, w.Jobs, cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	return client.Present(cmd.Context(), submissionOf(j, nil, dir, nil))
}

// asItIs returns an error if a policy is to run on another cluster than the daemon has.
func asItIs(c trial.Contender) error {
	if strings.Contains(c.Label, "@") {
		return fmt.Errorf("policy %q: must be a policy of the cluster as it is, without @", c.Label)
	}
	return nil
}

// ask simulates one policy.
func (o *planOptions) ask(ctx context.Context, p *eventlog.Present, c trial.Contender) (*foresee.Answer, error) {
	f, err := foresee.New(p, c, o.assume)
	if err != nil {
		return nil, command.Usage(err)
	}
	return simulate.Until(ctx, f.Plan)
}

// planJSON is the document of `bellows plan --json`. Unknown times are left out.
type planJSON struct {
	Simulated bool             `json:"simulated" doc:"always true"`
	At        time.Time        `json:"at" doc:"time of the cluster with which the simulation begins"`
	Job       string           `json:"job" doc:"name of the job"`
	RunTimes  []runTimeJSON    `json:"run_times" doc:"by stage"`
	Policies  []policyPlanJSON `json:"policies" doc:"one for each of --policy"`
}

// runTimeJSON is how long a task of a stage is taken to run, and where that is known from.
type runTimeJSON struct {
	Stage   string  `json:"stage" doc:"name of the stage"`
	Seconds float64 `json:"run_time_s,omitempty" doc:"how long a task is taken to run; omitted if unknown"`
	Source  string  `json:"source" doc:"where that is known from"`
}

// policyPlanJSON is what a policy would do.
type policyPlanJSON struct {
	Policy string `json:"policy" doc:"the policy as given"`
	timesJSON
	Early   *timesJSON      `json:"early,omitempty" doc:"the earliest start and end, if all learned run times are shorter by the usual error of their forecasts; omitted if no such error is known"`
	Late    *timesJSON      `json:"late,omitempty" doc:"the latest start and end, if they are longer by as much"`
	Why     string          `json:"why,omitempty" doc:"why the job does not start or end"`
	Moved   []movedJSON     `json:"moved" doc:"jobs that would start or end at another time"`
	Unknown []cluster.JobID `json:"jobs_of_unknown_run_time,omitempty" doc:"jobs with tasks of unknown run time"`
	Overdue int             `json:"overdue_tasks,omitempty" doc:"running tasks that should have ended, and are taken to end at once"`
}

type timesJSON struct {
	Start time.Time `json:"start,omitzero" doc:"when the job would start; omitted if unknown"`
	End   time.Time `json:"end,omitzero" doc:"when it would end; omitted if unknown"`
}

// movedJSON is another job that starts or ends at another time.
type movedJSON struct {
	ID     cluster.JobID `json:"id" doc:"its id"`
	Name   string        `json:"name,omitempty" doc:"its name; omitted for jobs of other users"`
	Owner  string        `json:"owner" doc:"name of its user"`
	Class  cluster.Class `json:"class" doc:"regular or flex"`
	Tasks  int           `json:"tasks" doc:"number of its tasks"`
	Memory int64         `json:"memory_bytes" doc:"ideal memory of its largest task"`
	Before timesJSON     `json:"before" doc:"without the new job"`
	After  timesJSON     `json:"after" doc:"with the new job"`
}

// instant returns a time of the daemon's clock; the zero Time if it is unknown.
func instant(t timeline.Time) time.Time {
	if t == timeline.Never {
		return time.Time{}
	}
	return time.Unix(0, int64(t))
}

func timesOf(t foresee.Times) timesJSON { return timesJSON{instant(t.Start), instant(t.End)} }

func runTimeOf(j *cluster.Job, stage int) runTimeJSON {
	s := &j.Stages[stage]
	r := runTimeJSON{Stage: j.StageName(stage), Seconds: s.RunTime().Seconds(), Source: provenance(&s.Told)}
	if r.Seconds == 0 {
		r.Source = "unknown"
	}
	return r
}

func policyPlanOf(label string, a *foresee.Answer) policyPlanJSON {
	out := policyPlanJSON{Policy: label, timesJSON: timesOf(a.Times), Why: a.Why, Moved: []movedJSON{},
		Unknown: a.Unknown, Overdue: a.Overdue}
	if a.IntervalKnown {
		early, late := timesOf(a.Early), timesOf(a.Late)
		out.Early, out.Late = &early, &late
	}
	if !out.Start.IsZero() && out.End.IsZero() {
		out.Why = "the run time of its tasks is unknown"
	}
	for i := range a.Moved {
		m := &a.Moved[i]
		moved := movedJSON{ID: m.Job.ID, Name: m.Job.Name, Owner: m.Job.Owner, Class: m.Job.Class, Tasks: m.Job.Tasks(),
			Before: timesOf(m.Before), After: timesOf(m.After)}
		for k := range m.Job.Stages {
			moved.Memory = max(moved.Memory, int64(m.Job.Stages[k].Ideal[resource.Memory]))
		}
		out.Moved = append(out.Moved, moved)
	}
	return out
}

// print prints sentences and, for each policy, a table of the other jobs whose times change.
func (d *planJSON) print(w io.Writer) error {
	fmt.Fprintf(w, "simulated, from the cluster at %s:\n", d.At.Local().Format(time.TimeOnly))
	for i := range d.RunTimes {
		r := &d.RunTimes[i]
		text := "run time of a task of stage " + cluster.Printable(r.Stage) + ": unknown"
		if r.Seconds > 0 {
			text = fmt.Sprintf("run time of a task of stage %s: %s, %s", cluster.Printable(r.Stage),
				terminal.Age(seconds(r.Seconds)), r.Source)
		}
		fmt.Fprintf(w, "  %s\n", terminal.Fold(text, terminal.Width-2, "  "))
	}
	for i := range d.Policies {
		if err := d.Policies[i].print(w, d.Job, d.At); err != nil {
			return err
		}
	}
	return nil
}

func (p *policyPlanJSON) print(w io.Writer, job string, now time.Time) error {
	fmt.Fprintf(w, "\npolicy %s:\n", p.Policy)
	say := func(text string) { fmt.Fprintf(w, "  %s\n", terminal.Fold(text, terminal.Width-2, "  ")) }
	say(fmt.Sprintf("Job %s would %s.", cluster.Printable(job), p.timesJSON.words(now)))
	if p.Why != "" {
		say("The reason: " + p.Why + ".")
	}
	if p.Early != nil {
		say(fmt.Sprintf("With what was learned wrong by its usual error, it would %s at the earliest, and %s at the "+
			"latest.", p.Early.words(now), p.Late.words(now)))
	}
	if len(p.Unknown) > 0 {
		say("The run time of tasks of jobs " + cluster.JobRanges(p.Unknown) +
			" is unknown, and taken to be endless: see --assume.")
	}
	if p.Overdue > 0 {
		say(terminal.Count(p.Overdue, "running task") + " should have ended by now, and are taken to end at once.")
	}
	if len(p.Moved) == 0 {
		say("No other job would start or end at another time.")
		return nil
	}
	fmt.Fprintln(w)
	t := terminal.NewTable(">JOB", "NAME", "OWNER", "CLASS", ">TASKS", ">MEMORY", ">START", ">", ">END", ">")
	t.Shrinks = 1
	for i := range p.Moved {
		m := &p.Moved[i]
		t.Add(fmt.Sprint(m.ID), m.Name, m.Owner, m.Class.String(), fmt.Sprint(m.Tasks), terminal.MemoryOrDash(m.Memory),
			soon(m.After.Start, now), moves(m.Before.Start, m.After.Start), soon(m.After.End, now),
			moves(m.Before.End, m.After.End))
	}
	return t.Write(w)
}

// words says when a job starts and ends.
func (t *timesJSON) words(now time.Time) string {
	switch {
	case t.Start.IsZero():
		return "not start at any known time"
	case t.End.IsZero():
		return "start " + when(t.Start, now) + ", and end at no known time"
	}
	return fmt.Sprintf("start %s (%s) and end %s (%s)", when(t.Start, now), t.Start.Local().Format(time.TimeOnly),
		when(t.End, now), t.End.Local().Format(time.TimeOnly))
}

// soon prints a time for a cell.
func soon(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "?"
	case t.Before(now):
		return "started"
	}
	return when(t, now)
}

// moves prints by how much a time is later or earlier, for a cell.
func moves(before, after time.Time) string {
	switch d := after.Sub(before); {
	case before.Equal(after):
		return ""
	case before.IsZero(), after.IsZero():
		return "?"
	case d < 0:
		return "-" + terminal.Age(-d)
	default:
		return "+" + terminal.Age(d)
	}
}
