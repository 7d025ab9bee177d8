package sim_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// The coordinator and a task of which it has not yet been notified are lost together; both run again elsewhere.
func TestCoordinatorIsLost(t *testing.T) {
	c := sim.Config{Nodes: sim.Uniform(2, vector(2, 8, 0, 0)), Heartbeat: time.Second, CoordinatorHeartbeat: time.Second,
		Incidents: []sim.Incident{{At: 2 * time.Second, Kind: sim.NodeLoss, Node: 0}}}
	res := simulate(t, c, "fifo", oneStage(1, 1, workload.StageTruth{}))
	if !res.Jobs[0].Done || res.Lost != 2 {
		t.Errorf("job is %+v", res.Jobs[0])
	}
}

// Random losses depend only on the seed, hit existing nodes, and leave at least one node.
func TestRandomFailures(t *testing.T) {
	nodes := sim.Uniform(3, vector(1, 1, 0, 0))
	f := sim.Failures{Every: 10 * time.Second, Until: time.Hour, Repair: time.Minute}
	draw := func(f sim.Failures, seed uint64) []sim.Incident {
		all, err := sim.RandomFailures(f, nodes, seed)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := draw(f, 7)
	if !reflect.DeepEqual(all, draw(f, 7)) || reflect.DeepEqual(all, draw(f, 8)) {
		t.Error("the seed does not tell")
	}
	here, next := map[cluster.NodeID]bool{0: true, 1: true, 2: true}, cluster.NodeID(3)
	last := time.Duration(0)
	for _, i := range all {
		if i.At < last {
			t.Fatalf("%v comes after %v", i.At, last)
		}
		last = i.At
		if i.Kind == sim.NodeJoin {
			here[next] = true
			next++
			continue
		}
		if !here[i.Node] {
			t.Fatalf("node %d is lost, but is not there", i.Node)
		}
		if delete(here, i.Node); len(here) == 0 {
			t.Fatal("no node is left")
		}
	}
	if len(all) < 50 {
		t.Errorf("only %d incidents in an hour", len(all))
	}
	if f.Repair = 0; len(draw(f, 7)) != 2 {
		t.Error("without repair all nodes but one are lost")
	}
	if _, err := sim.RandomFailures(sim.Failures{}, nodes, 1); err == nil {
		t.Error("no time between losses")
	}
}

// Lost tasks run again, a node that joins takes work, and a cancelled job ends together with its running tasks.
func TestIncidents(t *testing.T) {
	c := sim.Config{Nodes: sim.Uniform(1, vector(1, 8, 0, 0)), Incidents: []sim.Incident{
		{At: 10 * time.Second, Kind: sim.NodeJoin, New: sim.Uniform(1, vector(1, 8, 0, 0))[0]},
		{At: 50 * time.Second, Kind: sim.NodeLoss, Node: 0},
		{At: 60 * time.Second, Kind: sim.JobCancel, Job: 2},
		{At: 70 * time.Second, Kind: sim.JobCancel, Job: 3},
	}}
	third := oneStage(3, 1, workload.StageTruth{})
	third.Submitted = timeline.Seconds(80)
	res := simulate(t, c, "fifo", oneStage(1, 1, workload.StageTruth{}), oneStage(2, 2, workload.StageTruth{}), third)
	wantEnds(t, res, 50*time.Second, 60*time.Second, 160*time.Second)
	for i, want := range []string{"", "cancelled by its owner", "cancelled by its owner"} {
		if j := res.Jobs[i]; j.Failure != want || j.Done != (want == "") {
			t.Errorf("job %d: %+v", j.ID, j)
		}
	}
	if res.Lost != 1 || res.Retries != 1 || res.Killed != 1 || res.LostWork != 100*time.Second {
		t.Errorf("result is %+v", res)
	}
}

// A pressure from outside is reported as it is stated. It slows nothing.
func TestPressureFromOutside(t *testing.T) {
	gives := vector(0, 0, 3, 0)
	var told []cluster.Event
	c := sim.Config{Nodes: sim.Uniform(1, vector(1, 8, 9, 0)), Incidents: []sim.Incident{
		{At: 10 * time.Second, Kind: sim.NodePressure, Gives: gives},
		{At: 20 * time.Second, Kind: sim.NodePressure},
		{At: 30 * time.Second, Kind: sim.NodePressure, Node: 7}, // there is none
	}}
	c.Observe = func(now timeline.Time, events []cluster.Event, _ []cluster.Decision) {
		for i := range events {
			if events[i].Kind == cluster.NodePressed && now == timeline.Seconds(float64(10*len(told)+10)) {
				told = append(told, events[i])
			}
		}
	}
	wantEnds(t, simulate(t, c, "fifo", oneStage(1, 1, workload.StageTruth{})), 100*time.Second)
	if len(told) != 2 || told[0].Condition().Bound != gives || told[1].Condition().Bound != (resource.Vector{}) {
		t.Errorf("told %+v", told)
	}
	c.Incidents = []sim.Incident{{Kind: sim.NodePressure, Gives: vector(1, 0, 0, 0)}}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "must be of rates") {
		t.Error(err)
	}
}
