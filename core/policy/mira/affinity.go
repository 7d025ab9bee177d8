package mira

import (
	"cmp"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
)

// affinity says how much jobs would miss an executor that keeps something of them.
type affinity struct {
	known   bool             // in this step
	wants   []want           // by the numbers of the executors, of all jobs together
	lacking []*book.JobState // that are entitled to more executors than they hold
}

// want is how much jobs want an executor that keeps something of them, in millionths of one: each wants it by the
// number of executors that it lacks, divided by the number of those that keep something of it.
type want struct {
	now   int64
	later int64 // as if each job lacked one
}

func (w want) plus(v want) want  { return want{w.now + v.now, w.later + v.later} }
func (w want) minus(v want) want { return want{w.now - v.now, w.later - v.later} }

func (w want) compare(v want) int {
	return cmp.Or(cmp.Compare(w.now, v.now), cmp.Compare(w.later, v.later))
}

// cost is what it costs to give an executor to a job: memory that must come back from swap, in bytes, and between equal
// ones how much other jobs miss it.
type cost struct {
	out    resource.Amount
	missed want
}

func (c cost) compare(d cost) int {
	return cmp.Or(cmp.Compare(c.out, d.out), c.missed.compare(d.missed))
}

// mostCompared bounds the executors from which one is chosen.
const mostCompared = 64

// findWants finds out what jobs want, at most once in a step.
func (m *mira) findWants(p *book.Plan) {
	f := &m.affinity
	if f.known {
		return
	}
	f.known = true
	f.wants = append(f.wants[:0], make([]want, len(p.Nodes))...)
	for _, j := range p.Jobs {
		if a := m.app(j); a != nil && len(j.Suits) > 0 {
			a.wants = a.wantsEach()
			for _, s := range j.Suits {
				if s.Keeps {
					f.wants[s.Node] = f.wants[s.Node].plus(a.wants)
				}
			}
		}
	}
}

// wantsEach is how much a wants each of the executors that keep something of it.
func (a *miraApp) wantsEach() want {
	keep := int64(0)
	for _, s := range a.job.Suits {
		if s.Keeps {
			keep++
		}
	}
	one := 1_000_000 / max(1, keep)
	return want{now: one * int64(a.lacks()), later: one}
}

// lacks is to how many more executors a is entitled than it holds.
func (a *miraApp) lacks() int { return max(0, a.entitled-a.job.Reservations) }

// missed is how much other jobs than a want n.
func (m *mira) missed(n *book.NodeState, a *miraApp) want {
	w := m.affinity.wants[n.ID]
	if a.job.SuitOf(n.ID).Keeps {
		w = w.minus(a.wants)
	}
	return w
}

// freeExecutor returns a node that no job holds, where nothing runs and need fits: of those that keep something of j,
// the one with least memory in swap, and of equal ones that which other jobs miss least. If there is none, it is one
// with least memory in swap, and of equal ones the first, because that has served most often, so it is the warmest; but
// not one that a job would miss which lacks executors now, nor one on which j fails, unless there are no others.
func (m *mira) freeExecutor(p *book.Plan, j *book.JobState, need resource.Vector) (*book.NodeState, bool) {
	if n := m.keeper(p, j, need); n != nil {
		return n, true
	}
	var best, failing *book.NodeState
	var least cost
	compared := 0
	for n, ok := p.FirstFit(need); ok && compared < mostCompared; n, ok = p.NextRoom(need, n.ID+1) {
		switch {
		case occupied(n): // by a policy that ran before
		case j.FailsOn(n.ID):
			failing = cmp.Or(failing, n)
		default:
			c := cost{out: n.Out}
			if m.lackedByOthers(p, n, j) {
				c.missed.now = 1
			}
			if best == nil || c.compare(least) < 0 {
				best, least = n, c
			}
			if compared++; least == (cost{}) {
				return best, true
			}
		}
	}
	best = cmp.Or(best, failing)
	return best, best != nil
}

// lackedByOthers reports whether another job lacks executors of which something is kept on n.
func (m *mira) lackedByOthers(p *book.Plan, n *book.NodeState, j *book.JobState) bool {
	if !j.Drives {
		return false
	}
	m.findWants(p)
	return m.missed(n, m.app(j)).now > 0
}

// keeper returns the free executor of those that keep something of j that costs least; nil if there is none.
func (m *mira) keeper(p *book.Plan, j *book.JobState, need resource.Vector) (best *book.NodeState) {
	var least cost
	compared := 0
	for _, s := range j.Suits {
		n, ok := p.NextRoom(need, s.Node)
		if !ok || n.ID != s.Node || !s.Keeps || s.Fails || occupied(n) {
			continue
		}
		m.findWants(p)
		if c := (cost{n.Out, m.missed(n, m.app(j))}); best == nil || c.compare(least) < 0 {
			best, least = n, c
		}
		if compared++; least == (cost{}) || compared == mostCompared {
			break
		}
	}
	return best
}
