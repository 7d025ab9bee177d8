package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/engine"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// BenchmarkStep is a full cluster in steady state: at each step one task ends and the policy starts another in its
// place, which is launched by the next step. The cost of a step must not grow with the number of nodes that did not
// change.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct{ policy, setting, value string }{
		{"fifo", "", ""},
		{"fair", "fair.reservations", "true"},
		{"fair", "fair.reservations", "false"},
		{"capacity", "capacity.queues", "a=50%,a.x=50%,a.y=50%,default=50%"},
		{"drf", "", ""},
		{"drf", "drf.queues", "a=1,a.x=1,a.y=2,default=1"},
		{"prophet", "", ""},
		{"pufferfish", "", ""},
		{"pufferfish", "pufferfish.order", "sjf"},
		{"srjf", "", ""},
		{"static", "", ""},
		{"tetris", "", ""},
		{"tetris", "tetris.fairness", "0"},
		{"yarn-me", "yarn-me.timeline", "sum"},
	} {
		for _, nodes := range []int{100, 1000, 10000} {
			name := c.policy
			if c.setting != "" {
				name += "/" + c.setting + "=" + c.value
			}
			b.Run(fmt.Sprintf("%s/nodes=%d", name, nodes), func(b *testing.B) {
				settings := map[string]string{}
				if c.setting != "" {
					settings[c.setting] = c.value
				}
				p, err := policy.New(c.policy, settings)
				if err != nil {
					b.Fatal(err)
				}
				benchmarkSteps(b, p, nodes)
			})
		}
	}
}

const (
	tasksPerNode = 10
	benchJobs    = 100
)

// fullCluster fills every node with ten tasks and keeps as many tasks waiting.
type fullCluster struct {
	engine  *engine.Engine
	running []cluster.TaskID
	now     timeline.Time
	random  *rand.Rand
	started int
}

func benchmarkSteps(b *testing.B, p policy.Policy, nodes int) {
	c := fullCluster{engine: engine.New(p, nil), random: rand.New(rand.NewPCG(1, 2))}
	events := []cluster.Event{}
	for i := range nodes {
		n := &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("node", i), Capacity: resource.Of(16*resource.Core, 10*resource.GB)}
		events = append(events, cluster.Event{Kind: cluster.NodeJoined, NewNode: n})
	}
	c.step(b, append(events, cluster.Event{Kind: cluster.Synced})...)
	const perJob = 1 << 24 // more than ever start
	for i := range benchJobs {
		job := &cluster.Job{ID: cluster.JobID(i), Name: fmt.Sprint("job", i), Class: cluster.Class(i % 2), Stages: []cluster.Stage{{Tasks: perJob,
			Ideal: resource.Of(resource.Core, resource.GB), MinMemory: 100 * resource.MB, Duration: 100 * time.Second,
			Elasticity: cluster.Elasticity{Kind: cluster.SawTooth, Factor: 1.5}}}}
		c.step(b, cluster.Event{Kind: cluster.JobSubmitted, NewJob: job})
	}
	b.ReportAllocs()
	before := c.started
	for b.Loop() {
		c.now += timeline.Time(100*time.Second) / timeline.Time(nodes*tasksPerNode)
		at := c.random.IntN(len(c.running))
		id := c.running[at]
		c.running[at] = c.running[len(c.running)-1]
		c.running = c.running[:len(c.running)-1]
		c.step(b, cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Succeeded})
	}
	if c.started == before {
		b.Fatal("nothing was started")
	}
	b.ReportMetric(float64(c.started-before)/b.Elapsed().Seconds(), "starts/s")
}

func (c *fullCluster) step(b *testing.B, events ...cluster.Event) {
	decisions, err := c.engine.Step(c.now, events...)
	if err != nil {
		b.Fatal(err)
	}
	launches := events[:0:0]
	for i := range decisions {
		if decisions[i].Kind == cluster.Start {
			c.started++
			c.running = append(c.running, decisions[i].Task)
			launches = append(launches, cluster.Event{Kind: cluster.DecisionDone, Decision: decisions[i].ID, Task: decisions[i].Task})
		}
	}
	if len(launches) > 0 {
		if _, err := c.engine.Step(c.now, launches...); err != nil {
			b.Fatal(err)
		}
	}
}
