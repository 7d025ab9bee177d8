package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testswap"
)

// innerBound is the bound of the inner group of each group that testGroup makes; 0 is none.
var innerBound int64

// What groups are tested for holds for groups with inner ones, too.
func TestKernelInner(t *testing.T) {
	innerBound = 256 * mib
	defer func() { innerBound = 0 }()
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"memory limit kills", TestKernelMemoryLimitKills},
		{"memory grows and shrinks", TestKernelMemoryGrowsAndShrinks},
		{"high", TestKernelHigh},
		{"busy", TestKernelBusyKeepsTheOldLimit},
		{"freeze and thaw", TestKernelFreezeAndThaw},
		{"remove kills frozen", TestKernelRemoveKillsFrozen},
		{"remove kills family", TestKernelRemoveKillsFamily},
		{"kill leaves the group", TestKernelKillLeavesTheGroup},
		{"CPU quota", TestKernelCPUQuota},
		{"asleep", TestKernelAsleep},
		{"PIDs", TestKernelPIDsMax},
		{"tally", TestKernelTally},
		{"tally of children", TestKernelTallyOfChildren},
		{"swap and reclaim", TestKernelSwapAndReclaim},
		{"notice", TestKernelNotice},
		{"near", TestKernelNear},
		{"page out", TestKernelPageOutAndPrefetch},
		{"held at once", TestKernelHeldAtOnce},
		{"gauge", TestKernelGauge},
		{"gauge reading", TestKernelGaugeReading},
		{"gauge of shared memory", TestKernelGaugeSharedMemory},
	} {
		t.Run(test.name, test.run)
	}
}

// What the programs of a group hold is known at once when it changes.
func TestKernelHeldAtOnce(t *testing.T) {
	testswap.Need(t, 512*mib)
	ctx := t.Context() // it takes a guest long
	g := testGroup(t, Freezer)
	gauge, err := g.Gauge()
	if err != nil {
		t.Fatal(err)
	}
	defer gauge.Close()
	for range 4 {
		if err := g.Apply(ctx, Limits{MemoryBytes: At(128 * mib)}); err != nil {
			t.Fatal(err)
		}
		c := start(t, g, fmt.Sprint("hold ", 96*mib)).ready(t)
		if err := g.Freeze(ctx); err != nil {
			t.Fatal(err)
		}
		_, err := g.PageOut(ctx, func(int64) bool {
			held, err := gauge.Read()
			return err == nil && held.InMemory() > 24*mib
		})
		if os.Getuid() != 0 && errors.Is(err, ErrUnsupported) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Apply(ctx, Limits{MemoryBytes: At(48 * mib)}); err != nil {
			t.Fatal(err)
		}
		held, err1 := gauge.Read()
		charged, err2 := gauge.Charged()
		if err1 != nil || err2 != nil || held.InMemory() > charged.Bytes+4*mib {
			t.Errorf("it holds %d MiB, of %d (%v, %v)", held.InMemory()/mib, charged.Bytes/mib, err1, err2)
		}
		if err := g.Thaw(ctx); err != nil {
			t.Fatal(err)
		}
		c.in.Close()
		_ = c.cmd.Wait()
	}
}

// A program reads the inner bound, however little the group has, and the quota of the group. It reads a larger one once
// the group has more, and no smaller one.
func TestKernelProgramsReadTheInnerBound(t *testing.T) {
	ctx := testContext(t)
	root := testRoot(t)
	g, err := root.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Enclose(600 * mib); err != nil {
		t.Fatal(err)
	}
	quota := "-"
	if _, ok := g.Has(CPU); ok {
		quota = "1500"
		if err := g.Apply(ctx, Limits{CPUMillicores: At(1500), CPUWeight: At(300)}); err != nil {
			t.Fatal(err)
		}
	}
	reads := func(want int64) {
		t.Helper()
		if line, _ := start(t, g, "bounds").line(t); line != fmt.Sprint(want/mib, " ", quota) {
			t.Errorf("in a group with %d MiB a program reads %q, want %d MiB and a quota of %s", g.MemoryLimit().Or(0)/mib, line,
				want/mib, quota)
		}
	}
	if err := g.Apply(ctx, noSwap(g, 64*mib)); err != nil {
		t.Fatal(err)
	}
	reads(600 * mib)
	if _, err := g.RaiseMemory(96 * mib); err != nil {
		t.Fatal(err)
	}
	reads(600 * mib)
	found, err := root.Open("one")
	if err != nil || found.Identity() != g.Identity() || !slices.Equal(found.JoinFiles(), g.JoinFiles()) {
		t.Fatalf("found again it is %+v (%v), want %+v", found, err, g)
	}
	if _, err := found.RaiseMemory(640 * mib); err != nil {
		t.Fatal(err)
	}
	reads(640 * mib)
	if err := g.Apply(ctx, Limits{MemoryBytes: At(700 * mib)}); err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(ctx, Limits{MemoryBytes: At(64 * mib)}); err != nil {
		t.Fatal(err)
	}
	reads(700 * mib)
	if limit := g.MemoryLimit().Or(0); limit != 64*mib {
		t.Errorf("the group has %d MiB", limit/mib)
	}
}

// printBounds prints the bounds of the group of this process alone: memory in MiB, and CPU in millicores, "-" if there
// is no controller of the CPU.
func printBounds() error {
	host, err := Discover("")
	if err != nil {
		return err
	}
	quota := "-"
	if own, ok := host.Serves(CPU); ok {
		words := readWords(filepath.Join(own.Own, "cpu.max"))
		if own.Version == V1 {
			words = []string{slurp(own.Own, "cpu.cfs_quota_us"), slurp(own.Own, "cpu.cfs_period_us")}
		}
		if len(words) != 2 {
			return fmt.Errorf("a quota of %q", words)
		}
		quota = fmt.Sprint(parseBound(words[0]).Or(0) * 1000 / parseCount(words[1]).Or(1))
	}
	fmt.Println(host.ownMemory().MemoryLimit().Or(0)/mib, quota)
	return nil
}

// moveBelow moves this process into a group that it makes below its own, in the hierarchy of the memory.
func moveBelow() error {
	host, err := Discover("")
	if err != nil {
		return err
	}
	own, _ := host.Serves(Memory)
	dir := filepath.Join(own.Own, "below")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "cgroup.procs"), "0")
}

// A program can make groups below its own. They go with the group.
func TestKernelGroupsBelowTheInnerOne(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t)
	if err := g.Enclose(256 * mib); err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(ctx, noSwap(g, 128*mib)); err != nil {
		t.Fatal(err)
	}
	c := start(t, g, fmt.Sprint("below ", 32*mib)).ready(t)
	if anon := known(t, "AnonBytes", read(t, g).AnonBytes); anon < 32*mib {
		t.Errorf("%d bytes are anonymous, with 32 MiB held below", anon)
	}
	if err := g.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	c.killed(t)
	if _, err := os.Stat(g.dir()); err == nil {
		t.Error("the group is still there")
	}
}

// Where there can be no inner group, the group stays as it is.
func TestEncloseFails(t *testing.T) {
	const v2 = "sys/fs/cgroup/bellows-main/one/"
	for name, c := range map[string]struct {
		machine files
		says    string
	}{
		"controllers cannot be turned on": {v2Machine().with(files{v2 + "cgroup.controllers": "cpu memory\n"}),
			"cgroup.subtree_control: no such file"},
		"the bound cannot be set": {v2Machine().with(files{v2 + "cgroup.controllers": "cpu memory\n",
			v2 + "cgroup.subtree_control": ""}), "memory.max: no such file"},
		"version 1": {v1Machine(), "memory.limit_in_bytes: no such file"},
	} {
		g := fakeGroup(t, c.machine)
		joins := g.JoinFiles()
		err := g.Enclose(mib)
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(g.JoinFiles(), joins) || isDir(filepath.Join(g.dirs[Memory], innerName)) {
			t.Errorf("%s: it left an inner group", name)
		}
		if on := slurp(g.dirs[Memory], "cgroup.subtree_control"); on != "" && on != "-cpu -memory" {
			t.Errorf("%s: it left %q", name, on)
		}
	}
	both := v1Machine()
	both["proc/self/mountinfo"] = strings.NewReplacer("cpu,cpuacct", "memory", "rw,memory\n", "rw,cpu,memory\n").Replace(
		both["proc/self/mountinfo"])
	if err := fakeGroup(t, both).Enclose(mib); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a hierarchy of several controllers of version 1: %v", err)
	}
}
