package cgroup

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// Beside returns the names of the subtrees that other processes made with Root in the same place.
func (r *Root) Beside() (names []string) {
	own := r.dirs[Memory]
	entries, _ := os.ReadDir(filepath.Dir(own))
	for _, e := range entries {
		if name, ours := strings.CutPrefix(e.Name(), prefix); ours && e.IsDir() && e.Name() != leaf &&
			e.Name() != filepath.Base(own) {
			names = append(names, name)
		}
	}
	return names
}

// GrantedBeside returns how many bytes of memory each group of a subtree that Beside names is granted: its bound if
// it contains processes. A group without processes or without a bound counts as 0.
func (r *Root) GrantedBeside(name string) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		top := filepath.Join(filepath.Dir(r.dirs[Memory]), prefix+name)
		groups, _ := os.ReadDir(top) // A subtree that was removed meanwhile has none.
		for _, g := range groups {
			dir, granted := filepath.Join(top, g.Name()), int64(0)
			if !g.IsDir() {
				continue
			}
			if populated(dir) {
				child := Group{dirs: map[Controller]string{Memory: dir}, version: r.version}
				if bytes, ok := child.MemoryLimit().Get(); ok && bytes != NoLimit {
					granted = bytes
				}
			}
			if !yield(granted) {
				return
			}
		}
	}
}

// populated reports whether there are processes in a group or in one below it.
func populated(dir string) (found bool) {
	has := func(dir string) bool { return len(parseProcs(slurp(dir, "cgroup.procs"))) > 0 }
	if isLeaf(dir) {
		return has(dir)
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && has(path) {
			found = true
			return filepath.SkipAll
		}
		return nil // A group that cannot be read was removed meanwhile.
	})
	return found
}

// Leftover returns how much memory is on the account of the root that programs of groups shared which were removed,
// bytes: files in memory, and segments. The kernel goes on to count it for the group above. ok is false if that is
// unknown.
func (r *Root) Leftover() (bytes int64, ok bool) {
	// What a group shares changes meanwhile, and groups come and go: the larger of two readings counts.
	groups := map[string]int64{}
	read := func() {
		names, _ := r.List()
		for _, name := range names {
			group := r.child(name, r.children)
			group.findInner()
			groups[name] = max(groups[name], group.Shared())
		}
	}
	read()
	bytes, ok = counted([]byte(slurp(r.dirs[Memory], "memory.stat")), memoryOf[r.version[Memory]].stat.shared)
	read()
	for _, own := range groups {
		bytes -= own
	}
	return max(0, bytes), ok
}

// Shared returns the memory that programs of the group share, bytes: files in memory, and segments. Once no program
// is left in it, it outlives the group.
func (g *Group) Shared() int64 {
	return field([]byte(slurp(g.home(g.dirs[Memory]), "memory.stat")), memoryOf[g.version[Memory]].stat.shared)
}
