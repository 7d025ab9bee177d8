package sim

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// flow is the progress of a task whose pace may change while it runs. The task passes through its phases; left is the
// rest of the present phase, as the time that it takes while the phase's demands are met.
type flow struct {
	phases   []cluster.Phase
	at       int     // index of the present phase
	stretch  float64 // factor for all phases, so that together they take as long as the task
	slower   float64 // factor by spilling, for all phases: an elasticity profile describes whole tasks
	spilling resource.Amount
	largest  resource.Amount // largest working set of all phases
	grant    resource.Amount
	elastic  bool // memory above the grant is spilled, not paged
	flexible bool // its container decides how much is in memory
	away     bool // its memory is paged out, because its owner wants that while it is paused
	held     bool // its programs stand still for the engine
	waits    bool // it has done its first phase, and other stages of its job have not ended
	heap     *workload.Heap
	most     resource.Amount // a heap without a size grows up to it

	left  float64         // rest of the present phase, nanoseconds at full pace
	pace  float64         // 0 to 1: progress per time
	since timeline.Time   // time at which left was brought up to date
	speed float64         // 0 to 1: the pace that its bounds, and its container's memory if flexible, allow
	whole resource.Vector // demand at speed 1
	bound resource.Vector // the most that it may use of each contended resource; 0 is no bound

	demand resource.Vector // in this phase, at that speed; its memory component is resident memory
	swap   resource.Amount // on the swap device
}

// newFlow returns the flow of a task before its first phase. If the tasks of its stage are all alike, it copies the
// flow of the one before, unless that had another grant.
func (r *run) newFlow(t *task) *flow {
	j, stage, grant := t.job, t.id.Stage, t.grant[resource.Memory]
	f := t.room
	if f == nil {
		f = new(flow)
	}
	if j.alike == nil {
		j.alike = make([]flow, len(j.Stages))
	}
	if like := &j.alike[stage]; like.phases != nil && like.grant == grant {
		*f = *like
		return f
	}
	truth := truthOf(j.Job, int(stage), t.id.Index, t.result.Warmth)
	*f = flowOf(&truth, j.Stages[stage].Ideal, grant)
	if int(stage) >= len(j.Truth) || !j.Truth[stage].Differs() {
		j.alike[stage] = *f
	}
	return f
}

// flowOf returns a flow before its first phase. alone is the demand of a task without phases.
func flowOf(t *workload.TaskTruth, alone resource.Vector, grant resource.Amount) flow {
	f := flow{phases: t.Phases, at: -1, stretch: 1, slower: 1, grant: grant, most: grant,
		elastic: t.Elasticity.Kind != cluster.NotElastic, heap: t.Heap, pace: 1, speed: 1}
	total, largest := workload.SumPhases(t.Phases)
	if total == 0 {
		whole := cluster.Phase{Duration: t.Duration, Demand: alone.With(resource.Memory, t.IdealMemory)}
		if len(t.Phases) > 0 {
			whole.Demand = t.Phases[0].Demand
		}
		f.phases = []cluster.Phase{whole}
		total, largest = workload.SumPhases(f.phases)
	}
	f.largest = largest
	if total > 0 {
		f.stretch = float64(t.Duration) / float64(total)
	}
	if underSized(t, grant) {
		f.spilling = t.Elasticity.DiskRate
		if t.Duration > 0 {
			f.slower = float64(t.Elasticity.Duration(t.Duration, t.IdealMemory, grant)) / float64(t.Duration)
		}
	}
	return f
}

// need is the demand of the next phase on its node.
type need struct {
	length float64 // nanoseconds at full pace
	demand resource.Vector
	swap   resource.Amount
}

// needOf computes the need of a phase. ok is false if the task cannot survive the phase: its live set does not fit into
// its heap, or its working set fits neither into its grant nor into the remaining swap.
func (f *flow) needOf(p *cluster.Phase, m *Machine, swapLeft resource.Amount) (n need, ok bool) {
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
		resident = min(resident, size) // no more than the heap
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
	// The phase's own reads and writes stay the same, spread over a longer time; spilling is added.
	n.demand = p.Demand.With(resource.Memory, resident)
	for _, k := range rates {
		n.demand[k] = resource.Amount(float64(n.demand[k]) / slower)
	}
	n.demand[resource.Disk] += f.spilling
	return n, true
}

// liveIn is the live set in a phase, bytes: it grows and shrinks with the working set.
func (f *flow) liveIn(p *cluster.Phase) float64 {
	live := float64(f.heap.Live)
	if f.largest == 0 {
		return live
	}
	return live * (float64(p.Demand[resource.Memory]) / float64(f.largest))
}

// advance brings left up to date.
func (f *flow) advance(now timeline.Time) {
	f.left = max(0, f.left-float64(now-f.since)*f.pace)
	f.since = now
}

// setPace changes the pace from now on.
func (f *flow) setPace(now timeline.Time, pace float64) {
	f.advance(now)
	f.pace = pace
}

// ends returns when the present phase ends at the present pace. It must have been brought up to date now.
func (f *flow) ends(now timeline.Time) timeline.Time {
	if f.pace == 0 {
		return timeline.Never
	}
	if in := math.Ceil(f.left / f.pace); in < math.MaxInt64 {
		return after(now, time.Duration(in))
	}
	return lastTime
}

// lastTime stands for every later time but Never. No run goes on until then; intervals can be added to it.
const lastTime = timeline.Never - timeline.Time(365*24*time.Hour)

// after returns a time d after now that is at most lastTime, however long d is.
func after(now timeline.Time, d time.Duration) timeline.Time {
	return now + min(timeline.Time(d), max(0, lastTime-now))
}

// begin enters a phase whose need has been met.
func (f *flow) begin(now timeline.Time, n need) {
	f.left, f.whole, f.swap, f.since = n.length, n.demand, n.swap, now
	f.slow(1)
	f.pace = f.speed
}

// slow computes speed and demand of a flow that its memory lets go on at the given pace, above 0, unless it is held:
// it needs less of each rate at a time. Where that is still above its bounds, it goes on as slowly as they demand,
// and uses less of all that is contended.
func (f *flow) slow(pace float64) {
	f.demand = f.whole
	if f.held || f.waits {
		f.demand, f.speed = f.resting(), 0
		return
	}
	if pace != 1 {
		f.demand = scaled(f.demand, rates, pace)
	}
	f.speed = pace
	if allowed := allowedPace(&f.demand, &f.bound); allowed < 1 {
		f.demand, f.speed = scaled(f.demand, contended, allowed), pace*allowed
	}
}

// scaled returns v with the given kinds times a factor.
func scaled(v resource.Vector, kinds []resource.Kind, by float64) resource.Vector {
	for _, k := range kinds {
		v[k] = resource.Amount(float64(v[k]) * by)
	}
	return v
}

// allowedPace is the pace, 0 to 1, at which a demand is within bounds.
func allowedPace(demand, bound *resource.Vector) float64 {
	pace := 1.0
	for _, k := range contended {
		if bound[k] > 0 && demand[k] > bound[k] {
			pace = min(pace, float64(bound[k])/float64(demand[k]))
		}
	}
	return pace
}
