package firstuse

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// The mix is what was settled: twelve programs, each with an input and a result of its own.
func TestMix(t *testing.T) {
	seen := map[string]string{}
	for i := range programs {
		p := &programs[i]
		for _, own := range []string{p.name, p.result, p.command, p.waits} {
			if was := seen[own]; own == "" || was != "" {
				t.Errorf("%s: %q is also of %s", p.name, own, was)
			}
			seen[own] = p.name
		}
		if strings.ContainsAny(p.command, "'\"|>&;") {
			t.Errorf("%s: %q needs a shell", p.name, p.command)
		}
		if p.asks == "" || p.says == "" || p.version == "" || p.from == "" || p.input == "" {
			t.Errorf("%+v lacks something", p)
		}
	}
	if len(programs) != 12 {
		t.Errorf("%d programs", len(programs))
	}
}

// A page has the mix and the criteria.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../first-use.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range programs {
		p := &programs[i]
		row := fmt.Sprintf("| %s | %s | `%s` |", p.name, p.version, p.command)
		if !bytes.Contains(text, []byte(row)) {
			t.Errorf("lacks %s", row)
		}
	}
	for _, want := range []float64{ofBoxes, ofOthers, anywhere, shortFrom} {
		if !bytes.Contains(text, fmt.Appendf(nil, "%g", want)) {
			t.Errorf("lacks %g", want)
		}
	}
}

// The same inputs are made every time.
func TestInputs(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if _, err := exec.LookPath("ffmpeg"); err != nil { // it is large: without it, the other inputs are compared
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ffmpeg"), []byte("#!/bin/sh\n> video.mkv\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	}
	var sums []string
	for range 2 {
		dir := t.TempDir()
		if err := makeInputs(t.Context(), dir, 1); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", "rm java.zip && find . -type f | sort | xargs cksum")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for i := range programs {
			if p := &programs[i]; p.input != "java.zip" && !bytes.Contains(out, []byte("./"+p.input+"\n")) {
				t.Errorf("%s has no input %s", p.name, p.input)
			}
		}
		sums = append(sums, string(out))
	}
	if sums[0] != sums[1] {
		t.Errorf("%s\ndiffers from\n%s", sums[0], sums[1])
	}
}

// The last line about a job counts: parallel runs a job again that it has ended.
func TestJoblog(t *testing.T) {
	const log = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n" +
		"2\t:\t1000.500\t     1.000\t0\t0\t0\t15\tsqlite3\n" +
		"1\t:\t1000.000\t     4.000\t0\t0\t3\t0\tsort\n" +
		"2\t:\t1002.000\t     5.500\t0\t0\t0\t0\tsqlite3\n"
	jobs := readJoblog(log, time.Unix(1000, 0), programs[:3])
	want := []Job{{Name: "sort", Ended: 4, Exit: 3}, {Name: "sqlite", Ended: 7.5}, {Name: "pandas", Exit: -1}}
	if fmt.Sprint(jobs) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", jobs, want)
	}
}

func TestDigest(t *testing.T) {
	dir := t.TempDir()
	if _, err := digest(dir); err == nil {
		t.Error("an empty folder is no result")
	}
	sums := map[string]bool{}
	for _, text := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sum, err := digest(dir)
		if err != nil {
			t.Fatal(err)
		}
		sums[sum] = true
	}
	if len(sums) != 2 {
		t.Error("different results have one digest")
	}
}

// canned is a result of rounds on a node of 2 GiB. A contender that is fast and loses a job is not the best.
func canned(rounds, tenths int) *Result {
	r := &Result{Kind: Compute, Node: 2 * resource.GiB, Swap: 6 * resource.GiB, Tenths: tenths, Cores: 2}
	for i := range programs {
		r.Programs = append(r.Programs, Alone{Name: programs[i].name, Peak: 450 * resource.MiB, CPU: 6})
	}
	for round := 1; round <= rounds; round++ {
		for _, c := range []struct {
			name string
			took float64
			lost bool
		}{{ours, 60, false}, {boxes, 100, false}, {"-j CORES", 72, false}, {"-j 4xCORES", 80, false},
			{"--memfree", 81, false}, {"--memsuspend", 82, false}, {"&", 50, true}} {
			run := Run{Contender: c.name, Round: round, Took: c.took + float64(round)}
			if c.name == ours && round == 1 {
				run.Took = 90
			}
			for i := range programs {
				run.Jobs = append(run.Jobs, Job{Name: programs[i].name, Right: !c.lost || i > 0})
			}
			r.Runs = append(r.Runs, run)
		}
	}
	return r
}

func TestReport(t *testing.T) {
	for name, r := range map[string]*Result{"result": canned(5, 10), "trial": canned(1, 1),
		"nothing": {Why: "programs are missing: parallel (parallel)"}} {
		var out bytes.Buffer
		if err := r.Write(&out); err != nil {
			t.Fatal(err)
		}
		testfile.Golden(t, name+".txt", out.Bytes())
	}
}

// A criterion that the processors alone rule out is said to be so.
func TestProcessorsNeedMore(t *testing.T) {
	r := canned(5, 10)
	r.Programs[0].CPU = 93
	if all := r.Verdicts(); !strings.Contains(fmt.Sprint(all), "peak, of which the processors alone need 0.7") {
		t.Error(all)
	}
}

// A job that is lost, and a contender that is faster, are not overlooked.
func TestVerdicts(t *testing.T) {
	for name, spoil := range map[string]func(*Result){
		"every job ends": func(r *Result) { r.Runs[0].Jobs[3].Right = false },
		"of boxes":       func(r *Result) { r.of(boxes, 2).Took = 10 },
		"of the best other": func(r *Result) {
			for round := 2; round <= 5; round++ {
				r.of("-j CORES", round).Took = 60
			}
		},
	} {
		r := canned(5, 10)
		for _, v := range r.Verdicts() {
			if !v.Holds {
				t.Errorf("%+v", v)
			}
		}
		spoil(r)
		for _, v := range r.Verdicts() {
			if v.Holds == strings.Contains(v.Text, name) {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
}
