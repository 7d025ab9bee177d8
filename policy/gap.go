package policy

import (
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// gap finds out how long a reserved node is of no use to the job it is kept for. It keeps room between calls.
type gap struct{ ends []taskEnd } // a heap, the earliest first

type taskEnd struct {
	at    timeline.Time
	grant resource.Vector
}

// until returns when enough of what runs on n has ended for what is free then to be usable; known is false if that cannot
// be said.
func (g *gap) until(now timeline.Time, p *cluster.Plan, n *cluster.NodeState, usable func(free resource.Vector) bool) (at timeline.Time, known bool) {
	g.ends = g.ends[:0]
	for _, t := range n.Tasks {
		if end, ok := p.EstimatedEnd(t, now); ok {
			g.ends = append(g.ends, taskEnd{end, t.Grant})
		}
	}
	// Few ends are enough as a rule, so that a heap is quicker than sorting all of them.
	for i := len(g.ends)/2 - 1; i >= 0; i-- {
		g.sink(i)
	}
	free := n.Unused()
	for len(g.ends) > 0 {
		first := g.ends[0]
		if free = free.Add(first.grant); usable(free) {
			return first.at, true
		}
		last := len(g.ends) - 1
		g.ends[0], g.ends = g.ends[last], g.ends[:last]
		g.sink(0)
	}
	return timeline.Never, false
}

// sink puts ends[i] below earlier ones.
func (g *gap) sink(i int) {
	for {
		least := 2*i + 1
		if least >= len(g.ends) {
			return
		}
		if right := least + 1; right < len(g.ends) && g.ends[right].at < g.ends[least].at {
			least = right
		}
		if g.ends[i].at <= g.ends[least].at {
			return
		}
		g.ends[i], g.ends[least] = g.ends[least], g.ends[i]
		i = least
	}
}

// offerGap starts a task of another job on a reserved node if its end is known before the job that the
// node is kept for can use it, whether with its ideal memory or under-sized, or no longer needs it because all its tasks
// should have started by then. Coordinators have no known end and do not count as a use of a gap.
func (f *fair) offerGap(now timeline.Time, p *cluster.Plan, n *cluster.NodeState) bool {
	holder, stage := n.ReservedFor, n.ReservedStage
	then := *n
	until, known := f.gap.until(now, p, n, func(free resource.Vector) bool {
		then.Free = free
		_, _, ok := f.size(now, p, &then, holder, stage)
		return ok
	})
	if holder.AllStartedKnown && holder.AllStarted < until {
		until, known = holder.AllStarted, true
	}
	if !known {
		return false
	}
	for i := range f.queue.jobs {
		j := f.queue.jobs[i].job
		stage, _ := j.NextStage()
		if j == holder || j.Stages[stage].Coordinator {
			continue
		}
		memory, why, ok := f.size(now, p, n, j, stage)
		if !ok {
			continue
		}
		d, known := j.Stages[stage].DurationAt(memory)
		end := now.Add(d)
		if !known || p.HeardOf(end) > until {
			continue
		}
		if why.Code == cluster.Fits {
			why = cluster.BecauseFitsInGap(memory, end, until)
		}
		p.Start(j, stage, n, memory, why)
		f.queue.update(j)
		return true
	}
	return false
}
