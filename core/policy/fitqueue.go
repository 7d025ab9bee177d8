package policy

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
)

// fitQueue contains the jobs that have a runnable task, by ascending key; ties go to the job submitted first. It finds
// the first job whose next task fits without looking at every job.
type fitQueue struct {
	ranked[resource.Vector] // with the need of each job's next task

	key   func(*book.JobState) float64
	grant grantFunc

	// least is the component-wise minimum of the needs of each block of jobs: if it does not fit, nothing in the block
	// fits.
	least []resource.Vector
}

const fitBlock = 32

// firstSubmitted is the key of a queue in which the job submitted first comes first.
func firstSubmitted(*book.JobState) float64 { return 0 }

type fitEntry = filing[resource.Vector]

func (q *fitQueue) drop() {
	q.ranked.drop()
	q.least = nil
}

// follow updates the queue from the changes of the snapshot.
func (q *fitQueue) follow(p *book.Plan) {
	for _, j := range q.changed(p) {
		q.update(j)
	}
}

// update files j anew, or removes it if it has nothing to run.
func (q *fitQueue) update(j *book.JobState) {
	stage, runnable := j.NextStage()
	var need resource.Vector
	if runnable {
		need, _, runnable = q.grant(j, stage)
	}
	if !runnable {
		if at, ok := q.remove(j); ok {
			q.summarise(at, len(q.jobs))
		}
		return
	}
	old, present := q.as(j)
	from, to := q.file(filingOf(j, q.key(j), need))
	if from < to && (!present || need != old.with || from/fitBlock != (to-1)/fitBlock) {
		q.summarise(from, to)
	}
}

// summarise recomputes the blocks that contain the jobs in [from, to).
func (q *fitQueue) summarise(from, to int) {
	blocks := (len(q.jobs) + fitBlock - 1) / fitBlock
	for len(q.least) < blocks {
		q.least = append(q.least, resource.Vector{})
	}
	q.least = q.least[:blocks]
	for b := from / fitBlock; b < blocks && b*fitBlock < to; b++ {
		block := q.block(b)
		q.least[b] = block[0].with
		for i := range block[1:] {
			q.least[b] = q.least[b].Min(block[1+i].with)
		}
	}
}

func (q *fitQueue) block(b int) []fitEntry {
	return q.jobs[b*fitBlock : min(len(q.jobs), (b+1)*fitBlock)]
}

// fitFrom returns the first job from jobs[at] on whose next task fits in free.
func (q *fitQueue) fitFrom(at int, free resource.Vector) (fitEntry, bool) {
	for b := at / fitBlock; b < len(q.least); b++ {
		if !q.least[b].FitsIn(free) {
			continue
		}
		for i := max(at, b*fitBlock); i < min(len(q.jobs), (b+1)*fitBlock); i++ {
			if q.jobs[i].with.FitsIn(free) {
				return q.jobs[i], true
			}
		}
	}
	return fitEntry{}, false
}

// someFit reports whether some node may have room for the next task of a job.
func (q *fitQueue) someFit(p *book.Plan) bool {
	return slices.ContainsFunc(q.least, func(least resource.Vector) bool {
		_, ok := p.FirstOpen(least, 0)
		return ok
	})
}

// fitAfter returns the first job behind last whose next task fits in free.
func (q *fitQueue) fitAfter(last fitEntry, free resource.Vector) (fitEntry, bool) {
	at := 0
	if last.job != nil {
		found := false
		if at, found = q.find(last); found {
			at++
		}
	}
	return q.fitFrom(at, free)
}

// changedIn returns the changed jobs that are in one of the queues, by ascending key.
func changedIn(p *book.Plan, queues ...*fitQueue) []fitEntry {
	var changed []fitEntry
	for _, j := range p.Changes.Jobs {
		for _, q := range queues {
			if e, queued := q.as(j); queued {
				changed = append(changed, e)
			}
		}
	}
	slices.SortFunc(changed, fitEntry.compare)
	return slices.Compact(changed)
}
