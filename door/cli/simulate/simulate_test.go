package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/sim/trial"
)

// execute runs simulate and returns the exit code.
func execute(out, errOut io.Writer, args ...string) int {
	tree := command.NewTree("bellows", "", "")
	tree.Add("", Command(nil))
	return tree.Execute(append([]string{"simulate"}, args...), command.Streams{In: strings.NewReader(""), Out: out,
		Err: errOut})
}

// simulateJSON runs simulate --json and returns its document, whose fields must all be known.
func simulateJSON(t *testing.T, args ...string) simulationJSON {
	t.Helper()
	var out, err bytes.Buffer
	code := execute(&out, &err, append([]string{"--json"}, args...)...)
	if code != 0 || err.Len() > 0 {
		t.Fatalf("simulate %v: exit code %d: %s", args, code, &err)
	}
	var doc simulationJSON
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatal("more than one JSON value")
	}
	return doc
}

func TestSimulateContract(t *testing.T) {
	doc := simulateJSON(t, "--workload", "uniform:tasks=1:40,memory=1GB:9GB,duration=10s:100s,arrivals=0s:100s",
		"--jobs", "30", "--seed", "7", "--nodes", "10", "--node-memory", "10000MB", "--node-cpus", "16", "--heartbeat",
		"1s", "--policy", "fair,yarn-me", "--policy", "fifo", "--penalty", "sawtooth:1.5",
		"--set", "fair.reservations=true", "--set", "yarn-me.reservations=true", "--set", "yarn-me.timeline=resimulate")
	var order []string
	for _, r := range doc.Results {
		order = append(order, r.Policy)
		switch {
		case r.Average == nil || r.Makespan == nil || r.Utilisation == nil || r.Elastic == nil:
			t.Fatalf("%s: a result is missing: %+v", r.Policy, r)
		case *r.Average < r.Bounds.Average || *r.Makespan < r.Bounds.Makespan:
			t.Errorf("%s: better than its lower bound: %+v", r.Policy, r)
		case r.Bounds.Average <= 0 || r.Bounds.Makespan <= 0:
			t.Errorf("%s: lower bounds %+v", r.Policy, r.Bounds)
		case *r.Utilisation <= 0 || *r.Utilisation > 1 || *r.Elastic < 0 || *r.Elastic > 1:
			t.Errorf("%s: shares %v, %v are not from 0 to 1", r.Policy, *r.Utilisation, *r.Elastic)
		case r.Jobs != 30 || r.Tasks != doc.Workload.Tasks || r.Simulation.Events == 0:
			t.Errorf("%s: %d jobs, %d tasks, %d events", r.Policy, r.Jobs, r.Tasks, r.Simulation.Events)
		case (*r.Elastic > 0) != (r.Policy == "yarn-me"):
			t.Errorf("%s: elastic share %v", r.Policy, *r.Elastic)
		}
	}
	if want := []string{"fair", "yarn-me", "fifo"}; !reflect.DeepEqual(order, want) {
		t.Errorf("results of %v, want %v", order, want)
	}
	if y := doc.Results[1]; y.Timeline != "resimulate" || y.Settings["yarn-me.timeline"] != "resimulate" {
		t.Errorf("yarn-me ran with timeline %q, settings %v", y.Timeline, y.Settings)
	}
}

// TestMakespanOfALateFirstJob: the makespan and its lower bound both count from the first submission, whenever that is.
func TestMakespanOfALateFirstJob(t *testing.T) {
	dir := t.TempDir()
	jobs := filepath.Join(dir, "jobs.yaml")
	text := "bellows: 1\nname: late\nat: 600s\nstages: [{name: s, tasks: 4, cpus: 1, memory: 1GiB, duration: 10s}]\n"
	if err := os.WriteFile(jobs, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := simulateJSON(t, "--workload", jobs, "--node-cpus", "2", "--policy", "fifo").Results[0]
	if *r.Makespan != 20 || r.Bounds.Makespan > 20 || r.Bounds.Makespan < 19.9 {
		t.Errorf("makespan %v s, at least %v s; want 20 s for both", *r.Makespan, r.Bounds.Makespan)
	}
}

// TestFlagsThatWouldDoNothing: a flag without an effect is refused.
func TestFlagsThatWouldDoNothing(t *testing.T) {
	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(jobs, []byte("bellows: 1\nname: a\nstages: [{name: s, memory: 1GiB, duration: 1s}]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string // empty: it is fine
	}{
		{[]string{"--workload", jobs}, ""},
		{[]string{"--workload", jobs, "--format", "bellows"}, ""},
		{[]string{"--workload", jobs, "--jobs", "3"}, "jobs: cannot be combined with the file"},
		{[]string{"--workload", jobs, "--seed", "1"}, "seed: cannot be combined with the file"},
		{[]string{"--workload", "uniform", "--format", "dss"}, "format dss: cannot be combined with generated jobs"},
		{[]string{"--workload", jobs, "--per-job"}, "per-job: needs --json, and one seed"},
		{[]string{"--workload", "uniform", "--jobs", "2", "--seeds", "2", "--json", "--per-job"},
			"per-job: needs --json, and one seed"},
		{[]string{"--workload", jobs, "--policy", "fair,fair"}, `policy "fair": given twice`},
		{[]string{"--workload", jobs, "--policy", "fair,fair:reservations=true"}, ""},
		{[]string{"--workload", jobs, "--csv", "-", "--json"}, "csv -: cannot be combined with --json"},
	} {
		var out, problem bytes.Buffer
		code := execute(&out, &problem, c.args...)
		if c.want == "" && code != 0 || c.want != "" &&
			(code != command.WrongUsage || !strings.HasPrefix(problem.String(), "bellows: "+c.want)) {
			t.Errorf("%v: exit code %d, %q, want %q", c.args, code, problem.String(), c.want)
		}
	}
}

// TestCSVOnStandardOutput: - is standard output, and no file of that name.
func TestCSVOnStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	var out, problem bytes.Buffer
	if code := execute(&out, &problem, "--workload", "uniform", "--jobs", "2", "--policy", "fair", "--csv",
		"-"); code != 0 {
		t.Fatalf("exit code %d: %s", code, &problem)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "policy,seed,") ||
		!strings.HasPrefix(lines[1], "fair,1,2,") {
		t.Errorf("printed %q", out.String())
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("there is a file -")
	}
}

// TestThrottledTime: the time for which a policy throttles tasks is in the results. Three tasks demand one and a half
// times what their disk can.
func TestThrottledTime(t *testing.T) {
	dir := t.TempDir()
	jobs, cluster := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "cluster.yaml")
	for name, text := range map[string]string{
		jobs: "bellows: 1\nname: a\nstages: [{name: s, tasks: 12, memory: 1GiB, phases: [{duration: 60s, cpus: 1, " +
			"memory: 1GiB, disk: 50MB/s}]}]\n",
		cluster: "bellows_cluster: 1\nmachine: hdd\nnodes: [{count: 1, cpus: 16, memory: 32GiB, disk: 100MB/s}]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doc := simulateJSON(t, "--workload", jobs, "--cluster", cluster, "--policy", "fair,prophet")
	if fair := doc.Results[0]; fair.Throttles != 0 || fair.Throttled != 0 {
		t.Errorf("fair throttled %d times, for %v s", fair.Throttles, fair.Throttled)
	}
	if own := doc.Results[1]; own.Throttles == 0 || own.Throttled <= 0 || own.Throttled > 12**own.Makespan {
		t.Errorf("prophet throttled %d times, for %v s of %v s", own.Throttles, own.Throttled, *own.Makespan)
	}
}

// TestResizes: how often a policy changes the grants of running tasks is in the results.
func TestResizes(t *testing.T) {
	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	text := "bellows: 1\nname: a\nstages: [{name: s, tasks: 1, cpus: 2, memory: 1GiB, phases: [{duration: 60s, " +
		"cpus: 1, memory: 1GiB}, {duration: 60s, cpus: 2, memory: 1GiB}]}]\n"
	if err := os.WriteFile(jobs, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	doc := simulateJSON(t, "--workload", jobs, "--policy", "fair,ecs")
	if fair, ecs := doc.Results[0].Resizes, doc.Results[1].Resizes; fair != 0 || ecs != 1 {
		t.Errorf("fair resized %d times, ecs %d times", fair, ecs)
	}
}

// TestBeyondTheNodes: phases that demand more than any node has are reported, because they take longer than stated.
func TestBeyondTheNodes(t *testing.T) {
	dir := t.TempDir()
	jobs, cluster := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "cluster.yaml")
	for name, text := range map[string]string{
		jobs: "bellows: 1\nname: a\nstages:\n" +
			"- {name: fits, tasks: 2, memory: 1GiB, truth: {phases: [{duration: 10s, cpus: 1, memory: 1GiB, disk: " +
			"100MB/s}]}}\n" +
			"- {name: cores, tasks: 2, memory: 1GiB, phases: [{duration: 0s, cpus: 99}, {duration: 5s, cpus: 1, memory: " +
			"1GiB}, {duration: 5s, cpus: 64, memory: 1GiB}]}\n" +
			"- {name: disk, tasks: 2, memory: 1GiB, truth: {phases: [{duration: 10s, cpus: 1, memory: 1GiB, disk: " +
			"900MB/s, network: 1GB/s}]}}\n",
		cluster: "bellows_cluster: 1\nnodes: [{count: 2, cpus: 4, memory: 8GiB, disk: 100MB/s}]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--workload", jobs, "--cluster", cluster, "--policy", "fifo"}
	want := []beyondJSON{
		{1, "a", "cores", 3, "demands 64 cores, and no node has more than 4 cores"},
		{1, "a", "disk", 1, "demands 900MB/s of disk, and no node has more than 100MB/s"},
	}
	if got := simulateJSON(t, args...).Workload.Beyond; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var out, problem bytes.Buffer
	const line = `bellows: job "a" stage "cores" phase 3 demands 64 cores, and no node has more than 4 cores: it takes longer than stated; so do phases of 1 more stage` + "\n"
	if code := execute(&out, &problem, args...); code != 0 || problem.String() != line {
		t.Errorf("exit code %d, printed %q", code, problem.String())
	}
	if got := simulateJSON(t, append(args[:len(args)-1:len(args)-1], "fifo@pool")...).Workload.Beyond; got != nil {
		t.Errorf("on one large node %+v", got)
	}
}

func TestSimulateDoesNotDependOnParallelism(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	args := []string{"--workload", "exponential", "--jobs", "40", "--nodes", "8", "--penalty", "step:2", "--policy",
		"yarn-me,fair,fifo,yarn-me:timeline=sum", "--per-job"}
	strip := func(doc simulationJSON) simulationJSON {
		for i := range doc.Results {
			r := &doc.Results[i]
			r.Simulation = &simulationCostJSON{Events: r.Simulation.Events, Steps: r.Simulation.Steps}
		}
		return doc
	}
	runtime.GOMAXPROCS(1)
	one := strip(simulateJSON(t, args...))
	runtime.GOMAXPROCS(4)
	four := strip(simulateJSON(t, args...))
	if !reflect.DeepEqual(one, four) {
		t.Errorf("one after the other %+v, all at once %+v", one, four)
	}
	one.Results[3].Label = one.Results[0].Label
	if !reflect.DeepEqual(one.Results[0], one.Results[3]) {
		t.Error("the same policy twice gives two results")
	}
	if len(one.Results[0].PerJob) != 40 {
		t.Errorf("%d jobs in the result, want 40", len(one.Results[0].PerJob))
	}
}

// A policy may run on one node as large as all nodes together, while others run on many nodes; a task that fits on a
// node finds more room there.
func TestSimulatePooled(t *testing.T) {
	args := []string{"--workload", "uniform", "--jobs", "30", "--nodes", "10", "--policy", "srjf,srjf@pool"}
	doc := simulateJSON(t, args...)
	many, one := doc.Results[0], doc.Results[1]
	if many.Pooled || !one.Pooled || one.Policy != "srjf" {
		t.Errorf("results are of %s (pooled %v) and %s (pooled %v)", many.Policy, many.Pooled, one.Policy, one.Pooled)
	}
	if *one.Utilisation <= *many.Utilisation || *one.Average >= *many.Average {
		t.Errorf("pooled: %.1f s, %.3f of the memory; on ten nodes: %.1f s, %.3f", *one.Average, *one.Utilisation,
			*many.Average, *many.Utilisation)
	}
	if one.Bounds.Average > many.Bounds.Average || one.Bounds.Makespan > many.Bounds.Makespan {
		t.Errorf("bounds are %v pooled and %v on ten nodes, want no more", one.Bounds, many.Bounds)
	}
}

// TestSeedsOnAnyNumberOfCores: the same seeds give the same bytes, printed and in the CSV file, with any number of runs
// at the same time.
func TestSeedsOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	cluster := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(cluster, []byte("bellows_cluster: 1\nmisjudge: {duration: 0.2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := ""
	for _, workers := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(workers)
		csv := filepath.Join(t.TempDir(), "runs.csv")
		var out, errOut bytes.Buffer
		code := execute(&out, &errOut, "--policy", "fair,yarn-me,yarn-me:granularity=50MB,srjf@pool", "--workload",
			"uniform:tasks=1:20", "--jobs", "6", "--nodes", "3", "--penalty", "sawtooth:1.5", "--cluster", cluster, "--seeds",
			"5", "--json", "--csv", csv)
		if code != 0 || errOut.Len() > 0 {
			t.Fatalf("exit code %d: %s", code, &errOut)
		}
		rows, err := os.ReadFile(csv)
		if err != nil {
			t.Fatal(err)
		}
		switch text := out.String() + string(rows); {
		case first == "":
			first = text
		case text != first:
			t.Errorf("%d workers: differs from one worker's", workers)
		}
	}
}

// smallStudy returns a study of some seeds of a workload under one policy, before any run.
func smallStudy(t *testing.T, seeds int) *Study {
	t.Helper()
	o := NewOptions(nil)
	cmd := Command(nil)
	cmd.ResetFlags()
	o.Flags(cmd, 1)
	cmd.SetContext(t.Context())
	if err := cmd.ParseFlags([]string{"--workload", "uniform", "--policy", "fair", "--jobs", "3"}); err != nil {
		t.Fatal(err)
	}
	s, err := o.Open(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s.Seeds = seeds
	return s
}

// TestInterrupted: finished runs are printed, and the exit code is that of an interrupt.
func TestInterrupted(t *testing.T) {
	s := smallStudy(t, 2)
	sum := &trial.Comparison{Contenders: s.Contenders}
	sum.Add(trial.Outcome{Seed: 1, Average: 5, Makespan: 8, BoundAverage: 1, BoundMakespan: 1})
	var out, errOut bytes.Buffer
	if err := s.finish(&out, &errOut, &printing{}, s.describe(), sum); command.ExitCode(err) != command.Interrupted {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out.String(), "fair") || errOut.String() != "bellows: interrupted after 1 of 2 runs\n" {
		t.Errorf("printed %q and %q", out.String(), errOut.String())
	}
}

// TestInterruptedAtOnce: unfinished runs are stopped, and nothing is printed if no run has finished.
func TestInterruptedAtOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errOut bytes.Buffer
	if err := smallStudy(t, 1).run(ctx, &out, &errOut, &printing{}); command.ExitCode(err) != command.Interrupted {
		t.Errorf("%v", err)
	}
	if out.Len() > 0 || errOut.String() != "bellows: interrupted after 0 of 1 run\n" {
		t.Errorf("printed %q and %q", out.String(), errOut.String())
	}
}

// TestFailedSeed: a run without a result is named with its seed, and the results of the other runs are printed.
func TestFailedSeed(t *testing.T) {
	s := smallStudy(t, 2)
	sum := &trial.Comparison{Contenders: s.Contenders}
	sum.Add(trial.Outcome{Seed: 1, Error: "2 of 3 jobs did not end"})
	sum.Add(trial.Outcome{Seed: 2, Average: 5, Makespan: 8, BoundAverage: 1, BoundMakespan: 1})
	var out, errOut bytes.Buffer
	if err := s.finish(&out, &errOut, &printing{}, s.describe(), sum); command.ExitCode(err) != command.Failed {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out.String(), "5.0s") ||
		errOut.String() != "bellows: policy fair, seed 1: 2 of 3 jobs did not end\n" {
		t.Errorf("printed %q and %q", out.String(), errOut.String())
	}
}

// TestSeries: the series of each node are in the JSON if they are asked for, and change no other result.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	jobs, cluster := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "cluster.yaml")
	// Two tasks demand 60 MB/s each of a disk of 100 MB/s, which takes them 12 s instead of 10 s; then 10 MB/s each for
	// 5 s.
	for name, text := range map[string]string{
		jobs: "bellows: 1\nname: a\nstages: [{name: s, tasks: 2, memory: 1GiB, truth: {phases: [{duration: 10s, " +
			"cpus: 500m, memory: 1GiB, disk: 60MB/s}, {duration: 5s, cpus: 1, memory: 1GiB, disk: 10MB/s}]}}]\n",
		cluster: "bellows_cluster: 1\nnodes: [{count: 2, cpus: 2, memory: 4GiB, disk: 100MB/s}]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--workload", jobs, "--cluster", cluster, "--policy", "fifo,prophet,fifo@pool"}
	plain, doc := simulateJSON(t, args...), simulateJSON(t, append(args, "--series")...)
	for i := range doc.Results {
		got, want := &doc.Results[i], &plain.Results[i]
		nodes := 2
		if got.Pooled {
			nodes = 1
		}
		if s := got.Series; want.Series != nil || s == nil || len(s.Nodes) != nodes || s.From != 0 ||
			s.Until != *got.Makespan {
			t.Errorf("%s: series %+v, and %+v unasked", got.Label, s, want.Series)
		}
		if *got.Makespan != *want.Makespan || *got.Average != *want.Average {
			t.Errorf("%s: with series %+v, without %+v", got.Label, got, want)
		}
	}
	s := doc.Results[0].Series
	n := &s.Nodes[0]
	var at []float64
	for _, step := range n.Steps {
		at = append(at, step.At)
	}
	if n.Node != "node1" || !reflect.DeepEqual(at, []float64{0, 12, 17}) {
		t.Fatalf("node %s has steps at %v", n.Node, at)
	}
	first, last := n.Steps[0], n.Steps[2]
	if first.Capacity.Disk != 100e6 || first.Capacity.Network != 0 || first.Granted.CPU != 2000 ||
		first.Demand.Disk != 120e6 || first.Used.Disk != 100e6 || last.Used != (amountsJSON{}) {
		t.Errorf("steps %+v", n.Steps)
	}
	// Node 1 is over by 20 MB/s for 12 s, then idle with 80 MB/s for 5 s; node 2 is idle all of the 17 s.
	if n.OverAllocation["disk_bytes"] != 240e6 || n.Fragmentation["disk_bytes"] != 400e6 ||
		s.Fragmentation["disk_bytes"] != 2100e6 || s.OverAllocation["disk_bytes"] != 240e6 {
		t.Errorf("areas %+v, of all nodes %+v", n.areasJSON, s.areasJSON)
	}
	if _, has := n.Fragmentation["network_bytes"]; has {
		t.Errorf("a network without a number has the areas %v", n.Fragmentation)
	}
	for _, wrong := range [][]string{{"--workload", jobs, "--series"},
		{"--workload", "uniform", "--seeds", "2", "--json", "--series"}} {
		var out, errOut bytes.Buffer
		if code := execute(&out, &errOut, wrong...); code != command.WrongUsage ||
			!strings.HasPrefix(errOut.String(), "bellows: series: needs --json, and one seed") {
			t.Errorf("%v: exit code %d: %s", wrong, code, &errOut)
		}
	}
}
