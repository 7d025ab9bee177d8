package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"golang.org/x/sys/unix"
)

// BenchmarkAhead measures a full cluster in steady state whose tasks have forecasts of six phases in four resources: 20
// executors run on each node, and 100 applications wait. Tetris has fewer nodes: it grants peaks, so that a third of
// its applications wait, and filling the nodes takes a time that grows with nearly the cube of their number. In each
// step one executor ends; whenever applications have started, as many are submitted.
//
// It reports starts per second, and per second of user CPU time, which other programs of the machine disturb less.
// p99-step is the 99th percentile of the CPU time of the steps in which something ended, p99-decision that of the
// calls of Policy.Decide in which something started. One step in 16 is timed: the clock of a thread is a system call.
func BenchmarkAhead(b *testing.B) {
	for _, c := range []struct {
		policy           string
		nodes, executors int
	}{{"prophet", 1000, 1}, {"prophet", 1000, 4}, {"tetris", 200, 1}} {
		b.Run(fmt.Sprintf("%s/nodes=%d/executors=%d", c.policy, c.nodes, c.executors), func(b *testing.B) {
			runtime.LockOSThread() // the clock of decisions is of one thread
			defer runtime.UnlockOSThread()
			c := newAheadCluster(b, c.policy, c.nodes, c.executors)
			b.ReportAllocs()
			before, used := c.started, userTime(b)
			for b.Loop() {
				c.endOne(b)
			}
			used = userTime(b) - used
			started := float64(c.started - before)
			b.ReportMetric(started/b.Elapsed().Seconds(), "starts/s")
			b.ReportMetric(started/used.Seconds(), "starts/cpu-s")
			b.ReportMetric(float64(p99(c.steps)), "p99-step-ns")
			b.ReportMetric(float64(p99(c.policy.decisions)), "p99-decision-ns")
		})
	}
}

// aheadCluster is a full cluster whose tasks have forecasts.
type aheadCluster struct {
	fullCluster
	policy    *timedPolicy
	nodes     int
	executors int // of an application
	stages    [][]cluster.Stage
	submitted int
	ended     int             // executors
	steps     []time.Duration // CPU time of steps in which an executor ended
}

const (
	aheadPerNode = 20  // executors that run on a node
	aheadWaiting = 100 // applications
)

// newAheadCluster returns a cluster on which no other executor has room.
func newAheadCluster(b testing.TB, name string, nodes, executors int) *aheadCluster {
	p, err := policy.New(name, nil)
	if err != nil {
		b.Fatal(err)
	}
	timed := &timedPolicy{Policy: p}
	c := &aheadCluster{fullCluster: fullCluster{engine: engine.New(timed, nil), random: rand.New(rand.NewPCG(1, 2))},
		policy: timed, nodes: nodes, executors: executors, stages: make([][]cluster.Stage, 5000)}
	var events []cluster.Event
	for i := range nodes {
		n := &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("node", i),
			Capacity: resource.Vector{aheadPerNode * resource.Core, aheadPerNode * resource.GB, 4 * resource.GB,
				4 * resource.GB}}
		events = append(events, cluster.Event{Kind: cluster.NodeJoined, NewNode: n})
	}
	c.step(b, append(events, cluster.Event{Kind: cluster.Synced})...)
	for i := range c.stages {
		c.stages[i] = []cluster.Stage{c.forecast(executors)}
	}
	for range nodes*aheadPerNode/executors + aheadWaiting {
		c.submit(b)
	}
	return c
}

// submit submits the next application.
func (c *aheadCluster) submit(b testing.TB) {
	job := &cluster.Job{ID: cluster.JobID(c.submitted), Name: "job", Submitted: c.now,
		Stages: c.stages[c.submitted%len(c.stages)]}
	c.step(b, cluster.Event{Kind: cluster.JobSubmitted, NewJob: job})
	c.submitted++
}

// endOne ends an executor, and submits applications for those that start.
func (c *aheadCluster) endOne(b testing.TB) {
	c.now += timeline.Time(200*time.Second) / timeline.Time(c.nodes*aheadPerNode)
	at := c.random.IntN(len(c.running))
	id := c.running[at]
	c.running[at] = c.running[len(c.running)-1]
	c.running = c.running[:len(c.running)-1]
	c.policy.timing = c.ended%16 == 0
	began := c.policy.clock()
	c.step(b, cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Succeeded})
	if c.policy.timing {
		c.steps = append(c.steps, c.policy.clock()-began)
	}
	c.policy.timing = false
	c.ended++
	for (c.submitted-aheadWaiting)*c.executors < c.started {
		c.submit(b)
	}
}

// forecast returns a stage of executors that have six phases of random length and demand.
func (c *fullCluster) forecast(executors int) cluster.Stage {
	s := cluster.Stage{Name: "s", Tasks: executors, Ideal: resource.Of(resource.Core, resource.GB)}
	amount := func(most resource.Amount) resource.Amount { return resource.Amount(c.random.Int64N(int64(most))) }
	for range 6 {
		s.Phases = append(s.Phases, cluster.Phase{Duration: time.Duration(10+c.random.IntN(50)) * time.Second,
			Demand: resource.Vector{amount(resource.Core), amount(resource.GB), amount(400 * resource.MB),
				amount(400 * resource.MB)}})
	}
	return s
}

// timedPolicy measures the CPU time of calls that start something.
type timedPolicy struct {
	policy.Policy
	timing    bool // the calls are measured
	decisions []time.Duration
}

func (p *timedPolicy) Decide(now timeline.Time, plan *book.Plan) {
	running, began := plan.Running, p.clock()
	p.Policy.Decide(now, plan)
	if p.timing && plan.Running > running {
		p.decisions = append(p.decisions, p.clock()-began)
	}
}

// clock returns the CPU time of the calling thread, or 0 if calls are not measured.
func (p *timedPolicy) clock() time.Duration {
	if !p.timing {
		return 0
	}
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // It always succeeds with this clock.
	return time.Duration(t.Nano())
}

// userTime returns the CPU time of the process outside of the kernel.
func userTime(b testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano())
}

// p99 returns the 99th percentile of all, which it sorts.
func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}
