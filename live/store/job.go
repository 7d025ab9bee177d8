package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Job is a job as it was submitted, with its progress.
type Job struct {
	ID        cluster.JobID // assigned by AddJob
	Submitted timeline.Time
	Request   Request
	State     JobState
	Pauses    []Pause
	// Bytes is what the request of a job that has not ended takes in the store, with its part of an environment that it
	// shares. AddJobs and OpenJobs set it.
	Bytes int64
}

// Pause says who paused a job or task, and when.
type Pause struct {
	Task  cluster.TaskID `json:"task,omitzero"` // zero: the whole job
	By    string         `json:"by"`            // name of the user, or the number
	Since timeline.Time  `json:"since_ns"`
	// PageOut says that the memory of the programs is to be paged out meanwhile.
	PageOut bool `json:"page_out,omitzero"`
}

// Listed is a job as lists show it: without its request and its tasks.
type Listed struct {
	ID        cluster.JobID
	UID       uint32
	User      string // empty if the user has no name
	Name      string
	Submitted timeline.Time
	State     JobState
	Tasks     int
}

// Request is what the user submitted, with the forecasts that were learned. It never changes, except that forecasts are
// revised while the job waits.
type Request struct {
	Job cluster.Job         `json:"job"` // its ID is that of the row
	As  cluster.Credentials `json:"as"`
	// Env is stored and not read again, since it may be large: see Environment. It is dropped once the job has ended.
	Env []string `json:"env,omitempty"`
	Dir string   `json:"dir"`
	// Inherited is what programs inherit from the submitting process besides rights; nil if it was not sent.
	Inherited *cluster.Inherited `json:"inherited,omitempty"`
	// Input says that the program reads input that its submitter sends. Input cannot be read twice, so the program
	// never starts twice.
	Input bool `json:"input,omitempty"`
	// Untimed are the indexes of the stages without a stated run time: what is learned may give and revise it.
	Untimed []int `json:"untimed,omitempty"`
}

// JobState is the progress of a job.
type JobState struct {
	Status    cluster.JobStatus
	Ended     bool // Status is final
	Cancelled bool // its owner has requested its end
	Started   timeline.Time
	Finished  timeline.Time
	ExitCode  *int
	Detail    string
	Succeeded int // tasks that succeeded, once the job has ended
}

// Task is one run of a task.
type Task struct {
	Container cluster.ContainerID
	UID       uint32 // owner
	Node      string
	Grant     resource.Vector
	Why       string
	Booked    timeline.Time
	Started   timeline.Time
	Ended     timeline.Time
	Outcome   cluster.Outcome // 0 until the run has ended
	Throttle  *Throttle       // the newest; nil if the run is not throttled
	// Progress is how far it had come when that last changed otherwise than as time passes; nil if it just runs.
	Progress *cluster.Progress
	Exit     *cluster.Exit
	Detail   string
	// Taught says that its end for want of memory was learned from.
	Taught bool
}

// exit is what is stored of how a run ended.
type exit struct {
	*cluster.Exit
	Taught bool `json:"taught,omitempty"`
}

// Throttle is what was ordered to bound a run, and what became of it.
type Throttle struct {
	Bound   resource.Vector `json:"bound"` // zero: it is to end
	Until   timeline.Time   `json:"until_ns"`
	Why     string          `json:"why,omitempty"`
	How     string          `json:"how,omitempty"`    // how it is carried out, if not by the kernel alone
	InForce bool            `json:"in_force"`         // it was carried out
	Failed  string          `json:"failed,omitempty"` // why it could not be carried out
}

// Batch is written entirely or not at all.
type Batch struct {
	Jobs    map[cluster.JobID]JobState    // jobs that are already stored
	Tasks   []Task                        // new, or in place of the stored run of the same container
	Gone    []cluster.ContainerID         // containers whose runs are deleted
	Pauses  map[cluster.JobID][]Pause     // of jobs that are already stored: all of a job, none is nil
	Revised map[cluster.JobID]cluster.Job // of jobs that are already stored, with other forecasts
	Usage   []Usage                       // of runs that are stored, or are among Tasks
}

// Empty reports whether there is nothing to write.
func (b *Batch) Empty() bool {
	return len(b.Jobs) == 0 && len(b.Tasks) == 0 && len(b.Gone) == 0 && len(b.Usage) == 0 && len(b.Revised) == 0 &&
		len(b.Pauses) == 0
}

// AddJob is AddJobs of one job without a key.
func (s *Store) AddJob(ctx context.Context, j Job) (cluster.JobID, error) {
	id, _, err := s.AddJobs(ctx, []Job{j}, nil)
	return id, err
}

// AddJobs stores new jobs of one user, at least one, all or none, and returns the id of the first; the ids of the
// others follow. No id was ever used before, and those in jobs are ignored; their Bytes are set. key may be nil. If
// it counts already, nothing is stored, and earlier is what was stored with it; otherwise it is stored with the jobs.
func (s *Store) AddJobs(ctx context.Context, jobs []Job, key *Key) (first cluster.JobID, earlier *Key, err error) {
	shared, requests, err := requestsOf(jobs)
	if err != nil {
		return 0, nil, err
	}
	err = s.write(ctx, "add a job to", func(tx *change) (err error) {
		if key != nil {
			if earlier, err = findKey(ctx, tx, key); earlier != nil || err != nil {
				return err
			}
		}
		if first, err = addJobs(ctx, tx, jobs, shared, requests); err != nil || key == nil {
			return err
		}
		added := *key
		added.First, added.Jobs = first, len(jobs)
		return putKey(ctx, tx, &added)
	})
	for i := range jobs {
		jobs[i].Bytes = int64(len(requests[i]) + len(shared)/len(jobs))
	}
	return first, earlier, err
}

// requestsOf returns the requests of jobs as JSON. If the jobs have the same environment, it is in shared, and in
// none of the requests.
func requestsOf(jobs []Job) (shared string, requests []string, err error) {
	env := jobs[0].Request.Env
	together := len(jobs) > 1 && len(env) > 0
	for i := 1; i < len(jobs) && together; i++ {
		together = slices.Equal(jobs[i].Request.Env, env)
	}
	if together {
		text, err := json.Marshal(env)
		if err != nil {
			return "", nil, fmt.Errorf("store an environment: %w", err)
		}
		shared = string(text)
	}
	for i := range jobs {
		request := jobs[i].Request
		if together {
			request.Env = nil
		}
		text, err := json.Marshal(request)
		if err != nil {
			return "", nil, fmt.Errorf("store job %q: %w", request.Job.Name, err)
		}
		requests = append(requests, string(text))
	}
	return shared, requests, nil
}

// addJobs stores jobs with what requestsOf returned for them, and returns the id of the first.
func addJobs(ctx context.Context, tx *change, jobs []Job, shared string, requests []string) (first cluster.JobID,
	err error) {
	for i := range jobs {
		j := &jobs[i]
		added, err := tx.ExecContext(ctx,
			`INSERT INTO jobs (owner_uid, owner_name, name, status, submitted_ns, request, task_count) VALUES (?, ?, ?, ?, ?, ?, ?)`, j.Request.As.UID, j.Request.As.User, j.Request.Job.Name, j.State.Status.String(), int64(j.Submitted), requests[i], j.Request.Job.Tasks())
		if err != nil {
			return 0, err
		}
		id, err := added.LastInsertId()
		if err != nil {
			return 0, err
		}
		if i == 0 {
			first = cluster.JobID(id)
		}
	}
	if err := tx.store.mark.reserve(first + cluster.JobID(len(jobs)-1)); err != nil {
		return 0, err
	}
	if shared == "" {
		return first, nil
	}
	added, err := tx.ExecContext(ctx, `INSERT INTO environments (owner_uid, env) VALUES (?, ?)`, jobs[0].Request.As.UID,
		shared)
	if err != nil {
		return 0, err
	}
	environment, err := added.LastInsertId()
	if err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE jobs SET environment = ? WHERE id >= ? AND id < ?`, environment, int64(first),
		int64(first)+int64(len(jobs)))
	return first, err
}

// unread is JSON that is not read.
type unread struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (unread) UnmarshalJSON([]byte) error { return nil }

// read decodes a stored request without its environment.
func (r *Request) read(text []byte) error {
	stored := struct {
		*Request
		Env unread `json:"env"`
	}{Request: r}
	return json.Unmarshal(text, &stored)
}

// Write stores a batch.
func (s *Store) Write(ctx context.Context, b Batch) error {
	if b.Empty() {
		return nil
	}
	return s.write(ctx, "write to", func(tx *change) error {
		for id, j := range b.Revised {
			revised, err := json.Marshal(j)
			if err != nil {
				return fmt.Errorf("job %d: %w", id, err)
			}
			if _, err := tx.ExecContext(ctx,
				`UPDATE jobs SET request = json_set(request, '$.job', json(?)) WHERE id = ? AND ended = 0`, string(revised),
				int64(id)); err != nil {
				return fmt.Errorf("job %d: %w", id, err)
			}
		}
		for id, state := range b.Jobs {
			if err := putJobState(ctx, tx, id, state); err != nil {
				return err
			}
		}
		for id, pauses := range b.Pauses {
			if err := putPauses(ctx, tx, id, pauses); err != nil {
				return err
			}
		}
		for i := range b.Tasks {
			if err := putTask(ctx, tx, &b.Tasks[i]); err != nil {
				return err
			}
			if err := fellShort(ctx, tx, &b.Tasks[i]); err != nil {
				return err
			}
		}
		for i := range b.Usage {
			if err := putUsage(ctx, tx, &b.Usage[i]); err != nil {
				return err
			}
		}
		for _, id := range b.Gone {
			_, err := tx.ExecContext(ctx, `DELETE FROM tasks WHERE job = ? AND stage = ? AND idx = ? AND run = ?`,
				int64(id.Task.Job), id.Task.Stage, id.Task.Index, id.Run)
			if err != nil {
				return fmt.Errorf("task %s: %w", id.Task, err)
			}
		}
		return nil
	})
}

func putJobState(ctx context.Context, tx *change, id cluster.JobID, s JobState) error {
	// Environments contain secrets, and an ended job no longer needs its environment.
	_, err := tx.ExecContext(ctx, `UPDATE jobs SET status = ?, ended = ?, cancelled = ?, started_ns = ?, finished_ns = ?,
		exit_code = ?, detail = ?, succeeded_count = ?, request = iif(?, json_remove(request, '$.env'), request),
		environment = iif(?, NULL, environment), unlearned = iif(? AND ended = 0, ?, unlearned) WHERE id = ?`,
		s.Status.String(), s.Ended, s.Cancelled, int64(s.Started), int64(s.Finished), s.ExitCode, s.Detail, s.Succeeded,
		s.Ended, s.Ended, s.Ended, endUnlearned, int64(id))
	if err != nil {
		return fmt.Errorf("job %d: %w", id, err)
	}
	return nil
}

func putPauses(ctx context.Context, tx *change, id cluster.JobID, pauses []Pause) error {
	text, err := column(pauses, len(pauses) > 0)
	if err == nil {
		_, err = tx.ExecContext(ctx, `UPDATE jobs SET pauses = ? WHERE id = ?`, text, int64(id))
	}
	if err != nil {
		return fmt.Errorf("job %d: %w", id, err)
	}
	return nil
}

func putTask(ctx context.Context, tx *change, t *Task) error {
	grant, wrongGrant := column(t.Grant, true)
	throttle, wrongThrottle := column(t.Throttle, t.Throttle != nil)
	progress, wrongProgress := column(t.Progress, t.Progress != nil)
	ended, wrongEnd := column(exit{t.Exit, t.Taught}, t.Exit != nil)
	if err := cmp.Or(wrongGrant, wrongThrottle, wrongProgress, wrongEnd); err != nil {
		return fmt.Errorf("task %s: %w", t.Container.Task, err)
	}
	var outcome string
	if t.Outcome != 0 {
		outcome = t.Outcome.String()
	}
	var code, peak any
	if t.Exit != nil {
		code = t.Exit.Code
		if t.Exit.Peak > 0 {
			peak = int64(t.Exit.Peak)
		}
	}
	id := t.Container
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO tasks (job, stage, idx, run, owner_uid, node, granted, why, booked_ns,
		started_ns, ended_ns, outcome, exit_code, peak_memory_bytes, exit, detail, throttle, progress) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		int64(id.Task.Job), id.Task.Stage, id.Task.Index, id.Run, t.UID, t.Node, grant, t.Why, int64(t.Booked),
		int64(t.Started), int64(t.Ended), outcome, code, peak, ended, t.Detail, throttle, progress)
	if err != nil {
		return fmt.Errorf("task %s: %w", id.Task, err)
	}
	return nil
}

const jobColumns = `id, status, ended, cancelled, submitted_ns, started_ns, finished_ns, exit_code, detail, succeeded_count, request, pauses, environment FROM jobs`

// OpenJobs returns the jobs that have not ended, by ascending id.
func (s *Store) OpenJobs(ctx context.Context) ([]Job, error) {
	return s.jobs(ctx, "SELECT "+jobColumns+" WHERE ended = 0 ORDER BY id")
}

// List returns up to most jobs whose id is greater than after, by ascending id.
func (s *Store) List(ctx context.Context, after cluster.JobID, most int) ([]Listed, error) {
	var jobs []Listed
	query := `SELECT id, owner_uid, owner_name, name, submitted_ns, status, ended, cancelled, started_ns, finished_ns, exit_code,
		detail, succeeded_count, task_count FROM jobs WHERE id > ? ORDER BY id LIMIT ?`
	err := s.read(ctx, query, []any{int64(after), most}, func(scan func(...any) error) error {
		var j Listed
		err := scan(&j.ID, &j.UID, &j.User, &j.Name, &j.Submitted, scanned{&j.State.Status}, &j.State.Ended,
			&j.State.Cancelled, &j.State.Started, &j.State.Finished, &j.State.ExitCode, &j.State.Detail, &j.State.Succeeded,
			&j.Tasks)
		jobs = append(jobs, j)
		return err
	})
	return jobs, err
}

// Job returns one job, or ErrNotFound.
func (s *Store) Job(ctx context.Context, id cluster.JobID) (Job, error) {
	jobs, err := s.jobs(ctx, "SELECT "+jobColumns+" WHERE id = ?", int64(id))
	if err != nil {
		return Job{}, err
	}
	if len(jobs) == 0 {
		return Job{}, fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	return jobs[0], nil
}

func (s *Store) jobs(ctx context.Context, query string, args ...any) ([]Job, error) {
	var jobs []Job
	shared := map[int64][]int{} // by environment, the indexes of the jobs that have it
	err := s.read(ctx, query, args, func(scan func(...any) error) error {
		var j Job
		var request string
		var pauses sql.NullString
		var environment sql.NullInt64
		if err := scan(&j.ID, scanned{&j.State.Status}, &j.State.Ended, &j.State.Cancelled, &j.Submitted, &j.State.Started,
			&j.State.Finished, &j.State.ExitCode, &j.State.Detail, &j.State.Succeeded, &request, &pauses,
			&environment); err != nil {
			return err
		}
		if err := cmp.Or(from(pauses, &j.Pauses), j.Request.read([]byte(request))); err != nil {
			return fmt.Errorf("job %d: %w", j.ID, err)
		}
		j.Request.Job.ID, j.Request.Job.Submitted = j.ID, j.Submitted
		j.Bytes = int64(len(request))
		if environment.Valid {
			shared[environment.Int64] = append(shared[environment.Int64], len(jobs))
		}
		jobs = append(jobs, j)
		return nil
	})
	for id, of := range shared {
		var size int64
		query := "SELECT octet_length(env) FROM environments WHERE id = ?"
		if e := s.read(ctx, query, []any{id}, func(scan func(...any) error) error { return scan(&size) }); e != nil {
			return nil, e
		}
		for _, i := range of {
			jobs[i].Bytes += size / int64(len(of))
		}
	}
	return jobs, err
}

// Environment returns the environment of a job, "NAME=value"; nil if it has none, or if the job has ended.
func (s *Store) Environment(ctx context.Context, id cluster.JobID) (env []string, err error) {
	query := `SELECT coalesce((SELECT env FROM environments WHERE environments.id = jobs.environment), json_extract(request, '$.env'))
		FROM jobs WHERE id = ?`
	err = s.read(ctx, query, []any{int64(id)}, func(scan func(...any) error) error {
		var text sql.NullString
		if err := scan(&text); err != nil {
			return err
		}
		return from(text, &env)
	})
	return env, err
}

// Tasks returns every run of every task of a job, by stage, index and run.
func (s *Store) Tasks(ctx context.Context, id cluster.JobID) ([]Task, error) {
	return s.tasks(ctx, "job = ? ORDER BY stage, idx, run", int64(id))
}

// OpenTasks returns the same of all jobs that have not ended, by job.
func (s *Store) OpenTasks(ctx context.Context) ([]Task, error) {
	return s.tasks(ctx, "job IN (SELECT id FROM jobs WHERE ended = 0) ORDER BY job, stage, idx, run")
}

func (s *Store) tasks(ctx context.Context, which string, args ...any) ([]Task, error) {
	var tasks []Task
	query := `SELECT job, stage, idx, run, owner_uid, node, granted, why, booked_ns, started_ns, ended_ns, outcome, exit, detail, throttle, progress
		FROM tasks WHERE ` + which
	err := s.read(ctx, query, args, func(scan func(...any) error) error {
		var t Task
		var outcome string
		var grant, ended, throttle, progress sql.NullString
		if err := scan(&t.Container.Task.Job, &t.Container.Task.Stage, &t.Container.Task.Index, &t.Container.Run, &t.UID,
			&t.Node, &grant, &t.Why, &t.Booked, &t.Started, &t.Ended, &outcome, &ended, &t.Detail, &throttle,
			&progress); err != nil {
			return err
		}
		var wrong error
		if outcome != "" {
			wrong = t.Outcome.UnmarshalText([]byte(outcome))
		}
		e := exit{Exit: new(cluster.Exit)}
		if err := cmp.Or(from(grant, &t.Grant), wrong, from(ended, &e), from(throttle, &t.Throttle),
			from(progress, &t.Progress)); err != nil {
			return fmt.Errorf("task %s: %w", t.Container.Task, err)
		}
		if ended.Valid {
			t.Exit, t.Taught = e.Exit, e.Taught
		}
		tasks = append(tasks, t)
		return nil
	})
	return tasks, err
}

// column returns a value as a column has it, as JSON; NULL if it is not there.
func column(value any, there bool) (text sql.NullString, err error) {
	if !there {
		return text, nil
	}
	all, err := json.Marshal(value)
	return sql.NullString{String: string(all), Valid: true}, err
}

// from reads what column returned. NULL leaves the value as it is.
func from(text sql.NullString, value any) error {
	if !text.Valid {
		return nil
	}
	return json.Unmarshal([]byte(text.String), value)
}

// scanned lets a column of text be scanned into what a text stands for.
type scanned struct{ into encoding.TextUnmarshaler }

// Scan implements sql.Scanner.
func (s scanned) Scan(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("scan %T: must be text", value)
	}
	return s.into.UnmarshalText([]byte(text))
}

// read runs a query on a connection of its own and calls f with the scan function of every row. The text of a query
// is one of a few: values are arguments. A query that has begun is not interrupted at the end of ctx: the goroutines
// with which package sql and the driver would wait for that cost as much as the query.
func (s *Store) read(ctx context.Context, query string, args []any, f func(scan func(...any) error) error) error {
	err := ctx.Err()
	if err == nil {
		err = s.query(context.WithoutCancel(ctx), query, args, f)
	}
	if err != nil {
		return s.explain("read", err)
	}
	return nil
}

func (s *Store) query(ctx context.Context, query string, args []any, f func(scan func(...any) error) error) error {
	statement, err := s.prepare(ctx, query)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return &unreadable{err}
		}
	}
	return rows.Err()
}

// prepare returns a query that each connection parses once.
func (s *Store) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	s.preparing.Lock()
	defer s.preparing.Unlock()
	if known := s.prepared[query]; known != nil {
		return known, nil
	}
	statement, err := s.reader.PrepareContext(ctx, query)
	if err == nil {
		s.prepared[query] = statement
	}
	return statement, err
}
