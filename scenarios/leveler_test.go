package scenarios

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// suspension is a time for which leveling holds a task, if it runs when that begins, so that another task keeps going.
type suspension struct {
	task      cluster.TaskID
	at, until timeline.Time
	forTask   cluster.TaskID
}

// resizing is a change of the grant of a task, if it runs then and there is room for its memory.
type resizing struct {
	task  cluster.TaskID
	at    timeline.Time
	to    resource.Vector // 0 of a resource that stays what it is
	fails bool
}

// of returns the grant of a task that had another one.
func (r *resizing) of(grant resource.Vector) resource.Vector {
	for k, a := range r.to {
		if a > 0 {
			grant[k] = a
		}
	}
	return grant
}

// resizingOf returns the resizing of a task that was last due.
func (s *scenario) resizingOf(task cluster.TaskID, now timeline.Time) (last resizing) {
	for _, r := range s.resizings {
		if r.task == task && r.at <= now && r.at >= last.at {
			last = r
		}
	}
	return last
}

// intervention is an order about a task at a time that a scenario gives, if the task runs then.
type intervention struct {
	task cluster.TaskID
	at   timeline.Time
	wake cluster.Reason
	do   func(p *book.Plan, t *book.TaskState, origin timeline.Time)
}

// interventions returns the orders that s gives, by time.
func (s *scenario) interventions() (all []intervention) {
	for _, h := range s.suspensions {
		all = append(all, intervention{h.task, h.at, cluster.Because(cluster.LevelingEnds),
			func(p *book.Plan, t *book.TaskState, origin timeline.Time) {
				p.SuspendUntil(t, origin+h.until, h.forTask, cluster.BecauseNodePressure(resource.CPU, resource.Core,
					resource.Core))
			}})
	}
	for _, r := range s.resizings {
		all = append(all, intervention{r.task, r.at, cluster.Because(cluster.EstimatesDue),
			func(p *book.Plan, t *book.TaskState, _ timeline.Time) {
				want := r.of(t.WantedGrant())
				if more := want[resource.Memory] - t.Grant[resource.Memory]; want.FitsIn(t.Node.Room()) &&
					more <= max(0, t.Node.Unused()[resource.Memory]) {
					p.Resize(t, want, cluster.BecausePhaseDemands(0, want))
				}
			}})
	}
	slices.SortStableFunc(all, func(a, b intervention) int { return int(a.at - b.at) })
	return all
}

// leveler is a policy that gives orders about running tasks in addition, as a scenario says.
type leveler struct {
	policy.Policy
	s      *scenario
	coming []intervention // by time; nil before the origin is known
	origin timeline.Time
	begun  bool
}

// policy returns a policy for a run of s.
func (s *scenario) policy(t tester, c choice) policy.Policy {
	t.Helper()
	p := c.make(t)
	if len(s.suspensions)+len(s.resizings) > 0 {
		p = &leveler{Policy: p, s: s}
	}
	if s.asks && c.name != "ecs" && c.name != "bellows" { // which follows answers, and asks by itself
		p = asking{p}
	}
	return p
}

func (l *leveler) Traits() policy.Traits {
	t := l.Policy.Traits()
	t.Stops = true
	return t
}

func (l *leveler) Decide(now timeline.Time, p *book.Plan) {
	if !l.begun && len(p.Jobs) > 0 {
		j := p.Jobs[0]
		l.begun, l.origin = true, j.Submitted-l.s.jobs[j.ID-1].Submitted
		l.coming = l.s.interventions()
		for i := range l.coming {
			if at := l.origin + l.coming[i].at; at > now {
				p.Wake(at, l.coming[i].wake)
			}
		}
	}
	for len(l.coming) > 0 && l.origin+l.coming[0].at <= now {
		next := l.coming[0]
		l.coming = l.coming[1:]
		if j, here := p.Job(next.task.Job); here {
			if at := slices.IndexFunc(j.Tasks, func(t *book.TaskState) bool { return t.ID == next.task && t.Running }); at >= 0 {
				next.do(p, j.Tasks[at], l.origin)
			}
		}
	}
	l.Policy.Decide(now, p)
}
