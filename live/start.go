package live

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/live/launch"
	"github.com/bellows-rm/bellows/live/store"
)

// take handles a decision: it becomes an order, a timer, or only a note for explanations.
func (d *Driver) take(now timeline.Time, decision *cluster.Decision) {
	if decision.Kind == cluster.Wake {
		d.agenda.Wake(decision.At)
		return
	}
	if decision.Kind == cluster.Ask {
		d.ask(decision)
		return
	}
	j, ok := d.jobs[decision.Task.Job]
	if !ok {
		return // A reservation of a job that has just ended.
	}
	j.note(now, decision)
	switch decision.Kind {
	case cluster.Start:
		d.start(now, j, decision)
	case cluster.Kill:
		d.kill(j, decision)
	default:
		if f, sets := decision.Kind.Sets(); sets {
			d.want(j, decision, f)
		}
	}
	if r := j.newest(decision.Task); r != nil && r.ended() {
		j.superseded(decision.Task) // The engine is yet to learn that it has ended.
	}
	d.touch(j.ID)
}

// start makes a run of a task and the order to start it.
func (d *Driver) start(now timeline.Time, j *job, decision *cluster.Decision) {
	id := cluster.ContainerID{Task: decision.Task, Run: 1}
	if r := j.newest(decision.Task); r != nil {
		id.Run = r.Container.Run + 1
		if r.refused { // On a machine that fails for a month, only the newest of these runs is kept.
			j.drop(id.Task)
			d.out.dropRun(r)
		}
	}
	for d.config.output().Has(id) { // before the store was replaced by an earlier one
		id.Run++
	}
	r := &run{Task: store.Task{Container: id, UID: j.Request.As.UID, Node: d.nodeName(decision.Node),
		Grant: decision.Grant, Why: decision.Reason.Words(clock), Booked: now}}
	if words := j.moreMemory(id.Task, decision.Grant[resource.Memory]); words != "" {
		r.Why += "; " + words
	}
	j.add(r)
	d.out.putRun(r)
	launch, err := d.launch(j, r, decision)
	if err != nil {
		e := cluster.Event{Kind: cluster.TaskEnded, Task: id.Task, Run: id.Run, Outcome: cluster.Failed, Detail: err.Error()}
		d.close(j, r, &e)
		d.agenda.Soon(e)
		return
	}
	d.out.order(cluster.Order{Decision: *decision, Container: id, Launch: launch})
}

func (d *Driver) nodeName(id cluster.NodeID) string {
	if nodes := d.engine.Snapshot().Nodes; int(id) < len(nodes) {
		return nodes[id].Name
	}
	return ""
}

// launch sets what runs in the container of r.
func (d *Driver) launch(j *job, r *run, start *cluster.Decision) (*cluster.Launch, error) {
	b, err := launch.Of(&j.Request, r.Container, start)
	if err != nil {
		return nil, err
	}
	if d.able.Files == "" {
		out := d.config.output().Path(r.Container)
		b.Stdout, b.Stderr = out+".out", out+".err"
	}
	if b.Reserved != "" {
		r.Why += b.Reserved
		d.out.putRun(r)
	}
	d.out.putBare(r, b)
	return b.Launch, nil
}

// kill makes the order to end a task.
func (d *Driver) kill(j *job, decision *cluster.Decision) {
	r := j.newest(decision.Task)
	if r == nil {
		return
	}
	r.killing, r.preempts = true, decision.Preempt
	d.log.Info("killing container", "job", j.ID, "container", r.Container, "preempt", decision.Preempt, "reason",
		decision.Reason.Words(clock))
	if r.ended() {
		return // The engine is yet to learn that.
	}
	if start, ok := d.out.withdraw(r.Container); ok {
		e := cluster.Event{Kind: cluster.DecisionFailed, Task: r.Container.Task, Run: r.Container.Run, Decision: start,
			Outcome: cluster.Lost, Detail: "ended before it was started"}
		r.refused = true
		d.close(j, r, &e)
		d.agenda.Soon(e)
		return
	}
	d.out.order(cluster.Order{Decision: *decision, Container: r.Container})
}

// clock formats a time as a clock shows it.
func clock(t timeline.Time) string { return drive.OnClock(t) }

// instant converts t to a time.Time; the zero Time, which means never, becomes the zero time.Time.
func instant(t timeline.Time) time.Time {
	return drive.Instant(t)
}
