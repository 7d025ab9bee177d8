// Package replay has the command that simulates the jobs of a daemon that have ended under other policies.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/simulate"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
)

const long = `Simulate the jobs that have ended under one or more policies, and compare that
with what happened and with lower bounds, which no policy of its kind can beat.

Each job is submitted when it was, with the estimates that it had, and its tasks
run for as long as they did, without the time for which they stood still:
docs/planning.md says what is simulated. MAKESPAN is from the first submission
to the last end; MEAN and 95 % are of the times from submission to end, WAIT is
the mean time to the start; MEMORY is the share that was granted; ELASTIC counts
tasks that were started with less than their ideal memory.

Ordinary users replay only their own jobs; other users' jobs are not simulated.`

type options struct {
	place        place.Place
	policies     simulate.Policies
	since, until time.Time
	user         string
	asJSON       bool
}

// Command returns `bellows replay`.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Simulate the jobs that have ended under other policies",
		Long:  long,
		Example: `  bellows replay --policy fair,yarn-me
  bellows replay --policy srjf --since 24h
  bellows replay --since 2026-03-01 --until 2026-03-08 --user ada`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.policies.Flags(cmd)
	f.Var(moment(&o.since), "since", "only jobs that were submitted from then on")
	f.Var(moment(&o.until), "until", "only jobs that were submitted before")
	f.StringVar(&o.user, "user", "", "only jobs of the `user`")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	o.place.Flags(cmd, false)
	return cmd
}

// moment is a flag for a point in time; the zero Time means none.
func moment(to *time.Time) pflag.Value {
	return flags.Parsed(to, "time", parseMoment, func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339)
	})
}

func parseMoment(text string) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("must be a date such as 2026-03-01, a time such as 2026-03-01 18:30 or " +
			"2026-03-01T18:30:00Z, or how long ago, such as 24h")
	}
	return t, nil
}

func (o *options) run(cmd *cobra.Command) error {
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	status, err := client.Status(cmd.Context())
	if err != nil {
		return err
	}
	contenders, err := o.policies.Contenders(status.Policy, status.Settings, simulate.Exists)
	if err != nil {
		return err
	}
	h, err := o.read(cmd.Context(), client)
	if err != nil {
		return err
	}
	nodes := nodesOf(&status.ClusterStatus)
	doc := document{Simulated: true, Notes: append(h.fits(nodes), h.notes()...), Policies: []policyJSON{}}
	if len(h.jobs) == 0 {
		return command.Usagef("replay: no job that has ended and that you may see was submitted in that time")
	}
	doc.Jobs, doc.From, doc.To = len(h.jobs), h.jobs[0].submitted(), h.jobs[len(h.jobs)-1].submitted()
	doc.Happened = h.happened(nodes)
	for _, c := range contenders {
		p, err := h.simulate(cmd.Context(), c, h.clusterOf(nodes))
		if err != nil {
			return err
		}
		doc.Policies = append(doc.Policies, p)
	}
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), doc)
	}
	return doc.print(cmd.OutOrStdout(), nodes)
}

// read asks the daemon for the jobs that have ended.
func (o *options) read(ctx context.Context, client *client.Client) (*history, error) {
	h := &history{}
	for page, err := range client.JobPages(ctx, true, api.JobFilter{}) {
		if err != nil {
			return nil, err
		}
		for i := range page {
			j := &page[i]
			if !j.Ended || !o.since.IsZero() && j.Submitted.Before(o.since) || !o.until.IsZero() &&
				!j.Submitted.Before(o.until) || o.user != "" && j.Owner != o.user {
				continue
			}
			if err := h.add(ctx, client, j.ID); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(h.jobs, func(a, b past) int { return cmp.Compare(a.job.Submitted, b.job.Submitted) })
	return h, nil
}

// add adds a job, unless it belongs to another user, never ran, or was removed meanwhile.
func (h *history) add(ctx context.Context, client *client.Client, id cluster.JobID) error {
	j, used, err := client.Ran(ctx, id, spans)
	switch {
	case api.KindOf(err) == api.Denied:
		h.others++
		return nil
	case api.KindOf(err) == api.NotFound:
		return nil
	case err != nil:
		return err
	}
	if p, ok := pastOf(&j, used); ok {
		h.jobs = append(h.jobs, p)
	} else {
		h.unstarted++
	}
	return nil
}

// notes says what of the past is not simulated.
func (h *history) notes() (all []string) {
	if h.others > 0 {
		all = append(all, fmt.Sprintf("%s of other users %s left out.", terminal.Count(h.others, "job"),
			terminal.IsOrAre(h.others)))
	}
	if h.unstarted > 0 {
		all = append(all, fmt.Sprintf("%s that never ran %s left out.", terminal.Count(h.unstarted, "job"),
			terminal.IsOrAre(h.unstarted)))
	}
	if n := h.again(); n > 0 {
		all = append(all, terminal.Count(n, "run")+" before the newest of a task do not count.")
	}
	return all
}

// simulate simulates one policy. That it cannot run the jobs is a part of the answer; the error is that ctx has ended.
func (h *history) simulate(ctx context.Context, c trial.Contender, config sim.Config) (policyJSON, error) {
	return simulate.Until(ctx, func() (policyJSON, error) {
		o, b, err := h.would(c, config)
		if err != nil {
			return policyJSON{Policy: c.Label, Error: err.Error()}, nil
		}
		return policyJSON{Policy: c.Label, Would: &o, Least: &b}, nil
	})
}

// document is the output of `bellows replay --json`.
type document struct {
	Simulated bool         `json:"simulated" doc:"always true: what the policies would have done is"`
	Jobs      int          `json:"jobs" doc:"number of jobs"`
	From      time.Time    `json:"from" doc:"first submission"`
	To        time.Time    `json:"to" doc:"last submission"`
	Happened  outcome      `json:"happened" doc:"what happened: the fields [below](#a-history)"`
	Policies  []policyJSON `json:"policies" doc:"one for each of --policy"`
	Notes     []string     `json:"notes,omitempty" doc:"what is not simulated, in a sentence each"`
}

// policyJSON is a policy, and how the jobs would have gone, or why that is not known.
type policyJSON struct {
	Policy string   `json:"policy" doc:"the policy as given"`
	Would  *outcome `json:"would,omitempty" doc:"what it would have done: the fields [below](#a-history); omitted if there is an error"`
	Least  *least   `json:"lower_bounds,omitempty" doc:"for all policies of this kind, elastic or not"`
	Error  string   `json:"error,omitempty" doc:"why the policy cannot run the jobs"`
}

func (d *document) print(w io.Writer, nodes []cluster.Node) error {
	total := resource.Vector{}
	for i := range nodes {
		total = total.Add(nodes[i].Capacity)
	}
	fmt.Fprintf(w, "%s\n\n",
		terminal.Fold(fmt.Sprintf("%s, submitted from %s to %s, simulated on %s and %s:", terminal.Count(d.Jobs, "job"),
			d.From.Local().Format(time.DateTime), d.To.Local().Format(time.DateTime), resource.CPU.Format(total[resource.CPU]),
			resource.FormatMemory(total[resource.Memory])), terminal.Width, ""))
	t := terminal.NewTable("POLICY", ">MAKESPAN", ">/LEAST", ">MEAN", ">/LEAST", ">95 %", ">WAIT", ">MEMORY", ">ELASTIC")
	t.Shrinks = 0
	row := func(name string, o *outcome, b *least) {
		t.Add(name, secondsText(o.Makespan), times(o.Makespan, b.Makespan), secondsText(o.Completion),
			times(o.Completion, b.Completion), secondsText(o.P95), secondsText(o.Wait),
			fmt.Sprintf("%.0f%%", 100*o.Utilisation), strconv.Itoa(o.Elastic))
	}
	bounds := &least{}
	if at := slices.IndexFunc(d.Policies, func(p policyJSON) bool { return p.Least != nil }); at >= 0 {
		bounds = d.Policies[at].Least
	}
	row("what happened", &d.Happened, bounds)
	var failed []string
	for i := range d.Policies {
		p := &d.Policies[i]
		if p.Error != "" {
			failed = append(failed, fmt.Sprintf("Policy %s: %s.", p.Policy, strings.TrimSuffix(p.Error, ".")))
			continue
		}
		row(p.Policy, p.Would, p.Least)
		if p.Would.Failed > 0 {
			failed = append(failed, fmt.Sprintf("Policy %s: %s failed in the simulation.", p.Policy,
				terminal.Count(p.Would.Failed, "job")))
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, note := range slices.Concat(failed, d.Notes) {
		if _, err := fmt.Fprintln(w, terminal.Fold(note, terminal.Width, "")); err != nil {
			return err
		}
	}
	return nil
}

func secondsText(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) + "s" }

// times prints a value as a multiple of its bound.
func times(value, least float64) string {
	if least <= 0 {
		return "-"
	}
	return strconv.FormatFloat(value/least, 'f', 2, 64)
}
