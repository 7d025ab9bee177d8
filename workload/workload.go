// Package workload holds what is submitted over a run: jobs as policies see them, and what is true of their tasks, which
// only a simulator may know. It reads and writes workload files, reads the traces of the YARN-ME authors' simulator, draws
// workloads from distributions and changes what is estimated or true of them.
package workload

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// Workload is what is submitted over a run, in the order of submission.
type Workload struct {
	Jobs []Job
}

// Job is a job with what to run and what is true of it. The embedded Job holds estimates: all that a policy sees.
type Job struct {
	cluster.Job
	// After is the index in the workload of the job whose end submits this one; -1 if it is submitted at Submitted.
	After int
	// Truth holds, per stage, what its tasks really do. Only the simulator reads it. Missing or zero fields are as
	// estimated.
	Truth []StageTruth
}

// StageTruth is what the tasks of a stage really do.
type StageTruth struct {
	// Durations at ideal memory, one per task; nil if all are Duration, which is as estimated if 0.
	Durations []time.Duration `json:"durations_ns,omitempty"`
	Duration  time.Duration   `json:"duration_ns,omitempty"`
	// IdealMemory is the memory, in bytes, from which tasks really run unhindered; 0 is as estimated.
	IdealMemory resource.Amount `json:"ideal_memory_bytes,omitempty"`
	// Elasticity is the real profile; nil is as estimated.
	Elasticity *cluster.Elasticity `json:"elasticity,omitempty"`
	// IdealMemories is IdealMemory for each task where tasks differ, nil otherwise.
	IdealMemories []resource.Amount `json:"ideal_memories_bytes,omitempty"`
	// Phases are what a task passes through, in order; nil is one phase that needs what the stage's Ideal says. Their
	// durations are stretched so that they add up to the real duration of the task, if that is given.
	Phases []Phase `json:"phases,omitempty"`
	// TaskPhases are Phases for each task where tasks differ, nil otherwise.
	TaskPhases [][]Phase `json:"task_phases,omitempty"`
	// Heap is set for programs with a garbage-collected heap.
	Heap *Heap `json:"heap,omitempty"`
}

// Phase is a span of a task with one demand.
type Phase struct {
	Name string `json:"name,omitempty" yaml:"name" form:"name"`
	// Duration of the phase when it gets all that it demands.
	Duration time.Duration `json:"duration_ns" yaml:"duration" least:"0"`
	// Demand is CPU, working set (the memory in use), and disk and network bandwidth.
	Demand resource.Vector `json:"demand,omitzero" yaml:",inline"`
}

// Heap is the memory of a program that collects garbage, such as a JVM.
type Heap struct {
	// Live is the largest live set, bytes: with a smaller heap the program fails.
	Live resource.Amount `json:"live_bytes,omitempty" yaml:"live" form:"memory"`
	// Size is the maximum heap, bytes; 0 is as much as was granted.
	Size resource.Amount `json:"size_bytes,omitempty" yaml:"size" form:"memory"`
}
