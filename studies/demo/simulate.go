package demo

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// Machine is the simulator's input about a machine.
type Machine struct {
	// Launch is the time from the end of one task to the start of the next on a full node.
	Launch time.Duration `json:"launch_ns"`
	// Neighbour is the slowdown of a task while another task runs on another core: they share caches and memory
	// bandwidth. Programs are measured alone, and no policy knows this slowdown.
	Neighbour float64 `json:"neighbour_slowdown"`
}

// simulate runs the mix in virtual time. Its only inputs are profiles, the job file, and two figures of the machine.
func simulate(c *contender, m models, on Machine) (*Run, error) {
	// How long tasks have a neighbour depends slightly on how long they take: a few passes converge.
	const passes = 4
	var r *Run
	slower := 1.0
	for range passes {
		var err error
		if r, err = simulateOnce(c, m, on.Launch, slower); err != nil {
			return nil, err
		}
		slower = 1 + (max(1, on.Neighbour)-1)*r.beside()
	}
	return r, nil
}

// beside returns the share of the time of all tasks during which another task ran too.
func (r *Run) beside() float64 {
	var alone, all time.Duration
	times := changes(r, func(t *TaskRun) time.Duration { return t.Started })
	for k := 0; k+1 < len(times); k++ {
		n := time.Duration(0)
		for _, t := range r.Tasks {
			if t.Started <= times[k] && times[k] < t.Ended {
				n++
			}
		}
		span := times[k+1] - times[k]
		all += n * span
		if n == 1 {
			alone += span
		}
	}
	return 1 - alone.Seconds()/max(all.Seconds(), 1e-9)
}

// simulateOnce simulates tasks whose real duration is slower times the measured one.
func simulateOnce(c *contender, m models, launch time.Duration, slower float64) (*Run, error) {
	w, err := c.workload(m)
	if err != nil {
		return nil, err
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		for s := range j.Stages {
			j.Truth = append(j.Truth,
				workload.StageTruth{Duration: workload.ForAll(time.Duration(slower * float64(j.Stages[s].Duration)))})
		}
	}
	t, err := c.On(sim.Config{Nodes: sim.Uniform(1, node), LaunchDelay: launch, KeepTasks: true}, w)
	if err != nil {
		return nil, err
	}
	res, err := t.Run()
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", c.Label, err)
	}
	if stuck := res.Unfinished(); len(stuck) > 0 {
		return nil, fmt.Errorf("simulate %s: job %s does not end: %s", c.Label, stuck[0].Name, stuck[0].Stuck)
	}
	r := &Run{Configuration: c.Label, Simulated: true}
	index := map[cluster.JobID]int{}
	for i, j := range res.Jobs {
		index[j.ID] = i
		r.Jobs = append(r.Jobs, JobRun{Name: j.Name, Submitted: time.Duration(j.Submitted), Ended: time.Duration(j.Ended)})
	}
	ideal := idealDurations(w, m)
	for _, t := range res.Tasks {
		job := index[t.ID.Job]
		r.Tasks = append(r.Tasks, TaskRun{Job: job, Memory: t.Memory, Booked: time.Duration(t.Decided),
			Started: time.Duration(t.Launched), Ended: time.Duration(t.Finished), Ideal: ideal[job]})
	}
	r.sortTasks()
	return r, nil
}

// idealDurations returns the duration of a task of each job with ideal memory.
func idealDurations(w *workload.Workload, m models) []time.Duration {
	out := make([]time.Duration, len(w.Jobs))
	for i := range w.Jobs {
		out[i] = m[w.Jobs[i].Stages[0].Profile].IdealDuration
	}
	return out
}
