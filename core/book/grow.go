package book

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// StageEnded reports whether all tasks of a stage have succeeded. A stage without tasks ends when its job closes. A
// stage of a job that drives has ended while it demands nothing and no executor is attached to it.
func (j *JobState) StageEnded(stage int) bool {
	if j.Drives {
		return j.Stages[stage].Tasks+j.attached(stage) == 0
	}
	return j.Progress[stage].Ended == j.Stages[stage].Tasks && (j.Stages[stage].Tasks > 0 || !j.Open)
}

// CheckGrowth returns an error if j cannot grow in that way. It must be open. A stage that has ended gets no more
// tasks if another stage depends on it, because tasks of that stage may have started. No coordinator is added.
// Whether the new tasks fit into the cluster is not checked: see Snapshot.CheckFits.
func (j *JobState) CheckGrowth(g *cluster.Growth) error {
	switch {
	case g == nil || len(g.Tasks)+len(g.Stages)+len(g.Demands) == 0 && !g.Closes:
		return fmt.Errorf("job %d: grows by nothing", j.ID)
	case !j.Open || j.Status.Ended():
		return fmt.Errorf("job %d: grows, but is not open", j.ID)
	case j.Drives && len(g.Tasks) > 0:
		return fmt.Errorf("job %d: gets tasks, but starts its own: it can only demand executors", j.ID)
	}
	last := -1
	for _, m := range g.Tasks {
		if m.Stage <= last || m.Stage >= len(j.Stages) {
			return fmt.Errorf("job %d: stage %d gets more tasks: must be one of the %d stages that the job has, in "+
				"ascending order", j.ID, m.Stage, len(j.Stages))
		}
		last = m.Stage
		switch s := &j.Stages[m.Stage]; {
		case s.Coordinator:
			return j.WrongIn(m.Stage, "tasks", m.Tasks, "a coordinator is 1 task")
		case m.Tasks < 1 || m.Tasks > cluster.MostTasks-s.Tasks:
			return j.WrongIn(m.Stage, "tasks", m.Tasks, "must be 1 to %d in addition to the %d that the stage has",
				cluster.MostTasks-s.Tasks, s.Tasks)
		case j.Progress[m.Stage].read && j.StageEnded(m.Stage):
			return j.WrongIn(m.Stage, "tasks", m.Tasks,
				"must not be added, because the stage has ended and another stage depends on it")
		}
	}
	for i := range g.Stages {
		if err := j.CheckNew(&g.Stages[i], len(j.Stages)+i); err != nil {
			return err
		}
	}
	return j.checkDemands(g)
}

// grow records that a job has grown.
func (s *Snapshot) grow(now timeline.Time, id cluster.JobID, g *cluster.Growth) error {
	j, ok := s.byJob[id]
	if !ok {
		return fmt.Errorf("job %d: grows, but it is not here, or already ended", id)
	}
	if err := j.CheckGrowth(g); err != nil {
		return err
	}
	_, before := j.NextStage()
	first := len(j.Stages)
	job := *j.Job // Who keeps what was computed for a job can see by the address that it is another.
	if !j.grown {
		job.Stages, j.grown = slices.Clone(job.Stages), true
	}
	job.Grow(g)
	j.Job = &job
	for _, m := range g.Tasks {
		j.Progress[m.Stage].Pending += m.Tasks
		j.passed = min(j.passed, m.Stage)
	}
	for i := first; i < len(j.Stages); i++ {
		j.begin(i)
	}
	j.demand(g)
	if j.standing != nil {
		j.standing.grow(j, g, first)
	}
	if g.Closes && !j.Drives {
		for i := j.passed; i < len(j.Stages); i++ {
			if j.Stages[i].Tasks == 0 {
				s.pass(now, j, i)
			}
		}
	}
	j.conclude()
	if _, ready := j.NextStage(); ready {
		if !before {
			j.Waiting = cluster.Reason{}
		}
		j.Since = max(j.Since, now)
		s.demand()
	}
	j.Version++
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	s.Changes.Arrived = true
	s.Estimates.stale(now)
	if j.Retired() {
		s.retire(now, j)
	}
	return nil
}

// begin adds the state of a stage. Earlier stages have theirs.
func (j *JobState) begin(stage int) {
	if j.Drives {
		j.Progress = append(j.Progress, StageState{}) // It knows itself when tasks may start.
		return
	}
	p := StageState{Pending: j.Stages[stage].Tasks}
	for _, parent := range j.Stages[stage].Parents {
		j.Progress[parent].read = true
		if !j.StageEnded(parent) {
			p.parentsLeft++
		}
	}
	j.Progress = append(j.Progress, p)
}

// pass records that a stage has ended: stages that waited for it may start.
func (s *Snapshot) pass(now timeline.Time, j *JobState, stage int) {
	first := j.passed
	if !s.Synced {
		first = 0 // The end of a stage may be reported before that of its parent.
	}
	for i := first; i < len(j.Stages); i++ {
		for _, parent := range j.Stages[i].Parents {
			if parent == stage {
				j.Progress[i].parentsLeft--
				j.goOn(now, i)
				if j.Ready(i) {
					j.Since = max(j.Since, now)
					s.demand()
				}
			}
		}
	}
}

// conclude ends a job all of whose stages have ended, unless it is open.
func (j *JobState) conclude() {
	for j.passed < len(j.Stages) && j.StageEnded(j.passed) {
		j.passed++
	}
	if j.passed == len(j.Stages) && !j.Open && !j.Status.Ended() {
		j.Status = cluster.StatusSucceeded
	}
}

// grow withholds the tasks that a job has got, until it has its turn. Its stages from first on are new.
func (st *standing) grow(j *JobState, g *cluster.Growth, first int) {
	for _, m := range g.Tasks {
		j.Progress[m.Stage].Withheld += m.Tasks
	}
	st.look(j, first)
	for i := first; i < len(j.Stages); i++ {
		j.Progress[i].Withheld = j.Progress[i].Pending
	}
}

// look takes the needs of the stages from first on into account; from 0 on, those of all stages anew. What waits in an
// account may be smaller than before.
func (st *standing) look(j *JobState, first int) {
	for k := range cluster.QuotaRunning {
		if first == 0 {
			st.least[k] = cluster.Unlimited
		}
		for i := first; i < len(j.Stages); i++ {
			st.least[k] = min(st.least[k], j.Stages[i].Counts(k, 1))
		}
		if !st.waits {
			continue
		}
		for _, a := range st.accounts {
			a.least[k] = min(a.least[k], st.least[k])
		}
	}
}
