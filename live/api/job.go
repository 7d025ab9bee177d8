package api

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Job is a job as people see it. It is a copy that belongs to the caller.
type Job struct {
	ID   cluster.JobID `json:"id"`
	Name string        `json:"name"`
	// user name, or the number of the user if it has none
	Owner string `json:"owner" doc:"name of its user, or the number if that has none"`
	UID   uint32 `json:"uid"`
	// A failed or cancelled job may still have tasks that are being killed: see Ended.
	Status cluster.JobStatus `json:"status" doc:"pending, running or set-aside, or how it has ended: succeeded, failed or cancelled"`
	// Ended says that the job will not change any more.
	Ended     bool      `json:"ended" doc:"the job will not change any more; one that failed or was cancelled may still have tasks that are being killed"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero" doc:"when the first program began"` // when the first program began
	Finished  time.Time `json:"finished,omitzero" doc:"when the last task ended"`    // when the last task ended
	// ExitCode is 0 if the job succeeded, and else the exit code of the task that made it fail; nil while the job has
	// not ended, or if it ended without an exit code (cancelled before it ran).
	ExitCode *int `json:"exit_code,omitempty" doc:"0 if it succeeded, else that of the task that made it fail; omitted if it has not ended, or ended without one"`
	// Detail is one sentence on why the job failed; empty if it did not.
	Detail string `json:"detail,omitempty" doc:"one sentence on why the job failed"`
	// App names what recurs; AppDerived says that it was derived from the name and the command of the job. Left out of
	// lists of all jobs.
	App        string `json:"app,omitempty" doc:"its application; left out of lists of all jobs"`
	AppDerived bool   `json:"app_derived,omitempty" doc:"the application was derived from name and command"`
	// Queue and Weight are as submitted. Left out of lists of all jobs.
	Queue  string  `json:"queue,omitempty" doc:"as submitted; left out of lists of all jobs"`
	Weight float64 `json:"weight,omitempty" doc:"share of its queue relative to others; omitted if none was stated"`
	// DeadlineSeconds is the longest time that the job should wait for its start; 0 lets the policy choose.
	DeadlineSeconds float64 `json:"deadline_s,omitempty" doc:"the longest time that it should wait for its start; omitted: the policy chooses"`
	// Input says that its program reads data from its submitter, and therefore starts only once.
	Input bool `json:"input,omitempty" doc:"its program reads data from its submitter, and so starts only once"`
	// Paused is who paused the job, and when; nil if it is not paused.
	Paused *Paused `json:"paused,omitempty" doc:"who paused it, and when; omitted if it is not paused"`
	// Waiting is one clause on why the next task of the job has not started; empty if no task waits.
	Waiting string `json:"waiting,omitempty" doc:"one clause on why its next task has not started; omitted if no task waits"`
	// TaskCount is the number of its tasks, SucceededCount the number of tasks that succeeded.
	TaskCount      int `json:"task_count" doc:"number of its tasks"`
	SucceededCount int `json:"succeeded_count" doc:"tasks that succeeded"`
	// Stages are left out of ended jobs in a list of all jobs.
	Stages []Stage `json:"stages,omitempty" doc:"left out of ended jobs in a list of all jobs"`
	// Tasks are the newest runs of the tasks that have been started, by stage and index. Left out of lists without
	// tasks.
	Tasks []Task `json:"tasks,omitempty" doc:"the newest runs of the tasks that have been started, by stage and index"`
	// Earlier are the earlier runs of tasks, by stage, index and run. Left out where Tasks are.
	Earlier []Task `json:"earlier,omitempty" doc:"earlier runs of tasks"`

	// Version is equal for two Jobs of the same ID only if they are equal in everything. It is 0 if that is unknown,
	// because something in the Job follows from the time or was measured. It does not say whether Tasks and Earlier, or
	// the Stages of a job that has ended, were left out.
	Version int64 `json:"-"`
}

// Runs returns the runs of all tasks, by task and run.
func (j *Job) Runs() []Task {
	var all []Task
	earlier := j.Earlier
	for _, t := range j.Tasks {
		for len(earlier) > 0 && earlier[0].Task == t.Task {
			all, earlier = append(all, earlier[0]), earlier[1:]
		}
		all = append(all, t)
	}
	return all
}

// Has reports whether the job has a task of that number.
func (j *Job) Has(id cluster.TaskID) bool {
	return id.Stage >= 0 && int(id.Stage) < len(j.Stages) && id.Index >= 0 && int(id.Index) < j.Stages[id.Stage].Tasks
}

// Stage is a stage with its progress: Pending + Running + Succeeded + Failed = Tasks. Of its command only Timeout is
// shown, because all callers may see it.
type Stage struct {
	cluster.Stage
	Class cluster.Class `json:"class"`
	// not started, or to run again
	Pending int `json:"pending" doc:"tasks that have not started, or are to run again"`
	// of Pending: those that wait for nothing but room, or for their turn
	Startable int `json:"-"`
	// being started, or running
	Running   int `json:"running" doc:"tasks that are being started, or run"`
	Succeeded int `json:"succeeded" doc:"tasks that ended well"` // ended well
	// ended for good without success
	Failed int `json:"failed" doc:"tasks that ended for good without success"`

	// The fields below repeat fields of the stage in units for people.
	Elasticity    string `json:"elasticity" doc:"what less memory costs, in words"` // in words
	CPUMillicores int64  `json:"cpu_millicores"`
	IdealBytes    int64  `json:"ideal_memory_bytes" doc:"memory with which a task runs at full speed"`
	// estimated, at ideal memory; 0 is unknown
	DurationSeconds float64 `json:"duration_s,omitempty" doc:"estimated run time of a task with ideal memory; omitted if unknown"`
	// after which a task is killed; 0 is no limit
	TimeoutSeconds float64 `json:"timeout_s,omitempty" doc:"after which a task is killed; omitted if there is no limit"`
}
