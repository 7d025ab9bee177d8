package scenarios

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// phased reports whether the policy grants tasks what each phase demands.
func (a *auditor) phased() bool {
	return a.c.name == "ecs" && a.flag("overcommit") == "true" || a.c.name == "prism" ||
		a.c.name == "contention-aware" || a.flag("level") == "on"
}

// stops reports whether the policy stops tasks by itself.
func (a *auditor) stops() bool {
	return a.c.name == "ecs" && (a.flag("leveling") == "true" || a.flag("memory") != "ideal") ||
		a.c.name == "prism" || a.flag("level") == "on"
}

// memoryByPhase reports whether the tasks of a stage are granted the memory that each phase demands.
func (a *auditor) memoryByPhase(j *auditedJob, s *cluster.Stage) bool {
	return a.c.name == "ecs" && a.flag("memory") != "ideal" && j.Class == cluster.Flex && s.HeartbeatTimeout == 0 &&
		s.Peak()[resource.Memory] > 0
}

// grantsByPhase returns what the tasks of a stage are granted in each phase that lasts; nil if it is their ideal need
// throughout.
func (a *auditor) grantsByPhase(j *auditedJob, s *cluster.Stage) (grants []resource.Vector) {
	total, most := 0.0, resource.Amount(0)
	for _, p := range s.Phases {
		total += p.Duration.Seconds()
		most = max(most, p.Demand[resource.CPU])
		grant := s.Ideal.With(resource.CPU, min(s.Ideal[resource.CPU], max(1, p.Demand[resource.CPU])))
		if a.memoryByPhase(j, s) {
			grant[resource.Memory] = max(cluster.LeastRunMemory, p.Demand[resource.Memory])
		}
		if p.Duration > 0 {
			grants = append(grants, grant)
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

// startsPhased reports whether a task starts with what its first phase demands or, if it is short, with what its
// largest does.
func (a *auditor) startsPhased(d *cluster.Decision, j *auditedJob, s *cluster.Stage) bool {
	grants := a.grantsByPhase(j, s)
	if grants == nil {
		return false
	}
	want := grants[0]
	if d.Reason.Code == cluster.FitsShort && a.flag("short") == "true" {
		for _, g := range grants {
			want[resource.CPU] = max(want[resource.CPU], g[resource.CPU])
		}
		want[resource.Memory] = s.Ideal[resource.Memory]
	}
	return d.Grant == want && d.ByPhase == (d.Reason.Code == cluster.FitsFirstPhase)
}

// weighs checks the most CPU that a container may use: its grant, unless the policy grants CPU as a weight.
func (a *auditor) weighs(d *cluster.Decision) {
	s, want := &a.jobs[d.Task.Job].Stages[d.Task.Stage], resource.Amount(0)
	if a.weighsCPU() {
		want = min(s.Ideal[resource.CPU], a.nodes[d.Node].Capacity[resource.CPU])
	}
	if got := d.Envelope.MostCPU; got != want {
		a.fail("%s of task %s permits it %d millicores, want %d", d.Kind, d.Task, got, want)
	}
}

// weighsCPU reports whether the policy grants CPU as a weight.
func (a *auditor) weighsCPU() bool {
	return a.phased() && (a.flag("cpu") == "weight" || a.c.name == "bellows")
}

// resizesPhased reports whether a running task is granted what one of its phases demands, or the memory of the phase
// that the reason names, which should begin soon. Of memory it may be less, or what it has, if there is nothing that
// it could wait for.
func (a *auditor) resizesPhased(d *cluster.Decision, t *auditedTask) (known bool) {
	n, j := a.nodes[d.Node], a.jobs[d.Task.Job]
	s := &j.Stages[d.Task.Stage]
	for _, g := range a.grantsByPhase(j, s) {
		cpu, memory, most := min(g[resource.CPU], n.Capacity[resource.CPU]), d.Grant[resource.Memory], g[resource.Memory]
		if d.Reason.Code == cluster.PhaseAhead {
			most = max(cluster.LeastRunMemory, s.Phases[d.Reason.A-1].Demand[resource.Memory])
		}
		known = known || cpu == d.Grant[resource.CPU] && (memory == most || a.memoryByPhase(j, s) && memory < most ||
			a.flag("renew") == "on" && memory == a.wanted(t)[resource.Memory])
	}
	if is, to := a.wanted(t)[resource.CPU], d.Grant[resource.CPU]; s.Told.Samples > 0 && a.weighsCPU() && to != is &&
		max(is-to, to-is) < max(is/8, 50) && d.Grant[resource.Memory] == a.wanted(t)[resource.Memory] {
		a.fail("task %s, whose phases are learned, gets %d millicores instead of %d", d.Task, to, is)
	}
	return known && d.Grant == t.grant.With(resource.CPU, d.Grant[resource.CPU]).With(resource.Memory,
		d.Grant[resource.Memory]) && (d.Grant != t.grant || d.Grant != t.wants.Grant)
}

// lacksMemory reports whether a task may come before others on a node: it is granted the memory of a phase that is
// not its largest.
func (a *auditor) lacksMemory(n cluster.NodeID) bool {
	for _, j := range a.jobs {
		for _, t := range j.tasks {
			if s := &j.Stages[t.id.Stage]; t.node == n && (t.state == booked || t.state == running) &&
				t.grant[resource.Memory] < s.Ideal[resource.Memory] {
				return true
			}
		}
	}
	return false
}
