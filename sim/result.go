package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Result is the outcome of a simulation.
type Result struct {
	Policy string
	Jobs   []JobResult  // in the order of the workload
	Tasks  []TaskResult // in the order of launch; only if Config.KeepTasks

	// Makespan is the time from the first submission to the end of the last job.
	Makespan time.Duration
	// AverageJobRuntime is the mean time from submission to end over the jobs that succeeded.
	AverageJobRuntime time.Duration
	// MemoryUtilisation is granted memory (as in Sample) × time over the cluster's memory × makespan, 0 to 1. If some
	// jobs did not end, the time from the first submission to the last event replaces the makespan.
	MemoryUtilisation float64
	// IdleExecutors is the memory that executors held while they idled, each as much as the grant of its last task, in
	// byte-seconds. It is not part of MemoryUtilisation: tasks of others may get it. See Startup.Keep.
	IdleExecutors float64
	// Started counts launched tasks without coordinators; UnderSized counts the under-sized ones among them.
	Started, UnderSized int
	Losses              // of all jobs together
	// Forecasts are those of Config.History.
	Forecasts Forecasts
	// Series is what was granted and used over time; nil unless Config.Series asks for it.
	Series *Series
	// Nodes is what was granted, demanded and used on each node, by NodeID; nil unless Config.Series.Nodes asks for it.
	Nodes []NodeSeries
	// Steps counts the engine's steps, Events the happenings of the simulation.
	Steps, Events int64
}

// Losses are what keeps tasks from doing their work once and at once.
type Losses struct {
	// OutOfMemory, Killed, Preempted and Lost count runs of tasks by their outcome, coordinators included. Retries
	// counts tasks that were to run again because of such an outcome, and LostWork is the sum of the run times of the
	// runs that were lost.
	OutOfMemory, Killed, Preempted, Lost, Retries int
	LostWork                                      time.Duration

	// Throttles counts how often tasks were throttled, and Throttled is the total time for which they were, until their
	// end. Throttles that replace each other without a pause count once.
	Throttles int
	Throttled time.Duration
	// Resizes counts how often the grants of running tasks were changed.
	Resizes int

	// For workloads with FLEX jobs: the total time that containers were suspended; the number of kills by memory
	// managers, which Preempted includes; the bytes of FLEX containers that were swapped out; and the total time that
	// tasks waited for a memory manager to admit them, coordinators included.
	Suspended       time.Duration
	ManagerKills    int
	SwappedBytes    resource.Amount
	WaitedForMemory time.Duration
}

func (l *Losses) add(more *Losses) {
	l.OutOfMemory, l.Killed, l.Preempted, l.Lost = l.OutOfMemory+more.OutOfMemory, l.Killed+more.Killed,
		l.Preempted+more.Preempted, l.Lost+more.Lost
	l.Retries, l.LostWork = l.Retries+more.Retries, l.LostWork+more.LostWork
	l.Throttles, l.Throttled, l.Resizes = l.Throttles+more.Throttles, l.Throttled+more.Throttled, l.Resizes+more.Resizes
	l.Suspended, l.ManagerKills = l.Suspended+more.Suspended, l.ManagerKills+more.ManagerKills
	l.SwappedBytes, l.WaitedForMemory = l.SwappedBytes+more.SwappedBytes, l.WaitedForMemory+more.WaitedForMemory
}

// JobResult is the outcome of one job.
type JobResult struct {
	ID         cluster.JobID
	Name       string
	Submitted  timeline.Time
	Started    timeline.Time // first launch without the coordinator; meaningful if Tasks > 0
	Ended      timeline.Time // meaningful if Done or Failed
	Done       bool          // it succeeded
	Failed     bool          // it ended without success, or was cancelled
	Failure    string        // reason of the failure, if Failed
	Tasks      int           // launched, without the coordinator
	UnderSized int           // under-sized among Tasks
	Stuck      string        // reason why the job did not end; empty if it ended

	Losses
}

// Runtime is the time from submission to end.
func (j *JobResult) Runtime() time.Duration { return j.Ended.Sub(j.Submitted) }

// TaskResult is the outcome of one task.
type TaskResult struct {
	ID                 cluster.TaskID
	Coordinator        bool
	UnderSized         bool
	Outcome            cluster.Outcome // 0 if it did not end
	Node               cluster.NodeID
	Launched, Finished timeline.Time
	Decided            timeline.Time // time of its start decision
	Memory             resource.Amount
	// of its executor, when it began; a task that was found running was begun on a warm one
	Warmth workload.Warmth
}

// Ended reports whether the run of the task ended.
func (t *TaskResult) Ended() bool { return t.Outcome != 0 }

// Unfinished returns the jobs that did not end.
func (r *Result) Unfinished() []JobResult {
	var left []JobResult
	for _, j := range r.Jobs {
		if !j.Done && !j.Failed {
			left = append(left, j)
		}
	}
	return left
}

// Failures returns the jobs that failed or were cancelled.
func (r *Result) Failures() []JobResult {
	var failed []JobResult
	for _, j := range r.Jobs {
		if j.Failed {
			failed = append(failed, j)
		}
	}
	return failed
}

// UnderSizedShare is the share of under-sized tasks, 0 to 1.
func (r *Result) UnderSizedShare() float64 {
	if r.Started == 0 {
		return 0
	}
	return float64(r.UnderSized) / float64(r.Started)
}

// usage integrates granted memory over time. It is not a timeline.Area, which rounds once: stored results have the
// rounding of this sum.
type usage struct {
	held     resource.Amount
	since    timeline.Time
	integral float64 // byte-seconds
}

func (u *usage) change(now timeline.Time, by resource.Amount) {
	u.integral += float64(u.held) * now.Sub(u.since).Seconds()
	u.held += by
	u.since = now
}

func (r *run) finish() *Result {
	res := r.result
	res.Policy = r.policy.Name()
	res.Steps = r.engine.Steps()
	done, total, stuck := 0, time.Duration(0), false
	first, last := timeline.Never, timeline.Time(0)
	for i, j := range r.jobs {
		res.Started, res.UnderSized = res.Started+res.Jobs[i].Tasks, res.UnderSized+res.Jobs[i].UnderSized
		res.Losses.add(&res.Jobs[i].Losses)
		if j.arrived {
			first = min(first, res.Jobs[i].Submitted)
		}
		if !j.done {
			res.Jobs[i].Stuck, stuck = r.whyStuck(j), true
			continue
		}
		if j.arrived {
			last = max(last, res.Jobs[i].Ended)
		}
		if j.failing == "" {
			done++
			total += res.Jobs[i].Runtime()
		}
	}
	if last > first {
		res.Makespan = last.Sub(first)
	}
	if done > 0 {
		res.AverageJobRuntime = total / time.Duration(done)
	}
	over := res.Makespan
	if stuck && r.now > first {
		over = r.now.Sub(first)
	}
	res.MemoryUtilisation = r.utilisation(over)
	for _, id := range slices.Sorted(maps.Keys(r.idle)) {
		r.endIdle(id, first.Add(over))
	}
	res.Series = r.recorder.series(r.now)
	if r.config.KeepTasks {
		for _, t := range r.tasks.list {
			if t.ended() {
				res.Tasks = append(res.Tasks, t.result)
			}
		}
		slices.SortStableFunc(res.Tasks, func(a, b TaskResult) int { return cmp.Compare(a.Launched, b.Launched) })
	}
	return res
}

// utilisation is the share of memory that was granted, over the given time, which must be all time since the first
// submission.
func (r *run) utilisation(over time.Duration) float64 {
	if over <= 0 {
		return 0
	}
	r.used.change(max(r.now, r.used.since), 0)
	if len(r.config.Incidents) == 0 {
		return r.used.integral / (float64(r.capacity.held) * over.Seconds())
	}
	r.capacity.change(max(r.now, r.capacity.since), 0)
	return r.used.integral / r.capacity.integral
}
