package mira

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// askBack asks a job that starts its own tasks for the executors that it is not entitled to, or that a stage of it
// has above what it should have, unless it keeps them for a stage that is about to start. It gives them back when their
// tasks there have ended; until then they are its own.
func (m *mira) askBack(now timeline.Time, p *book.Plan, a *miraApp) {
	j := a.job
	if is := (asked{j.Version, j.Reservations, a.entitled}); a.asked != is {
		a.asked = is
	} else {
		return
	}
	if j.Status.Ended() || j.PausedWhole() {
		return
	}
	kept := m.keptBy(a)
	m.divideStages(j, min(j.Reservations, a.entitled))
	first := j.FirstLeft()
	m.have = append(m.have[:0], make([]int, len(j.Stages)-first)...)
	for _, t := range kept {
		m.have[int(t.ID.Stage)-first]++
	}
	left := len(kept)
	for _, t := range kept {
		stage := int(t.ID.Stage)
		has, should := &m.have[stage-first], m.targets[stage-first]
		switch {
		case *has <= should:
			p.KeepUntil(t.Node, 0)
			continue
		case left <= a.entitled && m.keepAttached(now, p, t, a):
			*has--
			a.asked = asked{} // Time alone changes the answer.
			continue
		}
		why := cluster.BecauseStageHasMore(stage, *has, should)
		if left > a.entitled {
			why = cluster.BecauseAskedBack(left, a.entitled, p.Present)
		}
		p.Preempt(t, why)
		*has--
		left--
	}
}

// askedBack is how many executors j was asked for and has not given back, if it starts its own tasks.
func askedBack(j *book.JobState) (n int) {
	if !j.Drives {
		return 0
	}
	for _, t := range j.Tasks {
		if t.Killing {
			n++
		}
	}
	return n
}

// asked is on what it depends which executors a job is asked for.
type asked struct {
	version                uint64
	reservations, entitled int
}

// findLacking finds the jobs that are entitled to more executors than they hold.
func (m *mira) findLacking(p *book.Plan) {
	m.affinity.known = false
	lacking := m.affinity.lacking[:0]
	for _, j := range p.Jobs {
		if a := m.app(j); a != nil && a.lacks() > 0 && len(j.Suits) > 0 {
			lacking = append(lacking, j)
		}
	}
	m.affinity.lacking = lacking
}

// keptBy returns the attachments of executors to a that were not asked back, in the order in which they are. As many as
// a is not entitled to are first those that other jobs miss which lack executors, as many as each of these lacks. Of
// these, and of the others, those come last that have memory in swap: others would wait for it, and what is stopped
// gives nothing back. Equal ones are in the order of how cold they are: see freeExecutor.
func (m *mira) keptBy(a *miraApp) []*book.TaskState {
	m.kept = m.kept[:0]
	for _, t := range a.job.Tasks {
		if !t.Killing {
			m.kept = append(m.kept, t)
		}
	}
	slices.SortFunc(m.kept, func(x, y *book.TaskState) int {
		return cmp.Or(cmp.Compare(x.Node.Out, y.Node.Out), cmp.Compare(y.Node.ID, x.Node.ID))
	})
	found, over := 0, len(m.kept)-a.entitled
	for _, other := range m.affinity.lacking {
		lacks := m.app(other).lacks()
		for i := found; i < len(m.kept) && found < over && lacks > 0; i++ {
			if t := m.kept[i]; other.SuitOf(t.Node.ID).Keeps {
				m.kept = slices.Insert(slices.Delete(m.kept, i, i+1), found, t)
				found, lacks = found+1, lacks-1
			}
		}
	}
	return m.kept
}
