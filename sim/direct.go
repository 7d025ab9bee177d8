package sim

import "github.com/bellows-rm/bellows/cluster"

// direct is a cluster without heartbeats: every end is known at once, and tasks are launched as they are started, after
// Config.LaunchDelay.
type direct struct{ *run }

func (d *direct) begin() {}

func (d *direct) arrive(j *job) {
	d.stepOne(cluster.Event{Kind: cluster.JobSubmitted, NewJob: &j.Job.Job})
}

func (d *direct) started(t *task) {
	d.agenda.push(d.now.Add(d.config.LaunchDelay), launched, t.index)
}

func (d *direct) gaveBack(cluster.NodeID) {}

func (d *direct) handle(i item) {
	if i.what == launched {
		d.launch(d.tasks[i.who])
	}
}

func (d *direct) finished(t *task) {
	d.keep(t)
	j := t.job
	d.stepOne(cluster.Event{Kind: cluster.TaskEnded, Task: t.id, Node: t.node, Outcome: cluster.Succeeded})
	if j.unended == 0 {
		d.endJob(j)
	}
}
