package agent

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// pinned executes a program that may use only one core.
func pinned(core string, args []string) {
	runtime.LockOSThread()
	var only unix.CPUSet
	n, err := strconv.Atoi(core)
	if only.Set(n); err == nil {
		err = unix.SchedSetaffinity(0, &only)
	}
	var path string
	if err == nil {
		path, err = exec.LookPath(args[0])
	}
	if err == nil {
		err = unix.Exec(path, args, os.Environ())
	}
	fmt.Println(err)
	os.Exit(1)
}

// A container that goes on beside one that borrowed its cores shares them with it by the grants: of one core, a
// container of one core gets two thirds, and one of half a core a third.
func TestSharesOfAnOverdrawnNode(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !allowed.IsSet(core) {
		core++
	}
	b := newBench(t)
	computes := func(grant resource.Amount) cluster.Order {
		o := b.order(os.Args[0], "pinned", fmt.Sprint(core), "sh", "-c", "while :; do :; done")
		o.Grant = resource.Of(grant, 64*resource.MiB)
		b.Apply([]cluster.Order{o})
		b.next(cluster.DecisionDone)
		return o
	}
	hold := func(o cluster.Order, kind cluster.DecisionKind, by cluster.Holders) {
		b.Apply([]cluster.Order{{Decision: cluster.Decision{ID: 8, Kind: kind, Task: o.Task, By: by},
			Container: o.Container}})
	}
	used := func(o cluster.Order) time.Duration {
		if r := b.Readings()[o.Container]; r.CPUTime != nil {
			return time.Duration(*r.CPUTime)
		}
		return 0
	}

	whole := computes(1000)
	for _, kind := range []cgroup.Controller{cgroup.CPU, cgroup.Freezer} {
		if _, ok := b.container(whole.Container).group.Has(kind); !ok {
			t.Skipf("needs the controller %s", kind)
		}
	}
	await(t, "the first computes", func() bool { return used(whole) > 0 })
	hold(whole, cluster.Suspend, cluster.HeldByOwner)
	b.next(cluster.TaskSuspended)
	half := computes(500)
	await(t, "the second computes", func() bool { return used(half) > 0 })
	hold(whole, cluster.Resume, 0)
	b.next(cluster.TaskResumed)

	first, second := used(whole), used(half)
	await(t, "both have computed", func() bool { return used(whole)-first+used(half)-second > time.Second })
	ratio := float64(used(whole)-first) / float64(used(half)-second)
	if t.Logf("the shares are as %.2f to 1", ratio); ratio < 1.5 || ratio > 3 {
		t.Error("want 2 to 1")
	}
}

// A container whose grant is a weight uses the cores that others leave: more than twice its grant of a tenth of a core.
func TestLeftCoresAreUsed(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "while :; do :; done")
	o.Grant[resource.CPU], o.Envelope.MostCPU = 100, 1000
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	if _, ok := b.container(o.Container).group.Has(cgroup.CPU); !ok {
		t.Skip("needs a controller of the CPU")
	}
	begun, before := time.Now(), time.Duration(0)
	await(t, "it uses more than it is granted", func() bool {
		r := b.Readings()[o.Container]
		if time.Since(begun) < time.Second || r.CPUTime == nil {
			return false
		}
		used, lasted := time.Duration(*r.CPUTime)-before, time.Since(begun)
		begun, before = time.Now(), time.Duration(*r.CPUTime)
		t.Logf("it used %v in %v", used, lasted)
		return used > lasted/5
	})
}
