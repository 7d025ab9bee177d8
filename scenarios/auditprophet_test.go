package scenarios

import (
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// together checks that of the tasks of a stage that start together all have been started that were waiting, and on as
// many nodes as possible.
func (a *auditor) together(decisions []cluster.Decision) {
	nodes := map[cluster.TaskID][]cluster.NodeID{} // by the stage
	for i := range decisions {
		if d := &decisions[i]; d.Kind == cluster.Start && a.jobs[d.Task.Job].Stages[d.Task.Stage].Together {
			stage := cluster.TaskID{Job: d.Task.Job, Stage: d.Task.Stage}
			nodes[stage] = append(nodes[stage], d.Node)
		}
	}
	for stage, on := range nodes {
		j := a.jobs[stage.Job]
		for _, t := range j.tasks {
			if t.id.Stage == stage.Stage && t.state == waiting {
				a.fail("task %s waits, and tasks of its stage, which start together, were started", t.id)
			}
		}
		servers := 0
		for _, n := range a.nodes {
			if j.Stages[stage.Stage].Ideal.FitsIn(n.Room()) {
				servers++
			}
		}
		most := (len(on) + servers - 1) / servers
		for _, n := range on {
			count := 0
			for _, m := range on {
				if m == n {
					count++
				}
			}
			if count > most {
				a.fail("%d of %d tasks of job %s start together on one of %d nodes", count, len(on), j.Name, servers)
			}
		}
	}
}

// conservingAhead checks that no task waits for a room that it has if every job is considered and none has a deadline.
func (a *auditor) conservingAhead() {
	deadlines := slices.ContainsFunc(a.s.jobs, func(j plannedJob) bool { return j.Deadline > 0 })
	if a.s.heartbeat > 0 || a.flag("window") != "1" || a.flag("deadline") != "0" || deadlines {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(a.jobs)) {
		j := a.jobs[id]
		stage, ok := j.next()
		if !ok {
			continue
		}
		if s := &j.Stages[stage]; s.Together || len(s.Phases) > 0 {
			continue // it may need room for several tasks
		}
		for _, n := range a.nodes {
			if j.Stages[stage].Ideal.FitsIn(a.free(n)) {
				a.fail("a task of job %s stage %d waits, but fits on node %s", j.Name, stage, n.Name)
			}
		}
	}
}

// gangFits reports whether the tasks of a stage that may have to start at once fit together with all coordinators.
func (a *auditor) gangFits(stage *cluster.Stage, coordinators resource.Vector) bool {
	servers, fit := 0, 0
	for _, n := range a.nodes {
		if stage.Ideal.FitsIn(n.Room()) {
			servers++
		}
	}
	executors := len(stage.Phases) > 0 && stage.Tasks <= servers
	if !stage.Together && !executors {
		return true
	}
	most := (stage.Tasks + servers - 1) / max(1, servers)
	if a.flag("distinct") == "strict" {
		most = 1
	}
	for _, n := range a.nodes {
		free := n.Room().Sub(coordinators)
		for times := 0; times < most && stage.Ideal.FitsIn(free); times++ {
			free, fit = free.Sub(stage.Ideal), fit+1
		}
	}
	return fit >= stage.Tasks
}
