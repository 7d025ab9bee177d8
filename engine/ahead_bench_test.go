package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/engine"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// BenchmarkAhead is a full cluster in steady state whose tasks have forecasts of six phases in four resources: 20 executors
// run on each of 1000 nodes, and 100 applications wait. At each step one executor ends and, as applications start, others are
// submitted. It reports starts per second, and the 99th percentile of the steps in which something ended.
func BenchmarkAhead(b *testing.B) {
	for _, c := range []struct {
		policy    string
		executors int
	}{{"prophet", 1}, {"prophet", 4}, {"tetris", 1}} {
		b.Run(fmt.Sprintf("%s/executors=%d", c.policy, c.executors), func(b *testing.B) {
			p, err := policy.New(c.policy, nil)
			if err != nil {
				b.Fatal(err)
			}
			benchmarkAhead(b, p, c.executors)
		})
	}
}

func benchmarkAhead(b *testing.B, p policy.Policy, executors int) {
	const nodes, perNode, waiting = 1000, 20, 100
	c := fullCluster{engine: engine.New(p, nil), random: rand.New(rand.NewPCG(1, 2))}
	var events []cluster.Event
	for i := range nodes {
		n := &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("node", i),
			Capacity: resource.Vector{perNode * resource.Core, perNode * resource.GB, 4 * resource.GB, 4 * resource.GB}}
		events = append(events, cluster.Event{Kind: cluster.NodeJoined, NewNode: n})
	}
	c.step(b, append(events, cluster.Event{Kind: cluster.Synced})...)
	stages := make([][]cluster.Stage, 5000)
	for i := range stages {
		stages[i] = []cluster.Stage{c.forecast(executors)}
	}
	submitted := 0
	submit := func() {
		job := &cluster.Job{ID: cluster.JobID(submitted), Name: "job", Submitted: c.now, Stages: stages[submitted%len(stages)]}
		c.step(b, cluster.Event{Kind: cluster.JobSubmitted, NewJob: job})
		submitted++
	}
	for range nodes * perNode / executors {
		submit()
	}
	for range waiting {
		submit()
	}
	var took []time.Duration
	b.ReportAllocs()
	before := c.started
	for b.Loop() {
		c.now += timeline.Time(200*time.Second) / (nodes * perNode)
		at := c.random.IntN(len(c.running))
		id := c.running[at]
		c.running[at] = c.running[len(c.running)-1]
		c.running = c.running[:len(c.running)-1]
		began := time.Now()
		c.step(b, cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Succeeded})
		took = append(took, time.Since(began))
		for (submitted-waiting)*executors < c.started {
			submit()
		}
	}
	b.ReportMetric(float64(c.started-before)/b.Elapsed().Seconds(), "starts/s")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// forecast returns a stage of executors that have six phases of random length and demand.
func (c *fullCluster) forecast(executors int) cluster.Stage {
	s := cluster.Stage{Name: "s", Tasks: executors, Ideal: resource.Of(resource.Core, resource.GB)}
	amount := func(most resource.Amount) resource.Amount { return resource.Amount(c.random.Int64N(int64(most))) }
	for range 6 {
		s.Phases = append(s.Phases, cluster.Phase{Duration: time.Duration(10+c.random.IntN(50)) * time.Second,
			Demand: resource.Vector{amount(resource.Core), amount(resource.GB), amount(400 * resource.MB), amount(400 * resource.MB)}})
	}
	return s
}
