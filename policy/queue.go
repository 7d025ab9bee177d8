package policy

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// fairQueue holds the jobs that have a runnable task, the one with the least memory per weight first; among equals the
// one submitted first.
type fairQueue struct {
	jobs []queued
	keys map[*cluster.JobState]float64 // what each queued job is filed under
}

type queued struct {
	job *cluster.JobState
	key float64
}

// fairKey is a job's consumption of memory, in bytes, over its weight.
func fairKey(j *cluster.JobState) float64 {
	used := float64(j.Used[resource.Memory])
	if j.Weight > 0 {
		used /= j.Weight
	}
	return used
}

// compare orders the queue. No two jobs are equal, because no two share an ID.
func (a queued) compare(b queued) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	case a.job.Submitted != b.job.Submitted:
		return cmp.Compare(a.job.Submitted, b.job.Submitted)
	}
	return cmp.Compare(a.job.ID, b.job.ID)
}

// fill makes the queue anew from the snapshot.
func (q *fairQueue) fill(p *cluster.Plan) {
	q.jobs, q.keys = q.jobs[:0], make(map[*cluster.JobState]float64, len(p.Jobs))
	for _, j := range p.Jobs {
		q.update(j)
	}
}

// update files j where it belongs now, or removes it if it has nothing to run. It takes O(log jobs) and a move.
func (q *fairQueue) update(j *cluster.JobState) {
	_, runnable := j.NextStage()
	q.file(j, fairKey(j), runnable)
}

// file is update with another key than the memory per weight; the least comes first.
func (q *fairQueue) file(j *cluster.JobState, key float64, runnable bool) {
	old, present := q.keys[j]
	switch {
	case !present && !runnable:
	case !present:
		q.insert(queued{j, key})
	case !runnable:
		at, _ := q.find(queued{j, old})
		q.jobs = slices.Delete(q.jobs, at, at+1)
		delete(q.keys, j)
	case old != key:
		q.move(queued{j, old}, queued{j, key})
	}
}

func (q *fairQueue) find(e queued) (int, bool) {
	return slices.BinarySearchFunc(q.jobs, e, queued.compare)
}

func (q *fairQueue) insert(e queued) {
	at, _ := q.find(e)
	q.jobs = slices.Insert(q.jobs, at, e)
	if q.keys == nil {
		q.keys = map[*cluster.JobState]float64{}
	}
	q.keys[e.job] = e.key
}

// move shifts only the entries between the old and the new place.
func (q *fairQueue) move(old, e queued) {
	from, _ := q.find(old)
	to, _ := q.find(e)
	if to > from {
		to--
		copy(q.jobs[from:to], q.jobs[from+1:to+1])
	} else {
		copy(q.jobs[to+1:from+1], q.jobs[to:from])
	}
	q.jobs[to] = e
	q.keys[e.job] = e.key
}
