package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// The gauge agrees with the full reading.
func TestKernelGauge(t *testing.T) {
	ctx := testContext(t)
	g := testGroup(t)
	gauge, err := g.Gauge()
	if err != nil {
		t.Fatal(err)
	}
	defer gauge.Close()
	c := start(t, g, fmt.Sprint("hold ", 24*mib)).ready(t)
	h, err := gauge.Read()
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, g)
	anon := known(t, "AnonBytes", r.AnonBytes)
	if h.AnonBytes < 24*mib || max(h.AnonBytes-anon, anon-h.AnonBytes) > 2*mib || h.SwapBytes != r.SwapBytes.Or(0) {
		t.Errorf("gauge %+v, reading %d and %d", h, anon, r.SwapBytes.Or(0))
	}
	charged, err := gauge.Charged()
	if err != nil || charged.Bytes < h.AnonBytes {
		t.Errorf("charged for %+v, %v, and holds %+v", charged, err, h)
	}
	if used, ok := gauge.CPUTime(); !ok || used <= 0 || used > known(t, "CPUTime", read(t, g).CPUTime) {
		t.Errorf("CPU time %v, known %v", used, ok)
	}
	if in, out, ok := gauge.Transfers(); ok && (in > read(t, g).ReadBytes.Or(-1) || out > read(t, g).WrittenBytes.Or(-1)) {
		t.Errorf("read %d and wrote %d, and the full reading says less", in, out)
	}
	c.in.Close()
	_ = c.cmd.Wait()
	if after, err := gauge.Charged(); err != nil || after.Bytes > charged.Bytes-20*mib {
		t.Errorf("charged for %+v, %v, after it ended %+v", charged, err, after)
	}
	if err := g.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := gauge.Read(); !errors.Is(err, ErrGone) {
		t.Errorf("after the removal: %v", err)
	}
	if _, err := gauge.Charged(); !errors.Is(err, ErrGone) {
		t.Errorf("after the removal: %v", err)
	}
}

// The CPU time and the time for which a quota held a group are in one file of version 2, which is open once, and in two
// files of version 1.
func TestCPUTimes(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{dir + "/memory.stat": "anon 1\n",
		dir + "/cpu.stat": "usage_usec 5000\nthrottled_usec 70\n", other + "/cpu.stat": "throttled_time 3000\n",
		other + "/cpuacct.usage": "9000\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const us = time.Microsecond
	for name, c := range map[string]struct {
		group           Group
		used, throttled Maybe[time.Duration]
		one             bool
	}{
		"version 2": {Group{unified: dir, dirs: map[Controller]string{Memory: dir, CPU: dir},
			version: map[Controller]Version{Memory: V2, CPU: V2}}, Known(5000 * us), Known(70 * us), true},
		"version 2 without a controller": {Group{unified: dir, dirs: map[Controller]string{Memory: dir},
			version: map[Controller]Version{Memory: V2}}, Known(5000 * us), Maybe[time.Duration]{}, false},
		"version 1": {Group{unified: dir, dirs: map[Controller]string{Memory: dir, CPU: other, CPUAcct: other},
			version: map[Controller]Version{Memory: V1, CPU: V1, CPUAcct: V1}}, Known(9 * us), Known(3 * us), false},
	} {
		gauge, err := c.group.Gauge()
		if err != nil {
			t.Fatal(err)
		}
		used, throttled := gauge.CPUTimes()
		if used != c.used || throttled != c.throttled || (gauge.throttled == gauge.work) != c.one {
			t.Errorf("%s: used %v, throttled %v", name, used, throttled)
		}
		gauge.Close()
	}
}

func TestField(t *testing.T) {
	const text = "rss 1\ntotal_rss 23\nswapcached 5\ntotal_rss_huge 7\nbad x\nminus -4\nlast 9"
	for key, want := range map[string]int64{"rss": 1, "total_rss": 23, "total_rss_huge": 7, "bad": 0, "minus": 0,
		"last": 9, "swap": 0} {
		if got := field([]byte(text), key); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
}

func FuzzField(f *testing.F) {
	f.Add("anon 12\nfile 3\n", "anon")
	f.Fuzz(func(t *testing.T, text, key string) {
		if n := field([]byte(text), key); n < 0 {
			t.Fatalf("%q %q: %d", text, key, n)
		}
	})
}

// benchGroup makes a group below a root of its own.
func benchGroup(b *testing.B, name string) (*Root, *Group) {
	host, err := Discover("")
	if err != nil {
		b.Skip(err)
	}
	root, err := host.Root(name, Memory)
	if err != nil {
		b.Skipf("needs cgroups of its own: %v", err)
	}
	b.Cleanup(func() { _ = root.Remove(context.Background()) })
	g, err := root.Create("one")
	if err != nil {
		b.Fatal(err)
	}
	return root, g
}

func BenchmarkGauge(b *testing.B) {
	_, g := benchGroup(b, "bench-gauge")
	gauge, err := g.Gauge()
	if err != nil {
		b.Fatal(err)
	}
	defer gauge.Close()
	b.Run("gauge", func(b *testing.B) {
		for b.Loop() {
			_, _ = gauge.Read()
		}
	})
	b.Run("charged", func(b *testing.B) {
		for b.Loop() {
			_, _ = gauge.Charged()
		}
	})
	b.Run("CPU time", func(b *testing.B) {
		for b.Loop() {
			_, _ = gauge.CPUTime()
		}
	})
	b.Run("transfers", func(b *testing.B) {
		for b.Loop() {
			_, _, _ = gauge.Transfers()
		}
	})
	b.Run("reading", func(b *testing.B) {
		for b.Loop() {
			_, _ = g.Read()
		}
	})
}

// BenchmarkGroup is what a container costs that begins and ends: the steps of a supervisor at its end, and those of
// the daemon.
func BenchmarkGroup(b *testing.B) {
	root, g := benchGroup(b, "bench-group")
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"find root", func() error {
			host, err := Discover("")
			if err != nil {
				return err
			}
			_, err = host.OpenRoot(root.Place())
			return err
		}},
		{"open", func() error { _, err := root.Open("one"); return err }},
		{"processes", func() error { _, err := g.Procs(); return err }},
		{"kill none", func() error { return g.Kill(b.Context()) }},
		{"read", func() error { _, err := g.Read(); return err }},
		{"limit", func() error { return g.ApplyCounted(b.Context(), Limits{MemoryBytes: At(8 * mib), SwapBytes: At(0)}) }},
		{"make and remove", func() error {
			_, err := root.Create("two")
			return errors.Join(err, root.Discard(b.Context(), "two"))
		}},
	} {
		b.Run(step.name, func(b *testing.B) {
			for b.Loop() {
				if err := step.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestKernelGaugeReading: a gauge reads what the group reads, apart from OOMKills, and says so when the group is gone.
func TestKernelGaugeReading(t *testing.T) {
	g := testGroup(t)
	gauge, err := g.Gauge()
	if err != nil {
		t.Fatal(err)
	}
	defer gauge.Close()
	if err := g.Apply(t.Context(), Limits{MemoryBytes: At(256 * mib)}); err != nil {
		t.Fatal(err)
	}
	start(t, g, fmt.Sprint("share ", 24*mib)).ready(t)
	// What moves meanwhile is between two readings.
	before := read(t, g)
	got, err := gauge.Reading()
	if err != nil {
		t.Fatal(err)
	}
	after := read(t, g)
	if before.Procs != after.Procs || got.Procs != after.Procs || got.MemoryLimitBytes != after.MemoryLimitBytes ||
		got.MemoryLimitBytes.Or(0) != 256*mib {
		t.Errorf("it reads %+v, the group %+v", got, after)
	}
	between := func(what string, low, is, high Maybe[int64], slack int64) {
		if _, known := is.Get(); known != low.ok || known && (is.Or(0) < low.Or(0)-slack || is.Or(0) > high.Or(0)+slack) {
			t.Errorf("%s is %v, and of the group %v and then %v", what, is, low, high)
		}
	}
	for what, of := range map[string]func(*Reading) Maybe[int64]{
		"memory": func(r *Reading) Maybe[int64] {
			return r.MemoryBytes
		}, "anonymous": func(r *Reading) Maybe[int64] { return r.AnonBytes },
		"files": func(r *Reading) Maybe[int64] {
			return r.FileBytes
		}, "swap": func(r *Reading) Maybe[int64] { return r.SwapBytes },
		"peak": func(r *Reading) Maybe[int64] {
			return r.PeakBytes
		}, "read": func(r *Reading) Maybe[int64] {
			return r.ReadBytes
		}, "written": func(r *Reading) Maybe[int64] { return r.WrittenBytes },
	} {
		between(what, of(&before), of(&got), of(&after), 2*mib)
	}
	if got.CPUTime.Or(0) < before.CPUTime.Or(0) || got.CPUTime.Or(0) > after.CPUTime.Or(0) {
		t.Errorf("CPU time is %v, and of the group %v and then %v", got.CPUTime, before.CPUTime, after.CPUTime)
	}
	if err := errors.Join(g.Kill(t.Context()), g.Remove(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := gauge.Reading(); !errors.Is(err, ErrGone) {
		t.Errorf("of a group that was removed: %v, want ErrGone", err)
	}
}

// TestKernelGaugeSharedMemory: the kernel counts shared memory as page cache, but only swap can free it.
func TestKernelGaugeSharedMemory(t *testing.T) {
	g := testGroup(t)
	gauge, err := g.Gauge()
	if err != nil {
		t.Fatal(err)
	}
	defer gauge.Close()
	start(t, g, fmt.Sprint("share ", 24*mib)).ready(t)
	h, err := gauge.Read()
	if err != nil {
		t.Fatal(err)
	}
	if h.AnonBytes < 24*mib || h.AnonBytes > 48*mib {
		t.Errorf("%d bytes are held by a program that shares 24 MiB", h.AnonBytes)
	}
	// The full reading, which people see, reports the same, and counts shared memory once.
	r := read(t, g)
	anon, files := known(t, "AnonBytes", r.AnonBytes), known(t, "FileBytes", r.FileBytes)
	if max(anon-h.InMemory(), h.InMemory()-anon) > 2*mib || anon+files > known(t, "MemoryBytes", r.MemoryBytes)+2*mib {
		t.Errorf("the gauge says %d, the reading %d and %d of %d", h.InMemory(), anon, files, r.MemoryBytes.Or(0))
	}
	if h.MappedBytes > 12*mib {
		t.Errorf("%d bytes of files are mapped by a program that shares memory", h.MappedBytes)
	}
	if used, ok := gauge.CPUTime(); ok && (used <= 0 || used > time.Hour) {
		t.Errorf("it used %v of processors", used)
	}
}
