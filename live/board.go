package live

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// board is the state of the daemon as callers see it. The loop publishes a board after each piece of work, before it
// acts on what was decided, and a board never changes afterwards. So callers neither wait for the loop, which may be
// waiting for the disk, nor hold it up. A board shares with the board before whatever has not changed: it costs time
// in proportion to what has changed, and to the number of nodes.
type board struct {
	at     time.Time
	status api.ClusterStatus // without what the Backend measures
	// unready is why the Driver does not serve, as far as its loop knows; nil if it does.
	unready error
	// revision grows whenever a job or a task changes, and from one run of the daemon to the next.
	revision int64
	// jobs are all that the Driver has: those that have not ended, or whose end is not stored yet.
	jobs  jobList
	tally tally
	last  cluster.JobID // the greatest that was ever shown, in this run of the daemon or before
	// left are the jobs that have left jobs after the revision first, the latest last; leftSize is how many they are
	// with their tasks.
	left     []*boardJob
	leftSize int
	first    int64
}

// tally counts the jobs that have not ended, and their tasks.
type tally struct{ jobs, pending, running int }

// count adds a job n times; the job may be nil.
func (t *tally) count(j *boardJob, n int) {
	if j == nil || j.Ended {
		return
	}
	t.jobs += n
	t.pending += n * j.pending
	t.running += n * j.running
}

const (
	// mostLeft bounds the jobs and tasks of board.left. Whoever follows the changes and is further behind begins anew.
	mostLeft = 4096
	// A step can change why any job waits. askedAtOnce is how many of the jobs that have not changed otherwise are
	// looked at after a step, in turn; askPause is the time until the loop looks at as many more. With 10,000 jobs that
	// wait, the last of them is shown with an old reason for 0.8 s.
	askedAtOnce = 64
	askPause    = 5 * time.Millisecond
)

// firstBoard returns the board before anything is shown. Each run of the daemon has 2^32 revisions of its own, so
// that a revision of an earlier run is older than all of them; up to run 2^21 they are integers that every reader of
// JSON knows exactly.
func firstBoard(run int64) *board {
	revision := run << 32
	return &board{revision: revision, first: revision}
}

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
		late = d.agenda.begun().Unix()
	}
	first := firstBoard(run)
	first.revision, first.first = first.revision+late, first.first+late
	var err error
	first.last, err = d.store.Newest(ctx)
	d.board.put(first)
	return err
}

// edition is a board in the making.
type edition struct {
	board
	next     int64           // its revision, if anything changes
	replaced []chan struct{} // to be closed once it is published
}

// show shows a job in place of what was shown of it, which may be nil.
func (e *edition) show(j, was *boardJob) {
	e.jobs = e.jobs.with(j)
	e.tally.count(was, -1)
	e.tally.count(j, 1)
	e.last = max(e.last, j.ID)
	e.changed(j, was)
}

// drop shows that a job has left.
func (e *edition) drop(j, was *boardJob) {
	j.revision = e.next // even if its end has been shown
	e.jobs = e.jobs.without(j.ID)
	e.tally.count(was, -1)
	e.left, e.leftSize = append(e.left, j), e.leftSize+j.size()
	for e.leftSize > mostLeft {
		e.first, e.leftSize = e.left[0].revision, e.leftSize-e.left[0].size()
		e.left = e.left[1:]
	}
	e.changed(j, was)
}

func (e *edition) changed(j, was *boardJob) {
	if j.revision != e.next {
		return
	}
	e.revision = e.next
	if was != nil {
		e.replaced = append(e.replaced, was.replaced)
	}
}

// tell says that a job has changed: the next board shows it anew.
func (d *Driver) tell(j *job) { d.changes.tell(j) }

func (d *Driver) tellAll() { d.changes.tellAll(d.jobs) }

// askAll says that the reasons why jobs wait may have changed.
func (d *Driver) askAll() { d.changes.asking.all() }

// asking says of which jobs it is not known why they wait since the last step. They are asked in turns, by ID.
type asking struct {
	left int           // how many
	last cluster.JobID // that was asked
}

func (a *asking) all() { a.left = math.MaxInt }

// open reports whether some jobs have not been asked.
func (a *asking) open() bool { return a.left > 0 }

// turns yields the jobs to be asked now.
func (a *asking) turns(jobs *jobList) iter.Seq[*boardJob] {
	return func(yield func(*boardJob) bool) {
		a.left = min(a.left, jobs.count)
		for range min(a.left, askedAtOnce) {
			a.left--
			j := jobs.after(a.last)
			if a.last = j.ID; !yield(j) {
				return
			}
		}
	}
}

// publish publishes a new board.
func (d *Driver) publish() {
	was := d.board.newest()
	e := edition{board: *was, next: was.revision + 1}
	for _, id := range slices.Sorted(maps.Keys(d.changes.untold)) {
		j, shown := d.changes.untold[id], e.jobs.job(id)
		if now := d.shownAs(j, shown, e.next); d.jobs[id] == j {
			e.show(now, shown)
		} else {
			e.drop(now, shown)
		}
	}
	d.changes.told()
	d.askAgain(&e)
	b := e.board
	b.at, b.status, b.unready = time.Now(), d.statusOf(b.tally), d.health.notReady()
	d.board.put(&b)
	for _, c := range e.replaced {
		close(c)
	}
}

// askAgain finds out again why some of the jobs wait, and how many of their tasks wait for room alone.
func (d *Driver) askAgain(e *edition) {
	for was := range d.changes.asking.turns(&e.jobs) {
		j := d.jobs[was.ID]
		if j == nil || was.pending == 0 {
			continue
		}
		why, stages := d.whyWaits(j), d.startable(j, was.Stages)
		if why != was.Waiting || len(stages) > 0 && &stages[0] != &was.Stages[0] {
			now := *was
			now.Waiting, now.Stages, now.revision, now.replaced = why, stages, e.next, make(chan struct{})
			e.show(&now, was)
		}
	}
}

// statusOf returns the state of the daemon and its nodes.
func (d *Driver) statusOf(jobs tally) api.ClusterStatus {
	s := api.ClusterStatus{Policy: d.config.Policy.Name(), Deadlines: d.config.Policy.Traits().Deadlines,
		Since:    d.agenda.begun(),
		EventLog: d.events.EventLog(), Steps: d.events.Steps(d.engine.Steps()), Jobs: jobs.jobs, Pending: jobs.pending,
		Running: jobs.running}
	s.Trouble = d.refused()
	for _, n := range d.engine.Snapshot().Nodes {
		if !n.Gone {
			s.Nodes = append(s.Nodes, nodeOf(n))
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
func (d *Driver) current() (*board, error) {
	select {
	case <-d.turns.Ended():
		return nil, errStopped
	case <-d.watchdog.Alarm():
		return nil, d.silent()
	default:
		return d.board.newest(), nil
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
	b := d.board.newest()
	s := b.status
	s.Nodes = slices.Clone(s.Nodes) // All callers share the board.
	if silent, hangs := d.watchdog.Hangs(); hangs {
		s.AsOf = b.at
		said := fmt.Sprintf("the engine has not answered for %v; what follows is as of %s", silent.Round(time.Second),
			b.at.Format(time.TimeOnly))
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
	s.Quotas = !d.admission.rules().None()
	crowded := make(chan string, 1) // Either may have to be made first.
	go func() { crowded <- d.readers.crowded(d.backend) }()
	if m, ok := d.backend.(Metered); ok {
		s.NetworkUnknown = m.Unmeasured(resource.Network)
	}
	readings := d.readings()
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
