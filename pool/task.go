package pool

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/executor"
)

// report is what an executor reports of a run, with its payload.
type report struct {
	executor.Report
	result, output []byte
}

// result is the end of a task, with its payload.
type result struct {
	executor.Result
	result, output []byte
}

// start hands a task to an executor.
func (p *Pool) start(now timeline.Time, m *member, d *cluster.Decision) {
	a := p.apps[d.Task.Job]
	var t *task
	if a.driving != nil {
		t = &task{id: d.Task, stage: int(d.Task.Stage), index: int(d.Task.Index)}
	} else {
		t = a.stages[d.Task.Stage].tasks[d.Task.Index]
	}
	p.nextWork++
	w := &work{id: p.nextWork, app: a, task: t, begun: now, warm: m.ran[warmth(a, t)]}
	if m.last != 0 && m.last != a.id {
		p.counters.Switched++
	}
	if len(m.ran) < mostRan {
		m.ran[warmth(a, t)] = true
	}
	if p.config.Begins != nil && now.Sub(m.idle) >= RestFor {
		p.config.Begins(m.number)
	}
	p.pagedOut(m, 0) // until it is measured again
	m.work, m.last, m.why = w, a.id, d.Reason
	t.running = m
	t.run++
	a.running++
	p.counters.Started++
	p.loop.Event(cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: d.Task, Node: d.Node})
	if a.driving != nil {
		p.attach(m, w)
		return
	}
	p.answer(m)
}

// warmth names what an executor that has run a task does not have to do again.
func warmth(a *application, t *task) string {
	s := a.stages[t.stage]
	return s.path + "\x00" + s.function
}

// kill makes an executor end a task that is no longer wanted. One that has not received the task never runs it. An
// application that drives and has not ended is asked for the executor.
func (p *Pool) kill(now timeline.Time, m *member, d *cluster.Decision) {
	w := m.work
	if w == nil || w.task.id != d.Task {
		return
	}
	m.why = d.Reason
	if d.Preempt && w.delivered {
		p.ask(m, w, words(d.Reason))
		return
	}
	if w.delivered {
		w.cancelled = now
		if w.app.driving != nil {
			p.answer(m)
		}
		p.check = min(p.check, now.Add(p.config.Patience))
		return
	}
	m.work, m.idle = nil, now
	p.finish(m, w, report{Report: executor.Report{Cause: executor.CauseTaken}})
}

// finish records the end of a run, and of its task.
func (p *Pool) finish(m *member, w *work, r report) {
	a, t := w.app, w.task
	t.running = nil
	a.running--
	if m.still {
		p.pauseIfStill(m)
	}
	outcome := cluster.Succeeded
	if a.cancelled != "" {
		outcome = cluster.Killed
	}
	p.loop.Event(cluster.Event{Kind: cluster.TaskEnded, Task: t.id, Outcome: outcome})
	if a.driving != nil {
		p.detached(m, w, r.Failed, causeOf(a, &r.Report), r.Error)
		p.countFailure(a, m, w, &r.Report)
		return
	}
	if a.cancelled != "" {
		p.release(a, t)
		p.settle(a)
		return
	}
	p.record(a, t, r, executor.Result{Executor: m.number, Warm: w.warm, Waited: w.begun.Sub(t.since).Seconds()})
}

// record keeps the result of a task until it is confirmed. If it failed, and another stage needs it, the application
// is cancelled.
func (p *Pool) record(a *application, t *task, r report, about executor.Result) {
	p.hold(a, int64(len(r.result)+len(r.output))-int64(len(t.arguments)))
	t.arguments = nil
	a.left--
	s := a.stages[t.stage]
	s.left--
	s.tasks[t.id.Index] = nil
	delete(s.byIndex, t.index)
	a.done++
	a.number++
	about.Number, about.Stage, about.Task, about.Run = a.number, t.stage, t.index, t.run
	about.Failed, about.Error, about.Seconds = r.Failed, r.Error, r.Seconds
	about.Size, about.Output, about.Truncated = len(r.result), len(r.output), r.Truncated
	a.results = append(a.results, result{about, r.result, r.output})
	if r.Failed {
		s.failed = fmt.Sprintf("task %d of stage %d", t.index, t.stage)
		a.despair(s)
		p.cancelIfHopeless(a)
	}
	p.notify(a)
	p.settle(a)
}

// lose records that the executor of a run was lost. The task runs again, unless it has lost too many executors: then
// it has failed, so that a task that kills its executors cannot do so forever. A task that was not handed over has
// not run.
func (p *Pool) lose(m *member, w *work, cause executor.Cause, why string) {
	a, t := w.app, w.task
	t.running = nil
	a.running--
	if w.delivered {
		p.counters.Lost++
		t.lost++
	} else {
		t.run--
	}
	switch {
	case a.driving != nil:
		p.detached(m, w, true, cause, "the executor was lost: "+why)
	case a.cancelled != "":
		p.release(a, t)
		p.settle(a)
	case t.lost >= a.attempts:
		p.loop.Event(cluster.Event{Kind: cluster.TaskEnded, Task: t.id, Outcome: cluster.Succeeded})
		p.record(a, t, report{Report: executor.Report{Failed: true,
			Error: fmt.Sprintf("its executor was lost %d times; the last time, %s", t.lost, why)}},
			executor.Result{Executor: m.number})
	}
}
