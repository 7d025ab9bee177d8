package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/stat"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// The benchmarks of this file measure a daemon in a process of its own, through its socket, with real containers.

// loaded is a daemon, and what asks it.
type loaded struct {
	b      *testing.B
	dir    string // its state directory
	up     *exec.Cmd
	client *client.Client
	plain  *http.Client // which does not decode answers
}

func newLoaded(b *testing.B) *loaded {
	needControlGroups(b)
	dir, err := os.MkdirTemp("", "bellows") // The name of a socket must be short.
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+store.Mark)) })
	socket := filepath.Join(dir, "bellows.sock")
	l := &loaded{b: b, dir: dir, client: client.New(socket), plain: over(socket)}
	b.Cleanup(func() {
		if l.up != nil {
			l.end(true)
		}
	})
	return l
}

// start starts the daemon, and returns how long it took until it serves. With onOne, it has the first processor and
// its callers have the others.
func (l *loaded) start(onOne bool) time.Duration {
	l.b.Helper()
	l.up = exec.Command("bellows", "up", "--state", l.dir, "--memory", "4GiB")
	var said bytes.Buffer
	l.up.Stderr = &said
	out, err := l.up.StdoutPipe()
	if err != nil {
		l.b.Fatal(err)
	}
	began := time.Now()
	if onOne {
		l.up.Env = append(os.Environ(), "GOMAXPROCS=1")
		err = l.startOn(l.up, 0)
	} else {
		err = l.up.Start()
	}
	if err != nil {
		l.b.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = l.up.Wait()
		l.up = nil
		l.b.Fatalf("the daemon did not start: %q %v: %s", line, err, said.String())
	}
	go io.Copy(io.Discard, out)
	for {
		if _, err := get(l.plain, "/v1/ready"); err == nil {
			return time.Since(began)
		}
		if time.Since(began) > time.Minute {
			l.b.Fatal("the daemon does not serve")
		}
		time.Sleep(time.Millisecond)
	}
}

// startOn starts a program that runs on one processor, and keeps this process from it until the end of the benchmark.
func (l *loaded) startOn(cmd *exec.Cmd, processor int) error {
	var all, one, others unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	one.Set(processor)
	others = all
	others.Clear(processor)
	if others.Count() == 0 {
		return errors.New("needs a second processor")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &one); err != nil { // What a thread starts inherits its processors.
		return err
	}
	started := cmd.Start()
	// More would take processors from each other in the middle of a question.
	threads := runtime.GOMAXPROCS(others.Count())
	l.b.Cleanup(func() { runtime.GOMAXPROCS(threads); moveTo(&all) })
	return errors.Join(started, moveTo(&others))
}

// moveTo lets all threads of this process run on some processors.
func moveTo(some *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		var id int
		if _, err := fmt.Sscan(t.Name(), &id); err == nil {
			_ = unix.SchedSetaffinity(id, some) // A thread may have ended.
		}
	}
	return err
}

// end ends the daemon; with kill, also the jobs.
func (l *loaded) end(kill bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := l.client.Shutdown(ctx, kill); err != nil {
		l.b.Errorf("end the daemon: %v", err)
		_ = l.up.Process.Kill()
	}
	_ = l.up.Wait()
	l.up = nil
}

// over returns a client of a socket that does not decode answers.
func over(socket string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 64}}
}

// get returns the answer to a question.
func get(c *http.Client, path string) ([]byte, error) {
	var answer bytes.Buffer
	err := getTo(&answer, c, path)
	return answer.Bytes(), err
}

// getTo writes the answer to a question to w.
func getTo(w io.Writer, c *http.Client, path string) error {
	r, err := c.Get("http://bellows" + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if _, err = io.Copy(w, r.Body); err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, r.Status)
	}
	return err
}

// alarm is a timer that rings on time: time.Sleep is up to a millisecond late on an idle processor.
type alarm struct{ *os.File }

func newAlarm(b *testing.B) alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}
	a := alarm{os.NewFile(uintptr(fd), "alarm")}
	b.Cleanup(func() { a.Close() })
	return a
}

// wait waits until a time.
func (a alarm) wait(until time.Time) error {
	left := time.Until(until)
	if left <= 0 {
		return nil
	}
	control, err := a.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = control.Control(func(fd uintptr) {
		set = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}, nil)
	})
	if err = errors.Join(err, set); err == nil {
		_, err = a.Read(make([]byte, 8))
	}
	return err
}

// submit submits jobs that run a command with a share of a core, eight at a time, and returns their numbers.
func (l *loaded) submit(n int, cpu, memory resource.Amount, args ...string) []cluster.JobID {
	l.b.Helper()
	job := soakJob(memory, args...)
	job.Stages[0].CPU = cpu
	ids := make([]cluster.JobID, n)
	var all sync.WaitGroup
	for k := range 8 {
		all.Go(func() {
			for i := k; i < n; i += 8 {
				id, err := l.client.Submit(context.Background(), job)
				if err != nil {
					l.b.Error(err)
					return
				}
				ids[i] = id
			}
		})
	}
	all.Wait()
	if l.b.Failed() {
		l.b.FailNow()
	}
	return ids
}

// running waits until so many containers run.
func (l *loaded) running(n int) {
	l.b.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		tasks, err := l.client.Tasks(context.Background(), false)
		if err != nil {
			l.b.Fatal(err)
		}
		run := 0
		for i := range tasks {
			if tasks[i].State == api.TaskRunning {
				run++
			}
		}
		if run == n {
			return
		}
		if time.Now().After(end) {
			l.b.Fatalf("%d containers run, want %d", run, n)
		}
	}
}

// ended fills the store with copies of a real job that has ended, and its task. The daemon must not run.
func (l *loaded) ended(n int) {
	l.b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(l.dir, store.File))
	if err != nil {
		l.b.Fatal(err)
	}
	defer db.Close()
	columns := func(table, but string) (list string) {
		rows, err := db.Query("SELECT name FROM pragma_table_info(?) WHERE name <> ?", table, but)
		if err != nil {
			l.b.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				l.b.Fatal(err)
			}
			list += ", " + name
		}
		return list
	}
	for table, id := range map[string]string{"jobs": "id", "tasks": "job", "usage": "job"} {
		rest := columns(table, id)
		if _, err := db.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO %s (%s%s) SELECT i%s FROM n, %s WHERE %s = 1`, table, id, rest, rest, table, id), n); err != nil {
			l.b.Fatal(err)
		}
	}
}

// question is something that is asked.
type question struct{ kind, path string }

// ask asks at random moments, rate times per second on average, whether or not earlier questions are answered. It
// adds to took how long the answers took by kind of question, in milliseconds from the moment at which the question
// was due.
func ask(b *testing.B, c *http.Client, took map[string][]float64, rate float64, lasts time.Duration,
	random *rand.Rand, next func(*rand.Rand) question) {
	var mu sync.Mutex
	var all sync.WaitGroup
	clock := newAlarm(b)
	began := time.Now()
	for due := began; due.Sub(began) < lasts; due = due.Add(
		time.Duration(random.ExpFloat64() / rate * float64(time.Second))) {
		q := next(random)
		if err := clock.wait(due); err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			if err := getTo(io.Discard, c, q.path); err != nil {
				b.Error(err)
				return
			}
			ms := time.Since(due).Seconds() * 1000
			mu.Lock()
			took[q.kind] = append(took[q.kind], ms)
			took["any"] = append(took["any"], ms)
			mu.Unlock()
		})
	}
	all.Wait()
}

// quantiles reports the median and the 99th percentile.
func quantiles(b *testing.B, name string, ms []float64) {
	slices.Sort(ms)
	b.ReportMetric(stat.Quantile(0.5, stat.Empirical, ms, nil), "ms-"+name+"-p50")
	b.ReportMetric(stat.Quantile(0.99, stat.Empirical, ms, nil), "ms-"+name+"-p99")
}

// repeater is a server that does nothing but answer each question with the bytes of a file in its folder. How long
// its answers take is what the machine, the client and package http take.
func repeater() {
	dir := os.Args[1]
	l, err := net.Listen("unix", filepath.Join(dir, "repeater.sock"))
	if err != nil {
		log.Fatal(err)
	}
	answers := map[string][]byte{}
	for _, name := range os.Args[2:] {
		if answers["/"+name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			log.Fatal(err)
		}
	}
	log.Fatal(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answers[r.URL.Path])
	})))
}

// repeat starts a repeater on the first processor, with the daemon's answer to one question of each kind.
func (l *loaded) repeat(one []question) *http.Client {
	l.b.Helper()
	for _, q := range one {
		answer, err := get(l.plain, q.path)
		if err == nil {
			err = os.WriteFile(filepath.Join(l.dir, q.kind), answer, 0o600)
		}
		if err != nil {
			l.b.Fatal(err)
		}
	}
	cmd := exec.Command("bellows-repeats", l.dir)
	for _, q := range one {
		cmd.Args = append(cmd.Args, q.kind)
	}
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
	if err := l.startOn(cmd, 0); err != nil {
		l.b.Fatal(err)
	}
	l.b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	socket := filepath.Join(l.dir, "repeater.sock")
	for {
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close()
			return over(socket)
		}
		time.Sleep(time.Millisecond)
	}
}

// cpu returns the processor time that the daemon has used.
func (l *loaded) cpu() time.Duration {
	l.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.up.Process.Pid))
	if err != nil {
		l.b.Fatal(err)
	}
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third of proc(5) on
	var ticks time.Duration
	for _, word := range words[11:13] { // utime and stime
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			l.b.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * (time.Second / 100)
}

// BenchmarkReaders measures answers while 1,000 questions per second arrive, of a daemon that has one processor, 100
// running containers, 10,000 jobs in its store, and 50 watchers. Of the questions, 60 % are for one job, 30 % for a
// page of 100 jobs, and 10 % for an explanation; every second job, and page, is among those that have ended. Every
// second part of five seconds the same questions go to a server on the same processor that only repeats answers of
// the daemon: its times are those of the machine, the client and package http. One iteration takes 40 seconds, and 20
// for the status, of which there are 100 per second.
//
// The goal: 99 % of the answers come within 5 ms, and so does the status.
func BenchmarkReaders(b *testing.B) {
	const stored, containers, watchers = 10_000, 100, 50
	l := newLoaded(b)
	l.start(false)
	first := l.submit(1, resource.Core, 8*resource.MiB, "true")
	if _, err := l.client.Wait(b.Context(), first[0]); err != nil {
		b.Fatal(err)
	}
	l.end(false)
	l.ended(stored)
	l.start(true)
	ids := l.submit(containers, 1, 8*resource.MiB, "sleep", "100000")
	l.running(containers)
	watch, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range watchers {
		all.Go(func() {
			for range l.client.Watch(watch, 0) {
			}
		})
	}
	job := func(id cluster.JobID) question { return question{"job", fmt.Sprintf("/v1/jobs/%d", id)} }
	page := func(after cluster.JobID) question {
		return question{"page", fmt.Sprintf("/v1/jobs?all=true&limit=100&after=%d", after)}
	}
	explanation := func(id cluster.JobID) question {
		return question{"explanation", fmt.Sprintf("/v1/jobs/%d/explain", id)}
	}
	next := func(random *rand.Rand) question {
		running, ended := ids[random.IntN(containers)], cluster.JobID(1+random.IntN(stored-100))
		switch n := random.IntN(20); {
		case n < 2:
			return explanation(running)
		case n < 5:
			return page(ids[0] - 1)
		case n < 8:
			return page(ended)
		case n < 14:
			return job(running)
		default:
			return job(ended)
		}
	}
	status := func(*rand.Rand) question { return question{"status", "/v1/status"} }
	b.Run("cost", func(b *testing.B) {
		for name, of := range map[string]func(i int) question{
			"job-running":  func(i int) question { return job(ids[i%containers]) },
			"job-ended":    func(i int) question { return job(cluster.JobID(1 + 37*i%stored)) },
			"page-running": func(int) question { return page(ids[0] - 1) },
			"page-ended":   func(i int) question { return page(cluster.JobID(1 + 37*i%(stored-100))) },
			"explanation":  func(i int) question { return explanation(ids[i%containers]) },
			"status":       func(int) question { return status(nil) },
		} {
			before, n := l.cpu(), 0
			for ; n < 2000; n++ {
				if _, err := get(l.plain, of(n).path); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((l.cpu()-before).Microseconds())/float64(n), "cpu-µs/"+name)
		}
	})
	repeater := l.repeat([]question{job(ids[0]), page(ids[0] - 1), explanation(ids[0]), status(nil)})
	repeated := func(next func(*rand.Rand) question) func(*rand.Rand) question {
		return func(random *rand.Rand) question {
			q := next(random)
			return question{q.kind, "/" + q.kind}
		}
	}
	measure := func(b *testing.B, rate float64, parts int, next func(*rand.Rand) question, kinds ...string) {
		took, floor := map[string][]float64{}, map[string][]float64{}
		const part = 5 * time.Second
		var used time.Duration
		for b.Loop() {
			random := rand.New(rand.NewPCG(1, 2))
			for range parts {
				before := l.cpu()
				ask(b, l.plain, took, rate, part, random, next)
				used += l.cpu() - before
				ask(b, repeater, floor, rate, part, random, repeated(next))
			}
		}
		for _, kind := range kinds {
			quantiles(b, kind, took[kind])
		}
		quantiles(b, "repeated", floor["any"])
		b.ReportMetric(float64(used.Microseconds())/float64(len(took["any"])), "cpu-µs/answer")
	}
	b.Run("mix", func(b *testing.B) { measure(b, 1000, 4, next, "any", "job", "page", "explanation") })
	b.Run("status", func(b *testing.B) { measure(b, 100, 4, status, "status") })
}

// BenchmarkSubmission measures how long it takes from the submission of a job that fits until its program starts, and
// until its end is known, of jobs one after another on an idle machine.
//
// The goal: to the start half within 30 ms and 99 % within 100 ms.
func BenchmarkSubmission(b *testing.B) {
	l := newLoaded(b)
	l.start(false)
	job := soakJob(8*resource.MiB, "true")
	job.Stages[0].CPU = resource.Core
	var start, end []float64
	for b.Loop() {
		began := time.Now()
		id, err := l.client.Submit(b.Context(), job)
		if err != nil {
			b.Fatal(err)
		}
		j, err := l.client.Wait(b.Context(), id)
		if err != nil || len(j.Tasks) != 1 {
			b.Fatalf("%d tasks, %v", len(j.Tasks), err)
		}
		end = append(end, time.Since(began).Seconds()*1000)
		start = append(start, j.Tasks[0].Started.Sub(began).Seconds()*1000)
	}
	quantiles(b, "start", start)
	quantiles(b, "end", end)
}

// BenchmarkShortJobs measures how many jobs that do nothing pass through one daemon in a second. The goal: 200.
func BenchmarkShortJobs(b *testing.B) {
	const jobs = 500
	l := newLoaded(b)
	l.start(false)
	began, n := time.Now(), 0
	for b.Loop() {
		for _, id := range l.submit(jobs, resource.Core/10, 8*resource.MiB, "true") {
			if _, err := l.client.Wait(b.Context(), id); err != nil {
				b.Fatal(err)
			}
		}
		n += jobs
	}
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "jobs/s")
}

// BenchmarkBareJobs does for each job of BenchmarkShortJobs only what cannot be left out, without a daemon, eight at
// once: it makes a control group with a limit and removes it, a shell enters the group and executes the program, and
// as many records are written through to the disk: four of a store, one after another, and those of the container.
func BenchmarkBareJobs(b *testing.B) {
	needControlGroups(b)
	const jobs = 500
	host, err := cgroup.Discover("")
	if err != nil {
		b.Fatal(err)
	}
	root, err := host.Root("bench-bare", cgroup.Memory)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Remove(context.Background())
	dir := b.TempDir()
	store, err := os.Create(filepath.Join(dir, "store"))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	var writes sync.Mutex
	commit := func() error {
		writes.Lock()
		defer writes.Unlock()
		_, err := store.Write(make([]byte, 4096))
		return errors.Join(err, store.Sync())
	}
	bare := func(name string) error {
		folder := filepath.Join(dir, name)
		err := errors.Join(commit(), commit(), durable.MakeDir(folder),
			durable.Write(filepath.Join(folder, "begin"), make([]byte, 1024)), durable.SyncDir(dir))
		g, made := root.Create(name)
		if err := errors.Join(err, made); err != nil {
			return err
		}
		defer g.Remove(context.Background())
		if err := g.ApplyCounted(context.Background(),
			cgroup.Limits{MemoryBytes: cgroup.At(int64(8 * resource.MiB))}); err != nil {
			return err
		}
		enter := append([]string{"-c", `for f in "$@"; do echo 0 > "$f"; done; exec true`, "enter"}, g.JoinFiles()...)
		return errors.Join(exec.Command("sh", enter...).Run(), commit(),
			durable.Write(filepath.Join(folder, "end"), make([]byte, 1024)), commit(), os.RemoveAll(folder))
	}
	began, n := time.Now(), 0
	for b.Loop() {
		var all sync.WaitGroup
		for k := range 8 {
			all.Go(func() {
				for i := k; i < jobs; i += 8 {
					if err := bare(fmt.Sprintf("%d-%d", n, i)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		n += jobs
	}
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "jobs/s")
}

// BenchmarkRestart measures how long a daemon that has one processor takes to serve after it was killed with 200
// running containers and 10,000 waiting jobs, in the best of three times: without a history, and with 90,000 jobs in
// its store that have ended. The goal: 2 s, and a ratio of about 1.
func BenchmarkRestart(b *testing.B) {
	var took []float64
	for _, history := range []int{0, 90_000} {
		b.Run(fmt.Sprintf("ended=%d", history), func(b *testing.B) {
			l := newLoaded(b)
			l.start(false)
			if history > 0 {
				if _, err := l.client.Wait(b.Context(), l.submit(1, resource.Core, 8*resource.MiB, "true")[0]); err != nil {
					b.Fatal(err)
				}
				l.end(false)
				l.ended(history)
				l.start(false)
			}
			l.submit(200, 1, 8*resource.MiB, "sleep", "100000")
			l.running(200)
			l.submit(10_000, 1, 4*resource.GiB, "true")
			seconds := math.Inf(1)
			for b.Loop() {
				for range 3 {
					if err := l.up.Process.Signal(syscall.SIGKILL); err != nil {
						b.Fatal(err)
					}
					_ = l.up.Wait()
					seconds = min(seconds, l.start(true).Seconds())
				}
			}
			l.running(200)
			took = append(took, seconds)
			b.ReportMetric(seconds, "s-to-serving")
			b.ReportMetric(seconds/took[0], "of-without-history")
		})
	}
}
