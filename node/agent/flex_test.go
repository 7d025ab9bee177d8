package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// flexOrder starts a program that keeps the given number of MiB until it is killed, in a FLEX container of initially 64
// MiB.
func (b *bench) flexOrder(mib int) cluster.Order {
	return asFlex(b.order(os.Args[0], "hold", fmt.Sprint(mib), "1000"), 64*resource.MiB, resource.GiB)
}

// gatedOrder is one that checks what it holds and ends when the gate opens.
func (b *bench) gatedOrder(mib int, gate string) cluster.Order {
	return asFlex(b.order(os.Args[0], "pattern", fmt.Sprint(mib), gate), 64*resource.MiB, resource.GiB)
}

func (b *bench) reading(id cluster.ContainerID) cluster.Reading { return b.Readings()[id] }

// until waits for a reading.
func (b *bench) until(what string, id cluster.ContainerID, ok func(cluster.Reading) bool) cluster.Reading {
	b.t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		r := b.reading(id)
		if r.Limit != nil && ok(r) {
			return r
		}
		if time.Now().After(end) {
			b.t.Fatalf("no reading with %s: %s", what, show(r))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func show(r cluster.Reading) string {
	value := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p >> 20
	}
	return fmt.Sprintf("state %q limit %d MiB anonymous %d swap %d: %s", r.State, value(r.Limit), value(r.Anonymous),
		value(r.Swap), r.Why)
}

func TestFlexGrows(t *testing.T) {
	testswap.Need(t, 256<<20)
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "gate")
	o := b.gatedOrder(200, gate)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.until("200 MiB", o.Container, func(r cluster.Reading) bool { return *r.Anonymous > 195<<20 })
	for b.next(cluster.NodeMemory).Held < 195*resource.MiB { // reported within 20 s
	}
	b.openGate(gate, 1)
	for b.next(cluster.NodeMemory).Held > 0 {
	}
}

// openGate lets the given number of programs end, which must succeed.
func (b *bench) openGate(gate string, programs int) {
	b.t.Helper()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
	for range programs {
		if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded {
			b.t.Fatalf("%s ended as %s: %s", e.Task, e.Outcome, e.Detail)
		}
	}
}

// rival starts a FLEX container that comes before all later ones, and that will lack memory when a REGULAR container
// takes most of the node: the first container that lacks memory pages instead of waiting, so that later ones are
// suspended.
func (b *bench) rival(gate string, mib int64) {
	b.t.Helper()
	// It may not grow to the whole node: beside one of which nothing is known, others hold no more than swap takes.
	o := asFlex(b.order(os.Args[0], "pattern", fmt.Sprint(mib), gate), 32*resource.MiB, 256*resource.MiB)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.until("what it holds", o.Container, func(r cluster.Reading) bool { return *r.Anonymous > (mib-1)<<20 })
}

// TestFlexGivesWay starts a REGULAR container on a node that has promised all its memory, most of it to a FLEX one.
func TestFlexGivesWay(t *testing.T) {
	testswap.Need(t, 384<<20)
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "gate")
	b.rival(gate, 48)
	flex := b.gatedOrder(200, gate)
	b.Apply([]cluster.Order{flex})
	b.next(cluster.DecisionDone)
	b.until("200 MiB", flex.Container, func(r cluster.Reading) bool { return *r.Anonymous > 195<<20 })
	regular := b.order("sleep", "1000")
	regular.Grant = resource.Of(500, 924*resource.MiB)
	began := time.Now()
	b.Apply([]cluster.Order{regular})
	b.next(cluster.DecisionDone)
	t.Logf("reclaimed and started after %v", time.Since(began).Round(time.Millisecond))
	r := b.until("a suspension", flex.Container, func(r cluster.Reading) bool {
		return r.State == cluster.ContainerSuspended
	})
	for e := b.next(cluster.TaskSuspended); e.Task != flex.Task || e.Run != flex.Container.Run ||
		e.By != cluster.HeldByMemory; e = b.next(cluster.TaskSuspended) {
	}
	if *r.Limit > 124<<20 || !strings.Contains(r.Why, "is to start needs 924MiB") {
		t.Errorf("beside it: %s", show(r))
	}
	b.Apply(kill(regular.Container))
	b.next(cluster.TaskEnded)
	for b.next(cluster.TaskResumed).Task != flex.Task {
	}
	b.openGate(gate, 2)
}

// TestFlexFetchesBack: the memory of a program that does nothing is in swap. It is fetched back, without a fault of the
// program, once its limit has room for all of it.
func TestFlexFetchesBack(t *testing.T) {
	testswap.Need(t, 256<<20)
	const holds, keeps, room = 160, 40, 224
	b := newBench(t)
	o := asFlex(b.order(os.Args[0], "rest", fmt.Sprint(holds)), room*resource.MiB, room*resource.MiB)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.until("all that it holds", o.Container, func(r cluster.Reading) bool { return *r.Anonymous >= holds<<20 })
	c := b.container(o.Container)
	if _, err := b.keeper.Act(t.Context(), c.kept, memory.Envelope{},
		memory.Action{Kind: memory.Shrink, Limit: keeps * resource.MiB}); err != nil {
		t.Fatal(err)
	}
	b.FetchBack(o.Container)
	time.Sleep(200 * time.Millisecond)
	if r := b.reading(o.Container); *r.Memory > keeps<<20 || *r.Swap < (holds-keeps)<<20 {
		t.Errorf("without room it is %s", show(r))
	}
	if err := keeper.SetMemory(t.Context(), c.group, room*resource.MiB); err != nil {
		t.Fatal(err)
	}
	// On a slow machine most is left to faults.
	b.until("memory", o.Container, func(r cluster.Reading) bool { return *r.Memory >= (keeps+8)<<20 })
}

// TestSuspendedContainerCanBeKilled: a frozen process does not see that it is to end.
func TestSuspendedContainerCanBeKilled(t *testing.T) {
	b := newBench(t)
	o := b.flexOrder(10)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	g := b.container(o.Container).group
	if err := g.Freeze(t.Context()); errors.Is(err, cgroup.ErrUnsupported) {
		t.Skipf("needs a freezer: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	b.Apply([]cluster.Order{{Decision: cluster.Decision{Kind: cluster.Kill}, Container: o.Container}})
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed {
		t.Fatalf("it ended as %s", e.Outcome)
	}
}

// TestNothingStaysFrozen: the agent is gone, the supervisor resumes, with the memory that it began with.
func TestNothingStaysFrozen(t *testing.T) {
	b := newBench(t)
	o := b.flexOrder(10)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	c := b.container(o.Container)
	if err := c.group.Freeze(t.Context()); errors.Is(err, cgroup.ErrUnsupported) {
		t.Skipf("needs a freezer: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.group.Has(cgroup.CPU); ok {
		if err := c.group.Apply(t.Context(),
			cgroup.Limits{CPUMillicores: cgroup.At(keeper.SuspendedMillicores)}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.group.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.group.Apply(t.Context(), cgroup.Limits{MemoryBytes: cgroup.At(r.MemoryBytes.Or(0) + 2<<20)}); err != nil {
		t.Fatal(err)
	}
	b.Close()
	agedLease(t, b.leasePath(), 2*leaseTerm)
	for end := time.Now().Add(4 * leaseRenewal); ; time.Sleep(20 * time.Millisecond) {
		if _, frozen := c.group.Frozen(); !frozen {
			if limit := c.group.MemoryLimit().Or(0); limit < int64(o.Grant[resource.Memory]) {
				t.Errorf("it runs with %d of the %d bytes that it began with", limit, o.Grant[resource.Memory])
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is still frozen")
		}
	}
	b.open()
	b.next(cluster.TaskAdopted)
}

// TestFoundSuspended: who finds a container says whether it stands still, and when it goes on.
func TestFoundSuspended(t *testing.T) {
	b := newBench(t)
	o := b.flexOrder(10)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	if err := b.container(o.Container).group.Freeze(t.Context()); errors.Is(err, cgroup.ErrUnsupported) {
		t.Skipf("needs a freezer: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	b.reopen()
	if e := b.next(cluster.TaskAdopted); e.By != cluster.HeldByMemory {
		t.Errorf("found frozen, it is held by %q", e.By)
	}
	b.next(cluster.TaskResumed) // there is memory for it
	b.until("a resumption", o.Container, func(r cluster.Reading) bool { return r.State == cluster.ContainerRunning })
	await(t, "the kernel's part of it", func() bool {
		frozen, _ := b.container(o.Container).group.Frozen()
		return !frozen
	})
	b.reopen()
	if e := b.next(cluster.TaskAdopted); e.By != 0 {
		t.Errorf("found running, it is held by %q", e.By)
	}
}

// TestRefusedContainerWaits: a container whose memory cannot be had, because the other has its least already, starts
// when that ends. One that waits can be ended.
func TestRefusedContainerWaits(t *testing.T) {
	b := newBench(t)
	flex := b.order(os.Args[0], "hold", "100", "4")
	flex.Envelope = cluster.Envelope{Class: cluster.Flex, Max: 800 * resource.MiB, Rank: 1}
	flex.Grant = resource.Of(500, 500*resource.MiB)
	b.Apply([]cluster.Order{flex})
	b.next(cluster.DecisionDone)
	var ids []cluster.ContainerID
	for range 2 {
		regular := b.order("true")
		regular.Grant = resource.Of(500, 600*resource.MiB)
		b.Apply([]cluster.Order{regular})
		ids = append(ids, regular.Container)
	}
	for end := time.Now().Add(20 * time.Second); b.Readings()[ids[0]].State != cluster.ContainerWaiting ||
		b.Readings()[ids[1]].State != cluster.ContainerWaiting; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no reading with waiting: %+v", b.Readings())
		}
	}
	b.Apply([]cluster.Order{{Decision: cluster.Decision{Kind: cluster.Kill}, Container: ids[1]}})
	if e := b.next(cluster.DecisionFailed); e.Task != ids[1].Task ||
		!strings.Contains(e.Detail, "ended before its memory was available") {
		t.Errorf("killed while it waited: %+v", e)
	}
	for range 2 {
		if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded {
			t.Errorf("task %s ended as %s: %s", e.Task, e.Outcome, e.Detail)
		}
	}
}
