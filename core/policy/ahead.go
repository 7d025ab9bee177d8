package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// ahead foresees what nodes have available: their capacity less what the tasks that run there are forecast to demand
// (Prophet, Figure 4). An ahead with kinds alone foresees nothing yet.
type ahead struct {
	kinds []resource.Kind // for which of computes what is available
	views []view          // by NodeID
	steps []timeline.Step
	parts []part
	gone  []cluster.TaskID
}

// view is what is available on a node. When the node changes, only the forecasts of tasks that came, left or deviate
// from what was foreseen are read: to read those of all tasks would take most of the time of a decision, because they
// are seldom in the processor's cache.
type view struct {
	version   uint64
	known     bool
	moves     bool // a task stands still, so that its demand shifts as time passes
	at        timeline.Time
	present   resource.Vector // available at the time at
	tasks     []part
	changes   []timeline.Step  // of what is available, after at, in the order of time
	owners    []cluster.TaskID // of the changes
	available timeline.Supply
}

// part is a task in a view, as it was when it was looked at.
type part struct {
	id       cluster.TaskID
	decision cluster.DecisionID
	end      timeline.Time // Never if unknown
	holds    resource.Vector
	there    bool
}

// of returns what n will have available from now on. It is valid until the next call for n.
func (a *ahead) of(now timeline.Time, s *book.Snapshot, n *book.NodeState) *timeline.Supply {
	for len(a.views) <= int(n.ID) {
		a.views = append(a.views, view{})
	}
	v := &a.views[n.ID]
	if v.known && v.version == n.Version && (!v.moves || v.at == now) {
		return &v.available
	}
	if !v.known || now < v.at {
		*v = view{known: true, present: n.Capacity}
	}
	past := v.pass(now)
	a.look(s, n, v)
	a.drop(v, past)
	a.add(n, v)
	v.available.Set(v.present, v.changes, a.kinds)
	return &v.available
}

// pass moves a view to a later time, and returns how many of its changes are past.
func (v *view) pass(now timeline.Time) (past int) {
	v.at = now
	for past < len(v.changes) && v.changes[past].At <= now {
		v.present = v.present.Add(v.changes[past].Value)
		past++
	}
	return past
}

// look marks the parts of a view that are still valid, and collects the parts to add.
func (a *ahead) look(s *book.Snapshot, n *book.NodeState, v *view) {
	v.version, v.moves = n.Version, false
	for i := range v.tasks {
		v.tasks[i].there = false
	}
	a.parts = a.parts[:0]
	for i, t := range n.Tasks {
		end, known := s.EstimatedEnd(t, timeline.Earliest)
		if t.Suspended {
			v.moves = true
			end, known = s.EstimatedEnd(t, v.at)
		}
		if !known {
			end = timeline.Never
		}
		p := part{t.ID, t.Decision, end, t.Holds(), true}
		if at := v.find(i, &p); at >= 0 {
			v.tasks[at].there = true
		} else {
			a.parts = append(a.parts, p)
		}
	}
}

// add adds the parts that look found.
func (a *ahead) add(n *book.NodeState, v *view) {
	for i := range a.parts {
		p := &a.parts[i]
		v.tasks = append(v.tasks, *p)
		t := n.Tasks[slices.IndexFunc(n.Tasks, func(t *book.TaskState) bool { return t.ID == p.id })]
		a.steps = a.steps[:0]
		v.present = v.present.Sub(a.demand(v.at, t, p.end))
		v.merge(p.id, a.steps)
	}
}

// find returns the index of the same part, which is likely to be near the given one; -1 if there is none.
func (v *view) find(near int, p *part) int {
	same := func(q part) bool {
		return q.decision == p.decision && q.id == p.id && q.end == p.end && q.holds == p.holds
	}
	if near < len(v.tasks) && same(v.tasks[near]) {
		return near
	}
	return slices.IndexFunc(v.tasks, same)
}

// drop removes from a view the changes that are past, and the tasks that are no longer there. What the tasks would
// demand is available: of a task with a known end, that is the sum of its changes to come.
func (a *ahead) drop(v *view, past int) {
	a.gone = a.gone[:0]
	for i := range v.tasks {
		if p := &v.tasks[i]; !p.there {
			a.gone = append(a.gone, p.id)
			if p.end == timeline.Never {
				v.present = v.present.Add(p.holds)
			}
		}
	}
	kept := 0
	for i := past; i < len(v.changes); i++ {
		if slices.Contains(a.gone, v.owners[i]) {
			v.present = v.present.Add(v.changes[i].Value)
		} else {
			v.changes[kept], v.owners[kept] = v.changes[i], v.owners[i]
			kept++
		}
	}
	v.changes, v.owners = v.changes[:kept], v.owners[:kept]
	v.tasks = slices.DeleteFunc(v.tasks, func(p part) bool { return !p.there })
}

// merge adds the changes of a task.
func (v *view) merge(owner cluster.TaskID, steps []timeline.Step) {
	slices.SortFunc(steps, func(a, b timeline.Step) int { return cmp.Compare(a.At, b.At) })
	i, k := len(v.changes), len(steps)
	v.changes = append(v.changes, steps...)
	for range steps {
		v.owners = append(v.owners, owner)
	}
	for at := len(v.changes) - 1; k > 0; at-- {
		if i > 0 && v.changes[i-1].At > steps[k-1].At {
			i--
			v.changes[at], v.owners[at] = v.changes[i], v.owners[i]
		} else {
			k--
			v.changes[at], v.owners[at] = steps[k], owner
		}
	}
}

// demand returns what t demands now, and adds the later changes of what is available. A task with a forecast is as far
// from its end as its estimated end says: its phases are stretched or shortened as the whole task is. A task that
// stands still goes on now, unless it lends what it does not hold: then it demands its memory alone. An overdue task
// demands nothing more. A task without a forecast demands its grant until it ends.
func (a *ahead) demand(now timeline.Time, t *book.TaskState, end timeline.Time) (present resource.Vector) {
	if end == timeline.Never {
		return t.Holds()
	}
	from := end.Add(-t.Duration)
	phases := t.Stage().Phases
	length := t.Stage().ForecastLength()
	if length == 0 {
		return a.spend(now, from, end, t.Holds())
	}
	stretch := float64(t.Duration) / float64(length)
	for i := range phases {
		until := end
		if i < len(phases)-1 {
			until = from.Add(time.Duration(float64(phases[i].Duration) * stretch))
		}
		demand := phases[i].Demand
		if t.Lends() {
			demand = demand.Min(t.Holds())
		}
		present = present.Add(a.spend(now, from, until, demand))
		from = until
	}
	return present
}

// spend takes a demand from what is available from one time to another. It returns the demand if it is there already.
func (a *ahead) spend(now, from, until timeline.Time, demand resource.Vector) (present resource.Vector) {
	if until <= now || until <= from {
		return resource.Vector{}
	}
	a.steps = append(a.steps, timeline.Step{At: until, Value: demand})
	if from <= now {
		return demand
	}
	a.steps = append(a.steps, timeline.Step{At: from, Value: resource.Vector{}.Sub(demand)})
	return resource.Vector{}
}

// forecast returns what a task of a stage demands from its start on, for Supply.Overlap: its phases, or else what it
// needs for its run time, or for unknown if that is unknown. Of n phases, phase i weighs n-i: what comes later is less
// certain (Prophet: 1-i/n, so that areas are still to be divided by n). Phases of no length do not count.
func forecast(s *cluster.Stage, unknown time.Duration, to []timeline.Span) []timeline.Span {
	to = slices.Grow(to[:0], max(1, len(s.Phases)))
	for i := range s.Phases {
		if p := &s.Phases[i]; p.Duration > 0 {
			to = append(to, timeline.Span{Length: p.Duration, Demand: p.Demand})
		}
	}
	if len(to) == 0 {
		length := s.Duration
		if length <= 0 {
			length = unknown
		}
		to = append(to, timeline.Span{Length: length, Demand: s.Peak()})
	}
	for i := range to {
		to[i].Weight = int64(len(to) - i)
	}
	return to
}
