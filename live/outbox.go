package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/launch"
	"github.com/bellows-rm/bellows/live/store"
)

// outbox is the result of the steps since the last flush. It is recorded first, and only then acted on.
type outbox struct {
	jobs   map[cluster.JobID]store.JobState
	tasks  map[cluster.ContainerID]store.Task
	pauses map[cluster.JobID][]store.Pause
	newer  map[cluster.JobID]cluster.Job // with revised forecasts
	gone   []cluster.ContainerID         // containers whose records are to be removed
	bare   []bare                        // of orders to start something
	after  acts
}

// acts are what is done once the rest of an outbox is recorded.
type acts struct {
	orders []cluster.Order
	forget []cluster.ContainerID
	ended  []cluster.JobID // to be dropped
	short  bool            // a run ended for want of memory
}

// take returns what is to be done, and empties the outbox, of which all is recorded.
func (o *outbox) take() acts {
	after := o.after
	*o = outbox{}
	return after
}

// batch is what is to be recorded, with what containers used that are to be forgotten.
func (o *outbox) batch(used func([]cluster.ContainerID) []store.Usage) store.Batch {
	return store.Batch{Jobs: o.jobs, Pauses: o.pauses, Revised: o.newer, Gone: o.gone, Usage: used(o.after.forget),
		Tasks: slices.Collect(maps.Values(o.tasks))}
}

func (o *outbox) order(all ...cluster.Order)    { o.after.orders = append(o.after.orders, all...) }
func (o *outbox) forget(id cluster.ContainerID) { o.after.forget = append(o.after.forget, id) }
func (o *outbox) end(id cluster.JobID)          { o.after.ended = append(o.after.ended, id) }
func (o *outbox) fallShort(is bool)             { o.after.short = o.after.short || is }

// early has orders carried out before the rest is recorded; those that some returns are left.
func (o *outbox) early(some func([]cluster.Order) []cluster.Order) {
	o.after.orders = some(o.after.orders)
}

// withdraw drops the order to start a container if that waits, as it does on a full disk. It returns the decision.
func (o *outbox) withdraw(id cluster.ContainerID) (start cluster.DecisionID, ok bool) {
	at := slices.IndexFunc(o.after.orders, func(o cluster.Order) bool {
		return o.Kind == cluster.Start && o.Container == id
	})
	if at < 0 {
		return 0, false
	}
	was := o.after.orders[at]
	o.after.orders = slices.Delete(o.after.orders, at, at+1)
	o.bare = slices.DeleteFunc(o.bare, func(b bare) bool { return b.Launch == was.Launch })
	return was.ID, true
}

// putBare adds what a run is to start.
func (o *outbox) putBare(r *run, b *launch.Bare) { o.bare = append(o.bare, bare{run: r, Bare: b}) }

func (o *outbox) putJob(j *job)    { put(&o.jobs, j.ID, j.State) }
func (o *outbox) putPauses(j *job) { put(&o.pauses, j.ID, j.Pauses) }
func (o *outbox) putRun(r *run)    { put(&o.tasks, r.Container, r.Task) }
func (o *outbox) revise(j *job)    { put(&o.newer, j.ID, j.Request.Job) }

// put puts a value into a map, which it makes if there is none.
func put[K comparable, V any](into *map[K]V, key K, value V) {
	if *into == nil {
		*into = map[K]V{}
	}
	(*into)[key] = value
}

// kill orders the end of a container.
func (o *outbox) kill(id cluster.ContainerID) {
	o.order(cluster.Order{Decision: cluster.Decision{Kind: cluster.Kill, Task: id.Task}, Container: id})
}

func (o *outbox) dropRun(r *run) {
	delete(o.tasks, r.Container)
	o.gone = append(o.gone, r.Container)
}

// flush records events and decisions, publishes them, and then acts on them: event log and store, board, Backend. If
// recording fails, nothing is acted on except kills, which may free space. Recording is tried again until it
// succeeds; meanwhile everything stays in memory and no new jobs are accepted. On a full disk there is still reserved
// space: ends are recorded there, and nothing is started.
func (d *Driver) flush() {
	d.endShort()
	if err := d.recordAll(); err != nil {
		if d.health.trouble == nil {
			d.log.Error("cannot record events, trying again", "error", err)
		}
		d.health.trouble = err
		d.publish()
		d.counts.Failure()
		d.out.early(d.applyKills)
		return
	}
	if d.health.trouble != nil {
		d.log.Info("events are recorded again")
		d.health.trouble = nil
	}
	out := d.out.take()
	for _, id := range out.ended {
		d.touch(id)
		if j := d.jobs[id]; j != nil {
			d.gate.Less(&j.Job)
		}
		delete(d.jobs, id)
	}
	d.publish()
	if d.health.short != nil {
		d.out.order(d.applyKills(out.orders)...)
	} else {
		d.apply(out.orders)
	}
	d.forget(out.forget)
	switch {
	case out.short:
		d.learner.FellShort()
	case len(out.ended) > 0:
		d.learner.JobsEnded()
	}
}

// applyKills sends the kills to the Backend and returns the other orders.
func (d *Driver) applyKills(orders []cluster.Order) (rest []cluster.Order) {
	// containers to be started; a Kill must not overtake its Start, but any other order
	waiting := map[cluster.ContainerID]bool{}
	for _, o := range orders {
		if o.Kind == cluster.Kill && !waiting[o.Container] {
			d.backend.Apply([]cluster.Order{o})
			continue
		}
		waiting[o.Container] = waiting[o.Container] || o.Kind == cluster.Start
		rest = append(rest, o)
	}
	return rest
}

// runShort starts nothing more until there is space on the disk.
func (d *Driver) runShort() {
	if d.health.short != nil {
		return
	}
	d.health.short = fmt.Errorf(
		"state directory %s: %w; until then no task starts, and ends of tasks are recorded in reserved space, without "+
			"what they used over time", d.config.Dir, store.ErrFull)
	d.log.Error("disk full: no task is started", "error", d.health.short)
}

// endShort lets tasks start again if there is space on the disk. A run that could not be recorded when it began is
// recorded first.
func (d *Driver) endShort() {
	if d.health.short == nil || store.IsFull(d.store.SetAside()) {
		return
	}
	if !d.events.HasFile() && d.beginRun(context.Background()) != nil {
		return
	}
	d.log.Info("disk has space again: tasks are started again")
	d.health.short = nil
}

// bare is what is to be started without its environment yet.
type bare struct {
	run *run
	*launch.Bare
}

// dress reads the environments of what is to be started. Until then they are not in memory: they may be large, and
// many jobs may wait.
func (o *outbox) dress(from *store.Store) error {
	var job cluster.JobID
	var env []string
	for len(o.bare) > 0 {
		b := o.bare[0]
		if of := b.run.Container.Task.Job; of != job {
			var err error
			if env, err = from.Environment(context.Background(), of); err != nil {
				return fmt.Errorf("read the environment of job %d: %w", of, err)
			}
			job = of
		}
		if words := b.Dress(env); words != "" {
			b.run.Why += "; " + words
			o.putRun(b.run)
		}
		o.bare = o.bare[1:]
	}
	return nil
}

func (d *Driver) recordAll() error {
	defer d.watchdog.Rest()()
	if err := d.out.dress(d.store); err != nil {
		return err
	}
	if err := d.events.There(); err != nil {
		return err
	}
	if d.health.short == nil { // otherwise lines wait: what is reserved is for ends
		switch err := d.events.Flush(); {
		case store.IsFull(err):
			d.runShort()
		case err != nil:
			return err
		}
	}
	batch := d.out.batch(d.measured)
	if batch.Empty() {
		return nil
	}
	begun := time.Now()
	err := d.store.Write(context.Background(), batch)
	if store.IsFull(err) {
		d.runShort()
		batch.Usage = nil
		for hasEnds(&batch) && d.store.Give(err) { // until there is enough
			err = d.store.Write(context.Background(), batch)
		}
	}
	d.counts.Write(time.Since(begun))
	return err
}

// hasEnds reports whether something has ended, or is to end, in a batch.
func hasEnds(b *store.Batch) bool {
	for _, j := range b.Jobs {
		if j.Ended || j.Cancelled {
			return true
		}
	}
	return slices.ContainsFunc(b.Tasks, func(t store.Task) bool { return t.Outcome != 0 })
}

// forget makes the Backend forget containers, which writes to the disk.
func (d *Driver) forget(ids []cluster.ContainerID) {
	defer d.watchdog.Rest()()
	for _, id := range ids {
		d.backend.Forget(id)
	}
}
