package pool

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/executor"
)

// application is an application that has enrolled. The engine knows it as an open job, whose stages are those of the
// application.
type application struct {
	id       cluster.JobID
	key      string
	name     string
	fresh    bool
	attempts int
	lease    string
	expires  timeline.Time
	stages   []*stage
	hopeless string // why not all of its tasks can run; empty if they can
	growths  int64  // the number of the newest growth
	closed   bool   // it does not grow any more
	// cancelled says why it was cancelled; empty if it was not.
	cancelled string
	left      int // tasks that have not ended
	running   int
	done      int64

	results []result // that were not confirmed
	number  int64    // of the newest result
	held    int64    // bytes of arguments and results
	waiting chan<- struct{}

	driving *driving // nil unless it starts its own tasks
}

// ended reports whether no task of it runs or will run.
func (a *application) ended() bool {
	return a.cancelled != "" && a.running == 0 || a.closed && a.left == 0
}

// stage is a stage of an application.
type stage struct {
	function, path string
	tasks          []*task       // as the engine numbers them; nil if they have ended
	byIndex        map[int]*task // as the application numbers them; nil if the two are the same
	next           int           // the index of the next task that the application adds
	followed       bool          // another stage comes after it
	demand         int           // executors that it could use, of an application that drives
	failed         string        // which of its tasks has failed; empty if none has
	left           int           // tasks that have not ended
}

// task is a task of an application.
type task struct {
	id           cluster.TaskID // in the engine
	stage, index int            // in the application
	arguments    []byte
	since        timeline.Time // since when it has been there
	running      *member
	run          int // how often it was run
	lost         int // of these, how often its executor was lost
}

// find returns the task with an index; nil if there is none, or the application had its result when it was added.
func (a *application) find(stage, index int) *task {
	if stage < 0 || stage >= len(a.stages) {
		return nil
	}
	s := a.stages[stage]
	if s.byIndex != nil {
		return s.byIndex[index]
	}
	if index < 0 || index >= len(s.tasks) {
		return nil
	}
	return s.tasks[index]
}

// Enrol enrols an application. An earlier one with the same key is replaced: its running tasks are cancelled, because
// whoever enrols again submits again what has no result.
//
// The payload is for executors that are attached to one that drives. The errors are ErrInvalid and ErrFull.
func (p *Pool) Enrol(ctx context.Context, e executor.Enrolment, payload []byte) (lease executor.Lease, err error) {
	switch {
	case len(e.Key) < 16 || len(e.Key) > 256:
		return lease, fmt.Errorf("key: %w: must have 16 to 256 bytes", ErrInvalid)
	case !(e.Weight >= 0 && e.Weight <= 1e6):
		return lease, fmt.Errorf("weight %v: %w: must be from 0 to 1000000", e.Weight, ErrInvalid)
	case len(payload) > executor.MostAttach || !e.Drives && len(payload) > 0:
		return lease, fmt.Errorf("%d bytes follow: %w: must be at most %d, of an application that drives, and else none",
			len(payload), ErrInvalid, executor.MostAttach)
	case e.Attempts < 0 || e.Attempts > 1000:
		return lease, fmt.Errorf("attempts %d: %w: must be from 0 to 1000", e.Attempts, ErrInvalid)
	}
	err = p.do(ctx, func() error {
		if p.broken != nil {
			return p.broken
		}
		if old := p.byKey[e.Key]; old != nil {
			p.cancel(old, "it enrolled again")
			p.forget(old)
		}
		if len(p.apps) >= MostApplications {
			return fmt.Errorf("the pool has %d applications, and at most %d: %w", len(p.apps), MostApplications, ErrFull)
		}
		job := &cluster.Job{ID: p.nextApp, Name: e.Name, Queue: e.Queue, Weight: e.Weight, Open: true, Drives: e.Drives,
			Submitted: p.loop.Now(), MaxAttempts: 1}
		if err := p.admits(job); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		a := &application{id: job.ID, key: e.Key, name: e.Name, fresh: e.Fresh, attempts: cmp.Or(e.Attempts, 4),
			lease: rand.Text(), expires: p.renew()}
		if e.Drives {
			if p.config.OfOwner.full(len(payload)) {
				return fmt.Errorf("the applications of the owner have %d bytes, at most %d: %w", p.config.OfOwner.held.Load(),
					p.config.OfOwner.most, ErrFull)
			}
			a.driving = &driving{attach: payload, attached: map[int64]*member{}, holds: map[int64]executor.Attachment{},
				found: map[int]int32{}}
			p.hold(a, int64(len(payload)))
		}
		p.nextApp++
		p.apps[a.id], p.byKey[a.key] = a, a
		p.loop.Event(cluster.Event{Kind: cluster.JobSubmitted, NewJob: job})
		p.keptFrom(a)
		lease = executor.Lease{Lease: a.lease, Length: p.config.Lease.Milliseconds(), Application: int64(a.id)}
		return nil
	})
	return lease, err
}

// admits returns an error if the policy refuses a job, such as one of an unknown queue.
func (p *Pool) admits(job *cluster.Job) error {
	return policy.CheckRuns(p.config.Policy, p.loop.Engine().Snapshot(), job)
}

// applicationOf returns the application with a lease.
func (p *Pool) applicationOf(id int64, lease string) (*application, error) {
	a := p.apps[cluster.JobID(id)]
	if a == nil || lease == "" || a.lease != lease {
		return nil, fmt.Errorf("application %d: %w", id, ErrGone)
	}
	if a.waiting == nil {
		a.expires = p.renew()
	}
	return a, p.broken
}

// Grow adds tasks to an application, unless it was cancelled. The payload contains their arguments, and then belongs
// to the pool. The errors are ErrGone, ErrInvalid and ErrFull.
func (p *Pool) Grow(ctx context.Context, id int64, g executor.Growth, payload []byte) (room executor.Room, err error) {
	err = p.do(ctx, func() error {
		a, err := p.applicationOf(id, g.Lease)
		if err != nil {
			return err
		}
		room = executor.Room{Held: a.held, Most: p.config.Room}
		switch {
		case g.Number == 0:
			return nil
		case g.Number <= a.growths:
			p.counters.Repeated++
			return nil
		case g.Number != a.growths+1:
			return fmt.Errorf("number %d: %w: must be %d", g.Number, ErrInvalid, a.growths+1)
		case a.cancelled != "":
			a.growths = g.Number // and no more: Collect says why
			return nil
		case a.closed && (a.driving == nil || len(g.Stages) > 0):
			return fmt.Errorf("application %d: %w: it is closed", id, ErrInvalid)
		case a.held > 0 && a.held+int64(len(payload)) > p.config.Room:
			return fmt.Errorf("%d bytes of arguments and results are here, at most %d: %w", a.held, p.config.Room, ErrFull)
		case p.config.OfOwner.full(len(payload)):
			return fmt.Errorf("the applications of the owner have %d bytes of arguments and results, at most %d: %w",
				p.config.OfOwner.held.Load(), p.config.OfOwner.most, ErrFull)
		}
		if err := a.checkGrowth(&g, len(payload)); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		a.growths = g.Number
		p.grow(a, &g, payload)
		room.Held = a.held
		return nil
	})
	return room, err
}

// checkGrowth returns an error if an application cannot grow in that way.
func (a *application) checkGrowth(g *executor.Growth, payload int) error {
	if err := a.checkDriving(g); err != nil {
		return err
	}
	total, tasks := 0, a.left
	known := len(a.stages)
	for i := range g.Stages {
		s := &g.Stages[i]
		switch {
		case s.Stage < 0 || s.Stage > known:
			return fmt.Errorf("stages[%d].stage %d: must be from 0 to %d", i, s.Stage, known)
		case s.Stage < len(a.stages) && (s.Function != "" || s.Path != "" || len(s.After) > 0 && !s.Anew || s.First > 0):
			return fmt.Errorf("stages[%d]: function, path, after and first are for new stages", i)
		case s.Stage < len(a.stages) && a.stages[s.Stage].followed:
			return fmt.Errorf("stages[%d]: stage %d gets no more tasks, because another stage comes after it", i, s.Stage)
		case s.Stage == known && s.Function == "":
			return fmt.Errorf("stages[%d].function: must be given for a new stage", i)
		case s.Stage < known && s.Stage >= len(a.stages):
			return fmt.Errorf("stages[%d].stage %d: is named twice", i, s.Stage)
		case s.First < 0 || s.First > MostTasks:
			return fmt.Errorf("stages[%d].first %d: must be from 0 to %d", i, s.First, MostTasks)
		}
		for _, parent := range s.After {
			if parent < 0 || parent >= s.Stage && !s.Anew || parent >= known || parent == s.Stage {
				return fmt.Errorf("stages[%d].after %d: must be the number of an earlier stage", i, parent)
			}
		}
		if s.Stage == known {
			known++
		}
		for k, size := range s.Sizes {
			if size < -1 || size > math.MaxInt32 {
				return fmt.Errorf("stages[%d].sizes[%d] %d: must be a number of bytes, or -1", i, k, size)
			}
			if size >= 0 {
				total, tasks = total+size, tasks+1
			}
		}
	}
	if tasks > MostTasks {
		return fmt.Errorf("the application has %d tasks that have not ended: at most %d", tasks, MostTasks)
	}
	if total != payload {
		return fmt.Errorf("the sizes are %d bytes in all, and %d follow", total, payload)
	}
	return nil
}

// checkDriving returns an error if a growth has fields of the other kind of application.
func (a *application) checkDriving(g *executor.Growth) error {
	if a.driving == nil && len(g.GivesBack)+len(g.Holds) > 0 {
		return fmt.Errorf("gives_back and holds are for applications that drive")
	}
	last := -1
	for i := range g.Stages {
		s := &g.Stages[i]
		switch {
		case a.driving == nil && (s.Demand != 0 || s.Tasks != 0 || s.Anew):
			return fmt.Errorf("stages[%d]: demand, tasks and anew are for applications that drive", i)
		case a.driving == nil:
			continue
		case len(s.Sizes) > 0 || s.First != 0:
			return fmt.Errorf("stages[%d]: sizes and first are not for applications that drive", i)
		case s.Stage <= last:
			return fmt.Errorf("stages[%d].stage %d: must be in ascending order", i, s.Stage)
		case s.Demand < 0 || s.Demand > MostTasks:
			return fmt.Errorf("stages[%d].demand %d: must be from 0 to %d", i, s.Demand, MostTasks)
		case s.Tasks < 0 || s.Tasks > MostTasks:
			return fmt.Errorf("stages[%d].tasks %d: must be from 0 to %d", i, s.Tasks, MostTasks)
		case s.Anew && s.Stage >= len(a.stages):
			return fmt.Errorf("stages[%d].anew: is for the number of a stage that has ended, and stage %d is new", i, s.Stage)
		}
		last = s.Stage
	}
	return nil
}

// grow adds what checkGrowth has checked.
func (p *Pool) grow(a *application, g *executor.Growth, payload []byte) {
	if a.driving != nil { // before it states its demand again
		if p.givesBack(a, g.GivesBack); a.cancelled != "" { // It has confirmed too little.
			return
		}
	}
	growth := &cluster.Growth{Closes: g.Closed && !a.closed}
	whole := len(payload)
	var added []*task
	for i := range g.Stages {
		grown := &g.Stages[i]
		isNew := grown.Stage == len(a.stages)
		if isNew {
			a.stages = append(a.stages, &stage{function: grown.Function, path: grown.Path, next: grown.First})
		}
		s := a.stages[grown.Stage]
		before := len(s.tasks)
		for _, size := range grown.Sizes {
			index := s.next
			s.next++
			if size < 0 {
				continue
			}
			t := &task{id: cluster.TaskID{Job: a.id, Stage: int32(grown.Stage), Index: int32(len(s.tasks))},
				stage: grown.Stage, index: index, arguments: argumentsIn(payload[:size:size], whole), since: p.loop.Now()}
			payload = payload[size:]
			s.add(t)
			p.hold(a, int64(size))
			added = append(added, t)
		}
		n := len(s.tasks) - before
		a.left, s.left = a.left+n, s.left+n
		s.demand = grown.Demand
		if a.driving != nil && (!isNew || grown.Demand > 0) {
			growth.Demands = append(growth.Demands, a.demandOf(grown))
		}
		switch {
		case isNew && a.driving != nil:
			growth.Stages = append(growth.Stages, *drivenStage(grown))
		case isNew:
			growth.Stages = append(growth.Stages, cluster.Stage{Name: grown.Name, Tasks: n, Ideal: need,
				Parents: a.parents(grown.After)})
		case n > 0:
			growth.Tasks = append(growth.Tasks, cluster.MoreTasks{Stage: grown.Stage, Tasks: n})
		}
	}
	if a.closed = a.closed || g.Closed; growth.Closes {
		for _, s := range a.stages {
			s.demand = 0
		}
	}
	if len(growth.Stages)+len(growth.Tasks)+len(growth.Demands) > 0 || growth.Closes {
		slices.SortFunc(growth.Tasks, func(x, y cluster.MoreTasks) int { return x.Stage - y.Stage })
		p.grown(a, growth)
	}
	switch {
	case a.driving != nil:
		p.holdsFromBefore(a, g.Holds)
	case !p.synced:
		p.reclaim(a, added)
	}
	p.cancelIfHopeless(a)
	p.settle(a)
}

// grown tells the engine that an application has grown.
func (p *Pool) grown(a *application, g *cluster.Growth) {
	e := cluster.Event{Kind: cluster.JobGrew, Job: a.id}
	e.SetCondition(cluster.Condition{Growth: g})
	p.loop.Event(e)
}

// drivenStage is a stage of an application that drives, as the engine knows it.
func drivenStage(g *executor.StageGrowth) *cluster.Stage {
	return &cluster.Stage{Name: g.Name, Tasks: g.Tasks, Ideal: need,
		Parents: slices.Compact(slices.Sorted(slices.Values(g.After)))}
}

// demandOf is what a growth demands for a stage.
func (a *application) demandOf(g *executor.StageGrowth) cluster.Demand {
	d := cluster.Demand{Stage: g.Stage, Tasks: a.demands(g.Stage, g.Demand)}
	if g.Demand == 0 && g.Tasks > 0 {
		d.Tasks, d.Coming = g.Tasks, true
	}
	if g.Anew {
		d.As = drivenStage(g)
	}
	return d
}

// cancelIfHopeless cancels an application if a task has failed that another stage needs.
func (p *Pool) cancelIfHopeless(a *application) {
	if a.hopeless != "" {
		p.cancel(a, a.hopeless)
	}
}

// despair notes that a task of a stage has failed, or that another stage comes after it, if both are so.
func (a *application) despair(s *stage) {
	if s.failed != "" && s.followed && a.hopeless == "" {
		a.hopeless = s.failed + " failed, and another stage needs it"
	}
}

// argumentsIn returns arguments that are a part of a message of whole bytes. Small ones are copied, so that the
// message does not stay in memory until the last of its tasks has ended.
func argumentsIn(part []byte, whole int) []byte {
	if 2*len(part) >= whole {
		return part
	}
	return slices.Clone(part)
}

// add adds a task to the stage.
func (s *stage) add(t *task) {
	if s.byIndex == nil && t.index != len(s.tasks) {
		s.byIndex = map[int]*task{}
		for _, known := range s.tasks {
			if known != nil {
				s.byIndex[known.index] = known
			}
		}
	}
	s.tasks = append(s.tasks, t)
	if s.byIndex != nil {
		s.byIndex[t.index] = t
	}
}

// parents returns the stages that a new stage must wait for: those that have tasks without results.
func (a *application) parents(after []int) (left []int) {
	for _, parent := range after {
		a.stages[parent].followed = true
		a.despair(a.stages[parent])
		if a.stages[parent].left > 0 && !slices.Contains(left, parent) {
			left = append(left, parent)
		}
	}
	return left
}

// reclaim finds what executors run, or have run, of tasks that were submitted again to a new daemon.
func (p *Pool) reclaim(a *application, added []*task) {
	for _, m := range p.members {
		if m.earlier != nil && m.earlier.Key == a.key {
			p.adopt(m)
		}
	}
	for _, t := range added {
		at := place{a.key, t.stage, t.index}
		full, ok := p.orphans[at]
		if !ok {
			continue
		}
		delete(p.orphans, at)
		t.run = max(1, t.run)
		p.loop.Event(cluster.Event{Kind: cluster.TaskEnded, Task: t.id, Outcome: cluster.Succeeded})
		p.record(a, t, full, executor.Result{})
	}
}

// Collect confirms results and returns those after them, as soon as there are some or the application has ended, or
// none after a while. The payload contains the result and the output of each.
func (p *Pool) Collect(ctx context.Context, id int64, c executor.Collect) (out executor.Results, payloads [][]byte,
	err error) {
	changed := make(chan struct{}, 1)
	look := func(waits bool) error {
		a, err := p.applicationOf(id, c.Lease)
		if err != nil {
			return err
		}
		if waits && a.waiting != nil {
			p.counters.Repeated++
			p.notify(a)
		}
		p.confirm(a, c.After)
		out, payloads = a.collected()
		if waits && len(out.Results)+len(out.Changes) == 0 && !out.Ended {
			a.waiting, a.expires = changed, timeline.Never
		}
		return nil
	}
	if err := p.do(ctx, func() error { return look(true) }); err != nil || len(out.Results)+len(out.Changes) > 0 ||
		out.Ended {
		return out, payloads, err
	}
	timer := time.NewTimer(p.config.Poll)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	case <-p.loop.Ended():
	}
	err = p.do(context.WithoutCancel(ctx), func() error {
		if a := p.apps[cluster.JobID(id)]; a != nil && a.waiting == changed {
			a.waiting, a.expires = nil, p.renew()
		}
		return look(false)
	})
	return out, payloads, cmp.Or(err, ctx.Err())
}

// mostCollected bounds the bytes of results that one answer has, unless a single one is larger.
const mostCollected = 8 << 20

// collected returns the results that were not confirmed.
func (a *application) collected() (out executor.Results, payloads [][]byte) {
	size := 0
	for i := range a.results {
		r := &a.results[i]
		if size += len(r.result) + len(r.output); size > mostCollected && i > 0 {
			break
		}
		out.Results = append(out.Results, r.Result)
		payloads = append(payloads, r.result, r.output)
	}
	if d := a.driving; d != nil {
		out.Changes = d.changes
	}
	out.Running, out.Waiting = a.running, a.left-a.running
	out.Ended = a.ended() && len(out.Results) == len(a.results)
	out.Why = a.cancelled
	return out, payloads
}

// confirm forgets results up to a number. Tasks that waited for room go on.
func (p *Pool) confirm(a *application, after int64) {
	n, crowded := 0, p.crowded(a)
	for ; n < len(a.results) && a.results[n].Number <= after; n++ {
		p.hold(a, -int64(len(a.results[n].result)+len(a.results[n].output)))
	}
	a.results = slices.Delete(a.results, 0, n)
	if d := a.driving; d != nil { // Answers may still read the list.
		i, _ := slices.BinarySearchFunc(d.changes, after+1, func(c executor.Change, number int64) int {
			return cmp.Compare(c.Number, number)
		})
		for _, c := range d.changes[:i] {
			if c.What == executor.Ended {
				d.unheard--
			}
		}
		d.changes = d.changes[i:]
	}
	if crowded && !p.crowded(a) {
		p.deliver(a)
	}
}

// deliver gives executors the tasks of an application that waited for room.
func (p *Pool) deliver(a *application) {
	for _, m := range p.members {
		if w := m.work; w != nil && w.app == a && !w.delivered {
			p.answer(m)
		}
	}
}

// notify wakes the request that waits for results, if there is one.
func (p *Pool) notify(a *application) {
	if a.waiting != nil {
		close(a.waiting)
		a.waiting, a.expires = nil, p.renew()
	}
}

// CancelLease cancels the application with a lease. The error is ErrGone.
func (p *Pool) CancelLease(ctx context.Context, id int64, lease, why string) error {
	return p.do(ctx, func() error {
		a, err := p.applicationOf(id, lease)
		if err == nil {
			p.cancel(a, why)
			p.confirm(a, a.number) // It no longer collects its results.
		}
		return err
	})
}

// Cancel cancels an application. Tasks that run are ended or their results dropped.
func (p *Pool) Cancel(ctx context.Context, id int64, why string) error {
	return p.do(ctx, func() error {
		a := p.apps[cluster.JobID(id)]
		if a == nil {
			return fmt.Errorf("application %d: %w", id, ErrNotFound)
		}
		p.cancel(a, why)
		return nil
	})
}

// cancel cancels an application, unless it has ended.
func (p *Pool) cancel(a *application, why string) {
	if a.ended() || a.cancelled != "" {
		return
	}
	a.cancelled = why
	p.deliver(a) // An executor drops a task in one way only.
	for _, s := range a.stages {
		for _, t := range s.tasks {
			if t != nil && t.running == nil {
				p.release(a, t)
			}
		}
	}
	p.loop.Event(cluster.Event{Kind: cluster.JobCancelled, Job: a.id})
	p.settle(a)
}

// settle notifies an application that has ended.
func (p *Pool) settle(a *application) {
	if !a.ended() {
		return
	}
	a.stages = nil
	p.letForget(a)
	p.notify(a)
}

// forget drops what is kept of an application that has been cancelled or has ended. Its tasks that run still end.
func (p *Pool) forget(a *application) {
	delete(p.apps, a.id)
	p.hold(a, -a.held)
	if p.byKey[a.key] == a {
		delete(p.byKey, a.key)
		p.letForget(a)
	}
	p.notify(a)
}
