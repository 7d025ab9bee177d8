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

// TestRandomWaits runs nodes whose programs wait for each other's locks and pipes, and sleep: all of them end. While a
// suspended program could make progress, the rest of the node is not idle for longer than half a minute.
func TestRandomWaits(t *testing.T) {
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(seed, 21))
		k := newKernel(t, Default(), 64<<20, 4<<30, resource.Amount(20+r.IntN(200))<<20)
		randomWaiters(k, r)
		q := quiet{k: k}
		k.after = q.look
		k.name = fmt.Sprintf("seed %d", seed)
		k.finish(seed)
	}
}

// randomWaiters adds programs that wait for one that waits for no other.
func randomWaiters(k *kernel, r *rand.Rand) {
	n := 2 + r.IntN(5)
	for i := range n {
		id := cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(i + 1)}, Run: 1}
		p := &program{Envelope: Envelope{Container: id, Envelope: cluster.Envelope{Rank: i, Class: cluster.Flex,
			Min: resource.Amount(1+r.IntN(4)) << 20, Max: k.memory}}, work: time.Duration(4+r.IntN(10)) * time.Second,
			pass:    time.Duration(1+r.IntN(10)) * time.Second,
			arrives: timeline.Time(r.IntN(5)) * timeline.Time(time.Second), sets: []resource.Amount{1 << 20}}
		for range 3 {
			p.sets = append(p.sets, resource.Amount(8+r.IntN(48))<<20)
		}
		k.add(p)
	}
	free := r.IntN(n) // it waits for no other program
	of := k.programs[free]
	for i, p := range k.programs {
		from := p.work / time.Duration(2+r.IntN(3))
		switch kind := r.IntN(4); {
		case i == free:
		case kind == 0:
			p.sleeps = &nap{at: from, long: time.Duration(1+r.IntN(40)) * time.Second}
		case kind == 1 && of.pipe == nil:
			holds := time.Duration(60+r.IntN(1000)) * time.Millisecond
			p.pipe, of.pipe = &pipe{other: of, from: from, holds: holds},
				&pipe{other: p, from: from, holds: holds, written: true}
		default:
			p.lock = &wait{at: from, of: of, until: of.work / time.Duration(1+r.IntN(3))}
		}
	}
}

// quiet measures the time in which no program computes and nothing is swapped although a suspended program could make
// progress.
type quiet struct {
	k     *kernel
	since timeline.Time
	moved resource.Amount
	work  time.Duration
}

func (q *quiet) look() {
	const most = 30 * time.Second
	k, work, kept := q.k, time.Duration(0), false
	for _, p := range k.programs {
		work += p.worked
		kept = kept || p.state == "running" && p.stopped && !k.waiting(p)
	}
	if !kept || work-q.work >= k.tick/10 || k.moved != q.moved {
		q.since = k.now
	}
	q.work, q.moved = work, k.moved
	if k.now.Sub(q.since) > most {
		for _, p := range k.programs {
			k.t.Logf("%v %s: %v of %v, holds %d+%d of %d, kept still %v, waits %v, sets %v", p.Container, p.state, p.progress,
				p.work, p.resident, p.swapped(), p.limit, p.stopped, k.waiting(p), p.sets)
		}
		k.fail("for %v nothing goes on, and somebody is kept still that could", most)
	}
}
