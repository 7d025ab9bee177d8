package mira

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// keeper says how long jobs keep executors for a stage that is about to start.
type keeper struct {
	any   bool
	lasts time.Duration     // of all executors that are kept for a stage, in sum; 0 is until it starts
	nodes []*book.NodeState // executors that jobs hold and that do nothing
	jobs  []*book.JobState  // that held such executors, or gave some back, in the last step
	found []*book.NodeState // a buffer
}

func (k *keeper) declare(s *contract.Settings) {
	keep := s.Declare("keep", "none",
		"whether a job keeps executors that have no task for them: none, as the paper; next, as the authors' code: as "+
			"many as its next stage has "+
			"tasks, once all tasks before that stage run; or a time such as 2s: as next, but each for at most that time "+
			"divided by the number of "+
			"those tasks, so that ten executors are kept for 0.2 s")
	k.any, k.lasts = keep.Text != "none", keep.DurationOr("none", "next")
}

// withOffered returns the nodes that are offered, and those that jobs hold and that do nothing: a stage may have
// started, another job may be entitled to them, or their time may have passed. The order is by NodeID.
func (k *keeper) withOffered(p *book.Plan) []*book.NodeState {
	k.found = append(k.found[:0], k.nodes...)
	k.nodes = k.nodes[:0]
	for n := range p.Offered() {
		k.found = append(k.found, n)
	}
	slices.SortFunc(k.found, func(x, y *book.NodeState) int { return cmp.Compare(x.ID, y.ID) })
	k.found = slices.Compact(k.found)
	return k.found
}

// look notes that a holds n, which does nothing, so that each step looks at it.
func (k *keeper) look(n *book.NodeState, a *miraApp) {
	if k.any {
		k.nodes = append(k.nodes, n)
		k.list(a)
	}
}

// list notes that what a may keep can be something else in the next step: it depends on what it holds.
func (k *keeper) list(a *miraApp) {
	if k.any && !a.listed {
		a.listed = true
		k.jobs = append(k.jobs, a.job)
	}
}

// keeping returns the jobs that were listed in the last step and have not ended.
func (m *mira) keeping() []*book.JobState {
	jobs := m.keeps.jobs
	m.keeps.jobs = jobs[:0]
	return slices.DeleteFunc(jobs, func(j *book.JobState) bool {
		a := m.app(j)
		if a != nil {
			a.listed = false
		}
		return a == nil || j.Status.Ended()
	})
}

// expire gives back the executors that were kept for as long as they may be. What their jobs demand is divided after
// that.
func (m *mira) expire(now timeline.Time, p *book.Plan) {
	for _, n := range m.keeps.nodes {
		j, until := n.ReservedFor, n.KeptUntil
		if j == nil || until == 0 || until > now || n.Paused || !p.Takes(n) || occupied(n) {
			continue
		}
		if _, ready := j.NextStage(); !ready {
			m.release(p, n, m.app(j), cluster.BecauseKeptInVain(n.ReservedStage))
		}
	}
}

// keep lets a keep n, for which it has no task, or gives it back.
func (m *mira) keep(now timeline.Time, p *book.Plan, n *book.NodeState, a *miraApp) {
	j, k := a.job, &m.keeps
	if _, ready := j.NextStage(); k.any && !ready && j.Reservations <= a.demand {
		until := n.KeptUntil
		stage, fits := nextToStart(j, n.Free)
		if fits && (until == 0 || until > now && j.Drives && stage != n.ReservedStage) { // It has just given n back.
			if until == 0 {
				until = k.end(now, j)
			}
			m.move(p, n, a, stage, cluster.BecauseKept(stage, until))
			p.KeepUntil(n, until)
		}
		if until > now {
			k.look(n, a)
			if until < timeline.Never {
				p.WakeBy(until, cluster.BecauseKept(n.ReservedStage, until))
			}
			return
		}
	}
	m.release(p, n, a, cluster.Because(cluster.ReservationNotNeeded))
}

// keepAttached lets a keep an executor that is attached to it, and that its stage has above what it should have, for a
// stage that is about to start. ok is false if the executor is to be asked for.
func (m *mira) keepAttached(now timeline.Time, p *book.Plan, t *book.TaskState, a *miraApp) (ok bool) {
	j, n, k := a.job, t.Node, &m.keeps
	stage, fits := nextToStart(j, n.Free.Add(t.Grant))
	if _, ready := j.NextStage(); !k.any || ready || !fits {
		return false
	}
	if n.KeptUntil == 0 {
		p.KeepUntil(n, k.end(now, j))
		k.look(n, a)
	}
	if n.KeptUntil <= now {
		return false
	}
	if n.KeptUntil < timeline.Never {
		p.WakeBy(n.KeptUntil, cluster.BecauseKept(stage, n.KeptUntil))
	}
	return true
}

// end returns until when j keeps an executor that has no task for it any more.
func (k *keeper) end(now timeline.Time, j *book.JobState) timeline.Time {
	if k.lasts == 0 {
		return timeline.Never
	}
	return now.Add(max(1, k.lasts/time.Duration(coming(j))))
}

// coming is how many tasks j has in stages that are about to start.
func coming(j *book.JobState) (n int) {
	for i := j.FirstLeft(); i < len(j.Stages); i++ {
		if aboutToStart(j, i) {
			n += j.Coming(i)
		}
	}
	return n
}

// nextToStart returns the first stage of j that is about to start and whose tasks fit into what a node has free.
func nextToStart(j *book.JobState, free resource.Vector) (stage int, ok bool) {
	for i := j.FirstLeft(); i < len(j.Stages); i++ {
		if aboutToStart(j, i) && j.Coming(i) > 0 && j.Stages[i].Ideal.FitsIn(free) {
			return i, true
		}
	}
	return 0, false
}

// aboutToStart reports whether a stage waits for other stages and for nothing else, and all tasks of these run or
// have ended. A job that drives says itself when its stage starts, perhaps some time after that.
func aboutToStart(j *book.JobState, stage int) bool {
	if j.Status.Ended() || j.PausedWhole() || j.StageEnded(stage) || j.Stages[stage].Coordinator ||
		j.Drives && j.Coming(stage) == 0 {
		return false
	}
	waits := j.Drives && len(j.Stages[stage].Parents) > 0
	for _, parent := range j.Stages[stage].Parents {
		if j.StageEnded(parent) {
			continue
		}
		if j.Coming(parent) > 0 || working(j, parent) == 0 {
			return false
		}
		waits = true
	}
	return waits
}
