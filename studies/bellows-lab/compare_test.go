package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/door/cli/command"
)

// runCompare runs compare and returns its exit code, its output and, by their names, the files that it wrote.
func runCompare(t *testing.T, args ...string) (code int, errOut string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args = append([]string{"compare", "--svg", filepath.Join(dir, "svg"), "--png", filepath.Join(dir, "png"), "--html",
		filepath.Join(dir, "page.html")}, args...)
	code = newTree().Execute(args, command.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	files = map[string]string{"stdout": stdout.String()}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code, stderr.String(), files
}

// TestCompareOnAnyNumberOfCores: the same seeds give the same bytes, printed and in files, with any number of runs at
// the same time.
func TestCompareOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first map[string]string
	for _, workers := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(workers)
		code, errOut, files := runCompare(t, "--policy", "fair,yarn-me,yarn-me:granularity=50MB,srjf@pool", "--workload",
			"uniform:tasks=1:20", "--jobs", "6", "--nodes", "3", "--penalty", "sawtooth:1.5", "--seeds", "5")
		if code != 0 || errOut != "" {
			t.Fatalf("exit code %d: %s", code, errOut)
		}
		if first == nil {
			first = files
			// bounds, runtimes, ratios, memory, CPU and four Gantt charts in two formats; the page, and the printed
			// output
			if len(files) != 9*2+2 {
				t.Errorf("%d files", len(files))
			}
			continue
		}
		if len(files) != len(first) {
			t.Errorf("%d workers: %d files, one worker %d", workers, len(files), len(first))
		}
		for name, text := range files {
			if text != first[name] {
				t.Errorf("%d workers: %s differs from one worker's", workers, name)
			}
		}
	}
}
