package agent

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Memory that swap cannot take, because programs locked it or swap is full, and memory that needs none: mapped files.

var mapRounds = flag.String("rounds", "20", "how often TestMappedFile writes to as many pages as its file has")

// tight is a program of this file.
func tight(args []string) {
	var mib int
	fmt.Sscan(args[1], &mib)
	switch args[0] {
	case "lock": // takes and locks memory piece by piece
		block := testswap.Memory[byte](mib << 20)
		for i := 0; i < len(block); i += 1 << 20 {
			if err := unix.Mlock(block[i : i+1<<20]); err != nil {
				fmt.Println(err)
				os.Exit(8)
			}
			time.Sleep(40 * time.Millisecond)
		}
		fmt.Println("locked")
		awaitFile(args[2])
	case "fill": // at a pace at which the kernel's notice comes in time
		block := testswap.Memory[uint64](mib << 20)
		for i := 0; i < len(block); i += pageWords {
			block[i] = uint64(i) * 2654435761
			if i%(1<<17) == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		filled(block).check()
		fmt.Println("full")
		awaitFile(args[2])
		filled(block).check()
	case "map": // writes at random into a mapped file, again and again
		f := must(os.OpenFile(args[2], os.O_RDWR|os.O_CREATE, 0o600))
		if err := f.Truncate(int64(mib) << 20); err != nil {
			os.Exit(8)
		}
		block := must(unix.Mmap(int(f.Fd()), 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
		var rounds int
		fmt.Sscan(args[3], &rounds)
		r, began := rand.New(rand.NewPCG(1, 2)), time.Now()
		for range rounds {
			for range len(block) >> 12 {
				page := block[r.IntN(len(block)>>12)<<12:]
				for k := range 64 { // some work
					page[k*61]++
				}
			}
		}
		fmt.Println(time.Since(began).Seconds())
	}
	os.Exit(0)
}

// tightOrder starts one that begins with 32 MiB.
func (b *bench) tightOrder(kind string, mib int, more ...string) cluster.Order {
	o := asFlex(b.order(append([]string{os.Args[0], "tight", kind, fmt.Sprint(mib)}, more...)...), 32*resource.MiB,
		256*resource.MiB)
	o.Grant[resource.CPU] = 500
	return o
}

// smallBench is a node with the given memory.
func smallBench(t *testing.T, memory resource.Amount) *bench {
	b := &bench{t: t, dir: t.TempDir(), memory: memory}
	b.open()
	t.Cleanup(b.cleanUp)
	return b
}

// TestLockedMemory: a program that locks its memory is suspended before the kernel would kill it, with that reason, and
// runs on when there is memory. It need not yield memory that cannot be taken. The node is so large that what else
// the program holds, 18 MiB with the race detector, is less than a tenth of what it may hold.
func TestLockedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: others may lock only little")
	}
	testswap.Need(t, 512<<20)
	half := resource.Amount(256 * resource.MiB)
	if slow() {
		half /= 2 // a guest has little memory, and no race detector
	}
	b := smallBench(t, 2*half)
	locked := half * 45 / 32 // 360 or 180 MiB
	gate := filepath.Join(b.dir, "gate")
	other := b.order("sleep", "1000")
	other.Grant[resource.Memory] = half
	b.Apply([]cluster.Order{other})
	b.next(cluster.DecisionDone)
	locks := b.tightOrder("lock", int(locked/resource.MiB), gate)
	locks.Envelope.Max = 2 * half
	b.Apply([]cluster.Order{locks})
	b.next(cluster.DecisionDone)
	var killed string
	await(t, "a suspension that says why", func() bool {
		r := b.reading(locks.Container)
		select {
		case e := <-b.Events():
			b.seen = append(b.seen, e)
			if e.Kind != cluster.TaskEnded {
				break
			}
			// An emulated machine is so slow that the program was not even read once since it began to lock.
			if killed = e.Detail; e.Outcome != cluster.OutOfMemory || !slow() && !strings.Contains(e.Detail, "had locked") {
				t.Errorf("it ended as %s: %s", e.Outcome, e.Detail)
			}
			return true
		default:
		}
		return r.State == cluster.ContainerSuspended && strings.Contains(r.Why, "locked")
	})
	if killed != "" {
		t.Logf("the kernel's notice came too late on this machine: %s", killed)
		return
	}
	b.Apply(kill(other.Container))
	if e := b.next(cluster.TaskEnded); e.Task != other.Container.Task {
		t.Fatalf("%s ended as %s: %s", e.Task, e.Outcome, e.Detail)
	}
	b.awaitOutput(locks, "locked\n")
	c := b.container(locks.Container)
	before := c.group.MemoryLimit().Or(0)
	waits := b.order("true")
	waits.Grant[resource.Memory] = half
	b.Apply([]cluster.Order{waits})
	b.awaitState(waits.Container, cluster.ContainerWaiting)
	if r := b.reading(locks.Container); r.State != cluster.ContainerRunning ||
		c.group.MemoryLimit().Or(0) < int64(locked) || before == cgroup.NoLimit {
		t.Errorf("asked for what it has locked: %s", show(r))
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.ends(2)
}

// awaitState waits until a container is said to be in a state.
func (b *bench) awaitState(id cluster.ContainerID, state cluster.ContainerState) {
	b.t.Helper()
	await(b.t, state.String(), func() bool { return b.reading(id).State == state })
}

// needLittleSwap skips the test on a machine with more free swap, bytes, than a program of it can fill.
func needLittleSwap(t *testing.T, most int64) {
	t.Helper()
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		t.Fatal(err)
	}
	if free := int64(machine.Freeswap) * int64(machine.Unit); free > most {
		t.Skipf("needs a machine whose swap can be filled: %d MiB are free", free>>20)
	}
}

// TestSwapRunsFull: four programs want more than memory and swap together, and all but the first may run again: others
// would wait for each other. A program that the kernel would kill is suspended before, with the reason that swap is
// full; the last yields to the first, and runs again. On a machine where the kernel's notice comes late, one may be
// killed; that, too, has its reason.
func TestSwapRunsFull(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	testswap.Need(t, 160<<20)
	needLittleSwap(t, 200<<20)
	b := smallBench(t, 256*resource.MiB)
	gate := filepath.Join(b.dir, "gate")
	var orders []cluster.Order
	for range 4 {
		orders = append(orders, b.tightOrder("fill", 130, gate))
		orders[len(orders)-1].Envelope.Requeue = len(orders) > 1
		b.Apply(orders[len(orders)-1:])
		b.next(cluster.DecisionDone)
	}
	cause := func(e *cluster.Event) bool {
		return e.Outcome == cluster.OutOfMemory && strings.Contains(e.Detail, "nothing could go to swap")
	}
	await(t, "one that says that nothing can go to swap", func() bool {
		for _, o := range orders {
			r := b.reading(o.Container)
			if r.State == cluster.ContainerSuspended && strings.Contains(r.Why, "nothing can go to swap") {
				return true
			}
		}
		select {
		case e := <-b.Events():
			b.seen = append(b.seen, e)
			return cause(&e)
		default:
			return false
		}
	})
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range orders {
		// The four take turns in memory and swap that are full: an end can take a minute.
		e := b.nextWithin(3*time.Minute, cluster.TaskEnded)
		if e.Outcome != cluster.Succeeded && e.Outcome != cluster.Preempted && !cause(&e) {
			t.Errorf("%s ended as %s: %s", e.Task, e.Outcome, e.Detail)
		}
		t.Logf("%s ended as %s: %s", e.Task, e.Outcome, e.Detail)
	}
}

// TestMappedFile: the part of a mapped file that a program works with is a working set. A FLEX container grows to
// contain it, so that it takes hardly longer than a REGULAR one, and keeps it while no other container lacks memory.
func TestMappedFile(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if slow() {
		t.Skip("needs files on a disk")
	}
	testswap.Need(t, 256<<20)
	took := func(class cluster.Class, rounds string) float64 {
		b := smallBench(t, 256*resource.MiB)
		o := b.tightOrder("map", 120, filepath.Join(b.dir, "mapped"), rounds)
		if class == cluster.Regular {
			o.Envelope = cluster.Envelope{}
			o.Grant[resource.Memory] = 200 * resource.MiB
		}
		b.Apply([]cluster.Order{o})
		b.ends(1)
		var seconds float64
		fmt.Sscan(read(t, o.Launch.Stdout), &seconds)
		return seconds
	}
	for _, rounds := range []string{"1", *mapRounds} {
		regular, flex := took(cluster.Regular, rounds), took(cluster.Flex, rounds)
		t.Logf("%s rounds: %.2f s in a REGULAR container, %.2f s in a FLEX one", rounds, regular, flex)
		if flex > 3*regular+20 { // a machine under load takes its time; one that pages takes minutes
			t.Errorf("%s rounds take %.1f s in a FLEX container, and %.1f in a REGULAR one", rounds, flex, regular)
		}
	}
}
