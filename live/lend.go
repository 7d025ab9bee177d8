package live

import (
	"context"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Lend notes that the programs of jobs have nothing to do, so that their running tasks lend their cores, or that they
// have something to do again. Nothing changes for their containers: a program that has something to do again runs at
// once, by its weight. It lasts until the next call about the job, or until the Driver ends. Jobs that run no task
// are passed over.
func (d *Driver) Lend(ctx context.Context, ids []cluster.JobID, idle bool) error {
	if err := d.awaitInventory(ctx); err != nil {
		return err
	}
	leaves := resource.Amount(0)
	if idle {
		leaves = book.Everything
	}
	return d.do(ctx, func() {
		for _, id := range ids {
			j := d.jobs[id]
			if j == nil || j.state == nil || d.health.broken != nil {
				continue
			}
			for _, task := range idlers(j.state, leaves) {
				d.lend(j, task, leaves)
			}
		}
		d.flush()
	})
}

// lend notifies the engine of how much CPU the programs of a running task leave, as in book.TaskState.
func (d *Driver) lend(j *job, task cluster.TaskID, leaves resource.Amount) {
	e, found := cluster.Event{Kind: cluster.TaskIdle, Task: task}, book.Leaving(leaves)
	e.SetCondition(found)
	d.log.Debug("container lends its cores, or takes them back", "job", task.Job, "task", task, "idle", found.Idle,
		"leaves_millicores", found.Leaves)
	d.step(e)
	d.tell(j)
}

// idlers returns the running tasks of j for which it is news how much they leave.
func idlers(j *book.JobState, leaves resource.Amount) (all []cluster.TaskID) {
	for _, t := range j.Tasks {
		if t.Running && t.Leaves != leaves {
			all = append(all, t.ID)
		}
	}
	return all
}
