package book

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// gb is a grant of some cores and gigabytes.
func gb(cores, memory resource.Amount) resource.Vector {
	return resource.Of(cores*resource.Core, memory*resource.GB)
}

// resizeTask takes decisions about task 1.0.0 of the example, which has a grant of gb(1, 1) on a node of gb(4, 10).
func resizeTask(s *Snapshot, last cluster.DecisionID, decide func(*Plan, *TaskState)) ([]cluster.Decision, error) {
	p := newPlan(5, s, last)
	decide(&p, s.task(cluster.TaskID{Job: 1}))
	return p.close(nil)
}

// CPU counts from the decision on; memory counts with the larger amount until all orders are answered.
func TestResize(t *testing.T) {
	type step struct {
		want   resource.Vector // of a Resize, whose ID is the number of Resizes so far; or else:
		answer cluster.EventKind
		of     cluster.DecisionID
		refuse string

		grant   resource.Vector // after the step
		wanted  resource.Vector
		inForce bool
	}
	for name, steps := range map[string][]step{
		"more": {{want: gb(3, 4), grant: gb(3, 4), wanted: gb(3, 4)},
			{answer: cluster.DecisionDone, of: 1, grant: gb(3, 4), wanted: gb(3, 4), inForce: true},
			{answer: cluster.DecisionDone, of: 1, refuse: "launched twice", grant: gb(3, 4), wanted: gb(3, 4), inForce: true}},
		"less": {{want: gb(3, 4), grant: gb(3, 4), wanted: gb(3, 4)}, {answer: cluster.DecisionDone, of: 1, grant: gb(3, 4),
			wanted: gb(3, 4), inForce: true}, {want: gb(1, 2), grant: gb(1, 4), wanted: gb(1, 2)},
			{answer: cluster.DecisionSuperseded, of: 2, refuse: "it is the newest", grant: gb(1, 4), wanted: gb(1, 2)},
			{answer: cluster.DecisionDone, of: 2, grant: gb(1, 2), wanted: gb(1, 2), inForce: true}},
		"fails": {{want: gb(3, 4), grant: gb(3, 4), wanted: gb(3, 4)},
			{answer: cluster.DecisionFailed, of: 1, grant: gb(1, 1), wanted: gb(1, 1)},
			{want: gb(2, 3), grant: gb(2, 3), wanted: gb(2, 3)}, {answer: cluster.DecisionFailed, of: 2, grant: gb(1, 1),
				wanted: gb(1, 1)}},
		"replaced": {{want: gb(3, 4), grant: gb(3, 4), wanted: gb(3, 4)}, {want: gb(2, 2), grant: gb(2, 4), wanted: gb(2, 2)},
			{answer: cluster.DecisionSuperseded, of: 1, grant: gb(2, 2), wanted: gb(2, 2)},
			{answer: cluster.DecisionSuperseded, of: 1, refuse: "not under way", grant: gb(2, 2), wanted: gb(2, 2)},
			{answer: cluster.DecisionFailed, of: 2, grant: gb(1, 1), wanted: gb(1, 1)}},
		"the first is carried out, and the second fails": {{want: gb(3, 4), grant: gb(3, 4), wanted: gb(3, 4)},
			{want: gb(2, 2), grant: gb(2, 4), wanted: gb(2, 2)}, {answer: cluster.DecisionDone, of: 1, grant: gb(2, 4),
				wanted: gb(2, 2)}, {answer: cluster.DecisionFailed, of: 2, grant: gb(3, 4), wanted: gb(3, 4)}},
		"more than there is of CPU": {{want: gb(4, 9), grant: gb(4, 9), wanted: gb(4, 9)},
			{answer: cluster.DecisionFailed, of: 1, grant: gb(1, 1), wanted: gb(1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := example(t)
			task, n := s.task(cluster.TaskID{Job: 1}), s.Nodes[0]
			last := cluster.DecisionID(0)
			for i, st := range steps {
				version := n.Version
				if st.answer == 0 {
					decisions, err := resizeTask(s, last, func(p *Plan, task *TaskState) {
						p.Resize(task, st.want, cluster.Because(cluster.ResumedByOwner))
					})
					if err != nil || len(decisions) != 1 || decisions[0].Kind != cluster.Resize || decisions[0].Grant != st.want ||
						decisions[0].Envelope.Min != st.want[resource.Memory] {
						t.Fatalf("step %d: decisions are %+v (%v)", i, decisions, err)
					}
					last++
				} else {
					err := s.apply(6, &cluster.Event{Kind: st.answer, Task: task.ID, Decision: st.of})
					if (err == nil) != (st.refuse == "") || err != nil && !strings.Contains(err.Error(), st.refuse) {
						t.Fatalf("step %d: %v of %d: %v, want %q", i, st.answer, st.of, err, st.refuse)
					}
				}
				if task.Grant != st.grant || task.WantedGrant() != st.wanted || task.Resized.InForce != st.inForce {
					t.Fatalf("step %d: grant %v, wanted %v, %+v", i, task.Grant, task.WantedGrant(), task.Resized)
				}
				if free := n.Capacity.Sub(task.Grant); n.Unused() != free || st.refuse == "" && n.Version == version {
					t.Fatalf("step %d: unused %v, want %v; version %d after %d", i, n.Unused(), free, n.Version, version)
				}
			}
			if err := s.apply(8, &cluster.Event{Kind: cluster.TaskEnded, Task: task.ID, Outcome: cluster.Killed}); err != nil {
				t.Fatal(err)
			}
			if n.Unused() != n.Capacity {
				t.Errorf("unused %v after the end", n.Unused())
			}
		})
	}
}

// An impossible resize fails the step; one that would change nothing is no decision.
func TestResizeIsChecked(t *testing.T) {
	why := cluster.Because(cluster.ResumedByOwner)
	for _, c := range []struct {
		name   string
		decide func(*Plan, *TaskState)
		want   string
	}{
		{"negative", func(p *Plan, t *TaskState) { p.Resize(t, gb(1, -1), why) }, "must not be negative"},
		{"more than the node", func(p *Plan, t *TaskState) { p.Resize(t, gb(5, 1), why) }, "at most what node \"n0\" has"},
		{"not running", func(p *Plan, t *TaskState) { t.Running = false; p.Resize(t, gb(2, 1), why) }, "it is not running"},
		{"coordinator", func(p *Plan, t *TaskState) { t.Steers = true; p.Resize(t, gb(2, 1), why) }, "it is the coordinator"},
		{"memory that is not free", func(p *Plan, t *TaskState) {
			p.Start(t.Job, 0, t.Node, resource.GB, why)
			p.Resize(t, gb(1, 10), why)
		}, "needs 9000000000 bytes more, and node \"n0\" has 8000000000"},
		{"least by phase", func(p *Plan, t *TaskState) { t.ByPhase = true; p.Resize(t, resource.Of(500, 5), why) },
			"keeps the memory of its largest phase, 1000000000 bytes"},
		{"more than its largest container", func(p *Plan, t *TaskState) {
			t.Stage().MaxMemory = 2 * resource.GB
			p.Resize(t, gb(1, 3), why)
		}, "its container has at most 2000000000 bytes"},
		{"memory that is out", func(p *Plan, t *TaskState) { t.Out = 5; p.Resize(t, gb(1, 2), why) }, ""},
		{"the same", func(p *Plan, t *TaskState) { p.Resize(t, t.Grant, why) }, ""},
		{"killed", func(p *Plan, t *TaskState) { t.Killing = true; p.Resize(t, gb(2, 1), why) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := example(t)
			decisions, err := resizeTask(s, 10, c.decide)
			for _, d := range decisions {
				if d.Kind == cluster.Resize {
					t.Errorf("decided %+v", d)
				}
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
			if task := s.task(cluster.TaskID{Job: 1}); task.Grant != gb(1, 1) || task.Resized != nil {
				t.Errorf("grant %v, %+v", task.Grant, task.Resized)
			}
		})
	}
}

// A node is over-granted CPU by a resize, and starts nothing until enough has been given back.
func TestResizeOverGrants(t *testing.T) {
	s := example(t)
	why, n, j := cluster.Because(cluster.ResumedByOwner), s.Nodes[0], s.Jobs[0]
	_, err := resizeTask(s, 1, func(p *Plan, task *TaskState) {
		p.Start(j, 0, n, resource.GB, why)
		p.Resize(task, gb(4, 1), why)
	})
	if err != nil || n.Overdrawn() != gb(1, 0) || n.Free != gb(0, 8) {
		t.Fatalf("overdrawn %v, free %v (%v)", n.Overdrawn(), n.Free, err)
	}
	if j.Used != gb(6, 3) { // with the task on the other node
		t.Errorf("the job uses %v", j.Used)
	}
	s.Jobs[0].Progress[0].Pending, s.Jobs[0].Stages[0].Tasks = 1, 4
	if _, err := resizeTask(s, 3, func(p *Plan, _ *TaskState) { p.Start(j, 0, n, resource.GB, why) }); err == nil ||
		!strings.Contains(err.Error(), "only memory=8GB are free") {
		t.Errorf("a start on the overdrawn node: %v", err)
	}
}

// An inventory may hold tasks that are over-granted CPU, never memory. The grant that was found is in force.
func TestAdoptedResize(t *testing.T) {
	s := newSnapshot()
	found := func(index int32, grant resource.Vector, c *cluster.Condition) cluster.Event {
		return cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1, Index: index}, Launched: 3,
			Grant: grant, Found: c}
	}
	for _, e := range []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: twoStages(1)},
		found(0, gb(3, 2), &cluster.Condition{ByPhase: true, Was: gb(1, 2), Resized: 4}), found(1, gb(3, 1), nil)} {
		if err := s.apply(9, &e); err != nil {
			t.Fatal(err)
		}
	}
	task := s.task(cluster.TaskID{Job: 1})
	if r := task.Resized; r == nil || !r.InForce || r.Was != gb(1, 2) || r.Since != 4 ||
		task.WantedGrant() != gb(3, 2) || !task.ByPhase {
		t.Errorf("by phase %v, %+v", task.ByPhase, r)
	}
	if s.Nodes[0].Overdrawn() != gb(2, 0) || s.task(cluster.TaskID{Job: 1, Index: 1}).Resized != nil {
		t.Errorf("overdrawn %v", s.Nodes[0].Overdrawn())
	}
	e := found(2, gb(1, 8), nil)
	if err := s.apply(9, &e); err == nil || !strings.Contains(err.Error(), "has cpu=-2 memory=7GB free") {
		t.Errorf("more memory than there is: %v", err)
	}
}

// growing is a job of one stage whose second phase demands more than its first.
func growing(class cluster.Class) *cluster.Job {
	most := resource.Amount(0)
	if class == cluster.Flex {
		most = 5 * resource.GB
	}
	return &cluster.Job{ID: 1, Name: "J", Class: class,
		Stages: []cluster.Stage{{Tasks: 9, Ideal: gb(2, 4), Duration: 30 * time.Second, MinMemory: 1, MaxMemory: most,
			Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 2, DiskRate: 7},
			Phases: []cluster.Phase{{Duration: 10 * time.Second, Demand: gb(0, 1)},
				{Duration: 20 * time.Second, Demand: gb(2, 6)}}}}}
}

// By phase, CPU follows the forecast; memory does where the container can be resized.
func TestStartPhased(t *testing.T) {
	for _, c := range []struct {
		class         cluster.Class
		first, second resource.Vector
		short         string // for a start with less memory
	}{
		{cluster.Regular, resource.Of(1, 6*resource.GB), gb(2, 6),
			"it keeps the memory of its largest phase, 6000000000 bytes"},
		{cluster.Flex, resource.Of(1, resource.GB), gb(2, 5), ""},
	} {
		t.Run(c.class.String(), func(t *testing.T) {
			s, j := newSnapshot(), growing(c.class)
			for _, e := range []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: j}, {Kind: cluster.Synced}} {
				if err := s.apply(0, &e); err != nil {
					t.Fatal(err)
				}
			}
			if first, second := j.GrantIn(0, 0), j.GrantIn(0, 1); first != c.first || second != c.second {
				t.Errorf("grants %v and %v, want %v and %v", first, second, c.first, c.second)
			}
			p := newPlan(0, s, 0)
			task := p.StartPhased(s.Jobs[0], 0, s.Nodes[0], c.first, cluster.Because(cluster.ResumedByOwner))
			decisions, err := p.close(nil)
			if err != nil || !task.ByPhase || task.UnderSized || s.Nodes[0].UnderSizedDisk != 0 ||
				task.Duration != 30*time.Second || task.Grant != c.first {
				t.Fatalf("%+v (%v)", task, err)
			}
			if d := decisions[0]; !d.ByPhase || d.Envelope.Max < c.second[resource.Memory] || d.Envelope.Class != c.class {
				t.Errorf("decision %+v", d)
			}
			p = newPlan(0, s, 1)
			p.StartPhased(s.Jobs[0], 0, s.Nodes[0], resource.Of(1, 5), cluster.Because(cluster.ResumedByOwner))
			if _, err := p.close(nil); (err == nil) != (c.short == "") || err != nil && !strings.Contains(err.Error(), c.short) {
				t.Errorf("error is %v, want %q", err, c.short)
			}
		})
	}
}

// A resize to less than the ideal memory stretches what is left of an under-sized task, and takes its share of the
// disk.
func TestResizeUnderSizes(t *testing.T) {
	s, j := newSnapshot(), growing(cluster.Regular)
	for _, e := range []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: j}, {Kind: cluster.Synced}} {
		if err := s.apply(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	sec, why := timeline.Seconds, cluster.Because(cluster.ResumedByOwner)
	p := newPlan(0, s, 0)
	task := p.Start(s.Jobs[0], 0, s.Nodes[0], 4*resource.GB, why)
	if err := s.apply(0, &cluster.Event{Kind: cluster.DecisionDone, Task: task.ID, Decision: 1}); err != nil {
		t.Fatal(err)
	}
	ends := func(now, want timeline.Time, disk resource.Amount) {
		t.Helper()
		if end, _ := s.EstimatedEnd(task, now); end != want || s.Nodes[0].UnderSizedDisk != disk ||
			task.UnderSized != (disk > 0) {
			t.Errorf("ends %v, want %v; disk %d, want %d", end, want, s.Nodes[0].UnderSizedDisk, disk)
		}
	}
	p = newPlan(sec(10), s, 1)
	p.Resize(task, gb(2, 2), why)
	ends(sec(10), sec(30), 0) // it has its memory until the order is carried out
	if err := s.apply(sec(10), &cluster.Event{Kind: cluster.DecisionDone, Task: task.ID, Decision: 2}); err != nil {
		t.Fatal(err)
	}
	ends(sec(10), sec(50), 7)
	p = newPlan(sec(20), s, 2)
	p.Resize(task, gb(1, 4), why)
	ends(sec(20), sec(35), 0)
	if err := s.apply(sec(20), &cluster.Event{Kind: cluster.DecisionFailed, Task: task.ID, Decision: 3}); err != nil {
		t.Fatal(err)
	}
	ends(sec(20), sec(50), 7)
}

// TestRandomResizes: whatever is resized, stopped, answered and ended, the books agree with the grants; memory is
// never granted twice, an answer never takes memory, and nothing starts on an overdrawn node.
func TestRandomResizes(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := newLending(t, seed%2 == 0, 500)
		l.start()
		var orders []cluster.Decision // that have not been answered
		for range 300 {
			n := l.node()
			if len(n.Tasks) == 0 {
				l.start()
				continue
			}
			task := n.Tasks[random.IntN(len(n.Tasks))]
			switch random.IntN(6) {
			case 0:
				l.enter(cluster.Event{Kind: cluster.TaskEnded, Task: task.ID, Outcome: cluster.Succeeded})
			case 1:
				if task.Suspended {
					l.enter(cluster.Event{Kind: cluster.TaskResumed, Task: task.ID})
				} else {
					l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: task.ID, By: cluster.HeldByMemory})
				}
			case 2, 3:
				want := resource.Vector{resource.Amount(1+random.IntN(40)) * 100,
					resource.Amount(1+random.IntN(30)) * 100 * resource.MB, resource.Amount(random.IntN(100)) * resource.MB, 0}
				if want[resource.Memory] > task.Grant[resource.Memory]+n.Unused()[resource.Memory] {
					continue
				}
				p := l.book.Open(l.now)
				p.Resize(task, want, cluster.Because(cluster.ResumedByOwner))
				decisions, err := l.book.Close()
				if err != nil {
					t.Fatal(err)
				}
				orders = append(orders, decisions...)
			case 4:
				if len(orders) == 0 {
					continue
				}
				at := random.IntN(len(orders))
				d := orders[at]
				orders = slices.Delete(orders, at, at+1)
				task := l.book.Snapshot().task(d.Task)
				if task == nil {
					continue
				}
				before, kind := task.Grant[resource.Memory], []cluster.EventKind{cluster.DecisionDone, cluster.DecisionFailed,
					cluster.DecisionSuperseded}[random.IntN(3)]
				if kind == cluster.DecisionSuperseded && task.Resized.Decision == d.ID {
					kind = cluster.DecisionDone
				}
				l.enter(cluster.Event{Kind: kind, Task: d.Task, Decision: d.ID})
				if task.Grant[resource.Memory] > before {
					t.Fatalf("seed %d: %v takes %d bytes after %d", seed, kind, task.Grant[resource.Memory], before)
				}
			default:
				before := n.Overdrawn()
				if started := l.start(); before[resource.CPU] > 0 && len(started) > 0 {
					t.Fatalf("seed %d: %d tasks were started while %v were overdrawn", seed, len(started), before)
				}
			}
			l.enter(cluster.Event{Kind: cluster.Woken})
			unused, used := l.node().Capacity, resource.Vector{}
			for _, task := range l.node().Tasks {
				unused, used = unused.Sub(task.Holds()), used.Add(task.Holds())
				if want := task.WantedGrant(); task.Grant.With(resource.Memory, 0) != want.With(resource.Memory, 0) ||
					task.Grant[resource.Memory] < want[resource.Memory] {
					t.Fatalf("seed %d: grant %v, wanted %v", seed, task.Grant, want)
				}
			}
			if n := l.node(); n.Unused() != unused || n.Free != unused.Max(resource.Vector{}) || unused[resource.Memory] < 0 {
				t.Fatalf("seed %d: unused %v, free %v; want %v", seed, n.Unused(), n.Free, unused)
			}
			if j := l.book.Snapshot().Jobs[0]; j.Used != used {
				t.Fatalf("seed %d: the job uses %v, want %v", seed, j.Used, used)
			}
		}
	}
}
