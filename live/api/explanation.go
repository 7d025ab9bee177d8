package api

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

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
	// Remedies are sentences on what lets a job start that waits, and on what may help tasks that failed for lack of
	// memory.
	Remedies []string `json:"remedies,omitempty" doc:"sentences on what lets a job start that waits, and on what may help tasks that failed for lack of memory"`
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

// Blocker is who holds memory and cores that the next task of a job waits for: one job, the executors of a pool, or the
// jobs of other users, which are not named.
type Blocker struct {
	Job           cluster.JobID `json:"job,omitempty" doc:"the job; omitted for a pool and for other users"`
	Pool          string        `json:"pool,omitempty" doc:"the pool whose executors these are"`
	OtherUsers    bool          `json:"other_users,omitempty" doc:"all jobs of other users together"`
	Paused        bool          `json:"paused,omitempty" doc:"its owner has paused it"`
	Tasks         int           `json:"tasks" doc:"tasks, or executors"`
	MemoryBytes   int64         `json:"memory_bytes" doc:"what they were granted"`
	CPUMillicores int64         `json:"cpu_millicores" doc:"what they were granted"`
	Release       string        `json:"release,omitempty" doc:"a command that makes it hold less, or says why it does not"`
}

// MemoryWait is what a task waits for before a phase of its forecast.
type MemoryWait struct {
	Phase  int              `json:"phase" doc:"number of the phase, 1 for the first"`
	Needs  int64            `json:"needs_bytes" doc:"memory that the phase needs in all"`
	Has    int64            `json:"has_bytes" doc:"what the task holds of that: memory that has left does not count"`
	Free   int64            `json:"free_bytes" doc:"memory of its node that is not granted, or has left tasks that stand still"`
	Behind []cluster.TaskID `json:"behind,omitempty" doc:"the tasks of its node that stand in line for memory before it, in their order; omitted if it is the first"`
}

// Shift is a time in which a task is to stand still, so that the demand on its node is leveled.
type Shift struct {
	From time.Time `json:"from" doc:"when it is to stop"`
	To   time.Time `json:"to" doc:"when it is to go on"`
}

// Holder is a task whose container may use memory that another container waits for.
type Holder struct {
	Task  cluster.TaskID `json:"task"`
	Bytes int64          `json:"bytes"` // the most that it may use now
}
