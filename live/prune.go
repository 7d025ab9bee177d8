package live

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/segments"
	"github.com/bellows-rm/bellows/live/store"
)

// Retention says which ended jobs are kept, with their tasks and their output. Jobs that have not ended are always
// kept, and jobs that ended less than 10 seconds ago, so that waiting clients see how they ended.
type Retention struct {
	// For is how long a job stays after its end.
	For time.Duration
	// Jobs is the largest number of jobs that stay, and Output the largest number of bytes of output; 0 is no limit.
	// Beyond them, the oldest job of the owner who has most goes, so that the history of one owner does not push out
	// that of others.
	Jobs   int
	Output resource.Amount
	// UserJobs and UserOutput are the largest numbers of each owner, of the most recently ended jobs. What is beyond
	// them does not count for Jobs and Output.
	UserJobs   int
	UserOutput resource.Amount
	// Events is the largest number of bytes of event logs that stay; 0 is no limit. The current run gets half of it, of
	// which the newest segments stay; no segment is smaller than three times its inventory. Earlier runs get the other
	// half: the latest stay, for at most as long as jobs, and at most 100.
	Events resource.Amount
	// Newest is the number of most recently ended jobs that are kept regardless of the other bounds.
	Newest int
}

const (
	pruneEvery   = time.Hour
	justEnded    = 10 * time.Second
	prunedAtOnce = 100 // jobs per transaction, so that other writers can write in between
)

// keeping is what is kept of ended jobs, and when to remove the rest. Its methods may be called from any goroutine.
type keeping struct {
	mu      sync.Mutex // one Prune at a time
	keep    atomic.Pointer[Retention]
	changed signal       // keep has changed, or many keys were added, since jobs were last removed
	keys    atomic.Int64 // how many were added since they were last pruned
}

func (k *keeping) begin(keep *Retention) {
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
func (k *keeping) rule() *Retention { return k.keep.Load() }

func (k *keeping) change(keep *Retention) {
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
func (d *Driver) Prune(ctx context.Context, keep Retention, dry bool) (api.Pruned, error) {
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
	p := keep.choose(ended, d.now(), d.config.output().Size)
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
func (d *Driver) Retain(keep Retention) error {
	d.keeping.change(&keep)
	return d.do(context.Background(), func() { d.events.Bound(keep.ofSegment()) })
}

// choose returns the jobs to remove. ended are the ended jobs, the last first; size returns the bytes of a job's
// output.
func (keep *Retention) choose(ended []store.Ended, now timeline.Time, size func(cluster.JobID) int64) api.Pruned {
	p := api.Pruned{Jobs: []cluster.JobID{}}
	measured := keep.Output > 0 || keep.UserOutput > 0
	all, users := make([]past, len(ended)), map[uint32]past{}
	var counted []*past // by the limits of all users together
	for i, j := range ended {
		this := past{jobs: users[j.UID].jobs + 1, output: users[j.UID].output}
		if measured {
			this.bytes = size(j.ID)
			this.output += this.bytes
		}
		this.beyond = keep.UserJobs > 0 && this.jobs > keep.UserJobs || keep.UserOutput > 0 &&
			this.output > int64(keep.UserOutput)
		users[j.UID], all[i] = this, this
		if !this.beyond {
			counted = append(counted, &all[i])
		}
	}
	keep.level(counted)
	for i, j := range ended {
		this, age := &all[i], now.Sub(j.At)
		if !this.beyond && age < keep.For || i < keep.Newest || age < justEnded {
			continue
		}
		if !measured {
			this.bytes = size(j.ID)
		}
		p.Jobs = append(p.Jobs, j.ID)
		p.OutputBytes += this.bytes
	}
	slices.Sort(p.Jobs)
	return p
}

// past is an ended job: the bytes of its output, how many jobs and bytes of output its user has with it and those
// that ended later, and whether it is beyond a limit.
type past struct {
	bytes, output int64
	jobs          int
	beyond        bool
}

// level says which jobs, the last first, are beyond the limits of all users together: as many as necessary, each the
// oldest of the user who then has the most.
func (keep *Retention) level(all []*past) {
	within := func(limit int64, of func(*past) (most, more int64)) {
		if limit == 0 {
			return
		}
		sorted, sum := slices.Clone(all), int64(0)
		slices.SortStableFunc(sorted, func(a, b *past) int {
			x, _ := of(a)
			y, _ := of(b)
			return cmp.Compare(x, y)
		})
		for _, this := range sorted {
			_, more := of(this)
			sum += more
			this.beyond = this.beyond || sum > limit
		}
	}
	within(int64(keep.Jobs), func(j *past) (most, more int64) { return int64(j.jobs), 1 })
	within(int64(keep.Output), func(j *past) (most, more int64) { return j.output, j.bytes })
}

// ofSegment returns the largest size of a segment, bytes: half of what the run may have, so that there is always
// another one; 0 is no limit. A segment usually has half of that, and more if orders are under way all the time. The
// Retention may be nil.
func (keep *Retention) ofSegment() int64 { return (keep.ofEvents() + 1) / 2 }

// ofEvents returns the largest size of one run's event log, bytes; 0 is no limit. The Retention may be nil.
func (keep *Retention) ofEvents() int64 {
	if keep == nil {
		return 0
	}
	return int64(keep.Events / 2)
}

// runsKept is the largest number of earlier runs whose event logs stay.
const runsKept = 100

// pruneEvents removes event logs of earlier runs according to the retention, the oldest first.
func (d *Driver) pruneEvents(ctx context.Context, keep *Retention) error {
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
		if i > runsKept || keep.Events > 0 && size > keep.ofEvents() || age >= keep.For {
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
