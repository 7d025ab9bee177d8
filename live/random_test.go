package live

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
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
	can     cluster.Capabilities
	beyond  int // orders that it cannot carry out
}

type box struct {
	grant resource.Vector
	kill  chan struct{}
	once  sync.Once
	// memory and engine hold it still; told is what was last reported of that.
	memory, engine, told cluster.Holders
	until                timeline.Time // when leveling ends its hold
	// pageOut says that its memory is to be out, of which out has left.
	pageOut bool
	out     resource.Amount
	// was is the grant before the last resize, zero if there was none, and why its reason.
	was     resource.Vector
	why     cluster.Reason
	byPhase bool
	// throttle is what was carried out last; orders are those of each field that have not been carried out.
	throttle cluster.Decision
	orders   [cluster.NumWantFields][]cluster.Order
}

// session is the machine as one driver sees it.
type session struct {
	*machine
	events chan cluster.Event
	// hears is how many orders arrive before the others get lost, because the driver is about to be killed: a gang can be
	// started in part. Negative: all arrive.
	hears int
}

func newMachine(random *rand.Rand) *machine {
	m := &machine{random: random, running: map[cluster.ContainerID]*box{},
		over: map[cluster.ContainerID]cluster.Event{}, starts: map[cluster.ContainerID]int{}}
	// unruly would throttle again and again, at the same moment, what cannot be throttled.
	for _, lack := range []*string{&m.can.Suspend, &m.can.PageOut, &m.can.Resize} {
		if random.IntN(6) == 0 {
			*lack = "the kernel is too old"
		}
	}
	return m
}

// connect begins a session with an inventory.
func (m *machine) connect() *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &session{machine: m, events: make(chan cluster.Event, 100_000), hears: -1}
	node := cluster.Node{Name: "n1", Capacity: resource.Of(4000, resource.GiB)}
	s.events <- cluster.Event{Kind: cluster.NodeJoined, NewNode: &node}
	for id, b := range m.running {
		if holds := b.orders[cluster.WantHold]; len(holds) > 0 && m.random.IntN(2) == 0 {
			b.carriesOut(cluster.WantHold, &holds[len(holds)-1].Decision, false) // it was recorded
		}
		b.orders, b.told = [cluster.NumWantFields][]cluster.Order{}, b.heldBy()
		e := cluster.Event{Kind: cluster.TaskAdopted, Task: id.Task, Run: id.Run, Grant: b.grant, Launched: 1, By: b.told}
		found := cluster.Condition{HeldBy: b.engine, HeldUntil: b.until, PageOut: b.pageOut, Out: b.out, Was: b.was,
			Why: b.why, ByPhase: b.byPhase}
		if b.throttle.At > timeline.Time(time.Now().UnixNano()) {
			found.Bound, found.Until = b.throttle.Bound, b.throttle.At
		}
		e.SetCondition(found)
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

func (s *session) Capabilities() cluster.Capabilities { return s.can }

func (s *session) Input(cluster.ContainerID) (io.ReadWriteCloser, error) {
	return nil, io.ErrClosedPipe
}
func (s *session) Usage(id cluster.ContainerID) (usage.Usage, error) {
	h := fnv.New64()
	fmt.Fprint(h, id)
	return usedMiB([2]int{int(h.Sum64() % 8), 20}, [2]int{1, int(h.Sum64() >> 8 % 900)}), nil
}
func (s *session) Readings() map[cluster.ContainerID]cluster.Reading { return nil }

func (s *session) Apply(orders []cluster.Order) {
	for _, o := range orders {
		s.mu.Lock()
		deaf, b := s.hears == 0, s.running[o.Container]
		if s.can.Lacks(&o.Decision) != "" {
			s.beyond++
		}
		if s.hears > 0 {
			s.hears--
		}
		if !deaf && o.Kind == cluster.Start {
			s.starts[o.Container]++
			b = &box{grant: o.Grant, byPhase: o.ByPhase, kill: make(chan struct{})}
			s.running[o.Container] = b
		}
		s.mu.Unlock()
		switch {
		case deaf || b == nil:
		case o.Kind == cluster.Start:
			go s.machine.run(o, b)
		case o.Kind == cluster.Kill:
			b.once.Do(func() { close(b.kill) })
		default:
			f, _ := o.Kind.Sets()
			s.mu.Lock()
			b.orders[f] = append(b.orders[f], o)
			s.mu.Unlock()
			go s.slow(o.Container, b, f)
		}
	}
}

// carriesOut notes that an order was carried out. If it failed, the container is as before, but not throttled. What a
// container gets whose memory is out is not in memory either.
func (b *box) carriesOut(f cluster.WantField, o *cluster.Decision, failed bool) {
	switch {
	case f == cluster.WantBound && failed:
		b.throttle = cluster.Decision{}
	case failed:
	case f == cluster.WantBound:
		b.throttle = *o
	case f == cluster.WantHold:
		b.engine, b.until, b.pageOut = o.By, o.At, o.PageOut
	case f == cluster.WantSize:
		if b.out > 0 {
			b.out = max(0, b.out+o.Grant[resource.Memory]-b.grant[resource.Memory])
		}
		b.was, b.grant, b.why = b.grant, o.Grant, o.Reason
	}
}

// slow carries out the orders of a field after a while: of several, the last. Of a container that has ended, it may
// answer one all the same.
func (s *session) slow(id cluster.ContainerID, b *box, f cluster.WantField) {
	s.mu.Lock()
	pause := time.Duration(s.random.IntN(2000)) * time.Millisecond
	s.mu.Unlock()
	time.Sleep(pause)
	if s.chance(5) {
		time.Sleep(time.Minute)
	}
	fails, late, first := s.chance(20), s.chance(20), s.chance(50)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine.session != s || s.running[id] != b && !late {
		return // The driver is gone, or the end answers.
	}
	for len(b.orders[f]) > 0 {
		o := b.orders[f][0]
		e := cluster.Event{Kind: cluster.DecisionSuperseded, Task: id.Task, Run: id.Run, Decision: o.ID}
		if b.orders[f] = b.orders[f][1:]; len(b.orders[f]) == 0 {
			if e.Kind = cluster.DecisionDone; fails {
				e.Kind = cluster.DecisionFailed
			}
			if b.carriesOut(f, &o.Decision, fails); first {
				s.tellStillness(id, b)
			}
		}
		s.events <- e
	}
	s.movesMemory(id, b)
	s.tellStillness(id, b)
}

// movesMemory lets memory of a running container leave, or come back, and reports how much. m.mu is held.
func (m *machine) movesMemory(id cluster.ContainerID, b *box) {
	if m.running[id] != b || !b.pageOut && b.out == 0 {
		return
	}
	e := cluster.Event{Kind: cluster.TaskPagedOut, Task: id.Task, Run: id.Run}
	if b.pageOut {
		b.out = max(b.out, resource.Amount(m.random.Int64N(int64(b.grant[resource.Memory])+1)))
		e.SetCondition(cluster.Condition{Out: b.out, Stays: "swap is full"})
	} else {
		free := resource.GiB
		for _, o := range m.running {
			free -= o.grant[resource.Memory] - o.out
		}
		if b.out > free {
			return
		}
		b.out = 0
	}
	m.session.events <- e
}

// heldBy returns who holds a container still: the memory manager does until its memory is back.
func (b *box) heldBy() cluster.Holders {
	if !b.pageOut && b.out > 0 {
		return b.engine | b.memory | cluster.HeldByMemory
	}
	return b.engine | b.memory
}

// tellStillness reports who holds a running container still, if that has changed. m.mu is held.
func (m *machine) tellStillness(id cluster.ContainerID, b *box) {
	now := b.heldBy()
	if now == b.told || m.running[id] != b {
		return
	}
	e := cluster.Event{Kind: cluster.TaskSuspended, Task: id.Task, Run: id.Run, By: now}
	if b.told = now; now == 0 {
		e.Kind = cluster.TaskResumed
	}
	m.session.events <- e
}

// happens lets the memory manager suspend a container or resume it, or reports its phase, which may be impossible.
func (m *machine) happens(id cluster.ContainerID, b *box) {
	if m.chance(40) {
		e := cluster.Event{Kind: cluster.TaskPhase, Task: id.Task, Run: id.Run}
		m.mu.Lock()
		e.Phase = int32(m.random.IntN(3))
		if ago := m.random.IntN(3); ago > 0 {
			since := timeline.Time(time.Now().UnixNano()).Add(-time.Duration(ago) * time.Second)
			e.SetCondition(cluster.Condition{Progress: &cluster.Progress{PhaseSince: since}})
		}
		m.mu.Unlock()
		m.tell(e)
		return
	}
	suspends := m.chance(60)
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.memory = 0; suspends {
		b.memory = cluster.HeldByMemory
	}
	m.tellStillness(id, b)
}

// lives lets the programs of a container run for a time, not counting what the engine has it stand still. ok is false
// if it is to end before. A hold of leveling that the engine does not end, ends by itself.
func (m *machine) lives(id cluster.ContainerID, b *box, length time.Duration) (ok bool) {
	for length > 0 {
		part := min(length, time.Second)
		select {
		case <-time.After(part):
		case <-b.kill:
			return false
		}
		m.mu.Lock()
		if b.engine == 0 && (b.pageOut || b.out == 0) {
			length -= part
		}
		if b.engine&cluster.HeldByLeveling != 0 && b.until.Add(5*time.Second) <= timeline.Time(time.Now().UnixNano()) {
			b.engine, b.until = b.engine&^cluster.HeldByLeveling, 0
			m.tellStillness(id, b)
		}
		if !b.pageOut {
			m.movesMemory(id, b)
			m.tellStillness(id, b)
		}
		m.mu.Unlock()
	}
	return true
}

// press reports now and then that the disk is pressed.
func (m *machine) press() {
	e := cluster.Event{Kind: cluster.NodePressed}
	if m.chance(70) {
		e.SetCondition(cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, 40*resource.MB)})
	}
	m.tell(e)
}

// unruly is a policy that in addition throttles and resizes running tasks, whoever they are, holds them for a while,
// and asks about nodes, which takes some time. It panics if only some of the tasks of a stage that start together
// were started, which stops the driver.
type unruly struct{ policy.Policy }

func (u unruly) Decide(now timeline.Time, p *book.Plan) {
	pending := map[cluster.TaskID]int{} // of the first task of each gang
	gangs := func(do func(id cluster.TaskID, pending int)) {
		for _, j := range p.Jobs {
			for i := range j.Stages {
				if j.Stages[i].Together {
					do(cluster.TaskID{Job: j.ID, Stage: int32(i)}, j.Progress[i].Pending)
				}
			}
		}
	}
	gangs(func(id cluster.TaskID, n int) { pending[id] = n })
	u.Policy.Decide(now, p)
	gangs(func(id cluster.TaskID, n int) {
		if n != pending[id] && n != 0 {
			panic(fmt.Sprintf("of the gang of task %s %d of %d tasks wait after a step", id, n, pending[id]))
		}
	})
	for _, n := range p.Nodes {
		if v := uint64(now) >> 10; v%16 == 0 && len(p.Jobs) > 0 && !n.Gone &&
			(n.Asked == nil || n.Asked.Version != n.Version) {
			p.Ask(n, solving(func(int) cluster.Answer {
				time.Sleep(time.Duration(1+v>>4%3) * time.Second) // at once, it would ask for ever
				return cluster.Answer{Shifts: []cluster.Shift{{From: now, To: now.Add(time.Minute)}}, Value: 3,
					Bound: float64(v >> 6 % 4), Proved: v>>6%4 == 3, States: 1}
			}), cluster.BecauseNodePressure(resource.CPU, 1, 2))
		}
		for _, t := range n.Tasks {
			h := fnv.New64()
			fmt.Fprint(h, now, t.ID)
			switch v := h.Sum64() >> 8; {
			case !t.Running || v>>40%uint64(1+len(n.Tasks)/4) > 0: // more than one order for each answer would never end
			case v%16 == 1:
				p.SuspendUntil(t, now.Add(time.Duration(1+v>>16%9)*time.Second), cluster.TaskID{Job: 99},
					cluster.BecauseNodePressure(resource.CPU, 1, 2))
			case v%32 == 2:
				p.Resume(t, cluster.HeldByLeveling, cluster.BecauseNodePressure(resource.CPU, 1, 2))
			// not much less than it started with: many small tasks would get many orders
			case v%32 == 3 && (t.Resized == nil || t.Resized.Since < now):
				ideal := t.Stage().Ideal
				want := resource.Of(ideal[resource.CPU]-100+resource.Amount(v>>8%1000),
					ideal[resource.Memory]*resource.Amount(2+v>>20%4)/3)
				if t.ByPhase {
					want[resource.Memory] = t.WantedGrant()[resource.Memory]
				}
				want[resource.Memory] = min(want[resource.Memory], t.Grant[resource.Memory]+max(0, n.Unused()[resource.Memory]),
					cmp.Or(t.Stage().MaxMemory, resource.MostMemory))
				p.Resize(t, want.Min(n.Room()), cluster.BecausePhaseDemands(0, want))
			case v%8 == 0:
				bound, until := resource.Vector{}.With(resource.Disk, resource.Amount(v>>8%3)*10*resource.MB),
					now.Add(time.Duration(1+v>>16%9)*time.Second)
				if th, ok := t.Bounded(now); ok && th.Until == until {
					continue // ordered by an earlier step of this moment
				}
				p.Throttle(t, bound, until, cluster.BecauseNodePressure(resource.Disk, 40*resource.MB, 100*resource.MB))
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
		m.tell(cluster.Event{Kind: cluster.DecisionFailed, Task: o.Task, Run: o.Container.Run, Decision: o.ID, Detail: "no",
			Short: m.chance(50)})
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
		outcome = []cluster.Outcome{cluster.Failed, cluster.OutOfMemory, cluster.Lost, cluster.Preempted}[life%4]
	}
	goesOn := true
	for goesOn && m.chance(50) {
		m.happens(o.Container, b)
		goesOn = m.lives(o.Container, b, life/4)
		life -= life / 4
	}
	if !goesOn || !m.lives(o.Container, b, life) {
		outcome = cluster.Killed
	}
	e := cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: o.Container.Run, Outcome: outcome,
		Exit: &cluster.Exit{Started: 1, Ended: 2}}
	m.mu.Lock()
	if o.Envelope.Class == cluster.Flex && (outcome == cluster.OutOfMemory || outcome == cluster.Preempted) {
		e.Exit.Held = o.Envelope.Min + resource.Amount(m.random.Int64N(int64(o.Envelope.Max-o.Envelope.Min)+1))
	}
	delete(m.running, o.Container)
	m.over[o.Container] = e
	m.mu.Unlock()
	m.tell(e)
}

// randomSubmission is a job of one to three stages, of which some start together if the policy accepts that. Of half of
// the jobs, what is reserved is learned.
func randomSubmission(random *rand.Rand, together bool) Submission {
	s := Submission{Job: cluster.Job{Name: "j", MaxAttempts: 1 + random.IntN(3),
		RetryDelay: time.Duration(random.IntN(3)) * time.Second}, Caller: user, Dir: "/"}
	if s.Undecided = random.IntN(2) == 0; s.Undecided {
		s.Job.App = fmt.Sprint("app", random.IntN(3))
	}
	for i := range 1 + random.IntN(3) {
		ideal := resource.Amount(100+random.IntN(800)) * resource.MiB
		stage := cluster.Stage{Tasks: 1 + random.IntN(5), Ideal: resource.Of(500, ideal),
			Duration: time.Duration(random.IntN(20)) * time.Second}
		if i > 0 && random.IntN(3) > 0 {
			stage.Parents = []int{random.IntN(i)}
		}
		stage.Together = together && resource.Amount(stage.Tasks)*ideal <= resource.GiB && random.IntN(2) == 0
		if stage.Args = []string{"true", "{memory}"}; !s.Undecided {
			stage.MinMemory, stage.Elasticity = ideal/4, cluster.Elasticity{Kind: cluster.Step, Factor: 1.5}
		} else {
			stage.Ideal[resource.Memory] *= resource.Amount(random.IntN(2))
			stage.Ideal[resource.CPU] *= resource.Amount(random.IntN(2))
		}
		for range random.IntN(3) {
			stage.Phases = append(stage.Phases, cluster.Phase{Duration: time.Duration(random.IntN(9)) * time.Second,
				Demand: resource.Vector{}.With(resource.Disk, resource.Amount(random.IntN(4))*30*resource.MB)})
		}
		s.Job.Stages = append(s.Job.Stages, stage)
	}
	return s
}

// randomQuotas lets each randomSubmission start, but not all of them at once.
func randomQuotas(random *rand.Rand) *cluster.Quotas {
	limits := cluster.Limits{}
	for k, most := range map[cluster.QuotaKind]int64{
		cluster.QuotaMemory:  int64(resource.GiB) + random.Int64N(int64(resource.GiB)),
		cluster.QuotaCPU:     2500 + random.Int64N(1000),
		cluster.QuotaRunning: 1 + random.Int64N(3),
	} {
		limits[k] = cluster.Quota{Most: most}
	}
	for k := range cluster.QuotaWaiting {
		if random.IntN(2) == 0 {
			delete(limits, k)
		}
	}
	if random.IntN(2) == 0 {
		return &cluster.Quotas{Queues: map[string]cluster.Limits{cluster.DefaultQueue: limits}}
	}
	return ofUsers(limits)
}

var machineSeed = flag.Uint64("machine-seed", 0, "what the machines of TestRandomMachines come from; 0 is the time")

// Whatever the machine does, and however often the driver is restarted, no event and no decision is impossible, no
// container is started twice, and every job ends. The board shows what is, and whoever follows its changes knows what
// it shows.
func TestRandomMachines(t *testing.T) {
	seed := *machineSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./live -run TestRandomMachines -machine-seed %d", seed)
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
	if random.IntN(4) > 0 { // segments of some 8 to 40 kB
		r.keep = &retention.Rule{For: 1000 * time.Hour, Events: resource.Amount(64_000 + random.IntN(256_000))}
	}
	together := false
	start := func() {
		p, err := policy.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		together = p.Traits().Together
		r.startOn(unruly{p}, m.connect())
		m.compare(t, r)
	}
	start()
	var ids []cluster.JobID
	followers := make([]follower, 3)
	for range 60 {
		switch k := random.IntN(10); {
		case k < 3:
			ids = append(ids, r.submit(randomSubmission(random, together)))
		case k < 4 && len(ids) > 0:
			_ = r.Cancel(ctx, user, ids[random.IntN(len(ids))]) // It may have ended.
		case k < 6:
			m.mu.Lock()
			m.session.hears = random.IntN(4) - 1
			m.mu.Unlock()
			ids = append(ids, r.submit(randomSubmission(random, together)))
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(5)) * time.Second)
			start()
		case k < 7:
			m.press()
		case k < 8 && len(ids) > 0:
			pauseOrResume(t, r, random, ids[random.IntN(len(ids))])
		default:
			if random.IntN(4) == 0 {
				r.quotas = randomQuotas(random)
				if err := r.SetQuotas(r.quotas); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
		}
		if s, err := r.Status(ctx); err != nil || s.Trouble != "" && !strings.Contains(s.Trouble, "can start nothing") &&
			!strings.Contains(s.Trouble, "could not be started") {
			t.Fatalf("status %+v %v", s, err)
		}
		r.checkBoard()
		for i := range followers {
			followers[i].follow(t, r.Driver, random)
		}
	}
	r.waitUnpaused(ctx, slices.Clone(ids))
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
	if m.beyond > 0 {
		t.Errorf("%d orders were given that the machine cannot carry out: %+v", m.beyond, m.can)
	}
	r.end()
	logs, err := filepath.Glob(filepath.Join(r.dir, "events", "*"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d jobs, %d containers, %d segments", len(ids), len(m.starts), len(logs))
	slices.SortFunc(logs, func(a, b string) int {
		return cmp.Or(cmp.Compare(filepath.Base(a)[:6], filepath.Base(b)[:6]), len(a)-len(b), cmp.Compare(a, b))
	})
	for i, path := range logs {
		header, log := readLog(t, path)
		if at, ok := replayBy(t, header, log, func(p policy.Policy) policy.Policy { return unruly{p} }); !ok {
			t.Errorf("%s: record %d of %d came out differently", path, at, len(log))
		}
		if open := unanswered(t, log); i == len(logs)-1 && len(open) > 0 {
			t.Errorf("these orders have no answer: %v", open)
		}
	}
}

// pauseOrResume pauses a job or one of its tasks, or resumes it. It may have ended, or be paused already, or not.
func pauseOrResume(t *testing.T, r *rig, random *rand.Rand, id cluster.JobID) {
	var task cluster.TaskID
	if j, err := r.Job(t.Context(), id, false); err == nil && len(j.Tasks) > 0 && random.IntN(2) == 0 {
		task = j.Tasks[random.IntN(len(j.Tasks))].Task
	}
	var err error
	if random.IntN(3) == 0 {
		err = r.Resume(t.Context(), user, id, task)
	} else {
		err = r.Pause(t.Context(), user, id, task, random.IntN(2) == 0)
	}
	var failure *api.Error
	if err != nil && (!errors.As(err, &failure) || failure.Kind != api.Invalid) {
		t.Errorf("job %d, task %s: %v", id, task, err)
	}
}

// waitUnpaused resumes jobs and waits for their end. Where a container could not be resumed, that is repeated.
func (r *rig) waitUnpaused(ctx context.Context, ids []cluster.JobID) {
	r.t.Helper()
	for range 100 {
		for _, id := range ids {
			_ = r.Resume(ctx, user, id, cluster.TaskID{})
		}
		within, cancel := context.WithTimeout(ctx, 10*time.Minute)
		ids = slices.DeleteFunc(ids, func(id cluster.JobID) bool {
			_, err := r.Wait(within, id)
			return err == nil
		})
		if cancel(); len(ids) == 0 {
			return
		}
		for _, id := range ids {
			_ = r.Pause(ctx, user, id, cluster.TaskID{}, false)
		}
	}
	s, _ := r.Status(context.WithoutCancel(ctx))
	r.t.Fatalf("job %+v does not end: %+v", r.job(ids[0]), s)
}

// compare checks that a driver that has just begun knows what holds and what throttles the containers that it found,
// and has ordered what their owners want.
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
			if task.SuspendedBy != b.told {
				t.Errorf("container %s is held still by %q, and the engine says %q", id, b.told, task.SuspendedBy)
			}
			out := b.out
			if out > 0 { // a resize that the engine has decided and that was not carried out
				out = max(0, out+task.Grant[resource.Memory]-b.grant[resource.Memory])
			}
			if task.Out != out {
				t.Errorf("%d bytes of container %s are out, %d with what was decided, and the engine says %d", b.out, id, out,
					task.Out)
			}
			paused := j.paused(id.Task) != nil || j.paused(cluster.TaskID{}) != nil
			if held := task.Hold != nil && task.Hold.By&cluster.HeldByOwner != 0; held != paused && !task.Killing {
				t.Errorf("container %s is paused (%v), and ordered is %+v", id, paused, task.Hold)
			}
			leveled := b.engine&cluster.HeldByLeveling != 0 && b.until > r.now()
			if h, ok := task.HeldUntil(); leveled && task.Hold == nil || ok && task.Hold.Decision == 0 &&
				!task.Hold.Failed && (!leveled || h.Until != b.until) { // one that failed was ordered by this driver
				t.Errorf("container %s is held by leveling (%v) until %v, and ordered is %+v", id, leveled, b.until, task.Hold)
			}
			if z := task.Resized; z != nil && z.Decision == 0 && (z.Was != b.was || z.Why != b.why) ||
				(z == nil || z.Decision == 0) && task.Grant != b.grant || j.find(id).Grant != b.grant {
				t.Errorf("container %s is granted %v after %v, and the engine says %v after %+v, the driver %v", id, b.grant,
					b.was, task.Grant, z, j.find(id).Grant)
			}
			bound := resource.Vector{}
			if b.throttle.At > r.now() {
				bound = b.throttle.Bound
			}
			if th, ok := task.Bounded(r.now()); ok && th.Decision == 0 && th.Most != bound || !ok &&
				bound != (resource.Vector{}) && task.Throttled == nil {
				t.Errorf("container %s is bounded to %v, and the engine says %+v", id, bound, task.Throttled)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// unanswered returns the orders of a log, but kills, without answer whose task has not ended. There is at most one
// answer.
func unanswered(t *testing.T, log []eventlog.Record) map[cluster.DecisionID]cluster.TaskID {
	t.Helper()
	open, answered := map[cluster.DecisionID]cluster.TaskID{}, map[cluster.DecisionID]bool{}
	for i := range log {
		for _, d := range log[i].Decisions {
			switch d.Kind {
			case cluster.Start, cluster.Throttle, cluster.Suspend, cluster.Resume, cluster.Resize:
				open[d.ID], answered[d.ID] = d.Task, false
			}
		}
		for _, e := range log[i].Events {
			if twice, order := answered[e.Decision]; order && answers(e.Kind) {
				if twice {
					t.Errorf("order %d of task %s is answered twice", e.Decision, e.Task)
				}
				answered[e.Decision] = true
				delete(open, e.Decision)
			}
			maps.DeleteFunc(open, func(_ cluster.DecisionID, of cluster.TaskID) bool {
				return e.Kind == cluster.TaskEnded && of == e.Task
			})
		}
	}
	return open
}
