package fleet

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

var (
	ada = cluster.Credentials{UID: ownUID(), GID: 100, User: ""}
	eve = cluster.Credentials{UID: ownUID(), GID: 100, User: "eve-of-a-test"}
	bob = cluster.Credentials{UID: ownUID(), GID: 100, User: "bob-of-a-test"}
)

// machine is Jobs on a machine of some cores, which starts jobs in the order in which they were submitted. The
// programs of executors are goroutines. Its clock is that of a synctest bubble.
type machine struct {
	t        *testing.T
	dir      string
	cores    int
	most     int // executors
	pools    *Pools
	programs sync.WaitGroup

	mu       sync.Mutex
	jobs     map[cluster.JobID]*running
	last     cluster.JobID
	revision int64
	news     chan struct{}
	// refuse is asked before jobs are accepted; nil accepts all.
	refuse func(n int) error
	// program is what an executor does once it has registered; nil is work. It ends the process when it returns.
	program func(e *process) error
	taskFor time.Duration
	unknown error // that a user is looked up
	// pressures are what the machine reports.
	pressures chan live.Pressure
	results   map[api.PoolRef]int
	can       cluster.Capabilities
	uses      int64 // memory that the processes of each job have, bytes
	// of which all is in swap, and not half of it
	swapped map[cluster.JobID]bool
	fetched []cluster.ContainerID
}

// running is a job of the machine.
type running struct {
	api.Job
	env      map[string]string
	revision int64
	end      context.CancelFunc // of its program
}

// process is the program of an executor that has registered.
type process struct {
	*machine
	ctx    context.Context
	pool   *pool.Pool
	number int
	secret string
	lease  executor.Lease
}

func newMachine(t *testing.T, cores int) *machine {
	dir, err := os.MkdirTemp("", "pools") // not t.TempDir, whose cleaning is outside of the bubble
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &machine{t: t, dir: dir, cores: cores, jobs: map[cluster.JobID]*running{}, news: make(chan struct{}),
		taskFor: time.Second, unknown: errors.New("unknown"), pressures: make(chan live.Pressure),
		results: map[api.PoolRef]int{}}
}

// open opens the pools; after close it opens those of the next daemon.
func (m *machine) open() {
	m.t.Helper()
	all, err := Open(Config{State: m.dir, Socket: filepath.Join(m.dir, "s"),
		Capacity: cores(m.cores).Add(resource.Of(0, resource.GiB)).With(resource.Disk, 100*resource.MB), Jobs: m,
		MostExecutors: m.most, LookUp: func(string) (*user.User, error) {
			return nil, m.unknown
		}, FetchBack: func(c cluster.ContainerID) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.fetched = append(m.fetched, c)
		}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		m.t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools = all
}

// stop ends the pools and all programs.
func (m *machine) stop() {
	m.pools.Close()
	m.mu.Lock()
	m.cores = 0
	for _, j := range m.jobs {
		if j.end != nil {
			j.end()
		}
	}
	m.mu.Unlock()
	m.programs.Wait()
}

func (m *machine) touch(j *running) {
	m.revision++
	j.revision = m.revision
	close(m.news)
	m.news = make(chan struct{})
}

// SubmitAll implements Jobs.
func (m *machine) SubmitAll(_ context.Context, by cluster.Credentials, _ live.Key,
	jobs iter.Seq2[live.Submission, error]) (first cluster.JobID, n int, err error) {
	var all []live.Submission
	for s := range jobs {
		all = append(all, s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		if err := m.refuse(len(all)); err != nil {
			return 0, 0, err
		}
	}
	first = m.last + 1
	for i := range all {
		m.add(by, &all[i])
	}
	m.startSome()
	return first, len(all), nil
}

func (m *machine) add(by cluster.Credentials, s *live.Submission) cluster.JobID {
	m.last++
	o := api.OwnerOf(by)
	j := &running{Job: api.Job{ID: m.last, Name: s.Job.Name, App: s.Job.App, UID: o.UID, Owner: o.Name,
		Status: cluster.StatusPending, Waiting: "no node has room"}, env: s.Job.Stages[0].Env}
	j.Stages = []api.Stage{{Stage: cluster.Stage{Tasks: 1, Ideal: s.Job.Stages[0].Ideal}, Pending: 1, Startable: 1}}
	m.jobs[j.ID] = j
	m.touch(j)
	return j.ID
}

// submit submits an ordinary job of one core.
func (m *machine) submit(by cluster.Credentials) cluster.JobID {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.add(by, &live.Submission{Job: cluster.Job{Name: "job", Stages: []cluster.Stage{{Tasks: 1, Ideal: cores(1)}}}})
	m.startSome()
	return id
}

// startSome starts jobs for which there is room.
func (m *machine) startSome() {
	free := m.cores
	for _, j := range m.jobs {
		if !j.Started.IsZero() && !j.Ended && !j.Tasks[0].Lends {
			free--
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[id]
		if free <= 0 || !j.Started.IsZero() || j.Ended {
			continue
		}
		free--
		j.Status, j.Started, j.Waiting = cluster.StatusRunning, time.Now(), ""
		j.Stages = slices.Clone(j.Stages) // Whoever follows the jobs has the former ones.
		j.Stages[0].Pending, j.Stages[0].Startable = 0, 0
		j.Tasks = []api.Task{{Task: cluster.TaskID{Job: id}, Run: 1, State: api.TaskRunning,
			Grant: api.Grant{CPUMillicores: 1000, MemoryBytes: int64(resource.MiB)}}}
		m.touch(j)
		if strings.HasPrefix(j.App, appPrefix) {
			var ctx context.Context
			ctx, j.end = context.WithCancel(context.Background())
			m.programs.Go(func() { m.run(ctx, j.ID, api.Owner{UID: j.UID, Name: j.Owner}, j.env) })
		}
	}
}

// run is an executor.
func (m *machine) run(ctx context.Context, id cluster.JobID, owner api.Owner, env map[string]string) {
	err := m.execute(ctx, owner, env)
	switch {
	case ctx.Err() != nil:
		m.finish(id, cluster.StatusCancelled, "")
	case err != nil:
		m.finish(id, cluster.StatusFailed, err.Error())
	default:
		m.finish(id, cluster.StatusSucceeded, "")
	}
}

func (m *machine) execute(ctx context.Context, owner api.Owner, env map[string]string) error {
	number, ok := numberOf("p", &api.Job{Name: "p executor " + env[executor.ExecutorVariable]})
	secret, err := os.ReadFile(env[executor.SecretVariable])
	if err != nil || !ok {
		return errors.Join(err, errors.New("the environment is wrong"))
	}
	e := &process{machine: m, ctx: ctx, number: number, secret: strings.TrimSpace(string(secret))}
	if err := e.register(owner, env[executor.PoolVariable]); err != nil {
		return err
	}
	m.mu.Lock()
	program := m.program
	m.mu.Unlock()
	if program != nil {
		return program(e)
	}
	return e.work()
}

// runs sets what executors do that begin from now on; nil is work.
func (m *machine) runs(program func(e *process) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.program = program
}

func (e *process) register(owner api.Owner, name string) (err error) {
	e.mu.Lock()
	all := e.pools
	e.mu.Unlock()
	all.mu.Lock()
	h := all.pools[api.PoolRef{UID: owner.UID, User: owner.Name, Name: name}]
	if h != nil {
		e.pool = h.pool
	}
	all.mu.Unlock()
	if h == nil {
		return errors.New("there is no such pool")
	}
	e.lease, err = e.pool.Register(e.ctx, executor.Registration{Executor: e.number, Secret: e.secret, Language: "go"})
	return err
}

// work runs tasks until the pool ends the executor.
func (e *process) work() error {
	var done *executor.Report
	for {
		work, _, err := e.pool.Next(e.ctx, e.number,
			executor.Next{Lease: e.lease.Lease, Done: done, Memory: int64(resource.MiB)}, nil)
		switch {
		case err != nil:
			return err
		case work.Do == executor.DoEnd:
			return nil
		case work.Do == executor.DoRun:
			select {
			case <-time.After(e.taskFor):
			case <-e.ctx.Done():
				return e.ctx.Err()
			}
			done = &executor.Report{Work: work.Work}
			continue
		}
		done = nil
	}
}

// finish ends a job.
func (m *machine) finish(id cluster.JobID, status cluster.JobStatus, detail string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[id]
	if j.Ended {
		return
	}
	j.Ended, j.Status, j.Detail, j.Finished, j.Tasks = true, status, detail, time.Now(), slices.Clone(j.Tasks)
	j.Stages = []api.Stage{{}}
	for i := range j.Tasks {
		j.Tasks[i].State = api.TaskEnded
	}
	m.touch(j)
	m.startSome()
}

// Cancel implements Jobs.
func (m *machine) Cancel(_ context.Context, _ cluster.Credentials, id cluster.JobID) error {
	m.mu.Lock()
	j := m.jobs[id]
	begun := j != nil && j.end != nil
	if begun {
		j.end()
	}
	m.mu.Unlock()
	if j == nil {
		return api.Errorf(api.NotFound, "job %d: there is none", id)
	}
	if !begun {
		m.finish(id, cluster.StatusCancelled, "")
	}
	return nil
}

// Lend implements Jobs.
func (m *machine) Lend(_ context.Context, ids []cluster.JobID, idle bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if j := m.jobs[id]; j != nil && !j.Ended && len(j.Tasks) > 0 && j.Tasks[0].Lends != idle {
			j.Tasks = slices.Clone(j.Tasks)
			j.Tasks[0].Lends = idle
			m.touch(j)
		}
	}
	m.startSome()
	return nil
}

// Jobs implements Jobs.
func (m *machine) Jobs(context.Context) (all []api.Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if j := m.jobs[id]; !j.Ended {
			all = append(all, j.Job)
		}
	}
	return all, nil
}

// Job implements Jobs.
func (m *machine) Job(_ context.Context, id cluster.JobID, usage bool) (api.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j := m.jobs[id]; j != nil {
		out := j.Job
		if usage && len(j.Tasks) > 0 {
			anonymous, swap := m.uses/2, m.uses/2
			if m.swapped != nil {
				if anonymous, swap = m.uses, 0; m.swapped[id] {
					anonymous, swap = 0, m.uses
				}
			}
			out.Tasks = slices.Clone(j.Tasks)
			out.Tasks[0].Usage = &cluster.Reading{Anonymous: &anonymous, Swap: &swap}
		}
		return out, nil
	}
	return api.Job{}, api.Errorf(api.NotFound, "job %d: there is none", id)
}

// Changes implements Jobs.
func (m *machine) Changes(ctx context.Context, from int64) (u api.Update, err error) {
	for {
		m.mu.Lock()
		u = api.Update{Revision: m.revision, Snapshot: from == 0}
		for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
			if j := m.jobs[id]; from == 0 && !j.Ended || from > 0 && j.revision > from {
				u.Jobs = append(u.Jobs, j.Job)
			}
		}
		news := m.news
		m.mu.Unlock()
		if from == 0 && u.Revision > 0 || len(u.Jobs) > 0 {
			return u, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return u, ctx.Err()
		}
	}
}

// Capabilities implements Jobs.
func (m *machine) Capabilities() cluster.Capabilities { return m.can }

// Pressure implements Jobs.
func (m *machine) Pressure(ctx context.Context) (live.Pressure, error) {
	select {
	case p := <-m.pressures:
		return p, nil
	case <-ctx.Done():
		return live.Pressure{}, ctx.Err()
	}
}

// count returns how many jobs of executors have not ended, and how many there were.
func (m *machine) count() (now, ever int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if strings.HasPrefix(j.App, appPrefix) {
			ever++
			if !j.Ended {
				now++
			}
		}
	}
	return now, ever
}

// put makes or changes a pool that is called p.
func (m *machine) put(by cluster.Credentials, change func(*api.PoolSpec)) api.PoolRef {
	m.t.Helper()
	s := api.PoolSpec{Name: "p", Command: []string{"/worker"}, Dir: "/", Max: 3, CPU: resource.Core, Memory: resource.MiB}
	if change != nil {
		change(&s)
	}
	owner := api.OwnerOf(by)
	if _, err := m.pools.Put(m.t.Context(), by, owner, s); err != nil {
		m.t.Fatal(err)
	}
	return api.PoolRef{UID: owner.UID, User: owner.Name, Name: s.Name}
}

// enrol submits an application of a number of tasks to a pool, and counts its results.
func (m *machine) enrol(r api.PoolRef, n int) {
	m.t.Helper()
	m.pools.mu.Lock()
	one := m.pools.pools[r].pool
	m.pools.mu.Unlock()
	lease, err := one.Enrol(m.t.Context(), executor.Enrolment{Key: "an application of a test"}, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	g := executor.Growth{Lease: lease.Lease, Number: 1, Closed: true,
		Stages: []executor.StageGrowth{{Function: "f", Sizes: make([]int, n)}}}
	if _, err := one.Grow(m.t.Context(), lease.Application, g, nil); err != nil {
		m.t.Fatal(err)
	}
	go func() {
		for after := int64(0); ; {
			out, _, err := one.Collect(context.Background(), lease.Application,
				executor.Collect{Lease: lease.Lease, After: after})
			if err != nil {
				return
			}
			for _, result := range out.Results {
				after = result.Number
				m.mu.Lock()
				m.results[r]++
				m.mu.Unlock()
			}
			if out.Ended {
				return
			}
		}
	}()
}

// collected returns how many results the applications of a pool have.
func (m *machine) collected(r api.PoolRef) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.results[r]
}

func (m *machine) detail(r api.PoolRef) api.PoolDetail {
	m.t.Helper()
	d, err := m.pools.Detail(m.t.Context(), r)
	if err != nil {
		m.t.Fatal(err)
	}
	return d
}

// expect checks how many executors there are, and how many there ever were.
func (m *machine) expect(what string, now, ever int) {
	m.t.Helper()
	if gotNow, gotEver := m.count(); gotNow != now || gotEver != ever {
		m.t.Errorf("%s: %d executors of %d, want %d of %d", what, gotNow, gotEver, now, ever)
	}
}

// later lets time pass, and everything happen that is due.
func (m *machine) later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
