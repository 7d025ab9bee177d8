package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/format/workload"
)

// ElasticResult is the result of the part elastic.
type ElasticResult struct {
	// Simulated says that no program ran, and Why gives the reason in one clause.
	Simulated bool   `json:"simulated"`
	Why       string `json:"why_simulated,omitempty"`

	Node     resource.Vector `json:"node"`
	Profiles []Profile       `json:"profiles"`
	Machine  Machine         `json:"machine"`

	Runs      []Run     `json:"runs,omitempty"` // real ones, in the order in which they ran
	Predicted []Run     `json:"predicted"`      // one per contender
	Summaries []Summary `json:"summaries"`      // one per contender; of Runs, or of Predicted if no program ran
	// Predictions compare the simulator's predictions with the runs; nil if no program ran.
	Predictions []Prediction  `json:"predictions,omitempty"`
	Took        time.Duration `json:"took_ns"`
}

// Prediction is a prediction of the simulator with the measured value. Errors are shares of the measured median; a
// positive error means that the prediction is too long.
type Prediction struct {
	Configuration          string  `json:"configuration"`
	AverageJobRuntime      float64 `json:"average_job_runtime_s"`
	AverageJobRuntimeError float64 `json:"average_job_runtime_error"`
	Makespan               float64 `json:"makespan_s"`
	MakespanError          float64 `json:"makespan_error"`
}

// Elastic runs the part elastic: a mix of sorts that can do with less memory at a price. Before it returns, it removes
// everything that it made, also after an error or when ctx ends.
func Elastic(ctx context.Context, o Options) (res *ElasticResult, err error) {
	d := &elasticDemonstration{demonstration: begin(o), result: &ElasticResult{Node: node}}
	defer func() { d.result.Took = time.Since(d.begun) }()
	if !o.Simulate {
		var leave func() error
		if leave, err = d.enter(ctx, diskNeeded); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, leave()) }()
		d.result.Why = unsuitable(ctx, d.work)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	} else {
		d.result.Why = "asked for"
	}
	d.result.Simulated = d.result.Why != ""
	if d.result.Simulated {
		err = d.simulateAll()
	} else {
		err = d.real(ctx)
	}
	if err != nil {
		return nil, err
	}
	return d.result, nil
}

// elasticDemonstration is the part elastic in progress.
type elasticDemonstration struct {
	demonstration
	result *ElasticResult
}

func (d *elasticDemonstration) models() models {
	m := models{}
	for _, p := range d.result.Profiles {
		m[p.Name] = p.Model
	}
	return m
}

// simulateAll simulates everything, with profiles of another machine.
func (d *elasticDemonstration) simulateAll() error {
	if d.Simulate {
		d.say("simulating only: nothing is run, and what follows is all simulated, from profiles recorded on another machine")
	} else {
		d.say("nothing can run here (%s): what follows is all simulated, from profiles recorded on another machine",
			d.result.Why)
	}
	r, err := recorded()
	if err != nil {
		return err
	}
	d.result.Profiles, d.result.Machine = r.Profiles, r.Machine
	if err := d.predict(); err != nil {
		return err
	}
	return d.summarise(d.result.Predicted)
}

// real runs everything on this machine.
func (d *elasticDemonstration) real(ctx context.Context) error {
	d.say("working in %s and in control groups named bellows-*; both are removed at the end, and nothing else is "+
		"changed", d.work)
	input := filepath.Join(d.work, sandbox.InputDir)
	if err := writeInputs(input); err != nil {
		return err
	}
	// 1. The cost of less memory is measured for each program.
	if err := d.profileAll(ctx, input); err != nil {
		return err
	}
	// 2. The overhead of this machine per task, and for tasks that run side by side, is measured.
	if err := d.measureLaunch(ctx); err != nil {
		return err
	}
	if err := d.measureNeighbour(ctx); err != nil {
		return err
	}
	// 3. The results are predicted before the mix runs.
	if err := d.predict(); err != nil {
		return err
	}
	// 4. The mix runs.
	if err := d.repeat(sizings, func(c *contender, round int) (time.Duration, error) {
		return d.runOne(ctx, c, round)
	}); err != nil {
		return err
	}
	// 5. Predictions and runs are compared.
	if err := d.summarise(d.result.Runs); err != nil {
		return err
	}
	d.compare()
	return nil
}

func (d *elasticDemonstration) profileAll(ctx context.Context, input string) error {
	all, err := programs()
	if err != nil {
		return err
	}
	for i, p := range all {
		profile, err := measure(ctx, p, input, d.Repeats, func(done, runs int) {
			d.Show(fmt.Sprintf("program %d of %d, %s: run %d of %d", i+1, len(all), p.name, done, runs))
		})
		if err != nil {
			return err
		}
		d.result.Profiles = append(d.result.Profiles, profile)
		m := &profile.Model
		e := m.Elasticity()
		d.say("measured %s: ideal %s, %.2f s there, at most %.2f times as long down to %s (%s)", p.name,
			resource.FormatMemory(m.IdealMemory), m.IdealDuration.Seconds(), e.Worst(), resource.FormatMemory(m.MinMemory),
			m.Kind)
	}
	return nil
}

// measureLaunch measures the time from the end of one task to the start of the next, with tasks that do nothing and
// fill the node.
func (d *elasticDemonstration) measureLaunch(ctx context.Context) error {
	const tasks = 16
	stage := cluster.Stage{Name: "nothing", Tasks: tasks, Ideal: node, Command: cluster.Command{Args: []string{"true"}}}
	idle := workload.Job{Job: cluster.Job{Name: "nothing", Stages: []cluster.Stage{stage}}, After: -1}
	c := &sizings[0]
	r, err := runReal(ctx, d.work, c, node, &workload.Workload{Jobs: []workload.Job{idle}}, nil)
	if err != nil {
		return err
	}
	if r.Jobs[0].Failed != "" {
		return fmt.Errorf("a task that does nothing %s", r.Jobs[0].Failed)
	}
	d.result.Machine.Launch = (r.Jobs[0].Ended - r.Jobs[0].Submitted) / tasks
	d.say("measured the daemon: %.0f ms for a task that does nothing", milliseconds(d.result.Machine.Launch))
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// measureNeighbour runs one task of every program with half its ideal memory, one at a time, and then two of each,
// two at a time.
func (d *elasticDemonstration) measureNeighbour(ctx context.Context) error {
	var mean [2]time.Duration
	for i := range mean {
		side := i + 1
		w, err := d.oneOfEach(side)
		if err != nil {
			return err
		}
		d.Show(fmt.Sprintf("one task of every program, %d at a time", side))
		capacity := node.With(resource.CPU, resource.Amount(side)*resource.Core)
		r, err := runReal(ctx, d.work, &sizings[0], capacity, w, nil)
		if err != nil {
			return err
		}
		for _, t := range r.Tasks {
			mean[i] += (t.Ended - t.Started) / time.Duration(len(r.Tasks))
		}
	}
	d.result.Machine.Neighbour = max(1, mean[1].Seconds()/mean[0].Seconds())
	d.say("measured the machine: with another task beside it, a task takes %.2f times as long", d.result.Machine.Neighbour)
	return nil
}

// oneOfEach returns a job with the given number of tasks of every program, with half their ideal memory.
func (d *elasticDemonstration) oneOfEach(tasks int) (*workload.Workload, error) {
	all, err := programs()
	if err != nil {
		return nil, err
	}
	w := &workload.Workload{}
	known := d.models()
	for _, p := range all {
		model := known[p.name]
		stage := cluster.Stage{Name: p.name, Tasks: tasks, Ideal: resource.Of(resource.Core, 0), Command: p.command}
		fix(&stage, &model, half(model.IdealMemory, model.MinMemory))
		w.Jobs = append(w.Jobs, workload.Job{Job: cluster.Job{Name: p.name, Stages: []cluster.Stage{stage}}, After: -1})
	}
	return w, nil
}

func (d *elasticDemonstration) predict() error {
	for i := range sizings {
		r, err := simulate(&sizings[i], d.models(), d.result.Machine)
		if err != nil {
			return err
		}
		d.result.Predicted = append(d.result.Predicted, *r)
	}
	return nil
}

func (d *elasticDemonstration) runOne(ctx context.Context, c *contender, round int) (time.Duration, error) {
	w, err := c.workload(d.models())
	if err != nil {
		return 0, err
	}
	tasks := 0
	for i := range w.Jobs {
		tasks += w.Jobs[i].Stages[0].Tasks
	}
	begun := time.Now()
	r, err := runReal(ctx, d.work, c, node, w, func(ended int) {
		d.Show(fmt.Sprintf("round %d of %d, %s: %.0f s, %d of %d tasks ended", round, d.Rounds, c.Label,
			time.Since(begun).Seconds(), ended, tasks))
	})
	if err != nil {
		return 0, err
	}
	r.Round = round
	ideal := idealDurations(w, d.models())
	for i := range r.Tasks {
		r.Tasks[i].Ideal = ideal[r.Tasks[i].Job]
	}
	d.result.Runs = append(d.result.Runs, *r)
	d.say("round %d of %d, %-13s  average job runtime %5.1f s, makespan %5.1f s", round, d.Rounds, c.Label+":",
		r.AverageJobRuntime().Seconds(), r.Makespan().Seconds())
	for _, j := range r.Jobs {
		if j.Failed != "" {
			d.say("job %s %s", j.Name, j.Failed)
		}
	}
	return time.Since(begun), nil
}

// summarise summarises the runs, contender by contender.
func (d *elasticDemonstration) summarise(runs []Run) error {
	w, err := sizings[0].workload(d.models())
	if err != nil {
		return err
	}
	ideals := make([]resource.Amount, len(w.Jobs))
	for i := range w.Jobs {
		ideals[i] = w.Jobs[i].Stages[0].Ideal[resource.Memory]
	}
	for i := range sizings {
		c := &sizings[i]
		d.result.Summaries = append(d.result.Summaries, summarise(c, runsOf(runs, c), ideals))
	}
	return nil
}

// runsOf returns the runs of one contender.
func runsOf(runs []Run, c *contender) []*Run {
	return among(runs, func(r *Run) bool { return r.Configuration == c.Label })
}

func (d *elasticDemonstration) compare() {
	for i := range sizings {
		p, s := &d.result.Predicted[i], &d.result.Summaries[i]
		average, makespan := p.AverageJobRuntime().Seconds(), p.Makespan().Seconds()
		d.result.Predictions = append(d.result.Predictions, Prediction{
			Configuration:          sizings[i].Label,
			AverageJobRuntime:      average,
			AverageJobRuntimeError: average/s.AverageJobRuntime.Median - 1,
			Makespan:               makespan,
			MakespanError:          makespan/s.Makespan.Median - 1,
		})
	}
}
