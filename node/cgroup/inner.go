package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// innerName is the name of an inner group.
const innerName = prefix + "inner"

// insideV2 are the files of version 2 that an enclosed group has in its inner group: bounds that programs look up in
// their own group, and what the kernel counts beside these bounds.
var insideV2 = []string{"cpu.max", "cpu.stat", "pids.max", "pids.events"}

// Enclose makes an inner group, in the hierarchy of the memory alone. Whoever joins the group from then on is in the
// inner group there. Programs that size themselves by the memory bound of their own group read the inner bound, bytes,
// however little the group has at that moment. In all other respects the two are one Group: the bound that Apply sets,
// and all that is measured, are of both. In version 2 the quota of CPU time and the bound on threads go along, because
// programs look these up, too; and groups below the inner group can have all controllers that groups below the group
// could have.
//
// The inner bound never takes effect: Apply raises it before the bound of the group exceeds it. Nothing lowers it,
// because the kernel would reclaim for it, or kill.
//
// Enclose comes before the first process, and before Apply. On an error the group is as it was. The error is
// ErrUnsupported where that cannot be.
func (g *Group) Enclose(bytes int64) error {
	if err := g.enclose(bytes); err != nil {
		return fmt.Errorf("make a group within group %s: %w", g.name, err)
	}
	return nil
}

func (g *Group) enclose(bytes int64) error {
	version, dir := g.version[Memory], g.dirs[Memory]
	if version == 0 {
		return unsupported(Memory, "memory limits")
	}
	for c, other := range g.dirs {
		if c != Memory && other == dir && version == V1 { // the bounds of that would stay behind
			return unsupported(c, "it shares a hierarchy with the memory")
		}
	}
	inner := filepath.Join(dir, innerName)
	if err := os.Mkdir(inner, 0o755); err != nil {
		return err
	}
	on, err := "", error(nil)
	if version == V2 {
		on, err = turnOnAll(dir)
	}
	if err == nil {
		err = writeFile(filepath.Join(inner, memoryOf[version].limit), memoryOf[version].bound(bytes))
	}
	if err == nil {
		g.inner = inner
		return nil
	}
	_ = unix.Rmdir(inner)
	if on != "" { // A group that turns controllers on for its children takes no processes.
		_ = writeFile(filepath.Join(dir, "cgroup.subtree_control"), strings.ReplaceAll(on, "+", "-"))
	}
	return err
}

// turnOnAll turns on, for the children of dir, all controllers that dir has, or none. It returns what it wrote.
func turnOnAll(dir string) (on string, err error) {
	var all []string
	for _, c := range readWords(filepath.Join(dir, "cgroup.controllers")) {
		if slices.Contains(switchable, Controller(c)) {
			all = append(all, "+"+c)
		}
	}
	on = strings.Join(all, " ")
	return on, writeFile(filepath.Join(dir, "cgroup.subtree_control"), on)
}

// findInner finds the inner group of a group that exists, if it has one.
func (g *Group) findInner() {
	dir, ok := g.dirs[Memory]
	if inner := filepath.Join(dir, innerName); ok && isDir(inner) {
		g.inner = inner
	}
}

// Encloses reports whether the group has an inner group.
func (g *Group) Encloses() bool { return g.inner != "" }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// File returns the path of one of the files that the group has for c; ok is false if the group does not have c.
func (g *Group) File(c Controller, name string) (path string, ok bool) {
	dir, ok := g.dirs[c]
	if g.inner != "" && dir == g.dirs[Memory] && slices.Contains(insideV2, name) {
		dir = g.inner
	}
	return filepath.Join(dir, name), ok
}

// homes returns the directories that the group's processes are in, one per hierarchy.
func (g *Group) homes() []string {
	dirs := g.each()
	for i := range dirs {
		dirs[i] = g.home(dirs[i])
	}
	return dirs
}

// home returns where the processes of the group are, in the hierarchy of one of its directories. There memory.stat is
// right at once: of a group above others, Linux can find out seconds late what has changed below.
func (g *Group) home(dir string) string {
	if g.inner != "" && dir == g.dirs[Memory] {
		return g.inner
	}
	return dir
}

// widen raises the inner bound if the group is about to get a larger one.
func (g *Group) widen(next Write) error {
	files := memoryOf[g.version[Memory]]
	if g.inner == "" || files == nil || next.File != files.limit {
		return nil
	}
	now, ok := parseBound(slurp(g.inner, files.limit)).Get()
	if wanted := parseBound(next.Content).Or(NoLimit); !ok || now >= wanted { // not ok: it is gone, with its processes
		return nil
	}
	return writeFile(filepath.Join(g.inner, files.limit), next.Content)
}
