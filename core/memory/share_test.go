package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// hostile is the user whose programs grow.
const hostile = "0"

// besideGrowing is a node with the programs of two to four users. Those of all but the first need, with headroom, less
// than a share of the node together. The first is hostile: one program that doubles for ever, thirty at once, or some
// that come at any time. gives says that what the hostile user's programs hold can be taken from them:
// they may be requeued.
func besideGrowing(t testing.TB, r *rand.Rand, swap resource.Amount, gives bool) *kernel {
	const mib = 1 << 20
	k := newKernel(t, Default(), 640*mib, swap, 100*mib)
	k.tick, k.again = 10*time.Millisecond, true
	users := 2 + r.IntN(3)
	var all []*program
	add := func(owner int, p *program) {
		p.Class, p.Max, p.Owner, p.pass = cluster.Flex, k.memory, fmt.Sprint(owner), time.Second
		all = append(all, p)
	}
	at := func() timeline.Time { return timeline.Time(r.IntN(20)) * timeline.Time(time.Second) }
	for owner := 1; owner < users; owner++ {
		rest := k.memory / resource.Amount(users) * 6 / 10
		for range 1 + r.IntN(4) {
			peak := min(rest, resource.Amount(1+r.IntN(200))*mib)
			if rest -= max(peak, 16*mib); rest < 0 {
				break
			}
			p := &program{arrives: at(), work: time.Duration(10+r.IntN(20)) * time.Second}
			p.Min, p.Requeue, p.sets = 16*mib, r.IntN(2) == 0, []resource.Amount{mib, peak, peak}
			if r.IntN(2) == 0 {
				p.Need = max(peak, p.Min)
			}
			add(owner, p)
		}
	}
	doubles := []resource.Amount{mib}
	for last := mib; last < 2*int(k.memory); last *= 2 {
		doubles = append(doubles, resource.Amount(2*last))
	}
	n, begins := [...]int{1, 30, 1 + r.IntN(8)}[r.IntN(3)], at()
	for range n {
		p := &program{arrives: begins, work: time.Duration(10+r.IntN(50)) * time.Second}
		if n < 30 && r.IntN(2) == 0 {
			p.arrives = at()
		}
		p.Min, p.Requeue, p.sets = 16*mib, gives, doubles
		if n == 30 {
			p.Min, p.sets = 8*mib, []resource.Amount{mib, resource.Amount(1+r.IntN(300)) * mib}
		}
		add(0, p)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, p := range all {
		p.Container, p.Rank = id(i+1), i
		k.add(p)
	}
	return k
}

// withinShare notes what happens to programs whose users are within their share, and fails if one is ended or requeued.
type withinShare struct {
	k        *kernel
	stopped  map[*program]timeline.Time
	requeued bool          // one may be
	longest  time.Duration // that one was suspended
}

func (w *withinShare) watch() {
	w.stopped = map[*program]timeline.Time{}
	w.k.onKill = func(p *program) {
		if p.Owner != hostile {
			w.k.fail("the kernel kills %v", p.Container)
		}
	}
	w.k.seen = func(a *Action, p *program) (fail, silent bool) {
		if p.Owner != hostile && (a.Kind == Kill && !w.requeued || a.Kind == End) {
			w.k.fail("%v of %v of user %s: %s", a.Kind, p.Container, p.Owner, a.Reason.Words())
		}
		return false, false
	}
	w.k.after = func() {
		for _, p := range w.k.programs {
			if p.Owner == hostile || p.state != "running" || !p.stopped {
				delete(w.stopped, p)
			} else if since, already := w.stopped[p]; already {
				w.longest = max(w.longest, w.k.now.Sub(since))
			} else {
				w.stopped[p] = w.k.now
			}
		}
	}
}

// besideAlone are the programs of a node beside those of the hostile user, and as they are without them.
type besideAlone struct {
	longest, later time.Duration // that one was suspended; that one ended later than alone
	taken          int           // requeues of the hostile user's programs
}

// play plays a node of besideGrowing, with its memory as change says at each step, and fails if a program of another
// user than the hostile one is ended or requeued, or does not end.
func (b *besideAlone) play(t *testing.T, seed, stream uint64, swap resource.Amount, change func(*kernel)) withinShare {
	node := func() *kernel {
		k := besideGrowing(t, rand.New(rand.NewPCG(seed, stream)), swap, true)
		k.name = fmt.Sprintf("seed %d", seed)
		return k
	}
	run := func(k *kernel) {
		then := k.after
		k.after = func() {
			if change(k); then != nil {
				then()
			}
		}
		k.run(2 * time.Minute)
	}
	alone := node()
	for _, p := range alone.programs {
		if p.Owner == hostile {
			p.arrives = timeline.Time(time.Hour)
		}
	}
	run(alone)
	k := node()
	w := withinShare{k: k}
	w.watch()
	run(k)
	for i, p := range k.programs {
		switch {
		case p.Owner == hostile:
			b.taken += p.kills
		case p.state != "done":
			k.fail("%v of user %s: %s", p.Container, p.Owner, p.state)
		default:
			b.later = max(b.later, p.ended.Sub(alone.programs[i].ended))
		}
	}
	b.longest = max(b.longest, w.longest)
	return w
}

// TestHostileWithinShares: a user runs programs that grow for ever, or many, which may be requeued. With swap and
// without, no program of a user who needs less than a share is ended or requeued; none is suspended for more than half
// a second at a time, and none at all with swap that has room; all end as if they were alone, up to some seconds.
func TestHostileWithinShares(t *testing.T) {
	var b besideAlone
	for seed := range *seeds / 3 {
		swap := [...]resource.Amount{0, 8 << 30, resource.Amount(seed) * 16 << 20}[seed%3]
		w := b.play(t, seed, 32, swap, func(*kernel) {})
		if w.longest > w.k.p.Settle || swap == 8<<30 && w.longest > 0 {
			w.k.fail("a program is suspended for %v", w.longest)
		}
	}
	t.Logf("suspended for %v at most; %v later; %d requeues", b.longest, b.later, b.taken)
	if b.later > 10*time.Second || b.taken == 0 {
		t.Errorf("%v later than alone; %d requeues", b.later, b.taken)
	}
}

// TestHostileOnChangingNode: the same holds while the node loses up to a quarter of its memory and gets it back, and
// users need less than a share of what is left.
func TestHostileOnChangingNode(t *testing.T) {
	var b besideAlone
	for seed := range *seeds / 3 {
		swap := [...]resource.Amount{0, 8 << 30, resource.Amount(seed) * 16 << 20}[seed%3]
		w := b.play(t, seed, 35, swap, func(k *kernel) {
			const every = timeline.Time(3 * time.Second)
			if k.now%every == 0 {
				r := rand.New(rand.NewPCG(seed, uint64(k.now/every)))
				k.memory, k.changed = 480<<20+resource.Amount(r.IntN(3))*80<<20, k.now
			}
		})
		if swap == 0 && w.longest > w.k.p.Settle || w.longest > 5*time.Second { // the swap device is slow
			w.k.fail("a program is suspended for %v", w.longest)
		}
	}
	t.Logf("suspended for %v at most; %v later; %d requeues", b.longest, b.later, b.taken)
	if b.later > 10*time.Second || b.taken == 0 {
		t.Errorf("%v later than alone; %d requeues", b.later, b.taken)
	}
}

// TestHostileGivesNothing: the hostile user's programs may not be requeued. Where they cannot be swapped out either,
// the others wait for their ends, and one may be requeued where nothing else goes on, but none is ended.
func TestHostileGivesNothing(t *testing.T) {
	requeues := 0
	var longest time.Duration
	for seed := range *seeds / 5 {
		swap := [...]resource.Amount{0, 8 << 30, resource.Amount(seed) * 16 << 20}[seed%3]
		k := besideGrowing(t, rand.New(rand.NewPCG(seed, 33)), swap, false)
		k.name = fmt.Sprintf("seed %d", seed)
		w := withinShare{k: k, requeued: true}
		w.watch()
		k.run(3 * time.Hour)
		for _, p := range k.programs {
			if p.Owner != hostile && p.state != "done" {
				k.fail("%v of user %s: %s", p.Container, p.Owner, p.state)
			} else if p.Owner != hostile {
				requeues += p.kills
			}
		}
		if longest = max(longest, w.longest); swap == 8<<30 && w.longest > 0 {
			k.fail("a program is suspended for %v", w.longest)
		}
	}
	t.Logf("suspended for %v at most; %d requeues", longest, requeues)
}

// TestSharesWithFaults: actions fail or are never answered, programs end, the node's memory changes, and the manager is
// lost, on a node of three users. All programs end.
func TestSharesWithFaults(t *testing.T) {
	for seed := range *seeds / 2 {
		r := rand.New(rand.NewPCG(seed, 34))
		p := Default()
		p.ActionTimeout = 10 * time.Second
		k := randomKernel(t, r, p)
		for i, program := range k.programs {
			program.Owner = fmt.Sprint(i % 3)
		}
		some := func(most float64) float64 { return most * float64(r.IntN(3)) / 2 }
		k.faults = &faults{r: r, until: k.now.Add(3 * time.Minute), fail: some(0.4), silent: some(0.2), restart: some(0.01),
			end: some(0.002), resize: some(0.01), from: k.memory * 3 / 4, most: k.memory}
		k.finish(seed)
	}
}

// TestUnusedAndExcess: what a container needs within the share of its user is had from what another user exceeds the
// share by and from what nobody uses together, where neither would be enough.
func TestUnusedAndExcess(t *testing.T) {
	ann, bob := flex(1, 100, 1000), flex(2, 100, 1000)
	ann.Owner, bob.Owner = "ann", "bob"
	m := newManager(t, Default(), 1000, Started{Envelope: ann, Limit: 640}, Started{Envelope: bob, Limit: 360})
	m.Step(at(1), Input{Readings: []Reading{full(1, 480, 0, 0), full(2, 300, 0, 0)}})
	short := Input{Readings: []Reading{full(1, 480, 0, 0), full(2, 360, 100, 1)}}
	expect(t, "bob lacks 100", m.Step(at(2), short), "shrink 1 to 500")
}
