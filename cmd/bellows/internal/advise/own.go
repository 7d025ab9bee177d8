package advise

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/sim/trial"
)

// own returns what the daemon has of jobs that have ended, on its nodes, and its policy.
func (o *options) own(cmd *cobra.Command) (*record, trial.Contender, error) {
	var chosen trial.Contender
	client, err := o.place.Client()
	if err != nil {
		return nil, chosen, err
	}
	status, err := client.Status(cmd.Context())
	if err != nil {
		return nil, chosen, err
	}
	if chosen, err = o.policy(status.Policy, status.Settings); err != nil {
		return nil, chosen, err
	}
	r := &record{source: "jobs of the daemon", said: "those of the daemon", ends: map[profile.App]importer.Ends{},
		machine: workload.ClusterShape{Nodes: max(1, len(status.Nodes))}}
	for i := range status.Nodes {
		n := &status.Nodes[i]
		r.machine.Node = r.machine.Node.Max(resource.Of(resource.Amount(n.CPU), resource.Amount(n.Memory)))
	}
	if err := r.ask(cmd.Context(), client, o.tasks); err != nil {
		return nil, chosen, err
	}
	if len(r.tasks) == 0 {
		return nil, chosen, command.Usagef(
			"FILE: must be given where the daemon has no task that has ended well and that you may see")
	}
	return r, chosen, nil
}

// ask asks the daemon for the tasks of jobs that have ended: the last ones, up to most.
func (r *record) ask(ctx context.Context, client *client.Client, most int) error {
	var ids []cluster.JobID
	for jobs, err := range client.JobPages(ctx, true, api.JobFilter{}) {
		if err != nil {
			return err
		}
		for i := range jobs {
			if jobs[i].Ended {
				ids = append(ids, jobs[i].ID)
			}
		}
	}
	slices.Sort(ids)
	others, left := 0, 0
	for _, id := range slices.Backward(ids) {
		if len(r.tasks) >= most {
			left++
			continue
		}
		j, used, err := client.Ran(ctx, id, mostSpans)
		switch {
		case api.KindOf(err) == api.Denied:
			others++
		case api.KindOf(err) == api.NotFound: // removed meanwhile
		case err != nil:
			return err
		default:
			r.takeJob(&j, used)
		}
	}
	if others > 0 {
		r.notes = append(r.notes, terminal.Count(others, "job")+" of other users left out.")
	}
	if left > 0 {
		r.notes = append(r.notes, terminal.Count(left, "earlier job")+" left out (--tasks).")
	}
	if r.unmeasured > 0 {
		r.notes = append(r.notes, terminal.Count(r.unmeasured, "task")+" whose memory was not measured left out.")
	}
	slices.SortStableFunc(r.tasks, func(a, b task) int { return cmp.Compare(a.submitted, b.submitted) })
	for i := range slices.Backward(r.tasks) {
		r.tasks[i].submitted -= r.tasks[0].submitted
	}
	return nil
}

// mostSpans is the largest number of spans of measured use of a task.
const mostSpans = 20

// takeJob adds the tasks of a job that ended well, and counts the other ends.
func (r *record) takeJob(j *api.Job, used []api.TaskUsage) {
	of := cluster.Job{Name: j.Name, Owner: j.Owner, App: j.App}
	for i := range j.Stages {
		of.Stages = append(of.Stages, j.Stages[i].Stage)
	}
	first := r.parts + 1
	r.parts += len(j.Stages)
	for _, ran := range j.Runs() {
		stage := int(ran.Task.Stage)
		app := appOf(&of, stage, false)
		switch {
		case ran.Outcome == 0 || ran.Started.IsZero() || ran.Ended.IsZero():
			continue
		case ran.Outcome != cluster.Succeeded:
			r.ends[app] = r.ends[app].And(ran.Outcome == cluster.OutOfMemory)
			continue
		}
		s := &j.Stages[stage]
		t := task{app: app, submitted: timeline.Time(j.Submitted.UnixNano()), part: first + stage,
			cpus: max(1, s.Ideal[resource.CPU]), asked: s.Ideal[resource.Memory], input: s.Input,
			ran: max(time.Millisecond, ran.Ended.Sub(ran.Started))}
		if s.Class == cluster.Flex {
			t.asked = s.MaxMemory
		}
		for _, p := range s.Parents {
			t.behind = append(t.behind, first+p)
		}
		if u := api.UsageOf(used, &ran); u == nil || !t.measured(u) {
			r.unmeasured++
			continue
		}
		r.tasks = append(r.tasks, t)
	}
}

// measured takes in what was measured of a task, without the time for which it stood still; false says that its memory
// was not measured.
func (t *task) measured(u *api.TaskUsage) bool {
	var phases []cluster.Phase
	for i := range u.Spans {
		s := &u.Spans[i]
		length := s.Ran()
		if s.Memory == nil || length <= 0 {
			continue
		}
		p := cluster.Phase{Duration: length, Demand: resource.Vector{}.With(resource.Memory, resource.Amount(*s.Memory))}
		if s.Swap != nil {
			p.Demand[resource.Memory] += resource.Amount(*s.Swap)
		}
		t.peak = max(t.peak, p.Demand[resource.Memory])
		phases = append(phases, p)
	}
	t.ran = max(time.Millisecond, t.ran-u.Still())
	t.phases = memoryOf(phases, t.ran)
	return t.peak > 0
}
