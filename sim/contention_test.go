package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

const (
	MB = resource.MB
	GB = resource.GB
)

// vector is CPU in cores, memory in GB, disk and network in MB/s.
func vector(cores, memory, disk, network float64) resource.Vector {
	return resource.Vector{resource.Amount(cores * float64(resource.Core)), resource.Amount(memory * float64(GB)),
		resource.Amount(disk * float64(MB)), resource.Amount(network * float64(MB))}
}

// oneStage is a job of one stage; a policy sees tasks that need one core and 1 GB and take 100 s.
func oneStage(id cluster.JobID, tasks int, truth workload.StageTruth, change ...func(*workload.Job)) workload.Job {
	j := workload.Job{After: -1, Job: cluster.Job{ID: id, Name: "job" + string(rune('0'+id)), Stages: []cluster.Stage{
		{Name: "work", Tasks: tasks, Ideal: vector(1, 1, 0, 0), Duration: 100 * time.Second}}},
		Truth: []workload.StageTruth{truth}}
	for _, c := range change {
		c(&j)
	}
	return j
}

func simulate(t testing.TB, c sim.Config, name string, jobs ...workload.Job) *sim.Result {
	t.Helper()
	p, err := policy.New(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.KeepTasks = true
	res, err := sim.Run(c, &workload.Workload{Jobs: jobs}, p)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// wantEnds compares the ends of the tasks, in the order of their launch.
func wantEnds(t *testing.T, res *sim.Result, ends ...time.Duration) {
	t.Helper()
	if len(res.Tasks) != len(ends) {
		t.Fatalf("%d runs of tasks, want %d: %+v", len(res.Tasks), len(ends), res.Tasks)
	}
	for i, want := range ends {
		if got := time.Duration(res.Tasks[i].Finished); got.Round(time.Microsecond) != want {
			t.Errorf("run %d ends after %v, want %v", i+1, got, want)
		}
	}
}

func phases(list ...cluster.Phase) workload.StageTruth {
	return workload.StageTruth{Phases: workload.ForAll(list)}
}

func phase(length time.Duration, demand resource.Vector) cluster.Phase {
	return cluster.Phase{Duration: length, Demand: demand}
}

// Two tasks request 60 MB/s each of a disk with 100 MB/s; after the first phase of one task, the other has the disk to
// itself.
func TestDiskIsShared(t *testing.T) {
	node := sim.Uniform(1, vector(4, 8, 100, 0))
	reads := phases(phase(60*time.Second, vector(1, 1, 60, 0)), phase(40*time.Second, vector(1, 1, 0, 0)))
	wantEnds(t, simulate(t, sim.Config{Nodes: node}, "fifo", oneStage(1, 2, reads)), 112*time.Second, 112*time.Second)

	// The second task begins 30 s later. The first runs 30 s alone, then both run at 5/6 of the speed: the remaining 30
	// s of the first take 36 s, in which the second does 30 s of its 60 s.
	late := oneStage(2, 1, reads, func(j *workload.Job) { j.Submitted = timeline.Seconds(30) })
	res := simulate(t, sim.Config{Nodes: node}, "fifo", oneStage(1, 1, reads), late)
	wantEnds(t, res, 106*time.Second, 136*time.Second)
}

// An overloaded hard disk loses capacity: demand is 1.2 times the capacity.
func TestOverAllocatedDiskLosesCapacity(t *testing.T) {
	c := sim.Config{Nodes: sim.Uniform(1, vector(4, 8, 100, 0)),
		Machine: sim.Machine{Disk: sim.Loss{Slope: 0.25, Floor: 0.3}}}
	reads := phases(phase(100*time.Second, vector(1, 1, 60, 0)))
	wantEnds(t, simulate(t, c, "fifo", oneStage(1, 2, reads)), 126*time.Second, 126*time.Second) // 1.2 × (1 + 0.25 × 0.2)
}

// A small demand is met in full; all other demands get the same share.
func TestSharingIsMaxMin(t *testing.T) {
	c := sim.Config{Nodes: sim.Uniform(1, vector(4, 8, 0, 100))}
	uses := func(id cluster.JobID, rate float64) workload.Job {
		return oneStage(id, 1, phases(phase(100*time.Second, vector(1, 1, 0, rate))))
	}
	// 10 + 30 + 60: until the first ends, only the third and the fourth are slowed down; they get 30 each.
	res := simulate(t, c, "fifo", uses(1, 10), uses(2, 30), uses(3, 60), uses(4, 45))
	if a, b := res.Tasks[0].Finished, res.Tasks[1].Finished; a != timeline.Seconds(100) || b != timeline.Seconds(100) {
		t.Errorf("small demands end at %v and %v, want 100s", a, b)
	}
	// Then 100 MB/s are left for demands of 105: 45 and 55. The fourth ends first, and the third gets everything.
	wantEnds(t, res, 100*time.Second, 100*time.Second, 152_777_778*time.Microsecond, 133_333_333*time.Microsecond)
}

// A task that reads 1 TB with one byte per second would take longer than a run can: the run ends with an error, whoever
// else has something to do at the end of time.
func TestRunsEndBeforeTimeDoes(t *testing.T) {
	reads := oneStage(1, 1, phases(phase(10_000*time.Second, vector(1, 1, 100, 0))), func(j *workload.Job) {
		j.Class, j.Stages[0].Ideal[resource.Disk] = cluster.Flex, 1
	})
	for _, heartbeat := range []time.Duration{0, time.Second} {
		c := sim.Config{Nodes: sim.Uniform(1, vector(4, 8, 100, 0)), Caps: resource.KindsOf(resource.Disk),
			Heartbeat: heartbeat}
		c.Flex.Manager, c.Machine.Swap, c.Machine.Paging = memory.Default(), 10*GB, sim.SSDPaging
		p, err := policy.New("fifo", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sim.Run(c, &workload.Workload{Jobs: []workload.Job{reads}}, p); err == nil ||
			!strings.Contains(err.Error(), "more than 290 years") {
			t.Errorf("heartbeat %v: %v", heartbeat, err)
		}
	}
}

// Tasks that request none of the scarce resource are not slowed down, nor are tasks on other nodes.
func TestOnlyThoseWhoAskAreSlowed(t *testing.T) {
	c := sim.Config{Nodes: sim.Uniform(2, vector(2, 8, 100, 0))}
	disk := phases(phase(100*time.Second, vector(1, 1, 100, 0)))
	res := simulate(t, c, "fifo", oneStage(1, 2, disk),
		oneStage(2, 1, phases(phase(100*time.Second, vector(1, 1, 0, 0)))), oneStage(3, 1, disk))
	wantEnds(t, res, 200*time.Second, 200*time.Second, 100*time.Second, 100*time.Second)
}

// least is a policy that gives every task its minimum memory, on the first node with room.
type least struct{}

func (least) Name() string          { return "least" }
func (least) Traits() policy.Traits { return policy.Traits{UnderSizes: true} }
func (least) Decide(_ timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		for stage, ok := j.NextStage(); ok; stage, ok = j.NextStage() {
			s := &j.Stages[stage]
			need := s.Ideal
			if s.Elastic() {
				need[resource.Memory] = s.MinMemory
			}
			n, fits := p.FirstFit(need)
			if !fits {
				break
			}
			p.Start(j, stage, n, need[resource.Memory], cluster.BecauseFits(0))
		}
	}
}

// Under-sized tasks run longer by their penalty and request their spill bandwidth, so that they contend: two tasks
// request 80 MB/s each of 100 MB/s.
func TestSpillingContends(t *testing.T) {
	job := func(tasks int) *workload.Workload {
		j := oneStage(1, tasks, workload.StageTruth{})
		j.Stages[0].MinMemory = GB / 2
		j.Stages[0].Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: 1.5, DiskRate: 80 * MB}
		return &workload.Workload{Jobs: []workload.Job{j}}
	}
	for _, c := range []struct {
		tasks int
		disk  float64
		want  time.Duration
	}{{1, 100, 150 * time.Second}, {2, 100, 240 * time.Second}, {2, 160, 150 * time.Second}, {2, 0, 150 * time.Second}} {
		res, err := sim.Run(sim.Config{Nodes: sim.Uniform(1, vector(4, 4, c.disk, 0)), KeepTasks: true}, job(c.tasks),
			least{})
		if err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{c.want, c.want}
		wantEnds(t, res, want[:c.tasks]...)
	}
}

// Phases are stretched to the real duration of the task.
func TestPhasesAreStretched(t *testing.T) {
	truth := phases(phase(10*time.Second, vector(1, 1, 100, 0)), phase(30*time.Second, vector(1, 1, 50, 0)))
	truth.Duration = workload.ForEach([]time.Duration{80 * time.Second})
	c := sim.Config{Nodes: sim.Uniform(1, vector(4, 8, 50, 0))}
	wantEnds(t, simulate(t, c, "fifo", oneStage(1, 1, truth)), 100*time.Second) // 20 s at half the pace, 60 s
}

func TestWorkingSetAboveTheGrant(t *testing.T) {
	grows := phases(phase(40*time.Second, vector(1, 0.5, 0, 0)), phase(40*time.Second, vector(1, 2, 0, 0)),
		phase(20*time.Second, vector(1, 1, 0, 0)))
	c := sim.Config{Nodes: sim.Uniform(1, vector(1, 8, 0, 0))}
	attempts := func(n int) func(*workload.Job) { return func(j *workload.Job) { j.MaxAttempts = n } }

	t.Run("without swap it is killed when it grows, and the job fails in the end", func(t *testing.T) {
		res := simulate(t, c, "fifo", oneStage(1, 1, grows, attempts(4)), oneStage(2, 1, workload.StageTruth{}))
		wantEnds(t, res, 40*time.Second, 80*time.Second, 120*time.Second, 160*time.Second, 260*time.Second)
		j := res.Jobs[0]
		if !j.Failed || j.Done || j.OutOfMemory != 4 || j.Retries != 3 || j.LostWork != 160*time.Second ||
			res.OutOfMemory != 4 ||
			j.Failure != `task 0 of stage "work" ended without success in all its 4 runs, the last out of memory with 1GB` {
			t.Errorf("job is %+v", j)
		}
		if !res.Jobs[1].Done || len(res.Unfinished()) != 0 || len(res.Failures()) != 1 {
			t.Errorf("jobs are %+v", res.Jobs)
		}
	})
	t.Run("with swap it pages", func(t *testing.T) {
		c := c
		c.Machine = sim.Machine{Swap: 2 * GB, Paging: sim.Paging{{0.5, 3}, {1, 1}}}
		wantEnds(t, simulate(t, c, "fifo", oneStage(1, 1, grows)), 180*time.Second)
	})
	t.Run("swap is finite", func(t *testing.T) {
		c := c
		c.Nodes = sim.Uniform(1, vector(2, 8, 0, 0))
		c.Machine = sim.Machine{Swap: 1500 * MB, Paging: sim.Paging{{0.5, 3}, {1, 1}}}
		res := simulate(t, c, "fifo", oneStage(1, 2, grows))
		// The second finds 500 MB free, needs 1 GB, and is killed; its job ends with it.
		if res.OutOfMemory != 1 || res.Killed != 1 || !res.Jobs[0].Failed {
			t.Errorf("result is %+v", res)
		}
	})
	t.Run("a task that spills does so instead", func(t *testing.T) {
		elastic := oneStage(1, 1, grows)
		elastic.Stages[0].MinMemory = GB / 2
		elastic.Stages[0].Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: 1.5}
		wantEnds(t, simulate(t, c, "fifo", elastic), 150*time.Second)
	})
	t.Run("what is said of memory alone", func(t *testing.T) {
		res := simulate(t, c, "fifo",
			oneStage(1, 2, workload.StageTruth{IdealMemory: workload.ForEach([]resource.Amount{GB, GB + 1})}))
		if res.OutOfMemory != 1 || !strings.Contains(res.Jobs[0].Failure, "task 1 of") {
			t.Errorf("result is %+v", res)
		}
	})
}

func TestHeap(t *testing.T) {
	c := sim.Config{Nodes: sim.Uniform(1, vector(1, 8, 0, 0)),
		Machine: sim.Machine{Collection: sim.Collection{Cost: 0.5, GiveUp: 0.98}}}
	heap := func(live, size float64) workload.StageTruth {
		return workload.StageTruth{Heap: &workload.Heap{Live: resource.Amount(live * float64(GB)),
			Size: resource.Amount(size * float64(GB))}}
	}
	wantEnds(t, simulate(t, c, "fifo", oneStage(1, 1, heap(0.5, 0))), 150*time.Second) // twice the live set
	wantEnds(t, simulate(t, c, "fifo", oneStage(1, 1, heap(0, 0))), 100*time.Second)
	for _, swap := range []resource.Amount{0, 100 * GB} {
		c.Machine.Swap, c.Machine.Paging = swap, sim.SSDPaging
		for _, size := range []float64{0, 1, 0.5} {
			if res := simulate(t, c, "fifo", oneStage(1, 1, heap(1.01, size))); res.OutOfMemory != 1 || !res.Jobs[0].Failed {
				t.Errorf("a live set above a heap of %v GB with swap %d: %+v", size, swap, res.Jobs[0])
			}
		}
	}
	// The heap is larger than the container: the working set pages, and the rest of the heap costs nothing.
	large := heap(0.2, 4)
	large.Phases = workload.ForAll([]cluster.Phase{phase(100*time.Second, vector(1, 2, 0, 0))})
	c.Machine.Collection.Cost = 0
	c.Machine.Paging = sim.Paging{{0.5, 2}, {1, 1}}
	wantEnds(t, simulate(t, c, "fifo", oneStage(1, 1, large)), 200*time.Second)
	// A heap smaller than the working set limits it.
	large.Heap.Size = GB
	wantEnds(t, simulate(t, c, "fifo", oneStage(1, 1, large)), 100*time.Second)
}

// Four tasks that demand two cores each on a node of four cores get half of them, and less if over-allocated cores lose
// anything. Two tasks lose nothing.
func TestOverAllocatedCoresLose(t *testing.T) {
	for _, c := range []struct {
		tasks int
		loss  sim.Loss
		ends  time.Duration
	}{{4, sim.Loss{}, 200 * time.Second}, {4, sim.Loss{Slope: 1.0 / 9, Floor: 0.5}, 222222222 * time.Microsecond},
		{4, sim.Loss{Slope: 9, Floor: 0.8}, 250 * time.Second}, {2, sim.Loss{Slope: 9, Floor: 0.8}, 100 * time.Second}} {
		all := phases(cluster.Phase{Duration: 100 * time.Second, Demand: vector(2, 1, 0, 0)})
		res := simulate(t, sim.Config{Nodes: sim.Uniform(1, vector(4, 8, 0, 0)), Machine: sim.Machine{CPU: c.loss}}, "fifo",
			oneStage(1, c.tasks, all))
		for _, task := range res.Tasks {
			if got := time.Duration(task.Finished).Round(time.Microsecond); got != c.ends {
				t.Errorf("%d tasks with %+v: one ends after %v, want %v", c.tasks, c.loss, got, c.ends)
			}
		}
	}
	wrong := sim.Config{Nodes: sim.Uniform(1, vector(1, 1, 0, 0)), Machine: sim.Machine{CPU: sim.Loss{Slope: -1}}}
	if err := wrong.Check(); err == nil || !strings.Contains(err.Error(), "cpu loss slope -1") {
		t.Errorf("a negative slope: %v", err)
	}
}
