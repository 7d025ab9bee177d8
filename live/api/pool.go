package api

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Ref names a pool. The name of a pool is unique among those of its owner.
type PoolRef struct {
	UID  uint32 `json:"uid"`
	User string `json:"user"` // name of the owner, or the number of a user without a name
	Name string `json:"name"`
}

// Owner returns to whom the pool belongs.
func (r PoolRef) Owner() Owner { return Owner{UID: r.UID, Name: r.User} }

// PoolSpec says what the executors of a pool are, and how many there may be.
type PoolSpec struct {
	Name     string   `json:"name" doc:"unique among the pools of its owner"`
	Language string   `json:"language,omitempty" doc:"what the functions of tasks are written in: python, or go; if left out, the command speaks the protocol itself"`
	Command  []string `json:"command,omitempty" doc:"program of an executor and its arguments; of a pool of Python the interpreter, python3 if left out"`
	Dir      string   `json:"dir,omitempty" doc:"working directory of executors, an absolute path"`
	Env      []string `json:"env,omitempty" doc:"the environment of executors, NAME=VALUE"`
	// Inherited is what executors inherit from whoever makes the pool; nil takes the daemon's defaults.
	Inherited *cluster.Inherited `json:"inherited,omitempty" doc:"what executors inherit: umask, nice and limits; if left out, the umask is 022 and the rest is the daemon's"`

	Min int `json:"min,omitempty" doc:"number of executors that are kept while no task needs them"`
	Max int `json:"max" doc:"number of executors that there may be at most"`
	// What one executor requests, as the one task of a job does.
	CPU       resource.Amount `json:"cpu_millicores,omitempty" doc:"CPU of an executor; one core if left out"`
	Memory    resource.Amount `json:"ideal_memory_bytes" doc:"memory of an executor"`
	MaxMemory resource.Amount `json:"max_memory_bytes,omitempty" doc:"of a flex executor: the most memory that it may have; if left out, as of jobs"`
	Class     cluster.Class   `json:"class,omitempty" doc:"regular or flex; regular if left out"`
	Queue     string          `json:"queue,omitempty" doc:"queue in which executors wait for their start"`

	Idle    time.Duration   `json:"idle_ns,omitempty" doc:"an executor beyond the least number ends when it has run nothing for so long; a minute if left out"`
	Recycle resource.Amount `json:"recycle_bytes,omitempty" doc:"an executor that has more memory after a task is replaced; never if left out"`

	Policy   string            `json:"policy,omitempty" doc:"policy that divides the executors among applications; mira if left out"`
	Settings map[string]string `json:"settings,omitempty" doc:"settings of the policy"`
}

// Defaults of a Spec.
const (
	DefaultPoolIdle   = time.Minute
	DefaultPoolPolicy = "mira"
	DefaultPoolKeep   = "2s" // setting mira.keep: see decision 69
	DefaultPoolPython = "python3"
)

// Languages of executors.
const (
	PoolPython = "python" // the executor is the worker that comes with bellows, in the interpreter that Command names
	PoolGo     = "go"     // the executor is a program that calls executor.Main
)

// MostPoolExecutors is the largest number of executors of one pool.
const MostPoolExecutors = 1000

// PoolSummary is what people see of a pool among others.
type PoolSummary struct {
	PoolRef
	Spec         PoolSpec `json:"spec"`
	Executors    int      `json:"executors" doc:"executors whose jobs have not ended"`
	Starting     int      `json:"starting" doc:"of them, those that have not registered: their jobs wait, or their programs begin"`
	Busy         int      `json:"busy" doc:"of them, those that run a task"`
	Idle         int      `json:"idle" doc:"of them, those that run nothing"`
	Wanted       int      `json:"wanted" doc:"executors that there should be now"`
	Applications int      `json:"applications" doc:"applications that have not ended"`
	Why          string   `json:"why,omitempty" doc:"why there should be that number, and why there are fewer"`
}

// PoolDetail is what people see of a single pool.
type PoolDetail struct {
	PoolSummary
	Members  []PoolExecutor    `json:"members,omitempty" doc:"the executors, and those that were lost in the last minutes"`
	Enrolled []PoolApplication `json:"enrolled,omitempty" doc:"the applications"`
	Counters PoolCounters      `json:"counters" doc:"what has happened since the daemon began"`
	Synced   bool              `json:"synced" doc:"false: the pool waits for executors of an earlier daemon"`
	Broken   string            `json:"broken,omitempty" doc:"why the pool decides nothing more; omitted if it does"`
}

// PoolExecutor is what people see of an executor: what its pool knows of it, and its job.
type PoolExecutor struct {
	PoolMember
	Job   cluster.JobID `json:"job,omitempty" doc:"the job that the executor is; omitted if it has not been submitted yet, or has ended"`
	Lends bool          `json:"lends,omitempty" doc:"it runs nothing, and lends its cores until it has a task"`
}

// PoolMember is what a pool knows of an executor.
type PoolMember struct {
	Executor    int           `json:"executor" doc:"its number"`
	State       ExecutorState `json:"state" doc:"queued, starting, registered, assigned, attached, parked, draining, expired or lost"`
	Language    string        `json:"language,omitempty" doc:"what its functions are written in, or spark"`
	PID         int           `json:"pid,omitempty"`
	Application int64         `json:"application,omitempty" doc:"to which it belongs"`
	Stage       int           `json:"stage" doc:"of the task that it runs"`
	Task        int           `json:"task" doc:"index of that task in its stage"`
	Running     time.Duration `json:"running_ns,omitempty" doc:"for how long it has run the task"`
	Gone        time.Duration `json:"gone_ns,omitempty" doc:"for how long it has been gone, if it expired or was lost"`
	Idle        time.Duration `json:"idle_ns,omitempty" doc:"for how long it has run nothing"`
	Tasks       int64         `json:"tasks" doc:"tasks that it has ended"`
	Memory      int64         `json:"memory_bytes,omitempty" doc:"resident memory"`
	Why         string        `json:"why,omitempty" doc:"what holds it, or what it waits for"`
}

// ExecutorState is what an executor does.
type ExecutorState string

const (
	ExecutorRegistered ExecutorState = "registered" // has run nothing yet, and belongs to no application
	ExecutorAssigned   ExecutorState = "assigned"   // belongs to an application, and runs nothing
	ExecutorAttached   ExecutorState = "attached"   // runs a task of an application, or serves one that starts its own
	ExecutorParked     ExecutorState = "parked"     // has run tasks, and belongs to no application
	ExecutorDraining   ExecutorState = "draining"   // ends when its task has ended
	ExecutorExpired    ExecutorState = "expired"    // is gone: its lease ended; a process that lives registers again
	ExecutorLost       ExecutorState = "lost"       // is gone: its process ended
)

// States of executors that have not registered.
const (
	ExecutorQueued   ExecutorState = "queued"   // its job has not started
	ExecutorStarting ExecutorState = "starting" // its program has begun
)

// PoolApplication is what people see of an application.
type PoolApplication struct {
	Application int64  `json:"application" doc:"its number"`
	Name        string `json:"name,omitempty"`
	Executors   int    `json:"executors" doc:"executors that belong to it"`
	Waiting     int    `json:"waiting" doc:"tasks that wait; of an application that starts its own tasks, what it demands besides"`
	Running     int    `json:"running" doc:"tasks that run; of an application that starts its own tasks, its attachments"`
	Ended       int64  `json:"ended" doc:"tasks that have ended"`
	Results     int    `json:"results" doc:"results that were not collected yet"`
	Held        int64  `json:"held_bytes" doc:"of arguments and results"`
	Drives      bool   `json:"drives,omitempty" doc:"it starts its own tasks"`
	Demand      int    `json:"demand,omitempty" doc:"executors that it could use, if it starts its own tasks"`
	Asked       int    `json:"asked,omitempty" doc:"executors that it is to give back"`
	State       string `json:"state" doc:"open, closed, ended or cancelled"`
	Why         string `json:"why,omitempty" doc:"why its next task waits, or why it was cancelled"`
}

// Counters count what has happened since the pool began.
type PoolCounters struct {
	Started   int64 `json:"started" doc:"runs of tasks"`
	Switched  int64 `json:"switched" doc:"of them, on an executor that had run a task of another application before"`
	Lost      int64 `json:"lost" doc:"runs whose executor was lost"`
	Dropped   int64 `json:"dropped" doc:"reports of runs that were not known any more"`
	Repeated  int64 `json:"repeated" doc:"messages that came again"`
	Expired   int64 `json:"expired" doc:"leases of executors that ended"`
	Abandoned int64 `json:"abandoned" doc:"applications whose lease has ended"`
	// Events are what the policy received: of executors, applications, tasks and what was decided. Divisions is how
	// often it then divided the executors among the applications anew, once for the events of up to a millisecond;
	// Filtered are the events that it knew could not change the division (Mira, section III.C). Both are 0 with a policy
	// that divides none.
	Events    int64 `json:"events" doc:"what the policy received; 0 with a policy that divides no executors"`
	Filtered  int64 `json:"filtered" doc:"of them, those that could not change how executors are divided"`
	Divisions int64 `json:"divisions" doc:"times that the executors were divided anew"`
}

// StoredPool is the answer to a request that makes or changes a pool.
type StoredPool struct {
	Created bool `json:"created" doc:"false: there was a pool of that name, which has been changed"`
}
