package demo

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Run is one run of the mix of the part elastic under one contender, real or simulated. Times count from the
// beginning of the run.
type Run struct {
	Configuration string    `json:"configuration"`
	Round         int       `json:"round"` // from 1; 0 if simulated
	Simulated     bool      `json:"simulated"`
	Jobs          []JobRun  `json:"jobs"`  // in the order of the mix
	Tasks         []TaskRun `json:"tasks"` // in the order in which they were started
	Usage         []Usage   `json:"usage,omitempty"`
	// Others is how many cores other work on the machine used, on average; nil is unknown.
	Others *float64 `json:"other_cores,omitempty"`
	Replay *Replay  `json:"replay,omitempty"`
}

// JobRun is a job in a Run.
type JobRun struct {
	Name      string        `json:"name"`
	Submitted time.Duration `json:"submitted_ns"`
	Ended     time.Duration `json:"ended_ns"`
	Failed    string        `json:"failed,omitempty"` // why it did not succeed
}

// TaskRun is a task in a Run.
type TaskRun struct {
	Job     int             `json:"job"` // index in Jobs
	Memory  resource.Amount `json:"memory_bytes"`
	Booked  time.Duration   `json:"booked_ns"`  // the node's memory is booked from here on
	Started time.Duration   `json:"started_ns"` // the program runs from here on
	Ended   time.Duration   `json:"ended_ns"`
	// Ideal is the duration of its program with ideal memory, measured before.
	Ideal  time.Duration `json:"ideal_duration_ns"`
	CPU    time.Duration `json:"cpu_ns,omitempty"` // of its program; 0 is unknown
	Killed bool          `json:"killed,omitempty"` // by the kernel, for memory
}

// Usage is a sample of all containers together.
type Usage struct {
	At time.Duration `json:"at_ns"`
	// Anonymous is memory that programs filled with data; Held includes the page cache that they are charged for.
	Anonymous resource.Amount `json:"anonymous_bytes"`
	Held      resource.Amount `json:"held_bytes"`
}

// Makespan is the time until the last job ended.
func (r *Run) Makespan() time.Duration {
	var last time.Duration
	for _, j := range r.Jobs {
		last = max(last, j.Ended)
	}
	return last
}

// AverageJobRuntime is the mean time from submission to end.
func (r *Run) AverageJobRuntime() time.Duration {
	var total time.Duration
	for _, j := range r.Jobs {
		total += j.Ended - j.Submitted
	}
	return total / time.Duration(max(1, len(r.Jobs)))
}

// Granted is the memory granted to tasks, on average over the makespan, bytes.
func (r *Run) Granted() float64 {
	total := 0.0
	for _, t := range r.Tasks {
		total += float64(t.Memory) * (t.Ended - t.Booked).Seconds()
	}
	return total / max(r.Makespan().Seconds(), 1e-9)
}

// Used is the memory that programs filled with data, on average over the makespan, bytes; nil without samples.
func (r *Run) Used() *float64 {
	if len(r.Usage) == 0 {
		return nil
	}
	used := overTime(len(r.Usage), r.Makespan(), func(i int) time.Duration { return r.Usage[i].At },
		func(i int) float64 { return float64(r.Usage[i].Anonymous) })
	return &used
}

// AtATime is how many programs ran, on average over the makespan.
func (r *Run) AtATime() float64 {
	var total time.Duration
	for _, t := range r.Tasks {
		total += t.Ended - t.Started
	}
	return total.Seconds() / max(r.Makespan().Seconds(), 1e-9)
}

// Slowdown is the run time of all programs / their run time with ideal memory.
func (r *Run) Slowdown() float64 {
	var total, ideal time.Duration
	for _, t := range r.Tasks {
		total, ideal = total+t.Ended-t.Started, ideal+t.Ideal
	}
	return total.Seconds() / max(ideal.Seconds(), 1e-9)
}

// Kills counts tasks that the kernel killed for memory.
func (r *Run) Kills() int {
	kills := 0
	for _, t := range r.Tasks {
		if t.Killed {
			kills++
		}
	}
	return kills
}

// UnderSized counts tasks that ran with less than the ideal memory of their job.
func (r *Run) UnderSized(ideals []resource.Amount) int {
	n := 0
	for _, t := range r.Tasks {
		if t.Memory < ideals[t.Job] {
			n++
		}
	}
	return n
}

// sortTasks sorts tasks by their start.
func (r *Run) sortTasks() {
	slices.SortStableFunc(r.Tasks, func(a, b TaskRun) int { return cmp.Compare(a.Booked, b.Booked) })
}

// Summary is the result of one contender over all rounds.
type Summary struct {
	Configuration string `json:"configuration"`
	Policy        string `json:"policy"`
	About         string `json:"about"`
	Simulated     bool   `json:"simulated"`
	Rounds        int    `json:"rounds"`

	AverageJobRuntime Figure  `json:"average_job_runtime_s"`
	Makespan          Figure  `json:"makespan_s"`
	Granted           Figure  `json:"granted_memory_bytes"`        // mean over the makespan
	Used              *Figure `json:"used_memory_bytes,omitempty"` // the same; unknown for a simulation
	AtATime           Figure  `json:"tasks_at_a_time"`
	Slowdown          Figure  `json:"slowdown"`
	UnderSized        Figure  `json:"under_sized_tasks"`
	Kills             Figure  `json:"kills"`
	Others            *Figure `json:"other_cores,omitempty"` // cores that other work used, on average
}

// summarise summarises the runs of one contender; ideals has the ideal memory of the tasks of each job.
func summarise(c *contender, runs []*Run, ideals []resource.Amount) Summary {
	return Summary{Configuration: c.Label, Policy: c.Policy, About: c.about, Simulated: runs[0].Simulated,
		Rounds: len(runs), AverageJobRuntime: over(runs, func(r *Run) float64 { return r.AverageJobRuntime().Seconds() }),
		Makespan:   over(runs, func(r *Run) float64 { return r.Makespan().Seconds() }),
		Granted:    over(runs, (*Run).Granted),
		Used:       overIfKnown(runs, (*Run).Used),
		AtATime:    over(runs, (*Run).AtATime),
		Slowdown:   over(runs, (*Run).Slowdown),
		UnderSized: over(runs, func(r *Run) float64 { return float64(r.UnderSized(ideals)) }),
		Kills:      over(runs, func(r *Run) float64 { return float64(r.Kills()) }),
		Others:     overIfKnown(runs, func(r *Run) *float64 { return r.Others }),
	}
}
