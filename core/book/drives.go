package book

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// checkDemands returns an error if a growth demands what cannot be.
func (j *JobState) checkDemands(g *cluster.Growth) error {
	if len(g.Demands) > 0 && !j.Drives {
		return fmt.Errorf("job %d: demands executors, but does not start its own tasks", j.ID)
	}
	last, stages := -1, len(j.Stages)+len(g.Stages)
	for _, d := range g.Demands {
		switch {
		case d.Stage <= last || d.Stage >= stages:
			return fmt.Errorf("job %d: demands executors for stage %d: must be one of its %d stages, in ascending order", j.ID,
				d.Stage, stages)
		case d.Tasks < 0 || d.Tasks > cluster.MostTasks:
			return fmt.Errorf("job %d: demands %d executors for stage %d: must be 0 to %d", j.ID, d.Tasks, d.Stage,
				cluster.MostTasks)
		case d.As == nil:
		case d.Stage >= len(j.Stages):
			return fmt.Errorf("job %d: another stage takes the number %d: must be that of one of its %d stages", j.ID,
				d.Stage, len(j.Stages))
		case j.precedes(g, d.Stage):
			return fmt.Errorf("job %d: stage %d would come after itself", j.ID, d.Stage)
		default:
			if err := j.CheckNew(d.As, stages); err != nil {
				return err
			}
		}
		last = d.Stage
	}
	return nil
}

// precedes reports whether a stage would come after itself once j has grown. Its time is linear in the stages before
// that one.
func (j *JobState) precedes(g *cluster.Growth, stage int) bool {
	parents := map[int][]int{}
	for _, d := range g.Demands {
		if d.As != nil {
			parents[d.Stage] = d.As.Parents
		}
	}
	seen, next := map[int]bool{}, slices.Clone(parents[stage])
	for len(next) > 0 {
		at := next[len(next)-1]
		if next = next[:len(next)-1]; at == stage {
			return true
		}
		if at < 0 || at >= len(j.Stages) || seen[at] {
			continue // A stage that is new comes after earlier ones, but no earlier one after it.
		}
		seen[at] = true
		before, renewed := parents[at]
		if !renewed {
			before = j.Stages[at].Parents
		}
		next = append(next, before...)
	}
	return false
}

// demand records what a job demands since it has grown.
func (j *JobState) demand(g *cluster.Growth) {
	for _, d := range g.Demands {
		j.Progress[d.Stage].demanded = !d.Coming
		j.redemand(d.Stage)
		if !j.StageEnded(d.Stage) {
			j.passed = min(j.passed, d.Stage)
		}
	}
	if j.Drives && g.Closes {
		for i := j.passed; i < len(j.Progress); i++ {
			j.Progress[i].Pending = 0
		}
	}
}

// redemand counts the executors that a stage demands in addition to those that are attached.
func (j *JobState) redemand(stage int) {
	p := &j.Progress[stage]
	if p.Pending = 0; p.demanded {
		p.Pending = max(0, j.Stages[stage].Tasks-j.attached(stage))
	}
}

// Coming returns how many tasks of a stage wait; in a job that drives, how many it will have if it demands none yet.
func (j *JobState) Coming(stage int) int {
	switch p := &j.Progress[stage]; {
	case !j.Drives:
		return p.Pending
	case p.demanded:
		return 0
	}
	return j.Stages[stage].Tasks
}

// demands returns what the stages demand of which that is known.
func (j *JobState) demands() (all []cluster.Demand) {
	for i := range j.Progress {
		if j.Progress[i].demanded {
			all = append(all, cluster.Demand{Stage: i, Tasks: j.Stages[i].Tasks})
		}
	}
	return all
}

// attached is how many executors are attached to a stage, or about to be.
func (j *JobState) attached(stage int) int {
	return j.Progress[stage].Booked + j.Progress[stage].Running
}

// attach takes the number of an attachment that was found, although it may not be demanded any more.
func (j *JobState) attach(id cluster.TaskID) error {
	if id.Stage < 0 || int(id.Stage) >= len(j.Progress) || id.Index < 0 || id.Index >= cluster.MostTasks {
		return fmt.Errorf("the job has no such stage, or the number is wrong")
	}
	p := &j.Progress[id.Stage]
	at, free := slices.BinarySearch(p.retry, id.Index)
	switch {
	case free:
		p.retry = slices.Delete(p.retry, at, at+1)
	case id.Index < p.next:
		return fmt.Errorf("it is attached already")
	default:
		for ; p.next < id.Index; p.next++ {
			p.retry = append(p.retry, p.next)
		}
		p.next++
	}
	p.Pending = max(0, p.Pending-1)
	j.passed = min(j.passed, int(id.Stage))
	return nil
}

// detach records the end of an attachment. Its number is free again: the next gets the lowest free one, whatever
// happened before.
func (s *Snapshot) detach(now timeline.Time, j *JobState, id cluster.TaskID) {
	p := &j.Progress[id.Stage]
	at, _ := slices.BinarySearch(p.retry, id.Index)
	p.retry = slices.Insert(p.retry, at, id.Index)
	for last := len(p.retry) - 1; last >= 0 && p.retry[last] == p.next-1; last-- {
		p.retry, p.next = p.retry[:last], p.next-1
	}
	j.redemand(int(id.Stage))
	j.conclude()
	if j.Ready(int(id.Stage)) {
		j.Since = max(j.Since, now)
		s.demand()
	}
}
