package live

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/kept"
)

// Jobs that have ended never change until they are removed. What callers asked most recently is kept, so that it is
// not read from the store and decoded again.
const (
	// mostKept bounds the jobs with their runs that are kept for callers who want one job, at some 2 KB each.
	mostKept = 8192
	// mostListed bounds the jobs that are kept for lists, at some 500 bytes each; they are kept in spans of the IDs that
	// follow each other. At least half of the bound stays: all lists of 10,000 jobs.
	mostListed = 24576
	spanSize   = 128
)

// endedJobs are jobs that have ended and are in the store.
type endedJobs struct {
	jobs  *kept.Cache[cluster.JobID, *boardJob]
	spans *kept.Cache[cluster.JobID, []api.Job] // as lists show them, by the first ID that can be in the span

	mu       sync.Mutex
	removals atomic.Int64 // how often jobs were removed
}

func newEndedJobs() endedJobs {
	return endedJobs{jobs: kept.New[cluster.JobID, *boardJob](mostKept),
		spans: kept.New[cluster.JobID, []api.Job](mostListed)}
}

// keep keeps what was read from the store, unless jobs were removed since: removals is how often they had been before.
func (e *endedJobs) keep(removals int64, put func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.removals.Load() == removals {
		put()
	}
}

// removed forgets jobs that are not in the store any more.
func (e *endedJobs) removed(ids []cluster.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removals.Add(1)
	for _, id := range ids {
		e.jobs.Drop(id)
		e.spans.Drop(spanOf(id))
	}
}

// spanOf returns the first ID of the span that an ID is in.
func spanOf(id cluster.JobID) cluster.JobID { return id - (id-1)%spanSize }

// endedAfter returns at most a number of jobs that follow an ID, as lists show them, if it is in a span whose jobs
// have all ended; nil if not, or if most of them were removed. b must be current.
func (d *Driver) endedAfter(ctx context.Context, b *board, after cluster.JobID, most int) ([]api.Job, error) {
	first := spanOf(after + 1)
	next := first + spanSize
	if next-1 > b.last || b.jobs.has(first, next) {
		return nil, nil
	}
	// All jobs of the span have been on a board, and have left it: their ends are stored.
	span, ok := d.readers.past.spans.Get(first)
	if !ok {
		removals := d.readers.past.removals.Load()
		stored, err := d.store.List(ctx, first-1, spanSize)
		if err != nil {
			return nil, err
		}
		for i := range stored {
			if stored[i].ID < next {
				span = append(span, listedView(&stored[i]))
			}
		}
		if len(span) < spanSize/2 {
			return nil, nil
		}
		d.readers.past.keep(removals, func() { d.readers.past.spans.Put(first, span, spanSize) })
	}
	from, _ := slices.BinarySearchFunc(span, after+1, func(j api.Job, id cluster.JobID) int { return int(j.ID - id) })
	if from == len(span) {
		return nil, nil
	}
	return span[from:min(from+most, len(span)):len(span)], nil
}
