package live

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/eventlog"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/usage"
)

// machine is a machine that does everything that it may do to a driver: it fails to start containers, reports events
// twice, late or not at all, and keeps running without a driver.
type machine struct {
	mu      sync.Mutex
	random  *rand.Rand
	running map[cluster.ContainerID]*box
	over    map[cluster.ContainerID]cluster.Event // ended, not forgotten
	session *session
	starts  map[cluster.ContainerID]int
}

type box struct {
	grant resource.Vector
	kill  chan struct{}
	once  sync.Once
	still cluster.Holder
	// throttle is what was carried out last, orders are the throttles after it.
	throttle cluster.Decision
	orders   []cluster.Order
}

// session is the machine as one driver sees it.
type session struct {
	*machine
	events chan cluster.Event
	deaf   bool // orders get lost: the driver is about to be killed
}

func newMachine(random *rand.Rand) *machine {
	return &machine{random: random, running: map[cluster.ContainerID]*box{}, over: map[cluster.ContainerID]cluster.Event{}, starts: map[cluster.ContainerID]int{}}
}

// connect begins a session with an inventory.
func (m *machine) connect() *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &session{machine: m, events: make(chan cluster.Event, 100_000)}
	node := cluster.Node{Name: "n1", Capacity: resource.Of(4000, resource.GiB)}
	s.events <- cluster.Event{Kind: cluster.NodeJoined, NewNode: &node}
	for id, b := range m.running {
		e := cluster.Event{Kind: cluster.TaskAdopted, Task: id.Task, Run: id.Run, Grant: b.grant, Launched: 1, By: b.still}
		if b.orders = nil; b.throttle.At > timeline.Time(time.Now().UnixNano()) {
			e.SetCondition(cluster.Condition{Bound: b.throttle.Bound, Until: b.throttle.At})
		}
		s.events <- e
	}
	for _, e := range m.over {
		s.events <- e
	}
	s.events <- cluster.Event{Kind: cluster.Synced}
	m.session = s
	return s
}

func (m *machine) chance(percent int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(100) < percent
}

func (m *machine) tell(e cluster.Event) {
	twice := m.chance(5)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session.events <- e
	if twice {
		m.session.events <- e
	}
}

func (s *session) Events() <-chan cluster.Event { return s.events }

func (s *session) Forget(id cluster.ContainerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.over, id)
}

func (s *session) Input(cluster.ContainerID) (io.ReadWriteCloser, error) {
	return nil, io.ErrClosedPipe
}
func (s *session) Usage(cluster.ContainerID) (usage.Usage, error) {
	return usage.Usage{Spans: []usage.Span{{Length: time.Second, Used: usage.Amounts{usage.CPU: 500}, Known: usage.SetOf(usage.CPU)}}}, nil
}
func (s *session) Readings() map[cluster.ContainerID]cluster.Reading { return nil }

func (s *session) Apply(orders []cluster.Order) {
	for _, o := range orders {
		s.mu.Lock()
		deaf, b := s.deaf, s.running[o.Container]
		if !deaf && o.Kind == cluster.Start {
			s.starts[o.Container]++
			b = &box{grant: o.Grant, kill: make(chan struct{})}
			s.running[o.Container] = b
		}
		s.mu.Unlock()
		switch {
		case deaf || b == nil:
		case o.Kind == cluster.Start:
			go s.machine.run(o, b)
		case o.Kind == cluster.Throttle:
			s.mu.Lock()
			b.orders = append(b.orders, o)
			s.mu.Unlock()
			go s.slow(o.Container, b)
		default:
			b.once.Do(func() { close(b.kill) })
		}
	}
}

// slow carries out the throttles of a container after a while: of several, the last.
func (s *session) slow(id cluster.ContainerID, b *box) {
	s.mu.Lock()
	pause := time.Duration(s.random.IntN(2000)) * time.Millisecond
	s.mu.Unlock()
	time.Sleep(pause)
	if s.chance(5) {
		time.Sleep(time.Minute)
	}
	fails := s.chance(20)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine.session != s || s.running[id] != b {
		return // The driver is gone, or the end answers.
	}
	for len(b.orders) > 0 {
		o := b.orders[0]
		e := cluster.Event{Kind: cluster.DecisionSuperseded, Task: id.Task, Run: id.Run, Decision: o.ID}
		if b.orders = b.orders[1:]; len(b.orders) == 0 {
			e.Kind, b.throttle = cluster.DecisionDone, o.Decision
			if fails {
				e.Kind, b.throttle = cluster.DecisionFailed, cluster.Decision{}
			}
		}
		s.events <- e
	}
}

// press reports now and then that the disk is pressed.
func (m *machine) press() {
	e := cluster.Event{Kind: cluster.NodePressed}
	if m.chance(70) {
		e.SetCondition(cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, 40*resource.MB)})
	}
	m.tell(e)
}

// unruly is a policy that besides throttles running tasks, whoever they are.
type unruly struct{ policy.Policy }

func (u unruly) Decide(now timeline.Time, p *cluster.Plan) {
	u.Policy.Decide(now, p)
	for _, n := range p.Nodes {
		for _, t := range n.Tasks {
			h := fnv.New64()
			fmt.Fprint(h, now, t.ID)
			if v := h.Sum64() >> 8; t.Running && v%8 == 0 {
				bound := resource.Vector{}.With(resource.Disk, resource.Amount(v>>8%3)*10*resource.MB)
				p.Throttle(t, bound, now.Add(time.Duration(1+v>>16%9)*time.Second), cluster.BecauseNodePressure(resource.Disk, 40*resource.MB, 100*resource.MB))
			}
		}
	}
}

// run simulates the life of a container.
func (m *machine) run(o cluster.Order, b *box) {
	if m.chance(8) {
		m.mu.Lock()
		delete(m.running, o.Container)
		m.mu.Unlock()
		m.tell(cluster.Event{Kind: cluster.DecisionFailed, Task: o.Task, Run: o.Container.Run, Decision: o.ID, Detail: "no", Short: m.chance(50)})
		return
	}
	if !m.chance(5) {
		m.tell(cluster.Event{Kind: cluster.DecisionDone, Task: o.Task, Run: o.Container.Run, Decision: o.ID, Launched: 1})
	}
	m.mu.Lock()
	life := time.Duration(m.random.IntN(20_000)) * time.Millisecond
	m.mu.Unlock()
	outcome := cluster.Succeeded
	if m.chance(10) {
		outcome = []cluster.Outcome{cluster.Failed, cluster.OutOfMemory, cluster.Lost}[life%3]
	}
	for m.chance(30) { // it stands still or goes on, or has done that before
		e := cluster.Event{Kind: cluster.TaskGoesOn, Task: o.Task, Run: o.Container.Run}
		if m.chance(60) {
			e.Kind, e.By = cluster.TaskStill, cluster.HeldByMemory
		}
		m.mu.Lock()
		b.still = e.By
		m.mu.Unlock()
		m.tell(e)
		select {
		case <-time.After(life / 4):
		case <-b.kill:
		}
		life -= life / 4
	}
	select {
	case <-time.After(life):
	case <-b.kill:
		outcome = cluster.Killed
	}
	e := cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: o.Container.Run, Outcome: outcome, Exit: &cluster.Exit{Started: 1, Ended: 2}}
	m.mu.Lock()
	delete(m.running, o.Container)
	m.over[o.Container] = e
	m.mu.Unlock()
	m.tell(e)
}

// randomSubmission is a job of one to three stages.
func randomSubmission(random *rand.Rand) Submission {
	s := Submission{Job: cluster.Job{Name: "j", MaxAttempts: 1 + random.IntN(3)}, Caller: user, Dir: "/"}
	for i := range 1 + random.IntN(3) {
		ideal := resource.Amount(100+random.IntN(800)) * resource.MiB
		stage := cluster.Stage{Tasks: 1 + random.IntN(5), Ideal: resource.Of(500, ideal), MinMemory: ideal / 4,
			Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 1.5}, Duration: time.Duration(random.IntN(20)) * time.Second}
		if i > 0 && random.IntN(3) > 0 {
			stage.Parents = []int{random.IntN(i)}
		}
		stage.Args = []string{"true", "{memory}"}
		for range random.IntN(3) {
			stage.Phases = append(stage.Phases, cluster.Phase{Duration: time.Duration(random.IntN(9)) * time.Second,
				Demand: resource.Vector{}.With(resource.Disk, resource.Amount(random.IntN(4))*30*resource.MB)})
		}
		s.Job.Stages = append(s.Job.Stages, stage)
	}
	return s
}

// Whatever the machine does, and however often the driver is restarted, no event and no decision is impossible, no
// container is started twice, and every job ends.
func TestRandomMachines(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for n := range 15 {
		name := policy.Names()[n%len(policy.Names())]
		t.Run(fmt.Sprintf("%d-%s", n, name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomMachine(t, name, rand.New(rand.NewPCG(seed, uint64(n)))) })
		})
	}
}

func randomMachine(t *testing.T, name string, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
	defer cancel()
	m := newMachine(rand.New(rand.NewPCG(random.Uint64(), 0)))
	r := newRig(t, fifo(t))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	start := func() {
		p, err := policy.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.startOn(unruly{p}, m.connect())
		m.compare(t, r)
	}
	start()
	var ids []cluster.JobID
	for range 60 {
		switch k := random.IntN(10); {
		case k < 3:
			ids = append(ids, r.submit(randomSubmission(random)))
		case k < 4 && len(ids) > 0:
			_ = r.Cancel(ctx, user, ids[random.IntN(len(ids))]) // It may have ended.
		case k < 6:
			m.mu.Lock()
			m.session.deaf = random.IntN(2) == 0
			m.mu.Unlock()
			ids = append(ids, r.submit(randomSubmission(random)))
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(5)) * time.Second)
			start()
		case k < 7:
			m.press()
		default:
			time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
		}
		if s, err := r.Status(ctx); err != nil || s.Trouble != "" && !strings.Contains(s.Trouble, "can start nothing") {
			t.Fatalf("status %+v %v", s, err)
		}
	}
	for _, id := range ids {
		if j, err := r.Wait(ctx, id); err != nil {
			s, _ := r.Status(context.WithoutCancel(ctx))
			t.Fatalf("job %+v: %v; %+v", j, err, s)
		}
	}
	time.Sleep(2 * time.Minute) // for throttles of containers that have ended
	synctest.Wait()
	for id, n := range m.starts {
		if n != 1 {
			t.Errorf("container %s was started %d times", id, n)
		}
	}
	if len(m.running) > 0 || len(m.over) > 0 {
		t.Errorf("left: %d run, %d are not forgotten", len(m.running), len(m.over))
	}
	r.end()
	t.Logf("%d jobs, %d containers", len(ids), len(m.starts))
	logs, err := filepath.Glob(filepath.Join(r.dir, "events", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range logs {
		header, log := readLog(t, path)
		if at, ok := replayBy(t, header, log, func(p policy.Policy) policy.Policy { return unruly{p} }); !ok {
			t.Errorf("%s: record %d of %d came out differently", path, at, len(log))
		}
		if throttles := unanswered(t, log); i == len(logs)-1 && len(throttles) > 0 {
			t.Errorf("these throttles have no answer: %v", throttles)
		}
	}
}

// compare checks that a driver that has just begun knows what holds and what throttles the containers that it found.
func (m *machine) compare(t *testing.T, r *rig) {
	t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.do(t.Context(), func() {
		for id, b := range m.running {
			j, ok := r.jobs[id.Task.Job]
			if !ok || j.find(id) == nil {
				continue
			}
			task := r.running(j, j.find(id))
			if task == nil {
				continue
			}
			if task.StillBy != b.still {
				t.Errorf("container %s is held still by %q, and the engine says %q", id, b.still, task.StillBy)
			}
			bound := resource.Vector{}
			if b.throttle.At > r.now() {
				bound = b.throttle.Bound
			}
			if th, ok := task.Bounded(r.now()); ok && th.Decision == 0 && th.Bound != bound || !ok && bound != (resource.Vector{}) && task.Throttled == nil {
				t.Errorf("container %s is bounded to %v, and the engine says %+v", id, bound, task.Throttled)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// unanswered returns the throttles of a log without answer whose task has not ended. There is at most one answer.
func unanswered(t *testing.T, log []eventlog.Record) map[cluster.DecisionID]cluster.TaskID {
	t.Helper()
	open, answered := map[cluster.DecisionID]cluster.TaskID{}, map[cluster.DecisionID]bool{}
	for i := range log {
		for _, d := range log[i].Decisions {
			if d.Kind == cluster.Throttle {
				open[d.ID], answered[d.ID] = d.Task, false
			}
		}
		for _, e := range log[i].Events {
			if twice, throttle := answered[e.Decision]; throttle && answers(e.Kind) {
				if twice {
					t.Errorf("throttle %d of task %s is answered twice", e.Decision, e.Task)
				}
				answered[e.Decision] = true
				delete(open, e.Decision)
			}
			maps.DeleteFunc(open, func(_ cluster.DecisionID, of cluster.TaskID) bool { return e.Kind == cluster.TaskEnded && of == e.Task })
		}
	}
	return open
}
