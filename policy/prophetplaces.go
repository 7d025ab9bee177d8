package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// choose finds where the tasks of a start, in a.chosen, and returns the sum of their scores; ok is false if they do not
// all have room. Every node gets one task, the nodes with the least scores first, before any gets a second one. If the
// sum is not below limit, it may be Inf instead, and a.chosen empty: to find that out takes less time.
func (f *prophet) choose(now timeline.Time, p *cluster.Plan, a *applicant, limit float64) (sum float64, ok bool) {
	f.find(p, a)
	room := 0
	for i := range a.places {
		room += a.places[i].times
	}
	a.chosen = a.chosen[:0]
	if room < a.tasks {
		return 0, false
	}
	if a.tasks == 1 {
		return f.chooseOne(now, p, a, limit), true
	}
	for i := range a.places {
		f.rate(now, p.Snapshot, a, &a.places[i], math.Inf(1))
	}
	for taken := 0; len(a.chosen) < a.tasks; taken++ {
		from := len(a.chosen)
		for _, on := range a.places {
			if on.times > taken {
				if taken > 0 {
					on.score, _ = f.score(now, p.Snapshot, a, on.node, taken, math.Inf(1))
				}
				a.chosen = append(a.chosen, on)
			}
		}
		slices.SortFunc(a.chosen[from:], comparePlaces)
		a.chosen = a.chosen[:min(len(a.chosen), a.tasks)]
	}
	for _, on := range a.chosen {
		sum += on.norm
	}
	return sum, true
}

// chooseOne is choose for one task, for which there is a place.
func (f *prophet) chooseOne(now timeline.Time, p *cluster.Plan, a *applicant, limit float64) (norm float64) {
	norm = math.Inf(1)
	for i := range a.places {
		on := &a.places[i]
		if f.rate(now, p.Snapshot, a, on, min(limit, norm)); on.exact && on.norm < norm {
			a.chosen, norm = append(a.chosen[:0], *on), on.norm
		}
	}
	return norm
}

// chooseOn is choose for one task on a given node.
func (f *prophet) chooseOn(now timeline.Time, p *cluster.Plan, a *applicant, n *cluster.NodeState) (norm float64, ok bool) {
	f.find(p, a)
	a.chosen = a.chosen[:0]
	at, ok := slices.BinarySearchFunc(a.places, n.ID, placeOf)
	if !ok {
		return 0, false
	}
	on := &a.places[at]
	f.rate(now, p.Snapshot, a, on, math.Inf(1))
	a.chosen = append(a.chosen, *on)
	return on.norm, true
}

// firstWithRoom returns the first node with room for a task of a job that is considered; nil if there is none.
func (f *prophet) firstWithRoom(p *cluster.Plan) (first *cluster.NodeState) {
	f.consider(p.Snapshot, func(a *applicant) {
		f.find(p, a)
		if len(a.places) > 0 && a.tasks == 1 && (first == nil || a.places[0].node.ID < first.ID) {
			first = a.places[0].node
		}
	})
	return first
}

func placeOf(a place, id cluster.NodeID) int { return cmp.Compare(a.node.ID, id) }

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.norm, b.norm), cmp.Compare(a.node.ID, b.node.ID))
}

// find brings a.places up to date, which are sorted by NodeID. During a decision room only shrinks, and only on nodes on which
// tasks start.
func (f *prophet) find(p *cluster.Plan, a *applicant) {
	if a.decision != f.decision {
		a.decision, a.touched, a.loss = f.decision, len(f.touched), cluster.Reason{}
		f.search(p, a)
		return
	}
	for _, n := range f.touched[a.touched:] {
		at, ok := slices.BinarySearchFunc(a.places, n.ID, placeOf)
		if !ok {
			continue
		}
		if on, room := a.room(p, n); room {
			a.places[at] = on
		} else {
			a.places = slices.Delete(a.places, at, at+1)
		}
	}
	a.touched = len(f.touched)
}

// search finds all places for tasks of a. Where nodes report by heartbeats, one task starts on a node that reports, but tasks that
// start at once cannot wait until all of their nodes report in the same moment: what ended on a node is known only from its reports,
// so that what the plan knows to be free is free.
func (f *prophet) search(p *cluster.Plan, a *applicant) {
	a.places = a.places[:0]
	add := func(n *cluster.NodeState) {
		if on, room := a.room(p, n); room {
			a.places = append(a.places, on)
		}
	}
	if p.AtOnce() || a.tasks > 1 {
		for _, n := range f.openFor(p, a.need) {
			add(n)
		}
		return
	}
	for n := range p.Offered() {
		if n.ReservedFor == nil && p.Takes(n) {
			add(n)
		}
	}
	slices.SortFunc(a.places, func(a, b place) int { return cmp.Compare(a.node.ID, b.node.ID) })
	a.places = slices.CompactFunc(a.places, func(a, b place) bool { return a.node == b.node })
}

// openFor returns nodes among which are all with room for a need, by NodeID. They are the same for all jobs: those with room for what
// any of them needs at least.
func (f *prophet) openFor(p *cluster.Plan, need resource.Vector) []*cluster.NodeState {
	if f.opened == f.decision && f.least.FitsIn(need) {
		return f.open
	}
	f.opened, f.least, f.open = f.decision, need, f.open[:0]
	for i := range f.queue.jobs {
		f.least = f.least.Min(f.queue.jobs[i].with.need)
	}
	for n, ok := p.FirstOpen(f.least, 0); ok; n, ok = p.FirstOpen(f.least, n.ID+1) {
		f.open = append(f.open, n)
	}
	return f.open
}

// room returns n as a place, without its score; ok is false if n has no room for a task of a.
func (a *applicant) room(p *cluster.Plan, n *cluster.NodeState) (on place, ok bool) {
	times := a.timesOn(n)
	if times == 0 || a.tasks == 1 && !p.Takes(n) {
		return place{}, false
	}
	return place{node: n, times: times}, true
}

// timesOn is how many tasks of a may start on n.
func (a *applicant) timesOn(n *cluster.NodeState) int {
	if a.apart {
		for _, t := range a.job.Tasks {
			if t.Node == n && int(t.ID.Stage) == a.stage {
				return 0
			}
		}
	}
	return n.Times(a.need, a.each)
}

// rate scores a place, at least as far as is necessary to know that its norm is not below limit.
func (f *prophet) rate(now timeline.Time, s *cluster.Snapshot, a *applicant, on *place, limit float64) {
	if !on.exact && on.norm < limit {
		on.score, on.exact = f.score(now, s, a, on.node, 0, limit)
	}
}

// score is the Euclidean norm of the overall scores of a task's resources on n (equation 8), once taken other tasks of
// a have started there. If exact is false, the norm is only some of it, which is not below limit.
func (f *prophet) score(now timeline.Time, s *cluster.Snapshot, a *applicant, n *cluster.NodeState, taken int, limit float64) (total score, exact bool) {
	spans := a.spans
	if taken > 0 {
		spans = slices.Clone(spans)
		for i := range spans {
			spans[i].Taken = spans[i].Demand.Scale(int64(taken))
		}
	}
	available, start := f.ahead.of(now, s, n), s.LaunchTime(a.job.Submitted, now)
	squares, stages := 0.0, float64(len(spans))
	for i := range f.kinds {
		if n.Unknown.Has(f.kinds[i]) {
			continue
		}
		if total.norm >= limit {
			return total, false
		}
		var gap [1]timeline.Gap
		available.Overlap(start, spans, f.kinds[i:i+1], gap[:])
		idle, over := gap[0].Idle.UnitSeconds()/stages, gap[0].Over.UnitSeconds()/stages
		overall := float64((1-f.eta)*over) + float64(f.eta*idle) // converted: a processor may fuse a product and a sum
		squares += float64(overall * overall)
		total.norm, total.idle, total.over = math.Sqrt(squares), total.idle+idle, total.over+over
	}
	return total, true
}
