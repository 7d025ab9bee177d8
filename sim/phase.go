package sim

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/workload"
)

// flow is how a task goes on whose pace may change while it runs. It passes through its phases; of the present one a
// length is left, which is the time that it takes as long as its demands are met.
type flow struct {
	phases   []workload.Phase
	at       int     // the present phase
	stretch  float64 // of all phases, so that they take as long together as the task does
	slower   float64 // by spilling, of all phases: an elasticity profile speaks of whole tasks
	spilling resource.Amount
	largest  resource.Amount // working set over all phases
	grant    resource.Amount
	elastic  bool // what the grant does not hold is spilled, not paged
	flexible bool // what it holds at present is its container's affair
	heap     *workload.Heap
	most     resource.Amount // a heap of no size grows up to it

	left  float64         // of the present phase, nanoseconds at full pace
	pace  float64         // 0 to 1: progress per time
	since timeline.Time   // when left was right
	due   timeline.Time   // when the present phase ends if the pace stays
	speed float64         // 0 to 1: the pace that its container's memory allows; 1 unless flexible
	whole resource.Vector // demand if speed were 1; meaningful if flexible

	demand resource.Vector // in this phase, at full pace; of memory, what is resident
	swap   resource.Amount // held on the swap device
}

// newFlow returns the flow of a task before its first phase.
func newFlow(r *real, alone resource.Vector, grant resource.Amount) *flow {
	f := &flow{phases: r.phases, at: -1, stretch: 1, slower: 1, grant: grant, most: grant,
		elastic: r.profile.Kind != cluster.NotElastic, heap: r.heap, pace: 1, speed: 1}
	total, largest := overPhases(r.phases)
	if total == 0 {
		whole := workload.Phase{Duration: r.duration, Demand: alone.With(resource.Memory, r.ideal)}
		if len(r.phases) > 0 {
			whole.Demand = r.phases[0].Demand
		}
		f.phases = []workload.Phase{whole}
		total, largest = overPhases(f.phases)
	}
	f.largest = largest
	if total > 0 {
		f.stretch = float64(r.duration) / float64(total)
	}
	if r.underSized(grant) {
		f.spilling = r.profile.DiskRate
		if r.duration > 0 {
			f.slower = float64(r.profile.Duration(r.duration, r.ideal, grant)) / float64(r.duration)
		}
	}
	return f
}

// need is what the next phase asks of its node.
type need struct {
	length float64 // nanoseconds at full pace
	demand resource.Vector
	swap   resource.Amount
}

// needOf works out what a phase needs. ok is false if the task cannot live in it: its live set does not fit into its heap,
// or its working set fits neither into its grant nor into the swap that is left.
func (f *flow) needOf(p *workload.Phase, m *Machine, swapLeft resource.Amount) (n need, ok bool) {
	slower := f.slower
	resident := p.Demand[resource.Memory]
	if f.heap != nil {
		size := f.heap.Size
		if size == 0 {
			size = f.most
		}
		cost, alive := m.Collection.Slowdown(float64(size), f.liveIn(p))
		if !alive {
			return need{}, false
		}
		slower *= cost
		resident = min(resident, size) // the heap is all that there can be
	}
	if resident > f.grant && !f.flexible {
		switch n.swap = resident - f.grant; {
		case f.elastic:
			n.swap = 0
		case n.swap > swapLeft:
			return need{}, false
		default:
			slower *= m.Paging.Slowdown(f.grant, resident)
		}
		resident = f.grant
	}
	n.length = math.Round(float64(p.Duration) * f.stretch * slower)
	// What is read and written for the work itself is the same, over a longer time; spilling comes on top.
	n.demand = resource.Vector{resource.CPU: p.Demand[resource.CPU], resource.Memory: resident,
		resource.Disk:    resource.Amount(float64(p.Demand[resource.Disk])/slower) + f.spilling,
		resource.Network: resource.Amount(float64(p.Demand[resource.Network]) / slower)}
	return n, true
}

// liveIn is the live set in a phase: it grows and shrinks with the working set.
func (f *flow) liveIn(p *workload.Phase) float64 {
	live := float64(f.heap.Live)
	if f.largest == 0 {
		return live
	}
	return live * (float64(p.Demand[resource.Memory]) / float64(f.largest))
}

// advance brings what is left up to date.
func (f *flow) advance(now timeline.Time) {
	f.left = max(0, f.left-float64(now-f.since)*f.pace)
	f.since = now
}

// setPace goes on at another pace from now on.
func (f *flow) setPace(now timeline.Time, pace float64) {
	f.advance(now)
	f.pace = pace
	f.due = f.ends(now)
}

// ends returns when the present phase ends if the pace stays.
func (f *flow) ends(now timeline.Time) timeline.Time {
	if f.pace == 0 {
		return timeline.Never
	}
	if in := math.Ceil(f.left / f.pace); in < math.MaxInt64 {
		return after(now, time.Duration(in))
	}
	return timeline.Never - 1
}

// after is a time that lies d ahead, before Never however long that is.
func after(now timeline.Time, d time.Duration) timeline.Time {
	return now + min(timeline.Time(d), max(0, timeline.Never-1-now))
}

// begin enters a phase whose need has been met.
func (f *flow) begin(now timeline.Time, n need) {
	f.left, f.demand, f.swap, f.since, f.pace = n.length, n.demand, n.swap, now, 1
	f.due = f.ends(now)
}
