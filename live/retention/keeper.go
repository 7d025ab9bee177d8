package retention

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/output"
	"github.com/bellows-rm/bellows/live/segments"
	"github.com/bellows-rm/bellows/live/store"
)

const (
	// Every is how often a Keeper removes what is no longer kept.
	Every = time.Hour
	// KeysBetween is how many keys may be added before keys are pruned.
	KeysBetween = 10_000

	prunedAtOnce = 100 // jobs per transaction, so that other writers can write in between
	// keysPerUser is how many keys of a user count at most: the newest, some 15 MB. Whoever submits 200 jobs a second
	// has 8 minutes to repeat a request.
	keysPerUser = 100_000
	// runsKept is the largest number of earlier runs whose event logs stay.
	runsKept = 100
	// thinAfter is how long the usage of a run is stored in detail, thinnedAtOnce the number of runs that are thinned in
	// one transaction.
	thinAfter     = 24 * time.Hour
	thinnedAtOnce = 100
)

// Keeper removes what is no longer kept: ended jobs with their output, event logs of earlier runs, keys of requests,
// and details of what runs used. Its methods may be called from any goroutine.
type Keeper struct {
	Kept

	mu      sync.Mutex // one Prune at a time
	rule    atomic.Pointer[Rule]
	changed chan struct{} // has an element if the Rule has changed, or many keys were added, since jobs were last removed
	keys    atomic.Int64  // how many were added since they were last pruned
}

// Kept is what a Keeper removes from.
type Kept struct {
	Store  *store.Store
	Output output.Folder
	Events *segments.Log // set before Run
	Log    *slog.Logger
	// Now never runs backwards.
	Now func() timeline.Time
	// Learned is closed once an ended job may be removed: a job that is removed teaches nothing.
	Learned <-chan struct{}
	// Removed is called with jobs that were removed, or may have been.
	Removed func([]cluster.JobID)
}

// Begin returns a Keeper that removes nothing before Run. A nil Rule keeps all.
func Begin(k Kept, rule *Rule) *Keeper {
	out := &Keeper{Kept: k, changed: make(chan struct{}, 1)}
	out.rule.Store(rule)
	return out
}

// Rule is what is kept; nil is all.
func (k *Keeper) Rule() *Rule { return k.rule.Load() }

// Change changes the Rule, and has what it does not keep removed.
func (k *Keeper) Change(rule *Rule) {
	k.rule.Store(rule)
	k.again()
}

// KeyAdded counts a new key, and has keys pruned now and then.
func (k *Keeper) KeyAdded() {
	if k.keys.Add(1) == KeysBetween {
		k.again()
	}
}

func (k *Keeper) again() {
	select {
	case k.changed <- struct{}{}:
	default: // The next round has not begun, and sees this change, too.
	}
}

// Run finishes the removals of an earlier Keeper, and then removes what is not kept and shrinks the store, every hour,
// when the Rule has changed, and after many new keys. It ends with ctx.
func (k *Keeper) Run(ctx context.Context) {
	ids, err := k.Store.Removed(ctx)
	if err == nil {
		err = k.removeFiles(ctx, ids)
	}
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		if rule := k.rule.Load(); rule != nil && err == nil {
			_, err = k.Prune(ctx, *rule, false)
			err = errors.Join(err, k.pruneEvents(ctx, rule), k.thinUsage(ctx))
		}
		k.keys.Store(0)
		err = errors.Join(err, k.Store.PruneKeys(ctx, k.Now(), keysPerUser), k.Store.Shrink(ctx))
		if err != nil && ctx.Err() == nil {
			k.Log.Error("cannot remove ended jobs, trying again in an hour", "error", err)
		}
		err = nil
		select {
		case <-tick.C:
		case <-k.changed:
		case <-ctx.Done():
			return
		}
	}
}

// Prune removes the ended jobs that a Rule does not keep; with dry it only returns them. Rows are removed before files:
// files that remain after a crash are removed at the next start.
func (k *Keeper) Prune(ctx context.Context, rule Rule, dry bool) (api.Pruned, error) {
	select {
	case <-k.Learned:
	case <-ctx.Done():
		return api.Pruned{}, ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	ended, err := k.Store.Ended(ctx)
	if err != nil {
		return api.Pruned{}, err
	}
	p := rule.Choose(ended, k.Now(), k.Output.Size)
	if dry || len(p.Jobs) == 0 {
		return p, nil
	}
	for some := range slices.Chunk(p.Jobs, prunedAtOnce) {
		err := k.Store.Remove(ctx, some)
		k.Removed(some)
		if err != nil {
			return api.Pruned{}, err
		}
		if err := k.removeFiles(ctx, some); err != nil {
			return api.Pruned{}, err
		}
	}
	k.Log.Info("removed ended jobs", "jobs", cluster.JobRanges(p.Jobs), "output_bytes", p.OutputBytes)
	return p, nil
}

// pruneEvents removes event logs of earlier runs according to a Rule, the oldest first.
func (k *Keeper) pruneEvents(ctx context.Context, rule *Rule) error {
	runs, err := k.Store.Runs(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(runs)
	this := k.Events.Run()
	var size int64
	for i, run := range runs {
		if this == 0 || run.ID >= this {
			continue
		}
		bytes, written, ok := segments.Size(k.Events.Of(run.ID))
		if !ok {
			continue // It is gone already.
		}
		size += bytes
		age := k.Now().Sub(timeline.Time(written.UnixNano()))
		if i > runsKept || rule.Events > 0 && size > rule.OfEvents() || age >= rule.For {
			return k.removeRuns(ctx, runs[i:])
		}
	}
	return nil
}

// removeRuns removes the event logs of runs and then the runs. The next call removes what a crash left behind.
func (k *Keeper) removeRuns(ctx context.Context, runs []store.Run) error {
	for _, run := range runs {
		if err := k.Events.Remove(run.ID); err != nil {
			return err
		}
	}
	if err := k.Store.RemoveRuns(ctx, runs[0].ID); err != nil {
		return err
	}
	k.Log.Info("removed event logs of earlier runs", "runs", len(runs), "newest", runs[0].ID)
	return nil
}

// removeFiles removes the output of jobs that are no longer in the store. After a failure the next Keeper tries again.
func (k *Keeper) removeFiles(ctx context.Context, ids []cluster.JobID) error {
	gone, err := k.Output.Remove(ids)
	if len(gone) > 0 {
		err = errors.Join(err, k.Store.FilesGone(ctx, gone))
	}
	return err
}

// thinUsage thins the usage of runs that ended long ago.
func (k *Keeper) thinUsage(ctx context.Context) error {
	for {
		n, err := k.Store.ThinUsage(ctx, k.Now().Add(-thinAfter), usage.SpansOld, thinnedAtOnce)
		if err != nil || n < thinnedAtOnce {
			return err
		}
	}
}
