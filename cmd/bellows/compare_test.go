package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/comparison"
	"github.com/bellows-rm/bellows/cmd/internal/command"
)

// runCompare runs compare and returns what it printed and, by their names, what it wrote.
func runCompare(t *testing.T, args ...string) (code int, out, errOut string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args = append([]string{"compare", "--csv", filepath.Join(dir, "runs.csv"), "--svg", filepath.Join(dir, "svg"), "--png", filepath.Join(dir, "png"),
		"--html", filepath.Join(dir, "page.html")}, args...)
	code = newTree().Execute(args, command.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	files = map[string]string{}
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
	return code, stdout.String(), stderr.String(), files
}

// TestCompareOnAnyNumberOfCores: the same seeds give the same bytes, printed and in files, whatever runs at the same time.
func TestCompareOnAnyNumberOfCores(t *testing.T) {
	var first map[string]string
	for _, workers := range []string{"1", "2", "7"} {
		code, out, errOut, files := runCompare(t, "--policy", "fair,yarn-me,yarn-me:granularity=50MB,srjf@pool", "uniform", "--jobs", "6", "--nodes", "3", "--tasks", "1:20",
			"--penalty", "sawtooth:1.5", "--misjudge", "duration=0.2", "--seeds", "5", "--json", "--parallel", workers)
		if code != 0 || errOut != "" {
			t.Fatalf("exit code %d: %s", code, errOut)
		}
		files["stdout"] = out
		if first == nil {
			first = files
			// bounds, runtimes, ratios, memory, CPU and four Gantt charts in two formats; CSV, page, JSON
			if len(files) != 9*2+3 {
				t.Errorf("%d files", len(files))
			}
			continue
		}
		if len(files) != len(first) {
			t.Errorf("%s workers: %d files, one worker %d", workers, len(files), len(first))
		}
		for name, text := range files {
			if text != first[name] {
				t.Errorf("%s workers: %s differs from one worker's", workers, name)
			}
		}
	}
}

// TestCompareInterrupted: what is done is printed, and the error is that of the interrupt.
func TestCompareInterrupted(t *testing.T) {
	o := compareOptions{simulateOptions: simulateDefaults(), seeds: 2}
	o.workload.name = "uniform"
	c := &compared{compareOptions: &o, entrants: []entrant{{label: "fair"}}, comparison: comparison.New([]comparison.Policy{{Label: "fair"}})}
	var err error
	if c.workload, err = c.draw(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.comparison.Add(comparison.Run{Seed: 1, Average: 5, Makespan: 8, BoundAverage: 1, BoundMakespan: 1})
	var out, errOut bytes.Buffer
	if err := c.finish(&out, &errOut, context.Canceled); command.ExitCode(err) != command.Interrupted {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out.String(), "fair") || errOut.String() != "bellows: interrupted after 1 of 2 runs\n" {
		t.Errorf("printed %q and %q", out.String(), errOut.String())
	}
}

// TestCompareFailure: a run that fails is named with its seed, and the others are printed.
func TestCompareFailure(t *testing.T) {
	o := compareOptions{simulateOptions: simulateDefaults(), seeds: 2}
	o.workload.name = "uniform"
	c := &compared{compareOptions: &o, entrants: []entrant{{label: "fair"}}, comparison: comparison.New([]comparison.Policy{{Label: "fair"}})}
	var err error
	if c.workload, err = c.draw(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.comparison.Add(comparison.Run{Seed: 1, Error: "2 of 3 jobs did not end"})
	c.comparison.Add(comparison.Run{Seed: 2, Average: 5, Makespan: 8, BoundAverage: 1, BoundMakespan: 1})
	var out, errOut bytes.Buffer
	if err := c.finish(&out, &errOut, nil); command.ExitCode(err) != command.Failed {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out.String(), "5.0s") || errOut.String() != "bellows: policy fair, seed 1: 2 of 3 jobs did not end\n" {
		t.Errorf("printed %q and %q", out.String(), errOut.String())
	}
}

// TestEntrants: settings stand behind colons; what has no = belongs to the value before.
func TestEntrants(t *testing.T) {
	o := compareOptions{simulateOptions: simulateDefaults()}
	o.settings = map[string]string{"yarn-me.timeline": "sum"}
	o.policies = []string{"yarn-me", "yarn-me@pool:timeline=resimulate:granularity=a:b"}
	all, err := o.entrants()
	if err != nil {
		t.Fatal(err)
	}
	if got := all[0].settings["yarn-me.timeline"]; got != "sum" {
		t.Errorf("a setting of another entrant: %s", got)
	}
	e := all[1]
	if e.options.policies[0] != "yarn-me@pool" || e.settings["yarn-me.timeline"] != "resimulate" || e.settings["yarn-me.granularity"] != "a:b" {
		t.Errorf("%+v", e)
	}
	for _, wrong := range [][]string{{"fair", "fair"}, {"fair:fast"}, {"fair:=1"}, {}} {
		o.policies = wrong
		if _, err := o.entrants(); command.ExitCode(err) != command.WrongUsage {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func TestRemaining(t *testing.T) {
	for want, got := range map[string]string{} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
