package cluster

import (
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// Demand is how many tasks of a stage run or could run now, in a job that starts its own tasks: for each of them it
// could use an executor.
//
// What the engine calls a task of such a job is the attachment of one executor to one stage. It begins with a Start,
// and ends when the job gives the executor back: by itself, or because a Kill that makes room (see book.Plan.Preempt)
// has asked for it. The job still demands the executor then, so that another one is attached as soon as the policy
// can, unless it demands fewer meanwhile. An attachment has no result: however it ends, the job does not fail, and
// does not end before it closes.
type Demand struct {
	Stage int `json:"stage"`
	Tasks int `json:"tasks"` // at least 0
	// Coming says that the tasks are not demanded yet: it is the number that the stage will have.
	Coming bool `json:"coming,omitempty"`
	// As is what the stage is from now on: another one can take its number when its tasks have all ended, so that a job
	// that goes on for long need not have many. Executors that are attached stay. Its parents may have any other number,
	// and its tasks are those of the demand. nil changes nothing.
	As *Stage `json:"as,omitempty"`
}

// Growth is how an open job grows: it gets more tasks in stages that it has, then more stages, and then it may close.
// Its size is that of what is new: a job may grow thousands of times.
type Growth struct {
	Tasks  []MoreTasks `json:"tasks,omitempty"`  // by ascending stage
	Stages []Stage     `json:"stages,omitempty"` // their parents are earlier stages of the job
	// Demands take the place of Tasks in a job that drives. They may be of new stages, and are by ascending stage.
	Demands []Demand `json:"demands,omitempty"`
	// the job does not grow any more, and a job that drives demands nothing any more
	Closes bool `json:"closes,omitempty"`
}

// MoreTasks are tasks that a stage gets in addition, behind those that it has.
type MoreTasks struct {
	Stage int `json:"stage"`
	Tasks int `json:"tasks"` // at least 1
}

// Grown returns a copy of j as it is after a growth. It shares no stages with j.
func (j *Job) Grown(g *Growth) Job {
	out := *j
	out.Stages = slices.Clone(j.Stages)
	out.Grow(g)
	return out
}

// Grow changes j, which owns the list of its stages.
func (j *Job) Grow(g *Growth) {
	for _, m := range g.Tasks {
		j.Stages[m.Stage].Tasks += m.Tasks
	}
	j.Stages = append(j.Stages, g.Stages...)
	for _, d := range g.Demands {
		if d.As != nil {
			j.Stages[d.Stage] = *d.As
		}
		j.Stages[d.Stage].Tasks = d.Tasks
	}
	if j.Drives && g.Closes {
		for i := range j.Stages {
			j.Stages[i].Tasks = 0
		}
	}
	j.Open = j.Open && !g.Closes
}

// Revised returns a copy of j with what another version of it expects of its tasks: the forecasts, which are, per
// stage, duration, phases and where they come from, and the reservations of WithReservations. Nothing else of j may
// change while it waits.
func (j *Job) Revised(by *Job) Job {
	out := j.WithReservations(by)
	for i := range min(len(out.Stages), len(by.Stages)) {
		s, from := &out.Stages[i], &by.Stages[i]
		s.Duration, s.Phases, s.Told = from.Duration, from.Phases, from.Told
	}
	return out
}

// WithReservations returns a copy of j with the reservations of another version of it, if they are learned. Of a job
// that runs nothing else may change, and its tasks that run keep what they were granted.
func (j *Job) WithReservations(by *Job) Job {
	out := *j
	out.Stages = slices.Clone(j.Stages)
	for i := range min(len(out.Stages), len(by.Stages)) {
		s, from := &out.Stages[i], &by.Stages[i]
		if j.Reserve == ReserveLearned && !s.Coordinator {
			s.Ideal[resource.Memory], s.Reserved = from.Ideal[resource.Memory], from.Reserved
		}
		if s.ReservedCPU != nil && from.ReservedCPU != nil {
			s.Ideal[resource.CPU], s.ReservedCPU = from.Ideal[resource.CPU], from.ReservedCPU
		}
	}
	return out
}
