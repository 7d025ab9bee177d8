package agent

import (
	"fmt"
	"io"
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
	"github.com/bellows-rm/bellows/node/keeper"
)

// transfer writes to a file in blocks of 256 KiB, like dd: by way of the page cache, at the speed of a disk, or past
// it as fast as it can ("direct"), or, after it has written 64 MiB, it reads them past the page cache ("read"). The
// file becomes as large as mib says, and is then written anew. The file of marks grows by a byte per block.
func transfer(how, path, marks, mib string) {
	const block = 256 << 10
	var size int64
	fmt.Sscan(mib, &size)
	buffer := testswap.Memory[byte](block)
	flags := os.O_RDWR | os.O_CREATE
	if how != "buffered" {
		flags |= unix.O_DIRECT
	}
	f, err := os.OpenFile(path, flags, 0o600)
	mark, err2 := os.Create(marks)
	if err != nil || err2 != nil {
		fmt.Println(err, err2)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		at := int64(i) * block
		if how == "read" {
			_, err = f.ReadAt(buffer, at%(64<<20))
			if err == io.EOF {
				_, err = f.WriteAt(buffer, at%(64<<20))
			}
		} else {
			_, err = f.WriteAt(buffer, at%(size<<20))
		}
		if how == "buffered" {
			time.Sleep(2 * time.Millisecond)
		}
		if err == nil {
			_, err = mark.Write([]byte{'.'})
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// filler is a program that fills a file.
type filler struct {
	b     *bench
	order cluster.Order
	marks string
	next  cluster.DecisionID
}

// newFiller returns a program that transfers as fast as it can; start starts it. It skips where files are not on a
// disk.
func newFiller(b *bench, how string) *filler {
	var st unix.Stat_t
	if err := unix.Stat(b.dir, &st); err != nil || unix.Major(st.Dev) == 0 {
		b.t.Skipf("needs temporary files on a disk: %v", err)
	}
	path := filepath.Join(b.dir, "data")
	f := &filler{b: b, marks: path + ".marks", next: 100}
	size := 4096
	if slow() {
		size = 64 // the disk of a guest is small
	}
	f.order = b.order(os.Args[0], "transfer", how, path, f.marks, fmt.Sprint(size))
	f.order.Grant = resource.Of(1000, 192*resource.MiB)
	return f
}

func (f *filler) start() {
	f.b.t.Helper()
	f.b.Apply([]cluster.Order{f.order})
	f.b.next(cluster.DecisionDone)
	await(f.b.t, "the first block", func() bool { return f.bytes() > 0 })
}

// bytes is what it has transferred.
func (f *filler) bytes() int64 {
	info, err := os.Stat(f.marks)
	if err != nil {
		return 0
	}
	return info.Size() * 256 << 10
}

// rate is what it transfers per second, measured over a time.
func (f *filler) rate(over time.Duration) float64 {
	begun, before := time.Now(), f.bytes()
	time.Sleep(over)
	return float64(f.bytes()-before) / time.Since(begun).Seconds()
}

// throttle is an order to throttle it to some bytes per second for a time.
func (f *filler) throttle(rate resource.Amount, lasts time.Duration) cluster.Order {
	f.next++
	o := cluster.Order{Decision: cluster.Decision{ID: f.next, Kind: cluster.Throttle, Task: f.order.Task,
		Bound: resource.Vector{}.With(resource.Disk, rate)}, Container: f.order.Container}
	if rate > 0 {
		o.At = now().Add(lasts)
	}
	return o
}

func (f *filler) apply(kind cluster.EventKind, o cluster.Order) cluster.Event {
	f.b.t.Helper()
	f.b.Apply([]cluster.Order{o})
	e := f.b.next(kind)
	if e.Decision != o.ID || e.Task != o.Task || e.Run != o.Container.Run {
		f.b.t.Fatalf("%+v answers %+v", e, o)
	}
	return e
}

const throttledTo = 8 * resource.MiB

// holds checks that the program is kept within the bound, and not by much below it: a bound is no stop. On a busy
// machine it is stopped late and then stands still for longer, and the measurement may begin before or after: half of
// the bound to one and a half times is right.
func (f *filler) holds(bound resource.Amount) {
	f.b.t.Helper()
	rate := f.rate(5 * time.Second)
	f.b.t.Logf("%.1f MiB/s with a bound of %.1f MiB/s", rate/(1<<20), float64(bound)/(1<<20))
	if rate > 1.5*float64(bound) || rate < 0.4*float64(bound) {
		f.b.t.Errorf("it transfers %.0f bytes per second with a bound of %d", rate, bound)
	}
}

// exceeds checks that the program is not bounded.
func (f *filler) exceeds(bound resource.Amount) {
	f.b.t.Helper()
	await(f.b.t, "a higher rate", func() bool { return f.rate(200*time.Millisecond) > 2*float64(bound) })
}

// A throttled program stays within its bound, whether or not it uses the page cache, until the throttle ends by itself,
// by an order, or is replaced by another one.
func TestThrottle(t *testing.T) {
	onceInGuests(t)
	for _, how := range []string{"buffered", "direct", "read"} {
		t.Run(how, func(t *testing.T) {
			if testing.Short() && how != "buffered" {
				t.Skip("long: run without -short")
			}
			b := newBench(t)
			f := newFiller(b, how)
			f.start()
			e := f.apply(cluster.DecisionDone, f.throttle(throttledTo, time.Minute))
			c := b.container(f.order.Container)
			if got, want := e.Detail != "", !c.group.BoundsAll(); got != want {
				t.Errorf("it is throttled %q", e.Detail)
			}
			time.Sleep(time.Second) // what it owes from before
			f.holds(throttledTo)
			if how != "buffered" {
				f.apply(cluster.DecisionDone, f.throttle(throttledTo/1000, time.Minute))
				time.Sleep(300 * time.Millisecond)
				began := time.Now() // its I/O is held back, and so must not be its end
				b.Apply(kill(f.order.Container))
				if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed || time.Since(began) > 20*time.Second {
					t.Errorf("it ended as %s after %v", e.Outcome, time.Since(began))
				}
				return
			}
			f.apply(cluster.DecisionDone, f.throttle(throttledTo/4, time.Minute))
			f.holds(throttledTo / 4)
			f.apply(cluster.DecisionDone, f.throttle(0, 0))
			f.exceeds(throttledTo)
			if c.bounded(t) {
				t.Error("a record is left")
			}
			f.apply(cluster.DecisionDone, f.throttle(throttledTo, 2*time.Second))
			await(t, "the end of the throttle", func() bool { return !c.bounded(t) })
			f.exceeds(throttledTo)
			f.apply(cluster.DecisionDone, f.throttle(throttledTo/100, time.Minute))
			time.Sleep(100 * time.Millisecond)
			began := time.Now() // one that stands still sees that it is to end
			b.Apply(kill(f.order.Container))
			if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed || time.Since(began) > 20*time.Second {
				t.Errorf("it ended as %s after %v", e.Outcome, time.Since(began))
			}
			b.Apply([]cluster.Order{f.throttle(throttledTo, time.Minute)}) // there is no container to answer for
		})
	}
}

// Every order is answered once, in order; of several the last counts.
func TestThrottlesAreAnsweredOnce(t *testing.T) {
	b := newBench(t)
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	f := &filler{b: b, order: o, next: 100}
	var orders []cluster.Order
	for i := range 5 {
		orders = append(orders, f.throttle(resource.Amount(i+1)*resource.MiB, time.Minute))
	}
	b.Apply(orders)
	for i := range orders {
		e := <-b.Events()
		if e.Decision != orders[i].ID || e.Kind != cluster.DecisionDone &&
			(e.Kind != cluster.DecisionSuperseded || i == len(orders)-1) {
			t.Fatalf("%+v answers %+v", e, orders[i])
		}
	}
	if bound := b.container(o.Container).recorded(t).Bound; bound.Most != orders[4].Bound || bound.Until != orders[4].At {
		t.Errorf("the record is %+v", bound)
	}
	network := f.throttle(0, 0)
	network.Bound[resource.Network], network.At = 5, now().Add(time.Minute)
	if e := f.apply(cluster.DecisionFailed, network); !strings.Contains(e.Detail, "cannot bound the network bandwidth") {
		t.Errorf("failed with %q", e.Detail)
	}
	if b.container(o.Container).bounded(t) {
		t.Error("after a failure it is still throttled")
	}
}

// After a restart the container is throttled as before; what is over by then is lifted.
func TestThrottleOutlivesTheAgent(t *testing.T) {
	b := newBench(t)
	f := newFiller(b, "buffered")
	f.start()
	o := f.throttle(throttledTo, time.Minute)
	f.apply(cluster.DecisionDone, o)
	b.reopen()
	e := b.next(cluster.TaskAdopted)
	if is := e.Condition(); is.Bound != o.Bound || is.Until != o.At ||
		(e.Detail != "") != !b.container(o.Container).group.BoundsAll() {
		t.Errorf("found as %+v", e)
	}
	b.next(cluster.Synced)
	time.Sleep(time.Second)
	f.holds(throttledTo)
	f.apply(cluster.DecisionDone, f.throttle(throttledTo, 200*time.Millisecond))
	b.Close()
	time.Sleep(300 * time.Millisecond)
	b.open()
	if e := b.next(cluster.TaskAdopted); e.Condition() != (cluster.Condition{}) {
		t.Errorf("found as %+v", e)
	}
	f.exceeds(throttledTo)
	if b.container(o.Container).bounded(t) {
		t.Error("a record is left")
	}
}

// Without an agent, a throttled container does not stand still, and its throttle ends in time.
func TestThrottleEndsWithoutAnAgent(t *testing.T) {
	b := newBench(t)
	f := newFiller(b, "buffered")
	f.start()
	f.apply(cluster.DecisionDone, f.throttle(throttledTo, 4*time.Second))
	c := b.container(f.order.Container)
	b.Close()
	if err := c.group.Freeze(t.Context()); err != nil { // as if it had been killed at that moment
		t.Skipf("needs a freezer: %v", err)
	}
	agedLease(t, b.leasePath(), 2*leaseTerm)
	await(t, "the end of its stillness", func() bool { requested, _ := c.group.Frozen(); return !requested })
	f.exceeds(throttledTo)
	b.open()
	if e := b.next(cluster.TaskAdopted); e.Condition() != (cluster.Condition{}) || c.bounded(t) {
		t.Errorf("found as %+v, bounded: %v", e, c.bounded(t))
	}
}

// Each party ends its own hold only: the holds of the others stay.
func TestHoldersLetGoForThemselves(t *testing.T) {
	b := newBench(t)
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	c := b.container(o.Container)
	if _, ok := c.group.Has(cgroup.Freezer); !ok {
		t.Skip("needs a freezer")
	}
	for i, step := range []struct {
		change func() error
		stands bool
	}{
		{func() error { return c.kept.Stop(t.Context(), keeper.ByBackOff) }, true},
		{func() error { return c.kept.Stop(t.Context(), keeper.ByMemory) }, true},
		{func() error { return c.kept.Release(t.Context(), keeper.ByBackOff) }, true},
		{func() error { return c.kept.Stop(t.Context(), keeper.ByBackOff) }, true},
		{func() error { return c.kept.Release(t.Context(), keeper.ByMemory|keeper.BySwapping) }, true},
		{func() error { return c.kept.Breathe(t.Context(), keeper.ByBackOff) }, false},
		{func() error { return c.kept.Stop(t.Context(), keeper.ByMemory) }, false},
		{func() error { return c.kept.Release(t.Context(), keeper.ByBackOff) }, true},
		{func() error { return c.kept.Release(t.Context(), keeper.ByMemory|keeper.BySwapping) }, false},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if requested, _ := c.group.Frozen(); requested != step.stands {
			t.Fatalf("after step %d frozen is %v: %b", i, requested, c.kept.Stopped())
		}
	}
}

// TestDaemonDiesWhileItThrottles kills the daemon (SIGKILL) at random moments between an order and its effect, and
// after: what the next one finds is what was ordered last, or what was before if the order had not arrived. No
// program stays frozen.
func TestDaemonDiesWhileItThrottles(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	newBench(t) // skips where there can be no containers
	m := &mortal{t: t, b: &bench{t: t, dir: t.TempDir()}, gate: filepath.Join(t.TempDir(), "gate"),
		running: map[cluster.ContainerID]bool{}, pending: map[cluster.ContainerID]bool{},
		ended: map[cluster.ContainerID]cluster.Event{}}
	m.start()
	t.Cleanup(m.cleanUp)
	m.sync()
	f := newFiller(m.b, "buffered")
	m.order(f.order)
	for len(m.running) == 0 {
		m.next(20 * time.Second)
	}
	before, deaths := resource.Vector{}, 20
	if slow() {
		deaths = 8
	}
	for i := range deaths {
		o := f.throttle(resource.Amount(1+i%4)*throttledTo, time.Minute)
		if i%5 == 4 {
			o = f.throttle(0, 0)
		}
		if err := m.orders.Encode(o); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		_ = m.command.Process.Kill()
		answered := false
		for e := range m.events {
			answered = answered || e.Kind == cluster.DecisionDone && e.Decision == o.ID
		}
		m.reap()
		m.start()
		var found *cluster.Event
		for e := m.next(20 * time.Second); e.Kind != cluster.Synced; e = m.next(20 * time.Second) {
			if e.Kind == cluster.TaskAdopted {
				found = &e
			}
		}
		if found == nil {
			t.Fatalf("death %d: the task is not found", i)
		}
		bound := found.Condition().Bound
		if bound != o.Bound && (answered || bound != before) {
			t.Fatalf("death %d: found %+v; ordered %v, answered %v, before %v", i, found, o.Bound, answered, before)
		}
		before = bound
		was := f.bytes()
		await(t, "progress", func() bool { return f.bytes() > was })
	}
}
