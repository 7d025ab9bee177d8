package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// auditor follows a run from its events and decisions alone, in the slowest and plainest way, and looks for violated
// invariants. It shares nothing with the snapshot.
type auditor struct {
	s        *scenario
	c        choice
	now      timeline.Time
	lastID   cluster.DecisionID
	nodes    map[cluster.NodeID]cluster.Node
	kept     map[cluster.NodeID]cluster.JobID // reservations
	gaveBack given                            // the reservation that ended last
	idle     map[cluster.NodeID]timeline.Time // when the last task of a node ended
	until    map[cluster.NodeID]timeline.Time // until when a job of mira keeps a node that is idle
	jobs     map[cluster.JobID]*auditedJob
	holds    map[cluster.NodeID]resource.Amount // the sum of the limits of the node's containers, as last reported
	// pressed is what nodes give of the rates that are pressed, orders those to throttle, to stand still, to go on and
	// to resize that have not been answered.
	pressed map[cluster.NodeID]resource.Vector
	backs   map[cluster.JobID]timeline.Time // until when jobs of mira may back off
	orders  map[cluster.DecisionID]cluster.TaskID
	asked   map[cluster.NodeID]cluster.DecisionID // open questions
	err     error
}

type auditedJob struct {
	*cluster.Job
	stopped bool // cancelled or failed
	paused  bool
	pageOut bool                            // with its memory
	tasks   map[cluster.TaskID]*auditedTask // of a job that drives, those that run
	demands map[int]int                     // of its stages
	spares  int                             // attached executors that it does not demand and was not asked for
	since   timeline.Time                   // when these became more
}

type auditedTask struct {
	id       cluster.TaskID
	state    taskState
	node     cluster.NodeID
	grant    resource.Vector
	holds    resource.Vector // the grant, or its memory while it lends the rest
	was      resource.Vector // the grant before the resize of that decision
	wants    cluster.Decision
	still    cluster.Holders // who holds it still
	ordered  cluster.Holders // whom the newest order names
	until    timeline.Time   // when leveling ends its hold; 0 if it does not hold it
	out      resource.Amount // memory that has left, bytes
	pageOut  bool            // the last order wants it to
	waits    bool            // leveling holds it for want of memory, which is to leave meanwhile
	held     resource.Amount // what it holds, bytes; 0 is unknown
	renewals []renewal       // of its reservation
	attempts int             // runs that failed through the task's own fault
	again    timeline.Time   // when the next attempt begins, if it is resting
	killing  bool
	// preempted says that the task is ended to make room for others: the run does not count as an attempt.
	preempted bool
}

type taskState uint8

const (
	waiting taskState = iota
	resting           // it has failed, and pauses before its next attempt
	booked
	running
	done
	gone // it has failed as often as it may, and its job keeps going
)

// audit returns the first violation in h.
func audit(s *scenario, c choice, h *history) error {
	a := &auditor{s: s, c: c, nodes: map[cluster.NodeID]cluster.Node{}, kept: map[cluster.NodeID]cluster.JobID{},
		idle: map[cluster.NodeID]timeline.Time{}, until: map[cluster.NodeID]timeline.Time{},
		jobs: map[cluster.JobID]*auditedJob{}, holds: map[cluster.NodeID]resource.Amount{},
		pressed: map[cluster.NodeID]resource.Vector{}, backs: map[cluster.JobID]timeline.Time{},
		orders: map[cluster.DecisionID]cluster.TaskID{}, asked: map[cluster.NodeID]cluster.DecisionID{}}
	synced := false
	for i := range h.steps {
		step := &h.steps[i]
		if step.now < a.now {
			a.fail("time goes back to %s", seconds(step.now))
		}
		a.keptInTime(step.now)
		a.now = step.now
		for k := range step.events {
			synced = synced || step.events[k].Kind == cluster.Synced
			a.event(&step.events[k])
		}
		a.paused()
		for k := range step.decisions {
			a.decision(&step.decisions[k])
		}
		a.together(step.decisions)
		a.holdsInTime()
		if synced && a.err == nil {
			a.conserving()
		}
		if a.err != nil {
			return fmt.Errorf("step %d at %s: %w", i+1, seconds(step.now), a.err)
		}
	}
	a.end(h)
	return a.err
}

// paused makes tasks wait whose pause before the next attempt is over.
func (a *auditor) paused() {
	for _, j := range a.jobs {
		for _, t := range j.tasks {
			if t.state == resting && t.again <= a.now {
				t.state = waiting
			}
		}
	}
}

func (a *auditor) fail(format string, operands ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, operands...)
	}
}

func (a *auditor) task(id cluster.TaskID) *auditedTask {
	if j := a.jobs[id.Job]; j != nil && j.tasks[id] != nil {
		return j.tasks[id]
	}
	a.fail("task %s: there is none", id)
	return &auditedTask{}
}

func (a *auditor) event(e *cluster.Event) {
	switch e.Kind {
	case cluster.NodeJoined:
		a.nodes[e.NewNode.ID] = *e.NewNode
	case cluster.NodeLeft:
		delete(a.nodes, e.Node)
		delete(a.kept, e.Node)
		for _, j := range a.jobs {
			for _, t := range j.tasks {
				if t.node == e.Node && (t.state == booked || t.state == running) {
					a.ended(j, t, cluster.Lost)
				}
			}
		}
	case cluster.JobSubmitted:
		j := &auditedJob{Job: e.NewJob, tasks: map[cluster.TaskID]*auditedTask{}, demands: map[int]int{}}
		j.addTasks()
		a.jobs[j.ID] = j
	case cluster.JobGrew:
		j := a.jobs[e.Job]
		job := j.Grown(e.Found.Growth)
		j.Job = &job
		for _, d := range e.Found.Growth.Demands {
			if j.demands[d.Stage] = d.Tasks; d.Coming {
				delete(j.demands, d.Stage)
			}
		}
		if e.Found.Growth.Closes {
			clear(j.demands)
		}
		if j.addTasks(); j.finished() {
			a.stop(j)
		}
	case cluster.TaskSuspended:
		t := a.task(e.Task)
		// It lends again while it waits for its memory, and not at all if it was ordered to go on before it stood still.
		if a.s.lends && (t.still == 0 && t.ordered != 0 || e.By&cluster.HeldByMemory != 0) {
			t.holds = resource.Vector{}.With(resource.Memory, t.grant[resource.Memory])
		}
		t.still = e.By
	case cluster.TaskResumed:
		t := a.task(e.Task)
		t.holds, t.still = t.grant, 0
	case cluster.TaskHolds:
		a.task(e.Task).held = e.Held
	case cluster.TaskPagedOut:
		a.task(e.Task).out = e.Condition().Out
	case cluster.JobRevised:
		before := a.jobs[e.NewJob.ID].Job
		a.jobs[e.NewJob.ID].Job = e.NewJob
		for i := range before.Stages { // what is reserved for another need is given back
			if before.Stages[i].Ideal != e.NewJob.Stages[i].Ideal {
				maps.DeleteFunc(a.kept, func(_ cluster.NodeID, holder cluster.JobID) bool { return holder == e.NewJob.ID })
			}
		}
	case cluster.JobCancelled:
		a.stop(a.jobs[e.Job])
	case cluster.JobPaused, cluster.JobResumed:
		a.jobs[e.Job].paused, a.jobs[e.Job].pageOut = e.Kind == cluster.JobPaused, e.Condition().PageOut
		maps.DeleteFunc(a.kept, func(_ cluster.NodeID, holder cluster.JobID) bool {
			return holder == e.Job && e.Kind == cluster.JobPaused
		})
	case cluster.NodeMemory:
		a.holds[e.Node] = e.Held
	case cluster.Answered:
		a.answered(e)
	case cluster.NodePressed:
		a.pressed[e.Node] = e.Condition().Bound
		a.pressedJobs(e.Node)
	case cluster.DecisionDone:
		t := a.task(e.Task)
		if a.answersOrder(e) {
			a.resized(e)
			return
		}
		if t.state != booked {
			a.fail("task %s is launched, but in state %d", e.Task, t.state)
		}
		t.state = running
	case cluster.DecisionFailed:
		if !a.answersOrder(e) {
			a.fail("decision %d of task %s fails", e.Decision, e.Task)
		}
		a.resized(e)
	case cluster.TaskEnded:
		t := a.task(e.Task)
		if t.state != running && t.state != booked {
			a.fail("task %s ends, but in state %d", e.Task, t.state)
		}
		a.ended(a.jobs[e.Task.Job], t, e.Outcome)
	}
}

// addTasks adds the tasks that the job has got.
func (j *auditedJob) addTasks() {
	if j.Drives {
		return
	}
	for stage := range j.Stages {
		for i := range j.Stages[stage].Tasks {
			id := cluster.TaskID{Job: j.ID, Stage: int32(stage), Index: int32(i)}
			if j.tasks[id] == nil {
				j.tasks[id] = &auditedTask{id: id}
			}
		}
	}
}

func (a *auditor) stop(j *auditedJob) {
	j.stopped = true
	for n, holder := range a.kept {
		if holder == j.ID {
			delete(a.kept, n) // its reservation ends with it
		}
	}
}

func (a *auditor) ended(j *auditedJob, t *auditedTask, outcome cluster.Outcome) {
	if outcome == cluster.Killed && t.preempted {
		outcome = cluster.Preempted
	}
	t.state, t.killing, t.preempted, t.held, t.renewals = waiting, false, false, 0, nil
	a.idle[t.node] = a.now
	maps.DeleteFunc(a.orders, func(_ cluster.DecisionID, of cluster.TaskID) bool { return of == t.id }) // answered
	if j.Drives {
		if delete(j.tasks, t.id); j.finished() {
			a.stop(j)
		}
		return
	}
	switch outcome {
	case cluster.Succeeded:
		t.state = done
		if j.finished() || j.wentAsFar() {
			a.stop(j)
		}
	case cluster.Lost, cluster.Preempted:
	default:
		if t.attempts++; t.attempts >= max(1, j.MaxAttempts) && !j.stopped {
			if t.state = gone; !j.KeepGoing || j.wentAsFar() {
				a.stop(j)
			}
			return
		}
		pause := j.RetryDelay
		for range t.attempts - 1 {
			pause = max(j.RetryDelay, min(2*pause, 5*time.Minute))
		}
		if pause > 0 {
			t.state, t.again = resting, a.now.Add(pause)
		}
	}
}

func (j *auditedJob) finished() bool {
	if j.Open {
		return false
	}
	for _, t := range j.tasks {
		if t.state != done {
			return false
		}
	}
	return true
}

// wentAsFar reports whether a task has failed for good, and no other can run any more: each that has not ended waits,
// directly or not, for a stage with such a task.
func (j *auditedJob) wentAsFar() bool {
	lacks := make([]bool, len(j.Stages)) // stages of which a task has failed for good, and those that depend on them
	for _, t := range j.tasks {
		lacks[t.id.Stage] = lacks[t.id.Stage] || t.state == gone
	}
	for range j.Stages {
		for i := range j.Stages {
			for _, parent := range j.Stages[i].Parents {
				lacks[i] = lacks[i] || lacks[parent]
			}
		}
	}
	for _, t := range j.tasks {
		blocked := slices.ContainsFunc(j.Stages[t.id.Stage].Parents, func(p int) bool { return lacks[p] })
		if t.state != done && t.state != gone && !blocked {
			return false
		}
	}
	return slices.Contains(lacks, true)
}

func (a *auditor) decision(d *cluster.Decision) {
	if a.lastID++; d.ID != a.lastID {
		a.fail("decision %d follows decision %d", d.ID, a.lastID-1)
	}
	if d.Reason.Code == 0 || d.Reason.Words(nil) == "no reason recorded" {
		a.fail("%s of %s has no reason", d.Kind, d.Task)
	}
	switch d.Kind {
	case cluster.Start:
		a.start(d)
	case cluster.Kill:
		t := a.task(d.Task)
		if t.state != booked && t.state != running || t.killing || !d.Preempt && !a.jobs[d.Task.Job].stopped || d.Preempt &&
			a.flag("preemption") != "true" && !a.jobs[d.Task.Job].Drives {
			a.fail("task %s is killed in state %d", d.Task, t.state)
		}
		t.killing, t.preempted = true, d.Preempt
	case cluster.Throttle:
		a.throttle(d)
	case cluster.Suspend, cluster.Resume:
		a.hold(d)
	case cluster.Resize:
		a.resize(d)
	case cluster.Ask:
		a.ask(d)
	case cluster.Reserve:
		if holder, twice := a.kept[d.Node]; twice {
			a.fail("node %d is kept for job %d and for job %d", d.Node, holder, d.Task.Job)
		}
		if j := a.jobs[d.Task.Job]; !a.keeps() && a.c.name != "mira" && !(a.c.name == "bellows" && j.Deadline > 0 &&
			j.Submitted.Add(j.Deadline) <= a.now) {
			a.fail("node %d is kept for job %d, but there are no reservations", d.Node, d.Task.Job)
		}
		if n := a.nodes[d.Node]; !a.everHolds(&n, &a.jobs[d.Task.Job].Stages[d.Task.Stage]) {
			a.fail("node %s is kept for job %d, and has not what its task needs when nothing runs there", n.Name, d.Task.Job)
		}
		a.kept[d.Node] = d.Task.Job
		// A job that was paused takes what its tasks run on.
		if moves := a.gaveBack == (given{d.Node, d.Task.Job}); a.c.name == "mira" && !moves && !a.busy(d.Node) {
			a.withinQueues(d.Task.Job)
		}
		if d.Reason.Code == cluster.KeptForStage {
			a.keepsIdle(d)
		}
	case cluster.Unreserve:
		if a.kept[d.Node] != d.Task.Job {
			a.fail("node %d is given back by job %d, but kept for job %d", d.Node, d.Task.Job, a.kept[d.Node])
		}
		delete(a.kept, d.Node)
		delete(a.until, d.Node)
		a.gaveBack = given{d.Node, d.Task.Job}
	case cluster.Wait:
		if stage, ok := a.jobs[d.Task.Job].next(); !ok || stage != int(d.Task.Stage) {
			a.fail("stage %d of job %d waits, but is not the next to run", d.Task.Stage, d.Task.Job)
		}
	}
	switch r := &d.Reason; {
	case r.Code == cluster.WouldEndAfterJob && r.B <= r.C, r.Code == cluster.FitsUnderSized && r.B > r.C,
		r.Code == cluster.FitsInGap && r.B > r.C:
		a.fail("%s of %s: %s", d.Kind, d.Task, r.Words(seconds))
	}
}

// flag returns a setting of the policy.
func (a *auditor) flag(name string) string {
	if v, ok := a.c.settings[a.c.name+"."+name]; ok {
		return v
	}
	_, parameters := policy.About(a.c.name)
	for _, p := range parameters {
		if p.Name == a.c.name+"."+name {
			return p.Default
		}
	}
	return ""
}

func (a *auditor) start(d *cluster.Decision) {
	j := a.jobs[d.Task.Job]
	if j != nil && j.Drives && j.tasks[d.Task] == nil {
		j.tasks[d.Task] = &auditedTask{id: d.Task}
	}
	t := a.task(d.Task)
	if a.err != nil {
		return
	}
	stage := &j.Stages[d.Task.Stage]
	ideal, memory := stage.Ideal[resource.Memory], d.Grant[resource.Memory]
	n, here := a.nodes[d.Node]
	holder, kept := a.kept[d.Node]
	switch next, ok := j.next(); {
	case t.state != waiting:
		a.fail("task %s is started in state %d", d.Task, t.state)
	case j.stopped:
		a.fail("task %s is started, but its job is to end", d.Task)
	case !ok || next != int(d.Task.Stage) && !((a.anyReady() || a.c.name == "mira") && j.ready(int(d.Task.Stage))):
		a.fail("task %s is started, but stage %d is next (%v)", d.Task, next, ok)
	case !here:
		a.fail("task %s is started on node %d, which is gone", d.Task, d.Node)
	case (d.Grant.With(resource.Memory, ideal) != a.peaks(stage, n)) && !a.startsPhased(d, j, stage):
		a.fail("task %s is granted %v of what it needs, %v", d.Task, d.Grant, stage.Ideal)
	case a.sized():
		if want, ok := a.need(stage); !ok || d.Grant != want {
			a.fail("task %s is granted %v, want %v (%v)", d.Task, d.Grant, want, ok)
		}
	case memory != ideal && !a.startsPhased(d, j, stage) && (memory > ideal || memory < stage.MinMemory ||
		stage.MinMemory == 0 || !a.underSizes() || stage.Elasticity.Kind == cluster.NotElastic):
		a.fail("task %s is granted %d bytes: must be %d to %d", d.Task, memory, stage.MinMemory, ideal)
	case memory != resource.Amount(d.Reason.A) && d.Reason.Code != cluster.BestAhead &&
		d.Reason.Code != cluster.BestAheadOfKnown:
		a.fail("task %s is granted %d bytes, but the reason says %d", d.Task, memory, d.Reason.A)
	case !d.Grant.FitsIn(a.free(n)):
		a.fail("task %s is granted %v on node %s, which has %v free", d.Task, d.Grant, n.Name, a.free(n))
	case kept && holder != j.ID && a.c.name != "bellows" && a.flag("gaps") != "true" &&
		(a.flag("gaps") != "auto" || a.s.heartbeat > 0):
		a.fail("task %s is started on node %s, which is kept for job %d", d.Task, n.Name, holder)
	}
	if a.c.name == "mira" {
		a.executor(d)
	}
	if memory < ideal && !a.sized() && !d.ByPhase {
		a.disk(d, &n, stage)
	} else if !kept && a.c.name == "fair" {
		a.fairness(j, n)
	}
	if a.c.name == "capacity" || a.c.name == "drf" {
		a.servesQueues(d, j, kept)
	}
	if a.c.name == "pufferfish" {
		a.knowsWhatIsLeft(d, j.Class)
	}
	a.weighs(d)
	t.state, t.node, t.grant, t.holds, t.still = booked, d.Node, d.Grant, d.Grant, 0
	t.until, t.out, t.pageOut, t.waits = 0, 0, false, false
}

// anyReady reports whether tasks of all stages of a job that are ready compete, and not only of the first.
func (a *auditor) anyReady() bool { return a.c.name == "tetris" || a.c.name == "bellows" }

// waitsForMemory reports whether FLEX containers wait under the policy until their memory is available.
func (a *auditor) waitsForMemory() bool { return a.c.name == "pufferfish" || a.c.name == "bellows" }

// underSizes reports whether the policy starts tasks with less than their ideal memory.
func (a *auditor) underSizes() bool { return a.c.name == "yarn-me" || a.flag("size") == "elastic" }

// keeps reports whether the policy keeps nodes for jobs.
func (a *auditor) keeps() bool {
	return a.flag("reservations") == "true" ||
		a.c.name == "bellows" && (a.flag("patience") != "0s" || a.flag("backfill") == "early")
}

// everHolds reports whether a task could start on a node that runs nothing: with its ideal amounts or, under policies
// that under-size tasks, with its minimum memory.
func (a *auditor) everHolds(n *cluster.Node, stage *cluster.Stage) bool {
	least := stage.Ideal
	if a.underSizes() && stage.Elastic() && stage.Duration > 0 {
		least[resource.Memory] = stage.MinMemory
	}
	return least.FitsIn(n.Room())
}

// sized reports whether all containers have the same memory.
func (a *auditor) sized() bool { return a.c.name == "static" && a.flag("memory") != "peak" }

// need is what a task is granted: its ideal memory, or the fixed size of containers; ok is false if the policy rejects
// the task.
func (a *auditor) need(stage *cluster.Stage) (need resource.Vector, ok bool) {
	if !a.sized() || stage.Coordinator {
		return stage.Ideal, true
	}
	size, _ := resource.ParseMemory(a.flag("memory"))
	return stage.Ideal.With(resource.Memory, size), stage.Ideal[resource.Memory] <= size || a.flag("too-large") == "run"
}

// peaks is what a task is granted on a node besides memory: what it needs, and under tetris the most of disk and
// network that it demands by its forecast, as far as the node has that much.
func (a *auditor) peaks(stage *cluster.Stage, n cluster.Node) resource.Vector {
	grant := stage.Ideal
	if a.c.name != "tetris" || len(stage.Phases) == 0 {
		return grant
	}
	for _, k := range []resource.Kind{resource.Disk, resource.Network} {
		for _, p := range stage.Phases {
			if most := p.Demand[k]; n.Unknown.Has(k) || most <= n.Capacity[k] {
				grant[k] = max(grant[k], most)
			} else {
				grant[k] = max(grant[k], n.Capacity[k])
			}
		}
	}
	return grant
}

// free is what no task holds on a node, less than 0 after tasks that lent their cores went on or got more; nothing if
// the node has as many tasks as it may have.
func (a *auditor) free(n cluster.Node) resource.Vector {
	free, tasks := a.rest(n)
	if most := a.s.containers * int(n.Capacity[resource.CPU]/resource.Core); most > 0 && tasks >= most {
		return resource.Vector{}
	}
	return free.Max(resource.Vector{}) // A task that needs nothing of what is overdrawn may start.
}

// unused is what no task holds on a node.
func (a *auditor) unused(n cluster.Node) resource.Vector {
	free, _ := a.rest(n)
	return free
}

// rest returns what no task holds on a node, and how many tasks it has.
func (a *auditor) rest(n cluster.Node) (free resource.Vector, tasks int) {
	free = n.Room()
	for _, j := range a.jobs {
		for _, t := range j.tasks {
			if t.node == n.ID && (t.state == booked || t.state == running) {
				free, tasks = n.Unknown.In(free.Sub(t.holds.Sub(t.lentMemory())), resource.Unbounded), tasks+1
			}
		}
	}
	return free, tasks
}

// disk checks the budget of a node's disk for under-sized tasks.
func (a *auditor) disk(d *cluster.Decision, n *cluster.Node, stage *cluster.Stage) {
	share, err := strconv.ParseFloat(a.flag("disk-share"), 64)
	if err != nil {
		share = 1 // of a policy without this setting
	}
	used := float64(stage.Elasticity.DiskRate)
	for _, j := range a.jobs {
		for _, t := range j.tasks {
			s := &j.Stages[t.id.Stage]
			if t.node == n.ID && (t.state == booked || t.state == running) &&
				t.grant[resource.Memory] < s.Ideal[resource.Memory] {
				used += float64(s.Elasticity.DiskRate)
			}
		}
	}
	if limit := float64(n.Capacity[resource.Disk]); limit > 0 && stage.Elasticity.DiskRate > 0 && used > share*limit {
		a.fail("under-sized tasks with task %s ask for %g bytes/s of node %s's disk, and may for %g", d.Task, used, n.Name,
			share*limit)
	}
}

// next returns the first stage of j with a task to be started now.
func (j *auditedJob) next() (int, bool) {
	if j.paused {
		return 0, false
	}
	for i := range j.Stages {
		if !j.stopped && j.ready(i) {
			return i, true
		}
	}
	return 0, false
}

func (j *auditedJob) ready(stage int) bool {
	if j.Drives {
		return j.attached(stage, func(t *auditedTask) bool { return t.state != waiting }) < j.demands[stage]
	}
	waits, run := false, 0
	for _, parent := range j.Stages[stage].Parents {
		if j.Open && j.Stages[parent].Tasks == 0 {
			return false
		}
	}
	ended := map[int]int{} // by stage
	for _, t := range j.tasks {
		s := int(t.id.Stage)
		if t.state == done {
			ended[s]++
		}
		early := j.Stages[stage].StartShare > 0 && t.state != waiting
		switch {
		case s == stage:
			waits = waits || t.state == waiting
			if t.state == booked || t.state == running {
				run++
			}
		case slices.Contains(j.Stages[stage].Parents, s) && t.state != done && !early,
			j.Stages[s].Coordinator && t.state != running && t.state != done:
			return false
		}
	}
	for _, parent := range j.Stages[stage].Parents {
		if float64(ended[parent]) < j.Stages[stage].StartShare*float64(j.Stages[parent].Tasks) {
			return false
		}
	}
	return waits && (j.Stages[stage].AtOnce == 0 || run < j.Stages[stage].AtOnce)
}

// consumption is the amount that fair sharing balances.
func (j *auditedJob) consumption() float64 {
	used := 0.0
	for _, t := range j.tasks {
		if t.state == booked || t.state == running {
			used += float64(t.grant.Sub(t.lentMemory())[resource.Memory])
		}
	}
	if j.Weight > 0 {
		used /= j.Weight
	}
	return used
}

// fairness checks that no job with less consumption than j had a task for the room on n.
func (a *auditor) fairness(j *auditedJob, n cluster.Node) {
	free := a.free(n)
	for _, other := range a.jobs {
		stage, ok := other.next()
		if !ok || other == j {
			continue
		}
		first := cmp.Or(cmp.Compare(other.consumption(), j.consumption()), cmp.Compare(other.Submitted, j.Submitted),
			cmp.Compare(other.ID, j.ID)) < 0
		if first && other.Stages[stage].Ideal.FitsIn(free) {
			a.fail("job %s is served on node %s before job %s, which consumes less", j.Name, n.Name, other.Name)
		}
	}
}

// conserving checks that no task waits although room for it is free. That is allowed where nodes have heartbeats or are
// reserved, and where jobs are skipped in favour of jobs further below their fair share.
func (a *auditor) conserving() {
	if a.c.name == "prophet" {
		a.conservingAhead()
		return
	}
	if a.c.name == "mira" && a.s.heartbeat == 0 {
		if !strings.Contains(a.flag("queues"), "..") { // A queue may leave executors idle that it must not have.
			a.conservingExecutors()
		}
		a.askedAtOnce()
		return
	}
	if a.s.heartbeat > 0 || a.c.name == "contention-aware" || a.keeps() || a.c.name == "tetris" &&
		a.flag("fairness") != "0" {
		return
	}
	if a.c.name == "capacity" {
		a.conservingQueues()
		return
	}
	for _, id := range slices.Sorted(maps.Keys(a.jobs)) {
		j := a.jobs[id]
		first, ok := j.next()
		started := true
		for stage := first; ok && stage < len(j.Stages) && (stage == first || a.anyReady()); stage++ {
			if j.ready(stage) {
				started = a.conservingStage(j, stage)
			}
		}
		if !ok {
			continue
		}
		if a.c.name == "fifo" || a.flag("order") == "fifo" && started {
			return
		}
	}
}

// conservingStage is conserving for a stage, of which started says whether the policy starts its tasks.
func (a *auditor) conservingStage(j *auditedJob, stage int) (started bool) {
	need, started := a.need(&j.Stages[stage])
	for _, n := range a.nodes {
		if a.c.name == "tetris" {
			need = a.peaks(&j.Stages[stage], n)
		}
		if a.c.name == "ecs" && a.flag("memory") != "ideal" && a.lacksMemory(n.ID) {
			continue // its next phase may come first
		}
		if _, kept := a.kept[n.ID]; kept && a.c.name == "bellows" {
			continue // for a job past its deadline
		}
		if started && need.FitsIn(a.free(n)) && (!a.waitsForMemory() || j.Class == cluster.Regular ||
			a.leaves(n, need)) {
			a.fail("a task of job %s stage %d waits, but fits on node %s", j.Name, stage, n.Name)
		}
	}
	return started
}

// end checks that no job was lost, and that every job that can end has ended.
func (a *auditor) end(h *history) {
	for id, of := range a.orders {
		if a.phased() && a.s.heartbeat > 0 {
			continue // a simulated run ends with its last task, which its node has not reported yet
		}
		a.fail("order %d of task %s was never answered", id, of)
	}
	for i, e := range h.jobs {
		j := a.jobs[cluster.JobID(i+1)]
		if j == nil {
			if e.ended {
				a.fail("job %d has ended, but was never submitted", i+1)
			}
			continue
		}
		a.lives(j, e, h)
		if !e.ended && !j.Open && a.everyoneFits() && !a.heldForever() {
			a.fail("job %s does not end, though there is room for everything", j.Name)
		}
	}
}

// lives checks that an ended job has no running tasks, and that each task of a successful job succeeded exactly once.
// Where nodes have heartbeats, the last ends are no longer reported.
func (a *auditor) lives(j *auditedJob, e ending, h *history) {
	if !e.ended {
		return
	}
	succeeded := map[cluster.TaskID]int{}
	for _, l := range h.tasks {
		if l.outcome == cluster.Succeeded {
			succeeded[l.task]++
		}
	}
	for _, t := range j.tasks {
		switch {
		case j.Stages[t.id.Stage].Coordinator:
		case a.s.heartbeat == 0 && (t.state == booked || t.state == running):
			a.fail("job %s has ended, but its task %s has not", j.Name, t.id)
		case e.status == "succeeded" && (succeeded[t.id] != 1 || t.state < running):
			a.fail("job %s has succeeded, and its task %s %d times", j.Name, t.id, succeeded[t.id])
		}
	}
}

// everyoneFits reports whether each task fits on some node together with all coordinators.
func (a *auditor) everyoneFits() bool {
	coordinators := a.s.coordinator.Scale(int64(len(a.s.jobs)))
	for i := range a.s.jobs {
		if !a.queueHolds(&a.s.jobs[i]) {
			return false
		}
		for _, stage := range a.s.jobs[i].Stages {
			need, started := a.need(&stage)
			fits := false
			for _, n := range a.nodes {
				fits = fits || started && need.Add(coordinators).FitsIn(n.Room()) &&
					(!a.waitsForMemory() || a.holds[n.ID] == 0 && (a.s.jobs[i].Class == cluster.Regular || a.leaves(n, need)))
			}
			fits = fits && (a.c.name != "prophet" || a.gangFits(&stage, coordinators))
			if !fits {
				return false
			}
		}
	}
	return true
}
