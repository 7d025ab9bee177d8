package cluster

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// ContainerID names one container: one run of one task. No ID is reused.
type ContainerID struct {
	Task TaskID `json:"task"`
	// Run counts the starts of the task from 1, including starts that failed.
	Run int `json:"run"`
}

// String prints "job-stage-index-run", for example "7-0-12-1". It contains only letters, digits and dashes, so that it
// can name a file or a control group.
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

// Credentials are the user and groups that a program runs as.
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
	// Input says that the standard input comes from a connected client. Otherwise Stdin is the file of the standard
	// input, relative to Dir; empty means none.
	Input bool   `json:"input,omitempty"`
	Stdin string `json:"stdin,omitempty"`
	// Inherited is what the program inherits from its submitter; nil is a umask of 022 and everything else from the
	// daemon.
	Inherited *Inherited `json:"inherited,omitempty"`
	// PrivateTmp and NoNetwork are those of the Command.
	PrivateTmp bool `json:"private_tmp,omitempty"`
	NoNetwork  bool `json:"no_network,omitempty"`
	// Timeout is how long the program may run, including time suspended; 0 is no limit.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Most is the memory that programs in a FLEX container may count on, bytes: they see it as the limit of their control
	// group, where the machine can show it. 0 in a REGULAR container, whose limit they see.
	Most resource.Amount `json:"max_memory_bytes,omitempty"`
	// Tasks is the number of tasks of the job, which share the space for the job's stored output; 0 counts as 1.
	Tasks int `json:"tasks,omitempty"`
	// Stdout and Stderr are the files to which the output is appended, absolute paths; missing folders are created. They
	// are empty if the backend has no files in common with its driver: see Capabilities.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Exit is the end of a container.
type Exit struct {
	Code      int           `json:"code" doc:"exit code: 128 + signal if a signal ended it, 124 if its time limit did, 126 if it could not be executed, 127 if it was not found"`
	Signal    int           `json:"signal,omitempty" doc:"the signal that ended it"`
	TimeLimit time.Duration `json:"time_limit_ns,omitempty" doc:"the time limit that ended it; omitted if none did"`
	Left      int64         `json:"left_processes,omitempty" doc:"processes that remained when the program ended by itself, and were killed"`
	OOMKills  int64         `json:"oom_kills,omitempty" doc:"processes that the kernel killed for lack of memory"`
	Refused   int64         `json:"refused_processes,omitempty" doc:"processes and threads that the kernel refused because the container had as many as it may"`
	// Peak is the container's largest use of memory, including page cache; 0 is unknown.
	Peak resource.Amount `json:"peak_memory_bytes,omitempty" doc:"largest use of memory, page cache included; omitted if unknown"`
	// Held is what it needed at least, with what was in swap, when it ended for want of memory, or to give its room to
	// others; 0 is unknown.
	Held resource.Amount `json:"held_memory_bytes,omitempty" doc:"memory in use, with swap, when it ended for want of memory or to give its room to others; omitted if it ended otherwise"`
	// Quota is the memory quota of its user if the container ended for want of memory and could grow no more because of
	// it; else 0.
	Quota resource.Amount `json:"memory_quota_bytes,omitempty" doc:"the memory quota of its user, if that was used up when it ended for want of memory; else omitted"`
	// Used is the most that the container held, as far as was measured, without page cache but with what was in swap; 0
	// is unknown. It is a lower bound: of what grows and shrinks between two samples, the largest process is seen.
	Used    resource.Amount `json:"used_memory_bytes,omitempty" doc:"the most that it held in memory and in swap, without page cache, by samples and its largest process; omitted if unknown"`
	CPUTime time.Duration   `json:"cpu_time_ns,omitempty"`
	// Started and Ended are when the program began and ended; Started is 0 if it never began.
	Started timeline.Time `json:"started_ns,omitempty" doc:"when the program began; omitted if it never did"`
	Ended   timeline.Time `json:"ended_ns,omitempty" doc:"when it ended"`
}

// Reading is one sample of a running container. An unknown value is nil.
type Reading struct {
	// Memory is anonymous memory, page cache and kernel memory together, in bytes; Anonymous is the first of them.
	// Memory does not include Swap. Peak is the largest Memory so far.
	Memory    *int64 `json:"memory_bytes,omitempty" doc:"memory with page cache and memory of the kernel, without swap"`
	Anonymous *int64 `json:"anonymous_bytes,omitempty" doc:"memory without page cache"`
	Swap      *int64 `json:"swap_bytes,omitempty" doc:"bytes in swap"`
	Peak      *int64 `json:"peak_memory_bytes,omitempty" doc:"largest memory_bytes so far"`
	// Limit bounds Memory, in bytes.
	Limit     *int64 `json:"limit_bytes,omitempty" doc:"memory limit now"`
	CPUTime   *int64 `json:"cpu_time_ns,omitempty" doc:"CPU time so far"`
	Read      *int64 `json:"read_bytes,omitempty" doc:"bytes read from disks so far"`
	Written   *int64 `json:"written_bytes,omitempty" doc:"bytes written to disks so far"`
	Processes *int64 `json:"processes,omitempty" doc:"number of processes"`
	// State is what the memory manager lets the container do; 0 for a running REGULAR container, which the memory
	// manager leaves alone. Why is one clause on the memory manager's last action, Since is the time of that action.
	State ContainerState `json:"state,omitempty" doc:"running or suspended for class FLEX; waiting for any class while the program has not begun because its node lacks memory; else omitted"`
	Why   string         `json:"why,omitempty" doc:"one clause on why the memory manager last acted"`
	Since time.Time      `json:"since,omitzero" doc:"when the container was suspended, resumed, or began to wait"`
	// LimitShown says of a FLEX container that its programs read Limit of the moment as the bound of their control group,
	// and not what the container may have, because it has no inner group.
	LimitShown bool `json:"limit_shown,omitempty" doc:"of class FLEX: whether its programs read limit_bytes of the moment as all that they may have, because no inner control group could be made"`
}

// ContainerState is the state in which a memory manager keeps a container.
type ContainerState uint8

const (
	ContainerRunning   ContainerState = iota + 1 // FLEX: its programs run
	ContainerSuspended                           // FLEX: its programs stand still, except for breaths to send heartbeats
	ContainerWaiting                             // it has not started, for lack of memory
)

var containerStateNames = [...]string{"", "running", "suspended", "waiting"}

func (s ContainerState) String() string { return containerStateNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s ContainerState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *ContainerState) UnmarshalText(text []byte) error {
	return ParseName(s, containerStateNames[:], 0, text, "container state")
}
