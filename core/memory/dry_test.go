package memory

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// tightMemory is the memory of the nodes whose swap is too small for what their programs hold.
const tightMemory = 640 << 20

// randomDry is a node without swap, with programs that may or may not be requeued, and that are known to need what they
// need, or more, or of which nothing is known. With lies, some need more than that, or than they may have.
func randomDry(t testing.TB, r *rand.Rand, lies bool) *kernel {
	return randomTight(t, r, 0, lies)
}

// randomTight is the same with the given swap.
func randomTight(t testing.TB, r *rand.Rand, swap resource.Amount, lies bool) *kernel {
	const mib = 1 << 20
	k := newKernel(t, Default(), tightMemory, swap, 100*mib)
	k.tick, k.again = 10*time.Millisecond, true
	spread := [...]float64{0, 0.2, 1}[r.IntN(3)]
	at := timeline.Time(0)
	for i := range 1 + r.IntN(20) {
		id := cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(i + 1)}, Run: 1}
		p := &program{Envelope: Envelope{Container: id, Envelope: cluster.Envelope{Rank: i, Class: cluster.Flex,
			Min: resource.Amount(32+r.IntN(32)) * mib, Max: k.memory, Requeue: r.IntN(2) == 0}}, pass: time.Second, arrives: at}
		if r.IntN(3) == 0 {
			p.Max = p.Min + resource.Amount(r.Int64N(int64(k.memory-p.Min)))
		}
		most := p.Max
		if lies && r.IntN(4) == 0 {
			most = 2 * p.Max
		}
		peak := resource.Amount(1 + r.Int64N(int64(most)))
		for _, share := range shapes[r.IntN(len(shapes))] {
			p.sets = append(p.sets, max(mib, resource.Amount(share*float64(peak))))
		}
		// No program grows so fast that nothing could stop it in time.
		steep := resource.Amount(0)
		for s := range len(p.sets) - 1 {
			steep = max(steep, p.sets[s+1]-p.sets[s])
		}
		p.work = time.Duration(float64(steep)/(150*mib)*float64(len(p.sets)-1)*1e9) + time.Duration(1+r.IntN(10))*time.Second
		switch r.IntN(4) {
		case 0:
			p.Need = min(p.Max, p.peak()+resource.Amount(r.IntN(100))*mib)
			if lies {
				p.Need = p.peak()/2 + mib
			}
			p.Min = max(p.Min, min(p.Need, p.Max))
		case 1:
			p.Duration = p.work
		}
		if r.IntN(6) == 0 && peak <= p.Max {
			p.Class, p.Min, p.Max, p.Requeue, p.Need = cluster.Regular, p.peak(), p.peak(), false, 0
		}
		k.add(p)
		at = at.Add(time.Duration(spread * 2 * r.Float64() * float64(p.work)))
	}
	return k
}

// mostRequeues is how often a task is requeued at most while all containers keep to what they are known to need.
func mostRequeues(p *program) int { return 1 + bits.Len64(uint64(p.Max/p.Min)) }

// TestDryNodes: without swap all programs end right, whatever is known of them, and none is requeued that must not
// be, or too often.
func TestDryNodes(t *testing.T) {
	kills, most := 0, 0
	for seed := range *seeds {
		k := randomDry(t, rand.New(rand.NewPCG(seed, 11)), false)
		k.finish(seed)
		for _, p := range k.programs {
			if p.state != "done" || p.kills > mostRequeues(p) {
				k.fail("%v: %s, requeued %d times, may be %d times", p.Container, p.state, p.kills, mostRequeues(p))
			}
			kills, most = kills+p.kills, max(most, p.kills)
			if k.now > timeline.Time(20*time.Minute) {
				k.fail("it took too long")
			}
		}
	}
	if t.Logf("%d requeues, of one program %d", kills, most); kills == 0 {
		t.Error("nothing was requeued")
	}
}

// TestDryLies: without swap, some programs need more than they were known to need, or than they may have, and the node
// loses and gets memory. All end, and whoever ends wrong has lied. A program that may be requeued is never ended.
func TestDryLies(t *testing.T) {
	kills, ended, killed := 0, 0, 0
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(seed, 12))
		k := randomDry(t, r, true)
		k.onKill = func(p *program) {
			killed++
			if p.limit < p.Max && p.Need > 0 && p.peak() <= p.Need {
				k.fail("the kernel kills %v with %d of %d", p.Container, p.limit, p.Max)
			}
		}
		k.seen = func(a *Action, p *program) (fail, silent bool) {
			if a.Kind != End {
				return false, false
			}
			if ended++; p.Requeue || p.peak() <= max(p.Need, p.Min) {
				k.fail("%v is ended: %s", p.Container, a.Reason.Words())
			}
			return false, false
		}
		k.finish(seed)
		for _, p := range k.programs {
			if kills += p.kills; p.state != "done" && p.Requeue && p.peak() <= p.Max {
				k.fail("%v: %s, may be requeued and needs %d of %d", p.Container, p.state, p.peak(), p.Max)
			}
			if p.kills > mostRequeues(p)+len(k.programs) {
				k.fail("%v is requeued %d times", p.Container, p.kills)
			}
		}
	}
	if t.Logf("%d requeues, %d ended, %d killed by the kernel", kills, ended, killed); kills == 0 || killed == 0 {
		t.Error("nothing was requeued, or killed")
	}
}

// TestThirtyUnknown: a node is full of tasks of which nothing is known, with swap or without. All end right, and each
// is requeued as often as it may be at most.
func TestThirtyUnknown(t *testing.T) {
	for _, swap := range []resource.Amount{0, 256 << 20, 1 << 30} {
		for _, requeue := range []bool{true, false} {
			k := thirtyUnknown(t, swap, requeue)
			k.seen = noEnd(k)
			k.finish(0)
			for _, p := range k.programs {
				if p.state != "done" || p.kills > mostRequeues(p) {
					k.fail("swap %d, may be requeued %v: %v %s, requeued %d times", swap, requeue, p.Container, p.state, p.kills)
				}
			}
			t.Logf("swap %d, may be requeued %v: %d requeues, %v", swap, requeue, k.kills, time.Duration(k.now))
		}
	}
}

func thirtyUnknown(t *testing.T, swap resource.Amount, requeue bool) *kernel {
	k := newKernel(t, Default(), 2<<30, swap, 100<<20)
	k.tick, k.again = 10*time.Millisecond, true
	for i := range 30 {
		peak := resource.Amount(1+i%5) * 150 << 20
		k.add(&program{Envelope: Envelope{Container: id(i + 1), Envelope: cluster.Envelope{Rank: i, Class: cluster.Flex,
			Min: 64 << 20, Max: k.memory, Requeue: requeue}}, work: time.Duration(10+i%7) * time.Second, pass: time.Second,
			sets: []resource.Amount{1 << 20, peak, peak}})
	}
	return k
}

// TestSwapOfEverySize: with swap of any size up to twice the memory, all programs end right whose peak fits into their
// limit, whatever is known of them, and none is requeued that must not be, or too often.
func TestSwapOfEverySize(t *testing.T) {
	kills, most, last := 0, 0, timeline.Time(0)
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(seed, 21))
		k := randomTight(t, r, resource.Amount(r.Int64N(2*tightMemory)), false)
		k.seen = noEnd(k)
		k.finish(seed)
		for _, p := range k.programs {
			if p.state != "done" || p.kills > mostRequeues(p) {
				k.fail("%v: %s, requeued %d times, may be %d times", p.Container, p.state, p.kills, mostRequeues(p))
			}
			kills, most = kills+p.kills, max(most, p.kills)
		}
		if last = max(last, k.now); k.now > timeline.Time(20*time.Minute) {
			k.fail("it took too long")
		}
	}
	t.Logf("%d requeues, of one program %d, %v at most", kills, most, time.Duration(last))
}

// TestBeyondMemory: one program needs more than the node has memory, and no more than memory and swap together. It ends
// right, and nobody else is ended for it.
func TestBeyondMemory(t *testing.T) {
	kills, last := 0, timeline.Time(0)
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(seed, 22))
		swap := 2*SwapReserve(tightMemory) + resource.Amount(r.Int64N(2*tightMemory))
		k := randomTight(t, r, swap, false)
		k.rate *= 10
		p := k.programs[r.IntN(len(k.programs))]
		peak := tightMemory + resource.Amount(r.Int64N(int64(swap-2*SwapReserve(tightMemory)+2)/2))
		p.Class, p.Min, p.Max, p.Need, p.Duration = cluster.Flex, 48<<20, k.memory, 0, 0
		p.sets, p.work = []resource.Amount{1 << 20, peak, peak}, time.Duration(float64(peak)/(75<<20)*1e9)
		k.seen = noEnd(k)
		k.finish(seed)
		for _, p := range k.programs {
			if p.state != "done" || p.kills > mostRequeues(p)+1 {
				k.fail("%v: %s, requeued %d times, may be %d times", p.Container, p.state, p.kills, mostRequeues(p)+1)
			}
			kills += p.kills
		}
		if last = max(last, k.now); k.now > timeline.Time(20*time.Minute) {
			k.fail("it took too long")
		}
	}
	t.Logf("%d requeues, %v at most", kills, time.Duration(last))
}

// TestSwapChanges: swap is added and removed while programs run. A program is ended only after that, as the last means,
// and none that may be requeued is lost.
func TestSwapChanges(t *testing.T) {
	kills, ended, last := 0, 0, timeline.Time(0)
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(seed, 23))
		k := randomTight(t, r, resource.Amount(r.Int64N(2*tightMemory)), false)
		lost := false
		k.after = func() {
			if r.IntN(500) > 0 {
				return
			}
			was := k.swap // pages that are in use stay somewhere, and so does what is filled until the next reading
			k.swap = k.swapUsed() + 8<<20 + resource.Amount(r.Int64N(2*tightMemory))*resource.Amount(r.IntN(2))
			k.budget, lost = k.swap, lost || k.swap < was
		}
		k.onKill = func(p *program) { // it goes on, because no memory can be had for it by any means
			if p.Requeue || !lost {
				k.fail("the kernel kills %v, may be requeued %v", p.Container, p.Requeue)
			}
		}
		k.seen = func(a *Action, p *program) (fail, silent bool) {
			if a.Kind == Kill && !p.Requeue || a.Kind == End && (p.Requeue || !lost) {
				k.fail("%v %v, may be requeued %v: %s", a.Kind, p.Container, p.Requeue, a.Reason.Words())
			}
			return false, false
		}
		k.finish(seed)
		for _, p := range k.programs {
			if kills += p.kills; p.state != "done" {
				ended++
			}
			if p.state != "done" && (p.Requeue || !lost) {
				k.fail("%v: %s, may be requeued", p.Container, p.state)
			}
		}
		last = max(last, k.now)
	}
	t.Logf("%d requeues, %d ended, %v at most", kills, ended, time.Duration(last))
}

// TestRestartsKeepComebacks: the manager is lost again and again. No program is requeued more often for that.
func TestRestartsKeepComebacks(t *testing.T) {
	kills := 0
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(seed, 24))
		k := randomTight(t, r, resource.Amount(r.Int64N(2*tightMemory))*resource.Amount(seed%2), false)
		k.faults = &faults{r: r, until: timeline.Time(10 * time.Minute), restart: 0.002, from: k.memory, most: k.memory}
		k.seen = noEnd(k)
		k.finish(seed)
		for _, p := range k.programs {
			if kills += p.kills; p.state != "done" || p.kills > mostRequeues(p) {
				k.fail("%v: %s, requeued %d times, may be %d times", p.Container, p.state, p.kills, mostRequeues(p))
			}
		}
	}
	t.Logf("%d requeues", kills)
}

// noEnd fails if a program is ended for good, or requeued that must not be.
func noEnd(k *kernel) func(a *Action, p *program) (fail, silent bool) {
	return func(a *Action, p *program) (fail, silent bool) {
		if a.Kind == End || a.Kind == Kill && !p.Requeue {
			k.fail("%v %v, may be requeued %v: %s", a.Kind, p.Container, p.Requeue, a.Reason.Words())
		}
		return false, false
	}
}
