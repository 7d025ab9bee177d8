package live

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/segments"
	"github.com/bellows-rm/bellows/live/store"
)

const (
	pruneEvery   = time.Hour
	prunedAtOnce = 100 // jobs per transaction, so that other writers can write in between
)

// keeping is what is kept of ended jobs, and when to remove the rest. Its methods may be called from any goroutine.
type keeping struct {
	mu      sync.Mutex // one Prune at a time
	keep    atomic.Pointer[retention.Rule]
	changed signal       // keep has changed, or many keys were added, since jobs were last removed
	keys    atomic.Int64 // how many were added since they were last pruned
}

func (k *keeping) begin(keep *retention.Rule) {
	k.keep.Store(keep)
	k.changed = newSignal()
}

// alone waits until no other Prune is at work, and returns what ends this one.
func (k *keeping) alone() (done func()) {
	k.mu.Lock()
	return k.mu.Unlock
}

// due has an element if jobs and keys should be removed.
func (k *keeping) due() <-chan struct{} { return k.changed }

func (k *keeping) keysPruned() { k.keys.Store(0) }

// rule is what is kept; nil is all.
func (k *keeping) rule() *retention.Rule { return k.keep.Load() }

func (k *keeping) change(keep *retention.Rule) {
	k.keep.Store(keep)
	k.changed.raise()
}

// keyAdded counts a new key, and has keys pruned now and then.
func (k *keeping) keyAdded() {
	if k.keys.Add(1) == keysBetween {
		k.changed.raise()
	}
}

// Prune removes ended jobs according to the retention; with dry it only returns them. Rows are removed before files:
// files that remain after a crash are removed at the next start.
func (d *Driver) Prune(ctx context.Context, keep retention.Rule, dry bool) (api.Pruned, error) {
	select {
	case <-d.learner.CaughtUp(): // A job that is removed teaches nothing.
	case <-ctx.Done():
		return api.Pruned{}, ctx.Err()
	}
	defer d.keeping.alone()()
	ended, err := d.store.Ended(ctx)
	if err != nil {
		return api.Pruned{}, err
	}
	p := keep.Choose(ended, d.now(), d.config.output().Size)
	if dry || len(p.Jobs) == 0 {
		return p, nil
	}
	for some := range slices.Chunk(p.Jobs, prunedAtOnce) {
		err := d.store.Remove(ctx, some)
		d.readers.past.Removed(some)
		if err != nil {
			return api.Pruned{}, err
		}
		if err := d.removeFiles(ctx, some); err != nil {
			return api.Pruned{}, err
		}
	}
	d.log.Info("removed ended jobs", "jobs", cluster.JobRanges(p.Jobs), "output_bytes", p.OutputBytes)
	return p, nil
}

// Retain changes which ended jobs and which event logs are kept, and has the others removed. A segment that has ended
// at its bound stays as it is: steps are missing after its end.
func (d *Driver) Retain(keep retention.Rule) error {
	d.keeping.change(&keep)
	return d.do(context.Background(), func() { d.events.Bound(keep.OfSegment()) })
}

// runsKept is the largest number of earlier runs whose event logs stay.
const runsKept = 100

// pruneEvents removes event logs of earlier runs according to the retention, the oldest first.
func (d *Driver) pruneEvents(ctx context.Context, keep *retention.Rule) error {
	runs, err := d.store.Runs(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(runs)
	this := d.events.Run()
	var size int64
	for i, run := range runs {
		if this == 0 || run.ID >= this {
			continue
		}
		bytes, written, ok := segments.Size(d.events.Of(run.ID))
		if !ok {
			continue // It is gone already.
		}
		size += bytes
		age := d.now().Sub(timeline.Time(written.UnixNano()))
		if i > runsKept || keep.Events > 0 && size > keep.OfEvents() || age >= keep.For {
			return d.removeRuns(ctx, runs[i:])
		}
	}
	return nil
}

// removeRuns removes the event logs of runs and then the runs. The next call removes what a crash left behind.
func (d *Driver) removeRuns(ctx context.Context, runs []store.Run) error {
	for _, run := range runs {
		if err := d.events.Remove(run.ID); err != nil {
			return err
		}
	}
	if err := d.store.RemoveRuns(ctx, runs[0].ID); err != nil {
		return err
	}
	d.log.Info("removed event logs of earlier runs", "runs", len(runs), "newest", runs[0].ID)
	return nil
}

// removeFiles removes the output of jobs that are no longer in the store. After a failure it tries again at the next
// start.
func (d *Driver) removeFiles(ctx context.Context, ids []cluster.JobID) error {
	gone, err := d.config.output().Remove(ids)
	if len(gone) > 0 {
		err = errors.Join(err, d.store.FilesGone(ctx, gone))
	}
	return err
}

// prune finishes the removals of an earlier Driver, and then removes ended jobs and old keys and shrinks the store,
// every hour, when the retention has changed, and after many new keys. It ends with ctx.
func (d *Driver) prune(ctx context.Context) {
	ids, err := d.store.Removed(ctx)
	if err == nil {
		err = d.removeFiles(ctx, ids)
	}
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		if keep := d.keeping.rule(); keep != nil && err == nil {
			_, err = d.Prune(ctx, *keep, false)
			err = errors.Join(err, d.pruneEvents(ctx, keep), d.thinUsage(ctx))
		}
		err = errors.Join(err, d.pruneKeys(ctx), d.store.Shrink(ctx))
		if err != nil && ctx.Err() == nil {
			d.log.Error("cannot remove ended jobs, trying again in an hour", "error", err)
		}
		err = nil
		select {
		case <-tick.C:
		case <-d.keeping.due():
		case <-ctx.Done():
			return
		}
	}
}

// notFound says why there is no job of that number.
func (d *Driver) notFound(ctx context.Context, id cluster.JobID) error {
	if newest, err := d.store.Newest(ctx); err == nil && id > 0 && id <= newest {
		return api.Errorf(api.NotFound, "job %d: was removed after its end; `bellows up --help` says how long jobs are kept",
			id)
	}
	return api.Errorf(api.NotFound, "job %d: does not exist", id)
}
