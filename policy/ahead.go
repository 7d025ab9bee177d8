package policy

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// ahead foresees what nodes have available: what they have, less what the tasks that run there are forecast to demand
// (Prophet, Figure 4). The zero ahead foresees nothing yet.
type ahead struct {
	views   []view // by NodeID
	changes []timeline.Step
}

// view is what is available on a node from the time at which it was computed on.
type view struct {
	version   uint64
	known     bool
	moves     bool // a task stands still, so that its demand moves as time passes
	at        timeline.Time
	available timeline.Timeline
}

// of returns what n will have available from now on. It is valid until the next call for n.
func (a *ahead) of(now timeline.Time, s *cluster.Snapshot, n *cluster.NodeState) *timeline.Timeline {
	for len(a.views) <= int(n.ID) {
		a.views = append(a.views, view{})
	}
	v := &a.views[n.ID]
	if !v.known || v.version != n.Version || v.moves && v.at != now || now < v.at {
		a.look(now, s, n, v)
	}
	return &v.available
}

// look computes a view from what the tasks on n demand.
func (a *ahead) look(now timeline.Time, s *cluster.Snapshot, n *cluster.NodeState, v *view) {
	v.version, v.known, v.moves, v.at = n.Version, true, false, now
	available := n.Capacity
	a.changes = a.changes[:0]
	for _, t := range n.Tasks {
		v.moves = v.moves || t.Still
		available = available.Sub(a.demand(now, s, t))
	}
	v.available.Sum(available, a.changes)
}

// demand returns what t demands now, and adds the later changes of what is available. A task with a forecast is as far
// from its end as its estimated end says: its phases are stretched or shortened as the whole task is. A task that stands
// still goes on now, and an overdue task demands nothing more. A task without a forecast demands its grant until it
// ends.
func (a *ahead) demand(now timeline.Time, s *cluster.Snapshot, t *cluster.TaskState) (present resource.Vector) {
	end, known := s.EstimatedEnd(t, timeline.Earliest)
	if known && t.Still {
		end, _ = s.EstimatedEnd(t, now)
	}
	if !known {
		return t.Grant
	}
	from := end.Add(-t.Duration)
	phases := t.Stage().Phases
	length := lengthOf(phases)
	if length == 0 {
		return a.spend(now, from, end, t.Grant)
	}
	stretch := float64(t.Duration) / float64(length)
	for i := range phases {
		until := end
		if i < len(phases)-1 {
			until = from.Add(time.Duration(float64(phases[i].Duration) * stretch))
		}
		present = present.Add(a.spend(now, from, until, phases[i].Demand))
		from = until
	}
	return present
}

// spend takes a demand from what is available from one time to another. It returns the demand if it is there already.
func (a *ahead) spend(now, from, until timeline.Time, demand resource.Vector) (present resource.Vector) {
	if until <= now || until <= from {
		return resource.Vector{}
	}
	a.changes = append(a.changes, timeline.Step{At: until, Value: demand})
	if from <= now {
		return demand
	}
	a.changes = append(a.changes, timeline.Step{At: from, Value: resource.Vector{}.Sub(demand)})
	return resource.Vector{}
}

func lengthOf(phases []cluster.Phase) (total time.Duration) {
	for i := range phases {
		total += phases[i].Duration
	}
	return total
}

// forecast returns what a task of a stage demands from its start on, for Timeline.Overlap: its phases, or else what it
// needs for its run time, or for unknown if that is unknown. Of n phases, phase i weighs n-i: what comes later is less
// certain (Prophet: 1-i/n, so that areas are still to be divided by n). Phases of no length do not count.
func forecast(s *cluster.Stage, unknown time.Duration, to []timeline.Span) []timeline.Span {
	to = to[:0]
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
