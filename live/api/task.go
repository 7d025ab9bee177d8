package api

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Task is one run of a task.
type Task struct {
	Task  cluster.TaskID `json:"task"`
	Owner Owner          `json:"-"`                         // of its job
	Run   int            `json:"run" doc:"1 for the first"` // 1 for the first
	State TaskState      `json:"state" doc:"starting, running, ending or ended"`
	Node  string         `json:"node"`
	Grant
	// AskedBytes is the most memory that was asked for it; 0 is its node's.
	AskedBytes int64 `json:"asked_memory_bytes,omitempty" doc:"the most memory that was asked for it: its limit; omitted if that is the memory of its node"`
	UnderSized bool  `json:"elastic" doc:"granted less than its ideal memory"` // granted less than its ideal memory
	// Why is one clause on why it was started with this amount of memory.
	Why     string    `json:"why,omitempty" doc:"one clause on why it was started with its memory"`
	Booked  time.Time `json:"booked" doc:"when its start was decided"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Outcome is 0 while it runs.
	Outcome cluster.Outcome `json:"outcome,omitempty" doc:"how it ended: succeeded, failed, out-of-memory, killed, lost or preempted; omitted while it runs"`
	// Exit is how its program ended; nil while it runs, and if its end was not observed.
	Exit *cluster.Exit `json:"exit,omitempty" doc:"how its program ended; omitted while it runs, and if its end was not observed"`
	// Detail is one sentence on what went wrong; empty if nothing did.
	Detail string `json:"detail,omitempty" doc:"one sentence on what went wrong"`
	// RetryAt is when its next attempt begins; zero unless it has failed and pauses before that.
	RetryAt time.Time `json:"retry_at,omitzero" doc:"when its next attempt begins at the earliest; omitted unless it has failed and pauses between attempts"`
	// Suspended says who stopped its programs; nil if they run, and unless the task runs.
	Suspended *Still `json:"still,omitempty" doc:"who stopped its programs; omitted while they run"`
	Sized
	InPhase
	// Paused is who paused the task, by itself or with its job, and when; nil if it is not paused.
	Paused *Paused `json:"paused,omitempty" doc:"who paused it, by itself or with its job; omitted if it is not paused"`
	// Leveled says until when leveling holds the task; nil if it does not.
	Leveled *Leveled `json:"leveled,omitempty" doc:"while leveling holds it, from the decision on"`
	// PagedOut is how much of its memory has left, once that was reported; nil while its memory is not out.
	PagedOut *PagedOut `json:"paged_out,omitempty" doc:"how much of its memory has left, until that is back"`
	// Throttle is what bounds its use of disk and network; nil if nothing does.
	Throttle *Throttle `json:"throttle,omitempty" doc:"what bounds its use of disk and network, while it runs and until that ends by itself"`
	// Usage is the current use of its container; nil unless it runs, and in lists without usage.
	Usage *cluster.Reading `json:"usage,omitempty" doc:"what its container uses now; omitted unless it runs"`
}

// Grant is what a task was granted when it was started.
type Grant struct {
	CPUMillicores int64 `json:"cpu_millicores" doc:"what it was granted when it was started"`
	MemoryBytes   int64 `json:"memory_bytes" doc:"memory that is reserved for it"`
	Disk          int64 `json:"disk_bytes_per_s,omitempty" doc:"granted bandwidth of the disk; omitted if the task requested none"`
	Network       int64 `json:"network_bytes_per_s,omitempty" doc:"granted bandwidth of the network; omitted if the task requested none"`
}

// InPhase is the phase of its forecast that a running task is in: the phase that was reported or found by what the
// task used, or a later one that the task should have reached since by the time that it ran. It is zero if the task
// has no forecast.
type InPhase struct {
	Phase  int    `json:"phase,omitempty" doc:"number of the phase that the task is in, 1 for the first; omitted if the task has no forecast or does not run"`
	Phases int    `json:"phases,omitempty" doc:"number of phases of its forecast"`
	Name   string `json:"phase_name,omitempty" doc:"name of the phase, if it has one"`
	// Since is an estimate if the phase was not reported.
	Since time.Time `json:"phase_since,omitzero" doc:"when the task entered the phase, or when it would have entered it at its usual pace"`
}

// Still says who stopped the programs of a running task, and since when.
type Still struct {
	By    cluster.Holders `json:"by" doc:"memory: the memory manager of its node; owner: the user who paused the task; leveling: the policy, for a while; or several of them, joined by +"`
	Since time.Time       `json:"since,omitzero" doc:"since when"`
	Lends bool            `json:"lends,omitempty" doc:"other tasks may use its cores and bandwidths meanwhile"`
}

// PagedOut says how much memory has left a task because its owner wants that while the task is paused.
type PagedOut struct {
	Bytes int64  `json:"bytes" doc:"memory of its grant that its container does not have now: others may use it until the task is resumed"`
	Stays string `json:"stays,omitempty" doc:"how much of its memory has not left, and why; omitted if next to nothing is left"`
}

// TaskState is how far a run of a task has come; the order is the order of progress.
type TaskState uint8

const (
	TaskStarting TaskState = iota // ordered; its program does not run yet
	TaskRunning
	TaskEnding // its end has been ordered
	TaskEnded
)

var taskStateNames = [...]string{"starting", "running", "ending", "ended"}

func (s TaskState) String() string { return taskStateNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s TaskState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *TaskState) UnmarshalText(text []byte) error {
	return cluster.ParseName(s, taskStateNames[:], 0, text, "task state")
}

// Bound is the most that a throttled task may transfer.
type Bound struct {
	Disk    int64 `json:"disk_bytes_per_s,omitempty" doc:"the most that it may read from the disk and write to it; omitted if that is not bounded"`
	Network int64 `json:"network_bytes_per_s,omitempty" doc:"the most that it may receive and send; omitted if that is not bounded"`
}

// Throttle is a bound on what a running task may use.
type Throttle struct {
	Bound
	Until   time.Time `json:"until" doc:"when it ends by itself"`
	Why     string    `json:"why,omitempty" doc:"one clause on why it was ordered"`
	How     string    `json:"how,omitempty" doc:"one clause on how it is carried out, if not by the kernel alone"`
	InForce bool      `json:"in_force" doc:"whether it has been carried out"`
	Failed  string    `json:"failed,omitempty" doc:"why it could not be carried out: then nothing is bounded"`
}

// Resized is the last change of the grant of a running task.
type Resized struct {
	Was     Grant     `json:"was" doc:"what the task was granted before"`
	Since   time.Time `json:"since,omitzero" doc:"when the change was decided"`
	Why     string    `json:"why,omitempty" doc:"one clause on why it was decided"`
	InForce bool      `json:"in_force" doc:"whether it has been carried out"`
	Failed  string    `json:"failed,omitempty" doc:"why it could not be carried out: the grant is as before"`
}

// Renewed is the last change of what is reserved of memory for a running task, where that is learned.
type Renewed struct {
	Since time.Time `json:"since" doc:"when the change was decided"`
	Why   string    `json:"why,omitempty" doc:"one clause on how much is reserved since, and why"`
}

// Sized says how the grant of a running task came about.
type Sized struct {
	ByPhase bool     `json:"by_phase,omitempty" doc:"the task is granted what each phase of its forecast demands; omitted if its grant stays the same"`
	MostCPU int64    `json:"most_cpu_millicores,omitempty" doc:"the most CPU that the task may use while others leave it: its grant of CPU is its share of the cores; omitted if its grant is the most"`
	Lends   bool     `json:"lends,omitempty" doc:"its programs have nothing to do, or use less CPU than it reserves, and it lends the rest to other tasks until they use more"`
	LentCPU int64    `json:"lent_cpu_millicores,omitempty" doc:"how much CPU it lends so"`
	Resized *Resized `json:"resized,omitempty" doc:"the last change of its grant while it ran; omitted if there was none"`
	Renewed *Renewed `json:"renewed,omitempty" doc:"the last change of its reservation of memory while it ran, if that is learned; omitted if there was none"`
}

// Leveled says until when leveling holds a running task, and why.
type Leveled struct {
	Since  time.Time      `json:"since,omitzero" doc:"when that was decided or, if an earlier daemon decided it, when its programs were stopped"`
	Until  time.Time      `json:"until" doc:"when leveling ends its hold by itself"`
	For    cluster.TaskID `json:"for,omitzero" doc:"the task that keeps going because of it; omitted if there is none"`
	Why    string         `json:"why,omitempty" doc:"one clause; omitted if an earlier daemon decided it"`
	Failed string         `json:"failed,omitempty" doc:"why its programs could not be stopped; they run"`
}

// Paused says who paused a job or task, and when.
type Paused struct {
	By      string    `json:"by" doc:"name of the user who paused it"`
	Since   time.Time `json:"since"`
	PageOut bool      `json:"page_out,omitempty" doc:"the memory of its programs is to be paged out meanwhile"`
	Failed  string    `json:"failed,omitempty" doc:"of a task: why its programs could not be stopped; they run"`
}
