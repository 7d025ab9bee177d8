package board

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/kept"
	"github.com/bellows-rm/bellows/live/store"
)

// Jobs that have ended never change until they are removed. What callers asked most recently is kept, so that it is
// not read from the store and decoded again.
const (
	// mostKept bounds the jobs with their runs that are kept for callers who want one job, at some 2 KB each.
	mostKept = 8192
	// mostListed bounds the jobs that are kept for lists, at some 500 bytes each; they are kept in spans. At least
	// half of the bound stays: all lists of 10,000 jobs.
	mostListed = 24576
	// SpanSize is how many IDs that follow each other are a span.
	SpanSize = 128
)

// Ended are jobs that have ended and are in the store. Its methods may be called from any goroutine.
type Ended struct {
	jobs  *kept.Cache[cluster.JobID, *Job]
	spans *kept.Cache[cluster.JobID, []api.Job] // as lists show them, by the first ID that can be in the span

	mu       sync.Mutex
	removals atomic.Int64 // how often jobs were removed
}

// NewEnded returns an Ended that has none.
func NewEnded() *Ended {
	return &Ended{jobs: kept.New[cluster.JobID, *Job](mostKept),
		spans: kept.New[cluster.JobID, []api.Job](mostListed)}
}

// Removals is how often jobs were removed.
func (e *Ended) Removals() int64 { return e.removals.Load() }

// Job returns a job that is kept; ok is false if it is not.
func (e *Ended) Job(id cluster.JobID) (j *Job, ok bool) { return e.jobs.Get(id) }

// Offer keeps a job that was read from the store, if it was asked for more than once. removals is as of before it was
// read.
func (e *Ended) Offer(removals int64, j *Job) {
	e.keep(removals, func() { e.jobs.Offer(j.ID, j, j.size()+len(j.earlier)) })
}

// keep keeps what was read from the store, unless jobs were removed since: removals is how often they had been before.
func (e *Ended) keep(removals int64, put func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.removals.Load() == removals {
		put()
	}
}

// Removed forgets jobs that are not in the store any more.
func (e *Ended) Removed(ids []cluster.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removals.Add(1)
	for _, id := range ids {
		e.jobs.Drop(id)
		e.spans.Drop(spanOf(id))
	}
}

// spanOf returns the first ID of the span that an ID is in.
func spanOf(id cluster.JobID) cluster.JobID { return id - (id-1)%SpanSize }

// After returns at most a number of jobs that follow an ID, as lists show them, if it is in a span whose jobs
// have all ended; nil if not, or if most of them were removed. b must be current.
func (e *Ended) After(ctx context.Context, s *store.Store, b *Board, after cluster.JobID, most int) ([]api.Job,
	error) {
	first := spanOf(after + 1)
	next := first + SpanSize
	if next-1 > b.Last || b.Jobs.Has(first, next) {
		return nil, nil
	}
	// All jobs of the span have been on a board, and have left it: their ends are stored.
	span, ok := e.spans.Get(first)
	if !ok {
		removals := e.Removals()
		stored, err := s.List(ctx, first-1, SpanSize)
		if err != nil {
			return nil, err
		}
		for i := range stored {
			if stored[i].ID < next {
				span = append(span, listedView(&stored[i]))
			}
		}
		if len(span) < SpanSize/2 {
			return nil, nil
		}
		e.keep(removals, func() { e.spans.Put(first, span, SpanSize) })
	}
	from, _ := slices.BinarySearchFunc(span, after+1, func(j api.Job, id cluster.JobID) int { return int(j.ID - id) })
	if from == len(span) {
		return nil, nil
	}
	return span[from:min(from+most, len(span)):len(span)], nil
}
