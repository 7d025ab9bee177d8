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
	// Truth is, per stage, what its tasks really do. Only the simulator reads it. Missing or zero fields are as
	// estimated.
	Truth []StageTruth
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
}

// Heap is the memory of a garbage-collected program, such as one on a JVM.
type Heap struct {
	// Live is the largest live set, bytes: with a smaller heap the program fails.
	Live resource.Amount `json:"live_bytes,omitempty" yaml:"live"`
	// Size is the maximum heap, bytes; 0 is as much as was granted.
	Size resource.Amount `json:"size_bytes,omitempty" yaml:"size"`
}
