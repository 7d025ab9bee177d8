package pool

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
)

// member is an executor that has registered.
type member struct {
	number   int
	node     cluster.NodeID
	lease    string
	expires  timeline.Time // when its lease ends; Never while a request of it waits
	language string
	pid      int
	idle     timeline.Time // since when it has no task; meaningful if work is nil
	memory   int64         // bytes, 0 is unknown
	after    int64         // of it, when no task of the pool ran there
	tasks    int64         // that it has ended

	why      cluster.Reason // of the newest decision about it
	work     *work          // what it runs
	earlier  *executor.Held // what it has run since before it registered, until its task is known
	attaches bool           // it understands DoAttach
	knows    known          // what it last said of its attachment
	waiting  chan<- answer  // the request that waits for work; nil if there is none
	last     cluster.JobID  // the application that it served last
	ran      map[string]bool
	paused   bool   // the engine starts nothing there
	still    bool   // bellows has stopped its programs: it cannot keep its lease
	presses  bool   // it uses much of a contended resource
	draining string // why it is to end when its task has ended; empty if not
	ending   bool   // its process is being ended
}

// mostRan bounds the functions that a member is known to have run.
const mostRan = 1024

// answer is an answer to Next.
type answer struct {
	work      executor.Work
	arguments []byte
	err       error
}

// work is one run of a task.
type work struct {
	id        int64
	app       *application
	task      *task
	begun     timeline.Time
	warm      bool
	cancelled timeline.Time // 0 if it is wanted
	asked     string        // why the application is to give it back, of an attachment; empty if it is not
	delivered bool
	earlier   bool // it began under an earlier lease, with another id
}

// Register registers an executor, and ends its former lease, if any. The errors are ErrSecret and ErrInvalid.
func (p *Pool) Register(ctx context.Context, r executor.Registration) (lease executor.Lease, err error) {
	if r.Executor < 0 || r.Executor > MostNumber {
		return lease, fmt.Errorf("executor %d: %w: must be from 0 to %d", r.Executor, ErrInvalid, MostNumber)
	}
	if !p.config.Verify(r.Executor, r.Secret) {
		return lease, fmt.Errorf("executor %d: %w", r.Executor, ErrSecret)
	}
	err = p.do(ctx, func() error {
		if p.broken != nil {
			return p.broken
		}
		if old := p.members[r.Executor]; old != nil {
			if old.goesOnWith(r.Running) { // The answer to its registration was lost.
				lease = p.leaseAgain(old)
				return nil
			}
			p.leave(old, executor.CauseLost, "it registered again")
		}
		m := &member{number: r.Executor, lease: rand.Text(), language: r.Language, pid: r.PID, attaches: r.Attaches,
			idle: p.loop.Now(), earlier: r.Running, ran: map[string]bool{}}
		m.expires = p.renew()
		p.members[m.number] = m
		p.join(m)
		if m.earlier != nil {
			p.adopt(m)
		}
		lease = executor.Lease{Lease: m.lease, Length: p.config.Lease.Milliseconds()}
		return nil
	})
	return lease, err
}

// goesOnWith reports whether h is what m runs: then it is the same process.
func (m *member) goesOnWith(h *executor.Held) bool {
	switch w := m.work; {
	case h == nil:
		return false
	case w != nil && w.app.driving != nil:
		return h.Attachment == w.id
	case w != nil:
		return h.Attachment == 0 && h.Key == w.app.key && h.Stage == w.task.stage && h.Task == w.task.index &&
			h.Run == w.task.run
	}
	return m.earlier != nil && *m.earlier == *h
}

// leaseAgain replaces the lease of an executor.
func (p *Pool) leaseAgain(m *member) executor.Lease {
	p.counters.Repeated++
	if m.waiting != nil {
		m.waiting <- answer{err: fmt.Errorf("executor %d: %w", m.number, ErrGone)}
		m.waiting = nil
	}
	m.lease, m.expires = rand.Text(), p.renew()
	return executor.Lease{Lease: m.lease, Length: p.config.Lease.Milliseconds()}
}

// join adds an executor to the engine.
func (p *Pool) join(m *member) {
	m.node = cluster.NodeID(len(p.nodes))
	if n := len(p.freeNodes); n > 0 {
		m.node, p.freeNodes = p.freeNodes[n-1], p.freeNodes[:n-1]
	}
	p.nodes[m.node] = m
	capacity := p.config.Machine.With(resource.CPU, need[resource.CPU]).With(resource.Memory, need[resource.Memory])
	p.loop.Event(cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{ID: m.node, Name: fmt.Sprint(m.number),
		Capacity: capacity}})
	if p.synced {
		p.pauseIfTaken(m)
	}
}

// pauseIfTaken keeps tasks away from an executor that runs a task unknown to the engine.
func (p *Pool) pauseIfTaken(m *member) {
	switch {
	case m.earlier == nil:
	case m.earlier.Attachment != 0:
		m.earlier = nil // It can be ordered to drop the task.
		p.answer(m)
	default:
		p.pause(m, "it runs a task of an earlier daemon")
	}
}

// pause makes the engine start nothing on an executor.
func (p *Pool) pause(m *member, why string) {
	if !m.paused {
		m.paused = true
		p.loop.Event(cluster.Event{Kind: cluster.NodePaused, Node: m.node, Detail: why})
	}
}

// adopt finds the task that an executor has run since before it registered; that is possible only until the pool is
// synced.
func (p *Pool) adopt(m *member) {
	a := p.byKey[m.earlier.Key]
	if p.synced || a == nil || (m.earlier.Attachment != 0) != (a.driving != nil) {
		return
	}
	if a.driving != nil {
		p.adoptAttachment(m, a)
		return
	}
	t := a.find(m.earlier.Stage, m.earlier.Task)
	if t == nil || t.running != nil {
		return
	}
	t.run = max(t.run, m.earlier.Run)
	p.nextWork++
	m.work = &work{id: p.nextWork, app: a, task: t, begun: p.loop.Now(), delivered: true, earlier: true}
	m.earlier, t.running = nil, m
	a.running++
	p.loop.Event(cluster.Event{Kind: cluster.TaskAdopted, Node: m.node, Task: t.id, Grant: need, Launched: m.work.begun})
}

// Still says whether bellows has stopped the programs of an executor, such as those of a FLEX container that waits for
// memory. It sends nothing then, and its lease does not end: it goes on with its task afterwards, in place of which
// another executor would have to begin anew, with the same need. It gets nothing new, which other executors can do now.
func (p *Pool) Still(ctx context.Context, number int, still bool) error {
	return p.do(ctx, func() error {
		m := p.members[number]
		if m == nil || m.still == still {
			return nil
		}
		m.still = still
		p.pauseIfStill(m)
		if m.expires != timeline.Never {
			m.expires = p.renew()
		}
		if w := m.work; w != nil && w.cancelled != 0 {
			w.cancelled = p.loop.Now()
		}
		p.check = min(p.check, p.loop.Now())
		return nil
	})
}

// pauseIfStill keeps tasks away from an executor that has none and whose programs are stopped, until they go on.
func (p *Pool) pauseIfStill(m *member) {
	switch {
	case m.still && m.work == nil:
		p.pause(m, "its programs are stopped")
	case !m.still && m.earlier == nil:
		p.goesOn(m)
	}
}

// goesOn lets the engine start something on an executor again, unless it is to end.
func (p *Pool) goesOn(m *member) {
	if m.paused && m.draining == "" {
		m.paused = false
		p.loop.Event(cluster.Event{Kind: cluster.NodeResumed, Node: m.node})
	}
}

// holder returns the member with a lease.
func (p *Pool) holder(number int, lease string) (*member, error) {
	m := p.members[number]
	if m == nil || lease == "" || m.lease != lease {
		return nil, fmt.Errorf("executor %d: %w", number, ErrGone)
	}
	return m, p.broken
}

// Next takes the report of an executor, if there is one, and returns its next task, or nothing to do after a while.
// The payload holds the result and the output of the report.
func (p *Pool) Next(ctx context.Context, number int, n executor.Next, payload []byte) (executor.Work, []byte, error) {
	if d := n.Done; d != nil && (d.Size < 0 || d.Output < 0 || d.Output > executor.MostOutput ||
		d.Size != len(payload)-d.Output) {
		return executor.Work{}, nil,
			fmt.Errorf("done: %w: size %d and output_size %d must be the %d bytes that follow, and the output at most %d",
				ErrInvalid, d.Size, d.Output, len(payload), executor.MostOutput)
	}
	answers := make(chan answer, 1)
	if err := p.do(ctx, func() error { return p.next(number, n, payload, answers) }); err != nil {
		return executor.Work{}, nil, err
	}
	timer := time.NewTimer(p.config.Poll)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.work, a.arguments, a.err
	case <-timer.C:
	case <-ctx.Done():
	case <-p.loop.Ended():
	}
	err := p.do(context.WithoutCancel(ctx), func() error { p.stopWaiting(number, answers); return nil })
	if err == nil {
		err = ctx.Err()
	}
	select {
	case a := <-answers: // while it was being given up
		return a.work, a.arguments, a.err
	default:
		return executor.Work{Do: executor.DoWait}, nil, err
	}
}

// next handles a Next.
func (p *Pool) next(number int, n executor.Next, payload []byte, answers chan<- answer) error {
	m, err := p.holder(number, n.Lease)
	if err != nil {
		return err
	}
	if m.waiting != nil {
		p.counters.Repeated++
		m.waiting <- answer{work: executor.Work{Do: executor.DoWait}}
	}
	m.waiting, m.expires = answers, timeline.Never
	m.memory = cmp.Or(n.Memory, m.memory)
	m.knows.attached, m.knows.released = n.Attached, n.Released
	p.keeps(m, n.Keeps)
	if w := m.work; w != nil && w.app.driving != nil && w.cancelled != 0 && w.id != n.Attached && n.Done == nil {
		p.report(m, &executor.Report{Work: w.id}, nil) // It has never heard of it.
	}
	if n.Done != nil {
		p.report(m, n.Done, payload)
	}
	m.after = cmp.Or(n.Memory, m.after) // An executor that runs a task sends beats.
	p.answer(m)
	return nil
}

// stopWaiting ends the wait of a request, if it still waits.
func (p *Pool) stopWaiting(number int, answers chan<- answer) {
	if m := p.members[number]; m != nil && m.waiting == answers {
		m.waiting, m.expires = nil, p.renew()
	}
}

// report handles the report of an executor. A repeated report, or one of a run that is no longer known, changes
// nothing.
func (p *Pool) report(m *member, r *executor.Report, payload []byte) {
	if !r.Failed {
		r.Cause = ""
	}
	full := report{Report: *r, result: payload[:r.Size:r.Size], output: payload[r.Size:]}
	if w := m.work; w != nil && (w.earlier || w.id == r.Work) {
		m.work, m.idle = nil, p.loop.Now()
		m.tasks++
		p.finish(m, w, full)
		return
	}
	if h := m.earlier; h != nil {
		m.earlier, m.idle = nil, p.loop.Now()
		if h.Attachment != 0 {
			return
		}
		if p.synced {
			p.counters.Dropped++
			p.log.Warn("the result of a task is dropped: no application waits for it", "pool", p.config.Name, "executor",
				m.number, "stage", h.Stage, "task", h.Task)
			p.goesOn(m)
		} else {
			p.orphans[place{h.Key, h.Stage, h.Task}] = full
		}
		return
	}
	p.counters.Repeated++
}

// answer answers the request of an executor that waits, if there is something to do.
func (p *Pool) answer(m *member) {
	if m.waiting == nil {
		return
	}
	switch w := m.work; {
	case p.serve(m):
	case w != nil && (w.app.driving != nil || !w.delivered && p.crowded(w.app)):
		return
	case w != nil:
		if w.delivered {
			p.counters.Repeated++
		}
		w.delivered = true
		a := w.app
		m.waiting <- answer{work: executor.Work{Do: executor.DoRun, Work: w.id, Application: int64(a.id), Name: a.name,
			Fresh: a.fresh, Size: len(w.task.arguments), Task: executor.Held{Key: a.key, Stage: w.task.stage,
				Task: w.task.index, Run: w.task.run},
			Function: a.stages[w.task.stage].function, Path: a.stages[w.task.stage].path}, arguments: w.task.arguments}
	case m.draining != "" && m.earlier == nil:
		m.waiting <- answer{work: executor.Work{Do: executor.DoEnd, Why: m.draining}}
		m.waiting = nil
		p.leave(m, executor.CauseTaken, m.draining)
		return
	default:
		return
	}
	m.waiting, m.expires = nil, p.renew()
}

// Beat keeps the lease of an executor while it runs a task, and says whether the task is still wanted.
func (p *Pool) Beat(ctx context.Context, number int, b executor.Beat) (out executor.BeatAnswer, err error) {
	err = p.do(ctx, func() error {
		m, err := p.holder(number, b.Lease)
		if err != nil {
			return err
		}
		if m.waiting == nil {
			m.expires = p.renew()
		}
		m.memory = cmp.Or(b.Memory, m.memory)
		out.Cancel = m.work != nil && m.work.id == b.Work && m.work.cancelled != 0
		return nil
	})
	return out, err
}

// Drain makes an executor end as soon as it has no task. The error is ErrNotFound.
func (p *Pool) Drain(ctx context.Context, number int, why string) error {
	return p.do(ctx, func() error {
		m := p.members[number]
		if m == nil {
			return fmt.Errorf("executor %d: %w", number, ErrNotFound)
		}
		if m.draining == "" {
			m.draining = why
			p.pause(m, why)
		}
		if w := m.work; w != nil && w.app.driving != nil && w.cancelled == 0 {
			p.ask(m, w, why)
		}
		p.answer(m)
		return nil
	})
}

// Left says that the process of an executor has ended, why, and how, for people; empty if that is not known. It
// returns whether the executor has received a task, as far as the pool knows.
func (p *Pool) Left(ctx context.Context, number int, cause executor.Cause, how string) (served bool, err error) {
	err = p.do(ctx, func() error {
		if m := p.members[number]; m != nil {
			served = m.tasks > 0 || m.work != nil && m.work.delivered || m.earlier != nil
			p.depart(m, api.ExecutorLost, cause, "its process ended", how)
		}
		return nil
	})
	return served, err
}

// abandoned is an application whose lease has ended.
type abandoned struct {
	api.PoolApplication
	at timeline.Time
}

// departed is an executor that was lost.
type departed struct {
	api.PoolMember
	at timeline.Time
}

// Limits of what was lost and is shown, of executors and of applications: their number, and for how long.
const (
	mostDeparted  = 16
	departedShown = 5 * time.Minute
)

// depart forgets an executor that did not end as ordered, and keeps what it did for people to see. how it ended is
// empty if that is not known.
func (p *Pool) depart(m *member, as api.ExecutorState, cause executor.Cause, why, how string) {
	now := p.loop.Now()
	e := p.viewOf(m, now)
	if e.State != api.ExecutorDraining {
		if e.State == api.ExecutorAttached {
			why += " while it ran a task"
		}
		if how != "" {
			why += ": " + how
		}
		e.State, e.Why = as, why
		p.departed = slices.DeleteFunc(p.departed, func(d departed) bool { return d.Executor == m.number })
		p.departed = append(p.departed[max(0, len(p.departed)+1-mostDeparted):], departed{e, now})
	}
	p.leave(m, cause, why)
}

// leave forgets an executor. What it runs is lost, and runs again elsewhere, unless too many attempts were lost.
func (p *Pool) leave(m *member, cause executor.Cause, why string) {
	delete(p.members, m.number)
	delete(p.nodes, m.node)
	if m.waiting != nil {
		m.waiting <- answer{err: fmt.Errorf("executor %d: %w", m.number, ErrGone)}
	}
	if w := m.work; w != nil {
		m.work = nil
		p.lose(m, w, cause, why)
	}
	p.freeNodes = append(p.freeNodes, m.node)
	p.loop.Event(cluster.Event{Kind: cluster.NodeLeft, Node: m.node})
}
