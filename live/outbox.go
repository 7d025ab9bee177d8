package live

import (
	"context"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/store"
)

// outbox is what the steps since the last flush led to. It is recorded first, and only then acted on.
type outbox struct {
	jobs   map[cluster.JobID]store.JobState
	tasks  map[cluster.ContainerID]store.Task
	orders []cluster.Order
	forget []cluster.ContainerID
	ended  []cluster.JobID // to be dropped once their end is stored
}

func (o *outbox) putJob(j *job) {
	if o.jobs == nil {
		o.jobs = map[cluster.JobID]store.JobState{}
	}
	o.jobs[j.ID] = j.State
}

func (o *outbox) putRun(r *run) {
	if o.tasks == nil {
		o.tasks = map[cluster.ContainerID]store.Task{}
	}
	o.tasks[r.Container] = r.Task
}

// flush records what has happened and been decided, and then acts on it: event log, store, Backend. If something cannot
// be recorded nothing is acted on, except that what is to be killed is killed: that frees what may be missing. It is
// tried again until it succeeds; meanwhile everything stays in memory and no new jobs are taken.
func (d *Driver) flush() {
	if err := d.recordAll(); err != nil {
		if d.trouble == nil {
			d.log.Error("cannot record what happened; trying again until it succeeds", "error", err)
		}
		d.trouble = err
		kept := d.out.orders[:0]
		waiting := map[cluster.ContainerID]bool{} // to be started; a Kill must not overtake its Start
		for _, o := range d.out.orders {
			if o.Kind == cluster.Kill && !waiting[o.Container] {
				d.backend.Apply([]cluster.Order{o})
				continue
			}
			waiting[o.Container] = true
			kept = append(kept, o)
		}
		d.out.orders = kept
		return
	}
	if d.trouble != nil {
		d.log.Info("everything is recorded again")
		d.trouble = nil
	}
	out := d.out
	d.out = outbox{}
	if len(out.orders) > 0 {
		d.backend.Apply(out.orders)
	}
	d.forget(out.forget)
	for _, id := range out.ended {
		delete(d.jobs, id)
	}
}

func (d *Driver) recordAll() error {
	defer d.rest()()
	if err := d.events.flush(); err != nil {
		return err
	}
	batch := store.Batch{Jobs: d.out.jobs}
	for _, t := range d.out.tasks {
		batch.Tasks = append(batch.Tasks, t)
	}
	return d.store.Write(context.Background(), batch)
}

// forget has the Backend forget containers, which is work on the disk.
func (d *Driver) forget(ids []cluster.ContainerID) {
	defer d.rest()()
	for _, id := range ids {
		d.backend.Forget(id)
	}
}
