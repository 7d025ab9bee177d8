package book

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// paused says which part of a job its owner has paused: no task of that part starts, and its running tasks are
// suspended.
type paused struct {
	parts []pausedPart // each once: the whole job first, then tasks in the order in which they were paused
	// unmet says that running tasks of the job may lack an order to suspend or to resume them.
	unmet bool
}

// pausedPart is one task, or the whole job if the task is zero. pageOut says that its memory is to be paged out.
type pausedPart struct {
	task    cluster.TaskID
	pageOut bool
}

// part returns a part that was paused; nil if it was not. It may be paused with the whole job.
func (p *paused) part(id cluster.TaskID) *pausedPart {
	for i := range p.parts {
		if p.parts[i].task == id {
			return &p.parts[i]
		}
	}
	return nil
}

// Paused reports whether a task of j is paused, by itself or with the whole job.
func (j *JobState) Paused(id cluster.TaskID) bool { return j.PausedWhole() || j.paused.part(id) != nil }

// pagesOut reports whether the memory of a task of j is to be paged out while the task is paused.
func (j *JobState) pagesOut(id cluster.TaskID) bool {
	return slices.ContainsFunc(j.paused.parts, func(p pausedPart) bool {
		return p.pageOut && (p.task == id || p.task == cluster.TaskID{})
	})
}

// PausedWhole reports whether the whole job is paused.
func (j *JobState) PausedWhole() bool {
	return len(j.paused.parts) > 0 && j.paused.parts[0].task == cluster.TaskID{}
}

// pausable returns the job of an event that pauses or resumes it, or one of its tasks.
func (s *Snapshot) pausable(id cluster.JobID, task cluster.TaskID) (*JobState, error) {
	j, ok := s.byJob[id]
	switch {
	case !ok:
		return nil, fmt.Errorf("job %d: not here, or already ended", id)
	case task == cluster.TaskID{}:
		return j, nil
	case j.Drives:
		return nil, fmt.Errorf("task %s: job %d starts its own tasks: it can be paused as a whole", task, id)
	case task.Job != id || task.Stage < 0 || int(task.Stage) >= len(j.Stages) || task.Index < 0 ||
		int(task.Index) >= j.Stages[task.Stage].Tasks:
		return nil, fmt.Errorf("task %s: job %d has no such task", task, id)
	}
	return j, nil
}

// pauseWork records that a job is paused, or one of its tasks if that has a job, and whether its memory is to be
// paged out.
func (s *Snapshot) pauseWork(id cluster.JobID, task cluster.TaskID, pageOut bool) error {
	j, err := s.pausable(id, task)
	if err != nil {
		return err
	}
	switch was := j.paused.part(task); {
	case was != nil && was.pageOut == pageOut:
		return fmt.Errorf("job %d, task %s: is paused already", id, task)
	case was != nil:
		was.pageOut = pageOut
	case task.Job == 0:
		j.paused.parts = slices.Insert(j.paused.parts, 0, pausedPart{pageOut: pageOut})
		s.giveBack(j)
	default:
		j.paused.parts = append(j.paused.parts, pausedPart{task, pageOut})
		j.Progress[task.Stage].hold(task.Index)
	}
	s.repaused(j)
	return nil
}

// resumeWork records the end of a pause of a job, or of one of its tasks.
func (s *Snapshot) resumeWork(now timeline.Time, id cluster.JobID, task cluster.TaskID) error {
	j, err := s.pausable(id, task)
	if err != nil {
		return err
	}
	if j.paused.part(task) == nil {
		return fmt.Errorf("job %d, task %s: is not paused", id, task)
	}
	j.paused.parts = slices.DeleteFunc(j.paused.parts, func(p pausedPart) bool { return p.task == task })
	if task.Job != 0 {
		p := &j.Progress[task.Stage]
		if at := slices.Index(p.held, task.Index); at >= 0 {
			p.held = slices.Delete(p.held, at, at+1)
			p.again(task.Index)
			j.forQuota(p)
		}
	}
	if _, ready := j.NextStage(); ready {
		j.Since = max(j.Since, now)
		s.demand()
	}
	s.repaused(j)
	return nil
}

// hold keeps a task that is to run again from being started.
func (p *StageState) hold(index int32) {
	if at := slices.Index(p.retry, index); at >= 0 {
		p.retry = slices.Delete(p.retry, at, at+1)
		p.held = append(p.held, index)
		p.Pending--
	}
}

// repaused notes that a pause of a job has begun or ended.
func (s *Snapshot) repaused(j *JobState) {
	j.Version++
	j.Waiting, j.paused.unmet = cluster.Reason{}, true
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	s.Changes.Arrived = true
}

// unmet makes the next plan check the orders of the running tasks of a job.
func (s *Snapshot) unmet(j *JobState) {
	j.paused.unmet = true
	s.Changes.Jobs = append(s.Changes.Jobs, j)
}

// holdPaused suspends the running tasks of changed jobs that are paused, and resumes those that are paused no more.
// An order that failed is not repeated before the next pause or resumption of the job.
func (p *Plan) holdPaused() {
	for _, j := range p.Changes.Jobs {
		if !j.paused.unmet {
			continue
		}
		j.paused.unmet = false
		for _, t := range j.Tasks {
			held := t.Hold != nil && t.Hold.By&cluster.HeldByOwner != 0
			switch is, out := j.Paused(t.ID), j.pagesOut(t.ID); {
			case !t.Running || t.Killing:
			case is && (!held || out != t.Hold.Owner.PageOut):
				p.Suspend(t, out, cluster.Because(cluster.PausedByOwner))
			case !is && held:
				p.Resume(t, cluster.HeldByOwner, cluster.Because(cluster.ResumedByOwner))
			}
		}
	}
}
