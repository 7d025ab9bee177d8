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
	quiet := start(t, g, fmt.Sprint("hold ", 24*mib)).ready(t)
	select {
	case <-w.Notices():
		t.Error("a notice within the limit")
	case <-time.After(300 * time.Millisecond):
	}
	quiet.in.Close()
	_ = quiet.cmd.Wait()
	for round := range 2 {
		began := time.Now()
		c := start(t, g, fmt.Sprint("hold ", 128*mib))
		select {
		case got := <-w.Notices():
			if got != g {
				t.Fatal("a notice of another group")
			}
			t.Logf("round %d: noticed %v after the start", round, time.Since(began).Round(time.Millisecond))
		case <-ctx.Done():
			t.Fatal("no notice of 128 MiB in 64 MiB")
		}
		c.ready(t)
		select {
		case <-w.Notices():
			t.Error("a second notice before Rearm")
		case <-time.After(100 * time.Millisecond):
		}
		c.in.Close()
		_ = c.cmd.Wait()
		w.Rearm(g)
	}
	w.Remove(g)
}

func TestKernelPageOutAndPrefetch(t *testing.T) {
	testswap.Need(t, 512*mib)
	ctx := testContext(t)
	g := testGroup(t, Freezer)
	c := start(t, g, fmt.Sprint("hold ", 96*mib)).ready(t)
	if err := g.Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	asked, err := g.PageOut(ctx, 64*mib)
	if os.Getuid() != 0 && errors.Is(err, ErrUnsupported) {
		return // as documented: an ordinary user lowers the bound alone
	}
	if err != nil {
		t.Fatal(err)
	}
	if asked < 64*mib || asked > 66*mib {
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
	if anon := known(t, "AnonBytes", read(t, g).AnonBytes); anon < 90*mib {
		t.Logf("%d MiB of anonymous memory mapped after prefetching; the rest is in the swap cache", anon/mib)
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
	if asked, err := g.PageOut(ctx, 8*mib); err == nil || asked != 0 {
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
