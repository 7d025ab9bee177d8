// Package foresee says what a running cluster will do, by playing it forward in the simulator: when a job that has
// not been submitted would start and end, and which other jobs would start or end at another time because of it.
package foresee

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
)

// What happens later than horizon from now is unknown. A task of unknown run time runs for longer than that.
const (
	horizon = 100 * 24 * time.Hour
	forever = cluster.LongestTime
)

// notable is the smallest change of a time that counts.
const notable = 100 * time.Millisecond

// Future is a cluster under a policy that is to be played forward.
type Future struct {
	present   *eventlog.Present
	contender trial.Contender
	assume    time.Duration // how long a task runs of which that is unknown; 0 is for ever
	config    sim.Config
	jobs      []cluster.Job // that are in the cluster
}

// New returns the future of a cluster under a policy, which need not be the policy that it has. assume is how long a
// task of unknown run time runs; 0: it never ends. The error says that there is no such policy or setting, or that
// the policy can never run the job.
func New(p *eventlog.Present, c trial.Contender, assume time.Duration) (*Future, error) {
	f := &Future{present: p, contender: c, assume: assume}
	flex := p.Job.Class == cluster.Flex
	var nodes []cluster.Node
	for i := range p.Found {
		if e := &p.Found[i]; e.NewNode != nil {
			nodes = append(nodes, *e.NewNode)
		} else if e.NewJob != nil {
			f.jobs, flex = append(f.jobs, *e.NewJob), flex || e.NewJob.Class == cluster.Flex
		}
	}
	found := slices.Clone(p.Found)
	if last := len(found) - 1; last >= 0 &&
		(c.Policy != p.Header.Policy ||
			!maps.Equal(settingsOf(c.Policy, c.Settings), settingsOf(c.Policy, p.Header.Settings))) {
		found[last] = cluster.Event{Kind: cluster.Synced} // The policy sees all of the cluster for the first time.
	}
	f.config = sim.Config{Nodes: nodes, Heartbeat: p.Header.Heartbeat, LaunchDelay: p.Header.LaunchDelay,
		Lends: p.Header.Lends, Caps: resource.KindsOf(resource.CPU),
		Begin: &sim.Begin{At: p.Now, Found: found, ContainersPerCore: p.Header.ContainersPerCore}, Until: p.Now.Add(horizon)}
	if flex { // The machine has swap, or FLEX jobs would not have been accepted.
		f.config.Machine, _ = sim.MachineOf("measured")
		for i := range nodes {
			f.config.Machine.Swap = max(f.config.Machine.Swap, nodes[i].Capacity[resource.Memory])
		}
	}
	alone, err := c.On(f.config, &workload.Workload{Jobs: []workload.Job{{Job: p.Job, After: -1}}})
	if err != nil {
		return nil, err
	}
	return f, alone.Check()
}

// settingsOf returns the settings of a policy among settings.
func settingsOf(policy string, all map[string]string) map[string]string {
	own := maps.Clone(all)
	maps.DeleteFunc(own, func(name, _ string) bool { return !strings.HasPrefix(name, policy+".") })
	return own
}

// Times are when a job starts and ends; Never is unknown.
type Times struct{ Start, End timeline.Time }

// Moved is a job that starts or ends at another time because of the job in question. Before is without that.
type Moved struct {
	Job           *cluster.Job
	Before, After Times
}

// Answer is what is foreseen of the job in question.
type Answer struct {
	Times
	// Early and Late are the times if every run time that was learned is shorter, or longer, by the usual error of its
	// forecast. They are not known if no such error is.
	Early, Late   Times
	IntervalKnown bool
	// Why says why the job does not start or end; empty if it does.
	Why string
	// Moved are the other jobs that start or end at another time, by ID.
	Moved []Moved
	// Unknown are the jobs with stages of unknown run time, by ID. Overdue counts running tasks that have run for longer
	// than estimated: they are taken to end now.
	Unknown []cluster.JobID
	Overdue int
}

// Plan plays the cluster forward without the job in question and with it.
func (f *Future) Plan() (*Answer, error) {
	without, _, err := f.play(false, 0)
	if err != nil {
		return nil, err
	}
	with, why, err := f.play(true, 0)
	if err != nil {
		return nil, err
	}
	a := &Answer{Times: with[f.present.Job.ID], Why: why, Unknown: f.unknown(), Overdue: f.overdue()}
	for i := range f.jobs {
		j := &f.jobs[i]
		if m := (Moved{j, without[j.ID], with[j.ID]}); differ(m.Before.Start, m.After.Start) ||
			differ(m.Before.End, m.After.End) {
			a.Moved = append(a.Moved, m)
		}
	}
	if !f.learned() {
		return a, nil
	}
	a.IntervalKnown = true
	for _, longer := range []float64{-1, 1} {
		times, _, err := f.play(true, longer)
		if err != nil {
			return nil, err
		}
		t := times[f.present.Job.ID]
		if longer < 0 {
			a.Early, a.Late = a.Times, a.Times
		}
		a.Early = Times{min(a.Early.Start, t.Start), min(a.Early.End, t.End)}
		a.Late = Times{max(a.Late.Start, t.Start), max(a.Late.End, t.End)}
	}
	return a, nil
}

// differ reports whether two times differ notably.
func differ(a, b timeline.Time) bool {
	d := a.Sub(b)
	return d >= notable || d <= -notable
}

// play simulates the cluster, with the job in question or without it. longer is by how much of their errors the
// learned run times are longer: 0 is as forecast. why says why the job in question does not end.
func (f *Future) play(with bool, longer float64) (times map[cluster.JobID]Times, why string, err error) {
	w := &workload.Workload{}
	for i := range f.jobs {
		w.Jobs = append(w.Jobs, f.believed(&f.jobs[i], longer))
	}
	if with {
		w.Jobs = append(w.Jobs, f.believed(&f.present.Job, longer))
	}
	t, err := f.contender.On(f.config, w)
	if err != nil {
		return nil, "", err
	}
	result, err := t.Run()
	if err != nil {
		return nil, "", err
	}
	times = make(map[cluster.JobID]Times, len(result.Jobs))
	for i := range result.Jobs {
		j := &result.Jobs[i]
		at := Times{timeline.Never, timeline.Never}
		if j.Tasks > 0 {
			at.Start = j.Started
		}
		if j.Done || j.Failed {
			at.End = j.Ended
		}
		times[j.ID] = at
		if with && i == len(result.Jobs)-1 {
			why = cmp.Or(j.Failure, j.Stuck)
		}
	}
	return times, why, nil
}

// believed returns a job that does what it is believed to do.
func (f *Future) believed(j *cluster.Job, longer float64) workload.Job {
	out := workload.Job{Job: *j, After: -1, Truth: make([]workload.StageTruth, len(j.Stages))}
	for i := range j.Stages {
		s := &j.Stages[i]
		d := s.RunTime()
		switch {
		case d == 0:
			d = cmp.Or(f.assume, forever)
		case longer < 0:
			d = max(1, time.Duration(float64(d)/(1-longer*s.Told.Error)))
		case longer > 0:
			d = time.Duration(float64(d) * (1 + longer*s.Told.Error))
		default:
			continue // as estimated
		}
		out.Truth[i].Duration = workload.ForAll(d)
	}
	return out
}

// learned reports whether a run time was learned and its usual error is known.
func (f *Future) learned() bool {
	return slices.ContainsFunc(append(f.jobs[:len(f.jobs):len(f.jobs)], f.present.Job), func(j cluster.Job) bool {
		return slices.ContainsFunc(j.Stages, func(s cluster.Stage) bool { return s.Told.Error > 0 })
	})
}

// unknown returns the jobs with stages of unknown run time.
func (f *Future) unknown() (all []cluster.JobID) {
	for _, j := range append(f.jobs[:len(f.jobs):len(f.jobs)], f.present.Job) {
		if slices.ContainsFunc(j.Stages, func(s cluster.Stage) bool { return s.RunTime() == 0 }) {
			all = append(all, j.ID)
		}
	}
	return all
}

// overdue counts the running tasks that should have ended.
func (f *Future) overdue() (n int) {
	for i := range f.present.Found {
		if p := f.present.Found[i].Condition().Progress; p != nil && p.Ends != 0 && p.Ends <= f.present.Now &&
			p.SuspendedBy == 0 {
			n++
		}
	}
	return n
}
