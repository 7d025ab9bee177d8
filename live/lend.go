package live

import (
	"context"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
)

// Lend notes that the programs of jobs have nothing to do, so that their running tasks lend their cores, or that they
// have something to do again. Nothing changes for their containers: a program that has something to do again runs at
// once, by its weight. It lasts until the next call about the job, or until the Driver ends. Jobs that run no task
// are passed over.
func (d *Driver) Lend(ctx context.Context, ids []cluster.JobID, idle bool) error {
	if err := d.awaitInventory(ctx); err != nil {
		return err
	}
	return d.do(ctx, func() {
		for _, id := range ids {
			j := d.jobs[id]
			if j == nil || j.state == nil || d.health.broken != nil {
				continue
			}
			for _, task := range idlers(j.state, idle) {
				d.lend(j, task, idle)
			}
		}
		d.flush()
	})
}

// lend notifies the engine that the programs of a running task have nothing to do, or that they have.
func (d *Driver) lend(j *job, task cluster.TaskID, idle bool) {
	e := cluster.Event{Kind: cluster.TaskIdle, Task: task}
	e.SetCondition(cluster.Condition{Idle: idle})
	d.log.Debug("container lends its cores, or takes them back", "job", task.Job, "task", task, "idle", idle)
	d.step(e)
	d.tell(j)
}

// idlers returns the running tasks of j for which it is news that they are idle, or are not.
func idlers(j *book.JobState, idle bool) (all []cluster.TaskID) {
	for _, t := range j.Tasks {
		if t.Running && t.Idle != idle {
			all = append(all, t.ID)
		}
	}
	return all
}
