package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// stepped are the policies, with settings, whose steps are measured.
var stepped = []policyWith{
	{"bellows", "", ""},
	{"contention-aware", "", ""},
	{"ecs", "", ""},
	{"fifo", "", ""},
	{"fair", "fair.reservations", "true"},
	{"fair", "fair.reservations", "false"},
	{"capacity", "capacity.queues", "a=50%,a.x=50%,a.y=50%,default=50%"},
	{"drf", "", ""},
	{"drf", "drf.queues", "a=1,a.x=1,a.y=2,default=1"},
	{"mira", "", ""},
	{"prism", "", ""},
	{"prophet", "", ""},
	{"pufferfish", "", ""},
	{"pufferfish", "pufferfish.order", "sjf"},
	{"srjf", "", ""},
	{"static", "", ""},
	{"tetris", "", ""},
	{"tetris", "tetris.fairness", "0"},
	{"yarn-me", "yarn-me.timeline", "sum"},
}

// policyWith is a policy with one setting, or with none.
type policyWith struct{ policy, setting, value string }

func (c policyWith) String() string {
	if c.setting == "" {
		return c.policy
	}
	return c.policy + "/" + c.setting + "=" + c.value
}

func (c policyWith) make(t testing.TB) policy.Policy {
	settings := map[string]string{}
	if c.setting != "" {
		settings[c.setting] = c.value
	}
	p, err := policy.New(c.policy, settings)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// BenchmarkStep is a full cluster in steady state: at each step one task ends and the policy starts another in its
// place, which is launched by the next step. The cost of a step must not grow with the number of nodes that did not
// change.
func BenchmarkStep(b *testing.B) {
	for _, c := range stepped {
		for _, nodes := range []int{100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", c, nodes), func(b *testing.B) { benchmarkSteps(b, c.make(b), nodes) })
		}
	}
}

const (
	tasksPerNode = 10
	benchJobs    = 100
)

// fullCluster fills every node with ten tasks and keeps as many tasks waiting.
type fullCluster struct {
	engine   *engine.Engine
	running  []cluster.TaskID
	now      timeline.Time
	random   *rand.Rand
	started  int
	every    timeline.Time // between two ends
	launches []cluster.Event
}

func benchmarkSteps(b *testing.B, p policy.Policy, nodes int) {
	c := newFullCluster(b, p, nodes)
	b.ReportAllocs()
	before := c.started
	for b.Loop() {
		c.endOne(b)
	}
	if c.started == before {
		b.Fatal("nothing was started")
	}
	b.ReportMetric(float64(c.started-before)/b.Elapsed().Seconds(), "starts/s")
}

func newFullCluster(t testing.TB, p policy.Policy, nodes int) *fullCluster {
	c := &fullCluster{engine: engine.New(p, nil), random: rand.New(rand.NewPCG(1, 2)),
		every: timeline.Time(100*time.Second) / timeline.Time(nodes*tasksPerNode)}
	events := []cluster.Event{}
	for i := range nodes {
		n := &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("node", i),
			Capacity: resource.Of(16*resource.Core, 10*resource.GB)}
		events = append(events, cluster.Event{Kind: cluster.NodeJoined, NewNode: n})
	}
	c.step(t, append(events, cluster.Event{Kind: cluster.Synced})...)
	const perJob = 1 << 24 // more than ever start
	for i := range benchJobs {
		job := &cluster.Job{ID: cluster.JobID(i), Name: fmt.Sprint("job", i), Class: cluster.Class(i % 2),
			Stages: []cluster.Stage{{Tasks: perJob, Ideal: resource.Of(resource.Core, resource.GB),
				MinMemory: 100 * resource.MB, Duration: 100 * time.Second, Elasticity: cluster.Elasticity{Kind: cluster.SawTooth,
					Factor: 1.5}}}}
		c.step(t, cluster.Event{Kind: cluster.JobSubmitted, NewJob: job})
	}
	return c
}

// endOne ends a random task.
func (c *fullCluster) endOne(t testing.TB) {
	c.now += c.every
	at := c.random.IntN(len(c.running))
	id := c.running[at]
	c.running[at] = c.running[len(c.running)-1]
	c.running = c.running[:len(c.running)-1]
	c.step(t, cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Succeeded})
}

func (c *fullCluster) step(t testing.TB, events ...cluster.Event) {
	decisions, err := c.engine.Step(c.now, events...)
	if err != nil {
		t.Fatal(err)
	}
	c.launch(t, decisions)
}

// launch tells the engine that the tasks that it started run.
func (c *fullCluster) launch(t testing.TB, decisions []cluster.Decision) {
	launches := c.launches[:0]
	for i := range decisions {
		if decisions[i].Kind == cluster.Start {
			c.started++
			c.running = append(c.running, decisions[i].Task)
			launches = append(launches, cluster.Event{Kind: cluster.DecisionDone, Decision: decisions[i].ID,
				Task: decisions[i].Task})
		}
	}
	if c.launches = launches; len(launches) > 0 {
		if _, err := c.engine.Step(c.now, launches...); err != nil {
			t.Fatal(err)
		}
	}
}
