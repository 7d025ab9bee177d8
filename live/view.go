package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Job is a job as people see it. It is a copy that belongs to the caller.
type Job struct {
	ID   cluster.JobID `json:"id"`
	Name string        `json:"name"`
	// user name, or the number of the user if it has none
	Owner string `json:"owner" doc:"name of its user, or the number if that has none"`
	UID   uint32 `json:"uid"`
	// A failed or cancelled job may still have tasks that are being killed: see Ended.
	Status cluster.JobStatus `json:"status" doc:"pending, running or set-aside, or how it has ended: succeeded, failed or cancelled"`
	// Ended says that the job will not change any more.
	Ended     bool      `json:"ended" doc:"the job will not change any more; one that failed or was cancelled may still have tasks that are being killed"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero" doc:"when the first program began"` // when the first program began
	Finished  time.Time `json:"finished,omitzero" doc:"when the last task ended"`    // when the last task ended
	// ExitCode is 0 if the job succeeded, and else the exit code of the task that made it fail; nil while the job has
	// not ended, or if it ended without an exit code (cancelled before it ran).
	ExitCode *int `json:"exit_code,omitempty" doc:"0 if it succeeded, else that of the task that made it fail; omitted if it has not ended, or ended without one"`
	// Detail is one sentence on why the job failed; empty if it did not.
	Detail string `json:"detail,omitempty" doc:"one sentence on why the job failed"`
	// App names what recurs; AppDerived says that it was derived from the name and the command of the job. Left out of
	// lists of all jobs.
	App        string `json:"app,omitempty" doc:"its application; left out of lists of all jobs"`
	AppDerived bool   `json:"app_derived,omitempty" doc:"the application was derived from name and command"`
	// Queue and Weight are as submitted. Left out of lists of all jobs.
	Queue  string  `json:"queue,omitempty" doc:"as submitted; left out of lists of all jobs"`
	Weight float64 `json:"weight,omitempty" doc:"share of its queue relative to others; omitted if none was stated"`
	// DeadlineSeconds is the longest time that the job should wait for its start; 0 lets the policy choose.
	DeadlineSeconds float64 `json:"deadline_s,omitempty" doc:"the longest time that it should wait for its start; omitted: the policy chooses"`
	// Input says that its program reads data from its submitter, and therefore starts only once.
	Input bool `json:"input,omitempty" doc:"its program reads data from its submitter, and so starts only once"`
	// Paused is who paused the job, and when; nil if it is not paused.
	Paused *Paused `json:"paused,omitempty" doc:"who paused it, and when; omitted if it is not paused"`
	// Waiting is one clause on why the next task of the job has not started; empty if no task waits.
	Waiting string `json:"waiting,omitempty" doc:"one clause on why its next task has not started; omitted if no task waits"`
	// TaskCount is the number of its tasks, SucceededCount the number of tasks that succeeded.
	TaskCount      int `json:"task_count" doc:"number of its tasks"`
	SucceededCount int `json:"succeeded_count" doc:"tasks that succeeded"`
	// Stages are left out of ended jobs in a list of all jobs.
	Stages []Stage `json:"stages,omitempty" doc:"left out of ended jobs in a list of all jobs"`
	// Tasks are the newest runs of the tasks that have been started, by stage and index. Left out of lists without
	// tasks.
	Tasks []Task `json:"tasks,omitempty" doc:"the newest runs of the tasks that have been started, by stage and index"`
	// Earlier are the earlier runs of tasks, by stage, index and run. Left out where Tasks are.
	Earlier []Task `json:"earlier,omitempty" doc:"earlier runs of tasks"`

	// Version is equal for two Jobs of the same ID only if they are equal in everything. It is 0 if that is unknown,
	// because something in the Job follows from the time or was measured. It does not say whether Tasks and Earlier, or
	// the Stages of a job that has ended, were left out.
	Version int64 `json:"-"`
}

// final is the Version of jobs that have ended and will never change.
const final = -1

// Stage is a stage with its progress: Pending + Running + Succeeded + Failed = Tasks. Of its command only Timeout is
// shown, because all callers may see it.
type Stage struct {
	cluster.Stage
	Class cluster.Class `json:"class"`
	// not started, or to run again
	Pending int `json:"pending" doc:"tasks that have not started, or are to run again"`
	// of Pending: those that wait for nothing but room, or for their turn
	Startable int `json:"-"`
	// being started, or running
	Running   int `json:"running" doc:"tasks that are being started, or run"`
	Succeeded int `json:"succeeded" doc:"tasks that ended well"` // ended well
	// ended for good without success
	Failed int `json:"failed" doc:"tasks that ended for good without success"`

	// The fields below repeat fields of the stage in units for people.
	Elasticity    string `json:"elasticity" doc:"what less memory costs, in words"` // in words
	CPUMillicores int64  `json:"cpu_millicores"`
	IdealBytes    int64  `json:"ideal_memory_bytes" doc:"memory with which a task runs at full speed"`
	// estimated, at ideal memory; 0 is unknown
	DurationSeconds float64 `json:"duration_s,omitempty" doc:"estimated run time of a task with ideal memory; omitted if unknown"`
	// after which a task is killed; 0 is no limit
	TimeoutSeconds float64 `json:"timeout_s,omitempty" doc:"after which a task is killed; omitted if there is no limit"`
}

// stageOf returns the view of a stage that has not started.
func stageOf(j *cluster.Job, i int) Stage {
	s := j.Stages[i]
	s.Command = cluster.Command{Timeout: s.Timeout}
	return Stage{Stage: s, Class: j.Class, Pending: s.Tasks, Elasticity: s.Elasticity.String(),
		CPUMillicores: int64(s.Ideal[resource.CPU]), IdealBytes: int64(s.Ideal[resource.Memory]),
		DurationSeconds: s.Duration.Seconds(), TimeoutSeconds: s.Timeout.Seconds()}
}

// Task is one run of a task.
type Task struct {
	Task  cluster.TaskID `json:"task"`
	Owner Owner          `json:"-"`                         // of its job
	Run   int            `json:"run" doc:"1 for the first"` // 1 for the first
	State TaskState      `json:"state" doc:"starting, running, ending or ended"`
	Node  string         `json:"node"`
	Grant
	UnderSized bool `json:"elastic" doc:"granted less than its ideal memory"` // granted less than its ideal memory
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
	// Still says who stopped its programs; nil if they run, and unless the task runs.
	Still *Still `json:"still,omitempty" doc:"who stopped its programs; omitted while they run"`
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
	MemoryBytes   int64 `json:"memory_bytes"`
	Disk          int64 `json:"disk_bytes_per_s,omitempty" doc:"granted bandwidth of the disk; omitted if the task requested none"`
	Network       int64 `json:"network_bytes_per_s,omitempty" doc:"granted bandwidth of the network; omitted if the task requested none"`
}

func grantOf(g resource.Vector) Grant {
	return Grant{CPUMillicores: int64(g[resource.CPU]), MemoryBytes: int64(g[resource.Memory]),
		Disk: int64(g[resource.Disk]), Network: int64(g[resource.Network])}
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

func inPhase(t *book.TaskState, now timeline.Time) InPhase {
	phase, ok := t.PhaseAt(now)
	if !ok {
		return InPhase{}
	}
	phases := t.Stage().Phases
	return InPhase{Phase: int(phase) + 1, Phases: len(phases), Name: phases[phase].Name,
		Since: instant(t.EnteredAt(now, phase))}
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
	i := slices.Index(taskStateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("task state %q: unknown", text)
	}
	*s = TaskState(i)
	return nil
}

// Node is a machine as people see it.
type Node struct {
	Name            string `json:"name"`
	CPU             int64  `json:"cpu_millicores" doc:"CPU that may be granted"`
	Memory          int64  `json:"memory_bytes" doc:"memory that may be granted"`
	FreeCPU         int64  `json:"free_cpu_millicores" doc:"CPU not granted now"`
	OverdrawnCPU    int64  `json:"overdrawn_cpu_millicores,omitempty" doc:"CPU granted beyond what the node has, because resumed tasks use CPU that they had lent, or tasks were resized; omitted if there is none"`
	FreeMemory      int64  `json:"free_memory_bytes" doc:"memory not granted now, without leftover_memory_bytes; flex containers that have grown may hold some of it"`
	HeldMemory      int64  `json:"held_memory_bytes,omitempty" doc:"sum of the limits of the containers, which is more than was granted if flex containers have grown; 0 until it is known"`
	LeftoverMemory  int64  `json:"leftover_memory_bytes,omitempty" doc:"memory that outlives the tasks that have used it: files in memory, such as those in /dev/shm, and segments that programs shared; it is not granted until they are removed; omitted if there is none"`
	OverdrawnMemory int64  `json:"overdrawn_memory_bytes,omitempty" doc:"memory granted or left over beyond what the node has, because it is to come back to resumed tasks, which wait for it, or because tasks left it in use; omitted if there is none"`
	FreeDisk        *int64 `json:"free_disk_bytes_per_s,omitempty" doc:"bandwidth of the disk not granted now; omitted if that of the disk is unknown"`
	FreeNetwork     *int64 `json:"free_network_bytes_per_s,omitempty" doc:"bandwidth of the network not granted now; omitted if that of the network is unknown"`
	UsedMemory      int64  `json:"used_memory_bytes" doc:"memory that the containers use now"`
	UsedAnonymous   int64  `json:"used_anonymous_bytes" doc:"anonymous memory that the containers use now"`
	Containers      int    `json:"containers" doc:"number of containers"`
	Disk            int64  `json:"disk_bytes_per_s,omitempty" doc:"bandwidth of the disk, measured or given; 0 is unknown, and under-sized tasks then have no limit"`
	DiskGives       int64  `json:"disk_gives_bytes_per_s,omitempty" doc:"what the disk gives while it is pressed: several containers use it, it is busy, and it gives well below its bandwidth; omitted while it is not pressed"`
	Network         int64  `json:"network_bytes_per_s,omitempty" doc:"bandwidth of the network, as given; 0 is unknown"`
	// Unknown are the fields of the resources whose capacity is unknown.
	Unknown []string `json:"unknown,omitempty" doc:"resources whose capacity was neither measured nor stated, such as network: every request for them fits"`
	// Leveling is the newest question of the policy about the node; nil if there was none.
	Leveling *Leveling `json:"leveling,omitempty" doc:"the newest question of the policy about how to level the demand on the node; omitted if there was none"`
}

// LeftMemory is the memory that is neither granted, nor held by containers that have grown beyond their grants, nor
// left in use by tasks.
func (n *Node) LeftMemory() int64 {
	return max(0, min(n.FreeMemory, n.Memory-n.HeldMemory-n.LeftoverMemory))
}

// nodeOf returns the view of a node whose containers have not been measured.
func nodeOf(n *book.NodeState) Node {
	free := n.Spare().Max(resource.Vector{})
	known := func(k resource.Kind) *int64 {
		if n.Unknown.Has(k) {
			return nil
		}
		return new(int64(free[k]))
	}
	return Node{Name: n.Name, CPU: int64(n.Capacity[resource.CPU]), Memory: int64(n.Capacity[resource.Memory]),
		FreeCPU: int64(free[resource.CPU]), OverdrawnCPU: int64(n.Overdrawn()[resource.CPU]),
		FreeMemory: int64(free[resource.Memory]), HeldMemory: int64(n.Held),
		LeftoverMemory: int64(n.Leftover), OverdrawnMemory: max(0, -int64(n.Spare()[resource.Memory])),
		FreeDisk: known(resource.Disk), FreeNetwork: known(resource.Network), Disk: int64(n.Capacity[resource.Disk]),
		DiskGives: int64(n.Pressed[resource.Disk]), Network: int64(n.Capacity[resource.Network]),
		Unknown: n.Unknown.Fields(), Leveling: levelingOf(n)}
}

// Status is the daemon as a whole.
type Status struct {
	Policy string `json:"policy" doc:"name of the policy"`
	// Deadlines: the policy lets a job that is past its deadline come first.
	Deadlines bool `json:"deadlines" doc:"jobs past their deadline come first under the policy; under others a deadline changes nothing"`

	Since   time.Time `json:"since" doc:"when the daemon began"`
	Pending int       `json:"pending_tasks" doc:"tasks that have not started"`
	Running int       `json:"running_tasks" doc:"tasks that run"`
	Jobs    int       `json:"jobs" doc:"jobs that have not ended"` // jobs that have not ended
	Steps   int64     `json:"steps" doc:"steps of the engine"`
	// Trouble is one sentence on what prevents the daemon from working normally (a full disk, an impossible decision of
	// the policy); empty if nothing does.
	Trouble string `json:"trouble,omitempty" doc:"one sentence on what prevents the daemon from working normally"`
	// Quotas says that some user or queue has a quota.
	Quotas bool `json:"quotas,omitempty" doc:"users or queues have quotas"`
	// Crowded is one sentence if all daemons of the machine together may grant more than it has; else empty.
	Crowded string `json:"crowded,omitempty" doc:"one sentence if all bellows daemons of the machine together may grant more memory than it has; a daemon that has ended counts with the grants of its containers that still run"`
	// NetworkUnknown says why what containers transfer over the network is not counted; empty if it is.
	NetworkUnknown string `json:"network_unknown,omitempty" doc:"why it is unknown what containers transfer over the network; omitted if it is counted"`
	// AsOf is the time of the numbers above; zero if they are current, which they are unless the engine hangs.
	AsOf time.Time `json:"as_of,omitzero" doc:"time of these numbers; only while the engine hangs"`
	// EventLog is the file in which the steps of this run are recorded now: the newest segment.
	EventLog string `json:"event_log" doc:"the file in which the steps of this run are recorded now"`
	Nodes    []Node `json:"nodes"`
}

// Explanation says why a job runs as it does or waits.
type Explanation struct {
	Job Job `json:"job"`
	// Why is a sentence on the state of the job. A second one may follow on suspended tasks that keep their cores, or on
	// resumed tasks whose cores were borrowed.
	Why string `json:"why" doc:"a sentence on the state of the job"`
	// EarliestStart is the earliest time at which its next task could have room, or all tasks that start together with
	// it, if no other task came first; zero if no task waits, or if the ends of the tasks in its way are unknown.
	EarliestStart time.Time `json:"earliest_start,omitzero" doc:"when its next task, or all that start together with it, could have room, if no other task came first; it does not count on the end of a suspended or waiting task"`
	// EstimatedEnd is when the job is expected to end: the policy's last estimate, or the end that follows from its
	// running tasks. It is zero if unknown, and while one of its tasks is paused, suspended or waits for memory.
	EstimatedEnd time.Time `json:"estimated_end,omitzero" doc:"when it should end; omitted if that is unknown, or one of its tasks is paused, suspended or waits for memory. A hold of leveling counts until it ends"`
	// Blockers hold what the next task waits for.
	Blockers []Blocker `json:"blockers,omitempty" doc:"who holds the memory and the cores that the next task waits for; omitted if it waits for something else"`
	// Remedies are sentences on what may help tasks that failed for lack of memory.
	Remedies []string `json:"remedies,omitempty" doc:"sentences on what may help tasks that failed for lack of memory"`
	// Forecasts says of each stage what its tasks are expected to demand when.
	Forecasts []Forecast `json:"forecasts,omitempty" doc:"what the tasks of each stage are expected to demand when"`
	// Tasks are the running tasks, each with the reason for its size.
	Tasks []TaskExplanation `json:"tasks,omitempty" doc:"the running tasks, each with the reason for its size"`
	// Levelings are the newest questions of the policy about the nodes of these tasks.
	Levelings []Leveling `json:"levelings,omitempty" doc:"the newest questions of the policy about how to level the demand on the nodes of the running tasks"`
	// Decisions are the newest decisions about the job, oldest first.
	Decisions []DecisionNote `json:"decisions,omitempty" doc:"the newest 50 decisions of this run of the daemon about the job, oldest first"`
}

// TaskExplanation says why a running task has its size, and when it is expected to end.
type TaskExplanation struct {
	Task cluster.TaskID `json:"task"`
	Grant
	IdealBytes int64 `json:"ideal_memory_bytes" doc:"memory with which it would run at full speed"`
	// estimated run time divided by that at ideal memory
	Slowdown float64 `json:"slowdown" doc:"estimated run time / run time with ideal memory"`
	Sized
	Why          string    `json:"why" doc:"one clause on why it has its memory"`
	EstimatedEnd time.Time `json:"estimated_end,omitzero" doc:"when it should end; omitted if unknown, and while it is paused, suspended or waits"`
	InPhase
	// Throttle is what bounds its use of disk and network; nil if nothing does.
	Throttle *Throttle `json:"throttle,omitempty" doc:"what bounds its use of disk and network"`
	// MemoryWait is what it waits for before a phase; nil if it does not wait for memory, or has it and is about to go on.
	MemoryWait *MemoryWait `json:"memory_wait,omitempty" doc:"what it waits for before a phase that needs more memory than is free; omitted if it does not wait, or has that memory and is about to go on"`
	// Shifts are when it is to stand still later, by the answer that is used.
	Shifts []Shift `json:"shifts,omitempty" doc:"when it is to stand still later, so that the demand on its node is leveled"`
	// Holders are the other tasks of its node while it is suspended or waits for memory, the largest first.
	Holders []Holder `json:"holders,omitempty" doc:"while it is suspended or waits for memory: the other tasks of its node, the largest first"`
	// Limited is when its time limit kills it; zero if it has no limit.
	Limited time.Time `json:"limited,omitzero" doc:"when its time limit kills it; omitted if it has none"`
	// Usage is the current use and state of a FLEX container, or why a container has not started for lack of memory;
	// nil for other containers.
	Usage *cluster.Reading `json:"usage,omitempty" doc:"use and state of a FLEX container, or why a container has not started for lack of memory"`
}

// DecisionNote is a decision in words.
type DecisionNote struct {
	At time.Time `json:"at" doc:"when it was taken"`
	// never Wake
	Kind  cluster.DecisionKind `json:"kind" doc:"start, kill, throttle, suspend, resume, resize, reserve, unreserve or wait"`
	Task  cluster.TaskID       `json:"task" doc:"about which task"`
	Why   string               `json:"why" doc:"one clause"`
	Grant *Grant               `json:"grant,omitempty" doc:"of a resize: what the task is granted from now on"`
	// Bound and Until are those of a throttle; a throttle that is ended has neither.
	Bound
	Until time.Time      `json:"until,omitzero" doc:"of a throttle, and of a suspend by leveling: when it ends by itself"`
	For   cluster.TaskID `json:"for,omitzero" doc:"of a suspend by leveling: the task that keeps going because of it"`
	// Answer is how the order was answered; empty if the decision is no order, or one without an answer, as a kill.
	Answer Answer `json:"answer,omitempty" doc:"of start, throttle, suspend, resume and resize: pending, done, failed or superseded; superseded if a later order, or the end of the task, came first"`
	Detail string `json:"detail,omitempty" doc:"one clause on why the order failed, or how it was carried out"`
}

// Answer is how an order was answered.
type Answer string

const (
	AnswerPending    Answer = "pending"
	AnswerDone       Answer = "done"
	AnswerFailed     Answer = "failed"
	AnswerSuperseded Answer = "superseded" // a later order, or the end of the task, came first
)

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
