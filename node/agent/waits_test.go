package agent

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
)

// Programs that wait for each other while one of them lacks memory, and programs that sleep.

// scale is the share of a node of 1 GiB, and of the programs' memory there, that these tests use.
var scale = flag.Float64("scale", 0.25, "share of 1 GiB that programs which wait for each other share")

func scaled(mib int) int { return int(float64(mib) * *scale) }

// filled is memory with a pattern in it, taken 4 MiB at a time: at a scale at which nothing takes long the kernel's
// notice must still come before the next piece.
type filled []uint64

const pageWords = 512

func fill(mib int) filled {
	f := filled(testswap.Memory[uint64](mib << 20))
	for i := 0; i < len(f); i += pageWords {
		f[i] = uint64(i) * 2654435761
		if i%(1<<19) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return f
}

// check ends the program if something is lost.
func (f filled) check() {
	for i := 0; i < len(f); i += pageWords {
		if f[i] != uint64(i)*2654435761 {
			fmt.Println("lost", i)
			os.Exit(9)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Println(err)
		os.Exit(8)
	}
	return v
}

// waiter is a program of this file.
func waiter(args []string) {
	var mib int
	fmt.Sscan(args[1], &mib)
	file := args[2]
	switch args[0] {
	case "lock": // fills its memory, and needs a lock that another has
		f := fill(mib)
		fmt.Println("full")
		lock := must(os.Open(file))
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
			os.Exit(8)
		}
		f.check()
	case "locked": // has the lock, and needs memory
		lock := must(os.Open(file))
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
			os.Exit(8)
		}
		fmt.Println("locked")
		awaitFile(file + ".go")
		f := fill(mib)
		f.check()
	case "write":
		f := fill(mib)
		pipe := must(os.OpenFile(file, os.O_WRONLY, 0))
		block := make([]byte, 1<<16)
		for i := range scaled50(mib, 700) {
			block[0], block[len(block)-1] = byte(i), byte(i>>8)
			must(pipe.Write(block))
		}
		f.check()
	case "read":
		f := fill(mib)
		pipe := must(os.Open(file))
		block := make([]byte, 1<<16)
		for i := range scaled50(mib, 500) {
			must(io.ReadFull(pipe, block))
			if block[0] != byte(i) || block[len(block)-1] != byte(i>>8) {
				fmt.Println("lost block", i)
				os.Exit(9)
			}
		}
		f.check()
	case "sleep":
		f := fill(mib)
		fmt.Println("full")
		awaitFile(file)
		f.check()
	case "spin":
		f := fill(mib)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			f.check()
		}
		fmt.Println("spun")
		for {
			f.check()
			if _, err := os.Stat(file); err == nil {
				break
			}
		}
	}
	os.Exit(0)
}

// scaled50 is the number of blocks of 64 KiB that go through the pipe of a program; at full size they are 50 MB.
func scaled50(mib, full int) int { return 800 * mib / full }

// awaitFile looks seldom, because a process that looks often is not asleep.
func awaitFile(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// waiterOrder starts a waiting program with the given number of MiB of a node of 1 GiB.
func (b *bench) waiterOrder(kind string, mib int, file string) cluster.Order {
	o := asFlex(b.order(os.Args[0], "waiter", kind, fmt.Sprint(scaled(mib)), file),
		resource.Amount(scaled(64))*resource.MiB, resource.Amount(scaled(1024))*resource.MiB)
	o.Grant[resource.CPU] = 300
	return o
}

func newScaledBench(t *testing.T) *bench {
	// Of each program nothing is known, so that half of swap counts as its need; a part of swap stays free at any scale.
	testswap.Need(t, int64(scaled(3072))<<20)
	b := &bench{t: t, dir: t.TempDir(), memory: resource.Amount(scaled(1024)) * resource.MiB}
	b.open()
	t.Cleanup(b.cleanUp)
	return b
}

// ends waits for the given number of programs, which must succeed.
func (b *bench) ends(programs int) {
	b.t.Helper()
	began := time.Now()
	for range programs {
		if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded {
			b.t.Fatalf("%s ended as %s: %s", e.Task, e.Outcome, e.Detail)
		}
	}
	b.t.Logf("after %v", time.Since(began).Round(100*time.Millisecond))
}

// TestWaitForLock: a program with most of the memory waits for a lock, and the owner of the lock lacks memory. Both
// end, whether or not they fit together.
func TestWaitForLock(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if slow() {
		t.Skip("takes minutes on a processor that is emulated")
	}
	for name, sizes := range map[string][2]int{"they fit": {620, 233}, "too large": {700, 500}} {
		t.Run(name, func(t *testing.T) {
			b := newScaledBench(t)
			file := filepath.Join(b.dir, "lock")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			first := b.waiterOrder("lock", sizes[0], file)
			second := b.waiterOrder("locked", sizes[1], file)
			b.Apply([]cluster.Order{second})
			b.awaitOutput(second, "locked\n")
			first.Envelope.Rank = second.Envelope.Rank - 1 // it comes first
			b.Apply([]cluster.Order{first})
			b.awaitOutput(first, "full\n")
			if err := os.WriteFile(file+".go", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			b.ends(2)
		})
	}
}

// TestWaitForPipe: one program writes and one reads a thousand times what the pipe can contain, and together they need
// more memory than there is.
func TestWaitForPipe(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if slow() {
		t.Skip("takes minutes on a processor that is emulated")
	}
	b := newScaledBench(t)
	pipe := filepath.Join(b.dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Apply([]cluster.Order{b.waiterOrder("write", 700, pipe), b.waiterOrder("read", 500, pipe)})
	b.ends(2)
}

// TestAsleep: a program that sleeps keeps its memory next to one that only computes, yields it to one that lacks
// memory, is not frozen, and finds all its data when it wakes.
func TestAsleep(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if slow() {
		t.Skip("takes minutes on a processor that is emulated")
	}
	b := newScaledBench(t)
	gate := filepath.Join(b.dir, "gate")
	asleep, spins := b.waiterOrder("sleep", 600, gate), b.waiterOrder("spin", 200, gate)
	b.Apply([]cluster.Order{asleep})
	b.awaitOutput(asleep, "full\n")
	b.Apply([]cluster.Order{spins})
	b.awaitOutput(spins, "spun\n")
	if r := b.reading(asleep.Container); r.Swap == nil || *r.Swap > int64(scaled(600))<<20/4 {
		t.Errorf("beside one that spins: %s", show(r))
	}
	lacks := b.waiterOrder("sleep", 400, gate)
	b.Apply([]cluster.Order{lacks})
	b.awaitOutput(lacks, "full\n")
	b.until("it runs on", asleep.Container, func(r cluster.Reading) bool { return r.State == cluster.ContainerRunning })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.ends(3)
}
