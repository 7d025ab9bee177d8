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
		}
		last = d.Stage
	}
	return nil
}

// demand records what a job demands since it has grown.
func (j *JobState) demand(g *cluster.Growth) {
	for _, d := range g.Demands {
		j.Progress[d.Stage].demanded = true
		j.redemand(d.Stage)
		j.passed = min(j.passed, d.Stage)
	}
	for i := range j.Progress {
		if j.Drives && g.Closes {
			j.Progress[i].Pending = 0
		}
	}
}

// redemand counts the executors that a stage demands in addition to those that are attached.
func (j *JobState) redemand(stage int) {
	if p := &j.Progress[stage]; p.demanded {
		p.Pending = max(0, j.Stages[stage].Tasks-j.attached(stage))
	}
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
