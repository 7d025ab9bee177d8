package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// Job is a job as people see it. It is a copy that belongs to the caller.
type Job struct {
	ID    cluster.JobID `json:"id"`
	Name  string        `json:"name"`
	Owner string        `json:"owner"` // user name, or the number of the user if it has none
	UID   uint32        `json:"uid"`
	// A failed or cancelled job may still have tasks that are being killed: see Ended.
	Status cluster.JobStatus `json:"status"`
	// Ended says that the job will not change any more.
	Ended     bool      `json:"ended"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`  // when the first program began
	Finished  time.Time `json:"finished,omitzero"` // when the last task ended
	// ExitCode is 0 if the job succeeded, and else the exit code of the task that made it fail; nil while the job has
	// not ended, or if it ended without an exit code (cancelled before it ran).
	ExitCode *int `json:"exit_code,omitempty"`
	// Detail is one sentence on why the job failed; empty if it did not.
	Detail string `json:"detail,omitempty"`
	// App names what recurs; AppDerived says that it was derived from the name and the command of the job. Left out of
	// lists of all jobs.
	App        string `json:"app,omitempty"`
	AppDerived bool   `json:"app_derived,omitempty"`
	// DeadlineSeconds is how long the job should wait at most; 0 lets the policy choose.
	DeadlineSeconds float64 `json:"deadline_s,omitempty"`
	// Input says that its program reads data from its submitter, and therefore starts only once.
	Input bool `json:"input,omitempty"`
	// Waiting is one clause on why its next task has not started; empty if no task waits.
	Waiting string `json:"waiting,omitempty"`
	// TaskCount is the number of its tasks, SucceededCount the number of tasks that succeeded.
	TaskCount      int `json:"task_count"`
	SucceededCount int `json:"succeeded_count"`
	// Stages are left out of ended jobs in a list of all jobs.
	Stages []Stage `json:"stages,omitempty"`
	// Tasks are the newest runs of the tasks that have been started, by stage and index. Left out of lists without
	// tasks.
	Tasks []Task `json:"tasks,omitempty"`
	// Earlier are the earlier runs of tasks, by stage, index and run. Left out where Tasks are.
	Earlier []Task `json:"earlier,omitempty"`
}

// Stage is a stage with its progress: Pending + Running + Succeeded + Failed = Tasks. Of its command only Timeout is
// shown, because all callers may see it.
type Stage struct {
	cluster.Stage
	Class     cluster.Class `json:"class"`
	Pending   int           `json:"pending"`   // not started, or to run again
	Running   int           `json:"running"`   // being started, or running
	Succeeded int           `json:"succeeded"` // ended well
	Failed    int           `json:"failed"`    // ended for good without success

	// The fields below repeat fields of the stage, for clients that know no others.
	Elasticity      string  `json:"elasticity"` // in words
	CPUMillicores   int64   `json:"cpu_millicores"`
	IdealBytes      int64   `json:"ideal_memory_bytes"`
	DurationSeconds float64 `json:"duration_s,omitempty"` // estimated, at ideal memory; 0 is unknown
	TimeoutSeconds  float64 `json:"timeout_s,omitempty"`  // after which a task is killed; 0 is no limit
}

// stageOf returns the view of a stage of which no task has started.
func stageOf(j *cluster.Job, i int) Stage {
	s := j.Stages[i]
	s.Command = cluster.Command{Timeout: s.Timeout}
	return Stage{Stage: s, Class: j.Class, Pending: s.Tasks, Elasticity: s.Elasticity.String(), CPUMillicores: int64(s.Ideal[resource.CPU]),
		IdealBytes: int64(s.Ideal[resource.Memory]), DurationSeconds: s.Duration.Seconds(), TimeoutSeconds: s.Timeout.Seconds()}
}

// Task is one run of a task.
type Task struct {
	Task          cluster.TaskID `json:"task"`
	Run           int            `json:"run"` // 1 for the first
	State         TaskState      `json:"state"`
	Node          string         `json:"node"`
	CPUMillicores int64          `json:"cpu_millicores"`
	MemoryBytes   int64          `json:"memory_bytes"` // granted
	UnderSized    bool           `json:"elastic"`      // granted less than its ideal memory
	// Why is one clause on why it was started with this amount of memory.
	Why     string    `json:"why,omitempty"`
	Booked  time.Time `json:"booked"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Outcome is 0 while it runs.
	Outcome cluster.Outcome `json:"outcome,omitempty"`
	// Exit is how its program ended; nil while it runs, and if its end was not observed.
	Exit *cluster.Exit `json:"exit,omitempty"`
	// Detail is one sentence on what went wrong; empty if nothing did.
	Detail string `json:"detail,omitempty"`
	// Throttle is what bounds its use of disk and network; nil if nothing does.
	Throttle *Throttle `json:"throttle,omitempty"`
	// Usage is the current use of its container; nil unless it runs, and in lists without usage.
	Usage *cluster.Reading `json:"usage,omitempty"`
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
	i := slices.Index(taskStateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("task state %q: unknown", text)
	}
	*s = TaskState(i)
	return nil
}

// Node is a machine as people see it.
type Node struct {
	Name          string `json:"name"`
	CPU           int64  `json:"cpu_millicores" doc:"CPU that may be granted"`
	Memory        int64  `json:"memory_bytes" doc:"memory that may be granted"`
	FreeCPU       int64  `json:"free_cpu_millicores" doc:"CPU not granted now"`
	FreeMemory    int64  `json:"free_memory_bytes" doc:"memory not granted now"`
	UsedMemory    int64  `json:"used_memory_bytes" doc:"memory that the containers use now"`
	UsedAnonymous int64  `json:"used_anonymous_bytes" doc:"anonymous memory that the containers use now"`
	Containers    int    `json:"containers"`
	Disk          int64  `json:"disk_bytes_per_s,omitempty" doc:"bandwidth of the disk, measured or given; 0 is unknown, and under-sized tasks then have no limit"`
	DiskGives     int64  `json:"disk_gives_bytes_per_s,omitempty" doc:"what the disk gives while it is pressed: several containers use it, it is busy, and it gives well below its bandwidth; omitted while it is not pressed"`
	Network       int64  `json:"network_bytes_per_s,omitempty" doc:"bandwidth of the network, as given; 0 is unknown"`
	// Unknown are the fields of the resources of which the node has no number.
	Unknown []string `json:"unknown,omitempty" doc:"resources of which the node has no number, such as network: every request for them fits"`
}

// nodeOf returns the view of a node whose containers have not been measured.
func nodeOf(n *cluster.NodeState) Node {
	free := n.Unused()
	return Node{Name: n.Name, CPU: int64(n.Capacity[resource.CPU]), Memory: int64(n.Capacity[resource.Memory]),
		FreeCPU: int64(free[resource.CPU]), FreeMemory: int64(free[resource.Memory]), Disk: int64(n.Capacity[resource.Disk]),
		DiskGives: int64(n.Pressed[resource.Disk]), Network: int64(n.Capacity[resource.Network]), Unknown: n.Unknown.Fields()}
}

// Status is the daemon as a whole.
type Status struct {
	Policy  string    `json:"policy"`
	Since   time.Time `json:"since"`
	Pending int       `json:"pending_tasks"`
	Running int       `json:"running_tasks"`
	Jobs    int       `json:"jobs"` // jobs that have not ended
	Steps   int64     `json:"steps"`
	// Trouble is one sentence on what prevents the daemon from working normally (a full disk, an impossible decision of
	// the policy); empty if nothing does.
	Trouble string `json:"trouble,omitempty"`
	// Crowded is one sentence if all daemons of the machine together may grant more than it has; else empty.
	Crowded string `json:"crowded,omitempty"`
	// NetworkUnknown says why what containers transfer over the network is not counted; empty if it is.
	NetworkUnknown string `json:"network_unknown,omitempty" doc:"why it is unknown what containers transfer over the network; omitted if it is counted"`
	// AsOf is the time of the numbers above; zero if they are current, which they are unless the engine hangs.
	AsOf time.Time `json:"as_of,omitzero"`
	// EventLog is the file in which the steps of this run are recorded.
	EventLog string `json:"event_log"`
	Nodes    []Node `json:"nodes"`
}

// Explanation says why a job runs as it does or waits.
type Explanation struct {
	Job Job `json:"job"`
	// Why is a sentence on the state of the job, or two: a second one names suspended tasks that keep cores.
	Why string `json:"why"`
	// EarliestStart is the earliest time at which its next task could have room, if no other task came first; zero if
	// no task waits, or if the ends of the tasks in its way are unknown.
	EarliestStart time.Time `json:"earliest_start,omitzero"`
	// EstimatedEnd is when the job is expected to end: the policy's last estimate, or the end that follows from its
	// running tasks. It is zero if unknown, and while one of its tasks is suspended or waits for memory.
	EstimatedEnd time.Time `json:"estimated_end,omitzero"`
	// Forecasts says of each stage what its tasks are expected to demand when.
	Forecasts []Forecast `json:"forecasts,omitempty"`
	// Tasks are the running tasks, each with the reason for its size.
	Tasks []TaskExplanation `json:"tasks,omitempty"`
	// Decisions are the newest decisions about the job, oldest first.
	Decisions []DecisionNote `json:"decisions,omitempty"`
}

// TaskExplanation says why a running task has its size, and when it is expected to end.
type TaskExplanation struct {
	Task         cluster.TaskID `json:"task"`
	MemoryBytes  int64          `json:"memory_bytes"`
	IdealBytes   int64          `json:"ideal_memory_bytes"`
	Slowdown     float64        `json:"slowdown"` // estimated run time divided by that at ideal memory
	Why          string         `json:"why"`
	EstimatedEnd time.Time      `json:"estimated_end,omitzero"`
	// Phase is the phase of its forecast that it is in, of Phases, 1 for the first: the one that was reported, or that it
	// should have reached by the time that it ran. 0 if it has no forecast.
	Phase  int `json:"phase,omitempty"`
	Phases int `json:"phases,omitempty"`
	// Throttle is what bounds its use of disk and network; nil if nothing does.
	Throttle *Throttle `json:"throttle,omitempty"`
	// Holders are the other tasks of its node while it is suspended or waits for memory, the largest first.
	Holders []Holder `json:"holders,omitempty"`
	// Limited is when its time limit kills it; zero if it has no limit.
	Limited time.Time `json:"limited,omitzero"`
	// Usage is the current use and state of a FLEX container, or why a container has not started for lack of memory;
	// nil for other containers.
	Usage *cluster.Reading `json:"usage,omitempty"`
}

// DecisionNote is a decision in words.
type DecisionNote struct {
	At   time.Time            `json:"at"`
	Kind cluster.DecisionKind `json:"kind"` // never Wake
	Task cluster.TaskID       `json:"task"`
	Why  string               `json:"why"`
}

// LogFile is the location of the output of one run of a task. The files may not exist yet while the run is being
// started.
type LogFile struct {
	Task   cluster.TaskID `json:"task"`
	Run    int            `json:"run"`
	Stdout string         `json:"stdout"`
	Stderr string         `json:"stderr"`
	// Ended says that the files do not grow any more.
	Ended bool `json:"ended"`
}
