package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// board is the daemon's state as Status shows it: a copy that the loop publishes after each piece of work and never changes
// afterwards. Therefore Status answers even while the loop hangs.
type board struct {
	at     time.Time
	status Status
}

// publish publishes a new board. It costs time proportional to the number of nodes and of jobs.
func (d *Driver) publish() {
	b := &board{at: time.Now(), status: Status{Policy: d.config.Policy.Name(), Deadlines: d.config.Policy.Traits().Deadlines, Since: d.begun, EventLog: d.logPath, Steps: d.engine.Steps()}}
	s := &b.status
	for _, n := range d.engine.Snapshot().Nodes {
		if !n.Gone {
			s.Nodes = append(s.Nodes, nodeOf(n))
		}
		if d.pauses[n.ID] != nil {
			s.Trouble = d.pausedWords(n.ID)
		}
	}
	for _, j := range d.jobs {
		if j.State.Ended {
			continue
		}
		pending, running := j.tally()
		s.Jobs++
		s.Pending += pending
		s.Running += running
	}
	for _, err := range []error{d.short, d.trouble, d.broken} {
		if err != nil {
			s.Trouble = err.Error()
		}
	}
	d.board.Store(b)
}

// Status returns the state of the daemon and its nodes. It does not use the engine: while the engine hangs, Status says
// so and shows the last state before the hang.
func (d *Driver) Status(context.Context) (Status, error) {
	select {
	case <-d.done:
		return Status{}, errStopped
	default:
	}
	b := d.board.Load()
	s := b.status
	s.Nodes = slices.Clone(s.Nodes) // All callers share the board.
	if silent, hangs := d.hangs(); hangs {
		s.AsOf = b.at
		said := fmt.Sprintf("the engine has not answered for %v; what follows is as of %s", silent.Round(time.Second), b.at.Format(time.TimeOnly))
		if s.Trouble != "" {
			said += "; " + s.Trouble
		}
		s.Trouble = said
	}
	if a, ok := d.backend.(Audited); ok && s.Trouble == "" && a.Mended() > 0 {
		s.Trouble = fmt.Sprintf("the memory manager's books were wrong about %d containers, and were mended; the log names them", a.Mended())
	}
	if c, ok := d.backend.(Crowded); ok {
		s.Crowded = c.Crowded()
	}
	if m, ok := d.backend.(Metered); ok {
		s.NetworkUnknown = m.Unmeasured(resource.Network)
	}
	readings := d.readings()
	if len(s.Nodes) > 0 {
		// One machine has one node.
		n := &s.Nodes[0]
		n.Containers = len(readings)
		for _, r := range readings {
			n.UsedMemory += value(r.Memory)
			n.UsedAnonymous += value(r.Anonymous)
		}
	}
	return s, nil
}

// tally counts the pending and the running tasks of a job. It counts again only if the job has changed.
func (j *job) tally() (pending, running int) {
	if !j.tallied.fresh {
		j.tallied.fresh = true
		j.tallied.pending, j.tallied.running = 0, 0
		for _, s := range j.view().Stages {
			j.tallied.pending += s.Pending
			j.tallied.running += s.Running
		}
	}
	return j.tallied.pending, j.tallied.running
}
