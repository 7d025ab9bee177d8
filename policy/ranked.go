package policy

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
)

// ranked keeps jobs in ascending order of their keys; ties go to the job submitted first. T is what a policy files with
// each job. The zero ranked is empty.
type ranked[T comparable] struct {
	jobs  []filing[T]
	filed map[*cluster.JobState]filing[T] // how each job is filed
}

// filing is a job with its key and the policy's data.
type filing[T comparable] struct {
	job  *cluster.JobState
	key  float64
	with T
}

// compare orders filings. No two jobs are equal, because no two have the same ID.
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

// file puts e.job in its place, in O(log jobs) and a move. The entries in [from, to), or to the end if the job is new,
// may have changed; from and to are equal if nothing changed.
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

// find returns the position of e, or where e belongs.
func (q *ranked[T]) find(e filing[T]) (at int, ok bool) {
	return slices.BinarySearchFunc(q.jobs, e, filing[T].compare)
}

// move shifts only the entries between the old and the new position.
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

// remove removes a job and returns its position; ok is false if it was not filed.
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

// changed returns the jobs to update: the jobs that changed, or all jobs if none has been filed yet.
func (q *ranked[T]) changed(p *cluster.Plan) []*cluster.JobState {
	if q.filed != nil {
		return p.Changes.Jobs
	}
	q.filed = make(map[*cluster.JobState]filing[T], len(p.Jobs))
	return p.Jobs
}

// drop discards all jobs.
func (q *ranked[T]) drop() { q.jobs, q.filed = nil, nil }
