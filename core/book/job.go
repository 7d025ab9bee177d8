package book

import (
	"iter"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// StageState is a stage as the engine knows it.
type StageState struct {
	Pending int // not started, or waiting to run again
	// Withheld counts pending tasks that do not start, because they would exceed a quota: see JobState.Startable.
	Withheld int
	Booked   int // started, launch not yet confirmed
	Running  int // launched
	Ended    int // succeeded, or failed for good in a job that keeps going
	// Failed counts those of Ended that failed.
	Failed int
	// parentsLeft counts parents not yet ended.
	parentsLeft int
	read        bool    // another stage depends on it
	passable    bool    // a stage that depends on it may start before it has ended
	demanded    bool    // in a job that drives: the number of tasks of the stage is what it demands now
	next        int32   // the lowest index that has never started
	retry       []int32 // ended without success, to run again
	held        []int32 // ended without success while paused: to run again after the pause; they are not Pending
	later       []again // failed, to run again from a time on, the first first; they are not Pending
	attempts    map[int32]int
}

// reached is how far a job has come in a list of stages that may grow.
type reached struct {
	passed int  // stages before this one have ended
	grown  bool // the job is a copy of what was submitted, and owns the list of its stages
}

// FirstLeft returns the first stage that has not ended, the number of stages if there is none. A loop over what a job
// has left need not look at earlier stages, of which a job that grows may have thousands.
func (r *reached) FirstLeft() int { return r.passed }

// JobState is a job as the engine knows it. Policies read it and never write to it.
type JobState struct {
	*cluster.Job
	// Slot is a small number, from 0, that no other job of the snapshot has. A job that is submitted after the step in
	// which another was retired may take the slot of that. A policy can keep what it knows of jobs in a list by slots.
	Slot   int
	Status cluster.JobStatus
	// Progress holds the state of each stage, in the order of Stages.
	Progress []StageState
	// Used is the sum of what the job's tasks that are booked or running hold: its consumption.
	Used resource.Vector
	// Tasks are booked or running, in no particular order.
	Tasks []*TaskState
	// Steered is false while the job has a coordinator that has not been launched.
	Steered bool
	// Reservations counts nodes reserved for the job.
	Reservations int
	// Waiting is the reason of the newest Wait decision about the job since one of its tasks was started; Code 0 if there
	// is none. It is history: Book.WhyWaits says why the job waits now.
	Waiting cluster.Reason
	// Since is when the job last got on: its submission, the newest start of one of its tasks, or the newest time at
	// which one of its tasks became ready to start, or to start again. If it has a task to start, it waits since then.
	Since timeline.Time
	// Estimate is the last estimate by a policy that estimates ends of jobs.
	Estimate Estimate
	// Suits are the nodes that suit the job better than others or worse, in ascending order.
	Suits []Suit
	// Backoff is set while a policy lets the job have fewer nodes than it could use: see Plan.BackOff.
	Backoff *Backoff
	Started timeline.Time // first launch; meaningful from StatusRunning on
	Finish  timeline.Time // meaningful when Status.Ended()

	reached
	paused paused
	begun  bool // one of its tasks was started, perhaps before an engine took the job over
	// retries orders jobs with tasks that pause between attempts by when that began; 0 if it has none.
	retries uint64
	// standing is what the gate knows of the job; nil if neither its user nor its queue has a quota, or if the gate has
	// not met it.
	standing *standing
	met      bool

	// Version changes whenever Tasks, the launch, the phase or the stillness of a task, or the pending tasks change. A
	// policy can cache what it computed for a job until then.
	Version uint64
}

// Retired reports whether j is no longer among Snapshot.Jobs: it has ended, and so have all its tasks.
func (j *JobState) Retired() bool { return j.Status.Ended() && len(j.Tasks) == 0 }

// NextStage returns the index of the first stage that may start a task now; ok is false if there is none.
func (j *JobState) NextStage() (stage int, ok bool) {
	if j.Status.Ended() {
		return 0, false
	}
	for i := j.passed; i < len(j.Stages); i++ {
		if j.Ready(i) {
			return i, true
		}
	}
	return 0, false
}

// ReadyStages yields the stages of which a task may start now, in their order.
func (j *JobState) ReadyStages() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := j.passed; i < len(j.Stages) && !j.Status.Ended(); i++ {
			if j.Ready(i) && !yield(i) {
				return
			}
		}
	}
}

// Ready reports whether a task of the stage may start now.
func (j *JobState) Ready(stage int) bool {
	return j.Startable(stage) > 0 && j.open(stage)
}

// Startable returns how many pending tasks of the stage neither a quota withholds nor the bound on how many run at
// once. If they start together, that is all or none.
func (j *JobState) Startable(stage int) int {
	s := &j.Progress[stage]
	if s.Withheld > 0 && j.Stages[stage].Together {
		return 0
	}
	if most := j.Stages[stage].AtOnce; most > 0 {
		return max(0, min(s.Pending-s.Withheld, most-s.Booked-s.Running))
	}
	return s.Pending - s.Withheld
}

// MayStart returns how many tasks of the stage may start now, which is Startable unless another stage, a pause or the
// end of the job keeps them from starting.
func (j *JobState) MayStart(stage int) int {
	if j.Status.Ended() || !j.open(stage) {
		return 0
	}
	return j.Startable(stage)
}

// open reports whether neither another stage nor a pause keeps the tasks of a stage from starting.
func (j *JobState) open(stage int) bool {
	return (j.Progress[stage].parentsLeft == 0 || j.opensEarly(stage)) && !j.PausedWhole() &&
		(j.Steered || j.Stages[stage].Coordinator)
}

// Pending returns how many tasks of stages other than coordinators have not started.
func (j *JobState) Pending() int {
	n := 0
	for i := j.passed; i < len(j.Stages); i++ {
		if !j.Stages[i].Coordinator {
			n += j.Progress[i].Pending
		}
	}
	return n
}
