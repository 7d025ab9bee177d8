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

// besideHostile is a node with the programs of two users: those of bob need less together than a quota of ann leaves of
// the node, and those of ann, if there are any, grow for ever.
func besideHostile(t testing.TB, r *rand.Rand, swap resource.Amount, hostile bool) (k *kernel, quota resource.Amount) {
	const mib = 1 << 20
	k = newKernel(t, Default(), 640*mib, swap, 100*mib)
	k.tick, k.again = 10*time.Millisecond, true
	k.onKill = func(p *program) {
		if p.Owner == "bob" {
			k.fail("the kernel kills %v of bob", p.Container)
		}
	}
	quota = resource.Amount(64+r.IntN(256)) * mib
	rest := (k.memory - quota) / 3 // limits have headroom above the peaks
	for i := range 12 {
		p := &program{Envelope: Envelope{Container: id(i + 1), Envelope: cluster.Envelope{Rank: i, Class: cluster.Flex,
			Min: 16 * mib, Requeue: r.IntN(2) == 0, Max: k.memory, Owner: "bob"}}, pass: time.Second,
			arrives: timeline.Time(r.IntN(20)) * timeline.Time(time.Second)}
		peak, work := resource.Amount(1+r.IntN(200))*mib, time.Duration(10+r.IntN(20))*time.Second
		if r.IntN(2) == 0 {
			p.Owner, p.Quota, p.Max = "ann", quota, quota
			p.work, p.sets = time.Minute, []resource.Amount{mib, 2 * k.memory}
			if hostile {
				k.add(p)
			}
			continue
		}
		if peak = min(peak, rest); peak < 16*mib {
			continue
		}
		rest -= peak
		p.work, p.sets = work, []resource.Amount{mib, peak, peak}
		p.Min, p.Need = 16*mib, peak
		k.add(p)
	}
	return k, quota
}

// TestHostileUser: whatever a user with a quota runs, the limits of that user's containers add up to no more than the
// quota, and the programs of another user, which need less than the rest of the node, are never suspended or ended for
// it, and end as if they were alone, up to a second, after which a start that was
// refused is asked for again.
func TestHostileUser(t *testing.T) {
	full, most := 0, time.Duration(0)
	for seed := range *seeds {
		swap := resource.Amount(seed%2) * 8 << 30
		alone, _ := besideHostile(t, rand.New(rand.NewPCG(seed, 21)), swap, false)
		alone.finish(seed)
		k, quota := besideHostile(t, rand.New(rand.NewPCG(seed, 21)), swap, true)
		k.seen = func(a *Action, p *program) (fail, silent bool) {
			if p.Owner == "bob" && (a.Kind == Suspend || a.Kind == Kill || a.Kind == End) {
				k.fail("%v of %v of bob: %s", a.Kind, p.Container, a.Reason.Words())
			}
			return false, false
		}
		k.after = func() {
			var rooms, least resource.Amount
			for _, c := range k.manager.ordered {
				if c.Owner == "ann" {
					rooms, least = rooms+c.room(), least+c.Min
				}
			}
			if rooms > max(quota, least) {
				k.fail("the containers of ann take %d of %d", rooms, quota)
			}
			if rooms > quota-quota/20 {
				full++
			}
		}
		k.name = fmt.Sprintf("seed %d", seed)
		k.run(90 * time.Second)
		ends := map[cluster.ContainerID]timeline.Time{}
		for _, p := range alone.programs {
			ends[p.Container] = p.ended
		}
		for _, p := range k.programs {
			if p.Owner == "bob" && p.state != "done" {
				k.fail("%v of bob: %s", p.Container, p.state)
			} else if p.Owner == "bob" {
				if most = max(most, p.ended.Sub(ends[p.Container])); p.ended.Sub(ends[p.Container]) > time.Second {
					k.fail("%v of bob ended at %v, and alone at %v", p.Container, p.ended, ends[p.Container])
				}
			}
		}
	}
	if t.Logf("%d steps at the quota; at most %v later", full, most); full == 0 || most > time.Second {
		t.Errorf("%d steps at the quota, and a program of the other user ended %v later", full, most)
	}
}

// TestManyOwners: with programs of three users, one of whom may have a quota, all programs end, with swap and without.
func TestManyOwners(t *testing.T) {
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(seed, 23))
		k := randomDry(t, r, false)
		if seed%2 == 0 {
			k = randomKernel(t, r, Default())
		}
		quota := resource.Amount(0)
		if seed%3 == 0 {
			quota = k.memory / 2
		}
		for i, p := range k.programs {
			p.Owner = fmt.Sprint(1 + i%2)
			if i%3 == 0 && p.Min < quota && p.peak() < quota && p.Class == cluster.Flex {
				p.Owner, p.Quota, p.Max = "0", quota, min(p.Max, quota)
			}
		}
		k.finish(seed)
		for _, p := range k.programs {
			if p.state != "done" {
				k.fail("%v: %s", p.Container, p.state)
			}
		}
	}
}

// TestAtQuota: of a program that the kernel kills it is known whether the quota of its owner was in the way.
func TestAtQuota(t *testing.T) {
	const mib = 1 << 20
	grows := func(n int, owner string, most, quota resource.Amount) *program {
		return &program{Envelope: Envelope{Container: id(n), Envelope: cluster.Envelope{Rank: n, Class: cluster.Flex,
			Min: 16 * mib, Max: most, Owner: owner, Quota: quota}}, work: time.Minute, pass: time.Second,
			sets: []resource.Amount{mib, 2048 * mib}}
	}
	holds := grows(1, "ann", 100*mib, 100*mib)
	holds.sets = []resource.Amount{60 * mib}
	for _, c := range []struct {
		name     string
		programs []*program
		want     resource.Amount
	}{
		{"alone", []*program{grows(2, "ann", 100*mib, 100*mib)}, 100 * mib},
		{"beside another of its owner", []*program{holds, grows(2, "ann", 100*mib, 100*mib)}, 100 * mib},
		{"at its own limit", []*program{grows(2, "ann", 50*mib, 100*mib)}, 0},
		{"without a quota", []*program{grows(2, "", 640*mib, 0)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKernel(t, Default(), 640*mib, 0, 100*mib)
			k.tick, k.again, k.name = 10*time.Millisecond, true, c.name
			killed, at := 0, resource.Amount(-1)
			k.onKill = func(p *program) { killed, at = killed+1, k.manager.AtQuota(p.Container) }
			for _, p := range c.programs {
				k.add(p)
			}
			k.run(30 * time.Second)
			if killed == 0 || at != c.want {
				t.Errorf("%d were killed, with quota %d in the way, want %d", killed, at, c.want)
			}
		})
	}
}
