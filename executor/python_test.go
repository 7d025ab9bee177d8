package executor_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// pythonFunctions are a module whose functions workers in tests can run.
const pythonFunctions = `
import ctypes, datetime, os, select, socket, subprocess, sys, time

count = 0

def double(x):
    return x * 2

def counted(x):
    global count
    count += 1
    return [count, os.getpid(), os.getcwd()]

def upper(x):
    return x.upper()

upper.bellows_raw = True

def text(x):
    return x

text.bellows_raw = True

def spent(began):
    return began.to_bytes(8, "big") + time.time_ns().to_bytes(8, "big")

def sleep(x):
    began = time.time_ns()
    time.sleep(int.from_bytes(x, "big") / 1e9)
    return spent(began)

def meet(x):
    began = time.time_ns()
    open(x, "rb").close()
    return spent(began)

sleep.bellows_raw = meet.bellows_raw = True

def squares(where, attached):
    with socket.socket(socket.AF_UNIX) as c:
        c.connect(where.decode())
        lines = c.makefile("rw")
        print(attached.attachment, file=lines, flush=True)
        for line in lines:
            print(int(line) ** 2, file=lines, flush=True)

# home serves an application as what it is told says, and says in a file what it does.
def home(told, attached):
    def say(text):
        with open(told["says"], "a") as file:
            print(text, file=file)
    say("serves %s, stage %d, executor %d, before: %s" % (attached.name, attached.stage, attached.executor,
	attached.kept.get("before")))
    attached.kept["before"] = attached.name
    print("printed by", attached.name)
    try:
        if told["how"] == "polls":
            child = os.fork()
            if child == 0:
                time.sleep(1000)
            select.select([attached], [], [])
            os.kill(child, 9)
            os.waitpid(child, 0)
        elif told["how"] == "waits":
            attached.released.wait()
        elif told["how"] == "fails":
            raise RuntimeError("no way home")
        elif told["how"] == "sleeps":
            time.sleep(1000)
        elif told["how"] == "computes":
            ctypes.PyDLL(None).sleep(3)  # No other thread runs meanwhile.
            attached.released.wait()
    finally:
        say("leaves %s, asked %s" % (attached.name, attached.released.is_set()))

squares.bellows_raw = True

class Tools:
    @staticmethod
    def half(x):
        return x / 2

class Array:
    def tolist(self):
        return [1, 2]

def array(x):
    return Array()

def gaps(x):
    return {"NaN": [float("nan"), float("-inf"), 0.1, 12345678901234567890, None]}

def when(x):
    return [datetime.datetime(2020, 1, 2, 3, 4, 5), datetime.date(2020, 1, 2)]

def opaque(x):
    return object()

def fail(x):
    raise RuntimeError("it is broken: %s" % x)

def leave(x):
    sys.exit(3)

def die(x):
    os._exit(3)

def say(x):
    print("printed", x)
    print("an error", file=sys.stderr)
    ctypes.CDLL(None).puts(b"from C")
    subprocess.run([sys.executable, "-c", "print('by a child', end='')"])

def shout(x):
    for _ in range(100):
        sys.stdout.write("a" * 10000)
    print("the end")

def spoil(x):
    sys.stdout.close()
    sys.stdout = None
    os.close(2)

def large(x):
    return b"a" * ((32 << 20) + 1)

large.bellows_raw = True

def forever(x):
    while True:
        time.sleep(0.01)

def fork(x):
    if os.fork() == 0:
        return "the child"
    os.wait()
    return "the parent"

def wait_for(file):
    with open(file + ".runs", "a") as f:
        f.write("run\n")
    while not os.path.exists(file):
        time.sleep(0.01)
    return "done"

def at_end(file):
    import atexit
    atexit.register(lambda: open(file, "w").close())

def slow_square(x):
    time.sleep(0.002 * (x % 7))
    print("square of", x)
    return x * x
`

// interpreter returns the interpreter of Python, or skips the test.
func interpreter(t testing.TB) string {
	t.Helper()
	path, err := foundInterpreter()
	if err != nil {
		t.Skipf("needs python3 that runs: %v", err)
	}
	return path
}

var foundInterpreter = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(out)), err
})

// python begins a worker. The first call writes its file and a module with functions.
func (s *served) python(interpreter string, number int) *exec.Cmd {
	s.t.Helper()
	return s.process(s.pythonCommand(interpreter, number))
}

// pythonCommand is that of a worker.
func (s *served) pythonCommand(interpreter string, number int) *exec.Cmd {
	s.t.Helper()
	// An interpreter that starts may read them while they are written again.
	if _, err := os.Stat(filepath.Join(s.dir, "f/functions.py")); err != nil {
		s.write("worker/bellows_worker.py", string(executor.PythonWorker))
		s.write("f/functions.py", pythonFunctions)
	}
	cmd := s.command(number)
	cmd.Path, cmd.Args, cmd.Dir = interpreter, []string{interpreter, filepath.Join(s.dir, "worker/bellows_worker.py")},
		s.dir
	return cmd
}

// write writes a file below the folder of s.
func (s *served) write(name, text string) {
	s.t.Helper()
	name = filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// mapping is an application that calls a function of Python with each of some arguments.
type mapping struct {
	folder   string // below the folder of the pool; "f" if it is empty
	function string // of the module functions, unless it has a module
	fresh    bool
}

func (m mapping) begin(s *served, arguments ...string) *executor.Application {
	s.t.Helper()
	a, err := executor.Enrol(s.t.Context(), executor.ApplicationConfig{Socket: s.socket, Pool: "p",
		Enrolment: executor.Enrolment{Fresh: m.fresh, Attempts: 1000}})
	if err != nil {
		s.t.Fatal(err)
	}
	if m.folder == "" {
		m.folder = "f"
	}
	if !strings.Contains(m.function, ":") {
		m.function = "functions:" + m.function
	}
	stage := a.NewStage(executor.Stage{Function: m.function, Path: filepath.Join(s.dir, m.folder)})
	for _, x := range arguments {
		if err := a.Grow(s.t.Context(), stage, []byte(x)); err != nil {
			s.t.Fatal(err)
		}
	}
	a.Close()
	return a
}

// run returns the outcomes of the calls.
func (m mapping) run(s *served, arguments ...string) []executor.Outcome {
	s.t.Helper()
	results, err := all(s.t, m.begin(s, arguments...), nil)
	if err != io.EOF || len(results) != len(arguments) {
		s.t.Fatalf("%d results, %v", len(results), err)
	}
	out := make([]executor.Outcome, len(arguments))
	for at, o := range results {
		out[at[1]] = o
	}
	return out
}

// result returns the result of one call.
func (m mapping) result(s *served, arguments string) string {
	s.t.Helper()
	o := m.run(s, arguments)[0]
	if o.Failed {
		s.t.Fatalf("%+v failed: %s", m, o.Error)
	}
	return string(o.Payload)
}

// What functions return and print is right, also if every second answer is lost.
func TestPythonTasks(t *testing.T) {
	python := interpreter(t)
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost answers %v", cut), func(t *testing.T) {
			s := serveWith(t, longLease)
			s.cut.Store(cut)
			s.python(python, 0)
			for _, c := range []struct{ function, arguments, result, output string }{
				{"double", `21`, `42`, ""},
				{"double", `"ü"`, `"\u00fc\u00fc"`, ""},
				{"double", ``, "", ""},
				{"upper", "a\x00\nb", "A\x00\nB", ""},
				{"Tools.half", `5`, `2.5`, ""},
				{"array", `0`, `[1, 2]`, ""},
				{"gaps", `0`, `{"NaN": [null, null, 0.1, 12345678901234567890, null]}`, ""},
				{"when", `0`, `["2020-01-02T03:04:05", "2020-01-02"]`, ""},
				{"fork", `0`, `"the parent"`, ""},
				{"say", `1`, `null`, "from C\n"},
				{"spoil", `0`, `null`, ""},
				{"say", `2`, `null`, "from C\n"},
			} {
				o := mapping{function: c.function}.run(s, c.arguments)[0]
				if c.result != "" && (o.Failed || string(o.Payload) != c.result) || !cut && o.Run != 1 {
					t.Errorf("%s(%s): got %q, %+v", c.function, c.arguments, o.Payload, o.Result)
				}
				for _, line := range []string{c.output, "printed " + c.arguments + "\n", "an error\n", "by a child"} {
					if c.output != "" && !bytes.Contains(o.Printed, []byte(line)) {
						t.Errorf("%s(%s) printed %q, without %q", c.function, c.arguments, o.Printed, line)
					}
				}
				if c.output == "" && len(o.Printed) > 0 {
					t.Errorf("%s(%s) printed %q", c.function, c.arguments, o.Printed)
				}
			}
			if v, err := s.pool.View(t.Context()); err != nil || len(v.Executors) != 1 ||
				v.Executors[0].Language != "python" || v.Executors[0].Memory < 1<<20 {
				t.Errorf("the pool is %+v, %v", v, err)
			}
		})
	}
}

// A task that fails says why, and the worker runs on.
func TestPythonFailures(t *testing.T) {
	s := serve(t)
	s.python(interpreter(t), 0)
	s.write("f/no_syntax.py", "def f(:\n")
	s.write("f/stops.py", "raise SystemExit('no license')\n")
	for _, c := range []struct{ function, says string }{
		{"fail", "RuntimeError: it is broken: 1"},
		{"leave", "SystemExit: 3"},
		{"opaque", "the result cannot be JSON: it has a object"},
		{"text", ""}, // gets bytes and returns them
		{"large", "at most 33554432"},
		{"nothing", "AttributeError: module 'functions' has no attribute 'nothing'"},
		{"nowhere:f", "ModuleNotFoundError: No module named 'nowhere'"},
		{"no_syntax:f", "SyntaxError"},
		{"stops:f", "no license"},
		{"functions:", "must be MODULE:FUNCTION"},
	} {
		o := mapping{function: c.function}.run(s, "1")[0]
		if o.Failed != (c.says != "") || !strings.Contains(o.Error, c.says) ||
			strings.Contains(o.Error, "bellows_worker") || strings.Contains(o.Error, "importlib") {
			t.Errorf("%s: got %+v", c.function, o.Result)
		}
	}
	if o := (mapping{function: "fail"}).run(s, "1")[0]; !strings.Contains(o.Error, `functions.py", line`) ||
		!strings.Contains(o.Error, "raise RuntimeError") {
		t.Errorf("the stack trace is %q", o.Error)
	}
	if o := (mapping{function: "double"}).run(s, "{")[0]; !strings.HasPrefix(o.Error,
		"ValueError: the input is no JSON: Expecting property name") {
		t.Errorf("an input that is no JSON: %+v", o.Result)
	}
	if o := (mapping{function: "double", folder: "nowhere"}).run(s, "1")[0]; !o.Failed ||
		!strings.Contains(o.Error, "FileNotFoundError") {
		t.Errorf("without the folder: %+v", o.Result)
	}
	for _, o := range (mapping{function: "shout"}).run(s, "1", "2") {
		if len(o.Printed) != executor.MostOutput || !o.Truncated || !bytes.HasSuffix(o.Printed, []byte("aathe end\n")) {
			t.Errorf("%d bytes were printed, truncated %v", len(o.Printed), o.Truncated)
		}
	}
	if r := (mapping{function: "double"}).result(s, "1"); r != "2" {
		t.Errorf("got %s", r)
	}
}

// A crash costs one task, and the process that keeps the lease ends with the worker.
func TestPythonCrash(t *testing.T) {
	python := interpreter(t)
	s := serve(t)
	lease, err := s.pool.Enrol(t.Context(), executor.Enrolment{Key: "application-that-dies", Attempts: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := executor.Growth{Lease: lease.Lease, Number: 1,
		Stages: []executor.StageGrowth{{Function: "functions:die", Path: filepath.Join(s.dir, "f"), Sizes: []int{1}}},
		Closed: true}
	if _, err := s.pool.Grow(t.Context(), lease.Application, g, []byte("1")); err != nil {
		t.Fatal(err)
	}
	for number := range 2 {
		if cmd := s.python(python, number); cmd.Wait() == nil {
			t.Error("it did not die")
		}
		if _, err := s.pool.Left(t.Context(), number, executor.CauseLost, ""); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.results(lease)[0]; !r.Failed || r.Run != 2 || !strings.Contains(r.Error, "lost 2 times") {
		t.Errorf("got %+v", r)
	}
	cmd := s.python(python, 2)
	if r := (mapping{function: "double"}).result(s, "1"); r != "2" {
		t.Errorf("got %s", r)
	}
	companions := children(cmd.Process.Pid)
	if len(companions) != 1 {
		t.Fatalf("children %v", companions)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	until(t, "the companion has ended", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/mem", companions[0]))
		return err != nil || isZombie(fmt.Sprint(companions[0]))
	})
}

// isZombie reports whether a process has ended and was not waited for.
func isZombie(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || strings.Contains(string(text), ") Z ")
}

// until waits until a condition holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Modules stay loaded until one of the files of the folder changes. Each folder has its own.
func TestPythonModules(t *testing.T) {
	s := serve(t)
	s.python(interpreter(t), 0)
	s.write("a/main.py",
		"from part import value\ncalls = 0\ndef f(x):\n    global calls\n    calls += 1\n    return [value, calls]\n")
	s.write("a/part.py", "value = 1\n")
	s.write("b/main.py", "def f(x):\n    import part\n    return part.value\n")
	s.write("b/part.py", "value = 8\n")
	a, b := mapping{folder: "a", function: "main:f"}, mapping{folder: "b", function: "main:f"}
	for i, want := range []string{"[1, 1]", "[1, 2]"} {
		if r := a.result(s, "0"); r != want {
			t.Errorf("call %d: got %s", i, r)
		}
	}
	if r := b.result(s, "0"); r != "8" {
		t.Errorf("the other folder: got %s", r)
	}
	if r := a.result(s, "0"); r != "[1, 3]" {
		t.Errorf("back again: got %s", r)
	}
	for i := 2; i < 8; i++ {
		s.write("a/part.py", fmt.Sprintf("value = %d\n", i)) // of the same size, perhaps in the same second
		if r := a.result(s, "0"); r != fmt.Sprintf("[%d, 1]", i) {
			t.Errorf("after change %d: got %s", i, r)
		}
	}
	s.write("b/part.py", "value = 9\n")
	if r := b.result(s, "0"); r != "9" {
		t.Errorf("the other folder has changed: got %s", r)
	}
}

// What an application that wants a fresh process sees is not what others have left. The worker keeps its process, its
// lease and its number.
func TestPythonFresh(t *testing.T) {
	s := serveWith(t, longLease)
	cmd := s.python(interpreter(t), 0)
	dir, err := filepath.EvalSymlinks(filepath.Join(s.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	is := func(count int, outcomes []executor.Outcome) {
		t.Helper()
		for _, o := range outcomes {
			if want := fmt.Sprintf("[%d, %d, %q]", count, cmd.Process.Pid, dir); string(o.Payload) != want || o.Run != 1 {
				t.Errorf("got %s, %+v, want %s", o.Payload, o.Result, want)
			}
			count++
		}
	}
	counted, fresh := mapping{function: "counted"}, mapping{function: "counted", fresh: true}
	is(1, counted.run(s, "0", "0"))
	is(3, counted.run(s, "0"))
	for range 3 {
		is(1, fresh.run(s, "0", "0"))
	}
	is(3, counted.run(s, "0"))
	if o := (mapping{function: "say", fresh: true}).run(s, "1")[0]; !strings.Contains(string(o.Printed), "printed 1\n") {
		t.Errorf("it printed %q", o.Printed)
	}
	if v, err := s.pool.View(t.Context()); err != nil || len(v.Executors) != 1 || v.Executors[0].Tasks != 11 ||
		v.Counters.Lost != 0 {
		t.Errorf("the pool is %+v, %v", v, err)
	}
}

// A task that is not wanted any more ends, and the worker is free again. When it ends, so does what tasks have left
// to be done then.
func TestPythonCancelAndEnd(t *testing.T) {
	s := serve(t)
	cmd := s.python(interpreter(t), 0)
	for range 3 {
		a := mapping{function: "forever"}.begin(s, "0")
		s.untilRunning()
		if err := a.Cancel(t.Context(), "not wanted"); err != nil {
			t.Fatal(err)
		}
		if r := (mapping{function: "counted"}).result(s, "1"); !strings.Contains(r, fmt.Sprint(cmd.Process.Pid)) {
			t.Errorf("got %s", r)
		}
	}
	file := filepath.Join(s.dir, "ended")
	mapping{function: "at_end"}.result(s, fmt.Sprintf("%q", file))
	if err := s.pool.Drain(t.Context(), 0, "its memory has grown"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after the end: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// untilRunning waits until a task runs.
func (s *served) untilRunning() {
	s.t.Helper()
	until(s.t, "a task runs", func() bool {
		v, err := s.pool.View(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range v.Executors {
			if e.Running > 0 {
				return true
			}
		}
		return false
	})
}

// A task goes on while the daemon begins anew, and its result counts: it runs once.
func TestPythonOutlivesDaemon(t *testing.T) {
	s := serve(t)
	s.python(interpreter(t), 0)
	file := filepath.Join(s.dir, "go")
	a := mapping{function: "wait_for"}.begin(s, fmt.Sprintf("%q", file))
	until(t, "it runs", func() bool { _, err := os.Stat(file + ".runs"); return err == nil })
	for range 2 {
		s.end()
		s.begin(1)
		s.untilRunning() // The process that keeps the lease has registered.
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	results, err := all(t, a, nil)
	runs, _ := os.ReadFile(file + ".runs")
	if err != io.EOF || string(results[[2]int{0, 0}].Payload) != `"done"` || string(runs) != "run\n" {
		t.Errorf("got %v, %v, runs %q", results, err, runs)
	}
	if r := (mapping{function: "double"}).result(s, "1"); r != "2" {
		t.Errorf("got %s", r)
	}
}

// How long the daemon is away counts from when that is known, not from when a message was sent, whose answer may have
// been slow to come.
func TestPythonSlowFailure(t *testing.T) {
	s := serve(t)
	s.write("bellows_worker.py", string(executor.PythonWorker))
	s.write("try.py", `
import time, bellows_worker
bellows_worker.AWAY, tries = 0.2, []
def attempt():
    tries.append(time.sleep(0.3))
    if len(tries) < 2:
        raise OSError("the connection is lost")
    return "there"
assert bellows_worker.patiently(attempt) == "there"
`)
	if out, err := exec.Command(interpreter(t), filepath.Join(s.dir, "try.py")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

var (
	pythonDeaths = flag.Int("deaths", 4,
		"how often TestPythonOnBadDays kills workers, and as often the processes that keep their leases")
	pythonSeed = flag.Uint64("death-seed", 0, "what the moments of TestPythonOnBadDays come from; 0 is the time")
)

// Workers and the processes that keep their leases are killed, some stand still for longer than a lease, and daemons
// end, at random moments of a stream: each task has one result, and it and the output are right.
func TestPythonOnBadDays(t *testing.T) {
	b := &badPython{python: interpreter(t), served: serveWith(t, func(c *pool.Config) { c.Lease = time.Second }),
		seed: *pythonSeed, ended: make(chan int)}
	deaths := *pythonDeaths
	if testing.Short() {
		deaths = min(deaths, 2)
	}
	if b.seed == 0 {
		b.seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%d deaths, seed %d", deaths, b.seed)
	b.random = rand.New(rand.NewPCG(b.seed, 0))
	for n := range b.workers {
		b.begin(n)
	}
	a, err := executor.Enrol(t.Context(), executor.ApplicationConfig{Socket: b.socket, Pool: "p",
		Enrolment: executor.Enrolment{Attempts: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	stage := a.NewStage(executor.Stage{Function: "functions:slow_square", Path: filepath.Join(b.dir, "f")})
	tasks := 0
	stream := make(chan error, 1)
	moments := b.moments(deaths)
	grow := make(chan int, len(moments))
	go func() {
		defer a.Close()
		for n := range grow {
			for range n {
				if err := a.Grow(t.Context(), stage, fmt.Append(nil, tasks)); err != nil {
					stream <- err
					return
				}
				tasks++
			}
		}
		stream <- nil
	}()
	days := make(chan struct{})
	over, end := context.WithCancel(t.Context())
	go func() {
		defer close(days)
		for _, happens := range moments {
			grow <- 20
			b.until(over, time.After(time.Duration(b.random.IntN(60))*time.Millisecond))
			happens()
		}
		close(grow)
		b.until(over, nil)
	}()
	results, err := all(t, a, nil)
	end()
	<-days
	b.stop()
	if err := cmp.Or(err, <-stream); err != io.EOF || len(results) != tasks {
		t.Fatalf("%d results of %d tasks, %v", len(results), tasks, err)
	}
	for i := range tasks {
		o := results[[2]int{0, i}]
		if o.Failed || string(o.Payload) != fmt.Sprint(i*i) || string(o.Printed) != fmt.Sprintf("square of %d\n", i) {
			t.Errorf("task %d: got %s, printed %q, %+v", i, o.Payload, o.Printed, o.Result)
		}
	}
}

// badPython is workers of Python to which bad things happen.
type badPython struct {
	*served
	python  string
	seed    uint64
	random  *rand.Rand
	workers [3]*exec.Cmd
	still   int // the one of them that stands still, plus one; 0 none
	goesOn  <-chan time.Time
	ended   chan int
}

// begin begins a worker.
func (b *badPython) begin(n int) {
	cmd := b.pythonCommand(b.python, n)
	cmd.Stderr = io.Discard
	if err := cmd.Start(); err != nil {
		b.t.Error(err)
		return
	}
	b.workers[n] = cmd
	go func() {
		_ = cmd.Wait()
		b.ended <- n
	}()
}

// until replaces workers that end, until a time has come or ctx ends.
func (b *badPython) until(ctx context.Context, at <-chan time.Time) {
	for {
		select {
		case n := <-b.ended:
			_, _ = b.pool.Left(ctx, n, executor.CauseLost, "")
			b.begin(n)
		case <-b.goesOn:
			b.signal(b.still-1, syscall.SIGCONT)
			b.still, b.goesOn = 0, nil
		case <-at:
			return
		case <-ctx.Done():
			return
		}
	}
}

// stop ends all workers.
func (b *badPython) stop() {
	for n := range b.workers {
		b.signal(n, syscall.SIGKILL)
	}
	for range b.workers {
		<-b.ended
	}
}

// signal sends a signal to a worker and the process that keeps its lease.
func (b *badPython) signal(n int, s syscall.Signal) {
	pid := b.workers[n].Process.Pid
	for _, child := range children(pid) {
		_ = syscall.Kill(child, s)
	}
	_ = syscall.Kill(pid, s)
}

// children returns the processes that a process has begun.
func children(pid int) (pids []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, word := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

// moments are what happens, in a random order.
func (b *badPython) moments(deaths int) (all []func()) {
	another := func() int { // that goes on
		n := b.random.IntN(len(b.workers))
		if n == b.still-1 {
			n = (n + 1) % len(b.workers)
		}
		return n
	}
	add := func(n int, what func()) { all = append(all, slices.Repeat([]func(){what}, n)...) }
	add(deaths, func() { _ = b.workers[another()].Process.Kill() })
	add(deaths, func() {
		for _, companion := range children(b.workers[another()].Process.Pid) {
			_ = syscall.Kill(companion, syscall.SIGKILL)
		}
	})
	add(max(1, deaths/5), func() {
		b.end()
		b.served.begin(len(b.workers))
	})
	add(max(1, deaths/10), func() {
		if b.still == 0 {
			n := another()
			b.still, b.goesOn = n+1, time.After(1500*time.Millisecond)
			b.signal(n, syscall.SIGSTOP)
		}
	})
	b.random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all
}

// A worker that never answers loses its lease, and its task runs elsewhere. When it goes on, its late report is
// dropped and counted, and it runs tasks again.
func TestPythonNeverAnswers(t *testing.T) {
	python := interpreter(t)
	ended := make(chan int, 100)
	s := serveWith(t, func(c *pool.Config) {
		c.Lease = 500 * time.Millisecond
		c.End = func(number int, _ string) { ended <- number }
	})
	silent := s.python(python, 0)
	file := filepath.Join(s.dir, "go")
	a := mapping{function: "wait_for"}.begin(s, fmt.Sprintf("%q", file))
	runs := func() string { text, _ := os.ReadFile(file + ".runs"); return string(text) }
	until(t, "it runs", func() bool { return runs() == "run\n" })
	pids := append(children(silent.Process.Pid), silent.Process.Pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if n := <-ended; n != 0 {
		t.Errorf("executor %d was to be ended", n)
	}
	s.python(python, 1)
	until(t, "it runs again", func() bool { return runs() == "run\nrun\n" })
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	results, err := all(t, a, nil)
	if o := results[[2]int{0, 0}]; err != io.EOF || string(o.Payload) != `"done"` || o.Run < 2 || o.Executor != 1 {
		t.Errorf("got %v, %+v", err, o)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	until(t, "the late report is dropped", func() bool {
		v, err := s.pool.View(t.Context())
		return err == nil && v.Counters.Dropped == 1 && v.Counters.Expired > 0 && v.Counters.Lost > 0 &&
			len(v.Executors) == 2 && v.Executors[0].State != api.ExecutorExpired
	})
	if r := (mapping{function: "double"}).result(s, "1"); r != "2" {
		t.Errorf("got %s", r)
	}
}
