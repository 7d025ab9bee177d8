package agent

import (
	"errors"
	"flag"
	"fmt"
	"github.com/bellows-rm/bellows/node/keeper"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
)

// Programs that behave as badly as programs can, in FLEX containers. Their memory is small enough for a guest.

var streamFor = flag.Duration("stream", 10*time.Second, "for how long TestStreamingSuspendsNobody streams")

// slow tells whether the processor is emulated.
func slow() bool { return os.Getenv("BELLOWS_TEST_GUEST") != "" }

// onceInGuests leaves a test to root there: it is long, and what it shows does not depend on the user.
func onceInGuests(t *testing.T) {
	if slow() && os.Geteuid() != 0 {
		t.Skip("is done as root")
	}
}

// hostile is a program of this file.
func hostile(args []string) {
	switch args[0] {
	case "stream":
		stream(args[1], args[2])
	case "flood":
		flood(args[1])
	}
}

// stream writes and reads a file twice as large as its container, next to some memory of its own, for the given time.
func stream(path, seconds string) {
	var s float64
	fmt.Sscan(seconds, &s)
	own := testswap.Memory[byte](16 << 20)
	block := make([]byte, 1<<20)
	for end := time.Now().Add(time.Duration(s * 1e9)); time.Now().Before(end); {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			os.Exit(1)
		}
		for range 128 {
			if _, err := f.Write(block); err != nil {
				os.Exit(1)
			}
		}
		for i := range int64(128) {
			if _, err := f.ReadAt(block, i<<20); err != nil {
				os.Exit(1)
			}
			for k := 0; k < len(own); k += 4096 {
				own[k]++
			}
		}
		f.Close()
	}
	os.Exit(0)
}

// flood takes the given number of MiB as fast as the machine can supply them, checks them once, and ends.
func flood(size string) {
	var mib int
	fmt.Sscan(size, &mib)
	block := testswap.Memory[byte](mib << 20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = byte(i >> 12)
	}
	for i := 0; i < len(block); i += 4096 {
		if block[i] != byte(i>>12) {
			os.Exit(9)
		}
	}
	os.Exit(0)
}

// asFlex makes a FLEX order of one.
func asFlex(o cluster.Order, min, max resource.Amount) cluster.Order {
	o.Grant[resource.Memory] = min
	o.Envelope = cluster.Envelope{Class: cluster.Flex, Max: max, Rank: int(o.Container.Task.Job)}
	return o
}

// TestStreamingSuspendsNobody: page cache fills containers and is no need.
func TestStreamingSuspendsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	testswap.Need(t, 256<<20)
	long := *streamFor
	if slow() {
		long /= 4
	}
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "streamed")
	o := asFlex(b.order(os.Args[0], "hostile", "stream", file, fmt.Sprint(long.Seconds())), 64*resource.MiB,
		128*resource.MiB)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	done := make(chan cluster.Event, 1)
	go func() {
		for e := range b.Events() {
			if e.Kind == cluster.TaskEnded {
				done <- e
				return
			}
		}
	}()
	timeout := time.After(long + 60*time.Second)
	for looks := 0; ; looks++ {
		select {
		case e := <-done:
			if e.Outcome != cluster.Succeeded {
				t.Fatalf("it ended as %s: %s", e.Outcome, e.Detail)
			}
			t.Logf("%d looks in %v", looks, long)
			return
		case <-timeout:
			t.Fatal("it does not end")
		case <-time.After(50 * time.Millisecond):
			// Room to spare it may have.
			if r := b.reading(o.Container); r.State == cluster.ContainerSuspended ||
				strings.HasPrefix(r.Why, "was out of memory") || strings.Contains(r.Why, "plenty left") {
				t.Fatalf("page cache is taken for need: %s", show(r))
			}
		}
	}
}

// TestFlood takes memory faster than the memory manager can react.
func TestFlood(t *testing.T) {
	testswap.Need(t, 256<<20)
	b := newBench(t)
	began := time.Now()
	e := b.run(asFlex(b.order(os.Args[0], "hostile", "flood", "160"), 16*resource.MiB, 256*resource.MiB))
	if e.Outcome != cluster.Succeeded {
		t.Fatalf("it ended as %s: %s", e.Outcome, e.Detail)
	}
	t.Logf("160 MiB from 16 in %v", time.Since(began).Round(time.Millisecond))
}

// TestFullSwap has a container for which there is neither memory nor swap: it alone ends, killed by the kernel, and
// the next one runs.
func TestFullSwap(t *testing.T) {
	testswap.Need(t, 64<<20)
	b := newBench(t)
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		t.Fatal(err)
	}
	free := int64(machine.Freeswap) * int64(machine.Unit)
	if free > 600<<20 {
		t.Skipf("needs a machine whose swap can be filled: %d MiB are free", free>>20)
	}
	mib := (free + 200<<20) >> 20
	e := b.run(asFlex(b.order(os.Args[0], "hostile", "flood", fmt.Sprint(mib)), 16*resource.MiB, 32*resource.MiB))
	if e.Outcome != cluster.OutOfMemory {
		t.Fatalf("it ended as %s: %s", e.Outcome, e.Detail)
	}
	if e := b.run(asFlex(b.order(os.Args[0], "hostile", "flood", "8"), 16*resource.MiB,
		32*resource.MiB)); e.Outcome != cluster.Succeeded {
		t.Fatalf("the next one ended as %s: %s", e.Outcome, e.Detail)
	}
}

// TestFullSwapDisk has a swap file on a disk that is full: its blocks are its own, so that containers swap as ever.
func TestFullSwapDisk(t *testing.T) {
	testswap.Lock(t)
	b := newBench(t)
	dir := t.TempDir()
	image, disk := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if _, err := exec.LookPath("mke2fs"); err != nil || os.Geteuid() != 0 {
		t.Skipf("needs a disk of its own: root and mke2fs: %v", err)
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	must("truncate", "-s", "128M", image)
	must("mke2fs", "-q", "-t", "ext4", image)
	must("mkdir", disk)
	if out, err := exec.Command("mount", "-o", "loop", image, disk).CombinedOutput(); err != nil {
		t.Skipf("needs a disk of its own, and may not mount one: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(disk, "swap")
	must("fallocate", "-l", "64M", file)
	must("chmod", "600", file)
	must("mkswap", "-q", file)
	must("swapon", "-p", "32767", file) // before all others
	t.Cleanup(func() {
		if out, err := exec.Command("swapoff", file).CombinedOutput(); err != nil {
			t.Errorf("swapoff: %v: %s", err, out)
		}
	})
	if err := os.WriteFile(filepath.Join(disk, "ballast"), make([]byte, 128<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	before := swappedOut()
	e := b.run(asFlex(b.order(os.Args[0], "hostile", "flood", "56"), 16*resource.MiB, 24*resource.MiB))
	if e.Outcome != cluster.Succeeded {
		t.Fatalf("it ended as %s: %s", e.Outcome, e.Detail)
	}
	if n := (swappedOut() - before) * int64(os.Getpagesize()); n < 24<<20 {
		t.Errorf("only %d MiB were swapped out", n>>20)
	}
}

// TestNothingGivesWay requests memory of a container that cannot be swapped out at all: the container keeps its memory
// and runs on, and the requester learns that within seconds.
func TestNothingGivesWay(t *testing.T) {
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "gate")
	o := b.order(os.Args[0], "pattern", "80", gate)
	o.Grant[resource.Memory] = 128 * resource.MiB
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.awaitOutput(o, "full\n")
	c := b.container(o.Container)
	began := time.Now()
	_, err := b.keeper.Act(t.Context(), c.kept, memory.Envelope{Container: c.id, Envelope: c.spec.Envelope},
		memory.Action{Kind: memory.Shrink, Limit: 32 * resource.MiB})
	if took := time.Since(began); err == nil || took > 20*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	r, errRead := c.group.Read()
	if errRead != nil {
		t.Fatal(errRead)
	}
	_, frozen := c.group.Frozen()
	if limit := r.MemoryLimitBytes.Or(0); frozen || limit < 79<<20 || limit > 128<<20 {
		t.Errorf("frozen %v, limit %d MiB", frozen, limit>>20)
	}
	b.openGate(gate, 1)
}

// TestThousandForks: a container of a thousand processes is suspended, grown, shrunk and killed like any other. Each
// process waits until a pipe is written to.
func TestThousandForks(t *testing.T) {
	forks := 1000
	if slow() {
		forks = 600 // systemd lets a scope of so small a machine have no more than some 800
	}
	b := newBench(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	o := asFlex(b.order("sh", "-c",
		fmt.Sprintf(`trap "" TERM; i=0; while [ $i -lt %d ]; do : <%s & i=$((i+1)); done; echo ready; wait`, forks, pipe)),
		256*resource.MiB, 512*resource.MiB)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	c := b.container(o.Container)
	// While it forks it is frozen and thawed again and again, but not for ever, since it comes to fork less and less.
	round := 0
	await(t, "all of them", func() bool {
		if round++; round < 50 {
			if err := c.kept.Stop(t.Context(), keeper.ByMemory); err != nil {
				t.Fatal(err)
			}
			if err := c.kept.Release(t.Context(), keeper.ByMemory|keeper.BySwapping); err != nil {
				t.Fatal(err)
			}
		}
		text, _ := os.ReadFile(o.Launch.Stdout)
		return string(text) == "ready\n"
	})
	if err := c.kept.Stop(t.Context(), keeper.ByMemory); err != nil {
		t.Fatal(err)
	}
	_, frozen := c.group.Frozen()
	if r, err := c.group.Read(); err != nil || r.Procs.Or(0) != int64(forks)+1 || !frozen {
		t.Errorf("%d processes, frozen %v: %v", r.Procs.Or(0), frozen, err)
	}
	b.Apply(kill(o.Container)) // It ignores SIGTERM, and is suspended.
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed {
		t.Fatalf("it ended as %s: %s", e.Outcome, e.Detail)
	}
	if pids, err := c.group.Procs(); err == nil {
		t.Errorf("%d processes are left", len(pids))
	}
}

// TestRestartWhileSuspended: the next daemon finds a suspended container and the reason for its suspension gone.
func TestRestartWhileSuspended(t *testing.T) {
	testswap.Need(t, 384<<20)
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "gate")
	b.rival(gate, 48)
	flex := asFlex(b.order(os.Args[0], "pattern", "160", gate), 32*resource.MiB, resource.GiB)
	b.Apply([]cluster.Order{flex})
	b.next(cluster.DecisionDone)
	b.until("160 MiB", flex.Container, func(r cluster.Reading) bool { return *r.Anonymous > 155<<20 })
	regular := b.order("sleep", "1000")
	regular.Grant[resource.Memory] = 956 * resource.MiB
	b.Apply([]cluster.Order{regular})
	b.next(cluster.DecisionDone)
	c := b.container(flex.Container)
	await(t, "a suspension", func() bool {
		_, frozen := c.group.Frozen()
		// A suspension under way is given up when the daemon ends.
		return frozen && b.reading(flex.Container).State == cluster.ContainerSuspended && !c.kept.Busy()
	})
	b.reopen()
	for range 3 {
		b.next(cluster.TaskAdopted)
	}
	if r := b.until("a state", flex.Container, func(r cluster.Reading) bool {
		return r.State != 0
	}); r.State != cluster.ContainerSuspended || *r.Limit > 124<<20 {
		t.Fatalf("after the restart: %s", show(r))
	}
	b.Apply(kill(regular.Container))
	b.next(cluster.TaskEnded)
	b.until("growth", flex.Container, func(r cluster.Reading) bool {
		return r.State == cluster.ContainerRunning && *r.Limit >= 160<<20
	})
	b.openGate(gate, 2)
}
