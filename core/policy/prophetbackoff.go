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

// backoff relieves a node whose tasks hinder each other (Prophet, section III.B): a resource is busy and gives much
// less than it could. The paper dispatches fewer tasks to the executors that are likely to overuse the resource, for
// a few rounds. Here the tasks themselves are throttled for a fixed time.
type backoff struct {
	lasts   time.Duration // 0 is never
	turns   bool          // tasks take turns, instead of sharing
	told    bool          // tasks of which no demand of the resource is forecast are left alone
	demands []demand
	sorted  []resource.Amount
	order   []*demand
}

// usualBackoff is how long back-off lasts by default: "a few task scheduling rounds" of Spark, which has one every
// second at least.
const usualBackoff = "5s"

// demand is what a task is forecast to demand at present.
type demand struct {
	task   *book.TaskState
	of     resource.Vector
	most   resource.Vector // what it may use; a component of 0 is no bound
	waited time.Duration   // for which the task has been throttled so far
}

// crawl is the fraction of a node's capacity (1/crawl) that a task may use while it waits for its turn: too little to
// hinder other tasks, and enough for a task to end that needs hardly any.
const crawl = 200

// relieve throttles tasks on the nodes whose pressure has changed.
func (b *backoff) relieve(now timeline.Time, p *book.Plan, a *ahead) {
	if b.lasts == 0 {
		return
	}
	for _, id := range p.Changes.Pressed {
		if n := p.Nodes[id]; !n.Gone && n.Pressed != (resource.Vector{}) {
			b.throttle(now, p, n, a)
		}
	}
}

func (b *backoff) throttle(now timeline.Time, p *book.Plan, n *book.NodeState, a *ahead) {
	b.demands = b.demands[:0]
	for _, t := range n.Tasks {
		if t.Running && !t.Killing && !t.Suspended && !(b.told && t.Stage().Phases == nil) {
			end, _ := t.UsualEnd(now) // Never if unknown
			a.steps = a.steps[:0]
			b.demands = append(b.demands, demand{task: t, of: a.demand(now, t, end), waited: t.ThrottledFor(now)})
		}
	}
	for k := range resource.NumKinds {
		switch {
		case n.Pressed[k] == 0 || n.Unknown.Has(k):
		case b.turns:
			b.takeTurns(k, n.Capacity[k])
		default:
			b.share(k, n.Capacity[k])
		}
	}
	for i := range b.demands {
		d := &b.demands[i]
		before, throttled := d.task.Bounded(now)
		if d.most == (resource.Vector{}) && !(b.turns && throttled) { // a throttle of a task whose turn has come ends
			continue
		}
		for k := range d.most {
			if throttled && n.Pressed[k] == 0 { // a resource that was pressed before
				d.most[k] = before.Most[k]
			}
		}
		because := cluster.BecauseNodePressure
		if d.most == (resource.Vector{}) {
			because = cluster.BecauseTurnHasCome
		}
		k := n.PressedMost()
		p.Throttle(d.task, d.most, now.Add(b.lasts), because(k, n.Pressed[k], n.Capacity[k]))
	}
}

// share bounds what tasks use of a resource. If they are forecast to demand more than there is, the tasks with the
// largest demands are bounded, all to the same level, so that the demands are met exactly (max-min fairness). If not,
// some tasks use more than was forecast: each task may use its forecast and an equal part of what is left.
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

// takeTurns lets some tasks use a resource without a bound: their demands add up to at most the capacity, and to at
// most half of all demands, because tasks hinder each other. At least one task goes on; all other tasks that demand
// the resource crawl. Tasks with the longest total throttled time go first. A task without a forecast is assumed to
// demand the whole capacity.
func (b *backoff) takeTurns(k resource.Kind, capacity resource.Amount) {
	b.order = b.order[:0]
	sum := resource.Amount(0)
	for i := range b.demands {
		d := &b.demands[i]
		if d.task.Stage().Phases == nil && d.of[k] == 0 {
			d.of[k] = capacity
		}
		if d.of[k] > 0 {
			b.order = append(b.order, d)
			sum += d.of[k]
		}
	}
	slices.SortStableFunc(b.order, func(x, y *demand) int { return cmp.Compare(y.waited, x.waited) })
	left := min(capacity, sum/2)
	for i, d := range b.order {
		if i == 0 || d.of[k] <= left {
			left -= d.of[k]
		} else {
			d.most[k] = max(1, capacity/crawl)
		}
	}
}

// level returns the bound at which the demands for a resource, each limited to the bound, add up to capacity. over is
// false if the demands do not exceed the capacity: level is then each task's part of the rest.
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
