package memory

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

var seeds = flag.Uint64("seeds", 150, "how many random nodes of every kind to play")

// randomKernel is a node with all kinds of programs.
func randomKernel(t testing.TB, r *rand.Rand, p Parameters) *kernel {
	k := newKernel(t, p, 64<<20, 1<<30, 100<<20)
	for i := range 1 + r.IntN(8) {
		id := cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(i + 1)}, Run: 1}
		work := time.Duration(1+r.IntN(20)) * time.Second
		pr := &program{Envelope: Envelope{Container: id, Envelope: cluster.Envelope{Rank: i, Class: cluster.Regular,
			Min: resource.Amount(1+r.IntN(16)) << 20}}, work: work, pass: time.Duration(20+r.IntN(1000)) * time.Millisecond,
			arrives: timeline.Time(r.IntN(20)) * timeline.Time(time.Second)}
		pr.Max = pr.Min
		pr.sets = []resource.Amount{pr.Min}
		if r.IntN(3) > 0 {
			pr.Class, pr.Min, pr.Max = cluster.Flex, resource.Amount(1+r.IntN(4))<<20, k.memory
			if r.IntN(4) == 0 {
				pr.Max = pr.Min + resource.Amount(r.IntN(int(k.memory-pr.Min)))
			}
			pr.sets = nil
			for range 10 {
				pr.sets = append(pr.sets, resource.Amount(1+r.IntN(int(k.memory)>>20))<<20)
			}
			if r.IntN(2) == 0 {
				pr.HeartbeatTimeout = 10 * time.Second
			}
			if r.IntN(2) == 0 {
				if pr.Duration = work/2 + time.Duration(r.Int64N(int64(work))); r.IntN(4) == 0 {
					pr.Duration /= 1000 // a useless estimate
				}
			}
		}
		k.add(pr)
	}
	return k
}

// finish runs until all programs have ended, and fails with the reason if they do not.
func (k *kernel) finish(seed uint64) {
	k.t.Helper()
	k.name = fmt.Sprintf("seed %d", seed)
	k.run(3 * time.Hour)
	if k.done < len(k.programs) {
		for _, pr := range k.programs {
			k.t.Logf("%v %s %v: %v of %v, holds %d, limit %d, stopped %v, duration %v, sets %v", pr.Container, pr.state,
				pr.Class, pr.progress, pr.work, pr.held, pr.limit, pr.stopped, pr.Duration, pr.sets)
		}
		k.fail("%d of %d programs are done", k.done, len(k.programs))
	}
}

// kinds are the managers for random nodes.
func kinds() map[string]Parameters {
	all := Variants()
	all["default"] = Default()
	shortest := Default()
	shortest.Order = ShortestFirst
	all["default, shortest first"] = shortest
	return all
}

// TestRandomNodes runs nodes without failures: all programs end, and check and calm find no violation.
func TestRandomNodes(t *testing.T) {
	for name, p := range kinds() {
		t.Run(name, func(t *testing.T) {
			kills := 0
			for seed := range *seeds {
				k := randomKernel(t, rand.New(rand.NewPCG(seed, 7)), p)
				c := calm{k: k, grown: map[*program]timeline.Time{}, resumed: map[*program]timeline.Time{}}
				k.seen = c.see
				k.after = c.conserving
				k.finish(seed)
				kills += k.kills
			}
			t.Logf("%d kills", kills)
		})
	}
}

// calm checks that the manager neither oscillates nor leaves memory idle.
type calm struct {
	k       *kernel
	grown   map[*program]timeline.Time
	resumed map[*program]timeline.Time
	puffed  timeline.Time
	idle    timeline.Time // since when the first container has been suspended although enough memory is free for it
	since   bool
}

// see checks minimum intervals: Hold between a growth and the removal of its slack; Settle between a resumption and a
// suspension for the container's own lack of memory (kernel.turn checks the same between a suspension and the
// resumption); and Interval between two puffs of a node. Actions for the needs of other containers may come at any
// time.
func (c *calm) see(a *Action, p *program) (fail, silent bool) {
	now, params := c.k.now, c.k.p
	switch {
	case a.Kind == Grow:
		if c.puffed != 0 && c.puffed != now && now.Sub(c.puffed) < params.Interval {
			c.k.fail("puffs after %v", now.Sub(c.puffed))
		}
		c.grown[p], c.puffed = now, now
	case a.Kind == Shrink && a.Reason.Code == Slack:
		if at, ok := c.grown[p]; ok && now.Sub(at) < params.Hold {
			c.k.fail("%v gives slack back %v after it has grown", p.Container, now.Sub(at))
		}
	case a.Kind == Resume:
		c.resumed[p] = now
	case a.Kind == Suspend && a.Reason.Code == OutOfMemory:
		if at, ok := c.resumed[p]; ok && now.Sub(at) < params.Settle {
			c.k.fail("%v is suspended %v after it was resumed", p.Container, now.Sub(at))
		}
	case a.Kind == Admit, a.Kind == Kill:
		delete(c.grown, p)
		delete(c.resumed, p)
	}
	return false, false
}

// conserving checks the manager that serves containers in order: the first container is not suspended for longer than
// it takes to swap all memory twice, if enough memory is free for it.
func (c *calm) conserving() {
	k := c.k
	if k.p.Strategy != InOrder {
		return
	}
	free := k.memory - k.limits
	for _, r := range k.manager.requests {
		free -= r.Min
	}
	for _, o := range k.manager.ordered {
		if !o.flex() {
			continue
		}
		p := k.byID[o.Container]
		waits := p != nil && p.stopped && p.limit < p.Max && free > p.held-p.limit+p.limit/50
		if c.since = c.since && waits; waits && !c.since {
			c.idle, c.since = k.now, true
		}
		if most := k.p.Settle + 2*k.swapTime() + time.Second; waits && k.now.Sub(c.idle) > most {
			k.fail("%v stands still for more than %v, and lacks %d of %d that are free", p.Container, most, p.held-p.limit, free)
		}
		return
	}
}

// TestSameAgain runs nodes twice, the second time with shuffled readings: the actions are the same.
func TestSameAgain(t *testing.T) {
	for name, p := range kinds() {
		t.Run(name, func(t *testing.T) {
			for seed := range *seeds / 5 {
				var said [2]strings.Builder
				for i := range said {
					k := randomKernel(t, rand.New(rand.NewPCG(seed, 7)), p)
					k.seen = func(a *Action, _ *program) (fail, silent bool) {
						fmt.Fprintln(&said[i], k.now, *a)
						return false, false
					}
					if i > 0 {
						k.shuffle = rand.New(rand.NewPCG(seed, 10))
					}
					k.finish(seed)
				}
				if said[0].String() != said[1].String() {
					t.Fatalf("seed %d: it depends on the order of readings", seed)
				}
			}
		})
	}
}

// TestRandomFaults injects failures for the first minutes: actions fail or are never answered, programs end during an
// action, the node's memory changes, and the manager is lost.
func TestRandomFaults(t *testing.T) {
	for name, p := range map[string]Parameters{"default": Default(), "paper": Paper(), "sjf": Variants()["sjf"]} {
		t.Run(name, func(t *testing.T) {
			p.ActionTimeout = 10 * time.Second
			for seed := range *seeds {
				r := rand.New(rand.NewPCG(seed, 8))
				k := randomKernel(t, r, p)
				some := func(most float64) float64 { return most * float64(r.IntN(3)) / 2 }
				k.faults = &faults{r: r, until: k.now.Add(3 * time.Minute), fail: some(0.4), silent: some(0.2), restart: some(0.01),
					end: some(0.002), resize: some(0.01), from: k.memory * 3 / 4, most: k.memory}
				k.finish(seed)
			}
		})
	}
}
