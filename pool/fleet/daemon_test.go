package fleet_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/daemon"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/agent"
	"github.com/bellows-rm/bellows/pool/fleet"
)

// functions are what executors in tests can run.
var functions = map[string]executor.Function{
	"square": func(_ context.Context, arguments []byte) ([]byte, error) {
		n, err := strconv.Atoi(string(arguments))
		time.Sleep(time.Duration(n%20) * time.Millisecond)
		return []byte(strconv.Itoa(n * n)), err
	},
	"serve": serveSquares,
}

// module has the same functions in Python.
const module = `import socket, time

def square(n):
    time.sleep(n % 20 / 1000)
    return n * n

def serve(where, attached):
    with socket.socket(socket.AF_UNIX) as c:
        try:
            c.connect(where.decode())
        except OSError:
            return  # The application was killed, and its lease has not ended.
        lines = c.makefile("rw")
        print(attached.attachment, file=lines, flush=True)
        for line in lines:
            print(square(int(line)), file=lines, flush=True)

serve.bellows_raw = True
`

// stateVariable names the state directory of the daemon that this test program is.
const stateVariable = "BELLOWS_TEST_STATE"

// leaseVariable has the length of the leases of its pools, such as 2s; the usual one if it is empty.
const leaseVariable = "BELLOWS_TEST_LEASE"

// TestMain lets this test program be a supervisor, an executor and a daemon.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand:
		syscall.Exit(agent.Supervise(os.Args[2:]))
	case os.Getenv(executor.PoolVariable) != "":
		executor.Main(functions)
	case os.Getenv(driverVariable) != "":
		if err := beDriver(os.Getenv(stateVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv(stateVariable) != "":
		if err := beDaemon(os.Getenv(stateVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ownerOf is the owner of a pool: another user than that of the daemon, if it can be, and another one of the pool
// "other".
func ownerOf(pool string) cluster.Credentials {
	if os.Getuid() != 0 {
		return cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	}
	c := cluster.Credentials{UID: 65534, GID: 65534}
	if pool == "other" {
		c.UID--
	}
	return c
}

func socketIn(dir string) string { return filepath.Join(dir, "s") }
func stateIn(dir string) string  { return filepath.Join(dir, "state") }

// beDaemon is a daemon whose pools answer on a socket, until its standard input ends: then it ends everything.
func beDaemon(dir string) error {
	divides, err := policy.New("fifo", nil)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := daemon.Config{State: stateIn(dir), Version: "test", Log: log,
		Agent: agent.Config{Node: "n1", Capacity: resource.Of(4000, resource.GiB)}, Driver: live.Config{Policy: divides}}
	d, err := daemon.Open(c)
	if err != nil {
		return err
	}
	_ = os.Remove(socketIn(dir))
	l, err := net.Listen("unix", socketIn(dir))
	if err == nil {
		err = os.Chmod(socketIn(dir), 0o666)
	}
	if err != nil {
		return err
	}
	lease, _ := time.ParseDuration(os.Getenv(leaseVariable))
	all, err := fleet.Open(fleet.Config{State: stateIn(dir), Socket: socketIn(dir), Capacity: d.Capacity(),
		Jobs: d.Driver, Lease: lease, Log: log})
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, handler(all)) }()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if _, err := all.Retire(context.Background(), false); err != nil {
		return err
	}
	err = d.Driver.Shutdown(context.Background(), false)
	all.Close()
	return errors.Join(err, d.Remove(context.Background()))
}

// handler answers as the API does, as far as the test needs it.
func handler(all *fleet.Pools) http.Handler {
	ref := func(r *http.Request) api.PoolRef {
		of := api.OwnerOf(ownerOf(r.PathValue("pool")))
		return api.PoolRef{UID: of.UID, User: of.Name, Name: r.PathValue("pool")}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/pools/{pool}", func(w http.ResponseWriter, r *http.Request) {
		var s api.PoolSpec
		err := json.NewDecoder(r.Body).Decode(&s)
		if err == nil {
			_, err = all.Put(r.Context(), ownerOf(s.Name), ref(r).Owner(), s)
		}
		if err != nil {
			http.Error(w, err.Error(), cmp.Or(api.KindOf(err).Status(), http.StatusInternalServerError))
		}
	})
	mux.HandleFunc("GET /v1/pools/{pool}", func(w http.ResponseWriter, r *http.Request) {
		d, err := all.Detail(r.Context(), ref(r))
		if err != nil {
			http.Error(w, err.Error(), cmp.Or(api.KindOf(err).Status(), http.StatusInternalServerError))
			return
		}
		_ = json.NewEncoder(w).Encode(d)
	})
	mux.HandleFunc("/v1/pools/{pool}/", func(w http.ResponseWriter, r *http.Request) {
		h, err := all.Handler(ref(r))
		if err != nil {
			http.Error(w, err.Error(), cmp.Or(api.KindOf(err).Status(), http.StatusInternalServerError))
			return
		}
		http.StripPrefix("/v1/pools/"+r.PathValue("pool"), h).ServeHTTP(w, r)
	})
	return mux
}

// rig is a daemon in a process of its own, which a test can kill.
type rig struct {
	t      *testing.T
	dir    string
	python string   // the interpreter
	env    []string // of executors
	once   bool     // no task may run twice
	cmd    *exec.Cmd
	in     io.Closer
}

func newRig(t *testing.T) *rig { return newRigOn(t, func(string) {}) }

// newRigOn makes a rig in a folder that prepare has prepared.
func newRigOn(t *testing.T, prepare func(dir string)) *rig {
	dir, err := os.MkdirTemp("", "bellows") // not t.TempDir, since the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, python: "/usr/bin/python3", env: []string{"PATH=/usr/bin:/bin"}}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	prepare(dir)
	self, err := os.ReadFile("/proc/self/exe") // which may be where the owner of the pools cannot go
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "worker"), self, 0o755),
			os.WriteFile(filepath.Join(dir, "squares.py"), []byte(module), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	r.begin()
	t.Cleanup(func() {
		_ = r.in.Close()
		if err := r.cmd.Wait(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	return r
}

// begin begins a daemon, or skips the test where containers are not possible.
func (r *rig) begin() {
	r.t.Helper()
	r.cmd = exec.Command("/proc/self/exe")
	r.cmd.Env = append(os.Environ(), stateVariable+"="+r.dir)
	var said bytes.Buffer
	r.cmd.Stderr = io.MultiWriter(&said, r.t.Output())
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		_ = r.cmd.Wait()
		if bytes.Contains(said.Bytes(), []byte("control group")) {
			r.t.Skip(said.String())
		}
		r.t.Fatalf("the daemon did not begin: %v: %s", err, said.String())
	}
}

// kill kills the daemon and begins another.
func (r *rig) kill() {
	r.t.Helper()
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	r.begin()
}

// send sends a request to the daemon, and returns the status and the body of its answer.
func (r *rig) send(method, name string, in any) (status int, body string) {
	r.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socketIn(r.dir))
		}}}
	text, err := json.Marshal(in)
	if err != nil {
		r.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(r.t.Context(), method, "http://bellows/v1/pools/"+name,
		bytes.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, string(said)
}

// call sends a request to the daemon, which must succeed.
func (r *rig) call(method, name string, in, out any) {
	r.t.Helper()
	status, body := r.send(method, name, in)
	if status != http.StatusOK {
		r.t.Fatalf("%s: %d %s", name, status, body)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(body), out); err != nil {
			r.t.Fatal(err)
		}
	}
}

// spec is that of a pool.
func (r *rig) spec(name, language, command string, least, most int) api.PoolSpec {
	return api.PoolSpec{Name: name, Language: language, Command: []string{command}, Dir: "/", Env: r.env, Min: least,
		Max: most, CPU: 500, Memory: 64 * resource.MiB, Idle: 2 * time.Second}
}

// put makes a pool.
func (r *rig) put(name, language, command string, least, most int) {
	r.t.Helper()
	r.call(http.MethodPut, name, r.spec(name, language, command, least, most), nil)
}

// putBoth makes a pool of Go and one of Python, if the machine has that, of one executor up to most, and returns what
// squares a number in each, once an executor of each is warm.
func (r *rig) putBoth(most int) (functions map[string]string) {
	r.t.Helper()
	functions = map[string]string{"a": "square", "b": "square"}
	r.put("a", api.PoolGo, filepath.Join(r.dir, "worker"), 1, most)
	if _, err := os.Stat(r.python); err == nil {
		functions["b"] = "squares:square"
		r.put("b", api.PoolPython, r.python, 1, most)
	} else {
		r.put("b", api.PoolGo, filepath.Join(r.dir, "worker"), 1, most)
	}
	for name := range functions {
		r.until(name, "warm", func(d *api.PoolDetail) bool { return d.Idle == 1 })
	}
	return functions
}

// until waits until a pool is as it should be.
func (r *rig) until(name, what string, holds func(d *api.PoolDetail) bool) {
	r.t.Helper()
	late := time.After(time.Minute)
	for {
		var d api.PoolDetail
		r.call(http.MethodGet, name, nil, &d)
		if holds(&d) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			text, _ := json.MarshalIndent(d, "", " ")
			r.t.Fatalf("%s: not %s within a minute: %s", name, what, text)
		}
	}
}

// squares runs tasks of an application, and checks that each has the right result once.
func (r *rig) squares(ctx context.Context, name, function string, n int) error {
	a, err := executor.Enrol(ctx, executor.ApplicationConfig{Socket: socketIn(r.dir), Pool: name,
		Enrolment: executor.Enrolment{Attempts: 1000}})
	if err != nil {
		return err
	}
	stage := a.NewStage(executor.Stage{Function: function, Path: r.dir})
	arguments := make([][]byte, n)
	for i := range arguments {
		arguments[i] = []byte(strconv.Itoa(i))
	}
	go func() {
		_ = a.Grow(ctx, stage, arguments...)
		a.Close()
	}()
	there := make([]bool, n)
	for {
		outcomes, err := a.Collect(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, a.Cancel(context.WithoutCancel(ctx), "the test needs no more"))
		}
		for _, o := range outcomes {
			if o.Failed || o.Run > 1 && r.once || there[o.Task] || string(o.Payload) != strconv.Itoa(o.Task*o.Task) {
				return fmt.Errorf("task %d: %+v, there before: %v", o.Task, o, there[o.Task])
			}
			there[o.Task] = true
		}
	}
	if missing := slices.Index(there, false); missing >= 0 {
		return fmt.Errorf("task %d has no result", missing)
	}
	return nil
}

// streams runs application after application in each pool until end is called, which returns when the last ones have
// ended. goOn waits until some more have ended in each.
func (r *rig) streams(functions map[string]string) (goOn, end func()) {
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(r.t.Context())
	done := map[string]*atomic.Int64{}
	for name, function := range functions {
		counted := &atomic.Int64{}
		done[name] = counted
		all.Go(func() {
			for ctx.Err() == nil {
				if err := r.squares(r.t.Context(), name, function, 20); err != nil {
					r.t.Errorf("pool %s: %v", name, err)
					return
				}
				counted.Add(1)
			}
		})
	}
	goOn = func() {
		r.t.Helper()
		for name, n := range done {
			upTo := n.Load() + 2 // The first of them may have begun before.
			for late := time.Now().Add(time.Minute); n.Load() < upTo; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(late) {
					r.t.Fatalf("the stream of pool %s does not go on", name)
				}
			}
		}
	}
	return goOn, func() { cancel(); all.Wait() }
}

var deaths = flag.Int("deaths", 5, "how often TestDeaths kills the daemon; executors are killed twice as often")

// Two pools, of Go and of Python, run tasks while their daemon and their executors are killed at random moments. Each
// result is right and there once, executors outlive the daemon, and afterwards the pools shrink to what they keep.
func TestDeaths(t *testing.T) {
	r := newRig(t)
	functions := r.putBoth(2)
	daemons := *deaths
	if testing.Short() {
		daemons = min(daemons, 2)
	}
	tasks := 100 * daemons
	var apps sync.WaitGroup
	for name, function := range functions {
		apps.Go(func() {
			if err := r.squares(t.Context(), name, function, tasks); err != nil {
				t.Errorf("pool %s: %v", name, err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { apps.Wait(); close(ended) }()
	random := rand.New(rand.NewPCG(1, 2))
	killed := map[bool]int{} // how often the daemon was, and how often an executor
	for i := 0; i < 3*daemons; i++ {
		select {
		case <-time.After(time.Duration(random.IntN(300)) * time.Millisecond):
		case <-ended:
			i = 3 * daemons
			continue
		}
		killed[i%3 == 0]++
		if i%3 == 0 {
			r.kill()
			continue
		}
		r.until([]string{"a", "b"}[random.IntN(2)], "with an executor", func(d *api.PoolDetail) bool {
			for _, e := range d.Members {
				if e.PID > 0 && e.State != api.ExecutorLost && e.State != api.ExecutorExpired {
					_ = syscall.Kill(e.PID, syscall.SIGKILL)
					return true
				}
			}
			return false
		})
	}
	t.Logf("%d tasks of each pool outlive %d deaths of the daemon and %d of executors", tasks, killed[true], killed[false])
	<-ended
	for _, name := range []string{"a", "b"} {
		r.until(name, "small again", func(d *api.PoolDetail) bool {
			return d.Executors == 1 && d.Idle == 1 && d.Applications == 0
		})
	}
	var before, after api.PoolDetail
	r.call(http.MethodGet, "a", nil, &before)
	r.kill()
	r.until("a", "back", func(d *api.PoolDetail) bool { after = *d; return d.Synced && d.Idle == 1 })
	lives := slices.IndexFunc(before.Members, func(m api.PoolExecutor) bool { return m.State == api.ExecutorParked })
	if lives < 0 || len(after.Members) != 1 || after.Members[0].Job != before.Members[lives].Job {
		t.Errorf("after the death of the daemon the executors are %+v, before %+v", after.Members, before.Members)
	}
}

// An executor of Go and one of Python stand still for ever while they run tasks. Their leases end, and so do their
// jobs; their tasks run elsewhere, and other executors take their places.
func TestExecutorNeverAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	t.Setenv(leaseVariable, "2s")
	r := newRig(t)
	functions := r.putBoth(2)
	goOn, end := r.streams(functions)
	defer end()
	goOn()
	silent := map[string]int{}
	for name := range functions {
		r.until(name, "busy", func(d *api.PoolDetail) bool {
			for _, e := range d.Members {
				if silent[name] = e.PID; e.State == api.ExecutorAttached {
					return true
				}
			}
			return false
		})
		companions, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", silent[name], silent[name]))
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range append(strings.Fields(string(companions)), strconv.Itoa(silent[name])) {
			n, err := strconv.Atoi(pid)
			if err = cmp.Or(err, syscall.Kill(n, syscall.SIGSTOP)); err != nil {
				t.Fatal(err)
			}
		}
	}
	goOn()
	for name := range functions {
		r.until(name, "whole again", func(d *api.PoolDetail) bool { return d.Counters.Expired > 0 && d.Busy+d.Idle == 2 })
		r.until(name, "rid of the process", func(*api.PoolDetail) bool {
			return syscall.Kill(silent[name], 0) == syscall.ESRCH
		})
	}
	goOn()
}

// A pool that has the whole machine gives half of it to the pool of another user within seconds, and has all of it
// again when the other needs nothing any more.
func TestTwoUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only a daemon of root serves two users")
	}
	r := newRig(t)
	worker := filepath.Join(r.dir, "worker")
	const tasks = 100_000 // more than there is time for
	r.put("a", api.PoolGo, worker, 0, 8)
	ctx, cancel := context.WithCancel(t.Context())
	other, end := context.WithCancel(t.Context())
	var apps sync.WaitGroup
	apps.Go(func() { _ = r.squares(ctx, "a", "square", tasks) })
	r.until("a", "on the whole machine", func(d *api.PoolDetail) bool { return d.Busy+d.Idle == 8 })
	r.put("other", api.PoolGo, worker, 0, 8)
	apps.Go(func() { _ = r.squares(other, "other", "square", tasks) })
	asked := time.Now()
	r.until("other", "on half of the machine", func(d *api.PoolDetail) bool { return d.Busy+d.Idle == 4 })
	r.until("a", "on half of the machine", func(d *api.PoolDetail) bool { return d.Busy+d.Idle == 4 })
	t.Logf("half of the machine after %v", time.Since(asked).Round(time.Millisecond))
	end()
	asked = time.Now()
	r.until("a", "on the whole machine again", func(d *api.PoolDetail) bool { return d.Busy+d.Idle == 8 })
	t.Logf("the whole machine again after %v", time.Since(asked).Round(time.Millisecond))
	cancel()
	apps.Wait()
	for _, name := range []string{"a", "other"} {
		r.until(name, "empty", func(d *api.PoolDetail) bool { return d.Executors == 0 && d.Applications == 0 })
	}
}
