package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/jobs"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// row is a job or a task as the table shows it. Its texts are printable.
type row struct {
	subject
	id, user, name, state, why string
	named                      bool  // the name is one, and not the size of the job
	asked, reserved, limit     int64 // bytes, of the tasks that have started and not ended; see api.Task and jobs.Limit
	used, peak                 int64 // bytes, of the same tasks
	cores, cpu                 int64 // millicores: granted, and used
	started                    time.Time
	done                       string
	share                      float64 // that is done
}

// subject is what a row is about: a job, or a task if it is not zero.
type subject struct {
	job  cluster.JobID
	task cluster.TaskID
}

func (s subject) String() string {
	if s.task != (cluster.TaskID{}) {
		return "task " + s.task.String()
	}
	return fmt.Sprintf("job %d", s.job)
}

func newRow(of subject, user, name string, j *api.Job) row {
	r := row{subject: of, user: cluster.Printable(user), name: cluster.Printable(name), named: name != "", used: unknown,
		peak: unknown, cpu: unknown}
	if !r.named {
		r.name = sizeWords(j)
	}
	return r
}

// jobRow returns the row of a job. all are the tasks of all jobs; they and those of the job have their usage.
func jobRow(j *api.Job, all []api.Task, use map[cluster.ContainerID]use) row {
	r := newRow(subject{job: j.ID}, j.Owner, j.Name, j)
	r.id, r.started = strconv.FormatInt(int64(j.ID), 10), j.Started
	r.state, r.why = jobs.JobState(j, all)
	r.why = cluster.Printable(r.why)
	for i := range j.Tasks {
		r.add(&j.Tasks[i], use)
	}
	if r.done = fmt.Sprintf("%d/%d", j.SucceededCount, j.TaskCount); j.TaskCount > 0 {
		r.share = float64(j.SucceededCount) / float64(j.TaskCount)
	}
	if j.TaskCount == 1 && len(j.Tasks) == 1 {
		r.inPhase(&j.Tasks[0].InPhase)
	}
	return r
}

func taskRow(j *api.Job, t *api.Task, use map[cluster.ContainerID]use) row {
	r := newRow(subject{j.ID, t.Task}, j.Owner, j.Name, j)
	r.id, r.started = t.Task.String(), t.Started
	r.state, r.why = jobs.TaskState(j, t)
	r.why = cluster.Printable(r.why)
	r.add(t, use)
	r.inPhase(&t.InPhase)
	return r
}

// inPhase says in which phase of its forecast a task is, if it has one.
func (r *row) inPhase(p *api.InPhase) {
	if p.Phase > 0 {
		r.done, r.share = fmt.Sprintf("p%d/%d", p.Phase, p.Phases), float64(p.Phase-1)/float64(max(1, p.Phases))
	}
}

// add adds what was asked for a task, what it was granted, and what it uses.
func (r *row) add(t *api.Task, use map[cluster.ContainerID]use) {
	r.asked, r.reserved, r.limit = r.asked+t.AskedBytes, r.reserved+t.MemoryBytes, r.limit+jobs.Limit(t)
	r.cores += t.CPUMillicores
	if u := t.Usage; u != nil {
		sum(&r.used, u.Anonymous)
		sum(&r.peak, u.Peak)
	}
	if u, ok := use[container(t)]; ok && u.cpu != unknown {
		sum(&r.cpu, &u.cpu)
	}
}

// sum adds an amount, if it is known, to a sum, which is unknown until then.
func sum(to, amount *int64) {
	if amount != nil {
		*to = max(0, *to) + *amount
	}
}

func container(t *api.Task) cluster.ContainerID {
	return cluster.ContainerID{Task: t.Task, Run: t.Run}
}

// sizeWords says how large a job is, and of which class: in place of its name.
func sizeWords(j *api.Job) string {
	if len(j.Stages) == 0 {
		return ""
	}
	s := &j.Stages[0]
	if len(j.Stages) > 1 {
		return fmt.Sprintf("%s, %s", s.Class, terminal.Count(len(j.Stages), "stage"))
	}
	if j.TaskCount > 1 {
		return fmt.Sprintf("%s %d×%s", s.Class, j.TaskCount, size(s.IdealBytes))
	}
	return fmt.Sprintf("%s %s", s.Class, size(s.IdealBytes))
}

// took is how long a row has run.
func (r *row) took(now time.Time) string {
	if r.started.IsZero() {
		return "-"
	}
	return terminal.Age(now.Sub(r.started))
}

// matches reports whether the user wants to see a row.
func (r *row) matches(c *choice) bool {
	if c.user != "" && r.user != c.user || c.state != "" && r.state != c.state {
		return false
	}
	text := strings.ToLower(c.text)
	return slices.ContainsFunc([]string{r.id, r.user, r.name, r.state}, func(part string) bool {
		return strings.Contains(strings.ToLower(part), text)
	})
}

// sortRows sorts rows by a column, and rows that are equal there by their number.
func sortRows(rows []row, c *choice) {
	jobTable.sort(rows, c.order, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.task.Stage, b.task.Stage),
			cmp.Compare(a.task.Index, b.task.Index))
	})
}

// nameLook is how the name is shown, or what is there instead.
func (r *row) nameLook() style {
	if r.named {
		return plain
	}
	return faint
}
