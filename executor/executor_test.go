package executor_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// functions are what executors in tests can run.
var functions = map[string]executor.Function{
	"upper": func(_ context.Context, arguments []byte) ([]byte, error) { return bytes.ToUpper(arguments), nil },
	"print": func(context.Context, []byte) ([]byte, error) {
		fmt.Println("printed")
		child := exec.Command("/proc/self/exe")
		child.Env, child.Stderr = []string{childVariable + "=by a child"}, os.Stderr
		return nil, child.Run()
	},
	"now": func(context.Context, []byte) ([]byte, error) {
		return binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())), nil
	},
	"sleep": func(_ context.Context, arguments []byte) ([]byte, error) {
		began := time.Now()
		time.Sleep(time.Duration(binary.BigEndian.Uint64(arguments)))
		return spent(began), nil
	},
	"meet": func(_ context.Context, arguments []byte) ([]byte, error) { // waits until someone writes to a named pipe
		began := time.Now()
		f, err := os.Open(string(arguments))
		if err != nil {
			return nil, err
		}
		return spent(began), f.Close()
	},
	"large": func(context.Context, []byte) ([]byte, error) { return make([]byte, executor.MostResult+1), nil },
	"shout": func(context.Context, []byte) ([]byte, error) {
		for range 100 {
			os.Stdout.Write(bytes.Repeat([]byte("a"), 10_000))
		}
		fmt.Println("the end")
		return nil, nil
	},
	"count": func(context.Context, []byte) ([]byte, error) {
		fmt.Println("counted")
		return fmt.Appendf(nil, "%d in process %d", counted.Add(1), os.Getpid()), nil
	},
	"squares": serveSquares,
	"goexit":  func(context.Context, []byte) ([]byte, error) { runtime.Goexit(); return nil, nil },
	"panic":   func(context.Context, []byte) ([]byte, error) { panic("broken") },
	"die":     func(context.Context, []byte) ([]byte, error) { return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	"wait": func(ctx context.Context, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	},
}

// counted counts the calls of a function.
var counted atomic.Int64

// spent is the result of a task that tells when it began and ended.
func spent(began time.Time) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(began.UnixNano())),
		uint64(time.Now().UnixNano()))
}

// childVariable is the environment variable with what a child of a task prints.
const childVariable = "BELLOWS_TEST_CHILD"

// TestMain lets this test program be an executor, and the child of a task.
func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		fmt.Fprintln(os.Stderr, text)
		os.Exit(0)
	}
	if os.Getenv(executor.PoolVariable) != "" {
		executor.Main(functions)
	}
	os.Exit(m.Run())
}

// served is a pool that answers on a socket.
type served struct {
	t      testing.TB
	dir    string
	socket string
	pool   *pool.Pool
	server *http.Server
	cut    atomic.Bool // whether every second answer is lost
	n      atomic.Int64
	fresh  bool // of the applications that enrol
	// configure changes the configuration of the pool; nil does not.
	configure func(*pool.Config)
}

func serve(t testing.TB) *served { return serveWith(t, nil) }

// longLease is for tests that count registrations or runs, or have many executors, on a busy machine.
func longLease(c *pool.Config) { c.Lease = time.Minute }

func serveWith(t testing.TB, configure func(*pool.Config)) *served {
	dir, err := os.MkdirTemp("", "bellows") // not t.TempDir, since the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &served{t: t, dir: dir, socket: filepath.Join(dir, "s"), configure: configure}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin(0)
	t.Cleanup(s.end)
	return s
}

// begin begins a pool to which a number of executors will return.
func (s *served) begin(expected int) {
	s.t.Helper()
	mira, err := policy.New("mira", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c := pool.Config{Name: "p", Policy: mira, Expected: expected, Grace: time.Minute, Lease: 2 * time.Second,
		Verify: func(_ int, secret string) bool {
			return secret == "secret"
		}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if s.configure != nil {
		s.configure(&c)
	}
	s.pool = pool.Start(c)
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	handler := http.StripPrefix("/v1/pools/p", s.pool.Handler())
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cut.Load() && s.n.Add(1)%2 == 0 {
			handler.ServeHTTP(unheard{w.Header()}, r)
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	})}
	go func() { _ = s.server.Serve(l) }()
}

func (s *served) end() {
	s.pool.Close()
	_ = s.server.Close()
}

// unheard is an answer that is lost.
type unheard struct{ header http.Header }

func (u unheard) Header() http.Header         { return u.header }
func (u unheard) Write(p []byte) (int, error) { return len(p), nil }
func (u unheard) WriteHeader(int)             {}

// command is that of an executor.
func (s *served) command(number int) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), executor.SocketVariable+"="+s.socket, executor.PoolVariable+"=p",
		fmt.Sprintf("%s=%d", executor.ExecutorVariable, number), executor.SecretVariable+"="+filepath.Join(s.dir, "secret"))
	return cmd
}

// executor begins an executor in a process of its own.
func (s *served) executor(number int) *exec.Cmd {
	s.t.Helper()
	return s.process(s.command(number))
}

// process begins an executor by a command.
func (s *served) process(cmd *exec.Cmd) *exec.Cmd {
	s.t.Helper()
	cmd.Stderr = s.t.Output()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// application enrols one whose tasks call a function, one with each of the arguments.
func (s *served) application(function string, arguments ...[]byte) executor.Lease {
	s.t.Helper()
	lease, err := s.pool.Enrol(s.t.Context(), executor.Enrolment{Key: rand.Text(), Attempts: 2, Fresh: s.fresh}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	stage := executor.StageGrowth{Function: function}
	for _, a := range arguments {
		stage.Sizes = append(stage.Sizes, len(a))
	}
	g := executor.Growth{Lease: lease.Lease, Number: 1, Stages: []executor.StageGrowth{stage}, Closed: true}
	if _, err := s.pool.Grow(s.t.Context(), lease.Application, g, bytes.Join(arguments, nil)); err != nil {
		s.t.Fatal(err)
	}
	return lease
}

// outcome is the result of a task, with its payload.
type outcome struct {
	executor.Result
	result, output string
}

// results returns the results of an application by the numbers of its tasks, once it has ended.
func (s *served) results(lease executor.Lease) map[int]outcome {
	s.t.Helper()
	all := map[int]outcome{}
	for after := int64(0); ; {
		out, payloads, err := s.pool.Collect(s.t.Context(), lease.Application,
			executor.Collect{Lease: lease.Lease, After: after})
		if err != nil {
			s.t.Fatal(err)
		}
		for i, r := range out.Results {
			if _, twice := all[r.Task]; twice {
				s.t.Errorf("task %d has two results", r.Task)
			}
			all[r.Task] = outcome{r, string(payloads[2*i]), string(payloads[2*i+1])}
			after = r.Number
		}
		if out.Ended {
			return all
		}
	}
}

// A program that uses the library runs tasks, also if every second answer is lost.
func TestExecutorRunsTasks(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost answers %v", cut), func(t *testing.T) {
			s := serveWith(t, longLease)
			s.cut.Store(cut)
			s.executor(0)
			large := bytes.Repeat([]byte("abcdefgh"), 1<<17) // 1 MiB
			all := s.results(s.application("upper", []byte("a"), large, nil))
			if len(all) != 3 || all[0].result != "A" || all[1].result != strings.ToUpper(string(large)) || all[2].result != "" {
				t.Errorf("%d results, the first is %+v", len(all), all[0])
			}
			for _, r := range all {
				if r.Run != 1 || r.Failed {
					t.Errorf("got %+v", r.Result)
				}
			}
		})
	}
}

// What a task prints, and what its children print, belongs to the task.
func TestOutputOfTasks(t *testing.T) {
	s := serve(t)
	s.executor(0)
	if all := s.results(s.application("print", nil, nil)); all[0].output != "printed\nby a child\n" ||
		all[1].output != all[0].output {
		t.Errorf("got %+v", all)
	}
}

// A function that panics, and one that does not exist, are failed tasks; the executor runs on.
func TestFailedTasks(t *testing.T) {
	s := serve(t)
	s.executor(0)
	if r := s.results(s.application("panic", nil))[0]; !r.Failed || !strings.Contains(r.Error, "panic: broken") ||
		!strings.Contains(r.Error, "executor_test.go") {
		t.Errorf("got %+v", r)
	}
	if r := s.results(s.application("goexit", nil))[0]; !r.Failed || !strings.Contains(r.Error, "ended its goroutine") ||
		!strings.Contains(r.Error, "executor_test.go") {
		t.Errorf("got %+v", r)
	}
	if r := s.results(s.application("nothing", nil))[0]; !r.Failed || !strings.Contains(r.Error, "no such function") {
		t.Errorf("got %+v", r)
	}
	if r := s.results(s.application("upper", []byte("a")))[0]; r.result != "A" || r.Executor != 0 {
		t.Errorf("got %+v", r)
	}
}

// A result that is too large is a failed task, and costs no executor.
func TestLargeResult(t *testing.T) {
	s := serve(t)
	s.executor(0)
	if r := s.results(s.application("large", nil))[0]; !r.Failed || r.Run != 1 || !strings.Contains(r.Error, "at most") {
		t.Errorf("got %+v", r)
	}
}

// Of what a task prints, the end is kept.
func TestMuchOutput(t *testing.T) {
	s := serve(t)
	s.executor(0)
	all := s.results(s.application("shout", nil, nil))
	for _, r := range all {
		if len(r.output) != executor.MostOutput || !r.Truncated || !strings.HasSuffix(r.output, "aa\nthe end\n") &&
			!strings.HasSuffix(r.output, "aathe end\n") {
			t.Errorf("%d bytes, truncated %v, ending with %q", len(r.output), r.Truncated, r.output[max(0, len(r.output)-20):])
		}
	}
}

// Whoever wants a fresh process gets one in which no task of another application has run. It has the same number,
// lease and process id.
func TestFresh(t *testing.T) {
	s := serveWith(t, longLease)
	cmd := s.executor(0)
	is := func(all map[int]outcome, counts ...int) {
		t.Helper()
		for i, n := range counts {
			if want := fmt.Sprintf("%d in process %d", n, cmd.Process.Pid); all[i].result != want ||
				all[i].output != "counted\n" {
				t.Errorf("got %+v, want %s", all[i], want)
			}
		}
	}
	is(s.results(s.application("count", nil, nil)), 1, 2)
	s.fresh = true
	for range 3 {
		is(s.results(s.application("count", nil, nil)), 1, 2)
	}
	s.fresh = false
	is(s.results(s.application("count", nil)), 3)
	if v, err := s.pool.View(t.Context()); err != nil || len(v.Executors) != 1 || v.Executors[0].Tasks != 9 ||
		v.Executors[0].Language != "go" || v.Counters.Lost != 0 {
		t.Errorf("the pool is %+v, %v", v, err)
	}
	if err := s.pool.Drain(t.Context(), 0, "the pool shrinks"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// An executor that is a part of another program refuses tasks that want a fresh process.
func TestNotFresh(t *testing.T) {
	s := serve(t)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		e := &executor.Executor{Socket: s.socket, Pool: "p", Secret: "secret", Functions: functions}
		ended <- e.Run(ctx)
	}()
	s.results(s.application("upper", []byte("a")))
	s.fresh = true
	if r := s.results(s.application("upper", []byte("a")))[0]; !r.Failed || !strings.Contains(r.Error, "fresh") {
		t.Errorf("got %+v", r)
	}
	end()
	<-ended
}

// What an executor says of its own end goes where it printed before it began.
func TestWhyItEnded(t *testing.T) {
	s := serve(t)
	if err := os.WriteFile(filepath.Join(s.dir, "secret"), []byte("guess"), 0o600); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	cmd := s.command(0)
	cmd.Stderr = &text
	if err := cmd.Run(); err == nil || !strings.Contains(text.String(), "secret is not that of the executor") {
		t.Errorf("%v: %q", err, text.String())
	}
}

// A crash costs one task: others get their results from the executors that are left.
func TestCrash(t *testing.T) {
	s := serve(t)
	lease := s.application("die", nil)
	for number := range 2 {
		_ = s.executor(number).Wait()
		if _, err := s.pool.Left(t.Context(), number, executor.CauseLost, ""); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.results(lease)[0]; !r.Failed || r.Run != 2 || !strings.Contains(r.Error, "lost 2 times") {
		t.Errorf("got %+v", r)
	}
	s.executor(2)
	if r := s.results(s.application("upper", []byte("a")))[0]; r.result != "A" {
		t.Errorf("got %+v", r)
	}
}

// A task that is not wanted any more ends, and the executor is free again.
func TestCancelledTask(t *testing.T) {
	s := serve(t)
	s.executor(0)
	lease := s.application("wait", nil)
	for { // until it runs
		v, err := s.pool.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Applications) == 1 && v.Applications[0].Running == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := s.pool.Cancel(t.Context(), lease.Application, "not wanted"); err != nil {
		t.Fatal(err)
	}
	if r := s.results(s.application("upper", []byte("a")))[0]; r.result != "A" {
		t.Errorf("got %+v", r)
	}
}

// An executor outlives its daemon: it registers with the next one and runs on.
func TestExecutorOutlivesDaemon(t *testing.T) {
	s := serve(t)
	cmd := s.executor(0)
	if r := s.results(s.application("upper", []byte("a")))[0]; r.result != "A" {
		t.Fatalf("got %+v", r)
	}
	s.end()
	s.begin(1)
	if r := s.results(s.application("upper", []byte("b")))[0]; r.result != "B" {
		t.Errorf("got %+v", r)
	}
	if err := s.pool.Drain(t.Context(), 0, "the pool shrinks"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// Without the secret there is no lease.
func TestWrongSecret(t *testing.T) {
	s := serve(t)
	e := &executor.Executor{Socket: s.socket, Pool: "p", Number: 0, Secret: "guess"}
	err := e.Run(t.Context())
	if status, ok := errors.AsType[*executor.StatusError](err); !ok || status.Status != http.StatusForbidden {
		t.Errorf("got %v", err)
	}
}
