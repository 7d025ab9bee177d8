package scenarios

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// conservingExecutors checks that no executor of mira is idle beside a task that fits there: not one that no job
// holds, not one that the job of the task holds, and one that another job holds only while that may keep it for a
// stage that is about to start.
func (a *auditor) conservingExecutors() {
	for _, id := range slices.Sorted(maps.Keys(a.jobs)) {
		j := a.jobs[id]
		for stage := range j.Stages {
			if j.stopped || j.paused || !j.ready(stage) || a.backsOff(id) || j.Drives && a.othersWait(j) {
				continue
			}
			for _, n := range a.nodes {
				holder, held := a.kept[n.ID]
				keeps := held && holder != id && a.now < a.until[n.ID] && a.coming(a.jobs[holder]) > 0
				if !a.busy(n.ID) && !keeps && j.Stages[stage].Ideal.FitsIn(a.free(n)) {
					a.fail("a task of job %s stage %d waits, but node %s is idle", j.Name, stage, n.Name)
				}
			}
		}
	}
	idle := map[cluster.JobID]int{}
	for n, holder := range a.kept {
		if !a.busy(n) {
			idle[holder]++
		}
	}
	for id, n := range idle {
		if j := a.jobs[id]; n > a.coming(j) {
			a.fail("job %s keeps %d nodes idle, for %d tasks", j.Name, n, a.coming(j))
		}
	}
}

// keepsIdle notes that a job keeps an executor that is idle, and checks that it may, and for so long.
func (a *auditor) keepsIdle(d *cluster.Decision) {
	until, tasks := timeline.Time(d.Reason.B), a.coming(a.jobs[d.Task.Job])
	a.until[d.Node] = until
	switch keep := a.flag("keep"); {
	case tasks == 0 || keep == "none":
		a.fail("node %d is kept for job %d, which has no stage that is about to start", d.Node, d.Task.Job)
	case keep == "next" && until != timeline.Never:
		a.fail("node %d is kept until %s", d.Node, seconds(until))
	case keep != "next":
		lasts, err := time.ParseDuration(keep)
		if a.jobs[d.Task.Job].Drives { // It may have kept the executor before it gave it back, for fewer tasks.
			tasks = 1
		}
		if most := a.idle[d.Node].Add(lasts / time.Duration(tasks)); err != nil || until > most {
			a.fail("node %d is kept until %s, and may be until %s for %d tasks", d.Node, seconds(until), seconds(most), tasks)
		}
	}
}

// keptInTime checks that no executor stayed idle for longer than a job may keep it, until the next step.
func (a *auditor) keptInTime(next timeline.Time) {
	for n, until := range a.until {
		if _, held := a.kept[n]; held && until < next && !a.busy(n) && a.s.heartbeat == 0 {
			a.fail("node %d is kept until %s, and longer", n, seconds(until))
		}
	}
}

// coming is how many tasks of a job wait for nothing but tasks that run. A job that starts its own says how many there
// will be, which may start some time after those of the stages before have ended.
func (a *auditor) coming(j *auditedJob) (n int) {
	if j.Drives {
		return a.toDemand(j)
	}
	left := func(stage int, states ...taskState) (n int) {
		for id, t := range j.tasks {
			if int(id.Stage) == stage && slices.Contains(states, t.state) {
				n++
			}
		}
		return n
	}
	for stage := range j.Stages {
		runs := 0
		for _, parent := range j.Stages[stage].Parents {
			if left(parent, waiting) > 0 {
				runs = 0
				break
			}
			runs += left(parent, booked, running)
		}
		if runs > 0 && !j.stopped && !j.paused {
			n += left(stage, waiting)
		}
	}
	return n
}

// othersWait reports whether tasks of other jobs wait: such a job is entitled to executors that are too small for it,
// and a job that starts its own tasks gets none above what it is entitled to.
func (a *auditor) othersWait(j *auditedJob) bool {
	for _, other := range a.jobs {
		if _, waits := other.next(); waits && other != j {
			return true
		}
	}
	return false
}

// heldForever reports whether an open job holds an executor for which it starts its own tasks: it may be the only one
// for others.
func (a *auditor) heldForever() bool {
	for _, j := range a.jobs {
		if j.Drives && j.Open && len(j.tasks) > 0 {
			return true
		}
	}
	return false
}

// attached counts the executors that are attached to a stage of a job that starts its own tasks.
func (j *auditedJob) attached(stage int, counts func(*auditedTask) bool) (n int) {
	for _, t := range j.tasks {
		if int(t.id.Stage) == stage && counts(t) {
			n++
		}
	}
	return n
}

// toDemand is coming for a job that starts its own tasks.
func (a *auditor) toDemand(j *auditedJob) (n int) {
	for stage := range j.Stages {
		parents := j.Stages[stage].Parents
		starts := len(parents) > 0 && !j.stopped && !j.paused
		for _, parent := range parents {
			demand, demanded := j.demands[parent]
			attached := j.attached(parent, func(t *auditedTask) bool { return t.state != waiting })
			starts = starts && attached >= demand && (demanded || j.Stages[parent].Tasks == 0)
		}
		if _, demanded := j.demands[stage]; starts && !demanded {
			n += j.Stages[stage].Tasks
		}
	}
	return n
}

// askedAtOnce checks that a job which starts its own tasks was asked for each executor that it does not demand, but for
// those that it may keep for a stage that is about to start, and for so long.
func (a *auditor) askedAtOnce() {
	lasts, _ := time.ParseDuration(a.flag("keep"))
	for _, j := range a.jobs {
		spares := 0
		for stage := range j.Stages {
			kept := j.attached(stage, func(t *auditedTask) bool { return !t.killing })
			if j.Drives && !j.stopped && !j.paused && kept > j.demands[stage] {
				spares += kept - j.demands[stage]
				if a.flag("keep") == "none" || spares > a.coming(j) {
					a.fail("stage %d of job %s demands %d executors, keeps %d, and was not asked for the others", stage, j.Name,
						j.demands[stage], kept)
				}
			}
		}
		if spares > j.spares {
			j.since = a.now
		}
		if j.spares = spares; spares > 0 && a.flag("keep") != "next" && a.now > j.since.Add(lasts) {
			a.fail("job %s keeps %d executors that it does not demand since %s", j.Name, spares, seconds(j.since))
		}
	}
}

// backsOff reports whether a job may have fewer executors than it could use, because it had a task on a node that was
// pressed.
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

// given is an executor that a job gave back.
type given struct {
	node cluster.NodeID
	by   cluster.JobID
}

// withinQueues checks that no queue of mira in which a job is holds more executors than it may.
func (a *auditor) withinQueues(of cluster.JobID) {
	within := func(job cluster.JobID, queue string) bool {
		name := cmp.Or(a.jobs[job].Queue, "default")
		return name == queue || strings.HasPrefix(name, queue+".")
	}
	for _, item := range strings.Split(a.flag("queues"), ",") {
		name, text, _ := strings.Cut(item, "=")
		_, most, limited := strings.Cut(text, "..")
		if !limited || most == "" || !within(of, name) {
			continue
		}
		held := 0
		for _, job := range a.kept {
			if within(job, name) {
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
