package executor_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// Mira's experiment with several applications (section IV.D).
const (
	paperExecutors  = 112
	backgroundTasks = 8192 // of a stage of the background
	warmUp          = 60   // tasks of each executor before the first query
	backgroundRange = 0.1  // tasks take "≈ 1 second": at most this much less or more
)

// sharing is a setting of BenchmarkSharing.
type sharing struct {
	executors   int
	foregrounds int  // applications at a time beside the background
	literal     bool // tasks take as long as in the paper, however few executors there are
	// rows says that the background waits for the end of a stage before it begins the next, as in the paper. Its tasks
	// begin together then.
	rows bool
	keep string
}

func (s sharing) String() string {
	text := fmt.Sprintf("executors=%d/", s.executors)
	if s.foregrounds > 1 {
		text += fmt.Sprintf("foregrounds=%d/", s.foregrounds)
	}
	if s.rows {
		text += "rows/"
	}
	if s.literal {
		text += "literal/"
	}
	return text + "keep=" + s.keep
}

// scale is by how much tasks are shorter than in the paper, so that an executor becomes free as often.
func (s sharing) scale() float64 {
	if s.literal {
		return 1
	}
	return float64(s.executors) / paperExecutors
}

// BenchmarkSharing runs queries beside an application that always has tasks, on executors in processes of their own,
// through the socket of a pool: Mira's Table II. An operation is a query. The queries are those of TPC-H as Decima's
// authors recorded them: their stages, and how long the tasks took, for which tasks sleep here.
func BenchmarkSharing(b *testing.B) {
	queries := recorded(b)
	for _, p := range programs {
		for _, s := range p.settings {
			b.Run(p.name+"/"+s.String(), func(b *testing.B) { benchSharing(b, p, s, queries) })
		}
	}
}

// program is how the executors of a benchmark are started, and what they call.
type program struct {
	name        string
	start       func(s *served, number int) *exec.Cmd
	sleep, meet string // functions
	settings    []sharing
}

var programs = []program{
	{"go", (*served).executor, "sleep", "meet", []sharing{alone(112, api.DefaultPoolKeep), alone(112, "none"),
		alone(112, "next"), {112, 1, false, true, api.DefaultPoolKeep}, {112, 4, false, false, api.DefaultPoolKeep},
		alone(28, api.DefaultPoolKeep), {28, 1, true, false, api.DefaultPoolKeep}, alone(8, api.DefaultPoolKeep)}},
	{"python", func(s *served, number int) *exec.Cmd { return s.python(interpreter(s.t), number) }, "functions:sleep",
		"functions:meet", []sharing{alone(112, api.DefaultPoolKeep), alone(28, api.DefaultPoolKeep),
			{28, 1, true, false, api.DefaultPoolKeep}}},
}

// alone has one query at a time.
func alone(executors int, keep string) sharing { return sharing{executors, 1, false, false, keep} }

// recorded are the queries of one size, in an order drawn once.
func recorded(b testing.TB) (queries []workload.Job) {
	path := filepath.FromSlash("../../shared/data/decima-tpch/tpch-spark-dags.jsonl.gz")
	f, err := os.Open(path)
	if err != nil {
		b.Skip("needs ../shared/data/decima-tpch, recorded by others")
	}
	defer f.Close()
	format := importer.DefaultDecima()
	format.Waves = true
	all, err := importer.Import(format, []importer.Source{{Name: filepath.Base(path), Data: f}}, importer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, j := range all.Workload.Jobs {
		if strings.HasSuffix(j.Name, "-10g") {
			queries = append(queries, j)
		}
	}
	mathrand.New(mathrand.NewPCG(1, 0)).Shuffle(len(queries), func(i, k int) {
		queries[i], queries[k] = queries[k], queries[i]
	})
	return queries
}

// serveFleet starts a pool with executors, and waits until all have registered.
func serveFleet(b *testing.B, p program, executors int, wrap func(policy.Policy) policy.Policy,
	settings map[string]string) (*served, []*exec.Cmd) {
	s := serveWith(b, func(c *pool.Config) {
		longLease(c)
		inner, err := policy.New("mira", settings)
		if err != nil {
			b.Fatal(err)
		}
		c.Policy = wrap(inner)
	})
	return s, s.fleet(b, p, executors)
}

// fleet starts executors, and waits until all have registered.
func (s *served) fleet(b *testing.B, p program, executors int) (all []*exec.Cmd) {
	for i := range executors {
		all = append(all, p.start(s, i))
	}
	s.until(b, func(v pool.View) bool { return len(v.Executors) == executors })
	return all
}

// until waits until a pool is as wanted.
func (s *served) until(b *testing.B, wanted func(pool.View) bool) {
	for {
		v, err := s.pool.View(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if wanted(v) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// reach is how applications reach the pool: over its socket.
func (s *served) reach() executor.ApplicationConfig {
	return executor.ApplicationConfig{Socket: s.socket, Pool: "p"}
}

// path is where the module of functions for Python is.
func (s *served) path() string { return filepath.Join(s.dir, "f") }

// enrol enrols an application.
func enrol(ctx context.Context, reach executor.ApplicationConfig, name string) (*executor.Application, error) {
	reach.Enrolment.Name = name
	return executor.Enrol(ctx, reach)
}

// collect waits for results of tasks of an application, and returns when they ran. The error is io.EOF after the last
// one.
func collect(ctx context.Context, a *executor.Application, name string) (spans []span, err error) {
	results, err := a.Collect(ctx)
	for _, r := range results {
		if r.Failed || len(r.Payload) != 16 {
			return nil, fmt.Errorf("task %d of stage %d: %s", r.Task, r.Stage, r.Error)
		}
		spans = append(spans, span{name, r.Executor, int64(binary.BigEndian.Uint64(r.Payload)),
			int64(binary.BigEndian.Uint64(r.Payload[8:]))})
	}
	return spans, err
}

// trial is a run of BenchmarkSharing.
type trial struct {
	sharing
	program
	tb      testing.TB
	reach   executor.ApplicationConfig
	path    string // where Python finds functions
	queries []workload.Job
	next    atomic.Int64

	mu    sync.Mutex
	spans []span
}

// note notes results.
func (t *trial) note(spans []span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, spans...)
}

// seen is how many tasks have ended.
func (t *trial) seen() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.spans)
}

// behind is the name of the background.
const behind = "background"

// background is an application of stages of short tasks until ctx ends.
func (t *trial) background(ctx context.Context) error {
	a, err := enrol(ctx, t.reach, behind)
	if err != nil {
		return err
	}
	r := mathrand.New(mathrand.NewPCG(2, 0))
	var arguments [][]byte
	for range backgroundTasks {
		arguments = append(arguments, t.lasting((1+backgroundRange*(2*r.Float64()-1))*float64(time.Second)))
	}
	for stages, ended := 0, 0; ; {
		if (stages-1)*backgroundTasks <= ended { // the next stage is known before the last has ended
			s := executor.Stage{Function: t.sleep, Path: t.path}
			if t.rows && stages > 0 {
				s.After = []int{stages - 1}
			}
			if err := a.Grow(ctx, a.NewStage(s), arguments...); err != nil {
				return err
			}
			stages++
			continue
		}
		spans, err := collect(ctx, a, behind)
		if err != nil {
			return err
		}
		t.note(spans)
		ended += len(spans)
	}
}

// lasting are the arguments of a task that takes some nanoseconds in the paper.
func (t *trial) lasting(ns float64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(t.scale()*ns))
}

// foreground runs one query after the other until ctx ends, and says of each how long it took.
func (t *trial) foreground(ctx context.Context, took chan<- time.Duration) error {
	for ctx.Err() == nil {
		began := time.Now()
		if err := t.query(int(t.next.Add(1))); err != nil {
			return err
		}
		took <- time.Since(began)
	}
	return nil
}

func (t *trial) query(number int) error {
	q := &t.queries[number%len(t.queries)]
	name := fmt.Sprint(q.Name, ", ", number)
	ctx, end := context.WithTimeout(context.Background(), 10*time.Minute)
	defer end()
	a, err := enrol(ctx, t.reach, name)
	if err != nil {
		return err
	}
	for i := range q.Stages {
		stage := a.NewStage(executor.Stage{Function: t.sleep, Path: t.path, After: q.Stages[i].Parents})
		var arguments [][]byte
		for _, lasts := range q.Truth[i].Duration.Values() {
			arguments = append(arguments, t.lasting(float64(lasts)))
		}
		if err := a.Grow(ctx, stage, arguments...); err != nil {
			return err
		}
	}
	a.Close()
	for {
		spans, err := collect(ctx, a, name)
		t.note(spans)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// share runs queries beside the background as long as more says so, which is asked after each query. It returns how
// long all queries took in sum, and the time that it was about.
func (t *trial) share(ctx context.Context, more func() bool) (latency time.Duration, from, to time.Time) {
	front, endFront := context.WithCancel(ctx)
	back, endBack := context.WithCancel(ctx)
	defer endBack()
	var ahead, behind sync.WaitGroup
	behind.Go(func() {
		if err := t.background(back); back.Err() == nil {
			t.tb.Error(err)
		}
	})
	for t.seen() < warmUp*t.executors && !t.tb.Failed() { // until tasks end at any time
		time.Sleep(10 * time.Millisecond)
	}
	took := make(chan time.Duration, 1<<16)
	for range t.foregrounds {
		ahead.Go(func() {
			if err := t.foreground(front, took); err != nil {
				t.tb.Error(err)
				took <- 0
			}
		})
	}
	from = time.Now()
	for more() && !t.tb.Failed() {
		latency += <-took
	}
	to = time.Now()
	endFront()
	ahead.Wait()
	time.Sleep(time.Duration(2 * t.scale() * float64(time.Second))) // what ran at the end of the time reports
	endBack()
	behind.Wait()
	return latency, from, to
}

func benchSharing(b *testing.B, p program, s sharing, queries []workload.Job) {
	m := &meter{}
	served, processes := serveFleet(b, p, s.executors, func(inner policy.Policy) policy.Policy {
		m.Policy = inner
		return m
	}, map[string]string{"mira.keep": s.keep})
	t := &trial{tb: b, sharing: s, program: p, reach: served.reach(), path: served.path(), queries: queries}
	cpu := cpuOf(b, processes)
	begun := time.Now()
	latency, from, to := t.share(b.Context(), b.Loop)
	used := (cpuOf(b, processes) - cpu).Seconds() / time.Since(begun).Seconds()
	a := account{executors: s.executors, background: behind, from: from.UnixNano(), to: to.UnixNano()}
	a.count(m.taken(), t.spans)
	a.report(b.N, b.ReportMetric)
	b.Log(a.row(p.name+"/"+s.String(), b.N))
	b.ReportMetric(latency.Seconds()/float64(b.N), "s/query")
	b.ReportMetric(used, "cores")
	b.ReportMetric(0, "ns/op")
}

// TestSharing runs Mira's experiment with executors that answer at once, in virtual time: what is left of delays and
// idle executors is the policy's, the pool's and the applications'. Table II has 2.9 % of the executors unassigned or
// idle, and 0.9 % of the increases missed.
func TestSharing(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of CPU time")
	}
	queries := recorded(t)
	var missed, increases int
	for _, keep := range []string{"none", api.DefaultPoolKeep} {
		for _, rows := range []bool{false, true} {
			s := sharing{paperExecutors, 1, false, rows, keep}
			t.Run(s.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, latency := virtual(t, s, queries)
					t.Log(a.row(s.String(), len(queries)))
					t.Log("all queries", latency)
					if wasted := a.wasted(); wasted >= 0.029 {
						t.Errorf("%.1f %% of the executors are unassigned or idle", 100*wasted)
					}
					if keep != "none" {
						missed, increases = missed+a.missed, increases+a.increases
					}
				})
			})
		}
	}
	if 1000*missed >= 9*increases {
		t.Errorf("%d of %d increases are missed", missed, increases)
	}
}

// virtual runs all queries once, and returns how long they took in sum.
func virtual(t *testing.T, s sharing, queries []workload.Job) (a account, latency time.Duration) {
	m := &meter{}
	var err error
	if m.Policy, err = policy.New("mira", map[string]string{"mira.keep": s.keep}); err != nil {
		t.Fatal(err)
	}
	p := pool.Start(pool.Config{Name: "p", Policy: m, Lease: time.Hour, Verify: func(int, string) bool { return true }})
	defer p.Close()
	ctx, end := context.WithCancel(t.Context())
	var stubs sync.WaitGroup
	for i := range s.executors {
		stubs.Go(func() { stub(ctx, p, i) })
	}
	reach := executor.ApplicationConfig{HTTP: &http.Client{Transport: direct{p.Handler()}}, Base: "http://pool"}
	x := &trial{tb: t, sharing: s, program: programs[0], reach: reach, queries: queries}
	left := len(queries)
	latency, from, to := x.share(t.Context(), func() bool { left--; return left >= 0 })
	end()
	stubs.Wait()
	a = account{executors: s.executors, background: behind, from: from.UnixNano(), to: to.UnixNano()}
	a.count(m.taken(), x.spans)
	return a, latency
}

// direct hands requests to a handler without a connection.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// stub is an executor without a process. A task takes its time, and nothing else does.
func stub(ctx context.Context, p *pool.Pool, number int) {
	lease, err := p.Register(ctx, executor.Registration{Executor: number})
	var done *executor.Report
	var result []byte
	for err == nil {
		var work executor.Work
		var arguments []byte
		work, arguments, err = p.Next(ctx, number, executor.Next{Lease: lease.Lease, Done: done}, result)
		if done, result = nil, nil; err == nil && work.Do == executor.DoRun {
			result, _ = functions["sleep"](ctx, arguments)
			done = &executor.Report{Work: work.Work, Size: len(result)}
		}
	}
}

// cpuOf is the CPU time of this process and others.
func cpuOf(b *testing.B, processes []*exec.Cmd) (sum time.Duration) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	for _, cmd := range processes {
		sum += processCPU(b, cmd.Process.Pid)
	}
	return sum + time.Duration(own.Utime.Nano()+own.Stime.Nano())
}
