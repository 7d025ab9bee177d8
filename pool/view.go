package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// View is what people see of a pool.
type View struct {
	Policy       string                `json:"policy"`
	Synced       bool                  `json:"synced"` // false: the pool waits for executors of an earlier daemon
	Executors    []api.PoolMember      `json:"executors"`
	Applications []api.PoolApplication `json:"applications"`
	Counters     api.PoolCounters      `json:"counters"`
	Broken       string                `json:"broken,omitempty"` // why nothing more is decided
}

// View returns what people see.
func (p *Pool) View(ctx context.Context) (v View, err error) {
	err = p.do(ctx, func() error {
		now := p.loop.Now()
		v = View{Policy: p.config.Policy.Name(), Synced: p.synced, Counters: p.counters}
		if p.broken != nil {
			v.Broken = p.broken.Error()
		}
		for _, m := range p.members {
			v.Executors = append(v.Executors, p.viewOf(m, now))
		}
		for i := range p.departed {
			e := p.departed[i].PoolMember
			if e.Gone = now.Sub(p.departed[i].at); e.Gone < departedShown && p.members[e.Executor] == nil {
				v.Executors = append(v.Executors, e)
			}
		}
		slices.SortFunc(v.Executors, func(a, b api.PoolMember) int { return a.Executor - b.Executor })
		for _, a := range p.apps {
			v.Applications = append(v.Applications, p.viewOfApplication(a, now))
		}
		for i := range p.abandoned {
			if a := &p.abandoned[i]; now.Sub(a.at) < departedShown {
				v.Applications = append(v.Applications, a.PoolApplication)
			}
		}
		slices.SortFunc(v.Applications, func(a, b api.PoolApplication) int { return int(a.Application - b.Application) })
		return nil
	})
	return v, err
}

func (p *Pool) viewOf(m *member, now timeline.Time) api.PoolMember {
	e := api.PoolMember{Executor: m.number, State: api.ExecutorRegistered, Language: m.language, PID: m.pid,
		Tasks:  m.tasks,
		Memory: m.memory}
	if m.tasks > 0 {
		e.State = api.ExecutorParked
	}
	n := &book.NodeState{} // unless the engine knows it already
	if nodes := p.loop.Engine().Snapshot().Nodes; int(m.node) < len(nodes) {
		n = nodes[m.node]
	}
	if n.ReservedFor != nil {
		e.State, e.Application = api.ExecutorAssigned, int64(n.ReservedFor.ID)
	}
	if m.why.Code != 0 && m.why.Code != cluster.Fits { // an executor takes any task: how much memory it has is no reason
		e.Why = words(m.why)
	}
	switch w := m.work; {
	case w != nil:
		e.State, e.Application, e.Stage, e.Task, e.Running = api.ExecutorAttached, int64(w.app.id), w.task.stage,
			w.task.index,
			now.Sub(w.begun)
		if until := n.KeptUntil; w.app.driving != nil && until > now {
			e.Why = words(cluster.BecauseKept(coming(n.ReservedFor), until))
		}
		if w.asked != "" {
			e.Why = w.asked
		}
		if w.app.cancelled != "" {
			e.Why = "its application was cancelled: " + w.app.cancelled
		}
		switch waits := !w.delivered && p.crowded(w.app); {
		case waits && w.app.driving != nil:
			e.Why = fmt.Sprintf("it is not attached yet: the application has to confirm the ends of %d attachments first",
				w.app.driving.unheard)
		case waits:
			e.Why = fmt.Sprintf("its task waits: the application has %d results that it has not collected", len(w.app.results))
		}
	case m.earlier != nil:
		e.State, e.Stage, e.Task, e.Why = api.ExecutorAttached, m.earlier.Stage, m.earlier.Task,
			"it runs a task that it got from an earlier daemon"
	default:
		e.Idle = now.Sub(m.idle)
	}
	switch k := n.PressedMost(); {
	case n.Pressed[k] > 0:
		e.Why = words(cluster.BecauseNodePressure(k, n.Pressed[k], n.Capacity[k]))
	case (m.why.Code == cluster.Assigned || m.why.Code == cluster.KeptForStage) && e.Application == 0:
		e.Why = "" // that application has ended
	}
	if m.draining != "" {
		e.State, e.Why = api.ExecutorDraining, m.draining
	}
	return e
}

// coming is the first stage of an application that has tasks and demands no executors yet.
func coming(j *book.JobState) int {
	stage := j.FirstLeft()
	for stage < len(j.Stages)-1 && j.Coming(stage) == 0 {
		stage++
	}
	return stage
}

func (p *Pool) viewOfApplication(a *application, now timeline.Time) api.PoolApplication {
	v := api.PoolApplication{Application: int64(a.id), Name: a.name, Waiting: a.left - a.running, Running: a.running,
		Ended: a.done, Results: len(a.results), Held: a.held, Drives: a.driving != nil, State: "open"}
	switch {
	case a.cancelled != "":
		v.State, v.Why, v.Waiting = "cancelled", a.cancelled, 0
	case a.ended():
		v.State = "ended"
	case a.closed:
		v.State = "closed"
	}
	jobs := p.loop.Engine().Snapshot().Jobs
	at, here := slices.BinarySearchFunc(jobs, a.id, func(j *book.JobState, id cluster.JobID) int { return int(j.ID - id) })
	if !here {
		return v
	}
	if v.Executors = jobs[at].Reservations; a.cancelled != "" {
		return v // The engine knows the reason for none of its tasks, and the application for all.
	}
	if d := a.driving; d != nil {
		for i := jobs[at].FirstLeft(); i < len(jobs[at].Stages); i++ {
			v.Waiting += jobs[at].MayStart(i)
		}
		for _, s := range a.stages {
			v.Demand += s.demand
		}
		for _, m := range d.attached {
			if m.work.asked != "" {
				v.Asked++
			}
		}
	}
	switch why, ok := p.loop.Engine().WhyWaits(now, jobs[at]); {
	case v.Waiting == 0 || p.broken != nil:
	case ok:
		v.Why = words(why)
	case len(p.members) == 0:
		v.Why = "no executor has registered"
	}
	if v.Drives && a.driving.failing.until > 0 {
		v.Why = fmt.Sprintf("pauses until %s, because the last %d attachments have failed; the last: %s",
			clock(a.driving.failing.until), a.driving.failing.count, a.driving.failing.last)
	}
	if v.Drives {
		v.Why = strings.TrimSuffix(fmt.Sprintf("starts its own tasks: demands %d, asked for %d; %s", v.Demand, v.Asked,
			v.Why), "; ")
	}
	return v
}

// words puts a reason into one clause for people, to whom the jobs and nodes of a pool's engine are applications and
// executors.
func words(r cluster.Reason) string {
	if r.Code == cluster.NoRoom { // A task needs a whole executor, and which part is not free is no reason.
		return "no executor is free"
	}
	return terms.Replace(r.Words(clock))
}

func clock(at timeline.Time) string { return time.Unix(0, int64(at)).Format(time.TimeOnly) }

// terms are those of a pool. What presses is the machine of the executors.
var terms = strings.NewReplacer("node pressure: the node gives", "it uses much of what is short: the machine gives",
	"a job", "an application", "job", "application", "a node", "an executor", "node", "executor")
