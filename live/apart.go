package live

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/store"
)

// apart are the containers that run although the store does not know them, because it was lost, or is an earlier one:
// their jobs were accepted once. They run on with the memory that they have, which the Backend gives to no other
// container. The engine does not know them.
type apart map[cluster.ContainerID]bool

// err says which jobs have containers apart; nil if there are none. dir is the state directory.
func (a apart) err(dir string) error {
	if len(a) == 0 {
		return nil
	}
	of := map[cluster.JobID]bool{}
	for id := range a {
		of[id.Task.Job] = true
	}
	return fmt.Errorf("containers of jobs %s, which the store does not know, run on, and their records are in %s: "+
		"operators can end them by `bellows kill`", cluster.JobRanges(slices.Sorted(maps.Keys(of))),
		filepath.Join(dir, "containers"))
}

// takeIn makes a container that was found, and that the store does not know, the newest run of a task, nil if that
// cannot be: the store has the job, and it has not ended, but is an earlier one.
func (d *Driver) takeIn(j *job, e *cluster.Event) *run {
	if j == nil || !j.has(e.Task) || e.Kind != cluster.TaskAdopted && e.Kind != cluster.TaskEnded {
		return nil
	}
	if last := j.newest(e.Task); last != nil && last.Container.Run > e.Run {
		return nil
	} else if last != nil && !last.ended() {
		d.close(j, last, &cluster.Event{Kind: cluster.TaskEnded, Outcome: cluster.Lost,
			Detail: "the store does not know how it ended"})
	}
	r := &run{Task: store.Task{Container: cluster.ContainerID{Task: e.Task, Run: e.Run}, UID: j.Request.As.UID,
		Node: d.nodeName(e.Node), Grant: e.Grant, Why: "it was found running, and the store did not know it",
		Booked: cmp.Or(e.Launched, d.now())}}
	d.log.Warn("a container that the store does not know goes on as a run of its job", "job", j.ID, "container",
		r.Container)
	j.add(r)
	d.out.putRun(r)
	return r
}

// knows reports whether the store has the run of a container.
func (d *Driver) knows(id cluster.ContainerID) bool {
	runs, err := d.store.Tasks(context.Background(), id.Task.Job)
	return err == nil && slices.ContainsFunc(runs, func(t store.Task) bool { return t.Container == id })
}

// setApart sets a running container apart, unless the store has its run, which has ended then.
func (d *Driver) setApart(e *cluster.Event) bool {
	id := cluster.ContainerID{Task: e.Task, Run: e.Run}
	if d.knows(id) {
		return false
	}
	d.log.Warn("a container of a job that the store does not know runs on", "container", id)
	d.inventory.apart[id] = true
	return true
}

// forgetUnknown drops what is left of a container that has ended, whose end is recorded already, or that is unknown.
func (d *Driver) forgetUnknown(e *cluster.Event) {
	id := cluster.ContainerID{Task: e.Task, Run: e.Run}
	if e.Kind == cluster.TaskEnded && (d.inventory.apart[id] || !d.inventory.over() && !d.knows(id)) {
		d.log.Warn("a container of a job that the store does not know has ended", "container", id, "outcome", e.Outcome,
			"reason", e.Detail)
	}
	delete(d.inventory.apart, id)
	d.out.forget(id)
}

// killApart orders the end of the containers apart of a job, of all if it is 0, and returns how many these are.
func (d *Driver) killApart(job cluster.JobID) (n int) {
	for id := range d.inventory.apart {
		if job == 0 || id.Task.Job == job {
			d.out.kill(id)
			n++
		}
	}
	return n
}

// cancelApart is Cancel for a job that the store does not know, but that has containers.
func (d *Driver) cancelApart(ctx context.Context, by cluster.Credentials, id cluster.JobID) (killed bool, err error) {
	if err := d.awaitInventory(ctx); err != nil {
		return false, err
	}
	err = d.do(ctx, func() {
		if killed = d.killApart(id) > 0; killed {
			d.log.Info("containers of a job that the store does not know are killed", "job", id, "by_uid", by.UID)
			d.flush()
		}
	})
	return killed, err
}

// awaitApart waits until no container is apart.
func (d *Driver) awaitApart(ctx context.Context) error {
	for {
		var left int
		if err := d.look(ctx, func() { left = len(d.inventory.apart) }); err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
