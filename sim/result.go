package sim

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Result is what came of a run.
type Result struct {
	Policy string
	Jobs   []JobResult  // in the order of the workload
	Tasks  []TaskResult // in the order of launch; only if Config.KeepTasks

	// Makespan is the time from the first submission to the end of the last job.
	Makespan time.Duration
	// AverageJobRuntime is the mean time from submission to end over the jobs that succeeded.
	AverageJobRuntime time.Duration
	// MemoryUtilisation is granted memory × time over the cluster's memory × makespan, 0 to 1.
	MemoryUtilisation float64
	// Started counts launched tasks, coordinators aside; Elastic those of them that were under-sized.
	Started, Elastic int
	// Steps counts the engine's steps, Events the happenings of the simulation.
	Steps, Events int64
}

// JobResult is what came of one job.
type JobResult struct {
	ID        cluster.JobID
	Name      string
	Submitted timeline.Time
	Started   timeline.Time // first launch, coordinator aside; meaningful if Tasks > 0
	Ended     timeline.Time // meaningful if Done
	Done      bool
	Tasks     int    // launched, coordinator aside
	Elastic   int    // of those, under-sized
	Stuck     string // why the job did not end, if it did not
}

// Runtime is the time from submission to end.
func (j *JobResult) Runtime() time.Duration { return j.Ended.Sub(j.Submitted) }

// TaskResult is what came of one task.
type TaskResult struct {
	ID                 cluster.TaskID
	Coordinator        bool
	Node               cluster.NodeID
	Memory             resource.Amount
	Elastic            bool
	Decided            timeline.Time // when it was started
	Launched, Finished timeline.Time
}

// Unfinished returns the jobs that did not end.
func (r *Result) Unfinished() []JobResult {
	var left []JobResult
	for _, j := range r.Jobs {
		if !j.Done {
			left = append(left, j)
		}
	}
	return left
}

// ElasticShare is the share of under-sized tasks, 0 to 1.
func (r *Result) ElasticShare() float64 {
	if r.Started == 0 {
		return 0
	}
	return float64(r.Elastic) / float64(r.Started)
}

// usage integrates granted memory over time.
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
	done, total := 0, time.Duration(0)
	first, last := timeline.Never, timeline.Time(0)
	for i, j := range r.jobs {
		if j.arrived {
			first = min(first, res.Jobs[i].Submitted)
		}
		if !j.done {
			res.Jobs[i].Stuck = r.whyStuck(j)
			continue
		}
		done++
		total += res.Jobs[i].Runtime()
		last = max(last, res.Jobs[i].Ended)
	}
	if done > 0 {
		res.Makespan = last.Sub(first)
		res.AverageJobRuntime = total / time.Duration(done)
	}
	var capacity resource.Vector
	for _, n := range r.config.Nodes {
		capacity = capacity.Add(n.Capacity)
	}
	r.used.change(max(r.now, r.used.since), 0)
	if res.Makespan > 0 {
		res.MemoryUtilisation = r.used.integral / (float64(capacity[resource.Memory]) * res.Makespan.Seconds())
	}
	return res
}

// whyStuck says why a job did not end.
func (r *run) whyStuck(j *job) string {
	if !j.arrived {
		return "the job after whose end it is submitted did not end"
	}
	state, ok := r.engine.Snapshot().Job(j.ID)
	switch {
	case !ok:
		return "its coordinator did not end it"
	case state.Waiting.Code != 0:
		return state.Waiting.Words(nil)
	case !state.Steered:
		return cluster.Because(cluster.WaitsForCoordinator).Words(nil)
	}
	return "nothing more happens in the cluster"
}
