package mira

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// offenders are the jobs that back off: those of the tasks on nodes that are pressed. Prophet dispatches fewer tasks
// to the executors that are likely to overuse a resource, for a few rounds, until the resource gives what it can
// (section III.B). A job that backs off may have half of the executors that worked for it, and half of that if the
// node is still pressed when it reports again.
type offenders struct {
	lasts   time.Duration    // 0 is never
	changed []*book.JobState // that may have another number of executors than before this step
}

// usualOffence is how long back-off lasts by default. A machine reports every 10 s that it is still pressed: the next
// report then comes in time to halve again.
const usualOffence = "15s"

// follow takes what nodes have reported, and returns the jobs that may have more or fewer executors than before.
func (o *offenders) follow(now timeline.Time, p *book.Plan) []*book.JobState {
	o.changed = o.changed[:0]
	if o.lasts == 0 {
		return nil
	}
	for _, id := range p.Changes.Pressed {
		if n := p.Nodes[id]; !n.Gone && n.Pressed != (resource.Vector{}) {
			for _, t := range n.Tasks {
				if !t.Steers {
					o.add(now, p, n, t.Job)
				}
			}
		}
	}
	next := timeline.Never
	for _, j := range p.Jobs {
		switch b := j.Backoff; {
		case b == nil:
		case now >= b.Until || relieved(p, b):
			p.EndBackoff(j)
			o.changed = append(o.changed, j)
		case b.Until < next:
			next = b.Until
			p.WakeBy(next, b.Why)
		}
	}
	return o.changed
}

// add lets a job back off.
func (o *offenders) add(now timeline.Time, p *book.Plan, n *book.NodeState, j *book.JobState) {
	was := book.Backoff{Most: j.Reservations}
	if b := j.Backoff; b != nil && b.Since == now { // another node of the job
		b.Nodes = append(b.Nodes, n.ID)
		return
	} else if b != nil {
		was = *b
	}
	k := n.PressedMost()
	p.BackOff(j, book.Backoff{Until: now.Add(o.lasts), Since: now, Most: max(1, was.Most/2),
		Nodes: append(was.Nodes, n.ID), Why: cluster.BecauseNodePressure(k, n.Pressed[k], n.Capacity[k])})
	if !slices.Contains(o.changed, j) {
		o.changed = append(o.changed, j)
	}
}

// relieved reports whether no node that has reported is pressed any more.
func relieved(p *book.Plan, b *book.Backoff) bool {
	return !slices.ContainsFunc(b.Nodes, func(id cluster.NodeID) bool {
		return p.Nodes[id].Pressed != (resource.Vector{})
	})
}

// mostExecutors is how many executors j may have.
func mostExecutors(j *book.JobState) int {
	if b := j.Backoff; b != nil {
		return b.Most
	}
	return math.MaxInt
}

// whyBackoff says why j may not have another executor, if that is because it backs off.
func whyBackoff(j *book.JobState) (cluster.Reason, bool) {
	if b := j.Backoff; b != nil && j.Reservations >= b.Most {
		return b.Why, true
	}
	return cluster.Reason{}, false
}
