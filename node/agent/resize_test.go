package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// resizeBench is an agent with a container that an engine resizes.
type resizeBench struct {
	*bench
	c     *container
	start cluster.Order
	last  cluster.DecisionID
}

func newResized(t *testing.T, start func(*bench) cluster.Order) *resizeBench {
	b := newBench(t)
	r := &resizeBench{bench: b, start: start(b), last: 100}
	r.start.ByPhase = true
	b.Apply([]cluster.Order{r.start})
	b.next(cluster.DecisionDone)
	r.c = b.container(r.start.Container)
	if _, ok := r.c.group.Has(cgroup.CPU); !ok {
		t.Skip("needs a controller of the CPU")
	}
	return r
}

// grantOf is a grant of CPU, millicores, and memory, MiB.
func grantOf(cpu, mib resource.Amount) resource.Vector { return resource.Of(cpu, mib*resource.MiB) }

func (r *resizeBench) order(grant resource.Vector) cluster.Order {
	r.last++
	o := r.start
	o.Decision = cluster.Decision{ID: r.last, Kind: cluster.Resize, Task: r.start.Task, Grant: grant,
		Envelope: r.start.Envelope, Reason: cluster.BecausePhaseDemands(1, grant)}
	o.Envelope.Min, o.Launch = grant[resource.Memory], nil
	o.Envelope.Max = max(o.Envelope.Min, o.Envelope.Max)
	if o.Envelope.Class == cluster.Regular {
		o.Envelope.Max = o.Envelope.Min
	}
	return o
}

// resize orders another grant, and returns the answer.
func (r *resizeBench) resize(grant resource.Vector) cluster.Event {
	r.t.Helper()
	o := r.order(grant)
	r.Apply([]cluster.Order{o})
	e := r.nextOf(cluster.DecisionDone, cluster.DecisionFailed)
	if e.Decision != o.ID {
		r.t.Fatalf("%+v answers %+v", e, o)
	}
	return e
}

// cpuOf returns the bound on the CPU of a group, millicores, and its weight.
func cpuOf(t testing.TB, g *cgroup.Group) (millicores, weight int64) {
	t.Helper()
	read := func(name string) (numbers [2]int64) {
		path, _ := g.File(cgroup.CPU, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Sscan(string(text), &numbers[0], &numbers[1])
		return numbers
	}
	if v, _ := g.Has(cgroup.CPU); v == cgroup.V2 {
		most := read("cpu.max")
		return most[0] * 1000 / most[1], read("cpu.weight")[0]
	}
	return read("cpu.cfs_quota_us")[0] * 1000 / read("cpu.cfs_period_us")[0], (read("cpu.shares")[0]*100 + 1023) / 1024
}

// is checks the limits of the container.
func (r *resizeBench) is(grant resource.Vector) {
	r.t.Helper()
	most, weight := cpuOf(r.t, r.c.group)
	if want, _ := cgroup.WeightOf(int64(grant[resource.CPU])).Get(); most != int64(grant[resource.CPU]) || weight != want {
		r.t.Errorf("CPU %d weight %d, want %d and %d", most, weight, grant[resource.CPU], want)
	}
	if limit := resource.Amount(
		r.c.group.MemoryLimit().Or(0)) / resource.MiB; limit != grant[resource.Memory]/resource.MiB {
		r.t.Errorf("memory %d MiB, want %v", limit, grant[resource.Memory])
	}
}

// A REGULAR container gets its grant at once, answered once, and keeps it when the agent is another one, and when
// there is none. What its programs hold cannot be taken from it.
func TestResize(t *testing.T) {
	r := newResized(t, func(b *bench) cluster.Order { return b.order(os.Args[0], "hold", "40", "1000") })
	r.is(grantOf(1000, 64))
	if e := r.resize(grantOf(500, 128)); e.Kind != cluster.DecisionDone {
		t.Fatalf("%+v", e)
	}
	r.is(grantOf(500, 128))
	r.until("it holds its memory", r.start.Container, func(u cluster.Reading) bool {
		return u.Memory != nil && *u.Memory > 40<<20
	})
	if e := r.resize(grantOf(1500, 30)); e.Kind != cluster.DecisionFailed ||
		!strings.Contains(e.Detail, "its programs hold ") {
		t.Errorf("%+v", e)
	}
	r.is(grantOf(500, 128))
	if e := r.resize(grantOf(1500, 0)); e.Kind != cluster.DecisionFailed ||
		!strings.Contains(e.Detail, "must be at least") {
		t.Errorf("%+v", e)
	}
	if e := r.resize(grantOf(1500, 100)); e.Kind != cluster.DecisionDone {
		t.Fatalf("%+v", e)
	}
	r.is(grantOf(1500, 100))
	r.Close()

	agedLease(t, r.leasePath(), 2*leaseTerm)
	record := r.c.recorded(t)
	if err := release(r.c.spec.sized(&record), &record, false); err != nil {
		t.Fatal(err)
	}
	r.is(grantOf(1500, 100))
	// by an agent that died
	for _, left := range []cgroup.Limits{{}, {CPUMillicores: cgroup.At(100), CPUWeight: cgroup.At(7),
		MemoryBytes: cgroup.At(100 << 20)}} {
		if err := r.c.group.Apply(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		r.open()
		e := r.next(cluster.TaskAdopted)
		if c := e.Condition(); e.Grant != grantOf(1500, 100) || c.Was != grantOf(500, 128) || c.Resized == 0 ||
			c.Why != cluster.BecausePhaseDemands(1, e.Grant) || !c.ByPhase {
			t.Errorf("found %v, %+v", e.Grant, c)
		}
		r.c = r.container(r.start.Container)
		r.is(grantOf(1500, 100))
		if left == (cgroup.Limits{}) {
			r.Close()
		}
	}
}

// Of a FLEX container the memory manager raises and lowers the limit, also after a restart.
func TestResizeFlex(t *testing.T) {
	r := newResized(t, func(b *bench) cluster.Order { return b.flexOrder(40) })
	grows := func(to int64) {
		t.Helper()
		r.until("its limit grows", r.start.Container, func(u cluster.Reading) bool {
			return u.Limit != nil && *u.Limit >= to<<20
		})
	}
	if e := r.resize(grantOf(500, 200)); e.Kind != cluster.DecisionDone {
		t.Fatalf("%+v", e)
	}
	grows(200)
	r.reopen()
	if e := r.next(cluster.TaskAdopted); e.Grant != grantOf(500, 200) {
		t.Errorf("found %v", e.Grant)
	}
	r.c = r.container(r.start.Container)
	if e := r.resize(grantOf(1500, 300)); e.Kind != cluster.DecisionDone {
		t.Fatalf("%+v", e)
	}
	grows(300)
	if most, weight := cpuOf(t, r.c.group); most != 1500 || weight != 150 {
		t.Errorf("CPU %d weight %d", most, weight)
	}
}

// A REGULAR container does not get memory that a FLEX container has.
func TestResizeIntoGrownMemory(t *testing.T) {
	r := newResized(t, func(b *bench) cluster.Order { return b.order("sleep", "1000") })
	flex := r.bench.flexOrder(100)
	flex.Grant = grantOf(500, 600)
	r.Apply([]cluster.Order{flex})
	r.next(cluster.DecisionDone)
	if e := r.resize(grantOf(1000, 500)); e.Kind != cluster.DecisionFailed ||
		!strings.Contains(e.Detail, "FLEX containers have grown into the memory") {
		t.Errorf("%+v", e)
	}
	r.is(grantOf(1000, 64))
	if was := r.c.recorded(t); was.WasResized() {
		t.Error("a record is left")
	}
}

// A container may use what its envelope says, whatever it is granted, and its weight follows its grant: also when the
// agent is another one, and when there is none.
func TestGrantIsAWeight(t *testing.T) {
	r := newResized(t, func(b *bench) cluster.Order {
		o := b.order("sleep", "1000")
		o.Envelope.MostCPU = 1800
		return o
	})
	is := func(weight int64) {
		t.Helper()
		if most, got := cpuOf(t, r.c.group); most != 1800 || got != weight {
			t.Errorf("CPU %d weight %d, want 1800 and %d", most, got, weight)
		}
	}
	is(100)
	for _, cpu := range []resource.Amount{500, 1500} {
		if e := r.resize(grantOf(cpu, 64)); e.Kind != cluster.DecisionDone {
			t.Fatalf("%+v", e)
		}
		is(int64(cpu / 10))
	}
	r.Close()
	undo := func() { // as an agent that died may have
		t.Helper()
		if err := r.c.group.Apply(t.Context(),
			cgroup.Limits{CPUMillicores: cgroup.At(100), CPUWeight: cgroup.At(7)}); err != nil {
			t.Fatal(err)
		}
	}
	agedLease(t, r.leasePath(), 2*leaseTerm)
	undo()
	record := r.c.recorded(t)
	if err := release(r.c.spec.sized(&record), &record, false); err != nil {
		t.Fatal(err)
	}
	is(150)
	undo()
	r.open()
	if e := r.next(cluster.TaskAdopted); e.Grant != grantOf(1500, 64) || e.Condition().MostCPU != 1800 {
		t.Errorf("found %v, %+v", e.Grant, e.Condition())
	}
	r.c = r.container(r.start.Container)
	is(150)
}

// Orders that follow each other at once are answered each, the last one is carried out, and a stopped container gets
// its grant when it goes on.
func TestResizesAreAnsweredOnce(t *testing.T) {
	r := newResized(t, func(b *bench) cluster.Order { return b.order("sleep", "1000") })
	if _, ok := r.c.group.Has(cgroup.Freezer); !ok {
		t.Skip("needs a freezer")
	}
	if err := r.keeper.Hold(r.c.kept, cluster.Hold{By: cluster.HeldByOwner}); err != nil {
		t.Fatal(err)
	}
	const many = 20
	answers := map[cluster.DecisionID]cluster.EventKind{}
	var orders []cluster.Order
	for i := range resource.Amount(many) {
		orders = append(orders, r.order(grantOf(100+i, 80+i)))
	}
	r.Apply(orders)
	for range many {
		e := r.nextOf(cluster.DecisionDone, cluster.DecisionSuperseded)
		if _, twice := answers[e.Decision]; twice {
			t.Errorf("decision %d is answered twice", e.Decision)
		}
		answers[e.Decision] = e.Kind
	}
	if answers[r.last] != cluster.DecisionDone {
		t.Errorf("answers %v", answers)
	}
	if requested, _ := r.c.group.Frozen(); !requested {
		t.Error("the container goes on")
	}
	if err := r.keeper.Hold(r.c.kept, cluster.Hold{}); err != nil {
		t.Fatal(err)
	}
	r.is(grantOf(119, 99))
}
