package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// desk is an engine with the policy bellows.
type desk struct {
	*testing.T
	engine *engine.Engine
	last   []cluster.Decision
}

func newDesk(t *testing.T, settings map[string]string, nodes ...resource.Vector) *desk {
	t.Helper()
	p, err := policy.New("bellows", settings)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, engine: engine.New(p, nil)}
	var events []cluster.Event
	for i, capacity := range nodes {
		events = append(events, cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{ID: cluster.NodeID(i),
			Name: fmt.Sprintf("n%d", i+1), Capacity: capacity}})
	}
	d.step(0, append(events, cluster.Event{Kind: cluster.Synced})...)
	return d
}

// step takes a step, launches what it starts, and returns the tasks with the nodes on which they start.
func (d *desk) step(now timeline.Time, events ...cluster.Event) (starts string) {
	d.Helper()
	decisions, err := d.engine.Step(now, events...)
	if err != nil {
		d.Fatal(err)
	}
	d.last = append(d.last[:0], decisions...)
	for _, c := range d.last {
		if c.Kind != cluster.Start {
			continue
		}
		starts += fmt.Sprintf(" %s on n%d", c.Task, c.Node+1)
		if _, err := d.engine.Step(now, cluster.Event{Kind: cluster.DecisionDone, Decision: c.ID, Task: c.Task}); err != nil {
			d.Fatal(err)
		}
	}
	return starts
}

func (d *desk) submit(now timeline.Time, j cluster.Job) string {
	d.Helper()
	j.Submitted, j.Name = now, fmt.Sprint("J", j.ID)
	return d.step(now, cluster.Event{Kind: cluster.JobSubmitted, Job: j.ID, NewJob: &j})
}

func (d *desk) end(now timeline.Time, job cluster.JobID) string {
	d.Helper()
	return d.step(now, cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: job}, Outcome: cluster.Succeeded})
}

// box is a job of one task that needs a core and some GB.
func box(id cluster.JobID, gb int64, lasts time.Duration) cluster.Job {
	return cluster.Job{ID: id, Stages: []cluster.Stage{{Tasks: 1, Duration: lasts,
		Ideal: resource.Of(resource.Core, resource.Amount(gb)*resource.GB)}}}
}

// A large job does not wait for ever behind small ones that keep coming: once it has waited for the patience, the node
// is kept for it. Meanwhile a job that ends before may use the node.
func TestLargeJobIsNotStarved(t *testing.T) {
	d := newDesk(t, map[string]string{"bellows.patience": "60s"}, resource.Of(8*resource.Core, 4*resource.GB))
	for i := range 4 {
		d.submit(timeline.Time(i), box(cluster.JobID(i+1), 1, 100*time.Second))
	}
	large := cluster.JobID(100)
	d.submit(5, box(large, 4, 50*time.Second))
	began, next := timeline.Never, cluster.JobID(5)
	for now := timeline.Seconds(10); now < timeline.Seconds(1000) && began == timeline.Never; now += timeline.Seconds(25) {
		if running := d.engine.Snapshot().Nodes[0].Tasks; len(running) > 0 {
			d.end(now, running[0].ID.Job)
		}
		d.submit(now, box(next, 1, 100*time.Second))
		if next++; d.holds(large) {
			began = now
		}
	}
	if most := timeline.Seconds(60 + 4*25 + 2*25); began > most {
		t.Errorf("the large job starts at %v, want it by %v: after its patience, and what ran then", began, most)
	}
}

// holds reports whether a task of a job runs.
func (d *desk) holds(job cluster.JobID) bool {
	for _, n := range d.engine.Snapshot().Nodes {
		for _, t := range n.Tasks {
			if t.ID.Job == job {
				return true
			}
		}
	}
	return false
}

// A job past its deadline comes before jobs that the order and the score prefer.
func TestDeadlineComesFirst(t *testing.T) {
	d := newDesk(t, nil, resource.Of(resource.Core, 4*resource.GB))
	d.submit(0, box(1, 4, 100*time.Second))
	urgent := box(3, 4, 500*time.Second)
	urgent.Deadline = 50 * time.Second
	d.submit(1, box(2, 4, 10*time.Second))
	d.submit(timeline.Seconds(2), urgent)
	if got := d.end(timeline.Seconds(100), 1); got != " 3.0.0 on n1" {
		t.Errorf("after job 1 starts%s, want job 3, which is past its deadline", got)
	}
}

// A job past its deadline gets the next node that could hold its task: small jobs that keep coming do not fill it.
func TestRoomIsKeptForDeadline(t *testing.T) {
	d := newDesk(t, map[string]string{"bellows.patience": "0s", "bellows.backfill": "any"},
		resource.Of(8*resource.Core, 4*resource.GB))
	d.submit(0, box(1, 2, 100*time.Second))
	d.submit(0, box(2, 2, 150*time.Second))
	urgent := box(3, 4, 500*time.Second)
	urgent.Deadline = 50 * time.Second
	got := d.submit(1, urgent) + d.submit(2, box(4, 2, 100*time.Second)) + d.end(timeline.Seconds(100), 1) +
		d.end(timeline.Seconds(150), 2)
	if got != " 3.0.0 on n1" {
		t.Errorf("after jobs 1 and 2 start%s, want job 3, which is past its deadline", got)
	}
}

// A node that could hold a task only under-sized is not kept for it where tasks are not under-sized.
func TestNoRoomIsKeptInVain(t *testing.T) {
	for size, kept := range map[string]bool{"elastic": true, "ideal": false} {
		d := newDesk(t, map[string]string{"bellows.size": size}, resource.Of(resource.Core, 6*resource.GB),
			resource.Of(resource.Core, 8*resource.GB))
		d.submit(0, box(1, 1, 100*time.Second))
		d.submit(0, box(2, 1, 100*time.Second))
		d.submit(0, box(3, 1, 100*time.Second))
		urgent := box(4, 8, 50*time.Second)
		urgent.Deadline = time.Second
		urgent.Stages[0].MinMemory = resource.GB
		urgent.Stages[0].Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: 9}
		d.submit(1, urgent)
		d.end(timeline.Seconds(100), 1)
		if got := d.engine.Snapshot().Nodes[0].ReservedFor != nil || d.holds(4); got != kept {
			t.Errorf("size=%s keeps a node of 6 GB, or starts there: %v, want %v", size, got, kept)
		}
	}
}

// Of several waiting jobs the one with less work left comes first, unless order decides alone.
func TestLessWorkComesFirst(t *testing.T) {
	for place, want := range map[string]string{"forecast": " 3.0.0 on n1", "first": " 2.0.0 on n1"} {
		d := newDesk(t, map[string]string{"bellows.place": place}, resource.Of(resource.Core, 4*resource.GB))
		d.submit(0, box(1, 4, 100*time.Second))
		d.submit(1, box(2, 4, 900*time.Second))
		d.submit(2, box(3, 4, 10*time.Second))
		if got := d.end(timeline.Seconds(100), 1); got != want {
			t.Errorf("place=%s starts%s, want%s", place, got, want)
		}
	}
}

// A job that ends last even if it starts now starts now, and shorter ones run beside it: not while there is enough
// other work to run before it, not while further jobs are to be expected, and not where containers have grown. What a
// node was last known to hold may include tasks that end now.
func TestLongestStartsInTime(t *testing.T) {
	run := func(settings map[string]string, apart timeline.Time, grown resource.Amount) (first, second string) {
		d := newDesk(t, settings, resource.Of(2*resource.Core, 10*resource.GB))
		for id := range cluster.JobID(7) {
			d.submit(timeline.Time(id)*apart, box(id+1, 1, 60*time.Second))
		}
		d.submit(7*apart, box(8, 1, 240*time.Second))
		if grown > 0 {
			d.step(timeline.Seconds(59), cluster.Event{Kind: cluster.NodeMemory, Node: 0, Held: grown})
		}
		ends := max(timeline.Seconds(60), 7*apart)
		return d.end(ends, 1), d.end(max(timeline.Seconds(120), ends), 3)
	}
	for _, c := range []struct {
		name          string
		settings      map[string]string
		apart         timeline.Time
		grown         resource.Amount
		first, second string
	}{
		{"at once", nil, 1, 0, " 3.0.0 on n1", " 8.0.0 on n1"}, // at 60 s 300 s of the others are left for two cores
		{"off", map[string]string{"bellows.longest": "off"}, 1, 0, " 3.0.0 on n1", " 4.0.0 on n1"},
		{"one after the other", nil, timeline.Seconds(17), 0, " 3.0.0 on n1", " 4.0.0 on n1"},
		{"held before", nil, 1, 2 * resource.GB, " 3.0.0 on n1", " 8.0.0 on n1"},
		{"grown", nil, 1, 9 * resource.GB, " 3.0.0 on n1", " 4.0.0 on n1"},
	} {
		if first, second := run(c.settings, c.apart, c.grown); first != c.first || second != c.second {
			t.Errorf("%s: first starts%s, and then%s; want%s and%s", c.name, first, second, c.first, c.second)
		}
	}
}

// A FLEX container starts where its memory is available, not where only the grants leave room for it.
func TestFlexStartsWhereMemoryIsAvailable(t *testing.T) {
	node := resource.Of(8*resource.Core, 10*resource.GB)
	d := newDesk(t, nil, node, node)
	j := box(1, 2, 0)
	j.Class = cluster.Flex
	d.submit(0, j)
	d.step(1, cluster.Event{Kind: cluster.NodeMemory, Node: 0, Held: 9 * resource.GB})
	for id := cluster.JobID(2); id <= 4; id++ {
		j := box(id, 2, 0)
		j.Class = cluster.Flex
		if got, want := d.submit(timeline.Time(id), j), fmt.Sprintf(" %d.0.0 on n2", id); got != want {
			t.Errorf("starts%s, want%s: of n1's 10 GB 9 are held", got, want)
		}
	}
}

// A FLEX container of a user who holds less than a share of the node starts there although containers of another user
// have grown over its memory; one of the user whose containers have grown does not.
func TestFlexStartsWithinItsShare(t *testing.T) {
	d := newDesk(t, nil, resource.Of(8*resource.Core, 10*resource.GB))
	job := func(id cluster.JobID, owner string, memory int64) cluster.Job {
		j := box(id, memory, 0)
		j.Class, j.Owner = cluster.Flex, owner
		return j
	}
	d.submit(0, job(1, "ann", 2))
	d.step(1, cluster.Event{Kind: cluster.NodeMemory, Node: 0, Held: 9 * resource.GB},
		cluster.Event{Kind: cluster.TaskHolds, Task: cluster.TaskID{Job: 1}, Held: 9 * resource.GB})
	for i, c := range []struct {
		owner  string
		memory int64
		want   string
	}{{"ann", 2, ""}, {"bob", 3, " 3.0.0 on n1"}, {"bob", 3, ""}, {"bob", 2, " 5.0.0 on n1"}} {
		id := cluster.JobID(i + 2)
		if got := d.submit(timeline.Time(id), job(id, c.owner, c.memory)); got != c.want {
			t.Errorf("with a job of %d GB of %s%s starts, want%s", c.memory, c.owner, got, c.want)
		}
	}
}

// Whoever is granted CPU by phase may use what the others leave, up to what its stage requests.
func TestPhasesAreWeights(t *testing.T) {
	for level, want := range map[string]resource.Amount{"on": 4 * resource.Core, "off": 0} {
		d := newDesk(t, map[string]string{"bellows.level": level}, resource.Of(8*resource.Core, 10*resource.GB))
		phase := func(cores int64) cluster.Phase {
			return cluster.Phase{Duration: 20 * time.Second, Demand: resource.Of(resource.Amount(cores)*resource.Core,
				resource.GB)}
		}
		d.submit(0, cluster.Job{ID: 1, Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(4*resource.Core, resource.GB),
			Phases: []cluster.Phase{phase(1), phase(4)}}}})
		granted := map[string]resource.Amount{"on": resource.Core, "off": 4 * resource.Core}[level]
		for _, c := range d.last {
			if c.Kind == cluster.Start && (c.Envelope.MostCPU != want || c.Grant[resource.CPU] != granted) {
				t.Errorf("level=%s grants %d millicores and permits %d, want %d and %d", level, c.Grant[resource.CPU],
					c.Envelope.MostCPU, granted, want)
			}
		}
	}
}

// A program of whose use of CPU nothing is known starts where half of its core is free, since CPU is shared by weight,
// and holds no more than that. One that is known, or bounded by a quota, waits for what it needs.
func TestUnknownCPUStartsOnPart(t *testing.T) {
	unknown := func(s *cluster.Stage) { s.ReservedCPU, s.MaxCPU = &cluster.ReservedCPU{}, resource.MostCPU }
	for _, c := range []struct {
		name string
		part string
		free resource.Amount
		is   func(*cluster.Stage)
		want resource.Amount // 0: it waits
	}{
		{"all of it", "0.5", 1000, unknown, 1000},
		{"more than half", "0.5", 700, unknown, 700},
		{"half", "0.5", 500, unknown, 500},
		{"less than half", "0.5", 499, unknown, 0},
		{"a quarter", "0.25", 250, unknown, 250},
		{"all is wanted", "1", 999, unknown, 0},
		{"anything suffices, and nothing does not", "0", 0, unknown, 0},
		{"stated", "0.5", 700, func(s *cluster.Stage) { s.MaxCPU = resource.MostCPU }, 0},
		{"learned", "0.5", 700, func(s *cluster.Stage) {
			s.ReservedCPU, s.MaxCPU = &cluster.ReservedCPU{Runs: 1}, resource.MostCPU
		}, 0},
		{"a quota", "0.5", 700, func(s *cluster.Stage) { s.ReservedCPU = &cluster.ReservedCPU{} }, 0},
	} {
		d := newDesk(t, map[string]string{"bellows.part": c.part}, resource.Of(2*resource.Core, 8*resource.GB))
		other := box(1, 1, 100*time.Second)
		other.Stages[0].Ideal[resource.CPU] = 2*resource.Core - c.free
		d.submit(0, other)
		j := box(2, 1, 100*time.Second)
		c.is(&j.Stages[0])
		d.submit(1, j)
		var got resource.Amount
		for _, s := range d.last {
			if s.Kind != cluster.Start {
				continue
			}
			got = s.Grant[resource.CPU]
			if why := s.Reason.Words(nil); (got < resource.Core) != strings.Contains(why, "of 1 core") {
				t.Errorf("%s: %s", c.name, why)
			}
		}
		if n := d.engine.Snapshot().Nodes[0]; got != c.want || n.Free[resource.CPU] != c.free-got {
			t.Errorf("%s: of %d free it is granted %d, want %d, and %d are left", c.name, c.free, got, c.want,
				n.Free[resource.CPU])
		}
	}
}

// Where a whole core is free on another node, a program of unknown use starts there.
func TestUnknownCPUPrefersWholeCore(t *testing.T) {
	d := newDesk(t, nil, resource.Of(resource.Core, 8*resource.GB), resource.Of(resource.Core, 8*resource.GB))
	other := box(1, 1, 100*time.Second)
	other.Stages[0].Ideal[resource.CPU] = resource.Core / 4
	d.submit(0, other)
	j := box(2, 1, 100*time.Second)
	j.Stages[0].ReservedCPU, j.Stages[0].MaxCPU = &cluster.ReservedCPU{}, resource.MostCPU
	if got := d.submit(1, j); got != " 2.0.0 on n2" {
		t.Errorf("start%s, want 2.0.0 on n2, where a whole core is free", got)
	}
}

// Each stage of a job that is ready may start, and not only the first of them.
func TestEachReadyStageMayStart(t *testing.T) {
	d := newDesk(t, nil, resource.Of(8*resource.Core, 10*resource.GB))
	d.submit(0, box(1, 4, 100*time.Second))
	j := box(2, 8, 10*time.Second)
	j.Stages = append(j.Stages, box(2, 2, 10*time.Second).Stages[0], box(2, 5, 10*time.Second).Stages[0])
	if got := d.submit(1, j); got != " 2.2.0 on n1" {
		t.Errorf("of stages of 8, 2 and 5 GB start%s, want the one that suits the 6 GB best, 2.2.0", got)
	}
	if got := d.end(timeline.Seconds(100), 1); got != " 2.1.0 on n1" {
		t.Errorf("with 5 GB free start%s, want 2.1.0", got)
	}
}

// A stage that becomes ready may start on a node that did not change, although another stage of its job is ready.
func TestStageThatBecomesReadyStarts(t *testing.T) {
	d := newDesk(t, nil, resource.Of(8*resource.Core, 4*resource.GB), resource.Of(8*resource.Core, 10*resource.GB))
	j := box(1, 3, 10*time.Second)
	j.Stages = append(j.Stages, box(1, 9, 10*time.Second).Stages[0], box(1, 9, 10*time.Second).Stages[0],
		box(1, 1, 10*time.Second).Stages[0])
	j.Stages[1].Tasks, j.Stages[3].Parents = 2, []int{0}
	j.Stages[2].Parents = []int{3}
	if got := d.submit(0, j); got != " 1.1.0 on n2 1.0.0 on n1" && got != " 1.0.0 on n1 1.1.0 on n2" {
		t.Fatalf("start%s", got)
	}
	if got := d.end(timeline.Seconds(10), 1); got != " 1.3.0 on n1" {
		t.Errorf("after its parent start%s, want 1.3.0", got)
	}
}

// A job of many small tasks does not take all room that becomes free from a job that comes before it, has less work
// left and needs more room: meanwhile only what ends in time starts there.
func TestShorterJobIsNotOvertaken(t *testing.T) {
	for backfill, want := range map[string]string{
		"early": " 1.0.0 1.0.1; 95s: 3.0.0; 100s: 2.0.0; 110s: 1.0.2 1.0.3",
		"any":   " 1.0.0 1.0.1; 91s: 1.0.2; 100s: 3.0.0; 103s: 1.0.3",
	} {
		d := newDesk(t, map[string]string{"bellows.backfill": backfill}, resource.Of(8*resource.Core, 4*resource.GB))
		many := box(1, 2, 100*time.Second)
		many.Stages[0].Tasks = 4
		got := d.submit(0, many) + d.submit(1, box(2, 4, 10*time.Second))
		ends := map[cluster.TaskID]float64{{Job: 1}: 91, {Job: 1, Index: 1}: 100}
		for at := 91.0; at <= 110; at++ {
			now, starts := timeline.Seconds(at), ""
			if at == 95 {
				starts = d.submit(now, box(3, 2, 3*time.Second))
			}
			for _, task := range slices.Clone(d.engine.Snapshot().Nodes[0].Tasks) {
				if end, known := ends[task.ID]; known && end == at || !known && now >= task.Launched.Add(task.Duration) {
					starts += d.step(now, cluster.Event{Kind: cluster.TaskEnded, Task: task.ID, Outcome: cluster.Succeeded})
				}
			}
			if starts != "" {
				got += fmt.Sprintf("; %vs:%s", at, starts)
			}
		}
		if got = strings.ReplaceAll(got, " on n1", ""); got != want {
			t.Errorf("backfill=%s starts%s,\nwant%s", backfill, got, want)
		}
	}
}
