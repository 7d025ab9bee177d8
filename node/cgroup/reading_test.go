package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReadV1(t *testing.T) {
	const memory, cpu, disk = "sys/fs/cgroup/memory/bellows-main/one/", "sys/fs/cgroup/cpu,cpuacct/bellows-main/one/",
		"sys/fs/cgroup/block io/bellows-main/one/"
	g := fakeGroup(t, hybridMachine().with(files{
		memory + "memory.usage_in_bytes":     "9000\n",
		memory + "memory.max_usage_in_bytes": "9500\n",
		memory + "memory.limit_in_bytes":     "10000\n",
		memory + "memory.stat": "cache 1\nrss 2\nswap 3\ntotal_swap 300\ntotal_cache " +
			"100\ntotal_rss 150\ntotal_shmem 30\ntotal_active_anon 150\ntotal_inactive_anon 50\ntotal_pgmajfault 5\n",
		memory + "memory.oom_control":                      "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
		memory + "cgroup.procs":                            "1\n2\n",
		cpu + "cpuacct.usage":                              "1500000000\n",
		disk + "blkio.throttle.io_service_bytes_recursive": "254:0 Read 11\n254:0 Write 22\n254:0 Total 99\nTotal 99\n",

		"sys/fs/cgroup/freezer/bellows-main/one/freezer.state": "FROZEN\n",
	}))
	got, err := g.Read()
	want := Reading{
		MemoryBytes: Known[int64](9000), PeakBytes: Known[int64](9500), AnonBytes: Known[int64](200),
		FileBytes: Known[int64](50), SwapBytes: Known[int64](300),
		MemoryLimitBytes: Known[int64](10000), OOMKills: Known[int64](2), CPUTime: Known(1500 * time.Millisecond),
		ReadBytes: Known[int64](11), WrittenBytes: Known[int64](22),
		Procs: Known[int64](2),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v (%v)\nwant %+v", got, err, want)
	}
}

func TestReadV2(t *testing.T) {
	const dir = "sys/fs/cgroup/bellows-main/one/"
	g := fakeGroup(t, v2Machine().with(files{
		dir + "memory.current":      "9000\n",
		dir + "memory.peak":         "9500\n",
		dir + "memory.swap.current": "300\n",
		dir + "memory.max":          "max\n",
		dir + "memory.stat":         "anon 170\nfile 130\nshmem 30\nworkingset_refault_anon 4\npgmajfault 5\n",
		dir + "memory.events":       "low 0\nhigh 7\nmax 3\noom 1\noom_kill 2\n",
		dir + "cpu.stat":            "usage_usec 1500000\nuser_usec 1\nnr_throttled 1\nthrottled_usec 7000\n",
		dir + "io.stat":             "",
		dir + "cgroup.procs":        "",
		dir + "cgroup.events":       "populated 1\nfrozen 0\n",
		dir + "cgroup.freeze":       "1\n",
	}))
	got, err := g.Read()
	want := Reading{
		MemoryBytes: Known[int64](9000), PeakBytes: Known[int64](9500), AnonBytes: Known[int64](200),
		FileBytes: Known[int64](100), SwapBytes: Known[int64](300),
		MemoryLimitBytes: Known(NoLimit), OOMKills: Known[int64](2), CPUTime: Known(1500 * time.Millisecond),
		ReadBytes: Known[int64](0), WrittenBytes: Known[int64](0), Procs: Known[int64](0),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v (%v)\nwant %+v", got, err, want)
	}
}

// Version 2 counts a page that came back from swap as swapped for as long as it keeps its place there. It counts
// once, as memory, whether or not a program has mapped it. Kernels that do not say how many such pages there are
// count them as swapped.
func TestHeldCountsSwapCacheOnce(t *testing.T) {
	const stat = "anon 170\nfile 190\nshmem 30\ninactive_anon 210\nactive_anon 40\n"
	words := &memoryOf[V2].stat
	if got, want := words.held([]byte(stat+"swapcached 60\n"), 300),
		(Held{AnonBytes: 200, SwapBytes: 240, UnmappedBytes: 50, FileBytes: 100}); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got, want := words.held([]byte(stat), 300), (Held{AnonBytes: 200, SwapBytes: 300, FileBytes: 160}); got != want {
		t.Errorf("from an older kernel\ngot  %+v\nwant %+v", got, want)
	}
	if got := words.held([]byte(stat+"swapcached 60\n"), 10); got.SwapBytes != 0 {
		t.Errorf("swap that was freed between two readings: %+v", got)
	}
}

// A file that does not exist makes its values missing, not zero, and affects no other value.
func TestReadNothing(t *testing.T) {
	for _, machine := range []files{v1Machine(), hybridMachine(), v2Machine()} {
		g := fakeGroup(t, machine)
		got, err := g.Read()
		if err != nil || !reflect.DeepEqual(got, Reading{}) {
			t.Errorf("%s: got %+v (%v), want everything missing", g.host.Mode(), got, err)
		}
		if err := os.RemoveAll(g.dir()); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Read(); !errors.Is(err, ErrGone) {
			t.Errorf("%s: a removed group reads as %v", g.host.Mode(), err)
		}
	}
}

func TestApplyWrites(t *testing.T) {
	const dir = "sys/fs/cgroup/bellows-main/one/"
	g := fakeGroup(t, v2Machine().with(files{dir + "memory.max": "max\n", dir + "cpu.max": "max 100000\n"}))
	if err := g.Apply(t.Context(), Limits{MemoryBytes: At(4096), CPUMillicores: At(2500)}); err != nil {
		t.Fatal(err)
	}
	// The kernel does not truncate its files; a plain file still shows the rest of its old content.
	if got := slurp(g.unified, "memory.max"); got != "4096" {
		t.Errorf("memory.max is %q", got)
	}
	if got := slurp(g.unified, "cpu.max"); got != "250000 100000" {
		t.Errorf("cpu.max is %q", got)
	}
	err := g.Apply(t.Context(), Limits{SwapBytes: At(0)})
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("a bound whose file is missing: %v, want ErrUnsupported", err)
	}
}

// A write that the kernel does not finish is given up, and the next write waits for it only as long as its context
// allows.
func TestApplyGivesUp(t *testing.T) {
	g := fakeGroup(t, v2Machine())
	pipe := filepath.Join(g.unified, "memory.max")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		began := time.Now()
		err := g.Apply(ctx, Limits{MemoryBytes: At(1)})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a write that hangs: %v, want DeadlineExceeded", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("it was given up after %v", took)
		}
	}
	// A reader opens the file: the first write ends, and the next one proceeds.
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := g.Apply(testContext(t), Limits{MemoryBytes: At(2)}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	if n, err := reader.Read(got); err != nil || string(got[:n]) != "12" {
		t.Errorf("written was %q (%v), want 1 and then 2", got[:n], err)
	}
}

func TestWriteErrorKinds(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind error
	}{{unix.EBUSY, ErrBusy}, {unix.EAGAIN, ErrBusy}, {unix.ENODEV, ErrGone}, {unix.ENOENT, ErrGone}, {unix.EINVAL, nil}} {
		err := &WriteError{Path: "p", Content: "1", Err: c.err}
		for _, kind := range []error{ErrBusy, ErrGone, ErrUnsupported} {
			if errors.Is(err, kind) != (kind == c.kind) {
				t.Errorf("%v is %v: %t", err, kind, errors.Is(err, kind))
			}
		}
	}
}
