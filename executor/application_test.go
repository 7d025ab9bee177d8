package executor_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

var (
	applicationSeeds = flag.Int("application-seeds", 50, "how many seeds TestApplicationOnBadDays runs")
	applicationSeed  = flag.Uint64("application-seed", 0, "the first seed of TestApplicationOnBadDays; 0 is the time")
)

// day is a pool, executors, and the way of the messages of applications to it, in the time of a synctest bubble.
type day struct {
	t        *testing.T
	room     int64
	loses    int // one of so many messages is lost, and one of so many answers, and one of so many comes twice; 0 none
	run      func(task executor.Held, arguments []byte)
	mu       sync.Mutex
	random   *rand.Rand
	pool     *pool.Pool
	handler  http.Handler
	mostHeld int64
	all      sync.WaitGroup // of its goroutines
}

func newDay(t *testing.T, seed uint64) *day {
	d := &day{t: t, random: rand.New(rand.NewPCG(seed, 0)), run: func(executor.Held, []byte) {}}
	t.Cleanup(func() { d.now().Close() })
	return d
}

// begin begins a pool, after ending the one that was there.
func (d *day) begin() {
	mira, err := policy.New("mira", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	p := pool.Start(pool.Config{Name: "p", Policy: mira, Room: d.room, Lease: 10 * time.Second, Grace: time.Second,
		Poll: 5 * time.Second, Verify: func(int, string) bool {
			return true
		}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	d.mu.Lock()
	old := d.pool
	d.pool, d.handler = p, p.Handler()
	d.mu.Unlock()
	if old != nil {
		old.Close()
	}
}

func (d *day) now() *pool.Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pool
}

func (d *day) upTo(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// RoundTrip implements http.RoundTripper.
func (d *day) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if len(body) > pool.MostMessage {
		d.t.Errorf("a message has %d bytes", len(body))
	}
	once := func() *http.Response {
		w := httptest.NewRecorder()
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		d.mu.Lock()
		h := d.handler
		d.mu.Unlock()
		h.ServeHTTP(w, again)
		d.look(w)
		return w.Result()
	}
	if d.loses > 0 {
		switch d.upTo(d.loses) {
		case 0:
			return nil, errors.New("the message is lost")
		case 1:
			once()
			return nil, errors.New("the answer is lost")
		case 2:
			once() // and again
		}
	}
	return once(), nil
}

// look notes how much the pool holds of an application.
func (d *day) look(w *httptest.ResponseRecorder) {
	var room executor.Room
	if _, err := executor.Decode(w.Body.Bytes(), &room); err != nil || w.Code != http.StatusOK {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mostHeld = max(d.mostHeld, room.Held)
}

// executors begins executors, which convert arguments to upper case, until ctx ends.
func (d *day) executors(ctx context.Context, n int) {
	for number := range n {
		d.all.Go(func() {
			for ctx.Err() == nil {
				p := d.now()
				lease, err := p.Register(ctx, executor.Registration{Executor: number})
				var done *executor.Report
				var result []byte
				for err == nil {
					var work executor.Work
					var arguments []byte
					if work, arguments, err = p.Next(ctx, number, executor.Next{Lease: lease.Lease, Done: done}, result); err != nil {
						break
					}
					done, result = nil, nil
					if work.Do == executor.DoRun {
						d.run(work.Task, arguments)
						result = bytes.ToUpper(arguments)
						done = &executor.Report{Work: work.Work, Size: len(result), Failed: bytes.HasPrefix(arguments, []byte("fail")),
							Error: "it was requested"}
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
}

// enrol begins an application.
func (d *day) enrol(ctx context.Context, key string) *executor.Application {
	d.t.Helper()
	a, err := executor.Enrol(ctx, executor.ApplicationConfig{HTTP: &http.Client{Transport: d}, Base: "http://bellows",
		Enrolment: executor.Enrolment{Key: key, Attempts: 1000}})
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// all collects everything: the results by stage and task.
func all(t testing.TB, a *executor.Application, given func(executor.Outcome)) (results map[[2]int]executor.Outcome,
	end error) {
	t.Helper()
	results = map[[2]int]executor.Outcome{}
	for {
		outcomes, err := a.Collect(t.Context())
		if err != nil {
			return results, err
		}
		for _, o := range outcomes {
			if _, twice := results[[2]int{o.Stage, o.Task}]; twice {
				t.Errorf("task %d of stage %d has two results", o.Task, o.Stage)
			}
			results[[2]int{o.Stage, o.Task}] = o
			if given != nil {
				given(o)
			}
		}
	}
}

// An application grows stage by stage, and each of its tasks has one result.
func TestApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDay(t, 1)
		d.begin()
		ctx, end := context.WithCancel(t.Context())
		defer d.all.Wait()
		defer end()
		d.executors(ctx, 2)
		a := d.enrol(ctx, "")
		first := a.NewStage(executor.Stage{Function: "f"})
		if err := a.Grow(ctx, first, []byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		second := a.NewStage(executor.Stage{Function: "f", After: []int{first}})
		if err := a.Grow(ctx, first, []byte("x")); err == nil || !strings.Contains(err.Error(), "no more tasks") {
			t.Errorf("a stage with one after it grew: %v", err)
		}
		if err := a.Grow(ctx, second, []byte("c")); err != nil {
			t.Fatal(err)
		}
		if err := a.Grow(ctx, second, []byte("d"), make([]byte, executor.MostArguments+1)); err == nil ||
			!strings.Contains(err.Error(), "at most") {
			t.Errorf("arguments that are too large: %v", err)
		}
		a.Close()
		results, err := all(t, a, nil)
		if err != io.EOF || len(results) != 3 || string(results[[2]int{0, 1}].Payload) != "B" ||
			string(results[[2]int{1, 0}].Payload) != "C" {
			t.Errorf("got %v, %v", results, err)
		}
		if v, err := d.pool.View(ctx); err != nil || v.Applications[0].State != "ended" || v.Applications[0].Results != 0 {
			t.Errorf("the pool knows %+v, %v", v.Applications, err)
		}
		if _, err := a.Collect(ctx); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
	})
}

// What an application has in the daemon never exceeds the room, unless a single task does.
func TestApplicationRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDay(t, 2)
		d.room = 3 << 20
		d.begin()
		ctx, end := context.WithCancel(t.Context())
		defer d.all.Wait()
		defer end()
		d.run = func(executor.Held, []byte) { time.Sleep(time.Second) }
		d.executors(ctx, 2)
		a := d.enrol(ctx, "")
		s := a.NewStage(executor.Stage{Function: "f"})
		go func() {
			for i := range 60 {
				if err := a.Grow(ctx, s, bytes.Repeat([]byte{byte(i)}, 200_000)); err != nil {
					t.Error(err)
				}
			}
			a.Close()
		}()
		time.Sleep(5 * time.Minute) // It keeps its lease, though it collects nothing.
		results, err := all(t, a, nil)
		if err != io.EOF || len(results) != 60 || d.mostHeld > d.room {
			t.Errorf("%d results, %v, at most %d bytes were held", len(results), err, d.mostHeld)
		}
		if v, err := d.pool.View(ctx); err != nil || v.Counters.Abandoned != 0 {
			t.Errorf("the pool is %+v, %v", v, err)
		}
		large := d.enrol(ctx, "")
		s = large.NewStage(executor.Stage{Function: "f"})
		go func() {
			if err := large.Grow(ctx, s, make([]byte, 20<<20), []byte("a"), make([]byte, 5<<20)); err != nil {
				t.Error(err)
			}
			large.Close()
		}()
		if results, err := all(t, large, nil); err != io.EOF || len(results) != 3 ||
			len(results[[2]int{0, 0}].Payload) != 20<<20 {
			t.Errorf("%d results, %v", len(results), err)
		}
	})
}

// An application that is cancelled ends, and so does one whose stage failed that another needs.
func TestApplicationCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDay(t, 3)
		d.begin()
		ctx, end := context.WithCancel(t.Context())
		defer d.all.Wait()
		defer end()
		a := d.enrol(ctx, "")
		s := a.NewStage(executor.Stage{Function: "f"})
		if err := a.Grow(ctx, s, []byte("a")); err != nil {
			t.Fatal(err)
		}
		if err := a.Cancel(ctx, "it is late"); err != nil {
			t.Fatal(err)
		}
		cancelled := new(executor.CancelledError)
		if _, err := a.Collect(ctx); !errors.As(err, &cancelled) || cancelled.Why != "it is late" {
			t.Errorf("got %v", err)
		}
		if err := a.Grow(ctx, s, []byte("a")); !errors.As(err, &cancelled) {
			t.Errorf("it grew: %v", err)
		}
		if v, err := d.pool.View(ctx); err != nil || v.Applications[0].State != "cancelled" ||
			v.Applications[0].Why != "it is late" {
			t.Errorf("the pool knows %+v, %v", v.Applications, err)
		}
		d.executors(ctx, 1)
		a = d.enrol(ctx, "")
		s = a.NewStage(executor.Stage{Function: "f"})
		if err := a.Grow(ctx, s, []byte("ok"), []byte("fail")); err != nil {
			t.Fatal(err)
		}
		if err := a.Grow(ctx, a.NewStage(executor.Stage{Function: "f", After: []int{s}}), []byte("b")); err != nil {
			t.Fatal(err)
		}
		a.Close()
		results, err := all(t, a, nil)
		if len(results) != 2 || !results[[2]int{0, 1}].Failed || !errors.As(err, &cancelled) ||
			!strings.Contains(cancelled.Why, "another stage needs it") {
			t.Errorf("got %v of %v", err, results)
		}
	})
}

// Messages and answers are lost, or come twice, daemons end, and leases too, at random moments: each task has one
// result, it is right, and no task runs again that had its result before the daemon began.
func TestApplicationOnBadDays(t *testing.T) {
	from := *applicationSeed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	for i := range *applicationSeeds {
		seed := from + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { badDay(t, seed) }) })
		if t.Failed() {
			t.Fatalf("again: go test ./executor -run TestApplicationOnBadDays -application-seeds 1 -application-seed %d", seed)
		}
	}
}

func badDay(t *testing.T, seed uint64) {
	d := newDay(t, seed)
	d.loses, d.room = 8, 1<<20
	ctx, end := context.WithCancel(t.Context())
	defer d.all.Wait()
	defer end()
	var mu sync.Mutex
	has, before := map[int]bool{}, map[int]bool{} // the tasks with results: now, and when the daemon began
	d.run = func(task executor.Held, _ []byte) {
		mu.Lock()
		if task.Stage == 0 && before[task.Task] {
			t.Errorf("task %d runs again, and has its result", task.Task)
		}
		mu.Unlock()
		time.Sleep(time.Duration(d.upTo(int(3 * time.Second))))
	}
	d.begin()
	d.executors(ctx, 3)
	const key = "application-of-a-bad-day"
	a := d.enrol(ctx, key)
	d.all.Go(func() { // the daemon ends, or the lease
		for i := 0; ctx.Err() == nil && i < 6; i++ {
			time.Sleep(time.Duration(d.upTo(int(20 * time.Second))))
			if d.upTo(2) == 0 {
				_, _ = d.now().Enrol(ctx, executor.Enrolment{Key: key}, nil)
				continue
			}
			mu.Lock()
			for n := range has {
				before[n] = true
			}
			mu.Unlock()
			d.begin()
		}
	})
	const tasks = 100
	arguments := func(i int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("task %d, ", i)), 1+i*i%9_000) }
	s := a.NewStage(executor.Stage{Function: "f"})
	go func() {
		for i := 0; i < tasks; {
			n := min(1+d.upTo(10), tasks-i)
			var some [][]byte
			for k := range n {
				some = append(some, arguments(i+k))
			}
			if err := a.Grow(ctx, s, some...); err != nil {
				t.Error(err)
				return
			}
			i += n
		}
		if err := a.Grow(ctx, a.NewStage(executor.Stage{Function: "f", After: []int{s}}), []byte("last")); err != nil {
			t.Error(err)
		}
		a.Close()
	}()
	results, err := all(t, a, func(o executor.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		if o.Stage == 0 {
			has[o.Task] = true
		}
	})
	if err != io.EOF || len(results) != tasks+1 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i := range tasks {
		if o := results[[2]int{0, i}]; o.Failed || o.Run < 1 || !bytes.Equal(o.Payload, bytes.ToUpper(arguments(i))) {
			t.Errorf("task %d: got %+v", i, o.Result)
		}
	}
}

// A message that fails after a long time is sent again: how long the daemon is away counts from when that is known,
// not from when the message was sent, whose answer may have been slow to come.
func TestSlowFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDay(t, 1)
		d.begin()
		slow := true
		_, err := executor.Enrol(t.Context(), executor.ApplicationConfig{Base: "http://bellows",
			HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if slow {
					slow = false
					time.Sleep(time.Hour)
					return nil, errors.New("the connection is lost")
				}
				return d.RoundTrip(r)
			})}})
		if err != nil {
			t.Error(err)
		}
	})
}

// roundTripper is a way of messages.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Over a socket, with real executors.
func TestApplicationOverSocket(t *testing.T) {
	s := serve(t)
	s.executor(0)
	a, err := executor.Enrol(t.Context(), executor.ApplicationConfig{Socket: s.socket, Pool: "p"})
	if err != nil {
		t.Fatal(err)
	}
	stage := a.NewStage(executor.Stage{Function: "print"})
	if err := a.Grow(t.Context(), stage, nil, nil); err != nil {
		t.Fatal(err)
	}
	s.end()
	s.begin(1)
	a.Close()
	results, err := all(t, a, nil)
	if err != io.EOF || len(results) != 2 || string(results[[2]int{0, 1}].Printed) != "printed\nby a child\n" {
		t.Errorf("got %v, %v", results, err)
	}
}

// closedDoor is a connection to a socket that is not open to this user.
type closedDoor struct{ tried int }

func (c *closedDoor) RoundTrip(*http.Request) (*http.Response, error) {
	c.tried++
	return nil, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}
}

// A socket that is not open to the user does not become so by waiting.
func TestSocketIsNotOpen(t *testing.T) {
	var c closedDoor
	if _, err := executor.Enrol(t.Context(), executor.ApplicationConfig{HTTP: &http.Client{Transport: &c},
		Base: "http://bellows"}); !errors.Is(err, fs.ErrPermission) || c.tried != 1 {
		t.Errorf("after %d attempts: %v", c.tried, err)
	}
}
