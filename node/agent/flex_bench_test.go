package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// These benchmarks compare two ways of doing a thing on this machine, in pairs that alternate, and report medians and
// the tenth and ninetieth percentiles. One iteration is the whole comparison. studies/measured.md keeps what they
// once said.

// spread is what was measured, sorted.
type spread []float64

func (s spread) at(share float64) float64 {
	slices.Sort(s)
	return s[min(len(s)-1, int(share*float64(len(s))))]
}

func (s spread) report(b *testing.B, unit string) {
	b.ReportMetric(s.at(0.5), unit+"-median")
	b.ReportMetric(s.at(0.1), unit+"-p10")
	b.ReportMetric(s.at(0.9), unit+"-p90")
	b.Logf("%s: median %.4g, p10 %.4g, p90 %.4g, from %.4g to %.4g of %d; load %s", unit, s.at(0.5), s.at(0.1),
		s.at(0.9), s.at(0), s.at(1), len(s), load())
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:1], "")
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// puppet is a program that carries out commands line by line: hold N (MiB that do not compress), touch (all once),
// write (all, repeatedly, until the next command).
func puppet() {
	in := bufio.NewScanner(os.Stdin)
	words := make(chan string)
	go func() {
		for in.Scan() {
			words <- in.Text()
		}
		os.Exit(0)
	}()
	var block []byte
	for word := range words {
		switch {
		case strings.HasPrefix(word, "hold "):
			var mib int
			fmt.Sscan(word[5:], &mib)
			block = make([]byte, mib<<20)
			r := rand.NewChaCha8([32]byte{1})
			_, _ = r.Read(block)
		case word == "touch":
			for i := 0; i < len(block); i += 4096 {
				block[i]++
			}
		case word == "write":
			fmt.Println("writing")
			for at := 0; ; at = (at + 4096) % len(block) {
				block[at]++
				if at%(1<<20) == 0 {
					select {
					case <-words:
					default:
						continue
					}
					break
				}
			}
		}
		fmt.Println("done")
	}
}

// strings are how a puppet is led.
type stage struct {
	b     *testing.B
	group *cgroup.Group
	c     *keeper.Container
	in    io.Writer
	out   *bufio.Scanner
	leave func() // the program ends and the group goes
}

func newStage(b *testing.B) *stage {
	host, err := cgroup.Discover("")
	if err != nil {
		b.Skipf("needs control groups: %v", err)
	}
	root, err := host.Root(fmt.Sprintf("bench-%d", os.Getpid()), cgroup.Memory, cgroup.Freezer)
	if err != nil {
		b.Skipf("needs control groups of its own: %v", err)
	}
	g, err := root.Create("puppet")
	if err != nil {
		b.Fatal(err)
	}
	p := exec.Command(os.Args[0], "puppet")
	in, err := p.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	if err := moveTo(g, p.Process.Pid); err != nil {
		b.Fatal(err)
	}
	s := &stage{b: b, group: g, c: keeper.NewContainer(keeper.Setup{Group: g}), in: in, out: bufio.NewScanner(out)}
	s.leave = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = g.Thaw(ctx)
		_ = p.Process.Kill()
		_ = p.Wait()
		if err := root.Remove(ctx); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(s.leave)
	return s
}

func (s *stage) say(word, answer string) {
	s.b.Helper()
	if _, err := fmt.Fprintln(s.in, word); err != nil {
		s.b.Fatal(err)
	}
	if !s.out.Scan() || s.out.Text() != answer {
		s.b.Fatalf("%s: %q", word, s.out.Text())
	}
}

func (s *stage) must(err error) {
	s.b.Helper()
	if err != nil {
		s.b.Fatal(err)
	}
}

// shrink is our way to take its memory.
func (s *stage) shrink() {
	s.b.Helper()
	_, err := new(keeper.Keeper).Act(s.b.Context(), s.c, memory.Envelope{},
		memory.Action{Kind: memory.Shrink, Limit: keptMiB << 20, Suspended: true})
	s.must(err)
}

const heldMiB, keptMiB = 384, 64

// lower is the paper's way: the limit alone, again and again until the kernel has done it, or for 5 s.
func (s *stage) lower(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		err := s.group.Apply(ctx, cgroup.Limits{MemoryBytes: cgroup.At(keptMiB << 20)})
		if err == nil || ctx.Err() != nil {
			return
		}
		if !errors.Is(err, cgroup.ErrBusy) {
			s.b.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// direct writes as much as is reclaimed to the device of the swap file, past the page cache, and returns how long
// that took.
func direct(b *testing.B, dir string) time.Duration {
	const block = 4 << 20
	raw := make([]byte, block+4096)
	r := rand.NewChaCha8([32]byte{2})
	_, _ = r.Read(raw)
	aligned := raw[4096-int(uintptr(unsafe.Pointer(&raw[0]))%4096):][:block]
	path := filepath.Join(dir, "direct")
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_DIRECT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		b.Skipf("needs direct transfers: %v", err)
	}
	defer os.Remove(path)
	defer unix.Close(fd)
	if err := unix.Fallocate(fd, 0, 0, (heldMiB-keptMiB)<<20); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for range (heldMiB - keptMiB) << 20 / block {
		if _, err := unix.Write(fd, aligned); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// BenchmarkReclaim takes 320 of 384 MiB that do not compress from a container that rests and from one that writes all
// the time, in our way and by lowering the limit alone; and compares with a direct write of as much.
func BenchmarkReclaim(b *testing.B) {
	for _, writing := range []bool{false, true} {
		b.Run(map[bool]string{false: "idle", true: "writing"}[writing], func(b *testing.B) {
			testswap.Need(b, 1<<30)
			dir := b.TempDir()
			s := newStage(b)
			s.must(s.group.Apply(b.Context(), cgroup.Limits{MemoryBytes: cgroup.At(2 * heldMiB << 20)}))
			s.say(fmt.Sprint("hold ", heldMiB), "done")
			var ours, theirs, ratio, share spread
			for range b.N {
				for pair := range 10 {
					var took [2]time.Duration
					for i := range 2 {
						if writing {
							s.say("write", "writing")
						}
						way := (pair + i) % 2
						began := time.Now()
						if way == 0 {
							s.shrink()
						} else {
							s.lower(b.Context())
						}
						took[way] = time.Since(began)
						s.must(s.group.Apply(b.Context(), cgroup.Limits{MemoryBytes: cgroup.At(2 * heldMiB << 20)}))
						s.must(s.group.Thaw(b.Context()))
						if writing {
							s.say("rest", "done")
						}
						s.say("touch", "done")
					}
					raw := direct(b, dir)
					ours, theirs = append(ours, ms(took[0])), append(theirs, ms(took[1]))
					ratio, share = append(ratio, float64(took[1])/float64(took[0])), append(share, float64(raw)/float64(took[0]))
				}
			}
			ours.report(b, "ours-ms")
			theirs.report(b, "limit-alone-ms")
			ratio.report(b, "limit-alone/ours")
			share.report(b, "direct-write/ours")
		})
	}
}

// BenchmarkResume brings 320 MiB back from swap by prefetching, by faults, and by prefetching while the program runs:
// from the growth of the limit until the program has touched everything.
func BenchmarkResume(b *testing.B) {
	testswap.Need(b, 1<<30)
	s := newStage(b)
	s.must(s.group.Apply(b.Context(), cgroup.Limits{MemoryBytes: cgroup.At(2 * heldMiB << 20)}))
	s.say(fmt.Sprint("hold ", heldMiB), "done")
	var before, faults, beside, ratio, runs spread
	for range b.N {
		for round := range 10 {
			var took [3]time.Duration
			for i := range 3 {
				s.shrink()
				way := (round + i) % 3
				began := time.Now()
				s.must(s.group.Apply(b.Context(), cgroup.Limits{MemoryBytes: cgroup.At(2 * heldMiB << 20)}))
				prefetch := func() error {
					_, err := s.group.Prefetch(b.Context(), 1<<40)
					return err
				}
				fetched := make(chan error, 1)
				switch way {
				case 0:
					fetched <- prefetch()
				case 1:
					fetched <- nil
				case 2:
					go func() { fetched <- prefetch() }()
				}
				s.must(s.group.Thaw(b.Context()))
				s.say("touch", "done")
				took[way] = time.Since(began)
				s.must(<-fetched)
			}
			before, faults = append(before, ms(took[0])), append(faults, ms(took[1]))
			beside = append(beside, ms(took[2]))
			ratio = append(ratio, float64(took[1])/float64(took[0]))
			runs = append(runs, float64(took[1])/float64(took[2]))
		}
	}
	before.report(b, "prefetch-ms")
	faults.report(b, "faults-ms")
	beside.report(b, "beside-ms")
	ratio.report(b, "faults/prefetch")
	runs.report(b, "faults/beside")
}

// benchAgent is an agent for a benchmark.
func benchAgent(b *testing.B, capacity resource.Amount) *Agent {
	return benchAgentOf(b, capacity, memory.Default())
}

func benchAgentOf(b *testing.B, capacity resource.Amount, p memory.Parameters) *Agent {
	a, err := Open(Config{Dir: b.TempDir(), Node: "n1", Capacity: resource.Of(2000, capacity),
		Grace: 300 * time.Millisecond, Memory: p})
	if _, ok := err.(*NoCgroupError); ok {
		b.Skipf("needs a control group with a memory controller: %v", err)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := a.Remove(ctx); err != nil {
			b.Error(err)
		}
	})
	return a
}

func benchOrder(a *Agent, min resource.Amount, args ...string) cluster.Order {
	job++
	id := cluster.ContainerID{Task: cluster.TaskID{Job: job}, Run: 1}
	out := filepath.Join(a.dir, "logs", id.String())
	return cluster.Order{
		Decision:  cluster.Decision{ID: 7, Kind: cluster.Start, Task: id.Task, Grant: resource.Of(1000, min)},
		Container: id,
		Launch: &cluster.Launch{Args: args, Env: []string{"PATH=" + path}, Dir: a.dir,
			As: cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}, Stdout: out + ".out",
			Stderr: out + ".err"},
	}
}

func wait(b *testing.B, a *Agent, kind cluster.EventKind) cluster.Event {
	b.Helper()
	for e := range a.Events() {
		if e.Kind == kind {
			return e
		}
	}
	b.Fatal("the agent is closed")
	return cluster.Event{}
}

// swappedOut is how many pages the machine has ever swapped out.
func swappedOut() (n int64) {
	text, _ := os.ReadFile("/proc/vmstat")
	_, after, _ := strings.Cut(string(text), "pswpout ")
	fmt.Sscan(after, &n)
	return n
}

// number is what a file says.
func number(path string) (n int64) {
	text, _ := os.ReadFile(path)
	fmt.Sscan(string(text), &n)
	return n
}

// occupy keeps every core busy with a loop.
func occupy(b *testing.B) {
	for range runtime.NumCPU() {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = loop.Process.Kill(); _ = loop.Wait() })
	}
}

// observe does something on a thread that does not wait for a core, so that it sees things when they happen.
func observe(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = keeper.TakePriority() // else it sees them later
		do()
	}()
	<-done
}

func flexOrder(a *Agent, min, max resource.Amount, args ...string) cluster.Order {
	o := benchOrder(a, min, args...)
	o.Envelope = cluster.Envelope{Class: cluster.Flex, Max: max}
	return o
}

// under runs a benchmark on idle cores and on busy ones.
func under(b *testing.B, name string, bench func(b *testing.B)) {
	b.Run(name+"/idle", bench)
	b.Run(name+"/busy", func(b *testing.B) {
		occupy(b)
		bench(b)
	})
}

// BenchmarkReaction is the time from the first page that a container swaps out until it is suspended, on a node without
// room, and until it has grown, on one with room; on idle cores and with a busy loop on each.
func BenchmarkReaction(b *testing.B) {
	for what, capacity := range map[string]resource.Amount{"suspension": 80 * resource.MiB, "growth": 512 * resource.MiB} {
		under(b, what, func(b *testing.B) {
			testswap.Need(b, 1<<30)
			a := benchAgent(b, capacity)
			// Beside one that comes first and will end: the first that lacks memory pages rather than wait for nothing.
			first := flexOrder(a, 16*resource.MiB, 16*resource.MiB, "sleep", "1000")
			a.Apply(enveloped([]cluster.Order{first}))
			wait(b, a, cluster.DecisionDone)
			defer func() {
				a.Apply(kill(first.Container))
				wait(b, a, cluster.TaskEnded)
				a.Forget(first.Container)
			}()
			var all spread
			early := 0
			for range b.N {
				for range 20 {
					d, swapped := reaction(b, a, what)
					if !swapped {
						early++
						continue
					}
					all = append(all, ms(d))
				}
			}
			b.Logf("%d times before anything was swapped out", early)
			if len(all) > 0 {
				all.report(b, "ms")
			}
		})
	}
}

func reaction(b *testing.B, a *Agent, what string) (d time.Duration, swapped bool) {
	b.Helper()
	o := flexOrder(a, 64*resource.MiB, 512*resource.MiB, os.Args[0], "hold", "160", "1000")
	a.Apply(enveloped([]cluster.Order{o}))
	wait(b, a, cluster.DecisionDone)
	g := a.container(o.Container).group
	file, _ := g.File(cgroup.Memory, "memory.limit_in_bytes")
	fails, _ := g.File(cgroup.Memory, "memory.failcnt")
	done := ""
	if state, ok := g.File(cgroup.Freezer, "freezer.state"); ok && what == "suspension" {
		file, done = state, "FROZEN\n"
	}
	start, err := os.ReadFile(file)
	if err != nil {
		b.Skipf("needs version 1 control groups, whose files it watches: %v", err)
	}
	observe(func() {
		var full int64 // pages that the machine had swapped out when the group was full
		var first time.Time
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
			switch {
			case full == 0 && number(fails) > 0:
				full = swappedOut()
			case full > 0 && first.IsZero() && swappedOut() > full:
				first = time.Now()
			}
			if text, _ := os.ReadFile(file); done != "" && string(text) == done || done == "" && string(text) != string(start) {
				break
			}
		}
		d, swapped = time.Since(first), !first.IsZero()
	})
	a.Apply(kill(o.Container))
	wait(b, a, cluster.TaskEnded)
	a.Forget(o.Container)
	return d, swapped
}

// BenchmarkNotice compares the ways in which the kernel tells that a group is full with reading it every 10 ms: how
// long after the first page was swapped out each tells, and how often it is the first.
func BenchmarkNotice(b *testing.B) {
	const limit, brim = 64 << 20, 1 << 20
	under(b, "full", func(b *testing.B) {
		testswap.Need(b, 1<<30)
		after := map[cgroup.Means]spread{}
		first := map[cgroup.Means]int{}
		for range b.N {
			for range 10 {
				at := notices(b, limit, limit-brim)
				var won cgroup.Means
				for m, d := range at {
					after[m] = append(after[m], ms(d))
					if won == "" || d < at[won] {
						won = m
					}
				}
				first[won]++
			}
		}
		for m, s := range after {
			b.Logf("%s told first %d times", m, first[m])
			s.report(b, strings.ReplaceAll(string(m), " ", "-")+"-ms")
		}
	})
}

const polled cgroup.Means = "poll"

// notices fills a group and returns when each means notified of it, since the first page was swapped out.
func notices(b *testing.B, limit, near int64) map[cgroup.Means]time.Duration {
	s := newStage(b)
	defer s.leave()
	w, err := cgroup.NewWatcher()
	s.must(err)
	defer w.Close()
	s.must(s.group.Apply(b.Context(), cgroup.Limits{MemoryBytes: cgroup.At(limit)}))
	w.Add(s.group)
	defer w.Remove(s.group)
	_ = w.Near(s.group, near) // in version 2 there is none
	gauge, err := s.group.Gauge()
	s.must(err)
	defer gauge.Close()
	at := map[cgroup.Means]time.Time{}
	told := func(m cgroup.Means) {
		if _, ok := at[m]; !ok {
			at[m] = time.Now()
		}
	}
	const swapping = "swapping"
	before := swappedOut()
	_, err = fmt.Fprintln(s.in, "hold 160")
	s.must(err)
	observe(func() {
		var look time.Time
		for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end) && len(at) < 5; {
			for _, n := range w.Wait(time.Millisecond) {
				told(n.Means)
				w.Rearm(n.Group)
			}
			if swappedOut() > before {
				told(swapping)
			}
			if time.Since(look) > 10*time.Millisecond {
				look = time.Now()
				if held, err := gauge.Read(); err == nil && held.SwapBytes > 0 && held.AnonBytes+held.SwapBytes >= limit {
					told(polled)
				}
			}
		}
	})
	since := map[cgroup.Means]time.Duration{}
	for m, t := range at {
		if m != swapping {
			since[m] = t.Sub(at[swapping])
		}
	}
	return since
}

// work fills the given number of MiB and then sorts and adds them up, as a batch job does, the given number of times.
func work(size, rounds string) {
	var mib, times int
	fmt.Sscan(size, &mib)
	fmt.Sscan(rounds, &times)
	var all [][]uint64
	r := rand.New(rand.NewPCG(1, 2))
	for range mib {
		part := make([]uint64, 1<<17)
		for i := range part {
			part[i] = r.Uint64()
		}
		slices.Sort(part)
		all = append(all, part)
	}
	sum := uint64(0)
	for range times {
		for _, part := range all {
			for i, v := range part {
				sum = sum*31 + v
				part[i] = sum
			}
			slices.Sort(part)
		}
	}
	fmt.Println(sum)
	os.Exit(0)
}

// BenchmarkOverhead runs a program that needs 16 times the initial memory of its FLEX container, and the same program
// in a static container that is large enough. It does so for a short program, for one that works with the memory it has
// filled, and with the paper's constants.
func BenchmarkOverhead(b *testing.B) {
	for _, c := range []struct {
		name, rounds string
		pairs        int
		memory       memory.Parameters
	}{
		{"short", "0", 20, memory.Default()},
		{"long", "8", 1, memory.Default()},
		{"short-paper", "0", 1, memory.Paper()},
	} {
		b.Run(c.name, func(b *testing.B) {
			testswap.Need(b, 1<<30)
			a := benchAgentOf(b, 2*resource.GiB, c.memory)
			var flex, static, more spread
			for range b.N {
				for pair := range c.pairs {
					var took [2]time.Duration
					for i := range 2 {
						way := (pair + i) % 2
						o := benchOrder(a, 384*resource.MiB, os.Args[0], "work", "256", c.rounds)
						if way == 0 {
							o = flexOrder(a, 16*resource.MiB, 384*resource.MiB, o.Launch.Args...)
						}
						took[way] = runTime(b, a, o)
					}
					flex, static = append(flex, ms(took[0])), append(static, ms(took[1]))
					more = append(more, 100*(float64(took[0])/float64(took[1])-1))
				}
			}
			flex.report(b, "flex-ms")
			static.report(b, "static-ms")
			more.report(b, "overhead-%")
		})
	}
}

// runTime is how long a program ran, which must succeed.
func runTime(b *testing.B, a *Agent, o cluster.Order) time.Duration {
	b.Helper()
	a.Apply(enveloped([]cluster.Order{o}))
	e := wait(b, a, cluster.TaskEnded)
	a.Forget(o.Container)
	if e.Outcome != cluster.Succeeded {
		b.Fatalf("it ended as %s: %s", e.Outcome, e.Detail)
	}
	return time.Duration(e.Exit.Ended - e.Exit.Started)
}

// BenchmarkKeeper is the share of a core that managing 500 FLEX containers takes, reading included: 475 that rest,
// and 25 whose memory comes and goes.
func BenchmarkKeeper(b *testing.B) {
	a := benchAgent(b, 500*resource.GiB)
	var groups []*cgroup.Group
	for i := range 500 {
		job++
		id := cluster.ContainerID{Task: cluster.TaskID{Job: job}, Run: 1}
		g, err := a.groups.make(a.closed, id.String(), resource.Of(1000, 64*resource.MiB),
			cluster.Envelope{Class: cluster.Flex}, resource.GiB)
		if err != nil {
			b.Fatal(err)
		}
		groups = append(groups, g)
		c := &container{id: id, group: g, spec: &spec{Container: id, Grant: resource.Of(1000, 64*resource.MiB),
			Envelope: cluster.Envelope{Class: cluster.Flex, Min: 64 * resource.MiB, Max: resource.GiB, Rank: int(job)}}}
		if i%20 == 0 {
			p := exec.Command(os.Args[0], "pulse", "32")
			if err := p.Start(); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
			if err := moveTo(g, p.Process.Pid); err != nil {
				b.Fatal(err)
			}
		}
		a.keeper.Started(c.keep(g, c.spec))
	}
	b.Cleanup(func() {
		for _, g := range groups {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			_ = g.Kill(ctx)
			_ = g.Remove(ctx)
			cancel()
		}
	})
	// The first readings, what is lent at first and, after memory.Parameters.Hold, what of it is taken back.
	time.Sleep(16 * time.Second)
	var all spread
	for range b.N {
		for range 8 {
			before, began := cpuTime(), time.Now()
			time.Sleep(5 * time.Second) // in which each is read
			all = append(all, 100*float64(cpuTime()-before)/float64(time.Since(began)))
		}
	}
	all.report(b, "%-of-a-core")
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pulse alternates between using the given number of MiB and a quarter of them, every two seconds.
func pulse(size string) {
	var mib int
	fmt.Sscan(size, &mib)
	for {
		block, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			os.Exit(1)
		}
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
			if i%(1<<20) == 0 {
				time.Sleep(60 * time.Millisecond)
			}
		}
		_ = unix.Munmap(block)
		time.Sleep(2 * time.Second)
	}
}

// moveTo moves a process into a group.
func moveTo(g *cgroup.Group, pid int) (err error) {
	for _, file := range g.JoinFiles() {
		err = errors.Join(err, os.WriteFile(file, fmt.Append(nil, pid), 0))
	}
	return err
}
