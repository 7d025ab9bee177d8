package top

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

// state is what is known of the machine, and what the user wants to see of it. It changes by what is given to its
// methods alone: they neither read a clock nor wait.
type state struct {
	frame
	choice
	known

	rows     []row // what the table has, in order
	counts   map[string]int
	selected subject
	at       int // the index of selected in rows

	doomed row   // what is to be killed if the user confirms it
	pane   *pane // nil: closed
	asking bool  // for an explanation
}

// choice is which rows are shown, and in which order.
type choice struct {
	order
	user, state, text string // what is shown; empty is all
	tasks             bool   // rows are tasks, not jobs
}

// known is what is known of the machine.
type known struct {
	jobs      map[cluster.JobID]api.Job
	revisions map[cluster.JobID]int64 // of the last update of each job
	machine   *api.Machine            // the newest; nil before the first
	use       map[cluster.ContainerID]use
}

// use is what a container used when it was measured last.
type use struct {
	reading *cluster.Reading
	phase   api.InPhase
	cpu     int64 // millicores since the measurement before; unknown if there was none
}

// pane explains the selected job.
type pane struct {
	job      cluster.JobID
	revision int64     // of the job when that was asked
	asked    time.Time // zero: not yet
	lines    []string  // nil: no answer yet
	scroll   int
}

// explainAgain is how long an explanation is shown before that of a later revision is asked for.
const explainAgain = time.Second

func newState(c choice) *state {
	return &state{choice: c, known: known{jobs: map[cluster.JobID]api.Job{}, revisions: map[cluster.JobID]int64{}}}
}

// see takes in what the daemon has sent. It returns whether more about the same revision follows.
func (s *state) see(seen *client.Seen) (more bool) {
	switch {
	case seen.Lost != nil:
		s.lose(seen.Lost)
		return false
	case seen.Update != nil:
		s.update(seen.Update)
		more = seen.Update.More
	case seen.Machine != nil:
		s.measure(seen.Machine)
	}
	return more
}

func (s *state) update(u *api.Update) {
	if u.Snapshot {
		clear(s.revisions)
	}
	u.Apply(s.jobs)
	for i := range u.Jobs {
		if j := &u.Jobs[i]; j.Ended {
			delete(s.revisions, j.ID)
		} else {
			s.revisions[j.ID] = u.Revision
		}
	}
}

// measure takes in the state of the machine, which comes first after the connection was lost.
func (s *state) measure(m *api.Machine) {
	also := ""
	if s.machine != nil && s.machine.Status.PID != m.Status.PID {
		also = fmt.Sprintf(", to a new daemon (process %d); the jobs go on", m.Status.PID)
	}
	s.reach(also)
	was := s.use
	s.use = make(map[cluster.ContainerID]use, len(m.Tasks))
	for i := range m.Tasks {
		t := &m.Tasks[i]
		u := use{reading: t.Usage, phase: t.InPhase, cpu: unknown}
		if before, ok := was[container(t)]; ok {
			u.cpu = before.rate(&u, m.At.Sub(s.machine.At))
		}
		s.use[container(t)] = u
	}
	s.machine = m
}

// rate returns the millicores that a container has used between two measurements.
func (u *use) rate(now *use, passed time.Duration) int64 {
	switch {
	case u.reading == nil || now.reading == nil || u.reading.CPUTime == nil || now.reading.CPUTime == nil:
		return unknown
	case passed <= 0: // the same measurement
		return u.cpu
	}
	return max(0, (*now.reading.CPUTime-*u.reading.CPUTime)*1000/int64(passed))
}

// settle brings the rows up to date, keeps the selected one selected, and finds out what is to be explained.
func (s *state) settle() {
	all, counts := s.all()
	s.counts = counts
	s.rows = slices.DeleteFunc(all, func(r row) bool { return !r.matches(&s.choice) })
	sortRows(s.rows, &s.choice)
	at := slices.IndexFunc(s.rows, func(r row) bool { return r.subject == s.selected })
	if at < 0 { // as when tasks are shown instead of jobs
		at = slices.IndexFunc(s.rows, func(r row) bool { return r.job == s.selected.job })
	}
	if at < 0 {
		at = max(0, min(s.at, len(s.rows)-1))
	}
	s.choose(at)
	s.explain()
}

// choose selects a row.
func (s *state) choose(at int) {
	if s.at, s.selected = at, (subject{}); at < len(s.rows) {
		s.selected = s.rows[at].subject
	}
}

// current returns the selected row; nil if there is none.
func (s *state) current() *row {
	if s.at >= len(s.rows) {
		return nil
	}
	return &s.rows[s.at]
}

// all returns a row for each job or task, and how many jobs are in each state.
func (s *state) all() (rows []row, counts map[string]int) {
	counts = map[string]int{}
	var running []api.Job
	var tasks []api.Task
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[id]
		j.Tasks = s.measured(j.Tasks)
		running, tasks = append(running, j), append(tasks, j.Tasks...)
	}
	for i := range running {
		j := &running[i]
		of := jobRow(j, tasks, s.use)
		if counts[of.state]++; !s.tasks {
			rows = append(rows, of)
			continue
		}
		for k := range j.Tasks {
			rows = append(rows, taskRow(j, &j.Tasks[k], s.use))
		}
	}
	return rows, counts
}

// measured returns the tasks that have not ended, with what was measured last.
func (s *state) measured(tasks []api.Task) (running []api.Task) {
	for _, t := range tasks {
		if t.State == api.TaskEnded {
			continue
		}
		if u, ok := s.use[container(&t)]; ok {
			t.Usage, t.InPhase = u.reading, u.phase
		}
		running = append(running, t)
	}
	return running
}
