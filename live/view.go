package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// Job is a job as people see it. It is a copy: nobody else holds it.
type Job struct {
	ID    cluster.JobID `json:"id"`
	Name  string        `json:"name"`
	Owner string        `json:"owner"` // user name, or the number of the user if it has none
	UID   uint32        `json:"uid"`
	// A failed or
	// cancelled job may still have tasks that are being ended: see Ended.
	Status cluster.JobStatus `json:"status"`
	// Ended says that nothing more will happen to the job.
	Ended     bool      `json:"ended"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`  // when the first program began
	Finished  time.Time `json:"finished,omitzero"` // when the last task ended
	// ExitCode is 0 if the job succeeded, and else that of the task that made it fail; nil as long as the job has not
	// ended, or if it ended without an exit code (cancelled before it ran).
	ExitCode *int `json:"exit_code,omitempty"`
	// Detail is one sentence on why the job failed; empty if it did not.
	Detail string `json:"detail,omitempty"`
	// Input says that its program reads what its submitter sends, and so starts once, whatever happens to it.
	Input bool `json:"input,omitempty"`
	// Waiting is one clause on why its next task has not started; empty if nothing waits.
	Waiting string `json:"waiting,omitempty"`
	// TaskCount is how many tasks it has, and SucceededCount how many of them have ended well.
	TaskCount      int `json:"task_count"`
	SucceededCount int `json:"succeeded_count"`
	// Stages are left out where all jobs are listed and this one has ended.
	Stages []Stage `json:"stages,omitempty"`
	// Tasks are those that have been started, by stage and index; of each the newest run. Left out where jobs are listed
	// without tasks.
	Tasks []Task `json:"tasks,omitempty"`
	// Earlier are the runs of tasks before their newest ones, by stage, index and run. Left out as Tasks.
	Earlier []Task `json:"earlier,omitempty"`
}

// Stage is a stage with how far it has come: Pending + Running + Succeeded + Failed = Tasks. Of its command only Timeout is
// told, since anybody may look.
type Stage struct {
	cluster.Stage
	Class     cluster.Class `json:"class"`
	Pending   int           `json:"pending"`   // not started, or to run again
	Running   int           `json:"running"`   // being started, or running
	Succeeded int           `json:"succeeded"` // ended well
	Failed    int           `json:"failed"`    // ended for good without success

	// What follows is in the fields of the stage, too. It stays for clients that know no other fields.
	Elasticity      string  `json:"elasticity"` // in words
	CPUMillicores   int64   `json:"cpu_millicores"`
	IdealBytes      int64   `json:"ideal_memory_bytes"`
	DurationSeconds float64 `json:"duration_s,omitempty"` // estimated, at ideal memory; 0 is unknown
	TimeoutSeconds  float64 `json:"timeout_s,omitempty"`  // after which a task is ended; 0 is for ever
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
	Elastic       bool           `json:"elastic"`      // granted less than its ideal memory
	// Why is one clause on why it was started with this much.
	Why     string    `json:"why,omitempty"`
	Booked  time.Time `json:"booked"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Outcome is 0 as long as it runs.
	Outcome cluster.Outcome `json:"outcome,omitempty"`
	// Exit is how its program ended; nil as long as it runs, and if nobody saw it end.
	Exit *cluster.Exit `json:"exit,omitempty"`
	// Detail is one sentence on what went wrong; empty if nothing did.
	Detail string `json:"detail,omitempty"`
	// Usage is what its container uses now; nil unless it runs, and where jobs are listed without usage.
	Usage *cluster.Reading `json:"usage,omitempty"`
}

// TaskState is where a run of a task is in its life; the order is the order of progress.
type TaskState uint8

const (
	TaskStarting TaskState = iota // ordered; its program does not run yet
	TaskRunning
	TaskEnding // it has been told to end
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
	ID       cluster.NodeID  `json:"id"`
	Name     string          `json:"name"`
	Capacity resource.Vector `json:"capacity"` // by resource.Kind
	Free     resource.Vector `json:"free"`     // not granted
	// UsedMemoryBytes and UsedAnonymousBytes are what the containers really hold now.
	UsedMemoryBytes    int64 `json:"used_memory_bytes"`
	UsedAnonymousBytes int64 `json:"used_anonymous_bytes"`
	Containers         int   `json:"containers"`
}

// Status is the daemon as a whole.
type Status struct {
	Policy  string    `json:"policy"`
	Since   time.Time `json:"since"`
	Nodes   []Node    `json:"nodes"`
	Pending int       `json:"pending_tasks"`
	Running int       `json:"running_tasks"`
	Jobs    int       `json:"jobs"` // that have not ended
	Steps   int64     `json:"steps"`
	// Trouble is one sentence on what keeps the daemon from working as it should (a full disk, an impossible decision of
	// the policy); empty if nothing does.
	Trouble string `json:"trouble,omitempty"`
	// Crowded is one sentence that says that all daemons of the machine together may grant more than it has; empty if they may not.
	Crowded string `json:"crowded,omitempty"`
	// AsOf is when the numbers above were true; zero if they are as of now, as always but while the engine hangs.
	AsOf time.Time `json:"as_of,omitzero"`
	// EventLog is the file in which the steps of this run are recorded.
	EventLog string `json:"event_log"`
}

// Explanation says why a job is where it is.
type Explanation struct {
	Job Job `json:"job"`
	// Why is one sentence on where the job stands.
	Why string `json:"why"`
	// EarliestStart is the earliest time at which its next task could have room, if nothing else came first; zero if
	// nothing waits, or if the end of what is in the way is unknown.
	EarliestStart time.Time `json:"earliest_start,omitzero"`
	// EstimatedEnd is when the job should end, as the policy last estimated or as follows from its running tasks; zero
	// if unknown, and while one of its tasks is suspended or waits for memory.
	EstimatedEnd time.Time `json:"estimated_end,omitzero"`
	// Tasks are those that run, with why they have the size they have.
	Tasks []TaskExplanation `json:"tasks,omitempty"`
	// Decisions are the newest decisions about the job, oldest first.
	Decisions []DecisionNote `json:"decisions,omitempty"`
}

// TaskExplanation says why a running task has its size, and when it should end.
type TaskExplanation struct {
	Task         cluster.TaskID `json:"task"`
	MemoryBytes  int64          `json:"memory_bytes"`
	IdealBytes   int64          `json:"ideal_memory_bytes"`
	Slowdown     float64        `json:"slowdown"` // estimated run time over that at ideal memory
	Why          string         `json:"why"`
	EstimatedEnd time.Time      `json:"estimated_end,omitzero"`
	// Holders are the other tasks of its node while it is suspended or waits for memory, those that may hold most first.
	Holders []Holder `json:"holders,omitempty"`
	// Limited is when its time limit ends it; zero if it has none.
	Limited time.Time `json:"limited,omitzero"`
	// Usage is what a FLEX container has and does now, or why a container has not started for want of memory; nil for others.
	Usage *cluster.Reading `json:"usage,omitempty"`
}

// DecisionNote is a decision in words.
type DecisionNote struct {
	At   time.Time            `json:"at"`
	Kind cluster.DecisionKind `json:"kind"` // never Wake
	Task cluster.TaskID       `json:"task"`
	Why  string               `json:"why"`
}

// LogFile is where the output of one run of a task goes. The files may not exist yet while it is being started.
type LogFile struct {
	Task   cluster.TaskID `json:"task"`
	Run    int            `json:"run"`
	Stdout string         `json:"stdout"`
	Stderr string         `json:"stderr"`
	// Ended says that nothing more will be written.
	Ended bool `json:"ended"`
}
