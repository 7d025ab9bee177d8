package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// TestSimulateOnly runs everything that needs no machine.
func TestSimulateOnly(t *testing.T) {
	var said []string
	res, err := Elastic(t.Context(),
		Options{Rounds: 1, Repeats: 1, Simulate: true, Say: func(line string) { said = append(said, line) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "simulated") {
		t.Errorf("it said %q, want one line that says that all is simulated", said)
	}
	if !res.Simulated || len(res.Runs) > 0 || len(res.Summaries) != len(sizings) {
		t.Fatalf("simulated %t with %d real runs and %d summaries", res.Simulated, len(res.Runs), len(res.Summaries))
	}
	var report bytes.Buffer
	if err := res.Write(&report); err != nil {
		t.Fatal(err)
	}
	picture := string(drawn(t, res.Pictures()))
	narrow(t, report.String())
	for i, s := range res.Summaries {
		if !s.Simulated || s.AverageJobRuntime.Median <= 0 || s.Kills.Most > 0 {
			t.Errorf("%s: %+v", s.Configuration, s)
		}
		mark := sizings[i].Label + " (simulated)"
		if !strings.Contains(report.String(), mark) || !strings.Contains(picture, mark) {
			t.Errorf("%q is missing in the report or in the picture", mark)
		}
	}
}

// TestReplay records the events of a simulation. A new engine takes the same decisions from them, and other decisions
// if one event is changed.
func TestReplay(t *testing.T) {
	w, err := elastic.workload(idealModels(t))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(elastic.Policy, elastic.Settings)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	writer, err := eventlog.NewWriter(&log, eventlog.Header{Policy: elastic.Policy, Settings: elastic.Settings})
	if err != nil {
		t.Fatal(err)
	}
	decisions := 0
	_, err = sim.Run(sim.Config{Nodes: sim.Uniform(1, node), Observe: func(now timeline.Time, events []cluster.Event,
		taken []cluster.Decision) {
		decisions += len(taken)
		if err := errors.Join(writer.Events(now, events...), writer.Decisions(now, taken)); err != nil {
			t.Fatal(err)
		}
	}}, w, p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := replay(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(log.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	if got.Decisions != decisions || got.Equal != decisions || got.Changed >= decisions {
		t.Errorf("%+v, want all %d decisions equal, and fewer with one event changed", *got, decisions)
	}
}

// TestReal measures one program quickly and runs a small mix in real containers.
func TestReal(t *testing.T) {
	place, err := sandbox.Make(sandbox.Parent(""), diskNeeded)
	if err != nil {
		t.Skipf("needs a disk to work on: %v", err)
	}
	t.Cleanup(func() { place.Remove(context.Background()) })
	work := place.Dir
	if why := unsuitable(t.Context(), work); why != "" {
		t.Skipf("needs real containers: %s", why)
	}
	all, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	tiny := input{"large.log", 900_000, 3}
	dir := filepath.Join(work, sandbox.InputDir)
	if err := writeInput(filepath.Join(dir, tiny.name), tiny); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p := all[0]
	p.input = tiny
	got, err := measure(ctx, p, dir, 1, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if got.Model.IdealMemory != tiny.ideal() || got.Sizes[0].Spilled < resource.Amount(tiny.size())/2 {
		t.Errorf("ideal memory %s, want %s; with %s it spilled %s", resource.FormatMemory(got.Model.IdealMemory),
			resource.FormatMemory(tiny.ideal()), resource.FormatMemory(got.Sizes[0].Memory),
			resource.FormatMemory(got.Sizes[0].Spilled))
	}
	stage := cluster.Stage{Name: "sort", Tasks: 2}
	got.Model.Apply(&stage)
	stage.Ideal[resource.CPU] = resource.Core
	stage.Command = p.command
	job := workload.Job{Job: cluster.Job{Name: "tiny", Stages: []cluster.Stage{stage}}, After: -1}
	// Room for one task with its ideal memory, and for one with its minimum.
	capacity := node.With(resource.Memory, got.Model.IdealMemory+got.Model.MinMemory+4*resource.MiB)
	run, err := runReal(ctx, work, elastic, capacity, &workload.Workload{Jobs: []workload.Job{job}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Tasks) != 2 || run.Kills() > 0 || run.Jobs[0].Failed != "" {
		t.Errorf("tasks %+v, job %+v", run.Tasks, run.Jobs[0])
	}
	if used := run.Used(); used == nil || *used <= 0 {
		t.Errorf("used memory %v, want some", used)
	}
	if r := run.Replay; r == nil || r.Decisions < 2 || r.Equal != r.Decisions || r.Changed == r.Decisions {
		t.Errorf("replay %+v", r)
	}
	left, err := os.ReadDir(work)
	if err != nil || len(left) != 2 {
		t.Errorf("in the working directory are left %v (%v), want the input and the lock alone", left, err)
	}
}
