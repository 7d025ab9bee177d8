package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// lesson is one run of a task that succeeded.
type lesson struct {
	app profile.App
	run profile.Run
}

// teaching is what the runs of a job teach a history.
type teaching struct {
	told    []foretold // forecasts of its stages as submitted; nil if runs teach nothing
	lessons []lesson   // of its tasks that have succeeded
}

// teaches reports whether runs teach.
func (t *teaching) teaches() bool { return len(t.told) > 0 }

// add takes in how a task of a stage went.
func (t *teaching) add(stage int, l *lesson) {
	t.told[stage].compare(l.run.Duration, l.run.Phases)
	t.lessons = append(t.lessons, *l)
}

// take returns what was taught since the last time.
func (t *teaching) take() (told []foretold, lessons []lesson) {
	told, lessons = t.told, t.lessons
	t.told, t.lessons = nil, nil
	return told, lessons
}

// submission returns the job as the engine sees it, with its learned forecast.
func (r *run) submission(j *job) *cluster.Job {
	if r.config.History == nil || j.App == "" {
		return &j.Job.Job
	}
	spec := j.Job.Job
	spec.Stages = slices.Clone(spec.Stages)
	r.config.History.ReserveFor(&spec, r.mostMemory())
	r.config.History.Forecast(&spec, profile.Untimed(&j.Job.Job))
	j.tell(&spec, profile.Untimed(&j.Job.Job))
	return &spec
}

// observe records the run of a task that has succeeded as a machine would measure it, on the assumption that all its
// phases were slowed down equally. The time for which the task was stopped does not count.
func (r *run) observe(t *task, stood time.Duration) {
	j := t.job
	if !j.teaches() || t.result.Coordinator {
		return // no history learns from it, or its job has ended without it
	}
	stage := int(t.id.Stage)
	truth, took := truthOf(j.Job, stage, t.id.Index, t.result.Warmth), t.result.Finished.Sub(t.result.Launched)-stood
	phases := truth.Phases
	if len(phases) == 0 {
		phases = []cluster.Phase{{Duration: took, Demand: j.Stages[stage].Ideal}}
	}
	phases = profile.Lasting(phases, took)
	j.add(stage, &lesson{profile.AppOf(&j.Job.Job, stage), profile.Run{Duration: took, Ended: r.now, Phases: phases,
		Features: t.features()}})
}

// features returns what was known of the run of a task before it started. Its grant of CPU may have changed since, and
// that of memory to what the rest of it needed.
func (t *task) features() profile.Features {
	s, memory := &t.job.Stages[t.id.Stage], t.grant[resource.Memory]
	if t.job.Reserve == cluster.ReserveLearned {
		memory = t.result.Memory
	}
	return profile.Features{Cores: profile.CoresOf(s), Input: s.Input, Memory: memory}
}

// learn adds the runs of a job that has ended to the history. Jobs of its application that wait are revised once the
// present happening has been handled.
func (r *run) learn(j *job) {
	told, lessons := j.take()
	for _, l := range lessons {
		_, _ = r.config.History.Observe(l.app, l.run) // a run that is not sound teaches nothing
	}
	if len(lessons) > 0 {
		r.taught = append(r.taught, j)
	}
	r.result.Forecasts.judge(told)
}

// mostMemory is the memory of the largest node, bytes.
func (r *run) mostMemory() (most resource.Amount) {
	for _, n := range r.engine.Snapshot().Nodes {
		most = max(most, n.Capacity[resource.Memory])
	}
	return most
}

// fallShort records that a task ends for want of memory, where reservations are learned, with what it holds. The
// reservation of the next attempt is at least twice that.
func (r *run) fallShort(t *task) {
	j, stage := t.job, int(t.id.Stage)
	state, here := r.engine.Snapshot().Job(j.ID)
	if r.config.History == nil || !here || j.Reserve != cluster.ReserveLearned || t.result.Coordinator {
		return
	}
	held := t.grant[resource.Memory]
	if t.container != nil {
		held = max(held, t.container.resident)
	}
	s := &state.Stages[stage]
	_ = r.config.History.ObserveShortfall(profile.AppOf(&j.Job.Job, stage), profile.Shortfall{Ended: r.now, Held: held,
		Features: t.features()}) // one that is not sound teaches nothing
	revised := state.Job.WithReservations(state.Job)
	next := cluster.Reservation{}
	if s.Reserved != nil {
		next = *s.Reserved
	}
	next = next.After(held, cmp.Or(s.MaxMemory, r.mostMemory()))
	of := &revised.Stages[stage]
	of.Ideal[resource.Memory], of.Reserved = max(s.Ideal[resource.Memory], next.Bytes), &next
	r.stepOne(cluster.Event{Kind: cluster.JobRevised, Job: j.ID, NewJob: &revised})
}

// mostRevised is how many waiting jobs of an application get other reservations at a time, as in a daemon: the first
// submitted. Others do when later runs end.
const mostRevised = 100

// revise updates waiting jobs whose application has newer runs.
func (r *run) revise() {
	for len(r.taught) > 0 && r.err == nil {
		by := r.taught[0]
		r.taught = r.taught[1:]
		if slices.ContainsFunc(r.taught, func(j *job) bool { return j.Owner == by.Owner && j.App == by.App }) &&
			by.Reserve == cluster.ReserveLearned {
			continue // after the last of them
		}
		most := r.mostMemory()
		var learned []cluster.Event
		for _, state := range slices.Clone(r.engine.Snapshot().Jobs) {
			if state.Owner != by.Owner || state.App != by.App || state.Status != cluster.StatusPending || len(state.Tasks) > 0 {
				continue
			}
			untimed := profile.Untimed(&r.byID[state.ID].Job.Job)
			if state.Reserve == cluster.ReserveLearned {
				if len(learned) < mostRevised {
					revised := state.Job.Revised(state.Job)
					r.config.History.ReserveFor(&revised, most)
					r.config.History.Forecast(&revised, untimed)
					r.byID[state.ID].tell(&revised, untimed)
					learned = append(learned, cluster.Event{Kind: cluster.JobRevised, Job: state.ID, NewJob: &revised})
				}
				continue
			}
			revised := state.Job.Revised(state.Job)
			if r.config.History.Forecast(&revised, untimed) {
				r.byID[state.ID].tell(&revised, untimed)
				r.stepOne(cluster.Event{Kind: cluster.JobRevised, Job: state.ID, NewJob: &revised})
			}
		}
		if len(learned) > 0 {
			r.step(learned)
		}
	}
}
