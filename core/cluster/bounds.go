package cluster

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/bellows-rm/bellows/core/resource"
)

// The bounds of what a job may request, whether the job comes from a file, a flag, the API or a recording. They are far
// above any sensible value; they keep sums over a whole run from overflowing. resource.Kind.Most bounds the resources
// of one task.
const (
	LongestTime  = 10 * 365 * 24 * time.Hour // a duration, or a time of submission
	MostTasks    = 1 << 30                   // of one stage
	MostSlowdown = 1_000_000
	MostAttempts = 1000 // of one task
	MostWeight   = 1_000_000
	LongestName  = 200 // bytes
	MostDataOn   = 100 // names of nodes
)

// The additional bounds of a job that is run, as opposed to simulated. They keep one job from exhausting a daemon: each
// task costs the daemon a record, and each container costs a process beyond those of the user.
const (
	LeastRunCPU    resource.Amount = 1 // of one task, millicores
	LeastRunMemory                 = resource.MiB
	MostRunTasks                   = 100_000 // of one job
	MostRunStages                  = 10_000
	// LeastHeartbeatTimeout is the shortest heartbeat time-out. A container that is suspended, paused or throttled stands
	// still for a quarter of the time-out at a time, and also while memory is reclaimed from it: a shorter time-out could
	// not be met.
	LeastHeartbeatTimeout = 2 * time.Second
)

// ContainersPerCore is the most containers per core that a daemon puts on a node. Apart from its programs, each
// container costs the node a supervisor, a control group and a record, and costs the daemon a booking in the step that
// starts it.
const ContainersPerCore = 100

// IsName reports whether text can be a name that people read: one line of 1 to LongestName bytes, all of them visible
// characters.
func IsName(text string) bool {
	if text == "" || len(text) > LongestName || strings.TrimSpace(text) != text {
		return false
	}
	for _, c := range text {
		if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			return false
		}
	}
	return true
}

// CheckName returns an error if text is neither empty nor a name. what says in the error what is named.
func CheckName(what, text string) error {
	if text == "" || IsName(text) {
		return nil
	}
	return fmt.Errorf("%s %s: must be at most %d bytes of printable characters, with no space at either end", what,
		clipName(text), LongestName)
}

// clipName quotes a text that is not a name, for a message of one line.
func clipName(text string) string {
	if len(text) > LongestName {
		text = text[:60] + "..."
	}
	return fmt.Sprintf("%q", text)
}
