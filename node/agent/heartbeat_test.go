package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// TestHeartbeats suspends a JVM that does nothing but collect garbage, for several times as long as it may be silent:
// it is caught in a collection, during which it has no heartbeats, and must come to its next in time even so.
func TestHeartbeats(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	const timeout, suspension = 20 * time.Second, 50 * time.Second // five breaths
	for _, program := range []string{"java", "javac"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs a JVM: %v", err)
		}
	}
	testswap.Need(t, 768<<20)
	b := newBench(t)
	classes := t.TempDir()
	if out, err := exec.Command("javac", "-d", classes,
		filepath.Join("testdata", "Heart.java")).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v: %s", err, out)
	}
	gate := filepath.Join(classes, "gate")
	b.rival(gate, 4) // with the race detector it holds 24 MiB
	o := asFlex(b.order("java", "-XX:+UseSerialGC", "-Xmx400m", "-cp", classes, "Heart", "200", gate), 172*resource.MiB,
		resource.GiB)
	o.Envelope.HeartbeatTimeout = timeout
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	await(t, "heartbeats", func() bool { return len(heartbeats(t, o.Launch.Stdout)) > 5 })

	regular := b.order("sleep", "1000")
	regular.Grant[resource.Memory] = 816 * resource.MiB
	b.Apply([]cluster.Order{regular})
	b.next(cluster.DecisionDone)
	began := time.Now()
	r := b.until("a suspension", o.Container, func(r cluster.Reading) bool {
		return r.State == cluster.ContainerSuspended
	})
	t.Logf("%s", show(r))
	for time.Since(began) < suspension {
		if r := b.reading(o.Container); r.State != cluster.ContainerSuspended {
			t.Fatalf("it runs after %v: %s", time.Since(began), show(r))
		}
		time.Sleep(200 * time.Millisecond)
	}
	ended := time.Now()
	b.Apply(kill(regular.Container))
	b.next(cluster.TaskEnded)
	b.until("growth", o.Container, func(r cluster.Reading) bool { return r.State == cluster.ContainerRunning })
	b.openGate(gate, 2)

	var gap time.Duration
	beats, in := heartbeats(t, o.Launch.Stdout), 0
	for i, beat := range beats[1:] {
		if beat.After(began) && beat.Before(ended) {
			in++
		}
		if d := beat.Sub(beats[i]); d > gap {
			gap = d
		}
	}
	t.Logf("suspended for %v: %d heartbeats, the longest time between two %v", ended.Sub(began).Round(time.Second), in,
		gap)
	if gap >= timeout {
		t.Errorf("it was silent for %v, and may be for less than %v", gap, timeout)
	}
}

// heartbeats are the times at which a program printed that it lives.
func heartbeats(t *testing.T, path string) (beats []time.Time) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		var ms int64
		if _, err := fmt.Sscan(line, &ms); err == nil && ms > 1e12 { // a line may be half there
			beats = append(beats, time.UnixMilli(ms))
		}
	}
	return beats
}

// TestShrinkLeavesTimeForHeartbeats takes memory from a program with heartbeats to send, for which it may stand still
// for too short a time: it does so in several goes, and does not stand still afterwards.
func TestShrinkLeavesTimeForHeartbeats(t *testing.T) {
	onceInGuests(t)
	testswap.Need(t, 512<<20)
	b := newBench(t)
	size := resource.Amount(320)
	if slow() {
		size = 128
	}
	gate := filepath.Join(t.TempDir(), "gate")
	// the agent leaves it alone
	o := asFlex(b.order(os.Args[0], "pattern", fmt.Sprint(int64(size)), gate), (size+32)*resource.MiB,
		(size+32)*resource.MiB)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.awaitOutput(o, "full\n")
	c := b.container(o.Container)
	if _, ok := c.group.Has(cgroup.CPU); !ok {
		t.Skip("needs a bound on CPU time")
	}
	e := memory.Envelope{Container: c.id, Envelope: c.spec.Envelope}
	e.HeartbeatTimeout = 400 * time.Millisecond
	if slow() {
		e.HeartbeatTimeout *= 10
	}
	goes := 0
	for done := false; !done; goes++ {
		if goes == 200 {
			t.Fatalf("after %d goes the limit is %d MiB", goes, c.group.MemoryLimit().Or(0)>>20)
		}
		before := c.group.MemoryLimit().Or(0)
		_, err := b.keeper.Act(t.Context(), c.kept, e, memory.Action{Kind: memory.Shrink, Limit: 32 * resource.MiB,
			Suspended: true})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, cgroup.ErrBusy) {
			t.Fatal(err)
		}
		if requested, _ := c.group.Frozen(); requested {
			t.Fatalf("after go %d it stands still", goes)
		}
		if limit := c.group.MemoryLimit().Or(0); limit > before {
			t.Errorf("go %d raised the limit from %d to %d bytes", goes, before, limit)
		}
		done = err == nil
	}
	t.Logf("%d goes", goes)
	if err := c.kept.Release(t.Context(), keeper.ByMemory|keeper.BySwapping); err != nil {
		t.Fatal(err)
	}
	if _, err := c.group.RaiseMemory(int64(size+32) << 20); err != nil {
		t.Fatal(err)
	}
	b.openGate(gate, 1)
}
