package live

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/board"
	"github.com/bellows-rm/bellows/live/view"
)

const (
	// A step can change why any job waits. askedAtOnce is how many of the jobs that have not changed otherwise are
	// looked at after a step, in turn; askPause is the time until the loop looks at as many more. With 10,000 jobs that
	// wait, the last of them is shown with an old reason for 0.8 s.
	askedAtOnce = 64
	askPause    = 5 * time.Millisecond
)

// beginBoard makes the board of this Driver. The revisions of a run that could not be recorded yet begin with the
// time, in seconds: the run before may not have been recorded at all, and this one will have its number.
func (d *Driver) beginBoard(ctx context.Context) error {
	run, late := d.events.Run(), int64(0)
	if run == 0 {
		runs, err := d.store.Runs(ctx)
		if err != nil {
			return err
		}
		if run = 1; len(runs) > 0 {
			run = runs[len(runs)-1].ID + 1
		}
		late = d.agenda.Begun().Unix()
	}
	last, err := d.store.Newest(ctx)
	d.board.Begin(board.First(run, late, last))
	return err
}

// tell says that a job has changed: the next board shows it anew.
func (d *Driver) tell(j *job) { d.changes.tell(j) }

func (d *Driver) tellAll() { d.changes.tellAll(d.jobs) }

// askAll says that the reasons why jobs wait may have changed.
func (d *Driver) askAll() { d.changes.askAll() }

// asking says of which jobs it is not known why they wait since the last step. They are asked in turns, by ID.
type asking struct {
	left int           // how many
	last cluster.JobID // that was asked
}

func (a *asking) askAll() { a.left = math.MaxInt }

// asks reports whether some jobs have not been asked.
func (a *asking) asks() bool { return a.left > 0 }

// turns yields the jobs to be asked now.
func (a *asking) turns(jobs *board.List) iter.Seq[*board.Job] {
	return func(yield func(*board.Job) bool) {
		a.left = min(a.left, jobs.Len())
		for range min(a.left, askedAtOnce) {
			a.left--
			j := jobs.After(a.last)
			if a.last = j.ID; !yield(j) {
				return
			}
		}
	}
}

// publish publishes a new board.
func (d *Driver) publish() {
	e := d.board.Newest().Edit()
	for _, j := range d.changes.news() {
		shown := e.Jobs.Job(j.ID)
		if now := d.shownAs(j, shown, e.Next()); d.jobs[j.ID] == j {
			e.Show(now, shown)
		} else {
			e.Drop(now, shown)
		}
	}
	d.changes.told()
	d.askAgain(e)
	d.board.Publish(e, d.statusOf(e.Tally), d.health.notReady())
}

// askAgain finds out again why some of the jobs wait, and how many of their tasks wait for room alone.
func (d *Driver) askAgain(e *board.Edition) {
	for was := range d.changes.turns(&e.Jobs) {
		j := d.jobs[was.ID]
		if j == nil || was.Pending() == 0 {
			continue
		}
		why, _ := d.whyWaits(j)
		stages := board.Startable(d.engineJob(j), was.Stages)
		if why != was.Waiting || len(stages) > 0 && &stages[0] != &was.Stages[0] {
			e.Show(was.Asked(e, why, stages), was)
		}
	}
}

// statusOf returns the state of the daemon and its nodes.
func (d *Driver) statusOf(jobs board.Tally) api.ClusterStatus {
	s := api.ClusterStatus{Policy: d.config.Policy.Name(), Deadlines: d.config.Policy.Traits().Deadlines,
		Since:    d.agenda.Begun(),
		EventLog: d.events.EventLog(), Steps: d.events.Steps(d.engine.Steps()), Jobs: jobs.Jobs, Pending: jobs.Pending,
		Running: jobs.Running}
	s.Trouble = d.refused()
	for _, n := range d.engine.Snapshot().Nodes {
		if !n.Gone {
			s.Nodes = append(s.Nodes, view.Node(n))
		}
		if d.pauses[n.ID] != nil {
			s.Trouble = d.pausedWords(n.ID)
		}
	}
	if err := cmp.Or(d.health.worst(), d.inventory.apart.err(d.config.Dir)); err != nil {
		s.Trouble = err.Error()
	}
	return s
}

// current returns the board. The error is Internal if the board does not change any more: the Driver has stopped, or
// the engine hangs.
func (d *Driver) current() (*board.Board, error) {
	select {
	case <-d.turns.Ended():
		return nil, errStopped
	case <-d.watchdog.Alarm():
		return nil, d.silent()
	default:
		return d.board.Newest(), nil
	}
}

// Status returns the state of the daemon and its nodes. It does not use the engine: while the engine hangs, Status says
// so and shows the last state before the hang.
func (d *Driver) Status(context.Context) (api.ClusterStatus, error) {
	select {
	case <-d.turns.Ended():
		return api.ClusterStatus{}, errStopped
	default:
	}
	b := d.board.Newest()
	s := b.Status
	s.Nodes = slices.Clone(s.Nodes) // All callers share the board.
	if silent, hangs := d.watchdog.Hangs(); hangs {
		s.AsOf = b.At
		said := fmt.Sprintf("the engine has not answered for %v; what follows is as of %s", silent.Round(time.Second),
			b.At.Format(time.TimeOnly))
		if s.Trouble != "" {
			said += "; " + s.Trouble
		}
		s.Trouble = said
	}
	if words := d.unread(0); words != "" {
		s.Trouble = strings.TrimPrefix(s.Trouble+"; "+words, "; ")
	}
	if a, ok := d.backend.(Audited); ok && s.Trouble == "" && a.Mended() > 0 {
		s.Trouble = fmt.Sprintf(
			"the memory manager's books were wrong about %d containers, and were mended; the log names them", a.Mended())
	}
	s.Quotas = !d.gate.Rules().None()
	crowded := make(chan string, 1) // Either may have to be made first.
	go func() { crowded <- d.readers.crowded(d.backend) }()
	if m, ok := d.backend.(Metered); ok {
		s.NetworkUnknown = m.Unmeasured(resource.Network)
	}
	readings := d.readings()
	s.Slack = api.Slack{Now: slackOf(b, readings), Past: d.counts.PastSlack()}
	s.Crowded = <-crowded
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

// slackOf compares what was asked for the tasks that have a container with what is reserved for them and what they use.
func slackOf(b *board.Board, readings map[cluster.ContainerID]cluster.Reading) (s api.SlackOf) {
	for id, r := range readings {
		t := b.Jobs.Job(id.Task.Job).Task(id.Task)
		if t != nil && t.Run == id.Run && t.State != api.TaskEnded && r.Anonymous != nil {
			s.Add(t.AskedBytes, t.MemoryBytes, *r.Anonymous+value(r.Swap))
		}
	}
	return s
}
