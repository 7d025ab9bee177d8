package policy

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
)

// fairQueue contains the jobs that have a runnable task, by ascending memory per weight.
type fairQueue struct{ queue.Ranked[struct{}] }

type queued = queue.Entry[struct{}]

// fairKey is a job's granted memory, in bytes, over its weight.
func fairKey(j *book.JobState) float64 {
	return float64(j.Used[resource.Memory]) / queue.WeightOf(j)
}

// follow updates the queue from the changes of the snapshot.
func (q *fairQueue) follow(p *book.Plan) {
	for _, j := range q.Changed(p) {
		q.update(j)
	}
}

// update files j anew, or removes it if it has nothing to run.
func (q *fairQueue) update(j *book.JobState) {
	_, runnable := j.NextStage()
	q.set(j, fairKey(j), runnable)
}

// set is update with a key other than the memory per weight; the least key comes first.
func (q *fairQueue) set(j *book.JobState, key float64, runnable bool) {
	if runnable {
		q.File(queue.EntryOf(j, key, struct{}{}))
	} else {
		q.Remove(j)
	}
}
