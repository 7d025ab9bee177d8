package ecs

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/timeline"
)

// float says how late tasks may end without delaying their job (the paper's ES, EF, LS and LF).
type float struct {
	job    *book.JobState
	stages []stageFloat
	order  []int // stages, parents before children
}

// stageFloat is when the tasks of a stage start and end at the earliest, and must have ended at the latest.
type stageFloat struct {
	start, end, latest timeline.Time
	waves              time.Duration // how long the tasks take that have not started
	after              time.Duration // how long tasks that have started take when the parents have ended; 0 if none waits
	ranked             bool          // in order
}

// of sets f to the floats of a job. ok is false if a run time is unknown.
//
// Tasks run in waves: as many at a time as run now. The first wave follows the first end of a task of the stage.
func (f *float) of(now timeline.Time, s *book.Snapshot, j *book.JobState) (ok bool) {
	f.job, f.order = j, f.order[:0]
	f.stages = append(f.stages[:0], make([]stageFloat, len(j.Stages))...)
	for i := range j.Stages {
		f.rank(j, i)
	}
	width := 0
	for i := range j.Stages {
		if !j.Stages[i].Coordinator {
			width += j.Progress[i].Running + j.Progress[i].Booked
		}
	}
	width = max(1, width)
	for _, i := range f.order {
		if !f.forward(now, s, i, width) {
			return false
		}
	}
	end := now
	for i := range f.stages {
		end = max(end, f.stages[i].end)
	}
	for i := range f.stages {
		f.stages[i].latest = end
	}
	for _, i := range slices.Backward(f.order) {
		from := &f.stages[i]
		start := from.latest.Add(-from.end.Sub(from.start))
		if from.after > 0 {
			start = from.latest.Add(-from.waves - from.after)
		}
		for _, parent := range j.Stages[i].Parents {
			f.stages[parent].latest = min(f.stages[parent].latest, start)
		}
	}
	return true
}

// rank adds a stage to the order, after its parents.
func (f *float) rank(j *book.JobState, i int) {
	if f.stages[i].ranked {
		return
	}
	f.stages[i].ranked = true
	for _, parent := range j.Stages[i].Parents {
		f.rank(j, parent)
	}
	f.order = append(f.order, i)
}

// forward computes when a stage starts and ends at the earliest, after its parents.
func (f *float) forward(now timeline.Time, s *book.Snapshot, i, width int) (ok bool) {
	j, stage, at := f.job, &f.job.Stages[i], &f.stages[i]
	at.start, at.end = now, now
	if stage.Coordinator {
		return true
	}
	for _, parent := range stage.Parents {
		at.start = max(at.start, f.stages[parent].end)
	}
	at.end = at.start
	first := timeline.Never
	for _, t := range j.Tasks {
		if int(t.ID.Stage) == i {
			end, known := earliestEnd(now, s, t)
			if !known {
				return false
			}
			if t.Waits {
				at.after = max(at.after, t.AfterFirst())
				end = max(end, at.start.Add(t.AfterFirst()))
			}
			at.end, first = max(at.end, end), min(first, end)
		}
	}
	if pending := j.Progress[i].Pending; pending > 0 {
		d := stage.RunTime()
		if d <= 0 {
			return false
		}
		if first == timeline.Never {
			first = at.start
		}
		at.waves = time.Duration(min(float64((pending+width-1)/width)*d.Seconds(), 1e9) * 1e9)
		at.end = max(at.end, first.Add(at.waves))
	}
	return true
}

// earliestEnd returns when t ends if nothing stops it from now on.
func earliestEnd(now timeline.Time, s *book.Snapshot, t *book.TaskState) (end timeline.Time, known bool) {
	r, known := restOf(now, s, t, now)
	if r.from == timeline.Never {
		r.from = now
	}
	return max(now, r.from.Add(r.left)), known
}

// latest returns when a running task must have ended: the tasks of its stage that have not started follow it.
func (f *float) latest(t *book.TaskState) timeline.Time {
	at := &f.stages[t.ID.Stage]
	return at.latest.Add(-at.waves)
}
