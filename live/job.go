package live

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/live/view"
)

// job is a job as the Driver knows it.
type job struct {
	store.Job
	// state is the engine's state of the job; nil if the engine does not have the job.
	state *book.JobState
	// runs of each task that was ever started, in order.
	runs map[cluster.TaskID][]*run
	// faults are, by task, consecutive starts that failed through no fault of the program.
	faults map[cluster.TaskID]faults
	notes  []note
}

// run is one run of a task.
type run struct {
	store.Task
	launched bool // the engine has been notified that it runs
	killing  bool // its end has been ordered
	preempts bool // its end was ordered in order to free its resources for other tasks
	refused  bool // by the machine: no program began
	// still is who has stopped its programs, 0 if they run; the engine is notified once the run was launched.
	still cluster.Holders
	// open are the orders that set what is wanted of it and have not been answered, oldest first. failed says of each
	// field why the newest order could not be carried out; empty if it did not fail.
	open   []cluster.Decision
	failed [cluster.NumWantFields]string
	// out is what its page-out has done; nil if none was reported since it was ordered, or if its memory is back.
	out *api.PagedOut
}

// note is a decision about a job.
type note struct {
	at     timeline.Time
	kind   cluster.DecisionKind
	task   cluster.TaskID
	reason cluster.Reason
	order  *order // nil if the decision is no order that is answered
}

// order is an order, and how it was answered.
type order struct {
	id     cluster.DecisionID
	grant  *api.Grant     // of a resize
	bound  api.Bound      // of a throttle
	until  timeline.Time  // of a throttle, and of a suspend by leveling
	going  cluster.TaskID // that keeps going because of a suspend by leveling
	answer api.Answer
	detail string
}

func (n *note) view() api.DecisionNote {
	out := api.DecisionNote{At: instant(n.at), Kind: n.kind, Task: n.task, Why: n.reason.Words(clock)}
	if o := n.order; o != nil {
		out.Grant, out.Bound, out.Until, out.For, out.Answer, out.Detail = o.grant, o.bound, instant(o.until), o.going,
			o.answer, o.detail
	}
	return out
}

// notesKept is the number of decisions that are kept per job, for explanations.
const notesKept = 50

func newJob(stored store.Job) *job {
	return &job{Job: stored, runs: map[cluster.TaskID][]*run{}, faults: map[cluster.TaskID]faults{}}
}

func (r *run) ended() bool { return r.Outcome != 0 }

func (j *job) note(now timeline.Time, decision *cluster.Decision) {
	n := note{at: now, kind: decision.Kind, task: decision.Task, reason: decision.Reason}
	if _, sets := n.kind.Sets(); sets || n.kind == cluster.Start {
		n.order = &order{id: decision.ID, bound: boundOf(decision.Bound), until: decision.At, going: decision.For,
			answer: api.AnswerPending}
		if n.kind == cluster.Resize {
			n.order.grant = new(view.Grant(decision.Grant))
		}
	}
	j.notes = append(j.notes, n)
	if len(j.notes) > notesKept {
		j.notes = slices.Delete(j.notes, 0, 1)
	}
}

// answered notes how an order of a task was answered, or every open order if the event names none. The first answer
// counts.
func (j *job) answered(e *cluster.Event) {
	for i := range j.notes {
		n, o := &j.notes[i], j.notes[i].order
		if o == nil || o.answer != api.AnswerPending || n.task != e.Task || e.Decision != 0 && o.id != e.Decision {
			continue
		}
		o.detail = e.Detail
		switch e.Kind {
		case cluster.DecisionDone:
			o.answer = api.AnswerDone
		case cluster.DecisionFailed:
			o.answer = api.AnswerFailed
		default:
			o.answer = api.AnswerSuperseded
		}
	}
}

// superseded notes that a run of a task has ended, which answers every order that is open.
func (j *job) superseded(task cluster.TaskID) {
	j.answered(&cluster.Event{Kind: cluster.DecisionSuperseded, Task: task, Detail: "its task ended first"})
}

// has reports whether the job has a task of that number.
func (j *job) has(id cluster.TaskID) bool {
	stages := j.Request.Job.Stages
	return id.Stage >= 0 && int(id.Stage) < len(stages) && id.Index >= 0 && int(id.Index) < stages[id.Stage].Tasks
}

// newest returns the newest run of a task, nil if it was never started.
func (j *job) newest(id cluster.TaskID) *run {
	runs := j.runs[id]
	if len(runs) == 0 {
		return nil
	}
	return runs[len(runs)-1]
}

// find returns a run, nil if there is none.
func (j *job) find(id cluster.ContainerID) *run {
	for _, r := range j.runs[id.Task] {
		if r.Container.Run == id.Run {
			return r
		}
	}
	return nil
}

func (j *job) add(r *run) {
	id := r.Container.Task
	j.runs[id] = append(j.runs[id], r)
}

// drop removes the newest run of a task.
func (j *job) drop(id cluster.TaskID) {
	j.runs[id] = j.runs[id][:len(j.runs[id])-1]
}

// tasks returns the tasks that were ever started, sorted.
func (j *job) tasks() []cluster.TaskID {
	ids := make([]cluster.TaskID, 0, len(j.runs))
	for id := range j.runs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, cluster.TaskID.Compare)
	return ids
}

// alive returns the runs that have not ended.
func (j *job) alive() []*run {
	var out []*run
	for _, id := range j.tasks() {
		if r := j.newest(id); !r.ended() {
			out = append(out, r)
		}
	}
	return out
}

// culprit returns the run that caused the end of the job: the last run that ended without success, nil if there is
// none.
func (j *job) culprit() *run {
	var last *run
	for _, id := range j.tasks() {
		r := j.newest(id)
		if r.ended() && r.Outcome != cluster.Succeeded &&
			(last == nil || blame(r) > blame(last) || blame(r) == blame(last) && r.Ended < last.Ended) {
			last = r
		}
	}
	return last
}

// blame orders outcomes: the cause is a task that failed by itself, not a task that was killed because of it.
func blame(r *run) int {
	switch r.Outcome {
	case cluster.Failed, cluster.OutOfMemory:
		return 2
	case cluster.Lost:
		return 1
	}
	return 0
}

// openJobs returns the jobs that have not ended, sorted.
func (d *Driver) openJobs() []cluster.JobID {
	var ids []cluster.JobID
	for id, j := range d.jobs {
		if !j.State.Ended {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (d *Driver) touch(id cluster.JobID) {
	if j, ok := d.jobs[id]; ok {
		d.changes.touch(j)
	}
}

// harvest finds out which of the touched jobs have made progress, and which have ended.
func (d *Driver) harvest(now timeline.Time) {
	for j := range d.changes.harvest() {
		if j.state == nil || j.State.Ended {
			continue
		}
		was := j.State
		j.State.Status = j.state.Status
		if j.state.Status == cluster.StatusPending && (j.State.Started != 0 || was.Status == cluster.StatusRunning) {
			// A task of the job has run under an earlier engine, which this one cannot know.
			j.State.Status = cluster.StatusRunning
		}
		if j.state.Status.Ended() {
			d.settle(j, len(j.state.Tasks) == 0, now)
		}
		if j.State != was {
			d.out.putJob(j)
		}
	}
}

// settle records why a job has ended, or is about to end; ended says that none of its tasks is left.
func (d *Driver) settle(j *job, ended bool, now timeline.Time) {
	if j.State.ExitCode == nil {
		switch bad := j.culprit(); {
		case j.State.Status == cluster.StatusSucceeded:
			j.State.ExitCode = new(int)
		case bad != nil && bad.Exit != nil:
			code := bad.Exit.Code
			j.State.ExitCode = &code
		}
	}
	if bad := j.culprit(); j.State.Detail == "" && bad != nil && j.State.Status == cluster.StatusFailed {
		j.State.Detail = "task " + bad.Container.Task.String() + ": " + bad.Detail + j.whyGivenUp(bad)
	}
	if ended {
		j.State.Ended, j.State.Finished = true, now
		j.State.Succeeded = j.count()
		d.out.end(j.ID)
		d.counts.JobEnded(j.State.Status)
		d.log.Info("job ended", "job", j.ID, "name", j.Request.Job.Name, "status", j.State.Status, "reason", j.State.Detail)
	}
}

// settleAlone finds out which jobs have ended when the engine decides nothing any more.
func (d *Driver) settleAlone() {
	for _, j := range d.jobs {
		if j.State.Ended || j.isAside() || len(j.alive()) > 0 {
			continue
		}
		was := j.State
		switch {
		case j.count() == j.Request.Job.Tasks():
			j.State.Status = cluster.StatusSucceeded
		case j.State.Cancelled:
			j.State.Status = cluster.StatusCancelled
		case j.failed():
			j.State.Status = cluster.StatusFailed
		default:
			d.tell(j) // The job waits for the next start of bellows: waiting callers return.
			continue
		}
		d.settle(j, true, d.now())
		if j.State != was {
			d.out.putJob(j)
		}
		d.tell(j)
	}
}

// count returns how many tasks succeeded.
func (j *job) count() (succeeded int) {
	for id := range j.runs {
		if j.newest(id).Outcome == cluster.Succeeded {
			succeeded++
		}
	}
	return succeeded
}
