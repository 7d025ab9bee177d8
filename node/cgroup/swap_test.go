package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/testswap"
)

func TestKernelNotice(t *testing.T) {
	testswap.Need(t, 512*mib)
	ctx := testContext(t)
	g := testGroup(t)
	if err := g.Apply(ctx, Limits{MemoryBytes: At(64 * mib)}); err != nil {
		t.Fatal(err)
	}
	w, err := NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	means := w.Add(g)
	t.Logf("by %v", means)
	if len(means) == 0 {
		t.Fatal("the kernel offers no notice")
	}
	heard := func(within time.Duration) bool {
		t.Helper()
		for end := time.Now().Add(within); time.Now().Before(end); {
			if notices := w.Wait(time.Until(end)); len(notices) > 0 {
				if len(notices) > 1 || notices[0].Group != g {
					t.Fatalf("notices %+v of one group", notices)
				}
				t.Logf("notice by %s", notices[0].Means)
				return true
			}
		}
		return false
	}
	quiet := start(t, g, fmt.Sprint("hold ", 24*mib)).ready(t)
	if heard(300 * time.Millisecond) {
		t.Error("a notice within the limit")
	}
	quiet.in.Close()
	_ = quiet.cmd.Wait()
	for round := range 2 {
		began := time.Now()
		c := start(t, g, fmt.Sprint("hold ", 128*mib))
		if !heard(20 * time.Second) {
			t.Fatal("no notice of 128 MiB in 64 MiB")
		}
		t.Logf("round %d: noticed %v after the start", round, time.Since(began).Round(time.Millisecond))
		c.ready(t)
		if heard(100 * time.Millisecond) {
			t.Error("a second notice before Rearm")
		}
		c.in.Close()
		_ = c.cmd.Wait()
		w.Rearm(g)
	}
	w.Remove(g)
}

// TestKernelNear: a watcher is notified of amounts that usage has not reached yet, and no longer of amounts that were
// replaced.
func TestKernelNear(t *testing.T) {
	g := testGroup(t)
	w, err := NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.Add(g)
	if version, _ := g.Has(Memory); version != V1 {
		if err := w.Near(g, 48*mib); !errors.Is(err, ErrUnsupported) {
			t.Errorf("in version 2: %v", err)
		}
		return
	}
	for _, amounts := range [][]int64{{16 * mib, 48 * mib}, {400 * mib, 32 * mib}, {400 * mib}} {
		if err := w.Near(g, amounts...); err != nil {
			t.Fatal(err)
		}
		c := start(t, g, fmt.Sprint("hold ", 96*mib)).ready(t)
		notices := w.Wait(0)
		if len(amounts) == 2 != (len(notices) == 1 && notices[0] == Notice{g, Threshold}) {
			t.Errorf("with %d: %v", amounts, notices)
		}
		c.in.Close()
		_ = c.cmd.Wait()
		w.Rearm(g)
	}
	w.Remove(g)
	if err := w.Near(g, 48*mib); err != nil {
		t.Error(err)
	}
	w.Wake()
	if notices := w.Wait(time.Minute); len(notices) > 0 {
		t.Errorf("after Wake: %v", notices)
	}
}

func TestKernelPageOutAndPrefetch(t *testing.T) {
	testswap.Need(t, 512*mib)
	ctx := testContext(t)
	g := testGroup(t, Freezer)
	c := start(t, g, fmt.Sprint("hold ", 96*mib)).ready(t)
	if err := g.Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	asked, err := g.PageOut(ctx, func(asked int64) bool { return asked < 64*mib })
	if os.Getuid() != 0 && errors.Is(err, ErrUnsupported) {
		return // as documented: an ordinary user lowers the bound alone
	}
	if err != nil {
		t.Fatal(err)
	}
	if asked < 64*mib || asked > 64*mib+pagePiece {
		t.Errorf("asked for %d MiB, want 64", asked/mib)
	}
	// What was paged out counts as used until the bound is lowered.
	if err := g.Apply(ctx, Limits{MemoryBytes: At(48 * mib)}); err != nil {
		t.Fatalf("lower the bound of a frozen group: %v", err)
	}
	if usage := known(t, "MemoryBytes", read(t, g).MemoryBytes); usage > 48*mib {
		t.Errorf("usage is %d MiB under a bound of 48", usage/mib)
	}
	if got := known(t, "SwapBytes", read(t, g).SwapBytes); got < 44*mib {
		t.Errorf("%d MiB in swap with 96 held in 48", got/mib)
	}
	if err := g.Apply(ctx, Limits{MemoryBytes: At(256 * mib)}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Prefetch(ctx, 1<<40); err != nil {
		t.Fatal(err)
	}
	gauge, err := g.Gauge()
	if err != nil {
		t.Fatal(err)
	}
	defer gauge.Close()
	// No program has touched the prefetched pages, so they are in the swap cache.
	if held, err := gauge.Read(); err != nil || held.AnonBytes+held.UnmappedBytes+held.SwapBytes < 90*mib {
		t.Errorf("the gauge tells %+v of 96 MiB that were prefetched, %v", held, err)
	}
	if usage := known(t, "MemoryBytes", read(t, g).MemoryBytes); usage < 80*mib {
		t.Errorf("usage is %d MiB after 96 were prefetched", usage/mib)
	}
	if err := g.Thaw(ctx); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("the program did not survive: %v", err)
	}
}

func TestAdviceEndsWithTheContext(t *testing.T) {
	g := testGroup(t)
	start(t, g, fmt.Sprint("hold ", 8*mib)).ready(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if asked, err := g.PageOut(ctx, func(int64) bool { return true }); err == nil || asked != 0 {
		t.Fatalf("%d bytes, %v", asked, err)
	}
}

func TestParseAnonymous(t *testing.T) {
	for line, want := range map[string]bool{
		"c000000000-c000400000 rw-p 00000000 00:00 0 ":                                              true,
		"55d0c8a5f000-55d0c8a80000 rw-p 00000000 00:00 0                          [heap]":           true,
		"7ffd3a3e1000-7ffd3a402000 rw-p 00000000 00:00 0                          [stack]":          true,
		"7f0000000000-7f0000400000 rw-p 00000000 00:00 0                          [anon: Go: heap]": true,
		"7f0000000000-7f0000400000 ---p 00000000 00:00 0 ":                                          false,
		"7f0000000000-7f0000400000 rw-s 00000000 00:01 5 /dev/zero":                                 false,
		"00400000-00401000 rw-p 00001000 08:01 77 /bin/true":                                        false,
		"7ffd3a3f0000-7ffd3a3f2000 r-xp 00000000 00:00 0                          [vdso]":           false,
		"00401000-00400000 rw-p 00000000 00:00 0 ":                                                  false,
		"":         false,
		"nonsense": false,
	} {
		if _, ok := parseAnonymous(line); ok != want {
			t.Errorf("%q: %v, want %v", line, ok, want)
		}
	}
}

func FuzzParseAnonymous(f *testing.F) {
	f.Add("c000000000-c000400000 rw-p 00000000 00:00 0 ")
	f.Fuzz(func(t *testing.T, line string) {
		if r, ok := parseAnonymous(line); ok && r.to <= r.from {
			t.Fatalf("%q: %+v", line, r)
		}
	})
}
