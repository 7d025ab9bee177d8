package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
)

// BenchmarkShares is a pool in steady state under policy mira: the time of a step in which executors are divided anew
// among the applications (Mira, section V.A), from the event to the decisions. Every other application always has
// tasks. The others have as many as half of an equal share, and get as many again when all have ended, so that
// demands go up and down.
func BenchmarkShares(b *testing.B) {
	for _, size := range []struct {
		executors, applications int
		keep                    string
	}{{112, 10, "none"}, {10000, 1000, "none"}, {112, 10, "2s"}, {10000, 1000, "2s"}} {
		name := fmt.Sprintf("executors=%d/applications=%d", size.executors, size.applications)
		if size.keep != "none" {
			name += "/keep=" + size.keep
		}
		b.Run(name, func(b *testing.B) {
			c := newSharedPool(b, size.executors, size.applications, size.keep)
			for range 4 * size.executors {
				c.endOne(b)
			}
			c.divided, c.filtered = c.divided[:0], c.filtered[:0]
			b.ReportAllocs()
			for b.Loop() {
				c.endOne(b)
			}
			report := func(took []time.Duration, what string) {
				if len(took) == 0 {
					return
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, what+"-p50-us")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, what+"-p99-us")
			}
			report(c.divided, "divided")
			report(c.filtered, "filtered")
			b.ReportMetric(float64(len(c.divided))/float64(len(c.divided)+len(c.filtered)), "divided-share")
		})
	}
}

// sharedPool is a pool whose executors all run tasks.
type sharedPool struct {
	fullCluster
	divisions         func() int64
	left              []int // tasks of each application that have not ended; 0 of those that always have some
	tasks             int   // that an application gets at a time
	divided, filtered []time.Duration
}

func newSharedPool(t testing.TB, executors, applications int, keep string) *sharedPool {
	p, err := policy.New("mira", map[string]string{"mira.keep": keep})
	if err != nil {
		t.Fatal(err)
	}
	c := &sharedPool{fullCluster: fullCluster{engine: engine.New(p, nil), random: rand.New(rand.NewPCG(1, 2)),
		every: 1000}, divisions: p.Traits().Divisions, left: make([]int, applications),
		tasks: max(1, executors/applications/2)}
	whole := resource.Of(resource.Core, resource.MiB)
	var events []cluster.Event
	for i := range executors {
		events = append(events,
			cluster.Event{Kind: cluster.NodeJoined,
				NewNode: &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("executor", i), Capacity: whole}})
	}
	for i := range applications {
		s := cluster.Stage{Tasks: 1 << 24, Ideal: whole} // more than ever start
		if i%2 == 1 {
			s.Tasks, c.left[i] = c.tasks, c.tasks
		}
		events = append(events,
			cluster.Event{Kind: cluster.JobSubmitted,
				NewJob: &cluster.Job{ID: cluster.JobID(i), Name: fmt.Sprint("application", i), Open: true,
					Stages: []cluster.Stage{s}}})
	}
	c.step(t, append(events, cluster.Event{Kind: cluster.Synced})...)
	return c
}

// endOne ends a random task. If it was the last of its application, that gets tasks again.
func (c *sharedPool) endOne(t testing.TB) {
	c.now += c.every
	at, last := c.random.IntN(len(c.running)), len(c.running)-1
	id := c.running[at]
	c.running[at], c.running = c.running[last], c.running[:last]
	events := append(make([]cluster.Event, 0, 2), cluster.Event{Kind: cluster.TaskEnded, Task: id,
		Outcome: cluster.Succeeded})
	if a := id.Job; c.left[a] > 0 {
		if c.left[a]--; c.left[a] == 0 {
			c.left[a] = c.tasks
			events = append(events,
				cluster.Event{Kind: cluster.JobGrew, Job: a,
					Found: &cluster.Condition{Growth: &cluster.Growth{Tasks: []cluster.MoreTasks{{Tasks: c.tasks}}}}})
		}
	}
	before, began := c.divisions(), time.Now()
	decisions, err := c.engine.Step(c.now, events...)
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	if c.divisions() == before {
		c.filtered = append(c.filtered, took)
	} else {
		c.divided = append(c.divided, took)
	}
	c.launch(t, decisions)
}
