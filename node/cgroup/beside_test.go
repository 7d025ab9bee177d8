package cgroup

import (
	"maps"
	"path/filepath"
	"testing"
)

// TestBeside: bounds of other subtrees' groups that contain processes count. Empty groups, groups without a bound, our
// own groups and directories that are no subtrees do not.
func TestBeside(t *testing.T) {
	for version, file := range map[Version]string{V1: memoryV1, V2: "memory.max"} {
		root := tree(t, files{
			"bellows-own/7-0-0-1/cgroup.procs":         "17\n",
			"bellows-own/7-0-0-1/" + file:              "1000\n",
			"bellows-other/supervisors/cgroup.procs":   "18\n",
			"bellows-other/supervisors/" + file:        map[Version]string{V1: "9223372036854771712\n", V2: "max\n"}[version],
			"bellows-other/1-0-0-1/cgroup.procs":       "19\n",
			"bellows-other/1-0-0-1/" + file:            "2000\n",
			"bellows-other/2-0-0-1/cgroup.procs":       "",
			"bellows-other/2-0-0-1/" + file:            "3000\n",
			"bellows-other/2-0-0-1/below/cgroup.procs": "20\n21\n",
			"bellows-other/3-0-0-1/cgroup.procs":       "",
			"bellows-other/3-0-0-1/" + file:            "4000\n",
			"bellows-left/1-0-0-1/cgroup.procs":        "",
			"bellows-left/1-0-0-1/" + file:             "5000\n",
			"bellows-self/cgroup.procs":                "22\n",
			"system.slice/a/cgroup.procs":              "23\n",
			"system.slice/a/" + file:                   "6000\n",
		})
		r := &Root{Group: &Group{dirs: map[Controller]string{Memory: filepath.Join(root, "bellows-own")},
			version: map[Controller]Version{Memory: version}}}
		got := map[string]int64{}
		for _, name := range r.Beside() {
			for bytes := range r.GrantedBeside(name) {
				got[name] += bytes
			}
		}
		if want := map[string]int64{"other": 5000, "left": 0}; !maps.Equal(got, want) {
			t.Errorf("version %v: %v, want %v", version, got, want)
		}
	}
}

// TestLeftover: of the memory that programs shared, what no group of a subtree has is left over.
func TestLeftover(t *testing.T) {
	for version, word := range map[Version]string{V1: "total_shmem", V2: "shmem"} {
		root := tree(t, files{
			"bellows-own/memory.stat":             word + " 1000\n",
			"bellows-own/supervisors/memory.stat": word + " 0\n",
			"bellows-own/7-0-0-1/memory.stat":     "anon 5000\n" + word + " 100\n",
			"bellows-own/8-0-0-1/memory.stat":     word + " 200\n",
			"bellows-own/8-0-0-1/in/memory.stat":  word + " 50\n", // which the group above counts
		})
		has := map[Controller]Version{Memory: version}
		r := &Root{Group: &Group{dirs: map[Controller]string{Memory: filepath.Join(root, "bellows-own")}, version: has,
			unified: filepath.Join(root, "bellows-own")}, children: has}
		if left, ok := r.Leftover(); left != 700 || !ok {
			t.Errorf("version %v: %d, %t, want 700", version, left, ok)
		}
	}
}
