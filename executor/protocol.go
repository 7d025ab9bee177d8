// Package executor is the protocol of pools of warm executors, and a library for both of its sides in Go: executors,
// which run tasks of one application after another without being started again, and applications, which submit tasks.
// It imports nothing of this module, so that programs of users can import it. docs/reference/pool-protocol.md describes
// the protocol for other languages.
package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Every message of the protocol is the body of a POST request, or of its answer: a JSON object, a line feed, and then
// the payload, which is whatever bytes the object says follow. Arguments and results of tasks are payload: bellows
// passes them on and never reads them. Media type is the type of such a body.
const MediaType = "application/vnd.bellows.message"

// Environment variables of an executor that bellows starts.
const (
	SocketVariable   = "BELLOWS_SOCKET"   // path of the daemon's socket
	PoolVariable     = "BELLOWS_POOL"     // name of the pool
	ExecutorVariable = "BELLOWS_EXECUTOR" // number of the executor in its pool
	// path of a file with the secret of this executor, which its owner alone can read
	SecretVariable = "BELLOWS_EXECUTOR_SECRET_FILE"
)

// Registration is what an executor says when it begins, and again whenever its lease is gone: POST
// /v1/pools/{pool}/executors. The answer is a Lease.
type Registration struct {
	Executor int    `json:"executor"` // as in ExecutorVariable
	Secret   string `json:"secret"`
	// Language is for people: what the functions of tasks are written in, such as go or python.
	Language string `json:"language"`
	PID      int    `json:"pid,omitempty"`
	// Attaches says that the executor understands DoAttach.
	Attaches bool `json:"attaches,omitempty"`
	// Running is the task that the executor runs at present, if an earlier lease ended meanwhile: of a daemon that ended.
	Running *Held `json:"running,omitempty"`
}

// Held is a task that an executor runs, or has run, under an earlier lease.
type Held struct {
	Key   string `json:"key"`   // of its application
	Stage int    `json:"stage"` // of the application, from 0
	Task  int    `json:"task"`  // of the stage, from 0
	Run   int    `json:"run"`   // of the task, from 1
	// Attachment is the number of the attachment that the executor serves, in place of a task; 0 if it runs a task.
	Attachment int64 `json:"attachment,omitempty"`
}

// Lease is good until an executor or an application has sent nothing for its length. A request that waits for its
// answer keeps the lease. A message with a lease that has ended is answered with status 410 (gone): register again.
type Lease struct {
	Lease  string `json:"lease"` // secret: whoever has it, speaks for its holder
	Length int64  `json:"length_ms"`
	// Application is the number of the application; 0 in the lease of an executor.
	Application int64 `json:"application,omitempty"`
}

// Next asks for the next task, and reports the last: POST /v1/pools/{pool}/executors/{executor}/next. The answer, a
// Work, comes as soon as there is work, or after some seconds. A report that was received is never counted twice: the
// request can be sent again.
type Next struct {
	Lease string  `json:"lease"`
	Done  *Report `json:"done,omitempty"`
	// Memory is the resident memory of the executor in bytes; 0 is unknown.
	Memory int64 `json:"memory_bytes,omitempty"`
	// Attached is the number of the attachment that the executor serves, 0 if none; Released says that it knows that
	// this is to end. The answer comes at once if the pool wants something else.
	Attached int64 `json:"attached,omitempty"`
	Released bool  `json:"released,omitempty"`
	// Keeps are the keys of the applications of which the executor keeps something for their next attachment.
	Keeps []string `json:"keeps,omitempty"`
}

// Report says how a task ended. The payload of Next is its result, followed by its output.
type Report struct {
	Work      int64   `json:"work"` // of the Work that ended
	Failed    bool    `json:"failed,omitempty"`
	Error     string  `json:"error,omitempty"`       // of a failed task: what people should read, such as a stack trace
	Cause     Cause   `json:"cause,omitempty"`       // of a failed attachment; CauseFailed if it is left out
	Seconds   float64 `json:"seconds"`               // from the first line of the task to its end
	Size      int     `json:"size"`                  // of the result, bytes
	Output    int     `json:"output_size,omitempty"` // of what the task printed, bytes; at most MostOutput, the end of it
	Truncated bool    `json:"output_truncated,omitempty"`
}

// MostResult bounds the result of a task, in bytes. A larger one is a failed task.
const MostResult = 32 << 20

// MostOutput bounds what is kept of the output of one task, in bytes.
const MostOutput = 64 << 10

// What a Work requests of an executor.
const (
	DoRun  = "run"  // run a task, and report it with the next Next
	DoWait = "wait" // nothing: ask again
	DoEnd  = "end"  // end the process: the pool shrinks, or the executor is to be replaced
	// An executor serves an application that starts its own tasks from DoAttach on. It asks for more with Next
	// meanwhile. DoRelease says that its application is to give it back: it should be left when the tasks that run there
	// have ended. The attachment has ended when the executor reports it, or when the application has given it back: then
	// the executor gets DoPark or its next work. Before it does anything else it ends what it serves. It may keep
	// something of the application until DoForget.
	DoAttach  = "attach"
	DoRelease = "release"
	DoPark    = "park"
	DoForget  = "forget" // the application with the key of Task has ended
)

// Work is an answer to Next. The payload contains the arguments of the task.
type Work struct {
	Do  string `json:"do"`
	Why string `json:"why,omitempty"` // of DoEnd and DoRelease, for people
	// number of this run or attachment, good for one Report; no two are equal in a pool
	Work        int64  `json:"work,omitempty"`
	Application int64  `json:"application,omitempty"` // number of the application
	Name        string `json:"name,omitempty"`        // of the application
	Task        Held   `json:"task,omitzero"`
	Function    string `json:"function,omitempty"` // as the application named it: MODULE:FUNCTION for Python
	// Path is a directory in which Python looks for the module first, and its working directory meanwhile; empty is that
	// of the pool. It must be absolute.
	Path string `json:"path,omitempty"`
	// Fresh says that nothing of other applications may be in the process: it must have run no task of another one.
	Fresh bool `json:"fresh,omitempty"`
	Size  int  `json:"size"` // of the arguments, bytes; of DoAttach, of what the application enrolled with
}

// Beat keeps the lease while a task runs: POST /v1/pools/{pool}/executors/{executor}/beat, at least three times in
// the length of a lease. The answer is a BeatAnswer.
type Beat struct {
	Lease  string `json:"lease"`
	Work   int64  `json:"work,omitempty"` // what runs
	Memory int64  `json:"memory_bytes,omitempty"`
}

// BeatAnswer says whether the running task is still wanted.
type BeatAnswer struct {
	// Cancel says that no application waits for the result: the executor may end the task, and must then report it as
	// failed. If the task has not ended some seconds later, the executor is ended.
	Cancel bool `json:"cancel,omitempty"`
}

// Enrolment is what an application says when it begins: POST /v1/pools/{pool}/applications. The answer is a Lease. An
// application whose lease is gone enrols again with the same key, and submits again whatever it has no result of.
type Enrolment struct {
	Key    string  `json:"key"` // chosen by the application, unique in the pool: a long random text
	Name   string  `json:"name,omitempty"`
	Weight float64 `json:"weight,omitempty"` // share of the executors relative to other applications; 0 counts as 1
	Queue  string  `json:"queue,omitempty"`  // of the pool's policy
	Fresh  bool    `json:"fresh,omitempty"`  // see Work
	// Attempts is how many runs of a task may end with the loss of their executor, or fail with Retry; 0 counts as 4.
	Attempts int `json:"attempts,omitempty"`
	// Drives says that the application starts its own tasks. It submits none: it demands executors, which are attached
	// to it. The payload is whatever these are to know, such as its address: at most MostAttach bytes. It is cancelled
	// after Attempts attachments in a row that failed, over 5 s at least, and on 2 executors at least if there are 2.
	Drives bool `json:"drives,omitempty"`
}

// MostAttach bounds the payload of an Enrolment, in bytes.
const MostAttach = 1 << 20

// Growth adds tasks to an application: POST /v1/pools/{pool}/applications/{application}/tasks. The payload contains
// the arguments of all its tasks, one after the other. The answer is a Room. Growths are numbered by the application
// from 1; one that was received is ignored when it comes again. One with the number 0 adds nothing, and keeps the
// lease.
type Growth struct {
	Lease  string        `json:"lease"`
	Number int64         `json:"number"`
	Stages []StageGrowth `json:"stages,omitempty"`
	// Closed says that the application will not grow any more. It ends when all its tasks have ended.
	Closed bool `json:"closed,omitempty"`
	// GivesBack are the attachments on which an application that drives has no task any more.
	GivesBack []int64 `json:"gives_back,omitempty"`
	// Holds are the attachments that it has from before it enrolled again. Of each it hears that it is assigned, or has
	// ended.
	Holds []Attachment `json:"holds,omitempty"`
}

// Attachment is an executor that is attached to a stage of an application which starts its own tasks.
type Attachment struct {
	Attachment int64 `json:"attachment"`
	Executor   int   `json:"executor"`
	Stage      int   `json:"stage"`
}

// StageGrowth adds tasks to a stage. If the stage is the number of stages so far, it begins that stage.
type StageGrowth struct {
	Stage    int    `json:"stage"`
	Name     string `json:"name,omitempty"`     // of a new stage
	After    []int  `json:"after,omitempty"`    // of a new stage: the stages all of whose tasks must have succeeded before
	Function string `json:"function,omitempty"` // of a new stage
	Path     string `json:"path,omitempty"`     // of a new stage; see Work
	Sizes    []int  `json:"sizes,omitempty"`    // of the arguments of each new task, bytes
	// First is the index of the first task of a new stage. A stage that is submitted again to a new daemon may leave out
	// tasks whose results the application has: those before First, and those whose size is -1.
	First int `json:"first,omitempty"`
	// Demand is how many tasks of the stage run or could run now, in an application that drives: it could use an
	// executor for each.
	Demand int `json:"demand,omitempty"`
	// Tasks is how many tasks a stage will have that demands nothing yet; stages before it have more weight then. 0 is
	// unknown.
	Tasks int `json:"tasks,omitempty"`
	// Anew gives a stage another Name, After and Tasks, in an application that drives: a stage that has ended can be
	// another one from now on, which calls the same function. Executors that are attached stay.
	Anew bool `json:"anew,omitempty"`
}

// Room says how much of an application's arguments waits in the daemon, and how much may.
type Room struct {
	Held int64 `json:"held_bytes"`
	Most int64 `json:"most_bytes"` // more is refused with status 429, until there is room
}

// Cancellation cancels an application: DELETE /v1/pools/{pool}/applications/{application}. The answer is an empty
// object. Without a body it cancels the application that has this number now.
type Cancellation struct {
	// Lease says which application is meant, because another daemon uses its number again; 410 if the lease has ended.
	Lease string `json:"lease,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Collect asks for results: POST /v1/pools/{pool}/applications/{application}/results. The answer, Results, comes as
// soon as there are some, or after some seconds. Results that were not confirmed come again.
type Collect struct {
	Lease string `json:"lease"`
	// After confirms the results up to a number: they are forgotten.
	After int64 `json:"after"`
}

// Results are results of tasks in the order in which they ended. The payload contains the result and the output of
// each, one after the other.
type Results struct {
	Results []Result `json:"results"`
	// Changes are of the executors of an application that drives, in the order in which they happened.
	Changes []Change `json:"changes,omitempty"`
	// Waiting and Running count the tasks that have not ended.
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	// Ended says that the application has closed and all its tasks have ended, or that it was cancelled: Why says so.
	Ended bool   `json:"ended,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Result is the end of a task. Of each task there is one.
type Result struct {
	Number    int64   `json:"number"` // 1, 2, and so on
	Stage     int     `json:"stage"`
	Task      int     `json:"task"`
	Run       int     `json:"run"` // how often the task was run, at least 1
	Executor  int     `json:"executor"`
	Failed    bool    `json:"failed,omitempty"`
	Error     string  `json:"error,omitempty"`
	Seconds   float64 `json:"seconds"`
	Warm      bool    `json:"warm"`   // whether the executor had run a task of the same function before
	Waited    float64 `json:"waited"` // seconds from when the task could run to its start
	Size      int     `json:"size"`
	Output    int     `json:"output_size,omitempty"`
	Truncated bool    `json:"output_truncated,omitempty"`
}

// What happens to an attachment.
const (
	Assigned = "assigned" // the executor is attached, or will be at once
	// the application is to give it back when the tasks that run there have ended. Until then it keeps it
	AskedFor = "asked"
	Ended    = "ended" // it was given back, the executor has ended it, or was lost
)

// Change is what has happened to an attachment. Each is assigned, and has ended, exactly once.
type Change struct {
	Number int64  `json:"number"` // 1, 2, and so on, together with results
	What   string `json:"what"`
	Attachment
	Failed bool `json:"failed,omitempty"` // it has ended because the executor failed, or could not be attached
	// Cause is why it has ended; empty if the application gave it back, or the executor left it without a failure.
	Cause Cause  `json:"cause,omitempty"`
	Why   string `json:"why,omitempty"` // the same for people, of every change
}

// Cause is why an attachment has ended that its application did not give back.
type Cause string

// Causes. What ran there may be at fault in CauseLost, CauseMemory and CauseFailed, and is not in the others.
const (
	CauseLost        Cause = "lost"        // the process of the executor has ended, or has begun anew
	CauseMemory      Cause = "memory"      // the executor, or what served there, was ended for want of memory
	CauseLease       Cause = "lease"       // nothing was heard of the executor for the length of its lease
	CauseTaken       Cause = "taken"       // bellows has taken the executor or ended it, or cancelled the application
	CauseUnreachable Cause = "unreachable" // the executor cannot reach the application, or not any more
	CauseRefused     Cause = "refused"     // the executor cannot serve such an application, however often it is tried
	CauseFailed      Cause = "failed"      // what serves the application on the executor has failed
)

// mostHead bounds the JSON object of a message.
const mostHead = 16 << 20

// Encode returns a message: head as JSON, a line feed, and the payload.
func Encode(head any, payload ...[]byte) ([]byte, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("write a message: %w", err)
	}
	size := len(text) + 1
	for _, p := range payload {
		size += len(p)
	}
	message := append(make([]byte, 0, size), text...)
	message = append(message, '\n')
	for _, p := range payload {
		message = append(message, p...)
	}
	return message, nil
}

// Decode reads the JSON object of a message into head, and returns the payload, which is a part of the message.
func Decode(message []byte, head any) (payload []byte, err error) {
	text, payload, _ := bytes.Cut(message, []byte("\n"))
	if len(text) > mostHead {
		return nil, fmt.Errorf("message: its first line has %d bytes, more than %d", len(text), mostHead)
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) { // which package json takes for an empty object
		return nil, fmt.Errorf("message: its first line must be a JSON object, but is null")
	}
	if err := json.Unmarshal(text, head); err != nil {
		return nil, fmt.Errorf("message: its first line must be a JSON object: %w", err)
	}
	return payload, nil
}

// Read reads a message as Decode does, of at most some bytes. length is how long it should be, negative if that is
// not known.
func Read(r io.Reader, most, length int64, head any) (payload []byte, err error) {
	if length > most {
		return nil, fmt.Errorf("message: %d bytes, more than %d", length, most)
	}
	var message bytes.Buffer
	if length > 0 {
		message.Grow(int(min(length, firstRead)) + bytes.MinRead)
	}
	if _, err := message.ReadFrom(io.LimitReader(r, most+1)); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	if int64(message.Len()) > most {
		return nil, fmt.Errorf("message: more than %d bytes", most)
	}
	return Decode(message.Bytes(), head)
}

// firstRead bounds the memory that is taken for a message before any of it has come, in bytes.
const firstRead = 4 << 20

// Duration returns the length of l.
func (l *Lease) Duration() time.Duration { return time.Duration(l.Length) * time.Millisecond }
