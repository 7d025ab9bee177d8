package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// No policy lets a job wait that could start, unless it says why.
func TestNoJobWaitsWithoutAReason(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			conserves(t, func() policy.Policy {
				p, err := policy.New(name, nil)
				if err != nil {
					t.Fatal(err)
				}
				return p
			})
		})
	}
}

// conserves checks that a policy starts what can start. On random small clusters, after each step, each job with a
// task to start waits for room, or the policy has a reason: another job comes first (Plan.WaitBehind), or what
// Traits.Why or Plan.Wait says. And when nothing more is submitted, all jobs end. It reports the smallest example.
func conserves(t *testing.T, made func() policy.Policy) {
	t.Helper()
	if err := counterexample(made); err != nil {
		t.Error(err)
	}
}

// counterexample returns the first failure, from clusters of few nodes and few events to larger ones.
func counterexample(made func() policy.Policy) error {
	for events := 1; events <= 16; events++ {
		for nodes := 1; nodes <= 3; nodes++ {
			for seed := range uint64(25) {
				l := &littleCluster{random: rand.New(rand.NewPCG(seed, uint64(8*events+nodes))), policy: made()}
				l.engine = engine.New(l.policy, nil)
				if err := l.run(nodes, events); err != nil {
					return fmt.Errorf("%w\n\n%s", err, strings.Join(l.story, "\n"))
				}
			}
		}
	}
	return nil
}

// littleCluster is a cluster in which one thing happens at a time.
type littleCluster struct {
	random *rand.Rand
	policy policy.Policy
	engine *engine.Engine
	now    timeline.Time
	wakes  []timeline.Time
	story  []string
}

func (l *littleCluster) run(nodes, events int) error {
	var boot []cluster.Event
	for i := range nodes {
		capacity := resource.Of(resource.Amount(1+l.random.IntN(4))*resource.Core,
			resource.Amount(1+l.random.IntN(8))*resource.GB)
		boot = append(boot, cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprintf("n%d", i+1), Capacity: capacity}})
		l.tell("node n%d has %v", i+1, capacity)
	}
	if err := l.step(append(boot, cluster.Event{Kind: cluster.Synced})...); err != nil {
		return err
	}
	for range events {
		l.now = l.now.Add(time.Second)
		var err error
		if l.random.IntN(2) == 0 {
			err = l.submit()
		} else {
			err = l.goOn()
		}
		if err != nil {
			return err
		}
	}
	for len(l.engine.Snapshot().Jobs) > 0 {
		switch l.now = l.now.Add(time.Second); {
		case l.engine.Snapshot().Running == 0 && len(l.wakes) == 0:
			return fmt.Errorf("job %d does not end: nothing runs, and the policy wants no step later",
				l.engine.Snapshot().Jobs[0].ID)
		case l.engine.Steps() > 10_000:
			return fmt.Errorf("job %d does not end after 10000 steps", l.engine.Snapshot().Jobs[0].ID)
		}
		if err := l.goOn(); err != nil {
			return err
		}
	}
	return nil
}

// submit submits a job that the policy can run.
func (l *littleCluster) submit() error {
	j := &cluster.Job{ID: cluster.JobID(len(l.story)), Submitted: l.now, MaxAttempts: 9}
	j.Name = fmt.Sprintf("J%d", j.ID)
	words := ""
	for i := range 1 + l.random.IntN(2) {
		g := cluster.Stage{Tasks: 1 + l.random.IntN(3), Duration: 10 * time.Second,
			Ideal: resource.Of(resource.Amount(l.random.IntN(3))*resource.Core, resource.Amount(1+l.random.IntN(6))*resource.GB)}
		if words += fmt.Sprintf(", %d tasks of %v", g.Tasks, g.Ideal); i > 0 && l.random.IntN(2) == 0 {
			g.Parents = []int{0}
			words += " after these"
		}
		j.Stages = append(j.Stages, g)
	}
	if policy.CheckRuns(l.policy, l.engine.Snapshot(), j) != nil {
		return nil
	}
	l.tell("job %d is submitted%s", j.ID, words)
	return l.step(cluster.Event{Kind: cluster.JobSubmitted, NewJob: j})
}

// goOn launches or ends a task, if there is one.
func (l *littleCluster) goOn() error {
	var tasks []*book.TaskState
	for _, n := range l.engine.Snapshot().Nodes {
		tasks = append(tasks, n.Tasks...)
	}
	if len(tasks) == 0 {
		return l.step()
	}
	t := tasks[l.random.IntN(len(tasks))]
	if !t.Running {
		l.tell("task %s runs on %s", t.ID, t.Node.Name)
		return l.step(cluster.Event{Kind: cluster.DecisionDone, Task: t.ID})
	}
	outcome := cluster.Succeeded
	if l.random.IntN(8) == 0 {
		outcome = cluster.Lost
	}
	l.tell("task %s: %s", t.ID, outcome)
	return l.step(cluster.Event{Kind: cluster.TaskEnded, Task: t.ID, Outcome: outcome})
}

func (l *littleCluster) tell(format string, operands ...any) {
	l.story = append(l.story, fmt.Sprintf("%4v  ", l.now)+fmt.Sprintf(format, operands...))
}

// step passes events to the engine, after the wakes that were due, and checks why jobs wait.
func (l *littleCluster) step(events ...cluster.Event) error {
	slices.Sort(l.wakes)
	for len(l.wakes) > 0 && l.wakes[0] <= l.now {
		at := l.wakes[0]
		l.wakes = l.wakes[1:]
		if err := l.decide(at, cluster.Event{Kind: cluster.Woken}); err != nil {
			return err
		}
	}
	return l.decide(l.now, events...)
}

func (l *littleCluster) decide(now timeline.Time, events ...cluster.Event) error {
	decisions, err := l.engine.Step(now, events...)
	if err != nil {
		return err
	}
	for _, d := range decisions {
		switch d.Kind {
		case cluster.Wake:
			l.wakes = append(l.wakes, d.At)
		case cluster.Kill, cluster.Throttle, cluster.Suspend, cluster.Resume, cluster.Resize, cluster.Ask:
			return fmt.Errorf("it decides to %s, which this test does not carry out", d.Kind)
		}
	}
	s := l.engine.Snapshot()
	for _, j := range s.Jobs {
		stage, waits := j.NextStage()
		if !waits {
			continue
		}
		if _, ok := l.engine.WhyWaits(now, j); ok {
			continue
		}
		need := j.Stages[stage].Ideal
		n, _ := s.FirstOpen(need, 0)
		return fmt.Errorf("job %d waits though node %s has room: a task needs %v, %v are free, and the policy has no "+
			"reason", j.ID, n.Name, need, n.Free)
	}
	return nil
}
