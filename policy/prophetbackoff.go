package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// backoff relieves a node whose tasks hinder each other (Prophet, section III.B): a resource is busy and gives much less
// than it could. The paper dispatches fewer tasks to the executors that are likely to overuse the resource, for a few
// rounds. Here the tasks themselves are throttled, for a while.
type backoff struct {
	lasts   time.Duration // 0 is never
	demands []demand
	sorted  []resource.Amount
}

// demand is what a task is forecast to demand at present.
type demand struct {
	task *cluster.TaskState
	of   resource.Vector
	most resource.Vector // what it may use; a component of 0 is no bound
}

// relieve throttles tasks on the nodes whose pressure has changed.
func (b *backoff) relieve(now timeline.Time, p *cluster.Plan, a *ahead) {
	if b.lasts == 0 {
		return
	}
	for _, id := range p.Changes.Pressed {
		if n := p.Nodes[id]; !n.Gone && n.Pressed != (resource.Vector{}) {
			b.throttle(now, p, n, a)
		}
	}
}

func (b *backoff) throttle(now timeline.Time, p *cluster.Plan, n *cluster.NodeState, a *ahead) {
	b.demands = b.demands[:0]
	for _, t := range n.Tasks {
		if t.Running && !t.Killing && !t.Still {
			end, _ := t.UsualEnd(now) // Never if unknown
			a.steps = a.steps[:0]
			b.demands = append(b.demands, demand{task: t, of: a.demand(now, t, end)})
		}
	}
	for k := range resource.NumKinds {
		if n.Pressed[k] > 0 && !n.Unknown.Has(k) {
			b.share(k, n.Capacity[k])
		}
	}
	for i := range b.demands {
		d := &b.demands[i]
		if d.most == (resource.Vector{}) {
			continue
		}
		if before, ok := d.task.Bounded(now); ok { // other resources that were pressed before
			for k := range d.most {
				if n.Pressed[k] == 0 {
					d.most[k] = before.Bound[k]
				}
			}
		}
		k := pressedMost(n)
		p.Throttle(d.task, d.most, now.Add(b.lasts), cluster.BecauseNodePressure(k, n.Pressed[k], n.Capacity[k]))
	}
}

// pressedMost returns the resource of which n gives the smallest share of its capacity.
func pressedMost(n *cluster.NodeState) resource.Kind {
	most, least := resource.Disk, math.Inf(1)
	for k := range resource.NumKinds {
		if share := float64(n.Pressed[k]) / float64(max(1, n.Capacity[k])); n.Pressed[k] > 0 && share < least {
			most, least = k, share
		}
	}
	return most
}

// share bounds what tasks use of a resource. If they are forecast to demand more than there is, the tasks with the
// largest demands are bounded, all to the same level, so that the demands are met exactly (max-min fairness). If not,
// some tasks use more than was forecast: each may use its forecast and an equal part of what is left.
func (b *backoff) share(k resource.Kind, capacity resource.Amount) {
	level, over := b.level(k, capacity)
	for i := range b.demands {
		d := &b.demands[i]
		switch {
		case !over:
			d.most[k] = max(1, d.of[k]+level)
		case d.of[k] > level:
			d.most[k] = max(1, level)
		}
	}
}

// level returns the largest use at which the demands for a resource, each bounded by that use, add up to capacity. over is
// false if they do not exceed the capacity: level is then the part of the rest for each task.
func (b *backoff) level(k resource.Kind, capacity resource.Amount) (level resource.Amount, over bool) {
	b.sorted = b.sorted[:0]
	for i := range b.demands {
		b.sorted = append(b.sorted, b.demands[i].of[k])
	}
	slices.SortFunc(b.sorted, cmp.Compare)
	left := capacity
	for i, d := range b.sorted {
		if part := left / resource.Amount(len(b.sorted)-i); d > part {
			return part, true
		}
		left -= d
	}
	return left / resource.Amount(max(1, len(b.sorted))), false
}
