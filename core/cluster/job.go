package cluster

import (
	"cmp"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// JobID numbers jobs in the order of submission. No ID is reused.
type JobID int64

// TaskID names one task: the job, the index of its stage, and its index in the stage.
type TaskID struct {
	Job   JobID `json:"job"`
	Stage int32 `json:"stage"`
	Index int32 `json:"index"`
}

// String prints "job.stage.index", for example "7.0.12".
func (t TaskID) String() string { return fmt.Sprintf("%d.%d.%d", t.Job, t.Stage, t.Index) }

// Compare orders tasks by job, stage and index: it returns -1 if t comes before other, 1 if after it, and else 0.
func (t TaskID) Compare(other TaskID) int {
	return cmp.Or(cmp.Compare(t.Job, other.Job), cmp.Compare(t.Stage, other.Stage), cmp.Compare(t.Index, other.Index))
}

// Class says whether a container's memory may change while it runs.
type Class uint8

const (
	Regular Class = iota // memory fixed for the life of the container
	Flex                 // memory grows and shrinks between a minimum and a maximum
)

func (c Class) String() string {
	if c == Flex {
		return "flex"
	}
	return "regular"
}

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Class) UnmarshalText(text []byte) error {
	switch string(text) {
	case "regular", "":
		*c = Regular
	case "flex":
		*c = Flex
	default:
		return fmt.Errorf("class %q: must be regular or flex", text)
	}
	return nil
}

// Job is what a user submits: a DAG of stages.
type Job struct {
	ID    JobID  `json:"id"`
	Name  string `json:"name" yaml:"name" form:"name"`
	Owner string `json:"owner,omitempty"`
	Queue string `json:"queue,omitempty" yaml:"queue" form:"name"`
	// share of its queue relative to others; 0 counts as 1
	Weight    float64       `json:"weight,omitempty" yaml:"weight" most:"1000000"`
	Submitted timeline.Time `json:"submitted_ns"`
	Class     Class         `json:"class" yaml:"class" form:"regular or flex"`
	// Reserve says what decides how much memory is reserved for its tasks.
	Reserve ReserveBy `json:"reserve,omitempty" yaml:"reserve" form:"stated or learned"`
	// MaxAttempts is how many times a task may run; 0 counts as 1. People state how often it may be tried again, which is
	// one less.
	MaxAttempts int `json:"max_attempts,omitempty" yaml:"-"`
	// RetryOn says after which ends it may run again.
	RetryOn RetryOn `json:"retry_on,omitempty" yaml:"retry_on" form:"oom, error or any"`
	// RetryDelay is how long a task that has failed for the first time pauses before it runs again, doubled after
	// each further failure: see Pause. 0 is no pause.
	RetryDelay time.Duration `json:"retry_delay_ns,omitempty" yaml:"retry_delay" least:"0"`
	// AtMostOnce says that a task that may have started never runs again, however it ended. MaxAttempts is then at most
	// 1.
	AtMostOnce bool `json:"at_most_once,omitempty" yaml:"at_most_once"`
	// KeepGoing says that the job goes on after a task that has failed for good, until its other tasks have ended, and
	// fails then. Stages that depend on that of the task do not start.
	KeepGoing bool `json:"keep_going,omitempty" yaml:"keep_going"`
	// Requeue says that a task may be ended for the memory that it holds and run again, although it is the only one of
	// its stage and runs once: see MayRequeue.
	Requeue bool `json:"requeue,omitempty" yaml:"-"`
	// App names what recurs: jobs of one owner with the same App are runs of the same program on other data. Empty if
	// the job does not recur.
	App string `json:"app,omitempty" yaml:"app" form:"name"`
	// Deadline is how long the job should wait at most, from its submission to the start of its first task (Prophet
	// section III); 0 lets the policy choose.
	Deadline time.Duration `json:"deadline_ns,omitempty" yaml:"deadline"`
	// Held says that the job is paused when it is submitted to the engine.
	Held bool `json:"held,omitempty" yaml:"-"`
	// Open says that the job does not end when all its tasks have succeeded, because it may still grow. It may have no
	// stages, and stages without tasks: others that depend on them wait until they get tasks which succeed, or until the
	// job closes.
	Open bool `json:"open,omitempty" yaml:"-"`
	// Drives says that the job starts its own tasks, as an application of Spark does: what the engine starts for it are
	// attachments of executors to its stages, as many as it demands. See Demand. Such a job is open.
	Drives bool    `json:"drives,omitempty" yaml:"-"`
	Stages []Stage `json:"stages"`
}

// Tasks returns how many tasks the job has.
func (j *Job) Tasks() int {
	n := 0
	for i := range j.Stages {
		n += j.Stages[i].Tasks
	}
	return n
}

// Resizable reports whether the memory of a stage's containers may change while they run: in a FLEX job, except its
// coordinator.
func (j *Job) Resizable(stage int) bool { return j.Class == Flex && !j.Stages[stage].Coordinator }

// Stage is a set of tasks that do the same work on different data. All its amounts and times are estimates: given by
// the user or learned.
type Stage struct {
	Name string `json:"name,omitempty" yaml:"name" form:"name"`
	// Tasks is the number of tasks, at least 1; at least 0 if the job is open. In a job that drives it is how many there
	// are to be, and from the first Demand on how many run or could run now.
	Tasks int `json:"tasks" yaml:"tasks" most:"1073741824" doc:"number of tasks, at least 1"`
	// AtOnce is the most tasks of the stage that are booked or running at a time; 0 is no bound.
	AtOnce int `json:"at_once,omitempty" yaml:"at_once" most:"1073741824" doc:"most tasks of the stage that run at a time; 0 is any number"`
	// Parents are the indexes of the stages whose tasks must all have succeeded before a task of this stage starts.
	Parents []int `json:"parents,omitempty" yaml:"after" doc:"indexes of the stages that must end first"`
	// StartShare is the share of the tasks of each parent that must have succeeded before a task of this stage starts,
	// above 0 and below 1; 0 is all of them. None starts while a task of a parent still waits to start. A task that starts
	// early does the work of its first phase, as a reduce shuffles what maps leave behind, and enters the next one when
	// its parents have ended (ECS, equations 11 and 13; Hadoop calls it slow start).
	StartShare float64 `json:"start_share,omitempty" yaml:"start_share" doc:"share of the tasks of each stage in after that must have succeeded before a task of this stage starts, above 0 and below 1; if left out, all of them"`
	// Coordinator marks a stage of one task that steers the job (a YARN application master): it runs before any other
	// task of the job starts, and ends after all of them. Its end is not estimated.
	Coordinator bool `json:"coordinator,omitempty" yaml:"coordinator"`
	// Ideal is the need of one task that runs unhindered; Ideal[Memory] is YARN-ME's ideal memory.
	Ideal resource.Vector `json:"ideal" yaml:",inline"`
	// MinMemory is the least memory a task may be granted, in bytes. If it is 0 or Ideal[Memory], the task cannot be
	// under-sized.
	MinMemory resource.Amount `json:"min_memory_bytes,omitempty" yaml:"min_memory" doc:"least memory that a task may get; 0 takes it from the profile, or else is the ideal memory"`
	// MaxMemory is the most memory that a FLEX container of the stage may use, in bytes; the container starts with
	// Ideal[Memory]. 0 is the memory of its node.
	MaxMemory resource.Amount `json:"max_memory_bytes,omitempty" yaml:"max_memory" doc:"largest memory of a container of class flex; 0 is the memory of its node"`
	// MaxCPU is the most CPU that a task may use while others leave it, in millicores; what its node has, if that is less.
	// If it is more than Ideal[CPU], a grant of CPU is a weight and a reservation, and no quota. 0 is what it is granted.
	// A machine takes it as resource.MostCPU where the submitter does not state it.
	MaxCPU resource.Amount `json:"max_cpu_millicores,omitempty" yaml:"max_cpus" form:"cpus" doc:"most CPU that a task may use where others leave it, at most what its node has; if left out, all that its node has"`
	// ReservedCPU is the evidence for Ideal[CPU] where that is learned, because the submitter did not state it. Nil if it
	// is stated.
	ReservedCPU *ReservedCPU `json:"reserved_cpu,omitempty" yaml:"-" doc:"what the CPU is reserved by, where that is learned from earlier runs"`
	// Reserved is the evidence for Ideal[Memory] where that is learned: see ReserveLearned. Nil if nothing is learned.
	Reserved *Reservation `json:"reserved,omitempty" yaml:"-" doc:"what the memory is reserved by, where that is learned from earlier runs"`
	// HeartbeatTimeout is how long the programs of a container may be silent before their peers consider them dead; 0 is
	// no limit.
	HeartbeatTimeout time.Duration `json:"heartbeat_timeout_ns,omitempty" yaml:"heartbeat_timeout" doc:"how long the programs may send no heartbeat, before their peers take them for dead; 0 is no limit"`
	// DataOn names the nodes that store the stage's data. It is a preference: names of unknown nodes are ignored.
	DataOn []string `json:"data_on,omitempty" yaml:"data_on" form:"node name" doc:"names of the nodes that have the stage's data; a policy may place tasks elsewhere"`
	// Duration is the run time at ideal memory; 0 is unknown.
	Duration time.Duration `json:"duration_ns,omitempty" yaml:"duration" doc:"estimated run time at ideal memory; 0 is unknown"`
	// Phases are a forecast of what a task demands when. A forecast reserves nothing: Ideal does. No phases are one
	// phase, of Duration, with the demand Ideal.
	Phases []Phase `json:"phases,omitempty" yaml:"phases" doc:"what a task is expected to demand when; nothing is reserved for it"`
	// Told says where the phases come from.
	Told Provenance `json:"told,omitzero" yaml:"-"`
	// Input is how much data a task reads, in bytes; 0 is unknown.
	Input resource.Amount `json:"input_bytes,omitempty" yaml:"input" doc:"how much data a task reads; 0 is unknown"`
	// Together says that the tasks of the stage that have not started all start in the same step, or none of them does.
	Together bool `json:"together,omitempty" yaml:"together" doc:"whether the tasks of the stage start at the same time or not at all"`
	// Elasticity is the slowdown with less than ideal memory.
	Elasticity Elasticity `json:"elasticity,omitzero" yaml:"elasticity" doc:"what less memory costs"`
	// Profile names a stored profile that is still to fill in what the stage leaves out: see Profile.Fill. Empty is
	// none.
	Profile string `json:"profile,omitempty" yaml:"profile" form:"name" doc:"name of a stored profile that supplies memory, duration and elasticity where they are left out"`
	// Command is the program of a task; its Args are empty if the stage can only be simulated. Either all stages of a
	// job have a command or none has.
	Command `yaml:",inline"`
}

// Elastic reports whether a task of s may run with less than ideal memory.
func (s *Stage) Elastic() bool {
	return s.Elasticity.Kind != NotElastic && s.MinMemory > 0 && s.MinMemory < s.Ideal[resource.Memory]
}

// Asked is the most memory that was asked for a task of s of a job of a class, bytes: its limit. 0 is the memory of its
// node, where no limit was asked for.
func (s *Stage) Asked(c Class) resource.Amount {
	if c == Flex && !s.Coordinator {
		return s.MaxMemory
	}
	return s.Ideal[resource.Memory]
}

// LeastNeed returns the least with which a task of s may run: its ideal need, with its minimum memory if it is elastic.
func (s *Stage) LeastNeed() resource.Vector {
	if s.Elastic() {
		return s.Ideal.With(resource.Memory, s.MinMemory)
	}
	return s.Ideal
}

// RunTime is the estimated run time of a task at ideal memory: Duration, or else that of all phases; 0 is unknown.
func (s *Stage) RunTime() time.Duration {
	if s.Duration > 0 {
		return s.Duration
	}
	return s.ForecastLength()
}

// ForecastLength is how long the phases of a task last together; 0 if it has no forecast.
func (s *Stage) ForecastLength() (d time.Duration) {
	for i := range s.Phases {
		d += s.Phases[i].Duration
	}
	return d
}

// DurationAt returns the estimated run time with the given memory; ok is false if the stage has no estimate.
func (s *Stage) DurationAt(memory resource.Amount) (d time.Duration, ok bool) {
	if d = s.RunTime(); d <= 0 {
		return 0, false
	}
	return s.Elasticity.Duration(d, s.Ideal[resource.Memory], memory), true
}

// StageName returns what messages call a stage: its name, or its index if it has none.
func (j *Job) StageName(i int) string {
	if j.Stages[i].Name != "" {
		return j.Stages[i].Name
	}
	return fmt.Sprint(i)
}

// cycle returns the names along a cycle of parents, nil if there is none.
func (j *Job) cycle() []string {
	const open, closed = 1, 2
	mark := make([]int, len(j.Stages))
	var path []int
	var visit func(i int) []string
	visit = func(i int) []string {
		if mark[i] == closed {
			return nil
		}
		if mark[i] == open {
			var names []string
			for k := len(path) - 1; k >= 0; k-- {
				names = append([]string{j.StageName(path[k])}, names...)
				if path[k] == i {
					break
				}
			}
			return append(names, j.StageName(i))
		}
		mark[i], path = open, append(path, i)
		for _, p := range j.Stages[i].Parents {
			if names := visit(p); names != nil {
				return names
			}
		}
		mark[i], path = closed, path[:len(path)-1]
		return nil
	}
	for i := range j.Stages {
		if names := visit(i); names != nil {
			return names
		}
	}
	return nil
}

// JobStatus is the state of a job; the order is the order of progress.
type JobStatus uint8

const (
	StatusPending JobStatus = iota // no task has started
	StatusRunning
	StatusSetAside // the engine hung on the submission of the job; the job is kept, but the engine does not have it
	StatusSucceeded
	StatusFailed    // a task failed on its last attempt
	StatusCancelled // by its owner
)

var jobStatusNames = [...]string{"pending", "running", "set-aside", "succeeded", "failed", "cancelled"}

// NumJobStatuses is one more than the last JobStatus.
const NumJobStatuses = len(jobStatusNames)

func (s JobStatus) String() string { return jobStatusNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s JobStatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *JobStatus) UnmarshalText(text []byte) error {
	return ParseName(s, jobStatusNames[:], 0, text, "job status")
}

// Ended reports whether the job can no longer change.
func (s JobStatus) Ended() bool { return s >= StatusSucceeded }
