package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
)

// outcome is how the jobs of a history went, or would have gone under a policy.
type outcome struct {
	Makespan    float64 `json:"makespan_s" doc:"from the first submission to the end of the last job"`
	Completion  float64 `json:"mean_completion_s" doc:"from submission to end, mean over the jobs"`
	P95         float64 `json:"p95_completion_s" doc:"from submission to end: 95 % of the jobs took no longer"`
	Wait        float64 `json:"mean_wait_s" doc:"from submission to the start of the first task, mean over the jobs"`
	Utilisation float64 `json:"memory_utilisation" doc:"granted memory × time / (memory of all nodes × makespan), 0 to 1"`
	Elastic     int     `json:"elastic_tasks" doc:"tasks started with less than their ideal memory"`
	Failed      int     `json:"failed_jobs,omitempty" doc:"jobs that fail in the simulation; omitted if none does"`
}

// span is when a job was submitted, started and ended.
type span struct{ submitted, started, ended time.Time }

// of sums up jobs, at least one.
func (o *outcome) of(jobs []span) {
	first, last := jobs[0].submitted, jobs[0].ended
	var took []float64
	for _, j := range jobs {
		if j.submitted.Before(first) {
			first = j.submitted
		}
		if j.ended.After(last) {
			last = j.ended
		}
		took = append(took, j.ended.Sub(j.submitted).Seconds())
		o.Wait += j.started.Sub(j.submitted).Seconds() / float64(len(jobs))
	}
	slices.Sort(took)
	for _, t := range took {
		o.Completion += t / float64(len(took))
	}
	o.Makespan, o.P95 = last.Sub(first).Seconds(), took[(len(took)*95+99)/100-1]
}

// happened is how the jobs went.
func (h *history) happened(nodes []cluster.Node) (o outcome) {
	var jobs []span
	memory := 0.0
	for i := range h.jobs {
		p := &h.jobs[i]
		jobs = append(jobs, span{p.submitted(), p.started, p.ended})
		memory += p.memory
		o.Elastic += p.elastic
	}
	o.of(jobs)
	all := 0.0
	for i := range nodes {
		all += float64(nodes[i].Capacity[resource.Memory])
	}
	if o.Makespan > 0 {
		o.Utilisation = memory / (all * o.Makespan)
	}
	return o
}

// least are lower bounds of every policy with the same freedom.
type least struct {
	Makespan   float64 `json:"makespan_s" doc:"lower bound"`
	Completion float64 `json:"mean_completion_s" doc:"lower bound"`
}

// would is how the jobs would have gone under a policy, simulated.
func (h *history) would(c trial.Contender, config sim.Config) (o outcome, b least, err error) {
	t, err := c.On(config, h.workload())
	if err != nil {
		return o, b, err
	}
	r, err := t.Run()
	if err != nil {
		return o, b, err
	}
	if left := r.Unfinished(); len(left) > 0 {
		return o, b, fmt.Errorf("job %d does not end: %s", left[0].ID, left[0].Stuck)
	}
	bounds := t.Bounds(0)
	b = least{bounds.Makespan.Seconds(), bounds.AverageJobRuntime.Seconds()}
	var jobs []span
	origin := time.Unix(0, 0)
	for i := range r.Jobs {
		j := &r.Jobs[i]
		started := j.Started
		if j.Tasks == 0 {
			started = j.Ended
		}
		jobs = append(jobs, span{origin.Add(time.Duration(j.Submitted)), origin.Add(time.Duration(started)),
			origin.Add(time.Duration(j.Ended))})
	}
	o.of(jobs)
	o.Utilisation, o.Elastic, o.Failed = r.MemoryUtilisation, r.UnderSized, len(r.Failures())
	return o, b, nil
}

// clusterOf is the simulated cluster: nodes that report at once, tasks that start as late as they did, and CPU as the
// daemon grants it.
func (h *history) clusterOf(nodes []cluster.Node) sim.Config {
	c := sim.Config{Nodes: nodes, LaunchDelay: h.launch(), Caps: resource.KindsOf(resource.CPU), Lends: true}
	for i := range h.jobs {
		if h.jobs[i].job.Class == cluster.Flex { // the machine had swap
			c.Machine, _ = sim.MachineOf("measured")
			for k := range nodes {
				c.Machine.Swap = max(c.Machine.Swap, nodes[k].Capacity[resource.Memory])
			}
			break
		}
	}
	return c
}
