package scenarios

import (
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// phased reports whether the policy grants tasks what each phase demands.
func (a *auditor) phased() bool {
	return a.c.name == "ecs" && a.flag("overcommit") == "true" || a.c.name == "prism" || a.c.name == "contention-aware"
}

// stops reports whether the policy stops tasks by itself.
func (a *auditor) stops() bool {
	return a.c.name == "ecs" && a.flag("leveling") == "true" || a.c.name == "prism"
}

// cpuByPhase returns what CPU the tasks of a stage are granted in each phase that lasts; nil if it is their ideal need throughout.
func (a *auditor) cpuByPhase(s *cluster.Stage) (grants []resource.Amount) {
	ideal := s.Ideal[resource.CPU]
	total, most := 0.0, resource.Amount(0)
	for _, p := range s.Phases {
		total += p.Duration.Seconds()
		most = max(most, p.Demand[resource.CPU])
		if p.Duration > 0 {
			grants = append(grants, min(ideal, max(1, p.Demand[resource.CPU])))
		}
		if p.Demand[resource.Memory] > s.Ideal[resource.Memory] {
			return nil
		}
	}
	if !a.phased() || s.Coordinator || total == 0 || most == 0 {
		return nil
	}
	return grants
}

// startsPhased reports whether a task starts with what its first phase demands or, if it is short, with what its largest does.
func (a *auditor) startsPhased(d *cluster.Decision, s *cluster.Stage) bool {
	grants := a.cpuByPhase(s)
	if grants == nil || d.Grant != s.Ideal.With(resource.CPU, d.Grant[resource.CPU]) {
		return false
	}
	want := grants[0]
	if d.Reason.Code == cluster.FitsShort && a.flag("short") == "true" {
		for _, g := range grants {
			want = max(want, g)
		}
	}
	return d.Grant[resource.CPU] == want && d.ByPhase == (d.Reason.Code == cluster.FitsFirstPhase)
}

// resizesPhased reports whether a running task is granted what one of its phases demands.
func (a *auditor) resizesPhased(d *cluster.Decision, t *auditedTask) (known bool) {
	n := a.nodes[d.Node]
	for _, g := range a.cpuByPhase(&a.jobs[d.Task.Job].Stages[d.Task.Stage]) {
		known = known || min(g, n.Capacity[resource.CPU]) == d.Grant[resource.CPU]
	}
	return known && d.Grant == t.grant.With(resource.CPU, d.Grant[resource.CPU]) && d.Grant != t.grant
}
