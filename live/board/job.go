package board

import (
	"reflect"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/drive"
)

// Job is a job on a board. It is never changed once it is shown, and callers share it.
type Job struct {
	api.Job          // without Tasks and Earlier
	tasks    []*Task // the newest runs of the tasks that were started, by stage and index
	earlier  []api.Task
	revision int64 // of the last change of the job, or of one of its tasks
	// pending and running count its tasks, as its stages do.
	pending, running int
	// Stuck says that it makes no progress before the next start of bellows.
	Stuck    bool
	replaced chan struct{} // closed when a later board shows it differently, or does not have it
}

// Task is the newest run of a task on a board. It is never changed once it is shown, and boards share it.
type Task struct {
	api.Task       // without InPhase
	revision int64 // of its last change
	// state is a copy of what the engine knows of the task if it has a forecast and runs: which phase it is in follows
	// from that and from the time.
	state *book.TaskState
}

// Final is the Version of jobs that have ended and will never change.
const Final = -1

// New returns a job without tasks, to be filled in and then shown.
func New(j api.Job) *Job { return &Job{Job: j, replaced: make(chan struct{})} }

// Add adds the newest run of a task, and the earlier runs, each by stage and index.
func (b *Job) Add(newest *Task, earlier ...api.Task) {
	b.tasks, b.earlier = append(b.tasks, newest), append(b.earlier, earlier...)
}

// Count counts the tasks of the job, whose stages are complete.
func (b *Job) Count() {
	for i := range b.Stages {
		s := &b.Stages[i]
		b.TaskCount, b.SucceededCount = b.TaskCount+s.Tasks, b.SucceededCount+s.Succeeded
		b.pending, b.running = b.pending+s.Pending, b.running+s.Running
	}
}

// Pending is how many of its tasks have not started, or are to run again.
func (b *Job) Pending() int { return b.pending }

// Replaced is closed when a later board shows the job differently, or does not have it.
func (b *Job) Replaced() <-chan struct{} { return b.replaced }

// Asked returns a job as it was, but with another reason why it waits, and other stages, for an edition.
func (b *Job) Asked(e *Edition, waiting string, stages []api.Stage) *Job {
	now := *b
	now.Waiting, now.Stages, now.revision, now.replaced = waiting, stages, e.next, make(chan struct{})
	return &now
}

// size is how much a job counts where memory is bounded by a number of jobs and tasks.
func (b *Job) size() int { return 1 + len(b.tasks) }

// Task returns a task of a job; nil if it was not started, or if the job is nil.
func (b *Job) Task(id cluster.TaskID) *Task {
	if b == nil {
		return nil
	}
	at, here := b.taskAt(id)
	if !here {
		return nil
	}
	return b.tasks[at]
}

func (b *Job) taskAt(id cluster.TaskID) (at int, here bool) {
	return slices.BinarySearchFunc(b.tasks, id, func(t *Task, id cluster.TaskID) int {
		return t.Task.Task.Compare(id)
	})
}

// Alone returns a job without its tasks.
func (b *Job) Alone() api.Job {
	out := b.Job
	out.Version = b.version()
	return out
}

// Whole returns a job with its tasks, as of a time from its board on.
func (b *Job) Whole(now timeline.Time) api.Job {
	out := b.Alone()
	out.Tasks, out.Earlier = b.TasksAt(now), slices.Clone(b.earlier)
	for _, t := range b.tasks {
		if t.state != nil || t.Throttle != nil || !t.RetryAt.IsZero() { // see Task.At
			out.Version = 0
		}
	}
	return out
}

// version is the Version of the Job.
func (b *Job) version() int64 {
	if b.revision == 0 && b.Ended { // It was shown of the store.
		return Final
	}
	return b.revision
}

// TasksAt returns the tasks of a job, as of a time from its board on.
func (b *Job) TasksAt(now timeline.Time) (all []api.Task) {
	for _, t := range b.tasks {
		all = append(all, t.At(now))
	}
	return all
}

// At returns a task as of a time from its board on.
func (b *Task) At(now timeline.Time) api.Task {
	t := b.Task
	if b.state != nil {
		t.InPhase = InPhase(b.state, now)
	}
	if t.Throttle != nil && !t.Throttle.Until.After(drive.Instant(now)) {
		t.Throttle = nil
	}
	if !t.RetryAt.After(drive.Instant(now)) {
		t.RetryAt = time.Time{}
	}
	return t
}

// since returns a job with the tasks that have changed after a revision.
func (b *Job) since(revision int64, now timeline.Time) api.Job {
	out := b.Job // without a version: some tasks are left out
	for _, t := range b.tasks {
		if t.revision > revision {
			out.Tasks = append(out.Tasks, t.At(now))
		}
	}
	return out
}

// SetRetries says when the next attempts of tasks begin. Tasks that have ended may be shared with an older board:
// they are replaced. state is nil if the engine does not have the job.
func (b *Job) SetRetries(state *book.JobState) {
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
			replace(i, drive.Instant(next.At))
		}
	}
}

// Startable returns stages of a job with how many of their tasks wait for room alone. The stages that it is given are
// not changed. state is nil if the engine does not have the job.
func Startable(state *book.JobState, stages []api.Stage) []api.Stage {
	copied := false
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

// Follow makes the phase that a running task is in follow from what the engine knows of it, and from the time.
func (b *Task) Follow(t *book.TaskState, now timeline.Time) {
	if _, phased := t.PhaseAt(now); phased {
		state := *t
		state.Job = &book.JobState{Job: &cluster.Job{Stages: t.Job.Stages}} // The engine revises it.
		if t.Throttled != nil {
			throttled := *t.Throttled // The engine changes it.
			state.Throttled = &throttled
		}
		b.state = &state
	}
}

// Compare sets the revisions of a job and its tasks: that of a new board where something has changed since it was
// shown before.
func (b *Job) Compare(was *Job, revision int64, now timeline.Time) {
	changed := was == nil
	for _, t := range b.tasks {
		switch before := was.Task(t.Task.Task); {
		case before == t: // It had ended.
		case before != nil && reflect.DeepEqual(before.At(now), t.At(now)):
			t.revision = before.revision
		default:
			t.revision, changed = revision, true
		}
	}
	if b.revision = revision; !changed && b.Stuck == was.Stuck && reflect.DeepEqual(b.Job, was.Job) {
		b.revision, b.replaced = was.revision, was.replaced
	}
}

// InPhase is the phase of its forecast that a task is in; zero if it has no forecast, or does not run.
func InPhase(t *book.TaskState, now timeline.Time) api.InPhase {
	phase, ok := t.PhaseAt(now)
	if !ok {
		return api.InPhase{}
	}
	phases := t.Stage().Phases
	return api.InPhase{Phase: int(phase) + 1, Phases: len(phases), Name: phases[phase].Name,
		Since: drive.Instant(t.EnteredAt(now, phase))}
}
