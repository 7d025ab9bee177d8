// Package workload describes what is submitted over a run: jobs as policies see them, and the truth about their tasks,
// which only a simulator may know. It reads and writes workload files, reads the traces of the YARN-ME authors'
// simulator, draws workloads from distributions and changes their estimates and truth.
package workload

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Workload is the jobs that are submitted over a run, in the order of submission.
type Workload struct {
	Jobs []Job
}

// Job is a job with its truth. The embedded Job contains estimates: all that a policy sees.
type Job struct {
	cluster.Job
	// After is the index in the workload of the job whose end submits this one; -1 if it is submitted at Submitted.
	After int
	// Part, if not 0, is a part of what was recorded to which the job belongs, and Behind are the parts all of whose jobs
	// must have ended before this one is submitted, at Submitted or later. Only simulations of recordings whose tasks
	// are jobs of their own have parts; no file does.
	Part   int
	Behind []int
	// Truth is, per stage, what its tasks really do. Only the simulator reads it. Missing or zero fields are as
	// estimated.
	Truth []StageTruth
	// Undecided says that neither the class of the job nor what is reserved is stated, so that the machine that is to run
	// it decides. Only jobs that are read to be run are undecided.
	Undecided bool
	// KeepsRetryOn and KeepsRetryDelay say that its file states the field, also as its default, but not how often a task
	// is tried again: whoever submits the file says that, and leaves these.
	KeepsRetryOn, KeepsRetryDelay bool
}

// AssumingDecided is AssumingProfiles for a job that a machine is to run, which decides what is undecided as it does by
// default: its reservations are learned.
func (j *Job) AssumingDecided() cluster.Job {
	if !j.Undecided && j.Reserve != cluster.ReserveLearned {
		return j.AssumingProfiles()
	}
	filled := j.AssumingLearned()
	if j.Undecided {
		filled.Class = cluster.Flex
	}
	return filled
}

// StageTruth is what the tasks of a stage really do. Task looks up one of them.
type StageTruth struct {
	// Duration is the run time at ideal memory, above 0.
	Duration PerTask[time.Duration]
	// Fresh and First are the run times, at ideal memory, of tasks for which the executor is not warm yet: the first task
	// that an executor runs at all, and the first task of the stage on an executor that has run others. Task i takes
	// value i, and they repeat. Without Fresh, a fresh executor is as one that has run others; without First, as one
	// that has run the stage.
	Fresh, First []time.Duration
	// IdealMemory is the least memory, in bytes, with which a task really runs unhindered, above 0.
	IdealMemory PerTask[resource.Amount]
	// Elasticity is the real profile; nil is as estimated.
	Elasticity *cluster.Elasticity
	// Phases are the phases of a task, in order; no phases are one phase with the stage's Ideal as its demand. If the
	// real duration of the task is given, the durations of the phases are stretched so that they add up to it.
	Phases PerTask[[]cluster.Phase]
	// Heap is set for programs with a garbage-collected heap.
	Heap *Heap
	// Input is how much a task reads, bytes, where that was recorded for each; no file of jobs has it.
	Input PerTask[resource.Amount]
}

// Heap is the memory of a garbage-collected program, such as one on a JVM.
type Heap struct {
	// Live is the largest live set, bytes: with a smaller heap the program fails.
	Live resource.Amount `json:"live_bytes,omitempty" yaml:"live"`
	// Size is the maximum heap, bytes; 0 is as much as was granted.
	Size resource.Amount `json:"size_bytes,omitempty" yaml:"size"`
}
