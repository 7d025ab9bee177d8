package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/live/admission"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/board"
	"github.com/bellows-rm/bellows/live/counts"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/live/learn"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/segments"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/live/watchdog"
)

// Driver runs an engine on a Backend. Its methods may be called from any goroutine.
type Driver struct {
	config  Config
	log     *slog.Logger
	backend Backend
	able    able
	store   *store.Store

	turns *drive.Turns

	readers  readers
	gate     *admission.Gate
	keeping  *retention.Keeper
	beside   beside
	watchdog *watchdog.Watchdog
	learner  *learn.Learner
	board    *board.Bulletin
	pressed  signal // the Backend has reported a pressure, or its end, that Pressure has not seen
	counts   counts.Counters

	// Only the loop uses the fields below.
	engine    *engine.Engine
	events    *segments.Log          // some of its methods may be called from any goroutine
	jobs      map[cluster.JobID]*job // jobs that have not ended, or whose end is not stored yet
	inventory *inventory
	agenda    drive.Schedule
	out       outbox
	health    health
	changes   changes
	pauses    map[cluster.NodeID]*pause // nodes that could not start a container
}

// Start opens the event log, rebuilds the engine from the store and begins. It returns before the inventory is
// complete.
func Start(c Config) (*Driver, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := CheckPolicy(c.Policy); err != nil {
		return nil, err
	}
	d := &Driver{config: c, log: c.Log, backend: c.Backend, store: c.Store, agenda: drive.NewSchedule(),
		able:  able{Capabilities: c.Backend.Capabilities()},
		turns: drive.NewTurns(), readers: newReaders(), gate: admission.New(c.Quotas), board: board.NewBulletin(),
		pressed: newSignal(),
		jobs:    map[cluster.JobID]*job{}, inventory: newInventory(), changes: newChanges(),
		pauses: map[cluster.NodeID]*pause{}}
	d.learner = learn.New(c.Store, c.Log, d.now, waitingJobs{d})
	d.keeping = retention.Begin(retention.Kept{Store: c.Store, Output: c.output(), Log: c.Log, Now: d.now,
		Learned: d.learner.CaughtUp(), Removed: func(ids []cluster.JobID) { d.readers.Removed(ids) }}, c.Keep)
	d.engine = d.config.newEngine()
	ctx := context.Background()
	first, err := d.newSegment(d.engine, 0, nil)
	if err != nil {
		return nil, err
	}
	d.events = segments.New(c.Dir, c.Log, first)
	d.keeping.Events = d.events
	switch err := d.beginRun(ctx); {
	case store.IsFull(err): // The reserved space is for ends: what a start writes waits.
		d.runShort()
	case err != nil:
		return nil, err
	}
	if err := d.load(ctx); err != nil {
		return nil, errors.Join(err, d.events.Close())
	}
	if err := d.beginBoard(ctx); err != nil {
		return nil, errors.Join(err, d.events.Close())
	}
	dog, left, ok, err := watchdog.Open(c.Dir, d.log)
	if err != nil {
		return nil, errors.Join(err, d.events.Close())
	}
	d.watchdog = dog
	if ok {
		d.answer(left)
	}
	switch err := c.Store.SetAside(); {
	case errors.Is(err, store.ErrFull):
		d.runShort()
	case err != nil:
		d.log.Warn("no disk space is reserved: on a full disk the ends of tasks cannot be recorded", "error", err)
	}
	d.readers.begin(d.agenda.Begun())
	d.tellAll()
	d.publish()
	go d.loop()
	d.beside.begin(d.keeping.Run, d.learner.Run, d.follow, d.board.Announce, d.weigh,
		func(context.Context) { d.watchdog.Watch(c.Patience, d.turns.Ended()) })
	return d, nil
}

// beginRun records that a run of the daemon has begun, and begins its event log. If that fails, it can be called again.
func (d *Driver) beginRun(ctx context.Context) error {
	c := &d.config
	run := d.events.Run()
	if run == 0 {
		id, err := d.store.AddRun(ctx, store.Run{UID: c.UID, Policy: c.Policy.Name(), Settings: c.Settings, Started: d.now()})
		if err != nil {
			return err
		}
		run = id
	}
	return d.events.Begin(run)
}

// awaitInventory waits until the Backend has sent its inventory.
func (d *Driver) awaitInventory(ctx context.Context) error {
	return await(ctx, d, d.inventory.complete())
}

// await waits until something comes from a channel, or it is closed. The error is that of ctx, or says that the Driver
// has stopped before.
func await[T any](ctx context.Context, d *Driver, from <-chan T) error {
	select {
	case <-from:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.turns.Ended():
		return errStopped
	}
}

// pass passes something on. The error is that of ctx, or says that the Driver has stopped before, or hangs.
func pass[T any](ctx context.Context, d *Driver, to chan<- T, what T) error {
	select {
	case to <- what:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.turns.Ended():
		return errStopped
	case <-d.watchdog.Alarm():
		return d.silent()
	}
}

// Shutdown ends the daemon's work for good. If jobs have not ended, the error is a Conflict unless kill is set. With
// kill, Shutdown cancels all jobs and waits until the last has ended. Afterwards the Driver is closed.
func (d *Driver) Shutdown(ctx context.Context, kill bool) error {
	if kill {
		var all []cluster.JobID
		if err := d.do(ctx, func() { all = d.openJobs() }); err != nil {
			return err
		}
		if _, err := d.giveUp(ctx, all...); err != nil {
			return err
		}
	}
	if err := d.awaitInventory(ctx); err != nil {
		return err
	}
	leave, err := d.enter(ctx) // so that the Driver has all jobs that are stored
	if err != nil {
		return err
	}
	var open []cluster.JobID
	var unknown error
	err = d.do(ctx, func() {
		open, unknown = d.openJobs(), d.inventory.apart.err(d.config.Dir)
		if (len(open) > 0 || unknown != nil) && !kill {
			return
		}
		d.health.draining = true
		d.killApart(0)
		// Jobs that wait come first, so that none of them starts when running ones end.
		slices.SortStableFunc(open, func(a, b cluster.JobID) int {
			return cmp.Compare(len(d.jobs[a].runs), len(d.jobs[b].runs))
		})
	})
	leave()
	if err != nil {
		return err
	}
	if len(open) > 0 && !kill {
		return api.Errorf(api.Conflict, "%s not ended: wait for the end, or have them killed", have(open))
	}
	if unknown != nil && !kill {
		return api.Errorf(api.Conflict, "%w", unknown)
	}
	for some := range slices.Chunk(open, cancelledAtOnce) {
		if err := d.cancelAll(context.WithoutCancel(ctx), some); err != nil {
			return err
		}
	}
	err = d.awaitEnds(ctx, open)
	if err == nil {
		err = d.awaitApart(ctx)
	}
	if err != nil {
		// The shutdown failed; the daemon continues.
		_ = d.do(context.WithoutCancel(ctx), func() { d.health.draining = false })
		return err
	}
	return d.Close()
}

// cancelledAtOnce is how many jobs are cancelled between two looks of the loop at other work. A job takes about a
// millisecond while 10,000 wait.
const cancelledAtOnce = 64

// cancelAll cancels those of some jobs that have not ended.
func (d *Driver) cancelAll(ctx context.Context, some []cluster.JobID) error {
	return d.do(ctx, func() {
		for _, id := range some {
			if j := d.jobs[id]; j != nil {
				d.cancel(j)
			}
		}
	})
}

// awaitEnds waits until jobs have ended. It gives up if nothing can be recorded for unrecordedWait: the programs have
// been killed by then, and the next Start finds out how they ended.
func (d *Driver) awaitEnds(ctx context.Context, jobs []cluster.JobID) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.beside.Go(func() {
		bad := time.Duration(0)
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(unrecordedWait / 5):
			}
			var trouble error
			if d.look(ctx, func() { trouble = d.health.trouble }) != nil || trouble == nil {
				bad = 0
			} else if bad += unrecordedWait / 5; bad >= unrecordedWait {
				d.log.Error("bellows ends without recording how jobs ended; the next start reconstructs it", "error", trouble)
				cancel(errUnrecorded)
			}
		}
	})
	for _, id := range jobs {
		if _, err := d.Wait(ctx, id); err != nil {
			if errors.Is(context.Cause(ctx), errUnrecorded) {
				return nil
			}
			return err
		}
	}
	return nil
}

// unrecordedWait is how long Shutdown waits for a disk that does not record anything.
const unrecordedWait = 5 * time.Second

var errUnrecorded = errors.New("nothing can be recorded")

// have returns "job 3 has" or "jobs 3, 4 and 12 more have".
func have(ids []cluster.JobID) string {
	if len(ids) == 1 {
		return fmt.Sprintf("job %d has", ids[0])
	}
	const most = 5
	text := "jobs"
	for i, id := range ids[:min(len(ids), most)] {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d", id)
	}
	if more := len(ids) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " have"
}

// Close stops deciding and leaves every container as it is: the next Start finds the containers. A signal to the daemon
// should lead to Close. If the loop hangs, Close returns an error, and the loop lasts until the process ends.
func (d *Driver) Close() error {
	select {
	case d.turns.Stop() <- struct{}{}:
	case <-d.turns.Ended():
	case <-d.watchdog.Alarm():
		return d.silent()
	}
	<-d.turns.Ended()
	d.beside.end()
	return nil
}

// Done is closed when the Driver has stopped, by Shutdown or Close.
func (d *Driver) Done() <-chan struct{} { return d.turns.Ended() }

// silent returns the error for callers of an engine that hangs.
func (d *Driver) silent() error {
	silent, _ := d.watchdog.Hangs()
	return api.Errorf(api.Internal,
		"the engine has not answered for %v; the containers continue, and bellows status says more",
		silent.Round(time.Second))
}

// Dead is closed when the engine has hung for longer than Patience.Dead. The process should then end without Close,
// which returns an error then: containers continue, and the next Start sets aside the job that the engine hangs on.
func (d *Driver) Dead() <-chan struct{} { return d.watchdog.Dead() }

// EventLog returns the path of the file in which the steps of this run are recorded now.
func (d *Driver) EventLog() string { return d.events.EventLog() }
