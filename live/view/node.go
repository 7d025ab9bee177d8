// Package view puts what an engine knows into the types of package api, and into words.
package view

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/drive"
)

// Stage returns the view of a stage that has not started.
func Stage(j *cluster.Job, i int) api.Stage {
	s := j.Stages[i]
	s.Command = cluster.Command{Timeout: s.Timeout}
	return api.Stage{Stage: s, Class: j.Class, Pending: s.Tasks, Elasticity: s.Elasticity.String(),
		CPUMillicores: int64(s.Ideal[resource.CPU]), IdealBytes: int64(s.Ideal[resource.Memory]),
		DurationSeconds: s.Duration.Seconds(), TimeoutSeconds: s.Timeout.Seconds()}
}

// Grant returns the view of a grant.
func Grant(g resource.Vector) api.Grant {
	return api.Grant{CPUMillicores: int64(g[resource.CPU]), MemoryBytes: int64(g[resource.Memory]),
		Disk: int64(g[resource.Disk]), Network: int64(g[resource.Network])}
}

// Node returns the view of a node whose containers have not been measured.
func Node(n *book.NodeState) api.Node {
	free := n.Spare().Max(resource.Vector{})
	known := func(k resource.Kind) *int64 {
		if n.Unknown.Has(k) {
			return nil
		}
		return new(int64(free[k]))
	}
	return api.Node{Name: n.Name, CPU: int64(n.Capacity[resource.CPU]), Memory: int64(n.Capacity[resource.Memory]),
		FreeCPU: int64(free[resource.CPU]), OverdrawnCPU: int64(n.Overdrawn()[resource.CPU]),
		FreeMemory: int64(free[resource.Memory]), LeftMemory: int64(n.Available()), HeldMemory: int64(n.Held),
		LeftoverMemory: int64(n.Leftover), OverdrawnMemory: max(0, -int64(n.Spare()[resource.Memory])),
		FreeDisk: known(resource.Disk), FreeNetwork: known(resource.Network), Disk: int64(n.Capacity[resource.Disk]),
		DiskGives: int64(n.Pressed[resource.Disk]), Network: int64(n.Capacity[resource.Network]),
		Unknown: n.Unknown.Fields(), Leveling: Leveling(n)}
}

func scheduleOf(a *cluster.Answer) *api.Schedule {
	if a == nil {
		return nil
	}
	return &api.Schedule{Value: a.Value, Bound: a.Bound, Gap: a.Gap(), Proved: a.Proved, States: a.States,
		Failed: a.Failed}
}

// Leveling returns the view of the newest question about n; nil if there was none.
func Leveling(n *book.NodeState) *api.Leveling {
	q := n.Asked
	if q == nil {
		return nil
	}
	l := &api.Leveling{Node: n.Name, Why: q.Why.Words(drive.OnClock), Asked: drive.Instant(q.At), Result: q.Words(),
		Newest: scheduleOf(q.Answer), Stale: q.Stale, Used: scheduleOf(n.Leveled)}
	if q.Answer != nil {
		l.Answered = drive.Instant(q.Answered)
	}
	return l
}

// Shifts returns when a task is to stand still later, by the answer about its node that was used last. A shift that
// has begun is not among them: either the task is held until its end, or goes on because there is room again.
func Shifts(t *book.TaskState, now timeline.Time) (shifts []api.Shift) {
	if t.Node.Leveled == nil {
		return nil
	}
	for _, s := range t.Node.Leveled.Shifts {
		if s.Task == t.ID && s.From > now {
			shifts = append(shifts, api.Shift{From: drive.Instant(s.From), To: drive.Instant(s.To)})
		}
	}
	return shifts
}
