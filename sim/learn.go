package sim

import (
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

// submission returns the job as the engine sees it, with its learned forecast.
func (r *run) submission(j *job) *cluster.Job {
	if r.config.History == nil || j.App == "" {
		return &j.Job.Job
	}
	spec := j.Job.Job
	spec.Stages = slices.Clone(spec.Stages)
	r.config.History.Forecast(&spec, profile.Untimed(&j.Job.Job))
	j.tell(&spec)
	return &spec
}

// observe records the run of a task that has succeeded as a machine would measure it, on the assumption that all its
// phases were slowed down equally. The time for which the task was stopped does not count.
func (r *run) observe(t *task, stood time.Duration) {
	j := t.job
	if len(j.told) == 0 || t.result.Coordinator {
		return // no history learns from it, or its job has ended without it
	}
	stage := int(t.id.Stage)
	truth, took := truthOf(j.Job, stage, t.id.Index, t.result.Warmth), t.result.Finished.Sub(t.result.Launched)-stood
	phases := truth.Phases
	if len(phases) == 0 {
		phases = []cluster.Phase{{Duration: took, Demand: j.Stages[stage].Ideal}}
	}
	phases = profile.Lasting(phases, took)
	j.told[stage].compare(took, phases)
	j.lessons = append(j.lessons,
		lesson{profile.AppOf(&j.Job.Job, stage), profile.Run{Duration: took, Ended: r.now, Phases: phases,
			Features: profile.Features{Cores: t.grant[resource.CPU], Input: j.Stages[stage].Input,
				Memory: t.grant[resource.Memory]}}})
}

// learn adds the runs of a job that has ended to the history. Jobs of its application that wait are revised once the
// present happening has been handled.
func (r *run) learn(j *job) {
	for _, l := range j.lessons {
		_, _ = r.config.History.Observe(l.app, l.run) // a run that is not sound teaches nothing
	}
	if len(j.lessons) > 0 {
		r.taught = append(r.taught, j)
	}
	r.result.Forecasts.judge(j.told)
	j.lessons, j.told = nil, nil
}

// revise updates waiting jobs whose application has newer runs.
func (r *run) revise() {
	for len(r.taught) > 0 && r.err == nil {
		by := r.taught[0]
		r.taught = r.taught[1:]
		for _, state := range slices.Clone(r.engine.Snapshot().Jobs) {
			if state.Owner != by.Owner || state.App != by.App || state.Status != cluster.StatusPending || len(state.Tasks) > 0 {
				continue
			}
			revised := state.Job.Revised(state.Job)
			if r.config.History.Forecast(&revised, profile.Untimed(&r.byID[state.ID].Job.Job)) {
				r.byID[state.ID].tell(&revised)
				r.stepOne(cluster.Event{Kind: cluster.JobRevised, Job: state.ID, NewJob: &revised})
			}
		}
	}
}
