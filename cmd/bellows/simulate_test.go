package main

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/cmd/internal/command"
)

// simulateJSON runs simulate --json and returns its document, of which every field must be known.
func simulateJSON(t *testing.T, args ...string) simulationJSON {
	t.Helper()
	var out, err bytes.Buffer
	code := newTree().Execute(append([]string{"simulate", "--json"}, args...), command.Streams{In: strings.NewReader(""), Out: &out, Err: &err})
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
	doc := simulateJSON(t, "--workload", "uniform", "--jobs", "30", "--tasks", "1:40", "--task-memory", "1GB:9GB", "--task-duration", "10s:100s",
		"--arrivals", "0s:100s", "--seed", "7", "--nodes", "10", "--node-memory", "10000MB", "--node-cpus", "16", "--heartbeat", "1s",
		"--am-heartbeat", "1s", "--am-memory", "0MB", "--policy", "fair,yarn-me", "--policy", "fifo", "--penalty", "sawtooth:1.5",
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

func TestSimulateDoesNotDependOnParallelism(t *testing.T) {
	args := []string{"--workload", "exponential", "--jobs", "40", "--nodes", "8", "--penalty", "step:2", "--policy", "yarn-me,fair,fifo,yarn-me", "--per-job"}
	strip := func(doc simulationJSON) simulationJSON {
		for i := range doc.Results {
			r := &doc.Results[i]
			r.Simulation = simulationCostJSON{Events: r.Simulation.Events, Steps: r.Simulation.Steps}
		}
		return doc
	}
	one := strip(simulateJSON(t, append(args, "--parallel", "1")...))
	four := strip(simulateJSON(t, append(args, "--parallel", "4")...))
	if !reflect.DeepEqual(one, four) {
		t.Errorf("one after the other %+v, all at once %+v", one, four)
	}
	if !reflect.DeepEqual(one.Results[0], one.Results[3]) {
		t.Error("the same policy twice gives two results")
	}
	if len(one.Results[0].PerJob) != 40 {
		t.Errorf("%d jobs in the result, want 40", len(one.Results[0].PerJob))
	}
}

// A policy may run on one node as large as all, beside others on many; what is no larger than a node has more room there.
func TestSimulatePooled(t *testing.T) {
	args := []string{"--workload", "uniform", "--jobs", "30", "--nodes", "10", "--policy", "srjf,srjf@pool"}
	doc := simulateJSON(t, args...)
	many, one := doc.Results[0], doc.Results[1]
	if many.Pooled || !one.Pooled || one.Policy != "srjf" {
		t.Errorf("results are of %s (pooled %v) and %s (pooled %v)", many.Policy, many.Pooled, one.Policy, one.Pooled)
	}
	if *one.Utilisation <= *many.Utilisation || *one.Average >= *many.Average {
		t.Errorf("pooled: %.1f s, %.3f of the memory; on ten nodes: %.1f s, %.3f", *one.Average, *one.Utilisation, *many.Average, *many.Utilisation)
	}
	if one.Bounds.Average > many.Bounds.Average || one.Bounds.Makespan > many.Bounds.Makespan {
		t.Errorf("bounds are %v pooled and %v on ten nodes, want no more", one.Bounds, many.Bounds)
	}
	all := simulateJSON(t, append(args, "--pool")...)
	for _, r := range all.Results {
		if !r.Pooled || *r.Average != *one.Average || *r.Makespan != *one.Makespan {
			t.Errorf("with --pool: pooled %v, %.1f s, want %.1f s", r.Pooled, *r.Average, *one.Average)
		}
	}
}
