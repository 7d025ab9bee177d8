package scenarios

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// conservingExecutors checks that no executor of mira is idle beside a task that fits there: not one that no job holds, and not one that the
// job of the task holds.
func (a *auditor) conservingExecutors() {
	for _, id := range slices.Sorted(maps.Keys(a.jobs)) {
		j := a.jobs[id]
		for stage := range j.Stages {
			if j.stopped || j.paused || !j.ready(stage) || a.backsOff(id) {
				continue
			}
			for _, n := range a.nodes {
				holder, held := a.kept[n.ID]
				if !a.busy(n.ID) && (!held || holder == id) && j.Stages[stage].Ideal.FitsIn(a.free(n)) {
					a.fail("a task of job %s stage %d waits, but node %s is idle", j.Name, stage, n.Name)
				}
			}
		}
	}
}

// backsOff reports whether a job may have fewer executors than it could use, because it had a task on a node that was pressed.
func (a *auditor) backsOff(id cluster.JobID) bool {
	until, ok := a.backs[id]
	return ok && a.now < until
}

// pressedJobs notes the jobs that back off because a node is pressed.
func (a *auditor) pressedJobs(id cluster.NodeID) {
	lasts, err := time.ParseDuration(a.flag("backoff"))
	if err != nil || a.pressed[id] == (resource.Vector{}) {
		return
	}
	for _, j := range a.jobs {
		for _, t := range j.tasks {
			if t.node == id && (t.state == booked || t.state == running) {
				a.backs[j.ID] = a.now.Add(lasts)
			}
		}
	}
}

// withinQueues checks that no queue of mira holds more executors than it may.
func (a *auditor) withinQueues() {
	for _, item := range strings.Split(a.flag("queues"), ",") {
		name, text, _ := strings.Cut(item, "=")
		_, most, limited := strings.Cut(text, "..")
		if !limited || most == "" {
			continue
		}
		held := 0
		for _, job := range a.kept {
			if of := cmp.Or(a.jobs[job].Queue, "default"); of == name || strings.HasPrefix(of, name+".") {
				held++
			}
		}
		if limit, err := strconv.Atoi(most); err != nil || held > limit {
			a.fail("queue %s holds %d executors, and may hold %s", name, held, most)
		}
	}
}

// executor checks that a task of mira starts on an executor of its job that does nothing else.
func (a *auditor) executor(d *cluster.Decision) {
	if a.jobs[d.Task.Job].Stages[d.Task.Stage].Coordinator {
		return // needs no executor
	}
	if holder, held := a.kept[d.Node]; !held || holder != d.Task.Job {
		a.fail("task %s is started on node %d, which its job does not hold", d.Task, d.Node)
	}
	a.withinQueues()
	if a.busy(d.Node) {
		a.fail("task %s is started on node %d, where a task runs", d.Task, d.Node)
	}
}

// busy reports whether a task other than a coordinator is booked or runs on a node.
func (a *auditor) busy(id cluster.NodeID) bool {
	for _, j := range a.jobs {
		for _, t := range j.tasks {
			if t.node == id && !j.Stages[t.id.Stage].Coordinator && (t.state == booked || t.state == running) {
				return true
			}
		}
	}
	return false
}
