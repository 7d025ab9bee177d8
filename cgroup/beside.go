package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Beside returns how many bytes of memory are granted in each subtree that other processes made with Root in the same place:
// for each name of a subtree, the sum of the bounds of its groups that contain processes. A group without a bound counts as 0.
// A subtree without processes is not listed.
func (r *Root) Beside() map[string]int64 {
	own := r.dirs[Memory]
	entries, err := os.ReadDir(filepath.Dir(own))
	if err != nil {
		return nil
	}
	beside := map[string]int64{}
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), prefix)
		if !ours || !e.IsDir() || e.Name() == leaf || e.Name() == filepath.Base(own) {
			continue
		}
		top := filepath.Join(filepath.Dir(own), e.Name())
		groups, _ := os.ReadDir(top) // A subtree that was removed meanwhile has none.
		for _, g := range groups {
			dir := filepath.Join(top, g.Name())
			if !g.IsDir() || !populated(dir) {
				continue
			}
			child := Group{dirs: map[Controller]string{Memory: dir}, version: r.version}
			if bytes, ok := child.MemoryLimit().Get(); ok && bytes != NoLimit {
				beside[name] += bytes
			}
		}
	}
	return beside
}

// populated reports whether there are processes in a group or in one below it.
func populated(dir string) (found bool) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && len(parseProcs(slurp(path, "cgroup.procs"))) > 0 {
			found = true
			return filepath.SkipAll
		}
		return nil // A group that cannot be read was removed meanwhile.
	})
	return found
}
