package sim

import "github.com/bellows-rm/bellows/core/cluster"

// direct is a cluster without heartbeats: every end is reported at once, and tasks are launched Config.LaunchDelay
// after their start decisions.
type direct struct{ *run }

func (d *direct) begin() {}

func (d *direct) arrive(j *job) {
	d.stepOne(cluster.Event{Kind: cluster.JobSubmitted, NewJob: d.submission(j)})
}

func (d *direct) started(t *task) {
	d.agenda.push(d.now.Add(d.config.LaunchDelay+d.order(t)), launched, t.index)
}

func (d *direct) gaveBack(cluster.NodeID) {}

func (d *direct) handle(i item) {
	if t := d.tasks.get(i.who); i.what == launched && !t.ended() && d.mayLaunch(t) {
		d.launch(t)
	}
}

func (d *direct) finished(t *task) {
	j, how := t.job, t.result.Outcome
	d.stepTask(cluster.TaskEnded, t)
	switch {
	case d.err != nil:
	case how != cluster.Succeeded || j.failing != "":
		d.afterLoss(t, how)
	case j.unended == 0:
		d.endJob(j)
	}
	if how == cluster.Succeeded && d.forgets() {
		d.tasks.forget(t)
	}
}

func (d *direct) left(cluster.NodeID)   {}
func (d *direct) lost(*task)            {}
func (d *direct) joined(cluster.NodeID) {}
func (d *direct) freed()                {}

func (d *direct) limitsChanged(n cluster.NodeID) {
	d.stepOne(d.held(n))
}

func (d *direct) reported(reports []report) {
	d.events = d.events[:0]
	for i := range reports {
		d.events = append(d.events, reports[i].event)
	}
	d.step(d.events)
}
