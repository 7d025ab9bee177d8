package agent

import (
	"bytes"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// recorded is what is recorded of what is wanted of a container.
func (c *container) recorded(t testing.TB) keeper.Record {
	r, err := keeper.RecordOf(c.dir)
	if err != nil {
		t.Error(err)
	}
	return r
}

// bounded reports whether a bound of a container is recorded.
func (c *container) bounded(t testing.TB) bool { return c.recorded(t).Bound != cluster.Bound{} }

// holdBench is an agent with a container that an engine holds.
type holdBench struct {
	*bench
	c     *container
	start cluster.Order
	last  cluster.DecisionID
}

func newHeld(t *testing.T) *holdBench { return newHeldOf(t, cluster.Envelope{}) }

func newHeldOf(t *testing.T, e cluster.Envelope) *holdBench { return newHeldOn(newBench(t), e) }

func newHeldOn(b *bench, e cluster.Envelope) *holdBench {
	h := &holdBench{bench: b, start: b.order("sh", "-c", "sleep 1000 & sleep 1000"), last: 100}
	h.start.Envelope = e
	b.Apply([]cluster.Order{h.start})
	b.next(cluster.DecisionDone)
	h.c = b.container(h.start.Container)
	if _, ok := h.c.group.Has(cgroup.Freezer); !ok {
		b.t.Skip("needs a freezer")
	}
	return h
}

// hold orders that the container stands still for some holders, or for none.
func (h *holdBench) hold(by cluster.Holders) cluster.Order {
	h.last++
	o := h.start
	o.Decision = cluster.Decision{ID: h.last, Kind: cluster.Suspend, Task: h.start.Task, By: by}
	if by == 0 {
		o.Kind = cluster.Resume
	}
	h.Apply([]cluster.Order{o})
	return o
}

func (h *holdBench) stands(is bool) {
	h.t.Helper()
	if requested, _ := h.c.group.Frozen(); requested != is {
		h.t.Fatalf("frozen is %v, want %v: %b", requested, is, h.c.kept.Stopped())
	}
}

// A pause is carried out, answered once and reported, survives the agent, and ends by a Resume. The memory manager of
// the next agent does not hold what it finds paused.
func TestHold(t *testing.T) {
	for _, class := range []cluster.Class{cluster.Regular, cluster.Flex} {
		t.Run(class.String(), func(t *testing.T) { testHold(newHeldOf(t, cluster.Envelope{Class: class})) })
	}
}

func testHold(h *holdBench) {
	t := h.t
	o := h.hold(cluster.HeldByOwner)
	if e := h.next(cluster.TaskSuspended); e.By != cluster.HeldByOwner {
		t.Errorf("held by %q", e.By)
	}
	if e := h.next(cluster.DecisionDone); e.Decision != o.ID {
		t.Errorf("%+v answers %+v", e, o)
	}
	h.stands(true)
	h.reopen()
	if e := h.next(cluster.TaskAdopted); e.By != cluster.HeldByOwner || e.Condition().HeldBy != cluster.HeldByOwner {
		t.Errorf("found as %+v", e)
	}
	h.next(cluster.Synced)
	h.c = h.container(h.start.Container)
	h.stands(true)
	h.hold(0)
	h.next(cluster.TaskResumed)
	h.next(cluster.DecisionDone)
	h.stands(false)
	if h.c.recorded(t).Hold.By != 0 {
		t.Error("a record is left")
	}
}

// A paused container stays stopped without an agent, for longer than the lease of the last one.
func TestHoldWithoutAnAgent(t *testing.T) {
	h := newHeld(t)
	h.hold(cluster.HeldByOwner)
	h.next(cluster.DecisionDone)
	h.Close()
	agedLease(t, h.leasePath(), 2*leaseTerm)
	record := h.c.recorded(t)
	if err := release(h.c.spec, &record, false); err != nil {
		t.Fatal(err)
	}
	h.stands(true)
	h.open()
	h.next(cluster.TaskAdopted)
}

// A container that a person, leveling, the memory manager and a throttle hold at once goes on when the last of them
// lets go, whatever the order.
func TestHoldersInEveryOrder(t *testing.T) {
	h := newHeld(t)
	engine := cluster.Hold{}
	holds := func(by cluster.Holders, until timeline.Time) func() error {
		return func() error {
			engine.By ^= by
			if until != 0 {
				engine.Until ^= until
			}
			return h.keeper.Hold(h.c.kept, engine)
		}
	}
	person, leveling := holds(cluster.HeldByOwner, 0), holds(cluster.HeldByLeveling, timeline.Never-1)
	type holder struct{ begin, end func() error }
	holders := []holder{
		{person, person},
		{leveling, leveling},
		{func() error {
			return h.c.kept.Stop(t.Context(), keeper.ByMemory)
		}, func() error { return h.c.kept.Release(t.Context(), keeper.ByMemory|keeper.BySwapping) }},
		{func() error {
			return h.c.kept.Stop(t.Context(), keeper.ByBackOff)
		}, func() error { return h.c.kept.Release(t.Context(), keeper.ByBackOff) }},
	}
	orders := everyOrder(len(holders))
	for _, begins := range orders[:6] { // in which the first begins first: the ends come in every order
		for _, ends := range orders {
			for _, i := range begins {
				if err := holders[i].begin(); err != nil {
					t.Fatal(err)
				}
				h.stands(true)
			}
			for k, i := range ends {
				if err := holders[i].end(); err != nil {
					t.Fatal(err)
				}
				if h.stands(k < len(ends)-1); t.Failed() {
					t.Fatalf("begun in the order %v, ended in %v", begins, ends)
				}
				if record := h.c.recorded(t).Hold; record != engine {
					t.Fatalf("recorded %+v, want %+v", record, engine)
				}
			}
		}
	}
}

// everyOrder returns the orders of the numbers below n.
func everyOrder(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for first := range n {
		for _, rest := range everyOrder(n - 1) {
			order := []int{first}
			for _, i := range rest {
				if i >= first {
					i++
				}
				order = append(order, i)
			}
			all = append(all, order)
		}
	}
	return all
}

// level orders that leveling holds the container until a time.
func (h *holdBench) level(by cluster.Holders, until timeline.Time) {
	h.last++
	o := h.start
	o.Decision = cluster.Decision{ID: h.last, Kind: cluster.Suspend, Task: h.start.Task, By: by | cluster.HeldByLeveling,
		At: until, For: cluster.TaskID{Job: 7}}
	h.Apply([]cluster.Order{o})
}

// A container that leveling holds stands still, survives the agent with its end, and ends its hold by itself some
// time after the end, because no engine does.
func TestLevelingEndsByItself(t *testing.T) {
	h := newHeld(t)
	until := now().Add(time.Second)
	h.level(0, until)
	if e := h.next(cluster.TaskSuspended); e.By != cluster.HeldByLeveling {
		t.Errorf("held by %q", e.By)
	}
	h.next(cluster.DecisionDone)
	h.stands(true)
	h.reopen()
	e := h.next(cluster.TaskAdopted)
	if c := e.Condition(); c.HeldBy != cluster.HeldByLeveling || c.HeldUntil != until ||
		c.HeldFor != (cluster.TaskID{Job: 7}) {
		t.Errorf("found as %+v", c)
	}
	h.c = h.container(h.start.Container)
	h.next(cluster.TaskResumed)
	if early := until.Add(keeper.LevelingGrace).Sub(now()); early > 0 {
		t.Errorf("it goes on %v too early", early)
	}
	h.stands(false)
	await(t, "the end of its record", func() bool { return h.c.recorded(t).Hold.By == 0 })
}

// Without an agent, leveling lets a container go on when the lease ends; a pause of its owner stays.
func TestLevelingWithoutAnAgent(t *testing.T) {
	for by, stays := range map[cluster.Holders]bool{0: false, cluster.HeldByOwner: true} {
		h := newHeld(t)
		h.level(by, now().Add(time.Hour))
		h.next(cluster.DecisionDone)
		h.Close()
		agedLease(t, h.leasePath(), 2*leaseTerm)
		await(t, "the guard's work", func() bool { frozen, _ := h.c.group.Frozen(); return frozen == stays })
		record := h.c.recorded(t)
		if want := by | cluster.HeldByLeveling; record.Hold.By != want {
			t.Errorf("recorded for %q, want %q", record.Hold.By, want)
		}
		if err := release(h.c.spec, &record, false); err != nil {
			t.Fatal(err)
		}
		h.stands(stays)
		h.open()
		h.next(cluster.TaskAdopted)
	}
}

// A whole machine is stopped and goes on: at its first look the supervisor finds an expired lease, which the agent
// renews then. The container stays held. It goes on if the agent does not renew the lease.
func TestStoppedMachineGoesOn(t *testing.T) {
	h := newHeld(t)
	h.level(0, now().Add(time.Hour))
	h.next(cluster.DecisionDone)
	s := *h.c.spec
	s.Lease = filepath.Join(t.TempDir(), "lease")
	l := lookout{f: h.c.dir, s: &s}
	for _, c := range []struct {
		age    time.Duration
		stands bool
	}{{0, true}, {2 * leaseTerm, true}, {0, true}, {2 * leaseTerm, true}, {2 * leaseTerm, false}} {
		agedLease(t, s.Lease, c.age)
		l.look()
		h.stands(c.stands)
	}
}

// Of orders that come faster than they are carried out, each is answered once, and the last one counts.
func TestHoldsAreAnsweredOnce(t *testing.T) {
	h := newHeld(t)
	var open []cluster.DecisionID
	for i := range 9 {
		by := cluster.HeldByOwner
		if i%2 == 1 {
			by = 0
		}
		open = append(open, h.hold(by).ID)
	}
	for len(open) > 0 {
		e := h.nextOf(cluster.DecisionDone, cluster.DecisionSuperseded)
		if at := slices.Index(open, e.Decision); at != 0 {
			t.Fatalf("%+v, open are %v", e, open)
		}
		open = open[1:]
		if len(open) == 0 && e.Kind != cluster.DecisionDone {
			t.Errorf("the last order was answered by %s", e.Kind)
		}
	}
	h.stands(true)
	h.hold(0)
	h.next(cluster.DecisionDone)
}

// If the kernel fails, the container is as before, and so are its record and what is reported.
func TestHoldThatFails(t *testing.T) {
	h := newHeld(t)
	whole := h.c.kept.Group
	gone, err := h.groups.root.Create("gone")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.c.kept.Group = gone
	err = h.keeper.Hold(h.c.kept, cluster.Hold{By: cluster.HeldByOwner})
	h.c.kept.Group = whole
	if err == nil || h.c.kept.Held().By != 0 || h.c.kept.Stopped() != 0 || h.c.recorded(t).Hold.By != 0 {
		t.Errorf("error %v, held for %q: %b", err, h.c.kept.Held().By, h.c.kept.Stopped())
	}
	if err := h.keeper.Hold(h.c.kept, cluster.Hold{By: cluster.HeldByOwner}); err != nil {
		t.Fatal(err)
	}
	h.c.kept.Group = gone
	err = h.keeper.Hold(h.c.kept, cluster.Hold{By: cluster.HeldByOwner | cluster.HeldByMemory})
	h.c.kept.Group = whole
	if record := h.c.recorded(t).Hold; err == nil || h.c.kept.Held().By != cluster.HeldByOwner ||
		record.By != cluster.HeldByOwner {
		t.Errorf("error %v, held for %q, recorded for %q", err, h.c.kept.Held().By, record.By)
	}
}

// A paused or leveled container whose programs send heartbeats breathes, whatever its class, by one goroutine however
// often it is paused and resumed, and does not run on where its agent ends within a breath.
func TestPausedBreaths(t *testing.T) {
	for _, class := range []cluster.Class{cluster.Regular, cluster.Flex} {
		for _, holder := range []cluster.Holders{cluster.HeldByOwner, cluster.HeldByLeveling} {
			t.Run(class.String()+" by "+holder.String(), func(t *testing.T) { pausedBreaths(t, class, holder) })
		}
	}
}

// breathing returns the number of goroutines that let held containers breathe.
func breathing(t *testing.T) int {
	var stacks bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		t.Fatal(err)
	}
	return bytes.Count(stacks.Bytes(), []byte(").breatheWhileHeld("))
}

func pausedBreaths(t *testing.T, class cluster.Class, holder cluster.Holders) {
	h := newHeldOf(t, cluster.Envelope{Class: class, HeartbeatTimeout: 400 * time.Millisecond})
	breathes := func() bool {
		if _, slows := h.c.group.Has(cgroup.CPU); !slows {
			frozen, _ := h.c.group.Frozen()
			return !frozen
		}
		millicores, _ := cpuOf(h.t, h.c.group)
		return millicores > keeper.SuspendedMillicores
	}
	for _, by := range []cluster.Holders{cluster.HeldByOwner, 0, cluster.HeldByLeveling,
		cluster.HeldByOwner | cluster.HeldByLeveling, 0, holder} {
		if err := h.keeper.Hold(h.c.kept, cluster.Hold{By: by, Until: now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "one goroutine that lets it breathe", func() bool { return breathing(t) == 1 })
	await(t, "a breath", breathes)
	await(t, "the end of a breath", func() bool { return !breathes() })
	await(t, "another breath", breathes)
	h.Close()
	if breathes() {
		t.Error("it breathes without an agent")
	}
	h.open()
	h.next(cluster.TaskAdopted)
}

// The programs of a paused container see that it is to end, whatever its class.
func TestPausedProgramsSeeTheirEnd(t *testing.T) {
	h := newHeld(t)
	o := h.order("sh", "-c", "trap 'echo ends; exit 3' TERM; echo runs; while :; do sleep 0.02; done")
	h.Apply([]cluster.Order{o})
	h.next(cluster.DecisionDone)
	h.awaitOutput(o, "runs\n")
	h.start = o
	h.hold(cluster.HeldByOwner)
	h.next(cluster.DecisionDone)
	h.Apply(kill(o.Container))
	if e := h.next(cluster.TaskEnded); e.Exit == nil || e.Exit.Code != 3 {
		t.Errorf("it ended by %+v: %s", e.Exit, e.Detail)
	}
	h.awaitOutput(o, "runs\nends\n")
}

// The next agent resumes a REGULAR container that the last agent left frozen without a record.
func TestFrozenWithoutARecord(t *testing.T) {
	h := newHeld(t)
	h.Close()
	if err := h.c.group.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.open()
	h.next(cluster.TaskAdopted)
	h.c = h.container(h.start.Container)
	h.stands(false)
}
