package live

import (
	"context"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/admission"
	"github.com/bellows-rm/bellows/live/store"
)

// load reads jobs that have not ended from the store, and who has submitted jobs in the last minute.
func (d *Driver) load(ctx context.Context) error {
	now := d.now()
	recent, err := d.store.SubmittedBetween(ctx, now.Add(-admission.Span), now)
	if err != nil {
		return err
	}
	d.gate.Begin(now, recent)
	jobs, err := d.store.OpenJobs(ctx)
	if err != nil {
		return err
	}
	tasks, err := d.store.OpenTasks(ctx)
	if err != nil {
		return err
	}
	for _, stored := range jobs {
		if stored.Request.Job.BringIntoBounds() {
			d.log.Warn("stored job exceeds bounds of this release, its values are set to the nearest bounds", "job", stored.ID)
		}
		j := newJob(stored)
		d.jobs[stored.ID] = j
		d.gate.More(&j.Job)
	}
	for _, t := range tasks {
		if j := d.jobs[t.Container.Task.Job]; j != nil {
			j.add(&run{Task: t})
		}
	}
	return nil
}

// recall reads the runs of a stored job.
func (d *Driver) recall(ctx context.Context, stored store.Job) (*job, error) {
	tasks, err := d.store.Tasks(ctx, stored.ID)
	if err != nil {
		return nil, err
	}
	j := newJob(stored)
	for _, t := range tasks {
		j.add(&run{Task: t})
	}
	return j, nil
}

// restore rebuilds the engine from the store and the inventory of the Backend, and begins to decide. The engine
// receives the events in an order in which they could have happened: the jobs, the ends of earlier runs of tasks
// (none of them ended a job, since another run followed), the running containers, the cancellations, the ends of the
// last runs.
func (d *Driver) restore() {
	d.makeRoom()
	if !d.gate.Rules().None() {
		d.tellQuotas()
	}
	for _, e := range d.inventory.all() {
		if e.Kind == cluster.NodeJoined {
			d.step(e)
		}
	}
	jobs, later := d.inOrder()
	for _, id := range jobs {
		d.admit(d.jobs[id])
	}
	adopted := d.match()
	for _, id := range jobs {
		d.retell(d.jobs[id], false)
	}
	for _, e := range adopted {
		d.step(e)
		if j, r := d.lookUp(&e); e.Kind != cluster.TaskAdopted {
			d.remember(j, r)
		}
	}
	for _, e := range d.inventory.all() {
		// only now, because it is beside running containers
		if e.Kind == cluster.NodeMemory || e.Kind == cluster.NodeLeftover {
			d.step(e)
		}
	}
	for _, id := range jobs {
		if j := d.jobs[id]; j.State.Cancelled {
			d.step(cluster.Event{Kind: cluster.JobCancelled, Job: id})
		}
	}
	for _, id := range jobs {
		d.retell(d.jobs[id], true)
	}
	d.logFound(adopted)
	d.inventory.end()
	d.step(cluster.Event{Kind: cluster.Synced})
	d.health.careful = false
	for _, id := range later {
		d.admit(d.jobs[id])
	}
	d.boundOpen()
	for _, id := range jobs {
		d.touch(id)
	}
	d.harvest(d.now())
	d.tellAll()
	d.inventory.passedOn()
}

// logFound logs how many containers of an earlier daemon continue, and of which jobs.
func (d *Driver) logFound(adopted []cluster.Event) {
	containers, jobs := 0, map[cluster.JobID]bool{}
	for i := range adopted {
		if e := &adopted[i]; e.Kind == cluster.TaskAdopted {
			containers++
			jobs[e.Task.Job] = true
		}
	}
	if containers > 0 {
		d.log.Info("containers of an earlier daemon continue", "containers", containers, "jobs",
			cluster.JobRanges(slices.Sorted(maps.Keys(jobs))))
	}
}

// inOrder returns the jobs to submit to the engine before it begins to decide, and the jobs to submit later, one by
// one, because the engine may hang on one of them: see answer.
func (d *Driver) inOrder() (before, later []cluster.JobID) {
	for _, id := range d.openJobs() {
		switch j := d.jobs[id]; {
		case j.isAside():
		case d.health.careful && len(j.runs) == 0 && !j.State.Cancelled:
			later = append(later, id)
		default:
			before = append(before, id)
		}
	}
	return before, later
}

// match compares the inventory with the store. It returns the running containers, in the Backend's order. It records
// the ends of containers that ended meanwhile, kills those whose runs the store has as ended, and sets apart those
// that it does not know.
func (d *Driver) match() (adopted []cluster.Event) {
	found := map[cluster.ContainerID]bool{}
	for _, e := range d.inventory.all() {
		id := cluster.ContainerID{Task: e.Task, Run: e.Run}
		j, r := d.lookUp(&e)
		if r == nil {
			r = d.takeIn(j, &e)
		}
		switch e.Kind {
		case cluster.TaskAdopted:
			if r == nil && d.setApart(&e) {
				continue
			}
			if r == nil || r.ended() || r != j.newest(e.Task) {
				d.log.Warn("killing container whose run has ended", "container", id)
				d.out.kill(id)
				continue
			}
			found[id], r.launched = true, true
			if r.Started == 0 {
				r.Started = e.Launched
				d.out.putRun(r)
			}
			adopted = append(adopted, d.adopt(r, e)...)
		case cluster.TaskEnded, cluster.DecisionFailed:
			if r == nil || r.ended() {
				d.forgetUnknown(&e)
				continue
			}
			found[id] = true
			if e.Kind == cluster.DecisionFailed {
				e.Outcome = cluster.Lost
			}
			d.close(j, r, &e)
		}
	}
	for _, j := range d.jobs {
		for _, r := range j.alive() {
			if !found[r.Container] {
				// It was stored, but the order never arrived; or the Backend has lost its record.
				e := cluster.Event{Kind: cluster.DecisionFailed, Outcome: cluster.Lost,
					Detail: "bellows ended before it was started"}
				if r.Started != 0 {
					e.Kind, e.Detail = cluster.TaskEnded, "it had started, and nothing is known of how it ended"
				}
				d.close(j, r, &e)
			}
		}
	}
	return adopted
}

// retell reports to the engine how the last runs of a job's tasks ended, or the runs before the last.
func (d *Driver) retell(j *job, last bool) {
	for _, id := range j.tasks() {
		runs := j.runs[id]
		for i, r := range runs {
			if (i == len(runs)-1) != last || !r.ended() {
				continue
			}
			if _, here := d.engine.Snapshot().Job(j.ID); !here {
				return // The events so far have ended it.
			}
			d.outgrew(j, r)
			d.step(cluster.Event{Kind: cluster.TaskEnded, Task: id, Run: r.Container.Run, Outcome: j.outcome(r), Exit: r.Exit,
				Found: &cluster.Condition{Ended: r.Ended}})
		}
	}
}

// makeRoom raises the memory of each node to at least that of its running containers. The user may have made the node
// smaller; no container is killed for that. Of other resources a node may be granted more than it has.
func (d *Driver) makeRoom() {
	held := map[cluster.NodeID]resource.Amount{}
	for _, e := range d.inventory.all() {
		if _, r := d.lookUp(&e); e.Kind == cluster.TaskAdopted && r != nil && !r.ended() {
			held[e.Node] += e.Grant[resource.Memory] - e.Condition().Out
		}
	}
	for i, e := range d.inventory.all() {
		if e.Kind != cluster.NodeJoined || held[e.NewNode.ID] <= e.NewNode.Capacity[resource.Memory] {
			continue
		}
		node := *e.NewNode
		node.Capacity[resource.Memory] = held[node.ID]
		d.log.Warn("node runs more than its memory, which is raised until the next start", "node", node.Name,
			"memory", resource.FormatMemory(e.NewNode.Capacity[resource.Memory]), "held", resource.FormatMemory(held[node.ID]))
		d.inventory.all()[i].NewNode = &node
	}
}
