package cgroup

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRuntimesRead starts programs that size themselves in groups of two sizes, and compares the sizes with what
// docs/reference/runtimes.md states. In a guest, the programs are those of its host.
func TestRuntimesRead(t *testing.T) {
	sizers, root := findSizers(), os.Getenv("BELLOWS_PROGRAMS")
	if root != "" {
		sizers = nil
		if err := json.Unmarshal([]byte(os.Getenv("BELLOWS_SIZERS")), &sizers); err != nil {
			t.Fatal(err)
		}
		bindSystem(t, root)
	}
	within := map[string]func(limit, size int64) bool{
		"java":   func(limit, size int64) bool { return size == limit/4 },
		"node":   func(limit, size int64) bool { return limit/2 <= size && size < limit/2+16*mib },
		"duckdb": func(limit, size int64) bool { return limit*8/10-mib < size && size <= limit*8/10+mib },
	}
	for name, is := range within {
		t.Run(name, func(t *testing.T) {
			s, ok := sizers[name]
			if !ok {
				t.Skip("needs " + name)
			}
			for _, limit := range []int64{512 * mib, 1024 * mib} {
				if size := s.size(t, root, limit); !is(limit, size) {
					t.Errorf("in a group of %d MiB its size is %d bytes", limit/mib, size)
				}
			}
		})
	}
}

// sizer is a program that prints the size that it gives itself.
type sizer struct {
	Command []string `json:"command"`
	Env     []string `json:"env"`
	// Files are the files and directories that it needs, but for libraries.
	Files []string `json:"files"`
}

// findSizers returns those that this machine has, by name.
func findSizers() map[string]sizer {
	found := map[string]sizer{}
	if java, err := program("java"); err == nil {
		home := filepath.Dir(filepath.Dir(java))
		files := existing(java, filepath.Join(home, "lib"), filepath.Join(home, "conf"), "/etc/java-*")
		found["java"] = sizer{[]string{java, "-XX:+PrintFlagsFinal", "-version"}, nil, files}
	}
	if node, err := program("node"); err == nil {
		found["node"] = sizer{[]string{node, "-p", "'heap = ' + v8.getHeapStatistics().heap_size_limit"}, nil,
			existing(node, "/usr/share/nodejs")}
	}
	const paths = "import os, sys, sysconfig, duckdb; print(os.path.realpath(sys.executable), " +
		"sysconfig.get_path('stdlib'), os.path.dirname(duckdb.__path__[0]))"
	if out, err := exec.Command("python3", "-c", paths).Output(); err == nil {
		at := strings.Fields(string(out))
		found["duckdb"] = sizer{[]string{at[0], "-c", "import duckdb; print('heap =', duckdb.sql(" +
			"\"select current_setting('memory_limit')\").fetchall()[0][0])"},
			[]string{"PYTHONHOME=" + filepath.Dir(filepath.Dir(at[1])), "PYTHONPATH=" + at[2]},
			slices.DeleteFunc(existing(at[0], at[1]+"/*", at[2]+"/*duckdb*"), func(file string) bool {
				return file == at[1]+"/site-packages" || file == at[1]+"/test" // large, and not needed
			})}
	}
	return found
}

// program returns the file of a program, behind all links.
func program(name string) (file string, err error) {
	if file, err = exec.LookPath(name); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(file)
}

// existing returns the files that match any of the patterns.
func existing(patterns ...string) (files []string) {
	for _, pattern := range patterns {
		some, err := filepath.Glob(pattern)
		if err != nil {
			panic(err)
		}
		files = append(files, some...)
	}
	return files
}

// printedSize finds the size in what a sizer prints.
var printedSize = regexp.MustCompile(`(?:MaxHeapSize +|heap )= ([0-9.]+)(?: (MiB|GiB))?`)

// size returns what the program prints in a group with the limit, bytes. root is its root directory; "" is that of the
// test.
func (s *sizer) size(t *testing.T, root string, limit int64) int64 {
	t.Helper()
	ctx, g := t.Context(), testGroup(t)
	if err := g.Apply(ctx, Limits{MemoryBytes: At(limit)}); err != nil {
		t.Fatal(err)
	}
	cmd := g.Command(ctx, s.Command...)
	cmd.SysProcAttr.Chroot, cmd.Dir = root, "/"
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=/tmp"}, s.Env...)
	out, err := cmd.CombinedOutput()
	printed := printedSize.FindSubmatch(out)
	if err != nil || printed == nil {
		t.Fatalf("%q: %v\n%s", s.Command, err, out)
	}
	number, err := strconv.ParseFloat(string(printed[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(number * map[string]float64{"": 1, "MiB": mib, "GiB": 1024 * mib}[string(printed[2])])
}

// bindSystem makes the file systems of the kernel visible below root, until the test ends.
func bindSystem(t *testing.T, root string) {
	t.Helper()
	for _, dir := range []string{"proc", "sys", "dev"} {
		to := filepath.Join(root, dir)
		if err := unix.Mount("/"+dir, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
}
