package policy

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// offenders are the jobs that back off: those of the tasks on nodes that are pressed. Prophet dispatches fewer tasks to the executors that are
// likely to overuse a resource, for a few rounds, until the resource gives what it can (section III.B). A job that backs off may have half of
// the executors that worked for it, and half of that if the node is still pressed when it reports again.
type offenders struct {
	lasts   time.Duration // 0 is never
	jobs    map[cluster.JobID]*offender
	changed []*cluster.JobState // that may have another number of executors than before this step
}

// usualOffence is how long back-off lasts by default. A machine reports every 10 s that it is still pressed: the next report then comes in time
// to halve again.
const usualOffence = "15s"

// offender is a job that backs off.
type offender struct {
	until timeline.Time
	since timeline.Time    // of the last report
	most  int              // executors that it may have
	nodes []cluster.NodeID // that have reported
	why   cluster.Reason
}

// follow takes what nodes have reported, and returns the jobs that may have more or fewer executors than before.
func (o *offenders) follow(now timeline.Time, p *cluster.Plan) []*cluster.JobState {
	o.changed = o.changed[:0]
	if o.lasts == 0 || len(o.jobs)+len(p.Changes.Pressed) == 0 {
		return nil
	}
	for _, id := range p.Changes.Pressed {
		if n := p.Nodes[id]; !n.Gone && n.Pressed != (resource.Vector{}) {
			for _, t := range n.Tasks {
				if !t.Steers {
					o.add(now, n, t.Job)
				}
			}
		}
	}
	next := timeline.Never
	for _, j := range p.Jobs {
		switch b := o.jobs[j.ID]; {
		case b == nil:
		case now >= b.until || b.relieved(p):
			delete(o.jobs, j.ID)
			o.changed = append(o.changed, j)
		case b.until < next:
			next = b.until
			p.WakeBy(next, b.why)
		}
	}
	for id := range o.jobs {
		if _, here := p.Job(id); !here {
			delete(o.jobs, id)
		}
	}
	return o.changed
}

// add lets a job back off.
func (o *offenders) add(now timeline.Time, n *cluster.NodeState, j *cluster.JobState) {
	b := o.jobs[j.ID]
	switch {
	case b == nil:
		b = &offender{most: j.Reservations}
		if o.jobs == nil {
			o.jobs = map[cluster.JobID]*offender{}
		}
		o.jobs[j.ID] = b
	case b.since == now: // another node of the job
		b.nodes = append(b.nodes, n.ID)
		return
	}
	k := n.PressedMost()
	*b = offender{until: now.Add(o.lasts), since: now, most: max(1, b.most/2), nodes: append(b.nodes, n.ID), why: cluster.BecauseNodePressure(k, n.Pressed[k], n.Capacity[k])}
	if !slices.Contains(o.changed, j) {
		o.changed = append(o.changed, j)
	}
}

// relieved reports whether no node that has reported is pressed any more.
func (b *offender) relieved(p *cluster.Plan) bool {
	return !slices.ContainsFunc(b.nodes, func(id cluster.NodeID) bool {
		return p.Nodes[id].Pressed != (resource.Vector{})
	})
}

// most is how many executors j may have.
func (o *offenders) most(j *cluster.JobState) int {
	if b := o.jobs[j.ID]; b != nil {
		return b.most
	}
	return math.MaxInt
}

// why says why j may not have another executor, if that is because it backs off.
func (o *offenders) why(j *cluster.JobState) (cluster.Reason, bool) {
	if b := o.jobs[j.ID]; b != nil && j.Reservations >= b.most {
		return b.why, true
	}
	return cluster.Reason{}, false
}
