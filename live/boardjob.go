package live

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// boardJob is a job on a board. It is never changed, and callers share it.
type boardJob struct {
	api.Job               // without Tasks and Earlier
	tasks    []*boardTask // the newest runs of the tasks that were started, by stage and index
	earlier  []api.Task
	revision int64 // of the last change of the job, or of one of its tasks
	// pending and running count its tasks, as its stages do.
	pending, running int
	// stuck says that it makes no progress before the next start of bellows.
	stuck    bool
	replaced chan struct{} // closed when a later board shows it differently, or does not have it
}

// boardTask is the newest run of a task on a board. It is never changed, and boards share it.
type boardTask struct {
	api.Task       // without InPhase
	revision int64 // of its last change
	// state is a copy of what the engine knows of the task if it has a forecast and runs: which phase it is in follows
	// from that and from the time.
	state *book.TaskState
}

// size is how much a job counts where memory is bounded by a number of jobs and tasks.
func (b *boardJob) size() int { return 1 + len(b.tasks) }

// task returns a task of a job; nil if it was not started, or if the job is nil.
func (b *boardJob) task(id cluster.TaskID) *boardTask {
	if b == nil {
		return nil
	}
	at, here := b.taskAt(id)
	if !here {
		return nil
	}
	return b.tasks[at]
}

func (b *boardJob) taskAt(id cluster.TaskID) (at int, here bool) {
	return slices.BinarySearchFunc(b.tasks, id, func(t *boardTask, id cluster.TaskID) int {
		return t.Task.Task.Compare(id)
	})
}

// alone returns a job without its tasks.
func (b *boardJob) alone() api.Job {
	out := b.Job
	out.Version = b.version()
	return out
}

// whole returns a job with its tasks, as of a time from its board on.
func (b *boardJob) whole(now timeline.Time) api.Job {
	out := b.alone()
	out.Tasks, out.Earlier = b.tasksAt(now), slices.Clone(b.earlier)
	for _, t := range b.tasks {
		if t.state != nil || t.Throttle != nil || !t.RetryAt.IsZero() { // see boardTask.at
			out.Version = 0
		}
	}
	return out
}

// version is the Version of the Job.
func (b *boardJob) version() int64 {
	if b.revision == 0 && b.Ended { // It was shown of the store.
		return final
	}
	return b.revision
}

// tasksAt returns the tasks of a job, as of a time from its board on.
func (b *boardJob) tasksAt(now timeline.Time) (all []api.Task) {
	for _, t := range b.tasks {
		all = append(all, t.at(now))
	}
	return all
}

// at returns a task as of a time from its board on.
func (b *boardTask) at(now timeline.Time) api.Task {
	t := b.Task
	if b.state != nil {
		t.InPhase = inPhase(b.state, now)
	}
	if t.Throttle != nil && !t.Throttle.Until.After(instant(now)) {
		t.Throttle = nil
	}
	if !t.RetryAt.After(instant(now)) {
		t.RetryAt = time.Time{}
	}
	return t
}

// shownAs returns a job as the board of a revision shows it. was is how it was shown before, nil if it was not.
func (d *Driver) shownAs(j *job, was *boardJob, revision int64) *boardJob {
	b, now := j.shownAs(was), d.now()
	b.Waiting = d.whyWaits(j)
	b.Stages = d.startable(j, b.Stages)
	b.stuck = (d.health.broken != nil || j.isAside()) && !j.State.Ended && len(j.alive()) == 0
	if state := d.engineJob(j); state != nil {
		for _, t := range state.Tasks {
			if own := b.task(t.ID); own != nil && own.State == api.TaskRunning {
				own.know(t, j.newest(t.ID), now)
			}
		}
	}
	b.putRetries(d.engineJob(j))
	b.compare(was, revision, now)
	return b
}

// putRetries says when the next attempts of tasks begin. Tasks that have ended may be shared with an older board:
// they are replaced.
func (b *boardJob) putRetries(state *book.JobState) {
	replace := func(i int, at time.Time) {
		t := *b.tasks[i]
		t.RetryAt = at
		b.tasks[i] = &t
	}
	for i, t := range b.tasks {
		if !t.RetryAt.IsZero() {
			replace(i, time.Time{})
		}
	}
	if state == nil {
		return
	}
	for _, next := range state.Retries() {
		if i, here := b.taskAt(next.Task); here {
			replace(i, instant(next.At))
		}
	}
}

// startable returns stages of a job with how many of their tasks wait for room alone. The stages that it is given are
// not changed.
func (d *Driver) startable(j *job, stages []api.Stage) []api.Stage {
	state, copied := d.engineJob(j), false
	for i := range stages {
		n := 0
		if state != nil {
			n = state.MayStart(i)
		}
		if n == stages[i].Startable {
			continue
		}
		if !copied {
			stages, copied = slices.Clone(stages), true
		}
		stages[i].Startable = n
	}
	return stages
}

// shownAs returns a job for people, apart from what only the Driver and the engine know. was is how it was shown
// before, nil if it was not: it has the runs that had ended, which do not change.
func (j *job) shownAs(was *boardJob) *boardJob {
	b := &boardJob{Job: api.Job{ID: j.ID, Name: j.Request.Job.Name, Owner: j.Request.Job.Owner, UID: j.Request.As.UID,
		Submitted: instant(j.Submitted), Input: j.Request.Input, App: j.Request.Job.App, AppDerived: j.appDerived(),
		DeadlineSeconds: j.Request.Job.Deadline.Seconds(), Queue: j.Request.Job.Queue, Weight: j.Request.Job.Weight},
		replaced: make(chan struct{})}
	putState(&b.Job, &j.State)
	if !j.State.Ended {
		b.Paused = pausedOf(j.paused(cluster.TaskID{}))
	}
	for i := range j.Request.Job.Stages {
		b.Stages = append(b.Stages, stageOf(&j.Request.Job, i))
	}
	owner := api.Owner{UID: b.UID, Name: b.Owner}
	final := j.State.Ended || j.State.Cancelled || j.State.Status == cluster.StatusFailed
	for _, id := range j.tasks() {
		runs, stage := j.runs[id], &j.Request.Job.Stages[id.Stage]
		r := runs[len(runs)-1]
		count(&b.Stages[id.Stage], r, final)
		t := was.task(id)
		if t == nil || t.State != api.TaskEnded || t.Run != r.Container.Run {
			t = &boardTask{Task: r.view(stage, owner)}
			if p := pausedOf(cmp.Or(j.paused(id), j.paused(cluster.TaskID{}))); p != nil && !r.ended() {
				p.Failed = r.failed[cluster.WantHold]
				t.Paused = p
			}
		}
		b.tasks = append(b.tasks, t)
		for _, earlier := range runs[:len(runs)-1] {
			b.earlier = append(b.earlier, earlier.view(stage, owner))
		}
	}
	for i := range b.Stages {
		s := &b.Stages[i]
		b.TaskCount, b.SucceededCount = b.TaskCount+s.Tasks, b.SucceededCount+s.Succeeded
		b.pending, b.running = b.pending+s.Pending, b.running+s.Running
	}
	return b
}

// know adds what only the engine knows of a running task.
func (b *boardTask) know(t *book.TaskState, r *run, now timeline.Time) {
	putKnown(&b.Task, t, r)
	b.Leveled = leveledOf(t, r)
	if _, phased := t.PhaseAt(now); phased {
		state := *t
		if t.Throttled != nil {
			throttled := *t.Throttled // The engine changes it.
			state.Throttled = &throttled
		}
		b.state = &state
	}
}

// compare sets the revisions of a job and its tasks: that of a new board where something has changed since it was
// shown before.
func (b *boardJob) compare(was *boardJob, revision int64, now timeline.Time) {
	changed := was == nil
	for _, t := range b.tasks {
		switch before := was.task(t.Task.Task); {
		case before == t: // It had ended.
		case before != nil && reflect.DeepEqual(before.at(now), t.at(now)):
			t.revision = before.revision
		default:
			t.revision, changed = revision, true
		}
	}
	if b.revision = revision; !changed && b.stuck == was.stuck && reflect.DeepEqual(b.Job, was.Job) {
		b.revision, b.replaced = was.revision, was.replaced
	}
}
