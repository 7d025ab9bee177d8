package policy

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/timeline"
)

// ranked keeps jobs in ascending order of their keys; ties go to the job submitted first. T is what a policy files with
// each job. The zero ranked is empty.
type ranked[T comparable] struct {
	jobs  []filing[T]
	filed []filing[T] // how each job is filed, by its slot; no job if it is not
}

// filing is a job with its key and the policy's data. The time of its submission is here, too, because many keys are
// equal.
type filing[T comparable] struct {
	job       *book.JobState
	key       float64
	submitted timeline.Time
	with      T
}

func filingOf[T comparable](j *book.JobState, key float64, with T) filing[T] {
	return filing[T]{j, key, j.Submitted, with}
}

// compare orders filings. No two jobs are equal, because no two have the same ID.
func (a filing[T]) compare(b filing[T]) int {
	switch {
	case a.before(&b):
		return -1
	case b.before(&a):
		return 1
	}
	return 0
}

func (a *filing[T]) before(b *filing[T]) bool {
	return a.key < b.key || a.key == b.key && (a.submitted < b.submitted || a.submitted == b.submitted &&
		a.job.ID < b.job.ID)
}

// as returns how a job is filed; ok is false if it is not.
func (q *ranked[T]) as(j *book.JobState) (e filing[T], ok bool) {
	if j.Slot < len(q.filed) && q.filed[j.Slot].job == j {
		return q.filed[j.Slot], true
	}
	return e, false
}

// file puts e.job in its place, in O(log jobs) and a move. The entries in [from, to), or to the end if the job is new,
// may have changed; from and to are equal if nothing changed.
func (q *ranked[T]) file(e filing[T]) (from, to int) {
	old, present := q.as(e.job)
	if present && old == e {
		return 0, 0
	}
	for len(q.filed) <= e.job.Slot {
		q.filed = append(q.filed, filing[T]{})
	}
	q.filed[e.job.Slot] = e
	if !present {
		at, _ := q.find(e)
		q.jobs = slices.Insert(q.jobs, at, e)
		return at, len(q.jobs)
	}
	from, to = q.move(old, e)
	return min(from, to), max(from, to) + 1
}

// find returns the position of e, or where e belongs. It compares in place what a comparison function would be handed.
func (q *ranked[T]) find(e filing[T]) (at int, ok bool) {
	at, end := 0, len(q.jobs)
	for at < end {
		middle := int(uint(at+end) / 2)
		if q.jobs[middle].before(&e) {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at, at < len(q.jobs) && q.jobs[at].job == e.job && q.jobs[at].key == e.key
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
func (q *ranked[T]) remove(j *book.JobState) (at int, ok bool) {
	e, ok := q.as(j)
	if !ok {
		return 0, false
	}
	at, _ = q.find(e)
	q.jobs = slices.Delete(q.jobs, at, at+1)
	q.filed[j.Slot] = filing[T]{}
	return at, true
}

// changed returns the jobs to update: the jobs that changed, or all jobs if none has been filed yet.
func (q *ranked[T]) changed(p *book.Plan) []*book.JobState {
	if q.filed != nil {
		return p.Changes.Jobs
	}
	q.filed = make([]filing[T], len(p.Jobs))
	return p.Jobs
}

// drop discards all jobs.
func (q *ranked[T]) drop() { q.jobs, q.filed = nil, nil }
