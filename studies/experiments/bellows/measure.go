package bellows

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/bound"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// outcome is how a workload went under a contender. Times are in seconds.
type outcome struct {
	Runtime  float64 `json:"job_runtime_s"` // mean of the jobs, from submission to end
	Makespan float64 `json:"makespan_s"`
	Failed   int     `json:"failed"`
	// LeastRuntime and LeastMakespan are lower bounds of the same for every policy; 0 where they are not computed.
	LeastRuntime  float64 `json:"bound_job_runtime_s,omitempty"`
	LeastMakespan float64 `json:"bound_makespan_s,omitempty"`
	Actions       actions `json:"actions"`
}

// actions counts what each stage of the policy bellows decided.
type actions struct {
	Order   int `json:"order"`   // nodes kept for a job
	Size    int `json:"size"`    // tasks that were under-sized
	Place   int `json:"place"`   // tasks that were chosen among several, or started late
	Level   int `json:"level"`   // tasks that started by phase, changes of their CPU, and stops
	Stops   int `json:"stops"`   // those of them that were stops
	BackOff int `json:"backoff"` // tasks that were throttled
	Renew   int `json:"renew"`   // changes of what is reserved of memory for running tasks
}

func (a *actions) observe(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
	for i := range decisions {
		switch d := &decisions[i]; {
		case d.Kind == cluster.Reserve:
			a.Order++
		case d.Kind == cluster.Throttle:
			a.BackOff++
		case d.Kind == cluster.Suspend:
			a.Level, a.Stops = a.Level+1, a.Stops+1
		case d.Kind == cluster.Resize && (d.Reason.Code == cluster.RestNeeds || d.Reason.Code == cluster.HoldsMore):
			a.Renew++
		case d.Kind == cluster.Resize || d.Kind == cluster.Start && d.ByPhase:
			a.Level++
		case d.Kind != cluster.Start:
		case d.Reason.Code == cluster.FitsUnderSized || d.Reason.Code == cluster.FitsUnderSizedNoLimit:
			a.Size++
		case d.Reason.Code == cluster.BestAligned || d.Reason.Code == cluster.AlmostDone:
			a.Place++
		}
	}
}

// bounded adds the lower bounds for policies that under-size tasks and grant CPU by phase. Where no task has phases,
// they may count memory, too.
func (o *outcome) bounded(config *sim.Config, w *workload.Workload) {
	phased := slices.ContainsFunc(w.Jobs, func(j workload.Job) bool {
		return slices.ContainsFunc(j.Stages, func(s cluster.Stage) bool { return s.ForecastLength() > 0 }) ||
			slices.ContainsFunc(j.Truth, func(t workload.StageTruth) bool { return t.Phases.Given() })
	})
	b := bound.Of(w, config.Nodes, true, bound.Options{ByPhase: phased, Iterations: bound.DefaultIterations})
	o.LeastRuntime, o.LeastMakespan = b.AverageJobRuntime.Seconds(), b.Makespan.Seconds()
}

func measure(c lab.Contender, config sim.Config, w *workload.Workload) (o outcome, err error) {
	config.Observe = o.Actions.observe
	r, err := c.ToTheEnd(config, w)
	if err != nil {
		return o, err
	}
	o.Runtime, o.Makespan, o.Failed = r.AverageJobRuntime.Seconds(), r.Makespan.Seconds(), len(r.Failures())
	return o, nil
}
