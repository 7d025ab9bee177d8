package profile

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// How a run is followed. Costs are logarithms of how unlikely something is, up to a factor. They were chosen by the
// recordings of TestFollowsRecordings, where half or twice of each is worse, but by little.
const (
	// unlikeSecond is what a second costs in which the use has nothing in common with that of the phase.
	unlikeSecond = 3
	// slowest is the unlikeness of a time in which a phase makes no progress: a phase whose pace explains the use is not
	// as likely as one that has that use.
	slowest = 0.1
	// early is what it costs to leave a phase none of whose work is done, and late to do all of its work once more.
	// Phases shorter than telling cost less, in proportion: few samples tell of them.
	early, late = 10, 10
	telling     = 10 * time.Second
	// fullPace is the share of its demand that a phase uses at its usual pace: a demand is above nearly all samples, and
	// not their mean. See demandQuantile.
	fullPace = 0.8
	// idlePace is the pace below which a phase is taken to do nothing. A slower network leaves a program more than that.
	idlePace = 0.1
	// memoryCounts is the weight of a difference of memory, compared with a difference of a rate: memory grows and
	// shrinks within phases.
	memoryCounts = 0.5
	// mostUnlike is the mean unlikeness of a run, from 0 to 1, from which on it contradicts the forecast.
	mostUnlike = 0.25
	// leastKnown is the share of the time of a run that must be measured.
	leastKnown = 0.5
	// leastApart is how unlike at least two neighbouring phases must be.
	leastApart = 0.1
	// steps is into how many parts the length of the forecast is divided, at most, so that a change is found within a long
	// stretch.
	steps = 200
)

// Follow returns the phase of its forecast in which a run is that has used series so far, and how far it is into it:
// how long it would have taken for that at its usual pace. Into is the whole duration if all the work of the phase is
// done, and the run is still in it. ok is false if series does not tell: less than half of it was measured, it
// contradicts the forecast, or the phases do not differ in what was measured.
//
// The run went through the phases in order, at a pace of its own in each moment: when programs contend for a disk,
// all rates of one shrink by about the same factor, and the proportion of CPU, disk and network stays. So a stretch
// of the run is compared with the demand of a phase times the pace from 0 to 1 that fits best (least squares). The
// path through the phases is the least costly one: a stretch costs how unlike its phase it is, and a change of phase
// how much of the work of the phase before was not done, where work is time × pace. It is found like the likeliest
// path of a hidden semi-Markov model (A. Viterbi, 1967; S.-Z. Yu, Hidden semi-Markov models, 2010), with one path
// kept per phase, so that the effort is linear in stretches and phases; the path that is kept may not be the best
// one, since what is done of a phase depends on it. A run whose rates are above its forecast is compared at the usual
// pace: little more is unlike little, and much more contradicts the forecast.
//
// A run that uses nothing fits every phase at the pace 0, which is right only as long as something hinders it. So time
// in which it is idle of its own passes at the usual pace, and contradicts each phase that demands something.
func Follow(phases []cluster.Phase, series []Stretch) (phase int, into time.Duration, ok bool) {
	f := follower{phases: phases, kinds: tellingKinds(phases, series)}
	if !f.differ() {
		return 0, 0, false
	}
	step := max(time.Second, sum(phases)/steps)
	total, known := time.Duration(0), time.Duration(0)
	f.paths, f.next = make([]path, len(phases)), make([]path, len(phases))
	for p := 1; p < len(phases); p++ {
		f.paths[p].cost = math.Inf(1)
	}
	for i := range series {
		s := series[i]
		total += s.Length
		if s.Length <= 0 || !f.measured(&s) {
			continue
		}
		known += s.Length
		for left := s.Length; left > 0; left -= s.Length {
			s.Length = min(left, step)
			f.follow(&s)
		}
	}
	best := 0
	for p := range f.paths {
		if f.paths[p].cost < f.paths[best].cost {
			best = p
		}
	}
	at := &f.paths[best]
	if float64(known) <= leastKnown*float64(total) || at.unlike > mostUnlike*known.Seconds() {
		return 0, 0, false
	}
	return best, time.Duration(min(1, at.done) * float64(phases[best].Duration)), true
}

// follower finds the least costly path of a run through its phases.
type follower struct {
	phases []cluster.Phase
	kinds  []measure
	paths  []path // the least costly path into each phase so far
	next   []path
}

// measure is a kind that distinguishes phases, in units of the largest demand of a phase.
type measure struct {
	kind resource.Kind
	unit float64
}

func (m *measure) of(v *resource.Vector) float64 { return float64(v[m.kind]) / m.unit }

// path is a way through the phases up to one.
type path struct {
	cost   float64
	done   float64 // share of the work of the last phase
	unlike float64 // seconds × unlikeness
}

// tellingKinds returns the kinds that phases demand and that were measured.
func tellingKinds(phases []cluster.Phase, series []Stretch) (kinds []measure) {
	unknown := ^resource.Kinds(0)
	for i := range series {
		unknown &= series[i].Unknown
	}
	for k := range resource.NumKinds {
		most := resource.Amount(0)
		for i := range phases {
			most = max(most, phases[i].Demand[k])
		}
		if float64(most) > trifles[k] && !unknown.Has(k) {
			kinds = append(kinds, measure{k, float64(most)})
		}
	}
	return kinds
}

// measured reports whether s has a measurement that distinguishes phases.
func (f *follower) measured(s *Stretch) bool {
	for _, k := range f.kinds {
		if !s.Unknown.Has(k.kind) {
			return true
		}
	}
	return false
}

// differ reports whether two neighbouring phases differ in what was measured.
func (f *follower) differ() bool {
	for i := 1; i < len(f.phases); i++ {
		a, b := Stretch{Usage: f.phases[i-1].Demand}, Stretch{Usage: f.phases[i].Demand}
		there, back := f.compare(&a, &f.phases[i]), f.compare(&b, &f.phases[i-1])
		if max(there.unlike+there.spare, back.unlike+back.spare) >= leastApart {
			return true
		}
	}
	return false
}

// follow takes a stretch in.
func (f *follower) follow(s *Stretch) {
	seconds := s.Length.Seconds()
	come := path{cost: math.Inf(1)} // the best path that leaves a phase before p
	for p := range f.phases {
		phase := &f.phases[p]
		to := f.paths[p]
		if come.cost < to.cost {
			to = come
			to.done = 0
		}
		come.cost += f.leave(p, 0)
		if c := f.paths[p].cost + f.leave(p, f.paths[p].done); c < come.cost {
			come = f.paths[p]
			come.cost = c
		}
		c := f.compare(s, phase)
		before, work := to.done, seconds/max(1e-3, phase.Duration.Seconds())
		if c.idle > 0 { // It did not do more than the work of the phase.
			to.done = max(to.done, min(1, to.done+c.pace*work))
		} else {
			to.done += min(1, c.pace/fullPace) * work
		}
		to.unlike += min(1, max(c.unlike, c.idle)) * seconds
		to.cost += unlikeSecond * min(1, c.unlike+c.spare+slowest*(1-c.pace)) * seconds
		to.cost += late * f.weight(p) * (max(1, to.done) - max(1, before))
		f.next[p] = to
	}
	f.paths, f.next = f.next, f.paths
}

// leave returns what it costs to leave a phase of whose work the given share is done.
func (f *follower) leave(p int, done float64) float64 {
	return early * f.weight(p) * max(0, 1-done)
}

// weight is what a change into or out of a phase counts.
func (f *follower) weight(p int) float64 {
	return min(1, float64(f.phases[p].Duration)/float64(telling))
}

// comparison is what a stretch has in common with a phase.
type comparison struct {
	unlike float64 // how unlike they are at the pace that fits best; 0 if they are the same
	spare  float64 // what memory adds that the phase has and the run does not use, which does not contradict the forecast
	pace   float64 // the pace that fits best, from 0 to 1
	idle   float64 // the share of the time in which the run was idle, and the phase demands something
}

// compare compares a stretch with a phase. A phase that demands nothing but memory is taken to go on at its usual pace,
// which is 1.
func (f *follower) compare(s *Stretch, p *cluster.Phase) (c comparison) {
	product, square := 0.0, 0.0
	for i := range f.kinds {
		if k := &f.kinds[i]; k.kind != resource.Memory && !s.Unknown.Has(k.kind) {
			product += k.of(&s.Usage) * k.of(&p.Demand)
			square += k.of(&p.Demand) * k.of(&p.Demand)
		}
	}
	const nothing = 0.01
	if c.pace = 1; square > nothing {
		c.pace = min(1, product/square)
	}
	if c.pace < idlePace {
		c.idle, c.pace = s.Idle, max(c.pace, s.Idle)
	}
	for i := range f.kinds {
		k := &f.kinds[i]
		used, demand := k.of(&s.Usage), k.of(&p.Demand)
		switch {
		case s.Unknown.Has(k.kind):
		case k.kind != resource.Memory:
			c.unlike += math.Abs(used - c.pace*demand)
		case used > demand:
			c.unlike += memoryCounts * (used - demand)
		default:
			c.spare = memoryCounts * (demand - used)
		}
	}
	return c
}
