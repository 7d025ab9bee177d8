package pool_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

var (
	poolSeeds = flag.Int("pool-seeds", 20, "how many seeds TestRandomPool runs")
	poolSeed  = flag.Uint64("pool-seed", 0, "the first seed of TestRandomPool; 0 is the time")
)

// Executors that die, are silent, press their machine, or send messages twice, applications that are cancelled, and
// daemons that end and begin again: each application gets exactly one result of each of its tasks, and it is right.
func TestRandomPool(t *testing.T) {
	from := *poolSeed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	for i := range *poolSeeds {
		seed := from + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newStorm(t, seed).run() })
		})
		if t.Failed() {
			t.Fatalf("again: go test ./pool -run TestRandomPool -pool-seeds 1 -pool-seed %d", seed)
		}
	}
}

// storm is a pool with executors and applications to which bad things happen.
type storm struct {
	t   *testing.T
	end context.CancelFunc
	ctx context.Context

	mu     sync.Mutex
	random *rand.Rand
	pool   *pool.Pool
	daemon int // how many pools there have been
	runs   map[string]int
	// drivers are the applications that start their own tasks, by key.
	drivers map[string]*stormDriver
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{t: t, random: rand.New(rand.NewPCG(seed, 0)), runs: map[string]int{}, drivers: map[string]*stormDriver{}}
	s.ctx, s.end = context.WithCancel(t.Context())
	return s
}

// chance is true once in n times.
func (s *storm) chance(n int) bool { return s.upTo(n) == 0 }

// upTo returns a number from 0 to n-1.
func (s *storm) upTo(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// pause waits for a random time below d.
func (s *storm) pause(d time.Duration) { time.Sleep(time.Duration(s.upTo(int(d)))) }

func (s *storm) now() *pool.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pool
}

const (
	stormExecutors    = 4
	stormApplications = 2
	stormDrivers      = 2
)

func (s *storm) run() {
	if s.chance(2) {
		for n := range stormDrivers {
			d := s.newDriver(n)
			s.drivers[d.key] = d
		}
	}
	s.pool = s.begin(0)
	var executors, applications sync.WaitGroup
	for _, d := range s.drivers {
		applications.Go(d.drive)
	}
	for n := range stormExecutors {
		executors.Go(func() {
			for s.ctx.Err() == nil {
				(&stormExecutor{storm: s, number: n}).work()
				s.pause(2 * time.Second)
				if s.chance(2) { // else its lease ends, or it registers again
					_, _ = s.now().Left(s.ctx, n, executor.CauseLost, "")
				}
			}
		})
	}
	for n := range stormApplications {
		applications.Go(func() { s.application(n) })
	}
	executors.Go(func() {
		for s.ctx.Err() == nil && s.daemon < 4 {
			s.pause(20 * time.Second)
			s.restart()
		}
	})
	executors.Go(func() {
		for s.ctx.Err() == nil {
			s.pause(10 * time.Second)
			some := map[int]bool{}
			for n := range stormExecutors {
				some[n] = s.chance(2)
			}
			_ = s.now().Pressed(s.ctx, resource.Vector{}.With(resource.Disk, resource.Amount(s.upTo(3))*resource.MB), some)
		}
	})
	applications.Wait()
	v, err := s.now().View(s.ctx)
	if err != nil || v.Broken != "" {
		s.t.Errorf("the pool is %+v, %v", v, err)
	}
	if n := s.now().Nodes(s.ctx); n > stormExecutors {
		s.t.Errorf("the engine knows %d nodes: those of executors that have left are not used again", n)
	}
	s.end()
	executors.Wait()
}

// begin begins a pool, whose policy is mira, or another that answers pressure, unless applications start their own
// tasks.
func (s *storm) begin(expected int) *pool.Pool {
	name, settings := "mira", map[string]string(nil)
	if len(s.drivers) == 0 && s.chance(2) {
		name, settings = "prophet", map[string]string{"prophet.relief": "share"}
	} else if s.chance(2) {
		settings = map[string]string{"mira.keep": "2s"}
	}
	divides, err := policy.New(name, settings)
	if err != nil {
		s.t.Fatal(err)
	}
	return start(s.t, func(c *pool.Config) {
		c.Policy, c.Expected, c.Lease, c.Poll = divides, expected, 10*time.Second, 3*time.Second
		c.Machine = resource.Vector{}.With(resource.Disk, 10*resource.MB)
	})
}

// restart ends the pool and begins another.
func (s *storm) restart() {
	if s.ctx.Err() != nil {
		return
	}
	next := s.begin(stormExecutors)
	s.mu.Lock()
	s.pool = next
	s.daemon++
	s.mu.Unlock()
}

// stormExecutor is an executor that may die at any time.
type stormExecutor struct {
	*storm
	number  int
	lease   string
	pool    *pool.Pool // with which it has registered
	running *executor.Held
	done    *executor.Report
	result  []byte
	serves  executor.Work // the attachment that it serves; its number is 0 if there is none
	asked   bool          // the executor knows that this is to end
	keeps   []string
}

// work runs tasks until the executor dies.
func (e *stormExecutor) work() {
	for e.ctx.Err() == nil && !e.chance(40) {
		if e.pool != e.now() || e.lease == "" {
			e.pool = e.now()
			lease, err := e.pool.Register(e.ctx, executor.Registration{Executor: e.number, Secret: "secret", Attaches: true,
				Running: e.running})
			if err != nil {
				e.pause(time.Second)
				continue
			}
			e.lease = lease.Lease
		}
		work, arguments, err := e.pool.Next(e.ctx, e.number,
			executor.Next{Lease: e.lease, Done: e.done, Attached: e.serves.Work, Released: e.asked,
				Keeps: slices.Clone(e.keeps)}, e.result)
		if err == nil && e.chance(10) {
			continue // The answer is lost.
		}
		switch {
		case errors.Is(err, pool.ErrGone):
			e.lease, e.done, e.result = "", nil, nil // What it has run is lost.
			if e.serves.Work == 0 {
				e.running = nil
			}
			continue
		case err != nil:
			e.pause(100 * time.Millisecond)
			continue
		}
		e.done, e.result = nil, nil
		if e.serves.Work == 0 {
			e.running = nil
		}
		switch work.Do {
		case executor.DoRelease:
			e.asked = true
		case executor.DoForget:
			e.keeps = slices.DeleteFunc(e.keeps, func(key string) bool { return key == work.Task.Key })
		case executor.DoAttach, executor.DoPark, executor.DoRun:
			e.serves, e.running, e.asked = executor.Work{}, nil, false
		}
		if work.Do == executor.DoAttach {
			if string(arguments) != work.Task.Key {
				e.t.Errorf("executor %d is attached to %s with %q", e.number, work.Task.Key, arguments)
			}
			e.serves, e.running = work, &work.Task
			if !slices.Contains(e.keeps, work.Task.Key) {
				e.keeps = append(e.keeps, work.Task.Key)
			}
		}
		if e.serves.Work != 0 {
			if !e.attach(e.serves) {
				return
			}
			if e.chance(5) { // It ends the attachment itself, or fails.
				e.done = &executor.Report{Work: e.serves.Work, Failed: e.chance(2), Error: "no route",
					Cause: []executor.Cause{"", executor.CauseUnreachable, executor.CauseRefused, "nonsense"}[e.upTo(4)]}
				e.serves, e.running, e.asked = executor.Work{}, nil, false
			}
			continue
		}
		if work.Do != executor.DoRun {
			continue
		}
		e.running = &work.Task
		e.mu.Lock()
		e.runs[fmt.Sprint(work.Task.Key, work.Task.Stage, work.Task.Task)]++
		e.mu.Unlock()
		if !e.compute(work) {
			return
		}
		sum := sha256.Sum256(arguments)
		e.result = sum[:]
		e.done = &executor.Report{Work: work.Work, Size: len(e.result)}
	}
}

// compute takes the time of a task, with beats. It reports whether the executor survives.
func (e *stormExecutor) compute(work executor.Work) bool {
	for range e.upTo(4) {
		e.pause(3 * time.Second)
		if e.chance(30) {
			return false
		}
		if e.pool == e.now() && !e.chance(5) {
			_, _ = e.pool.Beat(e.ctx, e.number, executor.Beat{Lease: e.lease, Work: work.Work})
		}
	}
	return e.ctx.Err() == nil
}

// application runs one application, which grows while it runs, until it has all results.
func (s *storm) application(n int) {
	key := fmt.Sprintf("application-%d-of-a-storm", n)
	arguments := make([][]byte, 30+s.upTo(30))
	for i := range arguments {
		arguments[i] = bytes.Repeat([]byte{byte(n), byte(i)}, s.upTo(100))
	}
	got := make([]bool, len(arguments))
	for s.ctx.Err() == nil {
		p := s.now()
		lease, err := p.Enrol(s.ctx, executor.Enrolment{Key: key, Attempts: 1000}, nil)
		if err == nil && s.submit(p, lease, arguments, got) && !slices.Contains(got, false) {
			return
		}
		s.pause(time.Second)
	}
}

// submit submits what has no result, and collects results until the application has ended or the pool does not answer
// any more.
func (s *storm) submit(p *pool.Pool, lease executor.Lease, arguments [][]byte, got []bool) (ended bool) {
	after, growth, next := int64(0), int64(0), 0
	for {
		if next < len(arguments) {
			n := min(1+s.upTo(20), len(arguments)-next)
			stage := executor.StageGrowth{Function: "f"}
			if growth > 0 {
				stage.Function = ""
			}
			var payload []byte
			for i := next; i < next+n; i++ {
				if got[i] && growth == 0 {
					stage.Sizes = append(stage.Sizes, -1)
					continue
				}
				stage.Sizes = append(stage.Sizes, len(arguments[i]))
				payload = append(payload, arguments[i]...)
			}
			g := executor.Growth{Lease: lease.Lease, Number: growth + 1, Stages: []executor.StageGrowth{stage},
				Closed: next+n == len(arguments)}
			for range 1 + s.upTo(2) { // perhaps twice
				if _, err := p.Grow(s.ctx, lease.Application, g, payload); err != nil {
					return false
				}
			}
			growth++
			next += n
		}
		if p != s.now() {
			return false
		}
		out, payloads, err := p.Collect(s.ctx, lease.Application, executor.Collect{Lease: lease.Lease, After: after})
		if err != nil {
			return false
		}
		if s.chance(10) {
			continue // The answer is lost.
		}
		for i, r := range out.Results {
			after = r.Number
			sum := sha256.Sum256(arguments[r.Task])
			switch {
			case r.Failed:
				s.t.Errorf("task %d failed: %s", r.Task, r.Error)
			case !bytes.Equal(payloads[2*i], sum[:]):
				s.t.Errorf("task %d: the result is %x, want %x", r.Task, payloads[2*i], sum)
			case got[r.Task] && r.Run == 0:
				s.t.Errorf("task %d: a result without a run", r.Task)
			}
			got[r.Task] = true
		}
		if out.Ended {
			return true
		}
	}
}
