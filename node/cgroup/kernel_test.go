package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/internal/testswap"
)

// The tests named TestKernel run against the kernel of the machine, whatever versions it has mounted.

const mib = 1 << 20

var rootsMade atomic.Int64

// testContext ends soon enough to distinguish a hang from a slow machine.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// testRoot makes a subtree for one test that has the controllers it needs, or skips.
func testRoot(t *testing.T, need ...Controller) *Root {
	t.Helper()
	host, err := Discover("")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test-%d-%d", os.Getpid(), rootsMade.Add(1))
	root, err := host.Root(name, append(need, Memory)...)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnsupported) || errors.Is(err, unix.EROFS) {
		t.Skipf("needs cgroups of its own: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := root.Remove(ctx); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return root
}

func testGroup(t *testing.T, need ...Controller) *Group {
	t.Helper()
	g, err := testRoot(t, need...).Create("one")
	if err == nil && innerBound > 0 {
		err = g.Enclose(innerBound)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func read(t *testing.T, g *Group) Reading {
	t.Helper()
	r, err := g.Read()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func known[T any](t *testing.T, what string, m Maybe[T]) T {
	t.Helper()
	v, ok := m.Get()
	if !ok {
		t.Fatalf("%s is missing", what)
	}
	return v
}

// noSwap is a bound on memory alone. Where the kernel does not account swap, there is no swap to bound.
func noSwap(g *Group, memory int64) Limits {
	l := Limits{MemoryBytes: At(memory)}
	if g.version[Memory] == V2 || g.State().MemoryAndSwapBytes.ok {
		l.SwapBytes = At(0)
	}
	return l
}

func TestKernelMemoryLimitKills(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t)
	if err := g.Apply(ctx, noSwap(g, 64*mib)); err != nil {
		t.Fatal(err)
	}
	small := start(t, g, fmt.Sprint("hold ", 24*mib)).ready(t)
	r := read(t, g)
	if anon := known(t, "AnonBytes", r.AnonBytes); anon < 24*mib || anon > 64*mib {
		t.Errorf("anonymous memory is %d bytes with 24 MiB held under 64 MiB", anon)
	}
	if usage, anon := known(t, "MemoryBytes", r.MemoryBytes), known(t, "AnonBytes", r.AnonBytes); usage < anon {
		t.Errorf("usage is %d bytes, less than the %d anonymous ones", usage, anon)
	}
	if kills := known(t, "OOMKills", r.OOMKills); kills != 0 {
		t.Errorf("%d kills within the limit", kills)
	}
	if limit := known(t, "MemoryLimitBytes", r.MemoryLimitBytes); limit != 64*mib {
		t.Errorf("limit reads as %d", limit)
	}
	if n := known(t, "Procs", r.Procs); n != 1 {
		t.Errorf("%d processes, want 1", n)
	}
	small.in.Close()
	_ = small.cmd.Wait()

	big := start(t, g, fmt.Sprint("hold ", 128*mib))
	if line, ok := big.line(t); ok {
		t.Fatalf("holding 128 MiB under 64 MiB went on: %q", line)
	}
	big.killed(t)
	r = read(t, g)
	if kills := known(t, "OOMKills", r.OOMKills); kills != 1 {
		t.Errorf("%d kills counted, want 1", kills)
	}
}

func TestKernelMemoryGrowsAndShrinks(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t)
	swap := noSwap(g, 0).SwapBytes
	for _, step := range []struct{ memory, swap int64 }{
		{64 * mib, 0}, {256 * mib, 64 * mib}, {512 * mib, 0}, {32 * mib, 0}, {16 * mib, 128 * mib}, {64 * mib, 16 * mib},
		{NoLimit, NoLimit}, {96 * mib, 8 * mib},
	} {
		l := Limits{MemoryBytes: At(step.memory)}
		if _, ok := swap.Get(); ok {
			l.SwapBytes = At(step.swap)
		}
		if err := g.Apply(ctx, l); err != nil {
			t.Fatalf("to %+v: %v", step, err)
		}
		r := read(t, g)
		if got := known(t, "MemoryLimitBytes", r.MemoryLimitBytes); got != step.memory {
			t.Errorf("after %+v memory is bounded to %d", step, got)
		}
		if got, ok := swapLimit(g).Get(); ok && got != step.swap {
			t.Errorf("after %+v swap is bounded to %d", step, got)
		}
	}
	// The bound on swap stays when only memory changes.
	if err := g.Apply(ctx, Limits{MemoryBytes: At(48 * mib)}); err != nil {
		t.Fatal(err)
	}
	if got, ok := swapLimit(g).Get(); ok && got != 8*mib {
		t.Errorf("swap is bounded to %d after only memory changed, want %d", got, 8*mib)
	}
}

// Above memory.high the kernel takes page cache away and kills no process. Version 1 has no such bound.
func TestKernelHigh(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t)
	high := Limits{HighBytes: At(48 * mib)}
	if g.version[Memory] == V1 {
		if err := g.Apply(ctx, high); !errors.Is(err, ErrUnsupported) {
			t.Errorf("version 1 says %v", err)
		}
		return
	}
	start(t, g, fmt.Sprint("hold ", 16*mib)).ready(t)
	if err := g.Apply(ctx, high); err != nil {
		t.Fatal(err)
	}
	if got := parseBound(slurp(g.dirs[Memory], "memory.high")).Or(0); got != 48*mib {
		t.Errorf("memory.high is %d", got)
	}
	path := filepath.Join(t.TempDir(), "data")
	start(t, g, fmt.Sprint("dirty ", 96*mib, " ", path)).ready(t)
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	if st.Type != unix.TMPFS_MAGIC && st.Type != unix.RAMFS_MAGIC { // whose files cannot be taken away
		waitFor(t, "usage below memory.high", func() bool {
			return known(t, "MemoryBytes", read(t, g).MemoryBytes) <= 50*mib
		})
	}
	if r := read(t, g); r.OOMKills.Or(0) != 0 {
		t.Errorf("%d processes were killed", r.OOMKills.Or(0))
	}
	if err := g.Apply(ctx, Limits{HighBytes: Unlimited()}); err != nil {
		t.Fatal(err)
	}
}

// swapLimit returns the bound on swap alone. Version 1 bounds memory and swap together.
func swapLimit(g *Group) Maybe[int64] {
	if g.version[Memory] == V2 {
		return parseBound(slurp(g.dirs[Memory], "memory.swap.max"))
	}
	s := g.State()
	memory, ok1 := s.MemoryBytes.Get()
	sum, ok2 := s.MemoryAndSwapBytes.Get()
	switch {
	case !ok1 || !ok2:
		return Maybe[int64]{}
	case sum == NoLimit || memory == NoLimit:
		return Known(NoLimit)
	}
	return Known(max(sum-memory, 0))
}

func TestKernelBusyKeepsTheOldLimit(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t)
	if err := g.Apply(ctx, noSwap(g, 256*mib)); err != nil {
		t.Fatal(err)
	}
	c := start(t, g, fmt.Sprint("hold ", 64*mib)).ready(t)
	var err error
	if g.version[Memory] == V1 {
		err = g.Apply(ctx, Limits{MemoryBytes: At(32 * mib)})
	} else {
		err = g.Reclaim(ctx, 48*mib)
	}
	if !errors.Is(err, ErrBusy) {
		t.Errorf("taking away memory that has nowhere to go: %v, want ErrBusy", err)
	}
	r := read(t, g)
	if got := known(t, "MemoryLimitBytes", r.MemoryLimitBytes); got != 256*mib {
		t.Errorf("limit is %d afterwards, want the old one", got)
	}
	if got, ok := swapLimit(g).Get(); ok && got != 0 {
		t.Errorf("swap is bounded to %d afterwards, want the old 0", got)
	}
	if kills := known(t, "OOMKills", r.OOMKills); kills != 0 {
		t.Errorf("%d kills", kills)
	}
	if err := c.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
}

func TestKernelFreezeAndThaw(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t, Freezer, CPUAcct)
	start(t, g, "spin").ready(t)
	waitFor(t, "CPU time to pass", func() bool { return read(t, g).CPUTime.Or(0) > 20*time.Millisecond })
	if err := g.Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	before := read(t, g)
	if _, frozen := g.Frozen(); !frozen {
		t.Error("not frozen after Freeze")
	}
	// A process elsewhere that uses CPU time shows that time has passed.
	began := ownCPU(t)
	for ownCPU(t)-began < 100*time.Millisecond {
	}
	after := read(t, g)
	if a, b := known(t, "CPUTime", before.CPUTime), known(t, "CPUTime", after.CPUTime); b-a > time.Millisecond {
		t.Errorf("used %v of CPU while frozen", b-a)
	}
	if err := g.Thaw(ctx); err != nil {
		t.Fatal(err)
	}
	if requested, frozen := g.Frozen(); requested || frozen {
		t.Error("frozen after Thaw")
	}
	waitFor(t, "CPU time to pass again", func() bool {
		return read(t, g).CPUTime.Or(0) > after.CPUTime.Or(0)+20*time.Millisecond
	})
}

// A thread that executes a program waits for the end of the other threads, and frozen threads do not end: a process
// can be frozen in that moment, too.
func TestKernelFreezeWhileExecuting(t *testing.T) {
	g := testGroup(t, Freezer)
	start(t, g, "execute")
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := g.Freeze(ctx)
		if err == nil {
			err = g.Thaw(ctx)
		}
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestKernelRemoveKillsFrozen(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t, Freezer)
	c := start(t, g, "idle").ready(t)
	if err := g.Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	c.killed(t)
	if _, err := g.Read(); !errors.Is(err, ErrGone) {
		t.Errorf("reading a removed group: %v, want ErrGone", err)
	}
	if err := g.Remove(ctx); err != nil {
		t.Errorf("removing it again: %v", err)
	}
}

func TestKernelRemoveKillsFamily(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t)
	c := start(t, g, "family 5").ready(t)
	pids, err := g.Procs()
	if err != nil || len(pids) != 6 {
		t.Fatalf("%d processes (%v), want 6", len(pids), err)
	}
	// Groups that the program made inside the group go, too.
	for _, dir := range g.homes() {
		if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	c.killed(t)
	for _, pid := range pids {
		waitFor(t, fmt.Sprintf("process %d to be gone", pid), func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
	for _, dir := range g.each() {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", dir, err)
		}
	}
}

func TestKernelKillDoesNotWaitForCPU(t *testing.T) {
	g := testGroup(t, CPU)
	c := start(t, g, "family 20").ready(t)
	if err := g.Apply(testContext(t), Limits{CPUMillicores: At(1)}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := g.Kill(testContext(t)); err != nil {
		t.Fatal(err)
	}
	c.killed(t)
	// Under the quota it takes 5 to 9 s, without it some milliseconds.
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("killing a group with a thousandth of a core took %v", took)
	}
}

func TestKernelKillLeavesTheGroup(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t)
	c := start(t, g, "idle").ready(t)
	if err := g.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	c.killed(t)
	if n := known(t, "Procs", read(t, g).Procs); n != 0 {
		t.Errorf("%d processes left", n)
	}
}

// A process that is killed while it makes a group leaves a part of the group, which the next process completes.
func TestKernelHalfAGroup(t *testing.T) {
	root := testRoot(t)
	g, err := root.Create("half")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.each() {
		if err := unix.Rmdir(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := root.Open("half"); !errors.Is(err, ErrGone) {
			t.Errorf("opened without %s: %v, want ErrGone", dir, err)
		}
		if _, err := root.Create("half"); err != nil {
			t.Fatalf("made again without %s: %v", dir, err)
		}
		if _, err := root.Create("half"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("made a whole one again: %v, want ErrExist", err)
		}
	}
	c := start(t, g, fmt.Sprint("hold ", mib)).ready(t)
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestKernelIdentity(t *testing.T) {
	ctx := testContext(t)
	root := testRoot(t)
	first, err := root.Create("same")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Create("same"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("making it twice: %v, want ErrExist", err)
	}
	again, err := root.Open("same")
	if err != nil || again.Identity() != first.Identity() {
		t.Fatalf("opened again it is %v (%v), want %v", again.Identity(), err, first.Identity())
	}
	if err := first.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Open("same"); !errors.Is(err, ErrGone) {
		t.Errorf("opening what is gone: %v, want ErrGone", err)
	}
	second, err := root.Create("same")
	if err != nil {
		t.Fatal(err)
	}
	if second.Identity() == first.Identity() {
		t.Errorf("two groups have the identity %v", second.Identity())
	}
	c := start(t, second, "idle").ready(t)
	if _, err := first.Read(); !errors.Is(err, ErrGone) {
		t.Errorf("reading the first group: %v, want ErrGone", err)
	}
	if err := first.Remove(ctx); err != nil {
		t.Errorf("removing the first group again: %v", err)
	}
	if err := c.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("that killed a process of the second one: %v", err)
	}
	if names, err := root.List(); err != nil || len(names) != 1 || names[0] != "same" {
		t.Errorf("list is %v (%v), want [same]", names, err)
	}
}

func TestKernelRootIsFoundAgain(t *testing.T) {
	root := testRoot(t)
	g, err := root.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	host, err := Discover("")
	if err != nil {
		t.Fatal(err)
	}
	again, err := host.OpenRoot(root.Place(), Memory)
	if err != nil {
		t.Fatal(err)
	}
	same, err := again.Open("one")
	if err != nil || same.Identity() != g.Identity() {
		t.Errorf("found %v (%v), want %v", same, err, g.Identity())
	}
	if _, err := host.OpenRoot(root.Place()+"-not", Memory); !errors.Is(err, ErrGone) {
		t.Errorf("opening a root that is not there: %v, want ErrGone", err)
	}
}

func TestKernelCPUQuota(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t, CPU, CPUAcct)
	start(t, g, "spin").ready(t)
	start(t, g, "spin").ready(t)
	for _, millicores := range []int64{200, 50, 200} {
		if err := g.Apply(ctx, Limits{CPUMillicores: At(millicores), CPUWeight: At(200)}); err != nil {
			t.Fatalf("%d millicores: %v", millicores, err)
		}
	}
	from, began := read(t, g).CPUTime.Or(0), time.Now()
	const enough = 300 * time.Millisecond
	waitFor(t, "CPU time to pass", func() bool { return read(t, g).CPUTime.Or(0)-from >= enough })
	used, wall := read(t, g).CPUTime.Or(0)-from, time.Since(began)
	// Without a quota it is at least the wall time. The bound is not a fifth of that: a group can use each period's
	// quota at once, and a guest counts time that its host spends on other work as used.
	if most := wall/2 + 60*time.Millisecond; used > most {
		t.Errorf("used %v of CPU in %v at 200 millicores, want at most %v", used, wall, most)
	}
	stat, _ := g.File(CPU, "cpu.stat")
	if parseKeyed(slurp(filepath.Split(stat)))["nr_throttled"] == 0 {
		t.Error("two spinning processes were never throttled")
	}
	if err := g.Apply(ctx, Limits{CPUMillicores: Unlimited()}); err != nil {
		t.Fatal(err)
	}
}

// A group is asleep while its programs wait for what comes from elsewhere, and not while one of them wants a CPU, also
// if it gets none, or if its threads take turns.
func TestKernelAsleep(t *testing.T) {
	g := testGroup(t, CPU)
	if g.Asleep() {
		t.Error("an empty group is asleep")
	}
	start(t, g, "threads 20").ready(t)
	waitFor(t, "the group to sleep", g.Asleep)
	for _, work := range []string{"spin", "relay 3"} {
		c := start(t, g, work).ready(t)
		for _, millicores := range []int64{1000, 1} {
			if err := g.Apply(testContext(t), Limits{CPUMillicores: At(millicores)}); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if g.Asleep() {
					t.Errorf("%s, with %d millicores: the group sleeps, and its program never does", work, millicores)
				}
			}
		}
		if err := g.Apply(testContext(t), Limits{CPUMillicores: Unlimited()}); err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.killed(t)
		waitFor(t, "the group to sleep again", g.Asleep)
	}
}

// Version 2 lists threads in another file, also those of groups below.
func TestAsleepV2(t *testing.T) {
	program := exec.Command("sleep", "1000")
	if err := program.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	}()
	const dir = "sys/fs/cgroup/bellows-main/one/"
	thread := fmt.Sprintln(program.Process.Pid)
	none := v2Machine().with(files{dir + "cgroup.threads": "", dir + "tasks": thread})
	uncounted := none.with(files{dir + "below/cgroup.threads": thread})
	below := fakeGroup(t, uncounted.with(files{dir + "cpu.stat": "usage_usec 7\n"}))
	waitFor(t, "the program below the group to sleep", below.Asleep)
	if fakeGroup(t, uncounted).Asleep() {
		t.Error("a group sleeps whose CPU time is not known")
	}
	if fakeGroup(t, none).Asleep() {
		t.Error("a group of version 2 has threads in a file of version 1")
	}
}

func TestStateOf(t *testing.T) {
	for text, want := range map[string]string{"7 (sh) S 1 7": "S", "7 (a) R (b)) D 1 7": "D", "7 (sh)": "", "": ""} {
		if got := stateOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestKernelPIDsMax(t *testing.T) {
	g := testGroup(t, PIDs)
	if err := g.Apply(testContext(t), Limits{PIDsMax: At(40)}); err != nil {
		t.Fatal(err)
	}
	start(t, g, "threads 5").ready(t).cmd.Process.Kill()
	waitFor(t, "the process to be gone", func() bool { return read(t, g).Procs.Or(1) == 0 })
	if refused := known(t, "Refused", read(t, g).Refused); refused != 0 {
		t.Errorf("%d refused below the bound", refused)
	}
	// The Go runtime gives up when it gets no thread.
	c := start(t, g, "threads 100")
	if err := c.cmd.Wait(); err == nil {
		t.Error("100 threads under a bound of 40")
	}
	if refused := known(t, "Refused", read(t, g).Refused); refused == 0 {
		t.Error("none is counted as refused")
	}
}

func TestKernelIO(t *testing.T) {
	g := testGroup(t, IO)
	path, device := scratch(t)
	if err := g.AccountIO(device); err != nil {
		t.Fatal(err)
	}
	start(t, g, fmt.Sprint("write ", 8*mib, " ", path)).ready(t)
	if written := known(t, "WrittenBytes", read(t, g).WrittenBytes); written < 8*mib || written > 10*mib {
		t.Errorf("%d bytes counted, want about %d", written, 8*mib)
	}
}

// A bound on the disk holds for direct writes in both versions.
func TestKernelDiskLimit(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t, IO)
	path, device := scratch(t)
	const size, rate = 8 * mib, 4 * mib
	if err := g.Apply(ctx, Limits{Disk: DiskLimit{device, At(rate)}}); err != nil {
		t.Skipf("needs a device that can be bounded: %v", err)
	}
	begun := time.Now()
	start(t, g, fmt.Sprint("write ", size, " ", path)).ready(t)
	if took := time.Since(begun); took < size/rate*time.Second*3/4 {
		t.Errorf("%d bytes are written in %v, with a bound of %d bytes per second", size, took, rate)
	}
	if err := g.Apply(ctx, Limits{Disk: DiskLimit{device, Unlimited()}}); err != nil {
		t.Fatal(err)
	}
	begun = time.Now()
	start(t, g, fmt.Sprint("write ", size, " ", path)).ready(t)
	if took := time.Since(begun); took > size/rate*time.Second/2 {
		t.Logf("without a bound it takes %v", took)
	}
}

// A buffered write is seen while it is in the page cache.
func TestKernelTally(t *testing.T) {
	g := testGroup(t)
	path, _ := scratch(t)
	start(t, g, "idle 0").ready(t)
	tally := testTally(t, g)
	const size = 8 * mib
	before := int64(0)
	for _, how := range []string{"dirty ", "write "} {
		start(t, g, fmt.Sprint(how, size, " ", path)).ready(t)
		has, err := tally.Read()
		n := has.Written - before
		if err != nil || n < size || n > size+2*mib {
			t.Errorf("%s: %d bytes are counted (%v), want about %d", how, n, err, size)
		}
		before += n
	}
}

func testTally(t *testing.T, g *Group) *Tally {
	t.Helper()
	tally, err := g.Tally()
	if err != nil {
		t.Skipf("needs to see what processes transfer: %v", err)
	}
	return tally
}

// What children transfer counts once, whether or not a reading sees them before they end, while no parent has waited
// for them, and after that. What they cancel counts apart.
func TestKernelTallyOfChildren(t *testing.T) {
	g := testGroup(t)
	path, _ := scratch(t)
	tally := testTally(t, g)
	if f, err := os.Open(path); err == nil { // What is dirty already does not count again.
		_ = f.Sync()
		f.Close()
	}
	kept := testTally(t, g) // does the same with files that stay open
	kept.KeepOpen()
	defer kept.Close()
	const size = 2 * mib
	read := func(when string, want int64) (has Transfers) {
		t.Helper()
		has, err := tally.Read()
		if also, err := kept.Read(); err != nil || also.Written != has.Written {
			t.Errorf("%s: with open files %+v (%v), without %+v", when, also, err, has)
		}
		if err != nil || has.Written < want || has.Written > want+mib {
			t.Errorf("%s: %+v (%v), want about %d bytes written", when, has, err, want)
		}
		return has
	}
	p := start(t, g, fmt.Sprint("children ", size, " ", path))
	p.ready(t)
	read("two have ended between readings", 2*size)
	p.next(t)
	read("one lives", 3*size)
	p.next(t)
	read("nobody has waited for it", 3*size)
	p.next(t)
	read("it was waited for", 3*size)
	p.next(t)
	read("nobody will wait for one", 4*size)
	p.next(t)
	before := read("it has gone", 4*size)
	p.next(t)
	after := read("the file is cut", 5*size)
	if n := after.Cancelled - before.Cancelled; os.Getenv("BELLOWS_SCRATCH_DEVICE") == "" && n < size {
		t.Errorf("%d bytes were cancelled, want at least %d", n, size)
	}
	if open := len(kept.last) + kept.spare; kept.list == 0 || open != filesKept {
		t.Errorf("of %d files, %d are to spare, with %d processes", filesKept, kept.spare, len(kept.last))
	}
	again := testTally(t, g)
	if has, err := again.Read(); err != nil || has.Written < 4*size || has.Written >= 5*size {
		t.Errorf("another tally has %+v (%v): what no parent has told of is missing", has, err)
	}
}

// scratch returns a file or device to write to past the page cache, and the block device it is on.
func scratch(t *testing.T) (path, device string) {
	t.Helper()
	if path = os.Getenv("BELLOWS_SCRATCH_DEVICE"); path != "" {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		return path, fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	}
	path = filepath.Join(t.TempDir(), "scratch")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|unix.O_DIRECT, 0o600)
	if err != nil {
		t.Skipf("needs a directory for temporary files that can be written past the page cache: %v", err)
	}
	f.Close()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	major, minor := unix.Major(st.Dev), unix.Minor(st.Dev)
	if major == 0 {
		t.Skip("needs a directory for temporary files on a block device")
	}
	// Bounds are on whole disks.
	sys := fmt.Sprintf("/sys/dev/block/%d:%d", major, minor)
	if _, err := os.Stat(sys + "/partition"); err == nil {
		disk, err := os.ReadFile(sys + "/../dev")
		if err != nil {
			t.Fatal(err)
		}
		return path, strings.TrimSpace(string(disk))
	}
	return path, fmt.Sprintf("%d:%d", major, minor)
}

func TestKernelSwapAndReclaim(t *testing.T) {
	testswap.Need(t, 512*mib) // before the context: waiting for other tests is not the test's time
	ctx := testContext(t)
	g := testGroup(t)
	if err := g.Apply(ctx, Limits{MemoryBytes: At(192 * mib), SwapBytes: At(256 * mib)}); err != nil {
		t.Fatal(err)
	}
	start(t, g, fmt.Sprint("hold ", 96*mib)).ready(t)
	if g.version[Memory] == V2 {
		before := known(t, "MemoryBytes", read(t, g).MemoryBytes)
		if err := g.Reclaim(ctx, 64*mib); err != nil {
			t.Fatal(err)
		}
		r := read(t, g)
		if taken := before - known(t, "MemoryBytes", r.MemoryBytes); taken < 62*mib || taken > 84*mib {
			t.Errorf("%d bytes were taken away, want about %d", taken, 64*mib)
		}
		if swapped := known(t, "SwapBytes", r.SwapBytes); swapped < 56*mib {
			t.Errorf("only %d bytes are in swap after 64 MiB were reclaimed", swapped)
		}
		hurried, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := g.Reclaim(hurried, 4096*mib); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrBusy) {
			t.Errorf("reclaiming 4 GiB in 2 ms: %v", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("gave up after %v instead of 2 ms", took)
		}
	}
	if err := g.Apply(ctx, Limits{MemoryBytes: At(48 * mib)}); err != nil {
		t.Fatal(err)
	}
	r := read(t, g)
	if usage := known(t, "MemoryBytes", r.MemoryBytes); usage > 48*mib {
		t.Errorf("usage is %d under 48 MiB", usage)
	}
	if swapped := known(t, "SwapBytes", r.SwapBytes); swapped < 40*mib {
		t.Errorf("only %d bytes are in swap with 96 MiB held in 48 MiB", swapped)
	}
	if kills := known(t, "OOMKills", r.OOMKills); kills != 0 {
		t.Errorf("%d kills with swap to spare", kills)
	}
	big := start(t, g, fmt.Sprint("hold ", 64*mib)).ready(t)
	if usage := known(t, "MemoryBytes", read(t, g).MemoryBytes); usage > 48*mib {
		t.Errorf("usage is %d under 48 MiB", usage)
	}
	if err := big.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
}

// A program that is started again, in another scope, continues with its groups, and lives in the scope of these.
func TestKernelOpenRootFromAnotherScope(t *testing.T) {
	if _, err := exec.LookPath("systemd-run"); err != nil || os.Getenv("XDG_RUNTIME_DIR") == "" || os.Geteuid() == 0 {
		t.Skip("needs to be run as an ordinary user of systemd")
	}
	root := testRoot(t)
	g, err := root.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	first := start(t, g, "idle").ready(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("systemd-run", "--user", "--quiet", "--scope", "-p", "Delegate=yes", binary)
	cmd.Env = append(os.Environ(), childWork+"=adopt "+root.Place())
	other := launch(t, cmd)
	if line, _ := other.line(t); line != "2 0::"+path.Join(path.Dir(root.Place()), leaf) {
		t.Fatalf("another scope sees %q, want 2 processes, and itself in the leaf beside %s", line, root.Place())
	}
	other.ready(t)
	if n := known(t, "Procs", read(t, g).Procs); n != 2 {
		t.Errorf("%d processes, want the first one and the one started from another scope", n)
	}
	other.in.Close()
	_ = other.cmd.Wait()
	if err := first.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the first process is gone: %v", err)
	}
}

func TestKernelRefusesStrangers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become a user that nothing was delegated to")
	}
	// The binary may be in a directory that only root can enter; an open descriptor can still be executed.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{childWork + "=root"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	line, _ := launch(t, cmd).line(t)
	if !strings.Contains(line, "root") || !strings.Contains(line, "run it as") {
		t.Errorf("error is %q, want it to say how to get permission", line)
	}
	t.Log(line)
}

func ownCPU(t *testing.T) time.Duration {
	t.Helper()
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// waitFor waits for an effect that the kernel sends no notice of.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx := testContext(t)
	for pause := newPause(time.Millisecond, 20*time.Millisecond); !is(); {
		if err := pause.wait(ctx); err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}
