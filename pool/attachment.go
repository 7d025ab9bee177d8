package pool

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/executor"
)

// An application that drives starts its own tasks. What its executors run is an attachment, which the engine knows as
// a task, and the pool as a run of it. An executor reports what it serves and gets the differences, so the next
// message makes up for a lost one; an application gets numbered changes, which are repeated until it confirms them.
// An attachment keeps its number in later daemons: executor and application know it by that.

// driving is what only an application that drives has.
type driving struct {
	attach   []byte            // what attached executors are to know
	attached map[int64]*member // by the numbers of attachments
	// from before it enrolled, until it is known whether their executors have come back
	holds   map[int64]executor.Attachment
	found   map[int]int32     // how many of them were found, by stage
	failing failing           // attachments that have failed
	changes []executor.Change // that were not confirmed
	unheard int               // of them, ends of attachments
}

// known is what an executor last said of its attachment.
type known struct {
	attached int64
	released bool
	keeps    []string
}

// mostKept bounds the applications of which an executor is known to keep something.
const mostKept = 1024

// keeps takes what an executor says that it keeps. It tells the engine, which attaches executors to an application
// that keep something of it rather than others.
func (p *Pool) keeps(m *member, keys []string) {
	keys = keys[:min(len(keys), mostKept)]
	was := m.knows.keeps
	m.knows.keeps = keys
	if slices.Equal(was, keys) {
		return
	}
	for _, key := range was {
		if !slices.Contains(keys, key) {
			p.suits(m, p.byKey[key])
		}
	}
	for _, key := range keys {
		if !slices.Contains(was, key) {
			p.suits(m, p.byKey[key])
		}
	}
}

// suits tells the engine how an executor suits an application. a is nil if it is not here.
func (p *Pool) suits(m *member, a *application) {
	if a == nil || a.ended() || a.driving == nil {
		return
	}
	e := cluster.Event{Kind: cluster.NodeSuits, Node: m.node, Job: a.id}
	e.SetCondition(cluster.Condition{Keeps: slices.Contains(m.knows.keeps, a.key), Fails: a.driving.failing.on[m.number]})
	p.loop.Event(e)
}

// keptFrom tells the engine which executors keep something of an application that enrols again.
func (p *Pool) keptFrom(a *application) {
	for _, m := range p.members {
		if slices.Contains(m.knows.keeps, a.key) {
			p.suits(m, a)
		}
	}
}

// attach begins an attachment that the engine has started.
func (p *Pool) attach(m *member, w *work) {
	a := w.app
	a.driving.attached[w.id] = m
	a.left++
	p.change(m, w, executor.Change{What: executor.Assigned})
	if !m.attaches {
		m.work = nil
		p.finish(m, w, report{Report: executor.Report{Failed: true, Cause: executor.CauseRefused,
			Error: fmt.Sprintf("executor %d cannot be attached: its program does not serve applications that start their "+
				"own tasks", m.number)}})
		return
	}
	p.answer(m)
}

// ask asks an application for an executor, and tells the executor.
func (p *Pool) ask(m *member, w *work, why string) {
	if w.asked != "" {
		return
	}
	w.asked = why
	p.change(m, w, executor.Change{What: executor.AskedFor, Why: why})
	p.answer(m)
}

// change tells an application what has happened to an attachment of it.
func (p *Pool) change(m *member, w *work, c executor.Change) {
	c.Attachment = executor.Attachment{Attachment: w.id, Executor: m.number, Stage: w.task.stage}
	p.tell(w.app, c)
}

// tell gives a change its number, and keeps it until the application confirms it. An application that confirms none
// is cancelled.
func (p *Pool) tell(a *application, c executor.Change) {
	a.number++
	c.Number = a.number
	a.driving.changes = append(a.driving.changes, c)
	if c.What == executor.Ended {
		a.driving.unheard++
	}
	p.notify(a)
	if n := len(a.driving.changes); n >= MostChanges {
		p.cancel(a, fmt.Sprintf("it has not confirmed %d changes of what it holds", n))
	}
}

// detached records the end of an attachment, for whatever reason.
func (p *Pool) detached(m *member, w *work, failed bool, cause executor.Cause, why string) {
	a := w.app
	delete(a.driving.attached, w.id)
	a.left--
	a.done++
	p.change(m, w, executor.Change{What: executor.Ended, Failed: failed, Cause: cause, Why: why})
	if a.driving.failing.until > 0 {
		p.demandAgain(a)
	}
	p.settle(a)
}

// reported are the causes that only an executor knows.
var reported = []executor.Cause{executor.CauseMemory, executor.CauseUnreachable, executor.CauseRefused}

// causeOf is why an attachment ends of which an executor reports the end, or the pool in its place.
func causeOf(a *application, r *executor.Report) executor.Cause {
	switch {
	case a.cancelled != "":
		return executor.CauseTaken
	case !r.Failed, slices.Contains(reported, r.Cause):
		return r.Cause
	}
	return executor.CauseFailed
}

// givesBack ends attachments that their application has ended. Those that have ended already change nothing.
func (p *Pool) givesBack(a *application, numbers []int64) {
	for _, n := range numbers {
		m := a.driving.attached[n]
		if m == nil {
			p.counters.Repeated++
			continue
		}
		w := m.work
		m.work, m.idle = nil, p.loop.Now()
		m.tasks++
		p.finish(m, w, report{})
		p.answer(m)
	}
}

// holdsFromBefore records what an application says it holds from before it enrolled.
func (p *Pool) holdsFromBefore(a *application, held []executor.Attachment) {
	for _, h := range held {
		a.driving.holds[h.Attachment] = h
	}
	for _, m := range p.members {
		if m.earlier != nil && m.earlier.Key == a.key {
			p.adopt(m)
		}
	}
	if p.synced {
		p.dropHolds(a, executor.CauseTaken)
	}
}

// awaitsDriver reports whether an executor serves an application that has not said yet what it holds.
func (p *Pool) awaitsDriver() bool {
	for _, m := range p.members {
		if m.earlier != nil && m.earlier.Attachment != 0 {
			if a := p.byKey[m.earlier.Key]; a == nil || a.growths == 0 && !a.ended() {
				return true
			}
		}
	}
	return false
}

// adoptAttachment continues what an executor has served since before it registered, if its application says the same;
// only until the pool is synced.
func (p *Pool) adoptAttachment(m *member, a *application) {
	e := m.earlier
	h, held := a.driving.holds[e.Attachment]
	if !held || h.Executor != m.number || h.Stage != e.Stage || h.Stage < 0 || h.Stage >= len(a.stages) {
		return
	}
	delete(a.driving.holds, e.Attachment)
	t := &task{id: cluster.TaskID{Job: a.id, Stage: int32(h.Stage), Index: a.driving.found[h.Stage]}, stage: h.Stage,
		index: int(a.driving.found[h.Stage]), running: m, run: 1}
	a.driving.found[h.Stage]++
	m.work = &work{id: e.Attachment, app: a, task: t, begun: p.loop.Now(), delivered: true}
	m.earlier, m.last = nil, a.id
	m.knows.attached = e.Attachment
	a.driving.attached[e.Attachment] = m
	a.running, a.left = a.running+1, a.left+1
	p.loop.Event(cluster.Event{Kind: cluster.TaskAdopted, Node: m.node, Task: t.id, Grant: need, Launched: m.work.begun})
	p.change(m, m.work, executor.Change{What: executor.Assigned, Why: "it has gone on"})
}

// dropHolds tells an application which of its attachments from before it enrolled have ended: because their executors
// have not come back in time, or because it has not.
func (p *Pool) dropHolds(a *application, cause executor.Cause) {
	for _, n := range slices.Sorted(maps.Keys(a.driving.holds)) {
		p.tell(a, executor.Change{What: executor.Ended, Attachment: a.driving.holds[n], Cause: cause,
			Why: "its executor has not come back, or serves it no more"})
	}
	clear(a.driving.holds)
}

// serve answers the request of an executor that serves an application that drives, or has done so. It reports whether
// it had an answer.
func (p *Pool) serve(m *member) bool {
	w, knows := m.work, &m.knows
	switch {
	case m.earlier != nil:
		return false
	case w != nil && w.app.driving != nil && w.cancelled == 0 && knows.attached != w.id &&
		(w.delivered || !p.crowded(w.app)):
		if w.delivered {
			p.counters.Repeated++
		}
		w.delivered = true
		a := w.app
		s := a.stages[w.task.stage]
		m.waiting <- answer{work: executor.Work{Do: executor.DoAttach, Work: w.id, Application: int64(a.id), Name: a.name,
			Fresh: a.fresh, Size: len(a.driving.attach), Task: executor.Held{Key: a.key, Stage: w.task.stage,
				Task: w.task.index, Run: w.task.run, Attachment: w.id},
			Function: s.function, Path: s.path}, arguments: a.driving.attach}
	case w != nil && w.id == knows.attached && w.cancelled == 0 && w.asked != "" && !knows.released:
		m.waiting <- answer{work: executor.Work{Do: executor.DoRelease, Work: w.id, Why: w.asked}}
	case knows.attached != 0 && (w == nil && m.draining == "" || w != nil && w.cancelled != 0):
		m.waiting <- answer{work: executor.Work{Do: executor.DoPark, Work: knows.attached}}
	default:
		i := slices.IndexFunc(knows.keeps, func(key string) bool {
			a := p.byKey[key] // nil may still enrol again while there is grace
			return p.synced && (a == nil && p.loop.Now() >= p.syncAt || a != nil && a.ended())
		})
		if i < 0 || w != nil && w.app.driving == nil {
			return false
		}
		m.waiting <- answer{work: executor.Work{Do: executor.DoForget, Task: executor.Held{Key: knows.keeps[i]}}}
	}
	return true
}

// letForget tells executors that wait that an application has ended.
func (p *Pool) letForget(a *application) {
	for _, m := range p.members {
		if slices.Contains(m.knows.keeps, a.key) {
			p.answer(m)
		}
	}
}
