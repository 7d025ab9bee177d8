package policy

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
)

// ranked keeps jobs in order: the one with the least key first, and among equals the one submitted first. T is what a policy
// files along with each. The zero ranked is empty.
type ranked[T comparable] struct {
	jobs  []filing[T]
	filed map[*cluster.JobState]filing[T] // how each of them is filed
}

// filing is a job as it is filed.
type filing[T comparable] struct {
	job  *cluster.JobState
	key  float64
	with T
}

// compare orders entries. No two jobs are equal, because no two share an ID.
func (a filing[T]) compare(b filing[T]) int {
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

// file puts e.job where it belongs. It takes O(log jobs) and a move. What stands at [from, to) afterwards, or in the rest if the job
// is new, may be another than before; from and to are equal if nothing changed.
func (q *ranked[T]) file(e filing[T]) (from, to int) {
	old, present := q.filed[e.job]
	if present && old == e {
		return 0, 0
	}
	if q.filed == nil {
		q.filed = map[*cluster.JobState]filing[T]{}
	}
	q.filed[e.job] = e
	if !present {
		at, _ := q.find(e)
		q.jobs = slices.Insert(q.jobs, at, e)
		return at, len(q.jobs)
	}
	from, to = q.move(old, e)
	return min(from, to), max(from, to) + 1
}

// find returns where e is, or would be.
func (q *ranked[T]) find(e filing[T]) (at int, ok bool) {
	return slices.BinarySearchFunc(q.jobs, e, filing[T].compare)
}

// move shifts only the entries between the old and the new place.
func (q *ranked[T]) move(old, e filing[T]) (from, to int) {
	from, _ = q.find(old)
	to = from
	if e.key != old.key {
		if to, _ = q.find(e); to > from {
			to--
			copy(q.jobs[from:to], q.jobs[from+1:to+1])
		} else {
			copy(q.jobs[to+1:from+1], q.jobs[to:from])
		}
	}
	q.jobs[to] = e
	return from, to
}

// remove takes a job out and returns where it was; ok is false if it was not there.
func (q *ranked[T]) remove(j *cluster.JobState) (at int, ok bool) {
	e, ok := q.filed[j]
	if !ok {
		return 0, false
	}
	at, _ = q.find(e)
	q.jobs = slices.Delete(q.jobs, at, at+1)
	delete(q.filed, j)
	return at, true
}

// changed returns the jobs to look at for the queue to be up to date: those that changed, or all if none has been filed yet.
func (q *ranked[T]) changed(p *cluster.Plan) []*cluster.JobState {
	if q.filed != nil {
		return p.Changes.Jobs
	}
	q.filed = make(map[*cluster.JobState]filing[T], len(p.Jobs))
	return p.Jobs
}

// drop forgets all jobs.
func (q *ranked[T]) drop() { q.jobs, q.filed = nil, nil }
