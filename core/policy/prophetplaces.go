package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// best returns the considered job with the least sum of scores, with its chosen places, and how many of the
// considered jobs have room for all of their tasks; best is nil if none has. Most jobs are not scored: a lower bound
// of their sum is not below the sum of the best job.
func (f *prophet) best(now timeline.Time, p *book.Plan) (best *applicant, room int) {
	var likely *applicant
	for _, a := range f.contest {
		if a.fits = f.fit(p, a); a.fits {
			room++
			if a.norm = f.leastSum(now, p.Snapshot, a); likely == nil || a.norm < likely.norm {
				likely = a
			}
		}
	}
	if likely == nil {
		return nil, 0
	}
	// Just above the sum of the likely job: among equals, the job that has waited longest is the best.
	least := math.Nextafter(f.choose(now, p, likely, math.Inf(1)), math.Inf(1))
	for _, a := range f.contest {
		limit := least
		if !a.explained() {
			limit = math.Inf(1)
		}
		if a.fits && a.norm < limit {
			if a.norm = f.choose(now, p, a, limit); a.norm < least {
				best, least = a, a.norm
			}
		}
	}
	return best, room
}

// fit brings the places of a up to date and reports whether all of its tasks have room.
func (f *prophet) fit(p *book.Plan, a *applicant) bool {
	f.find(p, a)
	room := 0
	for _, on := range f.eligible(a) {
		room += on.times
	}
	return room >= a.tasks
}

// eligible returns the places on which tasks of a may start.
func (f *prophet) eligible(a *applicant) []place {
	if f.first == nil || a.tasks > 1 {
		return a.places
	}
	at, ok := slices.BinarySearchFunc(a.places, f.first.ID, placeOf)
	if !ok {
		return nil
	}
	return a.places[at : at+1]
}

// leastSum returns a lower bound of the sum of the scores of the tasks of a, which have room.
func (f *prophet) leastSum(now timeline.Time, s *book.Snapshot, a *applicant) (sum float64) {
	f.norms = f.norms[:0]
	places := f.eligible(a)
	for i := range places {
		f.bound(now, s, a, &places[i])
		f.norms = append(f.norms, places[i].norm)
	}
	if a.tasks == 1 {
		return slices.Min(f.norms)
	}
	slices.Sort(f.norms)
	for _, norm := range f.norms[:min(len(f.norms), a.tasks)] {
		sum += norm
	}
	return sum
}

// choose stores in a.chosen where the tasks of a start, which have room, and returns the sum of their scores. No node
// gets a second task before every node has one; nodes with lower scores come first. If the sum is not below limit,
// choose may return Inf and leave a.chosen empty, which takes less time.
func (f *prophet) choose(now timeline.Time, p *book.Plan, a *applicant, limit float64) (sum float64) {
	a.chosen = a.chosen[:0]
	if a.tasks == 1 {
		return f.chooseOne(now, p, a, limit)
	}
	for i := range a.places {
		f.rate(now, p.Snapshot, a, &a.places[i], math.Inf(1))
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
	return sum
}

// chooseOne is choose for one task.
func (f *prophet) chooseOne(now timeline.Time, p *book.Plan, a *applicant, limit float64) (norm float64) {
	norm = math.Inf(1)
	places := f.eligible(a)
	for i := range places {
		on := &places[i]
		if f.rate(now, p.Snapshot, a, on, min(limit, norm)); on.exact && on.norm < norm {
			a.chosen, norm = append(a.chosen[:0], *on), on.norm
		}
	}
	return norm
}

// firstWithRoom returns the first node with room for a task of a job that is considered; nil if there is none.
func (f *prophet) firstWithRoom(p *book.Plan) (first *book.NodeState) {
	for _, a := range f.contest {
		f.find(p, a)
		if len(a.places) > 0 && a.tasks == 1 && (first == nil || a.places[0].node.ID < first.ID) {
			first = a.places[0].node
		}
	}
	return first
}

func placeOf(a place, id cluster.NodeID) int { return cmp.Compare(a.node.ID, id) }

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.norm, b.norm), cmp.Compare(a.node.ID, b.node.ID))
}

// find updates a.places, which are sorted by NodeID. During a decision room only shrinks, and only on nodes on which
// tasks start.
func (f *prophet) find(p *book.Plan, a *applicant) {
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

// search finds all places for tasks of a. A single task starts only on a node that takes new work now. Tasks that
// start at once start on any nodes with room: where nodes report by heartbeats, these nodes would never all report in
// the same step, and room that the plan knows of was reported before.
func (f *prophet) search(p *book.Plan, a *applicant) {
	a.places = a.places[:0]
	nodes := f.open.find(f.decision, p, f.queue.Jobs)
	if a.tasks == 1 {
		nodes = f.open.taking
	}
	for _, n := range nodes {
		if on, room := a.room(p, n); room {
			a.places = append(a.places, on)
		}
	}
}

// openNodes are the nodes with room for what each job in the queue needs at least: a superset of those with room for
// any of the jobs.
type openNodes struct {
	least  resource.Vector   // what each job in the queue needs at least
	left   bool              // a job has left the queue since least was computed
	all    []*book.NodeState // nodes with room for least, by NodeID
	taking []*book.NodeState // nodes of all that took new work when all was computed
	found  uint64            // the decision of all; 0 if least has changed since
}

// needs says that a job in the queue has a need.
func (o *openNodes) needs(need resource.Vector) {
	if !o.least.FitsIn(need) {
		o.least, o.found = o.least.Min(need), 0
	}
}

// find returns the nodes for a decision. There must be jobs in the queue.
func (o *openNodes) find(decision uint64, p *book.Plan, jobs []queue.Entry[*applicant]) []*book.NodeState {
	if o.found == decision {
		return o.all
	}
	if o.left {
		o.left, o.least = false, jobs[0].With.need
		for i := range jobs {
			o.least = o.least.Min(jobs[i].With.need)
		}
	}
	o.found, o.all, o.taking = decision, o.all[:0], o.taking[:0]
	for n, ok := p.FirstOpen(o.least, 0); ok; n, ok = p.FirstOpen(o.least, n.ID+1) {
		if o.all = append(o.all, n); p.Takes(n) {
			o.taking = append(o.taking, n)
		}
	}
	return o.all
}

// touch drops a node on which a task was started if it has too little room now.
func (o *openNodes) touch(n *book.NodeState) {
	if at, ok := slices.BinarySearchFunc(o.all, n.ID, nodeByID); ok && !o.least.FitsIn(n.Free) {
		o.all = slices.Delete(o.all, at, at+1)
	}
}

// touch notes that a task was started on n.
func (f *prophet) touch(n *book.NodeState) {
	f.touched = append(f.touched, n)
	f.open.touch(n)
}

func nodeByID(n *book.NodeState, id cluster.NodeID) int { return cmp.Compare(n.ID, id) }

// room returns n as a place, without its score; ok is false if n has no room for a task of a.
func (a *applicant) room(p *book.Plan, n *book.NodeState) (on place, ok bool) {
	times := a.timesOn(n)
	if times == 0 || a.tasks == 1 && !p.Takes(n) {
		return place{}, false
	}
	return place{node: n, times: times}, true
}

// timesOn is how many tasks of a may start on n.
func (a *applicant) timesOn(n *book.NodeState) int {
	if a.apart {
		for _, t := range a.job.Tasks {
			if t.Node == n && int(t.ID.Stage) == a.stage {
				return 0
			}
		}
	}
	return n.Times(a.need, a.each)
}

// rate scores a place unless a lower bound of its norm is not below limit.
func (f *prophet) rate(now timeline.Time, s *book.Snapshot, a *applicant, on *place, limit float64) {
	if limit < math.Inf(1) {
		f.bound(now, s, a, on)
	}
	if !on.exact && on.norm < limit {
		on.score, on.exact, on.least = f.score(now, s, a, on.node, 0), true, true
	}
}

// bound computes a lower bound of a place's norm, in less time than its score. Rounding does not matter: areas are
// exact, and smaller areas never weigh more.
func (f *prophet) bound(now timeline.Time, s *book.Snapshot, a *applicant, on *place) {
	if on.least {
		return
	}
	var space [resource.NumKinds]resource.Kind
	var gaps [resource.NumKinds]timeline.Gap
	kinds := f.known(on.node, space[:0])
	f.ahead.of(now, s, on.node).Net(s.LaunchTime(a.submitted, now), a.spans, kinds, gaps[:])
	on.norm, on.least = f.weigh(gaps[:len(kinds)], len(a.spans)).norm, true
}

// score returns what a task of a costs on n if taken other tasks of a start there, too.
func (f *prophet) score(now timeline.Time, s *book.Snapshot, a *applicant, n *book.NodeState, taken int) score {
	return f.foresee(now, s, n, a.submitted, a.spans, taken)
}
