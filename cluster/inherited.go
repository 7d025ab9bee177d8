package cluster

import (
	"fmt"
	"maps"
	"slices"
)

// Inherited is what a program has from whoever starts it, beside its rights: here from whoever submitted it, not from the daemon.
type Inherited struct {
	// Umask are the permissions that files it makes do not get, 0 to 0o777.
	Umask uint32 `json:"umask"`
	// Nice is how far it steps back from the processor, -20 to 19.
	Nice int `json:"nice"`
	// Limits bound what a process may use, by the name in setrlimit(2) in small letters, such as nofile.
	Limits map[string]ResourceLimit `json:"limits,omitempty"`
}

// ResourceLimit is a limit that holds and one up to which it may be raised; -1 is none.
type ResourceLimit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}

// LimitNames are the limits of a process, in the order of their numbers.
var LimitNames = []string{"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks", "sigpending",
	"msgqueue", "nice", "rtprio", "rttime"}

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
