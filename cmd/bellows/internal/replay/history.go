package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
)

// spans is the largest number of spans of measured use per run of a task, which become the phases of the task.
const spans = 20

// past is a job that has ended, as it can run again in a simulation.
type past struct {
	job workload.Job // its Submitted is that of the daemon's clock
	// started is when its first task was launched, ended when its last one ended.
	started, ended time.Time
	memory         float64         // granted memory × time, byte-seconds
	launches       []time.Duration // from the decisions to start tasks to their launches
	again          int             // runs before the newest of a task
	elastic        int             // tasks with less than their ideal memory
}

// submitted is when the job was submitted.
func (p *past) submitted() time.Time { return time.Unix(0, int64(p.job.Submitted)) }

// pastOf returns a job with what its tasks really did: the newest run of each task that ran, with the time in which
// its programs did not stand still and, where that was measured, what it used over time. ok is false if no task ran.
//
// A job that ended without success has the tasks that ran, and these take as long as they ran. A task that ran more
// than once takes as long as its newest run.
func pastOf(j *api.Job, used []api.TaskUsage) (p past, ok bool) {
	p.job = workload.Job{After: -1, Job: cluster.Job{ID: j.ID, Name: j.Name, Owner: j.Owner, Queue: j.Queue,
		Weight: j.Weight, Submitted: timeline.Time(j.Submitted.UnixNano()),
		Deadline: time.Duration(j.DeadlineSeconds * float64(time.Second))}}
	index := map[int]int{} // of the stages that are left
	for i := range j.Stages {
		var runs []*api.Task
		for k := range j.Tasks {
			if t := &j.Tasks[k]; int(t.Task.Stage) == i && !t.Started.IsZero() && !t.Ended.IsZero() {
				runs = append(runs, t)
			}
		}
		if len(runs) == 0 {
			continue
		}
		slices.SortFunc(runs, func(a, b *api.Task) int { return cmp.Compare(a.Task.Index, b.Task.Index) })
		index[i] = len(p.job.Stages)
		p.addStage(&j.Stages[i], runs, used)
	}
	for i := range p.job.Stages {
		s := &p.job.Stages[i]
		var parents []int
		for _, parent := range s.Parents {
			if at, left := index[parent]; left {
				parents = append(parents, at)
			}
		}
		s.Parents = parents
	}
	p.again = len(j.Earlier)
	return p, len(p.job.Stages) > 0
}

// addStage adds a stage whose tasks did what their newest runs did.
func (p *past) addStage(s *api.Stage, runs []*api.Task, used []api.TaskUsage) {
	stage := s.Stage
	stage.Command, stage.Tasks = cluster.Command{}, len(runs)
	p.job.Class = s.Class
	var took []time.Duration
	var phases [][]cluster.Phase
	for _, t := range runs {
		ran := t.Ended.Sub(t.Started)
		p.memory += float64(t.MemoryBytes) * ran.Seconds()
		p.launches = append(p.launches, t.Started.Sub(t.Booked))
		if t.UnderSized {
			p.elastic++
		}
		if p.started.IsZero() || t.Started.Before(p.started) {
			p.started = t.Started
		}
		if t.Ended.After(p.ended) {
			p.ended = t.Ended
		}
		if u := api.UsageOf(used, t); u != nil {
			ran -= u.Still()
			if list := phasesOf(u, &stage); len(list) > 0 {
				phases = append(phases, list)
			}
		}
		if s.Class != cluster.Flex {
			ran = time.Duration(float64(ran) / stage.Elasticity.Slowdown(stage.Ideal[resource.Memory],
				resource.Amount(t.MemoryBytes)))
		}
		took = append(took, max(time.Millisecond, ran))
	}
	truth := workload.StageTruth{Duration: workload.ForEach(took)}
	if len(phases) == len(runs) {
		truth.Phases = workload.ForEach(phases)
	}
	p.job.Stages, p.job.Truth = append(p.job.Stages, stage), append(p.job.Truth, truth)
}

// phasesOf returns what a run used, over time. What was not measured is as requested. No more counts than was
// requested of CPU and memory, so that a task that was granted that is not slower than it was.
func phasesOf(u *api.TaskUsage, s *cluster.Stage) (all []cluster.Phase) {
	for i := range u.Spans {
		span := &u.Spans[i]
		length := span.Ran()
		if length <= 0 {
			continue
		}
		demand := s.Ideal
		if span.CPU != nil {
			demand[resource.CPU] = min(demand[resource.CPU], resource.Amount(*span.CPU))
		}
		if span.Memory != nil {
			demand[resource.Memory] = min(demand[resource.Memory], resource.Amount(*span.Memory))
		}
		if span.Read != nil && span.Written != nil {
			demand[resource.Disk] = resource.Amount(*span.Read + *span.Written)
		}
		if span.Received != nil && span.Sent != nil {
			demand[resource.Network] = resource.Amount(*span.Received + *span.Sent)
		}
		all = append(all, cluster.Phase{Duration: length, Demand: demand})
	}
	return all
}

// history is jobs that have ended, by the times of their submission.
type history struct {
	jobs []past
	// others counts the jobs of other users, and unstarted those that never ran.
	others, unstarted int
}

// workload returns the jobs with times from the first submission on.
func (h *history) workload() *workload.Workload {
	w := &workload.Workload{}
	for i := range h.jobs {
		j := h.jobs[i].job
		j.Submitted -= h.jobs[0].job.Submitted
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

// launch is the median time from a decision to start a task to its launch.
func (h *history) launch() time.Duration {
	var all []time.Duration
	for i := range h.jobs {
		all = append(all, h.jobs[i].launches...)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return max(0, all[len(all)/2])
}

// again counts runs that were not the newest of their tasks.
func (h *history) again() (n int) {
	for i := range h.jobs {
		n += h.jobs[i].again
	}
	return n
}

// nodesOf returns the nodes of a daemon, as they are now.
func nodesOf(s *api.ClusterStatus) (all []cluster.Node) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		node := cluster.Node{ID: cluster.NodeID(i), Name: n.Name,
			Capacity: resource.Vector{resource.CPU: resource.Amount(n.CPU), resource.Memory: resource.Amount(n.Memory),
				resource.Disk: resource.Amount(n.Disk), resource.Network: resource.Amount(n.Network)}}
		for k := range resource.NumKinds {
			if slices.Contains(n.Unknown, k.Field()) {
				node.Unknown |= resource.KindsOf(k)
				node.Capacity[k] = 0
			}
		}
		all = append(all, node)
	}
	return all
}

// fits removes jobs with a task that is larger than every node is now, and returns a sentence about each.
func (h *history) fits(nodes []cluster.Node) (notes []string) {
	h.jobs = slices.DeleteFunc(h.jobs, func(p past) bool {
		for i := range p.job.Stages {
			s := &p.job.Stages[i]
			if !slices.ContainsFunc(nodes, func(n cluster.Node) bool { return s.LeastNeed().FitsIn(n.Room()) }) {
				notes = append(notes, fmt.Sprintf("Job %d is left out: stage %s no longer fits on a node.", p.job.ID,
					cluster.Printable(p.job.StageName(i))))
				return true
			}
		}
		return false
	})
	return notes
}
