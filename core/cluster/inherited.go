package cluster

import (
	"fmt"
	"maps"
	"slices"
)

// Inherited is what a program inherits, apart from its credentials: from the submitter, not from the daemon.
type Inherited struct {
	// Umask are the permission bits that are cleared on files that the program creates, 0 to 0o777.
	Umask uint32 `json:"umask"`
	// Nice is the scheduling priority, -20 (most favourable) to 19.
	Nice int `json:"nice"`
	// CPUs are the numbers of the CPUs on which it runs, ascending; empty is every CPU that the daemon may use.
	CPUs []int `json:"cpus,omitempty"`
	// Limits bound what a process may use, keyed by the name in setrlimit(2) in lower case, such as nofile.
	Limits map[string]ResourceLimit `json:"limits,omitempty"`
}

// MostCPUNumber is the largest number of a CPU that CPUs may have.
const MostCPUNumber = 1023

// ResourceLimit is the limit in force and the one up to which the process may raise it; -1 is unlimited.
type ResourceLimit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}

// LimitNames are the resource limits of a process, in the kernel's numbering.
var LimitNames = []string{"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks",
	"sigpending", "msgqueue", "nice", "rtprio", "rttime"}

// Check returns an error that names the first field that is out of range.
func (h *Inherited) Check() error {
	switch {
	case h == nil:
		return nil
	case h.Umask > 0o777:
		return fmt.Errorf("umask %#o: must be 0 to 0o777", h.Umask)
	case h.Nice < -20 || h.Nice > 19:
		return fmt.Errorf("nice %d: must be -20 to 19", h.Nice)
	}
	for i, cpu := range h.CPUs {
		if cpu < 0 || cpu > MostCPUNumber || i > 0 && cpu <= h.CPUs[i-1] {
			return fmt.Errorf("cpus %d: must be the numbers of CPUs, 0 to %d, ascending", cpu, MostCPUNumber)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Limits)) {
		l := h.Limits[name]
		switch {
		case !slices.Contains(LimitNames, name):
			return fmt.Errorf("limit %q: must be one of %v", name, LimitNames)
		case l.Soft < -1 || l.Hard < -1:
			return fmt.Errorf("limit %s %d and %d: must be at least 0, or -1 for none", name, l.Soft, l.Hard)
		case l.Hard >= 0 && (l.Soft < 0 || l.Soft > l.Hard):
			return fmt.Errorf("limit %s %d: must be at most the hard limit, %d", name, l.Soft, l.Hard)
		}
	}
	return nil
}
