package comparison

import (
	"math"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
)

// Schedule is the tasks of a run over time, for pictures.
type Schedule struct {
	End   float64 // seconds
	Nodes []string
	Tasks []Task
	// Capacity is the capacity of all nodes together, per resource that every node knows and the cluster limits, in the
	// order of Resources.
	Resources []string
	Capacity  []float64
}

// Task is the grant of a task on a node.
type Task struct {
	Node, Job int
	From, To  float64   // seconds
	Faint     bool      // under-sized
	Held      []float64 // as Schedule.Capacity
}

// Grants is the grants of all tasks of a run.
type Grants map[cluster.TaskID]resource.Vector

// GrantsOf changes config so that the simulation records the grants of all tasks.
func GrantsOf(config *sim.Config) Grants {
	grants := Grants{}
	config.KeepTasks = true
	config.Observe = func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
		for i := range decisions {
			if decisions[i].Kind == cluster.Start {
				grants[decisions[i].Task] = decisions[i].Grant
			}
		}
	}
	return grants
}

// Schedule returns the data of pictures: the grants of all tasks, of the resources that the cluster limits.
func (g Grants) Schedule(config sim.Config, res *sim.Result) *Schedule {
	s := &Schedule{}
	total := sim.Pool(config.Nodes)[0].Capacity
	for _, n := range config.Nodes {
		s.Nodes = append(s.Nodes, n.Name)
	}
	var kinds []resource.Kind
	for k := range resource.NumKinds {
		// Memory comes first: policies differ most in how they grant it.
		switch k {
		case resource.CPU:
			k = resource.Memory
		case resource.Memory:
			k = resource.CPU
		}
		if total[k] > 0 {
			kinds = append(kinds, k)
			s.Resources, s.Capacity = append(s.Resources, kindName(k)), append(s.Capacity, float64(total[k]))
		}
	}
	index := make(map[cluster.JobID]int, len(res.Jobs))
	for i := range res.Jobs {
		index[res.Jobs[i].ID] = i
	}
	for _, t := range res.Tasks {
		held := g[t.ID]
		held[resource.Memory] = t.Memory // of this run of the task
		task := Task{Node: int(t.Node), Job: index[t.ID.Job], From: t.Launched.Seconds(), To: t.Finished.Seconds(),
			Faint: t.UnderSized}
		for _, k := range kinds {
			task.Held = append(task.Held, float64(held[k]))
		}
		s.Tasks = append(s.Tasks, task)
		s.End = max(s.End, task.To)
	}
	return s
}

func kindName(k resource.Kind) string {
	if k == resource.CPU {
		return "CPU"
	}
	return k.String()
}

// Runtimes returns the runtimes of all jobs in seconds, in the order of the workload; NaN for a job that failed.
func Runtimes(res *sim.Result) []float64 {
	all := make([]float64, len(res.Jobs))
	for i := range res.Jobs {
		all[i] = math.NaN()
		if res.Jobs[i].Done {
			all[i] = res.Jobs[i].Runtime().Seconds()
		}
	}
	return all
}
