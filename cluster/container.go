package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// ContainerID names one container: one run of one task. It is never given twice.
type ContainerID struct {
	Task TaskID `json:"task"`
	// Run counts the starts of the task from 1, those included that came to nothing.
	Run int `json:"run"`
}

// String prints "job-stage-index-run", for example "7-0-12-1": letters, digits and dashes only, so that it serves as the
// name of a file or of a group of processes.
func (c ContainerID) String() string {
	return fmt.Sprintf("%d-%d-%d-%d", c.Task.Job, c.Task.Stage, c.Task.Index, c.Run)
}

// ParseContainerID reads what String prints.
func ParseContainerID(text string) (ContainerID, error) {
	var c ContainerID
	_, err := fmt.Sscanf(text, "%d-%d-%d-%d", &c.Task.Job, &c.Task.Stage, &c.Task.Index, &c.Run)
	if err != nil || c.String() != text {
		return ContainerID{}, fmt.Errorf("container %q: must be JOB-STAGE-INDEX-RUN", text)
	}
	return c, nil
}

// Credentials say with whose rights something runs.
type Credentials struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"` // supplementary groups
	User   string   `json:"user,omitempty"`   // name of UID, for people; empty if unknown
}

// Launch is what runs in a container. All placeholders are filled in.
type Launch struct {
	// Args are the program and its arguments. A program without a slash is looked up along PATH of Env.
	Args []string `json:"args"`
	// Env is the whole environment, "NAME=value".
	Env []string `json:"env,omitempty"`
	// Dir is the working directory, an absolute path.
	Dir string      `json:"dir"`
	As  Credentials `json:"as"`
	// Input says that the standard input comes from somebody who is connected. Stdin is the file that it is otherwise, relative to
	// Dir; empty is none.
	Input bool   `json:"input,omitempty"`
	Stdin string `json:"stdin,omitempty"`
	// Inherited is what the program has from its submitter; nil is a umask of 022, and the rest from the daemon.
	Inherited *Inherited `json:"inherited,omitempty"`
	// Timeout is how long the program may run, standing still included; 0 is for ever.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Tasks is how many tasks the job has, which share what is kept of its output; 0 is one.
	Tasks int `json:"tasks,omitempty"`
	// Stdout and Stderr are the files that the output is appended to, absolute paths; their folders are made.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Exit is how a container ended.
type Exit struct {
	// Code is the exit code of the program: 128 + Signal if a signal ended it, 124 if its time limit did, 126 if it could
	// not be executed and 127 if it was not found.
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
	// TimeLimit is the time limit that ended it; 0 if none did.
	TimeLimit time.Duration `json:"time_limit_ns,omitempty"`
	// Left counts processes that were still there when the program ended by itself, and were ended with it.
	Left int64 `json:"left_processes,omitempty"`
	// OOMKills counts processes of the container that the kernel killed for memory.
	OOMKills int64 `json:"oom_kills,omitempty"`
	// Peak is the most memory, page cache included, that the container ever held; 0 is unknown.
	Peak    resource.Amount `json:"peak_memory_bytes,omitempty"`
	CPUTime time.Duration   `json:"cpu_time_ns,omitempty"`
	// Started and Ended are when the program began and ended; Started is 0 if it never began.
	Started timeline.Time `json:"started_ns,omitempty"`
	Ended   timeline.Time `json:"ended_ns,omitempty"`
}

// Reading is one sample of a running container. A value that is not known is nil.
type Reading struct {
	// Memory is anonymous memory, page cache and kernel memory together, in bytes; Anonymous its first part; Swap lies
	// beside it. Peak is the largest Memory so far.
	Memory    *int64 `json:"memory_bytes,omitempty"`
	Anonymous *int64 `json:"anonymous_bytes,omitempty"`
	Swap      *int64 `json:"swap_bytes,omitempty"`
	Peak      *int64 `json:"peak_memory_bytes,omitempty"`
	// Limit bounds Memory, in bytes.
	Limit *int64 `json:"limit_bytes,omitempty"`
	// CPUTime is what was used so far, in nanoseconds.
	CPUTime *int64 `json:"cpu_time_ns,omitempty"`
	// Read and Written are bytes from and to disks so far.
	Read    *int64 `json:"read_bytes,omitempty"`
	Written *int64 `json:"written_bytes,omitempty"`
	// Processes counts the processes inside.
	Processes *int64 `json:"processes,omitempty"`
	// State is what the memory manager lets the container do; 0 for a REGULAR container that runs, with which it does nothing.
	// Why is one clause on why the memory manager last acted, Since when that was.
	State ContainerState `json:"state,omitempty"`
	Why   string         `json:"why,omitempty"`
	Since time.Time      `json:"since,omitzero"`
}

// ContainerState is what a memory manager lets a container do.
type ContainerState uint8

const (
	ContainerRunning   ContainerState = iota + 1 // FLEX: its programs run
	ContainerSuspended                           // FLEX: its programs stand still, but for breaths to send heartbeats
	ContainerWaiting                             // it has not started, for want of memory
)

var containerStateNames = [...]string{"", "running", "suspended", "waiting"}

func (s ContainerState) String() string { return containerStateNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s ContainerState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *ContainerState) UnmarshalText(text []byte) error {
	i := slices.Index(containerStateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("container state %q: unknown", text)
	}
	*s = ContainerState(i)
	return nil
}
