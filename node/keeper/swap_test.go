package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/swap"
)

// swapping is a machine that a test makes up, with a keeper that has a write budget.
type swapping struct {
	t       *testing.T
	machine swap.Machine
	config  Config
}

func newSwapping(t *testing.T, swaps string, budget resource.Amount) *swapping {
	s := &swapping{t: t, machine: swap.Machine{Root: t.TempDir()}}
	s.put("proc/swaps", "Filename Type Size Used Priority\n"+swaps)
	s.put("proc/uptime", "1000.0 1.0\n")
	s.put("proc/sys/kernel/random/boot_id", "b\n")
	s.put("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\n")
	s.wrote(0)
	s.config = Config{Written: filepath.Join(t.TempDir(), "written"), Capacity: resource.GiB, SwapBudget: budget,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	return s
}

func (s *swapping) put(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.machine.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// wrote says how much was swapped out since the machine started.
func (s *swapping) wrote(bytes resource.Amount) {
	s.t.Helper()
	s.put("proc/vmstat", fmt.Sprintf("pswpout %d\n", int64(bytes)/int64(os.Getpagesize())))
}

func (s *swapping) gauge(closed context.Context) *gauge { return gaugeOf(closed, &s.config, s.machine) }

func (s *swapping) expect(g *gauge, want resource.Amount) {
	s.t.Helper()
	g.read()
	if got := g.free(); got != want {
		s.t.Errorf("%s of swap may be used, want %s", resource.FormatMemory(got), resource.FormatMemory(want))
	}
}

const (
	onFile = "/file file 1048576 0 -2\n"
	onZram = "/dev/zram7 partition 4194304 0 100\n"
)

func TestSwapRoom(t *testing.T) {
	const mib, gib = resource.MiB, resource.GiB
	for _, c := range []struct {
		why, swaps string
		want       resource.Amount
	}{
		{"no swap", "", 0},
		{"a file, less a tenth", onFile, gib - gib/10},
		// 2 GiB are available, and containers may come to hold 1 of them.
		{"zram is memory", onZram, gib - 4*gib/10},
		{"both", onFile + onZram, 2*gib - 5*gib/10},
	} {
		s := newSwapping(t, c.swaps, 0)
		t.Log(c.why)
		s.expect(s.gauge(t.Context()), c.want)
	}
	s := newSwapping(t, onFile, 0)
	g := s.gauge(t.Context())
	s.put("proc/vmstat", "")
	s.expect(g, 0) // It is unknown how much would be written.
	s.wrote(mib)
	s.expect(g, gib-gib/10)
}

// TestRoomWhileSwapIsRemoved: a device that is being turned off is listed until its last page is back, and has no room
// meanwhile. That swap has become less is known, also right before it is read.
func TestRoomWhileSwapIsRemoved(t *testing.T) {
	const mib = resource.MiB
	s := newSwapping(t, "/a file 1048576 0 -2\n/b file 1048576 262144 -3\n", 0)
	total := func(kib int) {
		s.put("proc/meminfo", fmt.Sprintf("MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\nSwapTotal: %d kB\n", kib))
	}
	total(2 << 20)
	g := s.gauge(t.Context())
	s.expect(g, 1792*mib-2048*mib/10)
	if g.removed(0) {
		t.Error("swap is removed that is not")
	}
	total(1<<20 + 256<<10) // of b, what is not back
	if !g.removed(0) {
		t.Error("swap that is being removed is not")
	}
	s.expect(g, 1024*mib-2048*mib/10)
	s.put("proc/swaps", "Filename Type Size Used Priority\n/a file 1048576 0 -2\n")
	total(1 << 20)
	s.expect(g, 1024*mib-1024*mib/10)
	if !g.removed(time.Minute) || g.removed(0) {
		t.Error("swap that was removed a moment ago is not, or still is")
	}
}

func TestWriteBudget(t *testing.T) {
	const mib, gib = resource.MiB, resource.GiB
	s := newSwapping(t, onFile, 100*mib)
	s.wrote(10 * mib)
	closed, end := context.WithCancel(t.Context())
	g := s.gauge(closed)
	s.expect(g, 90*mib)
	noRoom := memory.Reason{Code: memory.NoSwapLeft, A: int64(gib), B: int64(90 * mib)}
	if got := g.explain(noRoom); !strings.HasSuffix(got, "the write budget of 100MiB a day leaves 90MiB") {
		t.Errorf("explained by %q", got)
	}
	s.wrote(150 * mib)
	s.expect(g, 0)
	if got := g.explain(noRoom); !strings.HasSuffix(got, "leaves 0B") {
		t.Errorf("explained by %q", got)
	}
	other := memory.Reason{Code: memory.NoFlexLeft, A: int64(gib), B: 0}
	if got := g.explain(other); got != other.Words() {
		t.Errorf("explained by %q", got)
	}

	// The keeper ends, and so does the machine; the next keeper knows what was written.
	end()
	g.keepCount()
	s.put("proc/sys/kernel/random/boot_id", "c\n")
	s.put("proc/uptime", "1.0 1.0\n")
	s.wrote(0)
	s.expect(s.gauge(t.Context()), 0)

	s.config.SwapBudget = 200 * mib
	s.expect(s.gauge(t.Context()), 50*mib)
	s.config.SwapBudget = 0
	g = s.gauge(t.Context())
	s.expect(g, gib-gib/10)
	if got := g.explain(noRoom); got != noRoom.Words() {
		t.Errorf("explained by %q", got)
	}
}

// TestPromised: what containers of both classes hold is not promised any more, and other processes are none.
func TestPromised(t *testing.T) {
	const mib = resource.MiB
	root, groups := ground(t, "apart", "flex", "regular")
	g := &gauge{config: &Config{Capacity: resource.GiB, All: root.Group, Apart: groups[0]}}
	if err := g.open(); err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if got := g.promised(); got != resource.GiB {
		t.Errorf("%s are promised to nobody yet, want 1GiB", resource.FormatMemory(got))
	}
	held := func(g *cgroup.Group) resource.Amount {
		r, err := g.Read()
		if err != nil {
			t.Fatal(err)
		}
		return resource.Amount(r.AnonBytes.Or(0))
	}
	for i, size := range []resource.Amount{20, 40, 30} {
		run(t, groups[i], os.Args[0], "hold", fmt.Sprint(int64(size)))
		comes(t, "what it holds", func() bool { return held(groups[i]) > (size-1)*mib })
	}
	is := held(groups[1]) + held(groups[2])
	if off := g.promised() - (resource.GiB - is); max(off, -off) > 6*mib { // the kernel counts in batches
		t.Errorf("%s are promised beside %s that are held", resource.FormatMemory(g.promised()), resource.FormatMemory(is))
	}
}

// BenchmarkPromised finds out what 500 containers hold, and does it again by reading each of them.
func BenchmarkPromised(b *testing.B) {
	names := []string{"apart"}
	for i := range 500 {
		names = append(names, fmt.Sprintf("held-%d", i))
	}
	root, groups := ground(b, names...)
	g := &gauge{config: &Config{Capacity: 500 * resource.GiB, All: root.Group, Apart: groups[0]}}
	if err := g.open(); err != nil {
		b.Fatal(err)
	}
	defer g.close()
	b.Run("at once", func(b *testing.B) {
		for b.Loop() {
			g.promised()
		}
	})
	b.Run("each", func(b *testing.B) {
		for b.Loop() {
			for _, group := range groups[1:] {
				_, _ = group.Read()
			}
		}
	})
}
