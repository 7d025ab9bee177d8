package board

import (
	"cmp"
	"iter"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// List is a list of jobs by ascending ID. It is never changed: with and without return another list, which shares
// all leaves but one to three. So a change costs time in proportion to the number of leaves, and of jobs in a leaf.
type List struct {
	leaves []leaf
	count  int // of jobs
}

// leaf is a part of a List. It is never empty.
type leaf struct {
	jobs   []*Job
	newest int64 // none of its jobs has a later revision
}

// leafSize is the largest number of jobs in a leaf: near the square root of 10,000 jobs.
const leafSize = 128

// Len is how many jobs the list has.
func (l *List) Len() int { return l.count }

// find returns where a job is: the index of its leaf, and its index there. If the list does not have it, that is
// where it would be; in is the number of leaves if it came after all others.
func (l *List) find(id cluster.JobID) (in, at int, here bool) {
	in, _ = slices.BinarySearchFunc(l.leaves, id, func(f leaf, id cluster.JobID) int {
		return cmp.Compare(f.jobs[len(f.jobs)-1].ID, id)
	})
	if in == len(l.leaves) {
		return in, 0, false
	}
	at, here = slices.BinarySearchFunc(l.leaves[in].jobs, id, func(j *Job, id cluster.JobID) int {
		return cmp.Compare(j.ID, id)
	})
	return in, at, here
}

// Job returns the job of an ID; nil if the list does not have it.
func (l *List) Job(id cluster.JobID) *Job {
	in, at, here := l.find(id)
	if !here {
		return nil
	}
	return l.leaves[in].jobs[at]
}

// After returns the job that follows an ID; after the last, that is the first. The list must not be empty.
func (l *List) After(id cluster.JobID) *Job {
	in, at, _ := l.find(id + 1)
	if in == len(l.leaves) {
		return l.leaves[0].jobs[0]
	}
	return l.leaves[in].jobs[at]
}

// Has reports whether a job has an ID from first on and before next.
func (l *List) Has(first, next cluster.JobID) bool {
	in, at, _ := l.find(first)
	return in < len(l.leaves) && l.leaves[in].jobs[at].ID < next
}

// Run returns the jobs without their tasks whose IDs follow each other from first on, at most a number of them.
func (l *List) Run(first cluster.JobID, most int) []api.Job {
	n := 0
	for j := range l.from(first) {
		if j.ID != first+cluster.JobID(n) || n == most {
			break
		}
		n++
	}
	if n == 0 {
		return nil
	}
	jobs := make([]api.Job, 0, n)
	for j := range l.from(first) {
		if len(jobs) == n {
			break
		}
		jobs = append(jobs, j.Alone())
	}
	return jobs
}

// from returns the jobs from an ID on.
func (l *List) from(first cluster.JobID) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for in, at, _ := l.find(first); in < len(l.leaves); in, at = in+1, 0 {
			for _, j := range l.leaves[in].jobs[at:] {
				if !yield(j) {
					return
				}
			}
		}
	}
}

// All returns the jobs.
func (l *List) All() iter.Seq[*Job] { return l.Since(0) }

// Since returns the jobs that have changed after a revision.
func (l *List) Since(revision int64) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for i := range l.leaves {
			if l.leaves[i].newest <= revision {
				continue
			}
			for _, j := range l.leaves[i].jobs {
				if j.revision > revision && !yield(j) {
					return
				}
			}
		}
	}
}

// with returns the list with a job, in place of the job of the same ID if there is one.
func (l List) with(j *Job) List {
	in, at, here := l.find(j.ID)
	l.leaves = slices.Clone(l.leaves)
	if in == len(l.leaves) {
		if in == 0 || len(l.leaves[in-1].jobs) >= leafSize {
			l.leaves = append(l.leaves, leaf{[]*Job{j}, j.revision})
			l.count++
			return l
		}
		in, at = in-1, len(l.leaves[in-1].jobs)
	}
	f := &l.leaves[in]
	f.newest = max(f.newest, j.revision)
	if f.jobs = slices.Clone(f.jobs); here {
		f.jobs[at] = j
		return l
	}
	// A leaf exceeds leafSize only if jobs come out of order, which they do not.
	f.jobs = slices.Insert(f.jobs, at, j)
	l.count++
	return l
}

// without returns the list without the job of an ID. A leaf that has become small is joined with a neighbour, so that
// old jobs that stay among many that leave do not each keep a leaf.
func (l List) without(id cluster.JobID) List {
	in, at, here := l.find(id)
	if !here {
		return l
	}
	l.count--
	l.leaves = slices.Clone(l.leaves)
	f := &l.leaves[in]
	if f.jobs = slices.Delete(slices.Clone(f.jobs), at, at+1); len(f.jobs) == 0 {
		l.leaves = slices.Delete(l.leaves, in, in+1)
		return l
	}
	for _, i := range []int{in, in - 1} { // with the next leaf, and with the one before
		if i < 0 || i+1 >= len(l.leaves) || len(l.leaves[i].jobs)+len(l.leaves[i+1].jobs) > leafSize/2 {
			continue
		}
		one, two := l.leaves[i], l.leaves[i+1]
		l.leaves[i] = leaf{slices.Concat(one.jobs, two.jobs), max(one.newest, two.newest)}
		l.leaves = slices.Delete(l.leaves, i+1, i+2)
	}
	return l
}
