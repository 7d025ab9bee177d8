package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Hierarchy is one mounted tree of groups.
type Hierarchy struct {
	Version Version
	// Mount is the directory where the hierarchy is mounted, below the file system root given to Discover.
	Mount string
	// Own is the directory of the group that this process was in when Discover ran; Mount if that group is not visible
	// there.
	Own string
}

// Host is what Discover found. It does not change afterwards, and is safe for concurrent use.
type Host struct {
	fsRoot  string
	boot    string
	serves  map[Controller]Hierarchy
	unified Hierarchy // Version is 0 if version 2 is not mounted.
	legacy  bool      // At least one version 1 controller is mounted.
}

// Discover reads /proc/self/mountinfo, /proc/self/cgroup and the files that list controllers below fsRoot ("" or "/"
// for the machine itself; a test hands in a tree of its own). A machine without any cgroup is not an error: its Mode
// is None.
func Discover(fsRoot string) (*Host, error) {
	if fsRoot == "" {
		fsRoot = "/"
	}
	h := &Host{fsRoot: fsRoot, serves: map[Controller]Hierarchy{}}
	mountText, err := os.Open(filepath.Join(fsRoot, "proc/self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("discover cgroups: %w", err)
	}
	defer mountText.Close()
	mounts, err := parseMounts(mountText)
	if err != nil {
		return nil, fmt.Errorf("discover cgroups: read %s: %w", mountText.Name(), err)
	}
	ownFile := filepath.Join(fsRoot, "proc/self/cgroup")
	ownText, err := os.ReadFile(ownFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("discover cgroups: %w", err)
	}
	own, err := parseOwn(string(ownText))
	if err != nil {
		return nil, fmt.Errorf("discover cgroups: read %s: %w", ownFile, err)
	}
	boot, err := os.ReadFile(filepath.Join(fsRoot, "proc/sys/kernel/random/boot_id"))
	if err == nil {
		h.boot = strings.TrimSpace(string(boot))
	}
	h.adopt(mounts, own)
	return h, nil
}

// adopt fills in which hierarchy serves which controller.
func (h *Host) adopt(mounts []mount, own ownPaths) {
	for _, c := range Controllers() {
		if m, ok := h.choose(mounts, own.legacy[c], func(m mount) bool { return slices.Contains(m.controllers, c) }); ok {
			h.serves[c] = m
			h.legacy = true
		}
	}
	u, ok := h.choose(mounts, own.unified, func(m mount) bool { return m.version == V2 })
	if !ok {
		return
	}
	h.unified = u
	// The top lists the controllers that exist; Root finds out which of them we may use.
	offered := readWords(filepath.Join(u.Mount, "cgroup.controllers"))
	for _, c := range switchable {
		if _, taken := h.serves[c]; !taken && slices.Contains(offered, string(c)) {
			h.serves[c] = u
		}
	}
	for _, c := range []Controller{Freezer, CPUAcct} {
		if _, taken := h.serves[c]; !taken {
			h.serves[c] = u
		}
	}
}

// choose picks the mount that shows our own group and the most groups around it: the mount with the shortest root
// at or above own. A mount whose directory does not exist (hidden by another mount) does not count.
func (h *Host) choose(mounts []mount, own string, fits func(mount) bool) (Hierarchy, bool) {
	var best Hierarchy
	bestLength := -1
	for _, m := range mounts {
		if !fits(m) {
			continue
		}
		dir := filepath.Join(h.fsRoot, m.dir)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		below, visible := relative(m.root, own)
		length := len(m.root)
		if !visible {
			length += 1 << 20 // Better than nothing.
		}
		if bestLength >= 0 && length >= bestLength {
			continue
		}
		bestLength = length
		best = Hierarchy{Version: m.version, Mount: dir, Own: dir}
		ownDir := filepath.Join(dir, below)
		if info, err := os.Stat(ownDir); visible && err == nil && info.IsDir() {
			best.Own = ownDir
		}
	}
	return best, bestLength >= 0
}

// relative returns the path of own below root, both as the kernel prints them. A process outside its own cgroup
// namespace has a path that begins with "/.." and is not visible in any mount.
func relative(root, own string) (string, bool) {
	if own == "/.." || strings.HasPrefix(own, "/../") {
		return "/", false
	}
	root, own = path.Clean("/"+root), path.Clean("/"+own)
	if root == "/" {
		return own, true
	}
	if own == root {
		return "/", true
	}
	below, ok := strings.CutPrefix(own, root+"/")
	return "/" + below, ok
}

// Mode returns how the machine is set up.
func (h *Host) Mode() Mode {
	switch {
	case h.legacy && h.unified.Version == V2:
		return Hybrid
	case h.legacy:
		return Legacy
	case h.unified.Version == V2:
		return Unified
	}
	return None
}

// Serves returns the hierarchy that has controller c; ok is false if none has.
func (h *Host) Serves(c Controller) (hierarchy Hierarchy, ok bool) {
	hierarchy, ok = h.serves[c]
	return hierarchy, ok
}

// above yields dir, a directory of the hierarchy, and the directories above it, up to the mount.
func (h Hierarchy) above(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) && dir != h.Mount {
			dir = filepath.Dir(dir)
		}
	}
}

// OwnMemory returns the tightest bound on the memory of this process's own group and of the groups above it, bytes,
// and the group that has it; NoLimit if there is none. The bound at which version 2 slows a group down counts, too.
func (h *Host) OwnMemory() (bytes int64, group string) {
	return h.tightest(Memory, func(v Version, dir string) int64 {
		least := parseBound(slurp(dir, memoryOf[v].limit)).Or(NoLimit)
		if v == V2 {
			least = min(least, parseBound(slurp(dir, "memory.high")).Or(NoLimit))
		}
		return least
	})
}

// OwnCPU returns the tightest quota of CPU time of this process's own group and of the groups above it, millicores
// and at least 1, and the group that has it; NoLimit if there is none. Version 1 refuses a group a quota above it.
func (h *Host) OwnCPU() (millicores int64, group string) {
	return h.tightest(CPU, func(v Version, dir string) int64 {
		words := readWords(filepath.Join(dir, "cpu.max"))
		if v == V1 {
			words = []string{slurp(dir, "cpu.cfs_quota_us"), slurp(dir, "cpu.cfs_period_us")}
		}
		if len(words) != 2 {
			return NoLimit
		}
		quota, period := parseBound(words[0]).Or(NoLimit), parseCount(words[1]).Or(0)
		if quota == NoLimit || period == 0 {
			return NoLimit
		}
		return max(1, quota*1000/period)
	})
}

// tightest returns the least bound on this process's own group and the groups above it, and the first group that has
// it.
func (h *Host) tightest(c Controller, bound func(v Version, dir string) int64) (least int64, group string) {
	least = NoLimit
	hierarchy, ok := h.serves[c]
	if !ok {
		return least, ""
	}
	for dir := range hierarchy.above(hierarchy.Own) {
		if n := bound(hierarchy.Version, dir); n < least {
			least, group = n, relativeTo(hierarchy.Mount, dir)
		}
	}
	return least, group
}

// writable reports whether this process may make directories in dir.
func writable(dir string) error {
	return unix.Access(dir, unix.W_OK|unix.X_OK)
}

// readWords returns the blank-separated words of a file, none if the file cannot be read.
func readWords(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}
