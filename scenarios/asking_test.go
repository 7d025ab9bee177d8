package scenarios

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/leveling"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// asking is a policy that also asks how to level the CPU demand of a node as if the node gave half of its cores: when
// at least two tasks run there, all of them launched, and the node has changed since the last question. It uses an
// answer only to wake up when the first shift ends. A stale answer makes it ask again.
type asking struct{ policy.Policy }

func (a asking) Decide(now timeline.Time, p *book.Plan) {
	a.Policy.Decide(now, p)
	for _, id := range p.Changes.Answered {
		if n := p.Nodes[id]; n.Leveled != nil && n.Leveled == n.Asked.Answer {
			a.use(now, p, n.Leveled)
		}
	}
	for _, n := range p.Nodes {
		settled := len(n.Tasks) >= 2 && !slices.ContainsFunc(n.Tasks, func(t *book.TaskState) bool { return !t.Running })
		if half := n.Capacity[resource.CPU] / 2; settled && !n.Gone && (n.Asked == nil || n.Asked.Version != n.Version) {
			p.Ask(n, levels(now, n, half), cluster.BecauseNodePressure(resource.CPU, half, n.Capacity[resource.CPU]))
		}
	}
}

func (asking) use(now timeline.Time, p *book.Plan, answer *cluster.Answer) {
	first := timeline.Never
	for _, s := range answer.Shifts {
		if s.To > now {
			first = min(first, s.To)
		}
	}
	if first != timeline.Never {
		p.Wake(first, cluster.Because(cluster.DeadlineDue))
	}
}

// levelingQuestion is a copy of what is known of a node's tasks.
type levelingQuestion struct {
	at      timeline.Time
	tasks   []cluster.TaskID
	problem leveling.Problem
}

const (
	intervals = 12
	interval  = 10 * time.Second
)

// levels returns a question about n with a capacity. What a task still has to do is made up.
func levels(now timeline.Time, n *book.NodeState, capacity resource.Amount) *levelingQuestion {
	q := &levelingQuestion{at: now,
		problem: leveling.Problem{Capacity: capacity, Fixed: make([]resource.Amount, intervals),
			Suspension: capacity * 3 / 10, Delay: capacity / 20}}
	tasks := slices.SortedFunc(slices.Values(n.Tasks), func(a, b *book.TaskState) int {
		return cmp.Or(cmp.Compare(a.ID.Job, b.ID.Job), cmp.Compare(a.ID.Stage, b.ID.Stage),
			cmp.Compare(a.ID.Index, b.ID.Index))
	})
	for _, t := range tasks {
		var demand []resource.Amount
		for i := range 3 + (int(t.ID.Job)+int(t.ID.Index))%6 {
			demand = append(demand, t.Grant[resource.CPU]*resource.Amount(1+(i+int(t.ID.Job))%3)/3)
		}
		q.tasks = append(q.tasks, t.ID)
		q.problem.Sets = append(q.problem.Sets, leveling.Set{Demand: demand, Float: intervals - len(demand)})
	}
	return q
}

func (q *levelingQuestion) Solve(states int) (answer cluster.Answer) {
	best, err := leveling.Solve(&q.problem, states)
	if err != nil {
		return cluster.Answer{Failed: err.Error()}
	}
	cores := func(a resource.Amount) float64 { return float64(a) / float64(resource.Core) }
	answer = cluster.Answer{Value: cores(best.Value), Bound: cores(best.Bound), Proved: best.Proved, States: best.States}
	at := func(i int) timeline.Time { return q.at.Add(time.Duration(i) * interval) }
	for j, runs := range best.Runs {
		left := len(q.problem.Sets[j].Demand)
		for i, from := 0, 0; i < len(runs) && left > 0; i++ {
			if !runs[i] {
				continue
			}
			if left--; from < i {
				answer.Shifts = append(answer.Shifts, cluster.Shift{Task: q.tasks[j], From: at(from), To: at(i)})
			}
			from = i + 1
		}
	}
	return answer
}

// ask checks that no other question about the node is open.
func (a *auditor) ask(d *cluster.Decision) {
	if _, here := a.nodes[d.Node]; !here || a.asked[d.Node] != 0 {
		a.fail("decision %d asks about node %d, which left, or of which decision %d asks", d.ID, d.Node, a.asked[d.Node])
	}
	a.asked[d.Node] = d.ID
}

// answered checks that an answer is to the open question of its node, unless that left.
func (a *auditor) answered(e *cluster.Event) {
	if _, here := a.nodes[e.Node]; here && a.asked[e.Node] != e.Decision {
		a.fail("decision %d is answered, but %d asks about node %d", e.Decision, a.asked[e.Node], e.Node)
	}
	delete(a.asked, e.Node)
}
