package sim

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// randomFlex draws memory managers, and makes some of the jobs FLEX.
func randomFlex(t *rapid.T, c *Config, w *workload.Workload) {
	all := memory.Variants()
	all["default"], all["paper"] = memory.Default(), memory.Paper()
	c.Flex.Manager = all[rapid.SampledFrom([]string{"default", "default", "default", "paper", "ejf", "ejf+s", "sjf",
		"kill"}).Draw(t, "manager")]
	c.Flex.Look = time.Duration(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "look")) * time.Second
	if len(c.Machine.Paging) == 0 {
		c.Machine.Paging = SSDPaging
	}
	c.Machine.Swap = testGB * rapid.SampledFrom([]resource.Amount{0, 1, 10, 1000, 1000}).Draw(t, "swap")
	c.Machine.FaultShare = rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "fault share")
	c.Machine.SwapSpeed = testMB * rapid.SampledFrom([]resource.Amount{0, 10, 200, 2000}).Draw(t, "swap speed")
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if i > 0 && rapid.IntRange(0, 2).Draw(t, "class") == 0 {
			continue
		}
		j.Class, j.Requeue = cluster.Flex, rapid.Bool().Draw(t, "requeue")
		for s := range j.Stages {
			if rapid.Bool().Draw(t, "bounded") {
				j.Stages[s].MaxMemory = j.Stages[s].Ideal[resource.Memory] +
					testGB*resource.Amount(rapid.IntRange(0, 4).Draw(t, "most"))
			}
			if rapid.Bool().Draw(t, "has heartbeats") {
				j.Stages[s].HeartbeatTimeout = 10 * time.Second
			}
		}
	}
}

// checkKeeper checks a node's use of memory.
func (r *run) checkKeeper(t *rapid.T, id cluster.NodeID) {
	k, p := r.keepers[id], &r.nodes[id]
	var limits, swapped, leaving resource.Amount
	for _, task := range p.tasks {
		if task.container == nil || !task.container.admitted {
			t.Fatalf("%v: task %v runs, but was not admitted", r.now, task.id)
		}
		if f := task.flow; f != nil {
			swapped += f.swap
		}
	}
	for _, c := range k.containers {
		limits += c.limit
		swapped += c.swapped - c.parked
		still := c.stopped || c.out
		switch {
		case c.resident < 0 || c.swapped < 0 || c.wanting() < 0 || c.resident > c.limit ||
			c.limit > max(c.envelope.Min, c.envelope.Max):
			t.Fatalf("%v: container %v has limit %d, working set %d: %d resident, %d swapped", r.now, c.id(), c.limit, c.set,
				c.resident, c.swapped)
		case !c.flex() && (c.admitted && c.limit != c.task.grant[resource.Memory] || c.stopped):
			t.Fatalf("%v: REGULAR container %v of %d has limit %d", r.now, c.id(), c.task.grant[resource.Memory], c.limit)
		case c.flex() && c.task.flow != nil && c.task.ending == 0 &&
			((still || c.task.flow.held) != (c.task.flow.pace == 0) || c.task.flow.demand[resource.Memory] != c.resident):
			t.Fatalf("%v: container %v is stopped: %v, pace %v, demand %v", r.now, c.id(), c.stopped, c.task.flow.pace,
				c.task.flow.demand)
		case still && c.moving != nil:
			t.Fatalf("%v: container %v stands still, but its programs move pages", r.now, c.id())
		case c.flex() && c.task.flow != nil && c.task.ending == 0 && !still && c.wanting() > 0 &&
			(c.resident < c.limit || c.moving == nil && r.parameters.Strategy != memory.InOrder):
			t.Fatalf("%v: container %v wants %d and does not get it", r.now, c.id(), c.wanting())
		}
	}
	for _, tr := range k.device.queue {
		if tr.why == pageOut || tr.why == overflow || tr.why == leave {
			leaving += tr.bytes
		}
		if !slices.Contains(k.containers, tr.of) {
			t.Fatalf("%v: pages of container %v are moved", r.now, tr.of.id())
		}
	}
	if limits > k.memory || limits != k.held {
		t.Fatalf("%v: limits add up to %d, booked as %d, on a node of %d", r.now, limits, k.held, k.memory)
	}
	if leaving != k.promised || p.swap+swapped+leaving != r.config.Machine.Swap {
		t.Fatalf("%v: swap of %d: %d free, %d taken, %d promised, booked as %d", r.now, r.config.Machine.Swap, p.swap,
			swapped, leaving, k.promised)
	}
}

// watchActions checks the actions of the managers.
func watchActions(t *rapid.T, c *Config, w *workload.Workload) {
	classes := map[cluster.JobID]cluster.Class{}
	for i := range w.Jobs {
		classes[w.Jobs[i].ID] = w.Jobs[i].Class
	}
	stopped := map[cluster.ContainerID]timeline.Time{}
	c.ObserveMemory = func(now timeline.Time, _ cluster.NodeID, a memory.Action) {
		if a.Kind == memory.Admit || a.Kind == memory.Refuse {
			return
		}
		if classes[a.Container.Task.Job] != cluster.Flex {
			t.Fatalf("%v: %v of REGULAR container %v", now, a.Kind, a.Container)
		}
		since, still := stopped[a.Container]
		switch {
		case a.Kind == memory.Suspend || a.Kind == memory.Shrink && a.Suspended:
			if !still {
				stopped[a.Container] = now
			}
		case a.Kind == memory.Resume:
			if still && now.Sub(since) < c.Flex.Manager.Settle {
				t.Fatalf("%v: container %v is resumed after %v", now, a.Container, now.Sub(since))
			}
			delete(stopped, a.Container)
		}
	}
}

// progress adds up, from the observed memory of containers alone, how long they would have run with all their memory.
type progress struct {
	paging Paging
	last   map[cluster.ContainerID]ContainerMemory
	done   map[cluster.ContainerID]float64 // nanoseconds
}

func (p *progress) observe(m ContainerMemory) {
	if last, known := p.last[m.Container]; known && !last.Suspended {
		p.done[m.Container] += float64(m.At-last.At) / p.paging.Slowdown(last.Resident, last.WorkingSet)
	}
	p.last[m.Container] = m
}

// alone is the run time of a FLEX task with all the memory that it demands, on a node where nothing else is scarce.
func alone(run *task, most resource.Amount, m *Machine) (length float64) {
	truth := truthOf(run.job.Job, int(run.id.Stage), run.id.Index, run.result.Warmth)
	phases, total, largest := truth.Phases, time.Duration(0), resource.Amount(0)
	for _, p := range phases {
		total, largest = total+p.Duration, max(largest, p.Demand[resource.Memory])
	}
	if total == 0 {
		set := truth.IdealMemory
		if len(phases) > 0 {
			set = largest
		}
		phases, total, largest = []cluster.Phase{{Duration: truth.Duration, Demand: resource.Of(0, set)}}, truth.Duration, set
	}
	for _, p := range phases {
		slower := 1.0
		if h := truth.Heap; h != nil {
			size := h.Size
			if size == 0 {
				size = most
			}
			live := float64(h.Live)
			if largest > 0 {
				live *= float64(p.Demand[resource.Memory]) / float64(largest)
			}
			slower, _ = m.Collection.Slowdown(float64(size), live)
		}
		length += slower * float64(p.Duration) * float64(truth.Duration) / float64(total)
	}
	return length
}

// Every FLEX task that succeeds has made exactly the progress that its phases need: more slowly while it paged, and
// none while it was suspended.
func TestFlexWorkAddsUp(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		c.Caps = 0
		for i := range c.Nodes { // nothing is contended
			c.Nodes[i].Capacity = resource.Of(1000*resource.Core, c.Nodes[i].Capacity[resource.Memory])
		}
		w := randomWorkload(t, c.Nodes[0].Capacity)
		randomFlex(t, &c, w)
		randomProtocol(t, &c, len(w.Jobs))
		seen := progress{c.Machine.Paging, map[cluster.ContainerID]ContainerMemory{}, map[cluster.ContainerID]float64{}}
		c.ObserveContainers = seen.observe
		r, err := newRun(c, w, randomPolicy(t)())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.play(); err != nil {
			t.Fatal(err)
		}
		for _, run := range r.tasks.list {
			if !run.job.Resizable(int(run.id.Stage)) || run.result.Outcome != cluster.Succeeded {
				continue
			}
			most := run.job.Stages[run.id.Stage].MaxMemory
			if node := c.Nodes[0].Capacity[resource.Memory]; most == 0 || most > node {
				most = node
			}
			id := cluster.ContainerID{Task: run.id, Run: int(run.run)}
			got, want := seen.done[id], alone(run, max(most, run.grant[resource.Memory]), &c.Machine)
			if off := got - want; off > 1000 || off < -1000 {
				t.Fatalf("container %v did %v of work, its task is %v", id, time.Duration(got), time.Duration(want))
			}
			compared++
		}
	})
	if compared == 0 {
		t.Error("no task was compared")
	}
}

// Whatever FLEX and REGULAR jobs run together: no node provides more than it has, REGULAR containers keep their grants,
// no container is resumed within Settle, every job ends, everything is released, and the same input gives the same
// result.
func TestFlexInvariants(t *testing.T) {
	var sum Result // sum over all runs
	gaveUp := 0
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		w := randomWorkload(t, c.Nodes[0].Capacity)
		randomFlex(t, &c, w)
		randomProtocol(t, &c, len(w.Jobs))
		make := randomPolicy(t)
		if h, is := make().(haphazard); is {
			h.resizes = rapid.Bool().Draw(t, "resizes")
			make = func() policy.Policy { return h }
		}
		if rapid.IntRange(0, 3).Draw(t, "memory by phase") == 0 {
			c.Lends = true
			make = func() policy.Policy {
				p, err := policy.New("ecs", map[string]string{"ecs.memory": "phase", "ecs.short": "false"})
				if err != nil {
					panic(err)
				}
				return p
			}
		}
		r, err := newRun(c, w, make())
		if err != nil {
			t.Fatal(err)
		}
		watchActions(t, &r.config, w)
		r.audit = func(p *node) {
			r.checkNodeUse(t, p)
			for id := range r.nodes {
				if p == &r.nodes[id] {
					r.checkKeeper(t, cluster.NodeID(id))
				}
			}
		}
		res, err := r.play()
		if err != nil {
			t.Fatal(err)
		}
		if again := r.goesRound() || r.standsStill(); again && c.Flex.Manager.Strategy != memory.InOrder {
			gaveUp++ // the paper's managers may kill or wait for ever
			return
		}
		r.checkJobs(t, res)
		r.checkTasks(t, res)
		r.checkLeftovers(t, res)
		if speed := c.Machine.SwapSpeed; speed > 0 &&
			float64(res.SwappedBytes) > float64(speed)*r.now.Sub(0).Seconds()*float64(len(r.keepers))+1 {
			t.Fatalf("%d bytes went to swap of %d bytes a second until %v", res.SwappedBytes, speed, r.now)
		}
		again, err := Run(c, w, make())
		if err != nil || !reflect.DeepEqual(res, again) {
			t.Fatalf("the same again gives\n%+v, not\n%+v (%v)", again, res, err)
		}
		sum.Suspended += res.Suspended
		sum.ManagerKills += res.ManagerKills
		sum.SwappedBytes += res.SwappedBytes
		sum.WaitedForMemory += res.WaitedForMemory
		sum.OutOfMemory += res.OutOfMemory
		sum.Lost += res.Lost
	})
	t.Logf("suspended for %v, %d kills by managers, %d bytes swapped, %v waited for memory, %d out of memory, %d "+
		"lost; %d never end", sum.Suspended, sum.ManagerKills, sum.SwappedBytes, sum.WaitedForMemory, sum.OutOfMemory,
		sum.Lost, gaveUp)
	// The remaining counts are rare, and have tests of their own; with -short, rapid draws so few clusters that these
	// are rare, too.
	if !testing.Short() && (sum.Suspended == 0 || sum.SwappedBytes == 0) {
		t.Error("nothing was out of memory")
	}
}
