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
		if name, ours := strings.CutPrefix(e.Name(), prefix); ours && e.IsDir() && e.Name() != leaf && e.Name() != filepath.Base(own) {
			names = append(names, name)
		}
	}
	return names
}

// GrantedBeside returns how many bytes of memory each group of a subtree that Beside names is granted: its bound if it contains processes. A
// group without processes or without a bound counts as 0.
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
