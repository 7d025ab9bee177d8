package swap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// kindsHeld is the memory of a program, and kindsLimit the limit of its control group, in the tests of the kinds of
// swap.
const kindsHeld, kindsLimit = 96 * mib, 32 * mib

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "hold" {
		hold(os.Args[2])
	}
	os.Exit(m.Run())
}

// hold is a program that fills memory with random words, or with zeros except one word per page, after the first byte
// of its standard input, and ends at the next byte or at the end of the input.
func hold(what string) {
	in := bufio.NewReader(os.Stdin)
	_, _ = in.ReadByte()
	block, r := testswap.Memory[uint64](int(kindsHeld)), rand.New(rand.NewPCG(1, 2))
	step := 1
	if what == "zeros" {
		step = os.Getpagesize() / 8
	}
	for i := 0; i < len(block); i += step {
		block[i] = r.Uint64()
	}
	fmt.Println("held")
	_, _ = in.ReadByte()
	os.Exit(0)
}

// squeeze makes a program use more memory than the limit of its control group. release ends the program; reclaim,
// after that, makes the kernel free what memory and swap the group still has.
func squeeze(t *testing.T, what string) (release, reclaim func()) {
	t.Helper()
	host, err := cgroup.Discover("")
	if err != nil {
		t.Skipf("needs control groups: %v", err)
	}
	root, err := host.Root(fmt.Sprintf("swap-%d", os.Getpid()), cgroup.Memory)
	if err != nil {
		t.Skipf("needs control groups of its own: %v", err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { must(root.Remove(context.Background())) })
	g, err := root.Create("held")
	must(err)
	t.Cleanup(func() { must(g.Remove(context.Background())) })
	must(g.Apply(t.Context(), cgroup.Limits{MemoryBytes: cgroup.At(int64(kindsLimit))}))
	p := exec.Command(os.Args[0], "hold", what)
	in, err := p.StdinPipe()
	must(err)
	out, err := p.StdoutPipe()
	must(err)
	must(p.Start())
	release = func() {
		_ = in.Close()
		_ = p.Wait()
	}
	reclaim = func() {
		// of versions 1 and 2
		for file, text := range map[string]string{"memory.force_empty": "0", "memory.reclaim": fmt.Sprint(kindsHeld)} {
			path, _ := g.File(cgroup.Memory, file)
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				_, _ = f.WriteString(text) // Less may be there to reclaim.
				_ = f.Close()
			}
		}
	}
	for _, file := range g.JoinFiles() {
		err = errors.Join(err, os.WriteFile(file, fmt.Append(nil, p.Process.Pid), 0))
	}
	if err == nil {
		_, err = fmt.Fprintln(in)
	}
	if err != nil {
		release()
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		release()
		t.Fatalf("the program that holds %s: %v", what, err)
	}
	return release, reclaim
}

// TestKinds swaps to every kind of swap that this machine can have, and compares its readings with what was written to
// it.
func TestKinds(t *testing.T) {
	needRoot(t)
	onDisk := func(t *testing.T) string { // existing swap, or else a file
		all, err := Machine{}.Devices()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			if d.Kind == Partition {
				return d.Path
			}
		}
		return makeSwapFile(t)
	}
	for _, c := range []struct {
		kind, data string
		device     func(*testing.T) string
	}{
		{"file", "random words", makeSwapFile},
		{"partition", "random words", func(t *testing.T) string {
			path := onDisk(t)
			if filepath.Dir(path) != "/dev" {
				t.Skip("needs a partition that is swapped to")
			}
			return path
		}},
		{"zram", "zeros", func(t *testing.T) string {
			d, err := NewLedger(Machine{}, t.TempDir()).CreateZram(4*kindsHeld, "")
			if err != nil {
				t.Skipf("needs zram: %v", err)
			}
			t.Cleanup(func() { cleanUp(t, d.Path) })
			return d.Path
		}},
		{"zswap", "zeros", func(t *testing.T) string {
			disk := onDisk(t)
			turnOnZswap(t)
			return disk
		}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			tryKind(t, c.kind, c.data, c.device(t))
		})
	}
}

func tryKind(t *testing.T, kind, data, path string) {
	look := func() (d Device, z Zswap, c Counters) {
		t.Helper()
		all, err := Machine{}.Devices()
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if all[i].Path == path {
				d = all[i]
			}
		}
		if c, err = (Machine{}).Counters(); err != nil || d.Path == "" {
			t.Fatalf("%s is not swapped to, or %v", path, err)
		}
		if now := (Machine{}).Zswap(); now != nil {
			z = *now
		}
		return d, z, c
	}
	// The program itself has some memory, too. What is still being written is counted, and in memory as well.
	// Containers of other tests may be swapped to this device meanwhile; what counts wrong units is further from the
	// truth.
	const most, least = 2 * kindsHeld, kindsHeld - kindsLimit - 8*mib
	written := func(d *Device) resource.Amount {
		if d.Written == nil {
			return 0
		}
		return *d.Written
	}
	before, _, began := look()
	release, reclaim := squeeze(t, data)
	during, zswap, now := look()
	release()
	toDisks, went := now.ToDisks(began), during.Used-before.Used
	t.Logf("%s %s: %s of %s in use, %s written to disks", kind, path, resource.FormatMemory(went),
		resource.FormatMemory(during.Size), resource.FormatMemory(toDisks))
	if went < least || went > most {
		t.Errorf("%s are in use, want %s to %s", resource.FormatMemory(went), resource.FormatMemory(least),
			resource.FormatMemory(most))
	}
	if disk := kind == "file" || kind == "partition"; disk != (toDisks >= least) || !disk && toDisks > 8*mib {
		t.Errorf("%s counts as written to disks", resource.FormatMemory(toDisks))
	}
	if n := written(&during) - written(&before); kind != "file" && (n >= least) != (kind != "zswap") {
		t.Errorf("the device has taken %s", resource.FormatMemory(n))
	}
	if c := during.Compressed; (c != nil) != (kind == "zram") || c != nil &&
		(c.Stored < least || c.Memory <= 0 || c.Memory > c.Stored/4) {
		t.Errorf("zram: %+v", c)
	}
	if kind == "zswap" &&
		(!zswap.Enabled || zswap.Stored != nil && (*zswap.Stored < least || *zswap.Memory > *zswap.Stored/2)) {
		t.Errorf("zswap: %+v", zswap)
	}
	// What is being written to swap when its program ends keeps its place there until the kernel looks for memory to
	// reclaim.
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		after, _, _ := look()
		if after.Used <= during.Used-least {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s stay in use when the program has ended, of %s", resource.FormatMemory(after.Used-before.Used),
				resource.FormatMemory(went))
		}
		reclaim()
	}
}

// makeSwapFile creates a file with the highest priority for swapping.
func makeSwapFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "swap")
	if err := MakeFile(path, 4*kindsHeld, Highest, nil); errors.Is(err, ErrRefused) {
		t.Skipf("needs a folder on a disk with room: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := TurnOff(path); err != nil {
			t.Error(err)
		}
	})
	return path
}

// turnOnZswap turns zswap on until the test ends.
func turnOnZswap(t *testing.T) {
	before := Machine{}.Zswap()
	if before == nil || before.Enabled {
		t.Skipf("needs a kernel with zswap that is off: it is %+v", before)
	}
	l := NewLedger(Machine{}, t.TempDir())
	if err := l.TurnOnZswap(""); err != nil {
		t.Fatal(err)
	}
	if z, err := l.Zswap(); err != nil || !z.Enabled || !z.Ours {
		t.Errorf("zswap that was turned on: %+v, %v", z, err)
	}
	t.Cleanup(func() {
		if err := l.TurnOffZswap(); err != nil {
			t.Error(err)
		}
		if z, err := l.Zswap(); err != nil || z.Enabled || z.Ours || z.Compressor != before.Compressor {
			t.Errorf("zswap that was turned off: %+v, %v", z, err)
		}
	})
}

func cleanUp(t *testing.T, path string) {
	if err := TurnOff(path); err != nil {
		t.Error(err)
	}
	if n, ok := zramNumber(path); ok {
		if err := removeZram(n); err != nil {
			t.Error(err)
		}
	}
}
