package memory

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

var mixes = flag.Uint64("mixes", 100, "how many random mixes of jobs to play")

// randomMix is a node with jobs that all need more memory than a static partition would give them: 2 to 12 jobs with a
// peak of 10 to 100 % of the node, which arrive at once, one after the other, or over time.
func randomMix(t testing.TB, r *rand.Rand, p Parameters) *kernel {
	const mib = 1 << 20
	memory := resource.Amount(640 * mib)
	whole := 0.5 + 7.5*r.Float64() // seconds to move all of the node's memory
	k := newKernel(t, p, memory, 64*memory, resource.Amount(float64(memory)/whole))
	jobs, known := 2+r.IntN(11), r.IntN(2) == 0
	spread := [...]float64{0, 0.1, 0.5, 1}[r.IntN(4)] // arrivals are spread over this share of the total work
	large := 0.1 + 0.9*r.Float64()
	long := time.Duration(3+r.IntN(30)) * time.Second
	at := timeline.Time(0)
	for i := range jobs {
		work := long/4 + time.Duration(r.Int64N(int64(long)))
		peak := resource.Amount((0.1 + (large-0.1)*r.Float64()) * float64(memory))
		pr := &program{Envelope: Envelope{Container: cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(i + 1)},
			Run: 1}, Envelope: cluster.Envelope{Rank: i, Class: cluster.Flex, Min: memory / 20, Max: memory}}, work: work,
			arrives: at,
			pass:    time.Duration(20+r.IntN(1000)) * time.Millisecond}
		if known {
			pr.Duration = time.Duration(float64(work) * (0.7 + 0.6*r.Float64()))
		}
		for _, share := range shapes[r.IntN(len(shapes))] {
			pr.sets = append(pr.sets, max(1*mib, resource.Amount(share*float64(peak))))
		}
		k.add(pr)
		at = at.Add(time.Duration(spread * 2 * r.Float64() * float64(work)))
	}
	return k
}

// shapes are working sets over the life of a job, as shares of the peak.
var shapes = [][]float64{
	{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},                            // loaded, then used
	{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},          // growing all the time
	{0, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 1, 1, 0.3, 0.3},            // a late peak
	{0, 1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2},          // an early peak
	{0, 0.5, 1, 0.2, 0.5, 1, 0.2, 0.5, 1, 0.2, 0.5, 1, 0.2, 0.5}, // with a garbage collection from time to time
	{0, 0.5, 0.5, 0.5, 1, 1, 0.5, 0.5, 0.5, 1, 1, 0.5},           // two phases
}

// makespans are the makespans and mean run times of a mix.
type makespans struct {
	flex, serial, static             time.Duration
	meanFlex, meanSerial, meanStatic time.Duration
	k                                *kernel
}

func playMix(t testing.TB, seed uint64, p Parameters) makespans {
	k := randomMix(t, rand.New(rand.NewPCG(seed, 9)), p)
	m := makespans{k: k}
	m.serial, m.meanSerial = k.oneAfterTheOther(0)
	m.static, m.meanStatic = k.oneAfterTheOther(k.memory)
	k.finish(seed)
	var sum time.Duration
	for _, pr := range k.programs {
		m.flex = max(m.flex, time.Duration(pr.ended))
		sum += pr.ended.Sub(pr.submitted)
	}
	m.meanFlex = sum / time.Duration(len(k.programs))
	return m
}

// oneAfterTheOther is the makespan in fixed containers of exactly the peaks, started in order as soon as there is room;
// without memory each program waits for the end of the previous one.
func (k *kernel) oneAfterTheOther(memory resource.Amount) (makespan, mean time.Duration) {
	type run struct {
		end  timeline.Time
		peak resource.Amount
	}
	var running []run
	var last timeline.Time // when the last one started
	var sum time.Duration
	for _, p := range k.programs {
		peak, start := p.peak(), max(last, p.submitted)
		for {
			running = slices.DeleteFunc(running, func(r run) bool { return r.end <= start })
			used, next := peak, timeline.Never
			for _, r := range running {
				used, next = used+r.peak, min(next, r.end)
			}
			if used <= memory || len(running) == 0 {
				break
			}
			start = next
		}
		last = start
		end := start.Add(p.work)
		running = append(running, run{end, peak})
		makespan, sum = max(makespan, time.Duration(end)), sum+end.Sub(p.submitted)
	}
	return makespan, sum / time.Duration(len(k.programs))
}

// TestMixes compares random mixes under FLEX with fixed containers: one after the other, and packed by their peaks,
// which are unknown in practice. No program is killed. Where swapping the node's memory takes longer than a job runs,
// starting together with other jobs may not pay.
func TestMixes(t *testing.T) {
	var serial, static, mean, meanStatic, moved, fast []float64
	for seed := range *mixes {
		m := playMix(t, seed, Default())
		if m.k.kills > 0 {
			t.Errorf("seed %d: %d kills", seed, m.k.kills)
		}
		ratio := float64(m.flex) / float64(m.serial)
		serial, static = append(serial, ratio), append(static, float64(m.flex)/float64(m.static))
		mean = append(mean, float64(m.meanFlex)/float64(m.meanSerial))
		meanStatic = append(meanStatic, float64(m.meanFlex)/float64(m.meanStatic))
		moved = append(moved, float64(m.k.moved)/float64(m.k.memory))
		if m.k.swapTime() < m.k.meanWork() {
			fast = append(fast, ratio)
		}
	}
	t.Logf("%d mixes, times as shares of those of fixed containers", len(serial))
	t.Logf("makespan, one after the other   %s", spread(serial))
	t.Logf("  if swap is fast (%d)         %s", len(fast), spread(fast))
	t.Logf("makespan, packed by peaks       %s", spread(static))
	t.Logf("mean job, one after the other   %s", spread(mean))
	t.Logf("mean job, packed by peaks       %s", spread(meanStatic))
	t.Logf("swapped, in nodes' memory       %s", spread(moved))
	if got := quantile(serial, 0.5); got > 0.75 {
		t.Errorf("half of the makespans are above %.2f of one after the other", got)
	}
	if got := quantile(serial, 0.95); got > 1.1 {
		t.Errorf("one makespan in 20 is above %.2f of one after the other", got)
	}
	if got := quantile(fast, 0.95); got > 1.02 {
		t.Errorf("with fast swap one makespan in 20 is above %.2f of one after the other", got)
	}
	if got := quantile(fast, 1); got > 1.6 {
		t.Errorf("with fast swap a makespan is %.2f of one after the other", got)
	}
}

// swapTime is how long the device takes to swap all of the node's memory.
func (k *kernel) swapTime() time.Duration {
	return time.Duration(float64(k.memory) / float64(k.rate) * float64(time.Second))
}

func (k *kernel) meanWork() time.Duration {
	var sum time.Duration
	for _, p := range k.programs {
		sum += p.work
	}
	return sum / time.Duration(len(k.programs))
}

func quantile(all []float64, q float64) float64 {
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}

// spread describes the distribution of values.
func spread(all []float64) string {
	var sum float64
	for _, v := range all {
		sum += v
	}
	return fmt.Sprintf("mean %.2f, min %.2f, p10 %.2f, p50 %.2f, p90 %.2f, p99 %.2f, max %.2f", sum/float64(len(all)),
		quantile(all, 0), quantile(all, 0.1), quantile(all, 0.5), quantile(all, 0.9), quantile(all, 0.99), quantile(all, 1))
}
