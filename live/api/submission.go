package api

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Submission is a job to run.
type Submission struct {
	Name        string             `json:"name,omitempty"`
	Queue       string             `json:"queue,omitempty"`
	Weight      float64            `json:"weight,omitempty" doc:"share of its queue relative to others; 0 is 1"`
	Class       *cluster.Class     `json:"class,omitempty" doc:"regular or flex; if left out: flex if what is reserved is learned, else regular"`
	Reserve     *cluster.ReserveBy `json:"reserve,omitempty" doc:"what is reserved of memory: stated, what each stage states, or learned, what earlier runs of the application needed, and what the stage states is the limit; if it and the class are left out, the setting memory_default decides, unless a stage has min_memory or elasticity: then it is stated"`
	MaxAttempts int                `json:"max_attempts,omitempty" doc:"number of attempts of a task after which the job has failed, which is one more than people call its retries; 0 is 1"`
	RetryOn     cluster.RetryOn    `json:"retry_on,omitempty" doc:"after which ends a task is tried again: oom if it ended for want of memory, error if it ended otherwise, or any; any if left out"`
	RetryDelay  *time.Duration     `json:"retry_delay_ns,omitempty" doc:"how long a task that has failed pauses before it runs again; each pause is twice the one before, up to 5 minutes; 0 is no pause; if left out, the first pause is 1 s"`
	AtMostOnce  bool               `json:"at_most_once,omitempty" doc:"no task runs again after it may have started"`
	KeepGoing   bool               `json:"keep_going,omitempty" doc:"the job goes on after a task that has failed for good, until its other tasks have ended, and fails then"`
	Requeue     bool               `json:"requeue,omitempty" doc:"a task may be ended for the memory that it holds and run again, without that being an attempt, although it is the only one of its stage and has one attempt; otherwise this holds for tasks of stages with several tasks, and of jobs with several attempts"`
	App         string             `json:"app,omitempty" doc:"the application: runs of one program on other data; if left out, it is derived from name and command"`
	Deadline    time.Duration      `json:"deadline_ns,omitempty" doc:"longest wait for the start; 0 lets the policy choose"`
	Stages      []StageSpec        `json:"stages"`
	Env         []string           `json:"env,omitempty" doc:"the environment of the programs, NAME=VALUE"`
	Dir         string             `json:"dir,omitempty" doc:"the working directory, an absolute path; must be stated, here or in the Bulk"`
	Inherited   *cluster.Inherited `json:"inherited,omitempty" doc:"what the programs inherit from the submitter: umask, nice, CPUs and limits; if left out, the umask is 022 and the rest is the daemon's"`
	Input       bool               `json:"input,omitempty" doc:"the program reads the data sent to /v1/jobs/{job}/input; the job must have one task, which starts once"`
}

// StageSpec is a stage to run: the same command, Tasks times. The components of Ideal may be given as a list or as
// fields.
type StageSpec struct {
	cluster.Stage
	Ideal   resource.Vector `json:"ideal,omitzero" doc:"resources with which one task is as fast as it can be, as a list: cpu_millicores, ideal_memory_bytes, disk_bytes_per_s, network_bytes_per_s"`
	CPU     resource.Amount `json:"cpu_millicores,omitempty"`
	Memory  resource.Amount `json:"ideal_memory_bytes,omitempty" doc:"0 takes the value from the profile"`
	Disk    resource.Amount `json:"disk_bytes_per_s,omitempty"`
	Network resource.Amount `json:"network_bytes_per_s,omitempty"`
}

// Amounts returns the kinds of resources that have a field of their own; the amounts of other kinds are in Ideal.
func (s *StageSpec) Amounts() map[resource.Kind]*resource.Amount {
	return map[resource.Kind]*resource.Amount{resource.CPU: &s.CPU, resource.Memory: &s.Memory, resource.Disk: &s.Disk,
		resource.Network: &s.Network}
}

// SpecOf returns the spec of a stage. Arguments, variables and paths that are not UTF-8 are encoded.
func SpecOf(s cluster.Stage) StageSpec {
	s.Command = s.Encoded()
	spec := StageSpec{Stage: s, Ideal: s.Ideal}
	for k, field := range spec.Amounts() {
		*field, spec.Ideal[k] = s.Ideal[k], 0
	}
	return spec
}

// SubmissionOf returns the submission of a job with what the submitter passes on: environment, working directory and
// inherited settings. Variables and paths that are not UTF-8 are encoded.
func SubmissionOf(j *cluster.Job, env []string, dir string, from *cluster.Inherited) Submission {
	s := Submission{Name: j.Name, Queue: j.Queue, Weight: j.Weight, Class: &j.Class, MaxAttempts: j.MaxAttempts,
		RetryOn: j.RetryOn, AtMostOnce: j.AtMostOnce, KeepGoing: j.KeepGoing, Requeue: j.Requeue, App: j.App,
		Deadline: j.Deadline,
		Env:      cluster.EncodeTexts(env), Dir: cluster.EncodeText(dir), Inherited: from}
	if j.Reserve != cluster.ReserveStated {
		s.Reserve = &j.Reserve
	}
	if j.MaxAttempts > 1 {
		s.RetryDelay = &j.RetryDelay
	}
	for i := range j.Stages {
		s.Stages = append(s.Stages, SpecOf(j.Stages[i]))
	}
	return s
}

// Undecided returns s without its class and what is reserved, so that the daemon decides that.
func (s Submission) Undecided() Submission {
	s.Class, s.Reserve = nil, nil
	return s
}

// Submitted is the answer to a submission.
type Submitted struct {
	ID int64 `json:"id"`
}

// MostInBulk is the largest number of jobs of one Bulk.
const MostInBulk = 10_000

// Bulk is jobs to run: all or none of them are accepted.
type Bulk struct {
	Env       []string           `json:"env,omitempty" doc:"the environment of the programs of jobs that state none, NAME=VALUE"`
	Dir       string             `json:"dir,omitempty" doc:"the working directory of jobs that state none, an absolute path"`
	Inherited *cluster.Inherited `json:"inherited,omitempty" doc:"what the programs of jobs inherit that state nothing of it"`
	Jobs      []Submission       `json:"jobs" doc:"1 to 10000 jobs, of at most 200000 values each"`
}

// SubmittedBulk is the answer to a Bulk.
type SubmittedBulk struct {
	IDs []int64 `json:"ids" doc:"of the jobs, in their order"`
}
