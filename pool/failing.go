package pool

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/executor"
)

// failing is what is known of the attachments of an application that have failed in a row. Executors are attached to it
// again after a pause that grows, and others rather than those on which it failed; meanwhile they are free for other
// applications. It is cancelled when attachments fail on several executors and for a while: neither a broken executor
// nor a short loss of the network ends an application.
type failing struct {
	count  int           // attachments in a row that have failed
	since  timeline.Time // when the first of them did
	on     map[int]bool  // on which executors
	pauses int           // so far
	until  timeline.Time // when the pause ends; 0 if there is none
	last   string        // the newest error
}

// When an application is cancelled whose attachments fail, and how long the pauses are before.
const (
	failsFor     = 5 * time.Second
	failsOn      = 2 // executors, if the pool has that many
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// failed counts an attachment that has failed. One that fails during a pause was attached before it.
func (f *failing) failed(now timeline.Time, number int, why string) {
	if f.count++; f.count == 1 {
		f.since, f.on = now, map[int]bool{}
	}
	f.on[number], f.last = true, why
	if f.until == 0 {
		f.until = now.Add(min(firstPause<<min(f.pauses, 10), longestPause))
		f.pauses++
	}
}

// countFailure takes the end of an attachment into account that executor m or the application has reported. It cancels
// an application to which executors cannot be attached.
func (p *Pool) countFailure(a *application, m *member, w *work, r *executor.Report) {
	f := &a.driving.failing
	if a.cancelled != "" || f.count == 0 && !r.Failed {
		return
	}
	if !r.Failed {
		if w.delivered { // or the executor did not even try
			p.worked(a)
		}
		return
	}
	now := p.loop.Now()
	f.failed(now, m.number, r.Error)
	p.check = min(p.check, f.until)
	p.suits(m, a)
	p.demandAgain(a)
	if f.count >= a.attempts && now.Sub(f.since) >= failsFor && p.failsEverywhere(a) {
		p.cancel(a, fmt.Sprintf("%d attachments of executors in a row have failed, in %v and on %d of the executors; the "+
			"last: %s", f.count, now.Sub(f.since).Round(100*time.Millisecond), len(f.on), f.last))
	}
}

// worked forgets what has failed before.
func (p *Pool) worked(a *application) {
	on := a.driving.failing.on
	a.driving.failing = failing{}
	for number := range on {
		if m := p.members[number]; m != nil {
			p.suits(m, a)
		}
	}
	p.demandAgain(a)
}

// failsEverywhere reports whether attachments of an application have failed on as many executors as are enough to blame
// it, and none has lasted since before.
func (p *Pool) failsEverywhere(a *application) bool {
	f, alive := &a.driving.failing, 0
	for _, m := range p.members {
		if m.draining == "" {
			alive++
		}
		if w := m.work; w != nil && w.app == a && w.delivered && w.begun < f.since {
			return false
		}
	}
	return len(f.on) >= min(failsOn, alive)
}

// endPause lets executors be attached to an application again, when its pause is over.
func (p *Pool) endPause(now timeline.Time, a *application) {
	switch d := a.driving; {
	case d == nil || d.failing.until == 0:
	case now < d.failing.until:
		p.check = min(p.check, d.failing.until)
	default:
		d.failing.until = 0
		p.demandAgain(a)
	}
}

// demandAgain tells the engine what an application demands now that it pauses, or does not any more.
func (p *Pool) demandAgain(a *application) {
	if a.closed || a.cancelled != "" {
		return
	}
	growth := &cluster.Growth{}
	for n, s := range a.stages {
		if s.demand > 0 {
			growth.Demands = append(growth.Demands, cluster.Demand{Stage: n, Tasks: a.demands(n, s.demand)})
		}
	}
	if len(growth.Demands) > 0 {
		p.grown(a, growth)
	}
}

// demands is how many executors of those that an application demands for a stage may be attached to it now: during a
// pause, those that are.
func (a *application) demands(stage, executors int) int {
	if a.driving.failing.until == 0 {
		return executors
	}
	attached := 0
	for _, m := range a.driving.attached {
		if m.work.task.stage == stage {
			attached++
		}
	}
	return min(executors, attached)
}
