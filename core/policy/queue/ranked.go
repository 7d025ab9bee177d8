// Package queue has the queues in which policies keep jobs: by a key, by whether the next task of a job fits, and in a
// hierarchy of queues that users name.
package queue

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Ranked keeps jobs in ascending order of their keys; ties go to the job submitted first. T is what a policy files with
// each job. The zero Ranked is empty.
type Ranked[T comparable] struct {
	Jobs  []Entry[T] // ascending; to be read alone
	filed []Entry[T] // how each job is filed, by its slot; no job if it is not
}

// Entry is a job with its key and the policy's data. The time of its submission is here, too, because many keys are
// equal.
type Entry[T comparable] struct {
	Job       *book.JobState
	Key       float64
	submitted timeline.Time
	With      T
}

// EntryOf returns a job as it is filed.
func EntryOf[T comparable](j *book.JobState, key float64, with T) Entry[T] {
	return Entry[T]{j, key, j.Submitted, with}
}

// Compare orders entries. No two jobs are equal, because no two have the same ID.
func (a Entry[T]) Compare(b Entry[T]) int {
	switch {
	case a.before(&b):
		return -1
	case b.before(&a):
		return 1
	}
	return 0
}

func (a *Entry[T]) before(b *Entry[T]) bool {
	return a.Key < b.Key || a.Key == b.Key && (a.submitted < b.submitted || a.submitted == b.submitted &&
		a.Job.ID < b.Job.ID)
}

// As returns how a job is filed; ok is false if it is not.
func (q *Ranked[T]) As(j *book.JobState) (e Entry[T], ok bool) {
	if j.Slot < len(q.filed) && q.filed[j.Slot].Job == j {
		return q.filed[j.Slot], true
	}
	return e, false
}

// File puts e.Job in its place, in O(log jobs) and a move. The entries in [from, to), or to the end if the job is new,
// may have changed; from and to are equal if nothing changed.
func (q *Ranked[T]) File(e Entry[T]) (from, to int) {
	old, present := q.As(e.Job)
	if present && old == e {
		return 0, 0
	}
	for len(q.filed) <= e.Job.Slot {
		q.filed = append(q.filed, Entry[T]{})
	}
	q.filed[e.Job.Slot] = e
	if !present {
		at, _ := q.find(e)
		q.Jobs = slices.Insert(q.Jobs, at, e)
		return at, len(q.Jobs)
	}
	from, to = q.move(old, e)
	return min(from, to), max(from, to) + 1
}

// find returns the position of e, or where e belongs. It compares in place what a comparison function would be handed.
func (q *Ranked[T]) find(e Entry[T]) (at int, ok bool) {
	at, end := 0, len(q.Jobs)
	for at < end {
		middle := int(uint(at+end) / 2)
		if q.Jobs[middle].before(&e) {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at, at < len(q.Jobs) && q.Jobs[at].Job == e.Job && q.Jobs[at].Key == e.Key
}

// move shifts only the entries between the old and the new position.
func (q *Ranked[T]) move(old, e Entry[T]) (from, to int) {
	from, _ = q.find(old)
	to = from
	if e.Key != old.Key {
		if to, _ = q.find(e); to > from {
			to--
			copy(q.Jobs[from:to], q.Jobs[from+1:to+1])
		} else {
			copy(q.Jobs[to+1:from+1], q.Jobs[to:from])
		}
	}
	q.Jobs[to] = e
	return from, to
}

// Remove removes a job and returns its position; ok is false if it was not filed.
func (q *Ranked[T]) Remove(j *book.JobState) (at int, ok bool) {
	e, ok := q.As(j)
	if !ok {
		return 0, false
	}
	at, _ = q.find(e)
	q.Jobs = slices.Delete(q.Jobs, at, at+1)
	q.filed[j.Slot] = Entry[T]{}
	return at, true
}

// Changed returns the jobs to update: the jobs that changed, or all jobs if none has been filed yet.
func (q *Ranked[T]) Changed(p *book.Plan) []*book.JobState {
	if !q.Dropped() {
		return p.Changes.Jobs
	}
	q.filed = make([]Entry[T], len(p.Jobs))
	return p.Jobs
}

// Drop discards all jobs.
func (q *Ranked[T]) Drop() { q.Jobs, q.filed = nil, nil }

// Dropped reports whether all jobs have to be filed, because none has been yet, or all were discarded.
func (q *Ranked[T]) Dropped() bool { return q.filed == nil }
