package queue

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
)

// Fit contains the jobs that have a runnable task, by ascending key; ties go to the job submitted first. It finds
// the first job whose next task fits without looking at every job.
type Fit struct {
	Ranked[resource.Vector] // with the need of each job's next task

	Key   func(*book.JobState) float64
	Grant GrantFunc

	// least is the component-wise minimum of the needs of each block of jobs: if it does not fit, nothing in the block
	// fits.
	least []resource.Vector
}

const fitBlock = 32

// FirstSubmitted is the key of a queue in which the job submitted first comes first.
func FirstSubmitted(*book.JobState) float64 { return 0 }

// FitEntry is a job with the need of its next task.
type FitEntry = Entry[resource.Vector]

// Drop discards all jobs.
func (q *Fit) Drop() {
	q.Ranked.Drop()
	q.least = nil
}

// Follow updates the queue from the changes of the snapshot.
func (q *Fit) Follow(p *book.Plan) {
	for _, j := range q.Changed(p) {
		q.Update(j)
	}
}

// Update files j anew, or removes it if it has nothing to run.
func (q *Fit) Update(j *book.JobState) {
	stage, runnable := j.NextStage()
	var need resource.Vector
	if runnable {
		need, _, runnable = q.Grant(j, stage)
	}
	if !runnable {
		if at, ok := q.Remove(j); ok {
			q.summarise(at, len(q.Jobs))
		}
		return
	}
	old, present := q.As(j)
	from, to := q.File(EntryOf(j, q.Key(j), need))
	if from < to && (!present || need != old.With || from/fitBlock != (to-1)/fitBlock) {
		q.summarise(from, to)
	}
}

// summarise recomputes the blocks that contain the jobs in [from, to).
func (q *Fit) summarise(from, to int) {
	blocks := (len(q.Jobs) + fitBlock - 1) / fitBlock
	for len(q.least) < blocks {
		q.least = append(q.least, resource.Vector{})
	}
	q.least = q.least[:blocks]
	for b := from / fitBlock; b < blocks && b*fitBlock < to; b++ {
		block := q.block(b)
		q.least[b] = block[0].With
		for i := range block[1:] {
			q.least[b] = q.least[b].Min(block[1+i].With)
		}
	}
}

func (q *Fit) block(b int) []FitEntry {
	return q.Jobs[b*fitBlock : min(len(q.Jobs), (b+1)*fitBlock)]
}

// fitFrom returns the first job from Jobs[at] on whose next task fits in free.
func (q *Fit) fitFrom(at int, free resource.Vector) (FitEntry, bool) {
	for b := at / fitBlock; b < len(q.least); b++ {
		if !q.least[b].FitsIn(free) {
			continue
		}
		for i := max(at, b*fitBlock); i < min(len(q.Jobs), (b+1)*fitBlock); i++ {
			if q.Jobs[i].With.FitsIn(free) {
				return q.Jobs[i], true
			}
		}
	}
	return FitEntry{}, false
}

// SomeFit reports whether some node may have room for the next task of a job.
func (q *Fit) SomeFit(p *book.Plan) bool {
	return slices.ContainsFunc(q.least, func(least resource.Vector) bool {
		_, ok := p.FirstOpen(least, 0)
		return ok
	})
}

// FitAfter returns the first job behind last whose next task fits in free.
func (q *Fit) FitAfter(last FitEntry, free resource.Vector) (FitEntry, bool) {
	at := 0
	if last.Job != nil {
		found := false
		if at, found = q.find(last); found {
			at++
		}
	}
	return q.fitFrom(at, free)
}

// ChangedIn returns the changed jobs that are in one of the queues, by ascending key.
func ChangedIn(p *book.Plan, queues ...*Fit) []FitEntry {
	var changed []FitEntry
	for _, j := range p.Changes.Jobs {
		for _, q := range queues {
			if e, queued := q.As(j); queued {
				changed = append(changed, e)
			}
		}
	}
	slices.SortFunc(changed, FitEntry.Compare)
	return slices.Compact(changed)
}
