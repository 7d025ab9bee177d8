package book

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// dump prints a snapshot completely, including unexported fields, so that two snapshots can be compared.
func dump(s *Snapshot) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%v %d %d %v %v %v %v\n", s.Capacity, s.Running, s.Estimates.At, s.Estimates.StaleSince, s.Synced,
		s.Heartbeats.Every, s.byTask.tasks)
	fmt.Fprintf(&out, "changes %v %v %v %v %v %v", s.Changes.Nodes, s.Changes.Heartbeats, s.Changes.Demand,
		s.Changes.Arrived, s.Changes.Tasks, s.Changes.Woken)
	for _, j := range s.Changes.Jobs {
		fmt.Fprintf(&out, " job %d", j.ID)
	}
	fmt.Fprintf(&out, " leveled %v", s.leveled)
	for _, n := range s.Nodes {
		fmt.Fprintf(&out, "\nnode %v gone=%v paused=%v/%v free=%v/%v disk=%v held=%d leftover=%d booked=%d version=%d "+
			"heartbeat=%v pressed=%v out=%d", n.Node, n.Gone, n.Paused, n.Doubtful, n.Unused(), n.Free, n.UnderSizedDisk, n.Held,
			n.Leftover, n.booked, n.Version, n.LastHeartbeat, n.Pressed, n.Out)
		if n.ReservedFor != nil {
			fmt.Fprintf(&out, " reserved for %d.%d until %v", n.ReservedFor.ID, n.ReservedStage, n.KeptUntil)
		}
		for _, t := range n.Tasks {
			fmt.Fprintf(&out, "\n  task %v %v %v %v %v %v %v %v %v %d %d", t.ID, t.Grant, t.UnderSized, t.Booked, t.Launched,
				t.Running, t.Killing, t.Preempting, t.Mark.At, t.inNode, t.inJob)
			fmt.Fprintf(&out, " %v %d %v %v %v %v %v", t.end, t.Phase, t.PhaseSince, t.Suspended, t.SuspendedSince,
				t.SuspendedBy, t.SuspendedFor)
			if t.Throttled != nil {
				fmt.Fprintf(&out, " throttled %+v", *t.Throttled)
			}
			if fmt.Fprintf(&out, " lends=%v", t.Lent); t.Hold != nil {
				fmt.Fprintf(&out, " hold %+v", *t.Hold)
			}
			if fmt.Fprintf(&out, " by phase=%v %v", t.ByPhase, t.Duration); t.Resized != nil {
				fmt.Fprintf(&out, " resized %+v", *t.Resized)
			}
		}
	}
	for _, j := range s.Jobs {
		fmt.Fprintf(&out, "\njob %d %v used=%v tasks=%d steered=%v reservations=%d waiting=%v %v %v paused=%+v", j.ID,
			j.Status, j.Used, len(j.Tasks), j.Steered, j.Reservations, j.Waiting, j.Started, j.Finish, j.paused)
		if j.Backoff != nil {
			fmt.Fprintf(&out, " backs off %+v", *j.Backoff)
		}
		for _, p := range j.Progress {
			fmt.Fprintf(&out, "\n  stage %+v", p)
		}
	}
	return out.String()
}

// example is a synced cluster of two nodes with a running, a booked and a pending task of job 1, which has two stages.
func example(t *testing.T) *Snapshot {
	t.Helper()
	s := newSnapshot()
	for _, e := range []cluster.Event{joins(0), joins(1), {Kind: cluster.JobSubmitted, NewJob: twoStages(1)},
		{Kind: cluster.Synced}} {
		if err := s.apply(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlan(0, s, 0)
	j := s.Jobs[0]
	p.Start(j, 0, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB))
	p.Start(j, 0, s.Nodes[1], resource.GB, cluster.BecauseFits(resource.GB))
	if _, err := p.close(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.apply(1, &cluster.Event{Kind: cluster.DecisionDone, Task: cluster.TaskID{Job: 1}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func joins(id cluster.NodeID) cluster.Event {
	return cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{ID: id, Name: fmt.Sprint("n", id),
		Capacity: resource.Of(4*resource.Core, 10*resource.GB)}}
}

func twoStages(id cluster.JobID) *cluster.Job {
	ideal := resource.Of(resource.Core, resource.GB)
	return &cluster.Job{ID: id, Name: fmt.Sprint("J", id),
		Stages: []cluster.Stage{{Tasks: 3, Ideal: ideal, Duration: time.Second}, {Tasks: 1, Ideal: ideal, Parents: []int{0}}}}
}

// TestImpossibleEvents checks that an impossible event is rejected and changes nothing.
func TestImpossibleEvents(t *testing.T) {
	for _, c := range []struct {
		e    cluster.Event
		want string
	}{
		{cluster.Event{}, "unknown"},
		{cluster.Event{Kind: 99}, "event(99): unknown"},
		{cluster.Event{Kind: cluster.NodeJoined}, "its id must be 2"},
		{joins(1), "its id must be 2"},
		{joins(3), "its id must be 2"},
		{cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{ID: 2, Name: "n2", Capacity: resource.Of(-1, 1)}},
			`node "n2" cpu -1: must not be negative`},
		{cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{ID: 2, Name: "n2", Unknown: resource.KindsOf(resource.CPU)}},
			`node "n2" cpu: must not be unknown`},
		{cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{ID: 2, Name: "n2", Capacity: resource.Vector{}.With(resource.Disk, resource.MB),
				Unknown: resource.KindsOf(resource.Disk)}}, `node "n2" disk 1MB/s: must be 0 if it is unknown`},
		{cluster.Event{Kind: cluster.NodeLeft, Node: 2}, "node 2: not in the cluster"},
		{cluster.Event{Kind: cluster.NodeLeft, Node: -1}, "node -1: not in the cluster"},
		{cluster.Event{Kind: cluster.Heartbeat, Node: 7}, "node 7: not in the cluster"},
		{cluster.Event{Kind: cluster.NodeMemory, Node: 7}, "node 7: not in the cluster"},
		{cluster.Event{Kind: cluster.NodeMemory, Node: 1, Held: -1}, `node "n1" holds -1 bytes: must not be negative`},
		{cluster.Event{Kind: cluster.NodeLeftover, Node: 7}, "node 7: not in the cluster"},
		{cluster.Event{Kind: cluster.NodeLeftover, Node: 1, Held: -1},
			`node "n1": containers left -1 bytes in use: must not be negative`},
		{cluster.Event{Kind: cluster.NodePagedOut, Node: 7}, "node 7: not in the cluster"},
		{cluster.Event{Kind: cluster.NodePagedOut, Node: 1, Held: -1},
			`node "n1": -1 bytes are in swap: must not be negative`},
		{cluster.Event{Kind: cluster.NodePaused, Node: 7}, "node 7: not in the cluster"},
		{cluster.Event{Kind: cluster.NodeResumed, Node: 1}, `node "n1": paused is false already`},
		{cluster.Event{Kind: cluster.JobSubmitted}, "holds no job"},
		{cluster.Event{Kind: cluster.JobSubmitted, NewJob: twoStages(1)}, "job 1: submitted twice"},
		{cluster.Event{Kind: cluster.JobSubmitted, NewJob: &cluster.Job{ID: 2, Name: "B"}},
			`job "B" stages: must be at least one`},
		{cluster.Event{Kind: cluster.JobCancelled, Job: 2}, "job 2: not here"},
		{cluster.Event{Kind: cluster.DecisionDone, Task: cluster.TaskID{Job: 1}}, "task 1.0.0: launched twice"},
		{cluster.Event{Kind: cluster.DecisionDone, Task: cluster.TaskID{Job: 1, Index: 2}},
			"task 1.0.2: launched, but was never started"},
		{cluster.Event{Kind: cluster.DecisionDone, Task: cluster.TaskID{Job: 2}},
			"task 2.0.0: launched, but was never started"},
		{cluster.Event{Kind: cluster.DecisionFailed, Task: cluster.TaskID{Job: 1, Index: 2}},
			"task 1.0.2: ended, but is not running"},
		{cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 2}, Outcome: cluster.Succeeded},
			"task 1.0.2: ended, but is not running"},
		{cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Stage: 1}, Outcome: cluster.Succeeded},
			"task 1.1.0: ended, but is not running"},
		{cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 9}, Outcome: cluster.Succeeded},
			"task 9.0.0: ended, but is not running"},
		{cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}}, "ended with outcome 0: unknown"},
		{cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}, Outcome: 77}, "ended with outcome 77: unknown"},
		{cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1, Index: 2}, Grant: resource.Of(1, 1)},
			"the inventory is complete"},
		{cluster.Event{Kind: cluster.NodePressed, Node: 7}, "node 7: not in the cluster"},
		{cluster.Event{Kind: cluster.NodePressed, Node: 1, Found: &cluster.Condition{Bound: resource.Of(1, 0)}},
			`node "n1" is pressed and gives 1 of cpu: only rates are pressed`},
		{cluster.Event{Kind: cluster.NodePressed, Node: 1, Found: &cluster.Condition{Bound: resource.Vector{0, 0, -1}}},
			"gives -1 of disk"},
		{cluster.Event{Kind: cluster.TaskPhase, Task: cluster.TaskID{Job: 1}},
			"entered phase 0: its stage has a forecast of 0 phases"},
		{cluster.Event{Kind: cluster.TaskPhase, Task: cluster.TaskID{Job: 1, Index: 1}}, "task 1.0.1: is not running"},
		{cluster.Event{Kind: cluster.TaskSuspended, Task: cluster.TaskID{Job: 1, Index: 1}, By: cluster.HeldByMemory},
			"task 1.0.1: is not running"},
		{cluster.Event{Kind: cluster.TaskSuspended, Task: cluster.TaskID{Job: 9, Index: 1}, By: cluster.HeldByMemory},
			"task 9.0.1: is not running"},
		{cluster.Event{Kind: cluster.TaskSuspended, Task: cluster.TaskID{Job: 1}},
			`stands still by "": must be some of [memory owner leveling]`},
		{cluster.Event{Kind: cluster.TaskSuspended, Task: cluster.TaskID{Job: 1}, By: 9},
			`stands still by "holders(9)": must be some of [memory owner leveling]`},
		{cluster.Event{Kind: cluster.TaskResumed, Task: cluster.TaskID{Job: 1}}, "does not stand still"},
		{cluster.Event{Kind: cluster.Answered, Answer: &cluster.Answer{}}, `node "n0": decision 0 is not its open question`},
	} {
		s := example(t)
		refuses(t, s, &c.e, c.want)
	}
}

// refuses expects that s refuses an event with an error that has a text, and that nothing changes.
func refuses(t *testing.T, s *Snapshot, e *cluster.Event, want string) {
	t.Helper()
	before := dump(s)
	err := s.apply(2, e)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%+v: error is %v, want one with %q", *e, err, want)
	}
	if after := dump(s); after != before {
		t.Errorf("%+v: was refused, but changed\n%s\nto\n%s", *e, before, after)
	}
}

// TestInventory takes over the tasks that were found before Synced.
func TestInventory(t *testing.T) {
	unsynced := func() *Snapshot {
		s, retries := newSnapshot(), twoStages(1)
		retries.MaxAttempts, retries.RetryDelay = 2, 3
		for _, e := range []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: retries}} {
			if err := s.apply(0, &e); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	found := func(index int32) cluster.Event {
		return cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1, Index: index},
			Grant: resource.Of(resource.Core, resource.GB), Launched: 5}
	}
	for _, c := range []struct {
		name   string
		before []cluster.Event
		e      cluster.Event
		want   string // part of the error; empty if there is none
	}{
		{"any task", nil, found(1), ""},
		{"twice", []cluster.Event{found(1)}, found(1), "task 1.0.1: adopted: it is not pending"},
		{"both neighbours", []cluster.Event{found(1), found(0)}, found(2), ""},
		{"no such index", nil, found(3), "the job has no such task"},
		{"no such stage", nil, cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1, Stage: 2}},
			"the job has no such task"},
		{"negative stage", nil, cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1, Stage: -1}},
			"the job has no such task"},
		{"no such job", nil, cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 2}}, "its job is not here"},
		{"no such node", nil, cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1}, Node: 4},
			"node 4: not in the cluster"},
		{"more than there is", nil, cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1},
			Grant: resource.Of(resource.Core, 11*resource.GB)}, "has cpu=4 memory=10GB free"},
		{"less than nothing", nil, cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1},
			Grant: resource.Of(0, -1)}, "memory -1: must not be negative"},
		{"end of what nobody adopted", nil, cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 2},
			Outcome: cluster.Succeeded}, ""},
		{"end of what was adopted", []cluster.Event{found(1)},
			cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 1}, Outcome: cluster.Failed}, ""},
		{"end told twice", []cluster.Event{{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 2},
			Outcome: cluster.Succeeded}}, cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 2},
			Outcome: cluster.Succeeded}, "task 1.0.2: ended: it is not pending"},
		{"a paused task that runs again",
			[]cluster.Event{{Kind: cluster.JobPaused, Job: 1, Task: cluster.TaskID{Job: 1, Index: 1}},
				{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 1}, Outcome: cluster.Lost}}, found(1), ""},
		{"a task that pauses between attempts",
			[]cluster.Event{{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 1}, Outcome: cluster.Failed,
				Found: &cluster.Condition{Ended: 6}}}, found(1), ""},
		{"second end of a paused task",
			[]cluster.Event{{Kind: cluster.JobPaused, Job: 1, Task: cluster.TaskID{Job: 1, Index: 1}},
				{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 1}, Outcome: cluster.Lost}},
			cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 1}, Outcome: cluster.Succeeded}, ""},
		{"end without outcome", nil, cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 2}},
			"ended with outcome 0: unknown"},
		{"end of no such task", nil, cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 3},
			Outcome: cluster.Succeeded}, "the job has no such task"},
		{"end in no such job", nil, cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 3},
			Outcome: cluster.Succeeded}, "ended, but is not running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := unsynced()
			for _, e := range c.before {
				if err := s.apply(6, &e); err != nil {
					t.Fatal(err)
				}
			}
			before := dump(s)
			err := s.apply(7, &c.e)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error is %v, want %q", err, c.want)
			}
			if err != nil && dump(s) != before {
				t.Errorf("it was refused, but changed\n%s\nto\n%s", before, dump(s))
			}
			coherent(t, s)
		})
	}
}

// TestEndsBeforeSynced follows a job whose every task ended while the engine was not running.
func TestEndsBeforeSynced(t *testing.T) {
	s := newSnapshot()
	events := []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: twoStages(1)}}
	for i := range int32(3) {
		events = append(events, cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Index: 2 - i},
			Outcome: cluster.Succeeded})
	}
	for _, e := range events {
		if err := s.apply(3, &e); err != nil {
			t.Fatal(err)
		}
	}
	j, _ := s.Job(1)
	if stage, ok := j.NextStage(); !ok || stage != 1 {
		t.Errorf("stage %d (%v) is next, want 1", stage, ok)
	}
	if err := s.apply(4, &cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1, Stage: 1},
		Outcome: cluster.Succeeded}); err != nil {
		t.Fatal(err)
	}
	if _, here := s.Job(1); here || j.Status != cluster.StatusSucceeded || j.Finish != 4 {
		t.Errorf("job is %v at %v, want succeeded and gone at 4", j.Status, j.Finish)
	}
}

// TestCheckFits checks that errors name field, value and limit.
func TestCheckFits(t *testing.T) {
	s := example(t)
	job := func(cpu, memory, least resource.Amount) *cluster.Job {
		return &cluster.Job{Name: "A",
			Stages: []cluster.Stage{{Name: "map", Tasks: 1, Ideal: resource.Of(cpu, memory), MinMemory: least,
				Duration: time.Second, Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 2}}}}
	}
	for _, c := range []struct {
		job     *cluster.Job
		elastic bool
		want    string
	}{
		{job(resource.Core, 10*resource.GB, 0), false, ""},
		{job(resource.Core, 20*resource.GB, resource.GB), true, ""},
		{job(resource.Core, 20*resource.GB, resource.GB), false,
			`job "A" stage "map" memory 20GB: must be at most what a node has, 10GB`},
		{job(resource.Core, 20*resource.GB, 11*resource.GB), true,
			`job "A" stage "map" minimum memory 11GB: must be at most what a node has, 10GB`},
		{job(5*resource.Core, resource.GB, 0), true,
			`job "A" stage "map" cpu 5 cores: must be at most what a node has, 4 cores`},
	} {
		if err := s.CheckFits(c.job, c.elastic); c.want == "" && err != nil || c.want != "" &&
			(err == nil || err.Error() != c.want) {
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
}

// reporter is the common interface of *testing.T and *rapid.T.
type reporter interface {
	Helper()
	Errorf(string, ...any)
}

// coherent computes all sums anew and compares.
func coherent(t reporter, s *Snapshot) {
	t.Helper()
	running, capacity, unknown := 0, resource.Vector{}, resource.Kinds(0)
	for _, n := range s.Nodes {
		free, disk, booked := n.Capacity, resource.Amount(0), resource.Amount(0)
		free = n.Unknown.In(free, resource.Unbounded)
		for at, task := range n.Tasks {
			free = free.Sub(n.Unknown.In(task.Holds(), 0))
			if task.PagedOutLent != task.lendsMemory() {
				t.Errorf("task %s lends %d bytes, want %d", task.ID, task.PagedOutLent, task.lendsMemory())
			}
			lends := resource.Vector{}
			if all := task.Idle() || task.Suspended && !task.resumesSoon(); s.Lends && all {
				lends = task.Grant.With(resource.Memory, 0)
			} else if s.Lends {
				lends[resource.CPU] = min(task.Leaves, task.Grant[resource.CPU])
			}
			if task.Lent != lends {
				t.Errorf("task %s lends %v, want %v", task.ID, task.Lent, lends)
			}
			if !task.Running {
				booked += task.Grant[resource.Memory]
			}
			if task.UnderSized {
				disk += task.Stage().Elasticity.DiskRate
			}
			if !task.Stage().Coordinator {
				running++
			}
			if task.Node != n || int(task.inNode) != at || s.task(task.ID) != task {
				t.Errorf("task %s is filed wrongly", task.ID)
			}
		}
		if n.Unused() != free {
			t.Errorf("node %s has %v not granted, want %v", n.Name, n.Unused(), free)
		}
		free[resource.Memory] -= n.Leftover
		if n.Spare() != free {
			t.Errorf("node %s has %v to grant, want %v", n.Name, n.Spare(), free)
		}
		if free = free.Max(resource.Vector{}); n.Paused || n.Full() {
			free = resource.Vector{}
		}
		if want := max(0, min(free[resource.Memory],
			n.Capacity[resource.Memory]-n.Held-booked-n.Leftover)); n.Available() != want {
			t.Errorf("node %s has %d available, want %d, holding %d", n.Name, n.Available(), want, n.Held)
		}
		if n.Free != free || n.UnderSizedDisk != disk {
			t.Errorf("node %s has %v and disk %v, want %v and %v", n.Name, n.Free, n.UnderSizedDisk, free, disk)
		}
		if _, bad := n.Free.Negative(); bad {
			t.Errorf("node %s has %v free", n.Name, n.Free)
		}
		if !n.Gone {
			capacity, unknown = capacity.Add(n.Capacity), unknown|n.Unknown
		}
	}
	if capacity = unknown.In(capacity, 0); running != s.Running || capacity != s.Capacity || unknown != s.Unknown {
		t.Errorf("%d run on %v, want %d on %v", s.Running, s.Capacity, running, capacity)
	}
	for _, j := range s.Jobs {
		used, kept := resource.Vector{}, 0
		for at, task := range j.Tasks {
			used = used.Add(task.Holds())
			if int(task.inJob) != at || task.Job != j {
				t.Errorf("task %s is filed wrongly", task.ID)
			}
		}
		for _, n := range s.Nodes {
			if n.ReservedFor == j {
				kept++
			}
		}
		if used != j.Used || kept != j.Reservations {
			t.Errorf("job %d uses %v and %d reservations, want %v and %d", j.ID, j.Used, j.Reservations, used, kept)
		}
		for i, p := range j.Progress {
			if !j.Status.Ended() && p.Pending+len(p.held)+len(p.later)+p.Booked+p.Running+p.Ended != j.Stages[i].Tasks {
				t.Errorf("job %d stage %d has lost or found tasks: %+v", j.ID, i, p)
			}
		}
	}
	for _, cpu := range []resource.Amount{0, resource.Core, 3 * resource.Core} {
		for memory := resource.Amount(0); memory <= 10*resource.GB; memory += 5 * resource.GB / 2 {
			scan(t, s, resource.Of(cpu, memory))
		}
	}
}

// scan compares the indexes with a scan of all nodes.
func scan(t reporter, s *Snapshot, need resource.Vector) {
	t.Helper()
	for from := range cluster.NodeID(len(s.Nodes) + 1) {
		for _, reserved := range []bool{false, true} {
			at := slices.IndexFunc(s.Nodes, func(n *NodeState) bool {
				return n.ID >= from && !n.Gone && (n.ReservedFor != nil) == reserved && need.FitsIn(n.Free)
			})
			first := s.FirstOpen
			if reserved {
				first = s.FirstReserved
			}
			if n, ok := first(need, from); ok != (at >= 0) || ok && int(n.ID) != at {
				t.Errorf("first node from %d with %v (reserved: %v) is %v, want %d", from, need, reserved, n, at)
			}
		}
	}
	var most *NodeState
	for _, n := range s.Nodes {
		if !n.Gone && n.ReservedFor == nil && need.FitsIn(n.Free) && (most == nil || n.Available() > most.Available()) {
			most = n
		}
	}
	if n, ok := s.MostAvailable(need); ok != (most != nil) || ok && n != most {
		t.Errorf("the node with most available of those with %v is %v, want %v", need, n, most)
	}
}

// TestNodeMemory follows the available memory of a node of 10 GB on which a task was granted 1 GB.
func TestNodeMemory(t *testing.T) {
	s := example(t)
	n := s.Nodes[0]
	for _, c := range []struct {
		name            string
		e               cluster.Event // without a kind: a task of 1 GB is started
		available       resource.Amount
		named, reviewed bool // among the changes; Version changed
	}{
		{"no report yet", cluster.Event{Kind: cluster.Woken}, 9, false, false},
		{"it holds what was granted", cluster.Event{Kind: cluster.NodeMemory, Held: resource.GB}, 9, false, true},
		{"the same again", cluster.Event{Kind: cluster.NodeMemory, Held: resource.GB}, 9, false, false},
		{"it has grown", cluster.Event{Kind: cluster.NodeMemory, Held: 6 * resource.GB}, 4, false, true},
		{"booked on top of that", cluster.Event{}, 3, false, true},
		{"it waits until others give back", cluster.Event{Kind: cluster.NodeMemory, Held: 5 * resource.GB}, 4, true, true},
		{"it is held and still to be launched", cluster.Event{Kind: cluster.NodeMemory, Held: 6 * resource.GB}, 3, false,
			true},
		{"launched", cluster.Event{Kind: cluster.DecisionDone, Task: cluster.TaskID{Job: 1, Index: 2}}, 4, true, true},
		{"a fall", cluster.Event{Kind: cluster.NodeMemory, Held: 5 * resource.GB}, 5, true, true},
		{"below what was granted", cluster.Event{Kind: cluster.NodeMemory, Held: resource.GB}, 8, true, true},
		{"more than there is", cluster.Event{Kind: cluster.NodeMemory, Held: 12 * resource.GB}, 0, false, true},
		{"the end of a task gives nothing back that another holds",
			cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}, Outcome: cluster.Succeeded}, 0, true, true},
		{"until it is reported", cluster.Event{Kind: cluster.NodeMemory, Held: resource.GB}, 9, true, true},
	} {
		p := newPlan(2, s, 0)
		version := n.Version
		if c.e.Kind == 0 {
			p.Start(s.Jobs[0], 0, n, resource.GB, cluster.BecauseFits(0))
		} else if err := s.apply(2, &c.e); err != nil {
			t.Fatal(err)
		}
		if got := n.Available(); got != c.available*resource.GB {
			t.Errorf("%s: %d bytes are available, want %d GB", c.name, got, c.available)
		}
		if named := slices.Contains(s.Changes.Nodes, n.ID); named != c.named || (n.Version != version) != c.reviewed {
			t.Errorf("%s: named %v, version changed %v; want %v, %v", c.name, named, n.Version != version, c.named, c.reviewed)
		}
		coherent(t, s)
		if _, err := p.close(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeftover: memory that outlives its containers is not free, on a node of 10 GB on which a task was granted 1 GB;
// what was granted stays.
func TestLeftover(t *testing.T) {
	s := example(t)
	n := s.Nodes[0]
	for _, c := range []struct {
		left, free resource.Amount // GB
		named      bool            // among the changes
	}{{0, 9, false}, {4, 5, false}, {4, 5, false}, {12, 0, false}, {3, 6, true}, {0, 9, true}} {
		p := newPlan(2, s, 0)
		if err := s.apply(2, &cluster.Event{Kind: cluster.NodeLeftover, Held: c.left * resource.GB}); err != nil {
			t.Fatal(err)
		}
		if n.Free[resource.Memory] != c.free*resource.GB || n.Available() != c.free*resource.GB ||
			n.Unused()[resource.Memory] != 9*resource.GB ||
			n.Overdrawn() != (resource.Vector{}) || slices.Contains(s.Changes.Nodes, n.ID) != c.named {
			t.Errorf("%d GB left: %d free, %d available, %d unused, changed %v", c.left, n.Free[resource.Memory],
				n.Available(), n.Unused()[resource.Memory], s.Changes.Nodes)
		}
		if _, fits := n.Fits(resource.Of(0, c.free*resource.GB+1)); fits {
			t.Errorf("%d GB left: more fits than is free", c.left)
		}
		coherent(t, s)
		if _, err := p.close(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRandomHistory enters arbitrary events, possible or not, and takes arbitrary possible decisions.
func TestRandomHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSnapshot()
		if rapid.Bool().Draw(rt, "tasks run") {
			s = example(t)
		}
		s.Lends = rapid.Bool().Draw(rt, "lends")
		p := newPlan(0, s, 2) // the example has taken two decisions
		open, questions := orders{}, asking{}
		for now := range timeline.Time(rapid.IntRange(1, 60).Draw(rt, "steps")) {
			p.reset(now)
			e := anyEvent(rt, s)
			before := dump(s)
			err := s.apply(now, &e)
			if err != nil && dump(s) != before {
				rt.Fatalf("%+v was refused, but changed\n%s\nto\n%s", e, before, dump(s))
			}
			open.answer(rt, s, &e, err)
			questions.answer(rt, s, &e, err)
			coherent(rt, s)
			if s.Synced {
				p.holdPaused()
				p.resumeDue()
				p.retryDue()
				s.gate.pass(&p)
				decideAnything(rt, &p)
				coherent(rt, s)
				leveledEnd(rt, &p)
				retriesGoOn(rt, &p)
			}
			decisions, err := p.close(nil)
			if err != nil {
				rt.Fatal(err)
			}
			open.add(decisions)
			questions.add(s, decisions)
		}
	})
}

// orders are those that set what is wanted of each task, oldest first.
type orders map[cluster.TaskID][]order

type order struct {
	cluster.Decision
	answered bool
}

func (o orders) add(decisions []cluster.Decision) {
	for _, d := range decisions {
		if _, sets := d.Kind.Sets(); sets {
			o[d.Task] = append(o[d.Task], order{Decision: d})
		}
	}
}

// answer checks whether an event was accepted (err is nil): an answer is if its order is open, but not that the
// newest order of its field is superseded. An older one may be, also after the newest was answered. The end of a task
// answers its orders.
func (o orders) answer(t *rapid.T, s *Snapshot, e *cluster.Event, err error) {
	defer maps.DeleteFunc(o, func(id cluster.TaskID, _ []order) bool { return s.task(id) == nil })
	if e.Kind != cluster.DecisionDone && e.Kind != cluster.DecisionFailed && e.Kind != cluster.DecisionSuperseded ||
		e.Decision == 0 {
		return
	}
	all := o[e.Task]
	at := slices.IndexFunc(all, func(d order) bool { return d.ID == e.Decision && !d.answered })
	if at < 0 {
		if err == nil {
			t.Fatalf("%+v was accepted: no such order is open", e)
		}
		return
	}
	field, _ := all[at].Kind.Sets()
	newest := !slices.ContainsFunc(all[at+1:], func(d order) bool {
		later, _ := d.Kind.Sets()
		return later == field
	})
	if accepts := !newest || e.Kind != cluster.DecisionSuperseded; accepts != (err == nil) {
		t.Fatalf("%+v: %v, and it answers %+v of %+v", e, err, all[at], all)
	}
	all[at].answered = err == nil
}

func anyEvent(t *rapid.T, s *Snapshot) cluster.Event {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	task := cluster.TaskID{Job: cluster.JobID(number("job", 1, 3)), Stage: int32(number("stage", 0, 1)),
		Index: int32(number("index", 0, 2))}
	e := cluster.Event{Kind: cluster.EventKind(number("kind", 0, int(cluster.QuotasSet)+1)),
		Phase: int32(number("phase", -1, 3)), By: cluster.Holders(number("holder", 0, 2)),
		Node: cluster.NodeID(number("node", 0, 3)), Job: task.Job, Task: task,
		Outcome: cluster.Outcome(number("outcome", 0, 6)),
		Grant:   resource.Of(resource.Core, resource.Amount(number("grant", -1, 3))*resource.GB)}
	for _, n := range s.Nodes {
		for _, task := range n.Tasks {
			var newest cluster.DecisionID
			if task.Throttled != nil && number("answers", 0, 4) == 0 {
				newest = task.Throttled.Decision
			}
			if task.Hold != nil && number("answers a hold", 0, 4) == 0 {
				newest = task.Hold.Decision
			}
			if task.Resized != nil && number("answers a resize", 0, 4) == 0 {
				newest = task.Resized.Decision
			}
			if newest != 0 { // possible or not
				return cluster.Event{Kind: rapid.SampledFrom([]cluster.EventKind{cluster.DecisionDone, cluster.DecisionFailed,
					cluster.DecisionSuperseded}).Draw(t, "answer"), Task: task.ID,
					Decision: max(1, newest+cluster.DecisionID(number("answered", -2, 1)))}
			}
			if task.Running && number("out", 0, 9) == 0 {
				return cluster.Event{Kind: cluster.TaskPagedOut, Task: task.ID,
					Found: &cluster.Condition{Out: resource.Amount(number("bytes", -1, 3)) * resource.GB / 2}}
			}
			if task.Running && number("idles", 0, 9) == 0 {
				return cluster.Event{Kind: cluster.TaskIdle, Task: task.ID,
					Found: &cluster.Condition{Idle: number("idle", 0, 1) == 0, Leaves: resource.Amount(number("leaves", -1, 3)) * 500}}
			}
			if task.Running && number("stands", 0, 9) == 0 {
				kinds := []cluster.EventKind{cluster.TaskSuspended, cluster.TaskResumed}
				return cluster.Event{Kind: rapid.SampledFrom(kinds).Draw(t, "still"), Task: task.ID,
					By: cluster.Holders(number("by", 1, int(cluster.AllHolders)))}
			}
		}
	}
	for _, n := range s.Nodes {
		if n.Asked != nil && number("answers a question", 0, 4) == 0 { // possible or not
			return cluster.Event{Kind: cluster.Answered, Node: n.ID, Decision: n.Asked.Decision +
				cluster.DecisionID(number("question", -1, 0)), Answer: &cluster.Answer{}}
		}
	}
	if number("pauses", 0, 9) == 0 {
		e.Kind = rapid.SampledFrom([]cluster.EventKind{cluster.JobPaused, cluster.JobResumed}).Draw(t, "pause")
	}
	if number("leaves memory", 0, 9) == 0 {
		e.Kind = cluster.NodeLeftover
	}
	switch e.Kind {
	case cluster.Answered:
		e.Answer, e.Decision = &cluster.Answer{}, cluster.DecisionID(number("asked", 1, 9))
	case cluster.JobPaused, cluster.JobResumed:
		if number("whole", 0, 1) == 0 {
			e.Task = cluster.TaskID{}
		}
		if e.Kind == cluster.JobPaused && number("pages out", 0, 1) == 0 {
			e.Found = &cluster.Condition{PageOut: true}
		}
	case cluster.QuotasSet:
		if number("quotas", 0, 3) > 0 {
			limits := cluster.Limits{cluster.QuotaMemory: {Most: int64(number("most", -1, 4)) * int64(resource.GB)}}
			e.Found = &cluster.Condition{Quotas: &cluster.Quotas{Users: map[string]cluster.Limits{"": limits}}}
		}
	case cluster.NodeMemory, cluster.NodeLeftover, cluster.NodePagedOut:
		e.Held = resource.Amount(number("held", -1, 11)) * resource.GB
	case cluster.NodePressed:
		e.Found = &cluster.Condition{Bound: resource.Vector{}.With(
			resource.Kind(number("pressed kind", 0, int(resource.NumKinds)-1)), resource.Amount(number("gives", -1, 3)))}
	case cluster.NodeJoined:
		j := joins(cluster.NodeID(len(s.Nodes) + max(0, number("gap", -3, 1))))
		e.NewNode = j.NewNode
		if number("unknown", 0, 2) == 0 {
			e.NewNode.Unknown = resource.KindsOf(resource.Kind(number("kind unknown", int(resource.Memory),
				int(resource.Network))))
		}
	case cluster.JobSubmitted:
		e.NewJob = twoStages(e.Job)
		e.NewJob.MaxAttempts, e.NewJob.RetryDelay = number("attempts", 0, 3), time.Duration(number("retry delay", 0, 9))
		e.NewJob.Stages[0].Phases = []cluster.Phase{{Duration: time.Second},
			{Duration: 2 * time.Second}}[:number("phases", 0, 2)]
		e.NewJob.Stages[0].MinMemory, e.NewJob.Stages[0].Elasticity = resource.GB/2,
			cluster.Elasticity{Kind: cluster.Step, Factor: 2, DiskRate: resource.MB}
		if number("coordinator", 0, 2) == 0 {
			e.NewJob.Stages = append(e.NewJob.Stages, cluster.Stage{Tasks: 1, Coordinator: true})
		}
	}
	return e
}

// leveledEnd checks that no hold of leveling is past its end, and that the engine will notice the next end.
func leveledEnd(t *rapid.T, p *Plan) {
	p.wakeForDue()
	for _, n := range p.Nodes {
		for _, task := range n.Tasks {
			h, ok := task.HeldUntil()
			if !ok || task.Killing {
				continue
			}
			if h.Until <= p.now || p.leveled.woken <= p.now || p.leveled.woken > h.Until {
				t.Fatalf("task %s is held until %v, now is %v, and the engine wakes at %v", task.ID, h.Until, p.now,
					p.leveled.woken)
			}
		}
	}
}

// retriesGoOn checks that no task pauses longer than it should, and that the engine will notice the end of the next
// pause.
func retriesGoOn(t *rapid.T, p *Plan) {
	p.wakeForRetry()
	for _, j := range p.Jobs {
		for _, r := range j.Retries() {
			if r.At <= p.now || p.retries.woken <= p.now || p.retries.woken > r.At {
				t.Fatalf("task %s runs again at %v, now is %v, and the engine wakes at %v", r.Task, r.At, p.now, p.retries.woken)
			}
		}
	}
}

// decideAnything takes a few possible decisions.
func decideAnything(t *rapid.T, p *Plan) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for range number("decisions", 0, 3) {
		if len(p.Jobs) == 0 || len(p.Nodes) == 0 {
			return
		}
		j, n := p.Jobs[number("chosen job", 0, len(p.Jobs)-1)], p.Nodes[number("chosen node", 0, len(p.Nodes)-1)]
		stage, ready := j.NextStage()
		switch number("decision", 0, 10) {
		case 0:
			if ready && !n.Gone && j.Stages[stage].Ideal.FitsIn(n.Free) {
				memory := j.Stages[stage].Ideal[resource.Memory]
				if j.Stages[stage].Elastic() {
					memory /= 2
				}
				p.Start(j, stage, n, memory, cluster.BecauseFits(0))
			}
		case 1:
			if ready && !n.Gone && n.ReservedFor == nil {
				p.Reserve(n, j, stage, cluster.BecauseReserved(resource.Vector{}, resource.Vector{}))
			}
		case 2:
			if n.ReservedFor != nil {
				p.Unreserve(n, cluster.Because(cluster.ReservationNotNeeded))
			}
		case 3:
			if len(n.Tasks) > 0 {
				p.Kill(n.Tasks[0], cluster.Because(cluster.CancelledByOwner))
			}
		case 4:
			if len(n.Tasks) > 0 && n.Tasks[len(n.Tasks)-1].Running {
				bound := diskBound(resource.Amount(number("bound", 0, 2)))
				p.Throttle(n.Tasks[len(n.Tasks)-1], bound, p.now.Add(time.Duration(number("lasts", 1, 9))),
					cluster.BecauseNodePressure(resource.Disk, 3, 9))
			}
		case 5:
			if len(n.Tasks) > 0 && n.Tasks[0].Running {
				p.Suspend(n.Tasks[0], number("pages out", 0, 1) == 1, cluster.Because(cluster.PausedByOwner))
			}
		case 6:
			if len(n.Tasks) > 0 && n.Tasks[0].Running {
				p.Resume(n.Tasks[0], cluster.HeldByOwner, cluster.Because(cluster.ResumedByOwner))
			}
		case 7:
			if len(n.Tasks) > 0 && n.Tasks[0].Running {
				p.SuspendUntil(n.Tasks[0], p.now.Add(time.Duration(number("holds", 1, 9))), cluster.TaskID{Job: 99},
					cluster.Because(cluster.LevelingEnds))
			}
		case 8:
			if len(n.Tasks) > 0 && n.Tasks[0].Running {
				p.Resume(n.Tasks[0], cluster.HeldByLeveling, cluster.Because(cluster.ResumedByOwner))
			}
		case 9:
			if asks := !n.Asking(); !n.Gone && p.Ask(n, known{}, cluster.Because(cluster.PreemptionDue)) != asks {
				t.Fatalf("asked about node %d: %v", n.ID, !asks)
			}
		case 10:
			if len(n.Tasks) > 0 && n.Tasks[0].Running && !n.Tasks[0].Steers {
				task := n.Tasks[0]
				grant := task.Grant.With(resource.CPU, resource.Amount(number("millicores", 1, 2000))).With(resource.Memory,
					min(resource.Amount(number("half gigabytes", 1, 4))*resource.GB/2,
						task.Grant[resource.Memory]+max(0, n.Spare()[resource.Memory])))
				if grant.FitsIn(n.Room()) {
					p.Resize(task, grant, cluster.BecausePhaseDemands(0, grant))
				}
			}
		}
	}
}

// TestImpossibleDecisions checks that the first impossible decision fails the plan.
func TestImpossibleDecisions(t *testing.T) {
	why := cluster.BecauseFits(0)
	for _, c := range []struct {
		name   string
		decide func(p *Plan, j *JobState)
		want   string
	}{
		{"too much memory", func(p *Plan, j *JobState) { p.Start(j, 0, p.Nodes[0], 2*resource.GB, why) },
			"with 2000000000 bytes: must be"},
		{"not elastic", func(p *Plan, j *JobState) { p.Start(j, 0, p.Nodes[0], resource.GB/2, why) }, "with 500000000 bytes"},
		{"waits for its parents", func(p *Plan, j *JobState) { p.Start(j, 1, p.Nodes[0], resource.GB, why) },
			"none is ready"},
		{"none left", func(p *Plan, j *JobState) {
			p.Start(j, 0, p.Nodes[0], resource.GB, why)
			p.Start(j, 0, p.Nodes[0], resource.GB, why)
		}, "none is ready"},
		{"reserved twice", func(p *Plan, j *JobState) {
			p.Reserve(p.Nodes[0], j, 0, why)
			p.Reserve(p.Nodes[0], j, 0, why)
		}, "it is reserved or gone"},
		{"not reserved", func(p *Plan, j *JobState) { p.Unreserve(p.Nodes[0], why) }, "it is not reserved"},
		{"ask nothing", func(p *Plan, j *JobState) { p.Ask(p.Nodes[0], nil, why) }, "there is no question"},
		{"wake now", func(p *Plan, j *JobState) { p.Wake(5, why) }, "must be after now"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := example(t)
			p := newPlan(5, s, 2)
			c.decide(&p, s.Jobs[0])
			if _, err := p.close(nil); err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "policy at 5ns") {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestUnsyncedPlan starts nothing before the inventory is complete, nor on a full or departed node.
func TestUnsyncedPlan(t *testing.T) {
	s := example(t)
	s.Synced = false
	p := newPlan(5, s, 0)
	p.Start(s.Jobs[0], 0, s.Nodes[0], resource.GB, cluster.BecauseFits(0))
	if _, err := p.close(nil); err == nil || !strings.Contains(err.Error(), "before the inventory was complete") {
		t.Errorf("error is %v", err)
	}
	s = example(t)
	s.Nodes[0].Free = resource.Vector{}
	p = newPlan(5, s, 0)
	p.Start(s.Jobs[0], 0, s.Nodes[0], resource.GB, cluster.BecauseFits(0))
	if _, err := p.close(nil); err == nil || !strings.Contains(err.Error(), "only 0 are free") {
		t.Errorf("error is %v", err)
	}
	s = example(t)
	if err := s.apply(2, &cluster.Event{Kind: cluster.NodeLeft, Node: 0}); err != nil {
		t.Fatal(err)
	}
	p = newPlan(5, s, 0)
	p.Start(s.Jobs[0], 0, s.Nodes[0], resource.GB, cluster.BecauseFits(0))
	p.Reserve(s.Nodes[0], s.Jobs[0], 0, cluster.BecauseReserved(resource.Vector{}, resource.Vector{}))
	if _, err := p.close(nil); err == nil || !strings.Contains(err.Error(), "it left") {
		t.Errorf("error is %v", err)
	}
}
