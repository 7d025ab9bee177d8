package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Site is where a subtree of groups is, or would be made.
type Site struct {
	// Above is the path of the group above the subtree, the same in every hierarchy; "/" is the top.
	Above string
	// Unified is the directory of that group in the version 2 hierarchy; empty if the subtree has no part there.
	Unified string
	// Has is the version of each controller that the groups of the subtree have, or would have.
	Has map[Controller]Version
}

// Site returns where Root would make a subtree, and makes nothing. The error is that of Root, as far as it is known
// before controllers are turned on.
func (h *Host) Site(need ...Controller) (Site, error) {
	if h.Mode() == None {
		return Site{}, &NeedError{"no cgroup file system is mounted", ErrUnsupported,
			"mount one, or in a container start it with its own writable cgroups"}
	}
	above, err := h.base()
	if err != nil {
		return Site{}, err
	}
	var offered []string // Root turns on what the group above has.
	if unified := h.child(above).unified; unified != "" {
		offered = readWords(filepath.Join(unified, "cgroup.controllers"))
	}
	return h.site(above, offered, need)
}

// SiteOf returns the site of the subtree at place, as Place returned it. It fails with ErrGone if the subtree no
// longer exists.
func (h *Host) SiteOf(place string, need ...Controller) (Site, error) {
	clean, err := h.there(place)
	if err != nil {
		return Site{}, err
	}
	return h.site(path.Dir(clean), h.turnedOn(clean), need)
}

// ProcessesLeft returns how many more processes and threads the groups above the subtree of a site permit; NoLimit if
// they permit any number, or if no controller bounds them.
func (h *Host) ProcessesLeft(s Site) int64 {
	hierarchy, ok := h.serves[PIDs]
	if !ok {
		return NoLimit
	}
	left := NoLimit
	for dir := range hierarchy.above(filepath.Join(hierarchy.Mount, s.Above)) {
		most, bounded := parseCount(slurp(dir, "pids.max")).Get()
		if now, known := parseCount(slurp(dir, "pids.current")).Get(); bounded && known {
			left = min(left, max(0, most-now))
		}
	}
	return left
}

// site returns the site below a group. offered are the version 2 controllers that groups of the subtree can have.
func (h *Host) site(above string, offered []string, need []Controller) (Site, error) {
	s := Site{Above: above, Unified: h.child(above).unified, Has: map[Controller]Version{}}
	for c, hierarchy := range h.serves {
		if hierarchy.Version == V1 || !slices.Contains(switchable, c) || slices.Contains(offered, string(c)) {
			s.Has[c] = hierarchy.Version
		}
	}
	var missing []string
	for _, c := range sorted(need) {
		if s.Has[c] == 0 {
			missing = append(missing, string(c))
		}
	}
	if len(missing) > 0 {
		return Site{}, lacks(above, strings.Join(missing, ", "))
	}
	return s, nil
}

// there returns the cleaned place of a subtree; the error is ErrGone if the subtree does not exist in every hierarchy.
func (h *Host) there(place string) (clean string, err error) {
	clean = path.Clean("/" + place)
	if !strings.HasPrefix(path.Base(clean), prefix) {
		return "", fmt.Errorf("place %q: must have a last part that begins with %q", place, prefix)
	}
	for _, dir := range h.child(clean).each() {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("open %s: %w", dir, ErrGone)
		}
	}
	return clean, nil
}

// turnedOn returns the version 2 controllers that groups below the one at place have.
func (h *Host) turnedOn(place string) []string {
	unified := h.child(place).unified
	if unified == "" {
		return nil
	}
	return readWords(filepath.Join(unified, "cgroup.subtree_control"))
}

// lacks returns an error that lists the controllers that a subtree below a group does not have.
func lacks(above, missing string) error {
	if above != "/" {
		return &NeedError{"the group " + above + " was delegated without these controllers: " + missing, ErrUnsupported,
			"run it as root outside of that group, or add them to Delegate= of user@.service and log in again"}
	}
	return &NeedError{"this machine lacks these cgroup controllers: " + missing, ErrUnsupported,
		"turn them on on the kernel command line or mount them"}
}
