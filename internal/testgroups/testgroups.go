// Package testgroups finds the control groups of a daemon that is tested.
package testgroups

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/node/cgroup"
)

// supervisorsGroup is the name of the control group of the supervisors; all others are those of containers.
const supervisorsGroup = "supervisors"

// open returns the control groups of the daemon with the given state directory, and their names.
func open(t *testing.T, state string) (root *cgroup.Root, names []string) {
	t.Helper()
	place, err := os.ReadFile(filepath.Join(state, "cgroup"))
	if err != nil {
		t.Fatal(err)
	}
	host, err := cgroup.Discover("")
	if err != nil {
		t.Fatal(err)
	}
	if root, err = host.OpenRoot(strings.TrimSpace(string(place))); err != nil {
		t.Fatal(err)
	}
	if names, err = root.List(); err != nil {
		t.Fatal(err)
	}
	return root, names
}

// Count returns how many control groups the daemon with the given state directory has.
func Count(t *testing.T, state string) int {
	t.Helper()
	_, names := open(t, state)
	return len(names)
}

// Busy returns the control groups that contain processes: those of containers, or that of the supervisors.
func Busy(t *testing.T, state string, supervisors bool) (groups []*cgroup.Group) {
	t.Helper()
	root, names := open(t, state)
	for _, name := range names {
		g, err := root.Open(name)
		if err != nil || (name == supervisorsGroup) != supervisors {
			continue // it may just have gone
		}
		if pids, err := g.Procs(); err == nil && len(pids) > 0 { // empty ones are being made or removed
			groups = append(groups, g)
		}
	}
	return groups
}
