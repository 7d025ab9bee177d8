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
// all have room. Every node gets one task, the nodes with the least scores first, before any gets a second one.
func (f *prophet) choose(now timeline.Time, p *cluster.Plan, a *applicant) (sum float64, ok bool) {
	f.find(p, a)
	room := 0
	for i := range a.places {
		room += a.places[i].times
	}
	a.chosen = a.chosen[:0]
	if room < a.tasks {
		return 0, false
	}
	for i := range a.places {
		f.rate(now, p.Snapshot, a, &a.places[i])
	}
	if a.tasks == 1 {
		a.chosen = append(a.chosen, slices.MinFunc(a.places, comparePlaces))
		return a.chosen[0].norm, true
	}
	for taken := 0; len(a.chosen) < a.tasks; taken++ {
		from := len(a.chosen)
		for _, on := range a.places {
			if on.times > taken {
				if taken > 0 {
					on.score = f.score(now, p.Snapshot, a, on.node, taken)
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

// chooseOn is choose for one task on a given node.
func (f *prophet) chooseOn(now timeline.Time, p *cluster.Plan, a *applicant, n *cluster.NodeState) (norm float64, ok bool) {
	f.find(p, a)
	a.chosen = a.chosen[:0]
	at, ok := slices.BinarySearchFunc(a.places, n.ID, placeOf)
	if !ok {
		return 0, false
	}
	on := &a.places[at]
	f.rate(now, p.Snapshot, a, on)
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

// rate scores a place if it has no score yet.
func (f *prophet) rate(now timeline.Time, s *cluster.Snapshot, a *applicant, on *place) {
	if !on.scored {
		on.score, on.scored = f.score(now, s, a, on.node, 0), true
	}
}

// score is the Euclidean norm of the overall scores of a task's resources on n (equation 8), once taken other tasks of
// a have started there.
func (f *prophet) score(now timeline.Time, s *cluster.Snapshot, a *applicant, n *cluster.NodeState, taken int) (total score) {
	spans := a.spans
	if taken > 0 {
		spans = slices.Clone(spans)
		for i := range spans {
			spans[i].Taken = spans[i].Demand.Scale(int64(taken))
		}
	}
	f.scored, f.gaps = f.scored[:0], f.gaps[:0]
	for k := range resource.NumKinds {
		if f.kinds.Has(k) && !n.Unknown.Has(k) {
			f.scored, f.gaps = append(f.scored, k), append(f.gaps, timeline.Gap{})
		}
	}
	f.ahead.of(now, s, n).Overlap(s.LaunchTime(a.job.Submitted, now), spans, f.scored, f.gaps)
	squares := 0.0
	for _, g := range f.gaps {
		idle, over := g.Idle.UnitSeconds()/float64(len(spans)), g.Over.UnitSeconds()/float64(len(spans))
		overall := float64((1-f.eta)*over) + float64(f.eta*idle) // converted: a processor may fuse a product and a sum
		squares += float64(overall * overall)
		total.idle, total.over = total.idle+idle, total.over+over
	}
	total.norm = math.Sqrt(squares)
	return total
}
