package memory

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// kernel is a model of a node: programs with working sets that come and go, limits that the manager sets, and swap that
// takes what does not fit. It holds the manager to what must always be true.
type kernel struct {
	t        testing.TB
	manager  *Manager
	p        Parameters
	memory   resource.Amount
	swap     resource.Amount
	rate     resource.Amount // of swap, bytes per second
	now      timeline.Time
	programs []*program
	orders   []order // actions under way
	log      []string
	kills    int
	done     int
	limits   resource.Amount // together after the last step
	faults   *faults
	changed  timeline.Time // when the node's memory last did
}

// faults are what goes wrong until a given time.
type faults struct {
	r          *rand.Rand
	until      timeline.Time
	fail       float64 // share of actions that the kernel refuses
	silent     float64 // share whose outcome is never told, done or not
	restart    float64 // share of steps after which the manager is lost
	end        float64 // share of steps in which a program just ends
	resize     float64 // share of steps in which the node's memory changes
	from, most resource.Amount
}

func (k *kernel) happens(share func(*faults) float64) bool {
	return k.faults != nil && k.now < k.faults.until && k.faults.r.Float64() < share(k.faults)
}

// program is what runs in a container.
type program struct {
	Envelope
	sets      []resource.Amount // working set in each tenth of its life
	work      time.Duration     // CPU time it needs with enough memory
	arrives   timeline.Time
	state     string // "", asked, running, done, killed
	progress  time.Duration
	limit     resource.Amount
	held      resource.Amount // anonymous memory and swap together
	traffic   int64
	stopped   bool
	lastTurn  timeline.Time
	everTurn  bool
	stoppedAt timeline.Time
}

type order struct {
	Action
	program *program
	done    timeline.Time
	fail    bool
	silent  bool
}

func (p *program) set() resource.Amount {
	return p.sets[min(len(p.sets)-1, int(p.progress*time.Duration(len(p.sets))/p.work))]
}

func (p *program) swapped() resource.Amount { return max(0, p.held-p.limit) }

var seeds = flag.Uint64("seeds", 150, "how many random nodes of every kind to play")

const tick = 50 * time.Millisecond

// run plays until all programs are done or the time is up.
func (k *kernel) run(limit time.Duration) {
	end := k.now.Add(limit)
	for k.now < end && k.done < len(k.programs) {
		k.step()
		k.now = k.now.Add(tick)
	}
}

func (k *kernel) step() {
	var in Input
	k.goWrong(&in)
	in.Node = &NodeReading{Memory: k.memory, SwapFree: k.swap - k.swapUsed()}
	k.finishOrders(&in)
	for _, p := range k.programs {
		switch {
		case (p.state == "" || p.state == "refused") && k.now >= p.arrives:
			p.state = "asked"
			in.Requests = append(in.Requests, Request{p.Envelope})
		case p.state == "running":
			k.work(p, &in)
		}
	}
	for _, a := range k.manager.Step(k.now, in) {
		k.carryOut(a)
	}
	if next := k.manager.Next(); next <= k.now {
		k.fail("the next step is to be at %v", time.Duration(next))
	}
	k.check()
}

// goWrong lets happen what can.
func (k *kernel) goWrong(in *Input) {
	if k.happens(func(f *faults) float64 { return f.restart }) {
		k.restart(in)
	}
	if k.happens(func(f *faults) float64 { return f.resize }) {
		k.memory, k.changed = k.faults.from+resource.Amount(k.faults.r.Int64N(int64(k.faults.most-k.faults.from))), k.now
	} else if k.faults != nil && k.now >= k.faults.until && k.memory != k.faults.most {
		k.memory, k.changed = k.faults.most, k.now
	}
	if k.happens(func(f *faults) float64 { return f.end }) {
		if p := k.programs[k.faults.r.IntN(len(k.programs))]; p.state == "running" {
			k.log = append(k.log, fmt.Sprintf("%v %v ends", time.Duration(k.now), p.Container))
			k.end(p, "done", in)
		}
	}
}

// restart replaces the manager by one that knows only what the kernel shows.
func (k *kernel) restart(in *Input) {
	k.log = append(k.log, fmt.Sprintf("%v restart", time.Duration(k.now)))
	orders := k.orders
	k.orders = nil
	for _, o := range orders {
		if o.Kind == Kill || k.faults.r.IntN(2) == 0 { // who is told to end does, whoever told it
			k.apply(&o, in)
		}
	}
	var err error
	if k.manager, err = New(k.p); err != nil {
		k.t.Fatal(err)
	}
	in.Ended = nil
	for _, p := range k.programs {
		switch p.state {
		case "asked":
			p.state = "refused"
		case "running":
			in.Started = append(in.Started, Started{Envelope: p.Envelope, Limit: p.limit, Suspended: p.stopped})
		}
	}
}

func (k *kernel) swapUsed() resource.Amount {
	var a resource.Amount
	for _, p := range k.programs {
		if p.state == "running" {
			a += p.swapped()
		}
	}
	return a
}

// work lets a program run for one tick: it needs its working set, at the speed of swap if that does not fit.
func (k *kernel) work(p *program, in *Input) {
	r := Reading{Container: p.Container, Anonymous: min(p.held, p.limit), Swap: p.swapped(), SwapTraffic: p.traffic}
	if !p.stopped {
		before := p.swapped()
		p.held = p.set()
		missing := max(0, p.held-p.limit)
		if missing > 0 || before > 0 {
			p.traffic += int64(max(missing, before)/10 + 1)
		}
		speed := 1.0
		if missing > 0 {
			speed = 0.02
		}
		p.progress += time.Duration(speed * float64(tick))
		r = Reading{Container: p.Container, Anonymous: min(p.held, p.limit), Swap: p.swapped(), SwapTraffic: p.traffic}
		if p.progress >= p.work {
			k.end(p, "done", in)
			return
		}
	}
	in.Readings = append(in.Readings, r)
}

func (k *kernel) end(p *program, how string, in *Input) {
	p.state, p.held = how, 0
	k.done++
	in.Ended = append(in.Ended, p.Container)
}

func (k *kernel) finishOrders(in *Input) {
	orders := k.orders
	k.orders = nil
	for _, o := range orders {
		if o.done > k.now {
			k.orders = append(k.orders, o)
			continue
		}
		if o.program.state != "running" || o.program.Container != o.Container {
			continue // it ended meanwhile
		}
		k.apply(&o, in)
		if !o.silent && o.Kind != Kill {
			in.Outcomes = append(in.Outcomes, Outcome{Action: o.ID, Limit: o.program.limit, Failed: o.fail})
		}
	}
}

// apply does what was ordered.
func (k *kernel) apply(o *order, in *Input) {
	p := o.program
	if o.fail {
		return
	}
	switch o.Kind {
	case Grow:
		p.limit = o.Limit
	case Shrink:
		p.limit = min(p.limit, o.Limit)
	case Kill:
		if !k.p.KillSparingly {
			k.end(p, "moved", in) // the paper expects it to be launched on another node
			return
		}
		p.state, p.held, p.progress, p.limit = "", 0, 0, 0
		p.arrives = k.now.Add(time.Second)
		in.Ended = append(in.Ended, p.Container)
		p.Container.Run++
	}
}

func (k *kernel) carryOut(a Action) {
	p := k.program(a.Container)
	k.log = append(k.log, fmt.Sprintf("%v %v %v %d limit %d %+v", time.Duration(k.now), a.Kind, a.Container, p.limit, a.Limit, a.Reason))
	if p.Class != cluster.Flex && a.Kind != Admit && a.Kind != Refuse {
		k.fail("%v of a REGULAR container", a.Kind)
	}
	o := order{Action: a, program: p, fail: k.happens(func(f *faults) float64 { return f.fail }),
		silent: k.happens(func(f *faults) float64 { return f.silent })}
	takes := time.Millisecond
	switch a.Kind {
	case Admit:
		p.state, p.limit, p.stopped, p.everTurn = "running", p.Min, false, false
		return
	case Refuse:
		p.state, p.arrives = "refused", k.now.Add(time.Second)
		return
	case Grow, Shrink:
		if a.Limit < p.Min || a.Limit > p.Max {
			k.fail("limit %d: must be %d to %d", a.Limit, p.Min, p.Max)
		}
		if a.Kind == Shrink {
			takes += time.Duration(float64(max(0, p.held-p.swapped()-a.Limit)) / float64(k.rate) * 1e9)
		}
		if a.Kind == Shrink {
			k.turn(p, a.Suspended)
		}
	case Suspend, Resume, Breathe:
		if !o.fail {
			k.turn(p, a.Kind != Resume)
		}
	case Kill:
		k.kills++
		k.checkKill(a)
	}
	o.done = k.now.Add(takes)
	k.orders = append(k.orders, o)
}

// checkKill holds that nothing is killed for another that fits beside the least memory of all: swap would have done.
func (k *kernel) checkKill(a Action) {
	if !k.p.KillSparingly || k.faults != nil {
		return
	}
	if a.Reason.Code != Exhausted {
		k.fail("killed for %+v", a.Reason)
	}
	var need resource.Amount
	for _, p := range k.programs {
		switch {
		case p.state != "running":
		case int64(p.Rank) == a.Reason.A:
			need += p.held + p.held/10
		default:
			need += p.Min
		}
	}
	if need <= k.memory {
		k.fail("killed although %d of %d would have done", need, k.memory)
	}
}

// turn stops or resumes a program. It may not be turned back within Settle, unless others need its memory.
func (k *kernel) turn(p *program, stop bool) {
	if p.stopped == stop {
		return
	}
	if p.everTurn && k.now.Sub(p.lastTurn) < k.p.Settle && !stop {
		k.fail("resumed after %v", k.now.Sub(p.lastTurn))
	}
	p.stopped, p.lastTurn, p.everTurn = stop, k.now, true
	if stop {
		p.stoppedAt = k.now
	}
}

func (k *kernel) program(id cluster.ContainerID) *program {
	for _, p := range k.programs {
		if p.Container == id {
			return p
		}
	}
	k.t.Fatalf("action for unknown container %v", id)
	return nil
}

// check holds after every step.
func (k *kernel) check() {
	var limits resource.Amount
	for _, p := range k.programs {
		if p.state == "running" {
			limits += p.limit
		}
	}
	if limits > k.memory && k.now.Sub(k.changed) > 0 && limits > k.limits {
		k.fail("limits add up to %d of %d", limits, k.memory)
	}
	k.limits = limits
	if k.p.TakeTurns || k.faults != nil {
		return
	}
	for _, p := range k.programs {
		may := k.manager.tolerance(&container{Envelope: p.Envelope})
		if long := k.now.Sub(p.stoppedAt); p.state == "running" && p.stopped && may > 0 && long > may+time.Second {
			k.fail("%v is suspended for %v, and may be for %v", p.Container, long, may)
		}
	}
	if used := k.swapUsed(); used > k.swap {
		k.fail("swap used %d of %d", used, k.swap)
	}
}

func (k *kernel) fail(format string, operands ...any) {
	k.t.Helper()
	for _, l := range k.log[max(0, len(k.log)-30):] {
		k.t.Log(l)
	}
	k.t.Fatalf("at %v: "+format, append([]any{time.Duration(k.now)}, operands...)...)
}

// randomKernel is a node with programs of all sorts.
func randomKernel(t testing.TB, r *rand.Rand, p Parameters) *kernel {
	m, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{t: t, manager: m, p: p, memory: 64 << 20, swap: 1 << 30, rate: 100 << 20}
	for i := range 1 + r.IntN(8) {
		id := cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(i + 1)}, Run: 1}
		work := time.Duration(1+r.IntN(20)) * time.Second
		pr := &program{Envelope: Envelope{Container: id, Rank: i, Class: cluster.Regular, Min: resource.Amount(1+r.IntN(16)) << 20},
			work: work, arrives: timeline.Time(r.IntN(20)) * timeline.Time(time.Second)}
		pr.Max = pr.Min
		pr.sets = []resource.Amount{pr.Min}
		if r.IntN(3) > 0 {
			pr.Class, pr.Min, pr.Max = cluster.Flex, resource.Amount(1+r.IntN(4))<<20, k.memory
			if r.IntN(4) == 0 {
				pr.Max = pr.Min + resource.Amount(r.IntN(int(k.memory-pr.Min)))
			}
			pr.sets = nil
			for range 10 {
				pr.sets = append(pr.sets, resource.Amount(1+r.IntN(int(k.memory)>>20))<<20)
			}
			if r.IntN(2) == 0 {
				pr.HeartbeatTimeout = 10 * time.Second
			}
			if r.IntN(2) == 0 {
				pr.Duration = work/2 + time.Duration(r.Int64N(int64(work)))
			}
		}
		k.programs = append(k.programs, pr)
	}
	return k
}

// finish plays until all programs are done, and says why if they are not.
func (k *kernel) finish(seed uint64) {
	k.t.Helper()
	k.run(3 * time.Hour)
	if k.done < len(k.programs) {
		for _, pr := range k.programs {
			k.t.Logf("%v %s %v: %v of %v, holds %d, limit %d, stopped %v, duration %v, sets %v", pr.Container, pr.state, pr.Class, pr.progress, pr.work, pr.held, pr.limit, pr.stopped, pr.Duration, pr.sets)
		}
		k.fail("seed %d: %d of %d programs are done", seed, k.done, len(k.programs))
	}
}

func TestRandomNodes(t *testing.T) {
	all := Variants()
	all["default"] = Default()
	all["default, shortest first"] = Default()
	for name, p := range all {
		if strings.HasPrefix(name, "default,") {
			p.Order = ShortestFirst
		}
		t.Run(name, func(t *testing.T) {
			kills := 0
			for seed := range *seeds {
				k := randomKernel(t, rand.New(rand.NewPCG(seed, 7)), p)
				k.finish(seed)
				kills += k.kills
			}
			t.Logf("%d kills", kills)
		})
	}
}

// TestRandomFaults lets actions fail or never be answered, programs end in the middle of an action, the node's memory change
// and the manager be lost, for the first minutes.
func TestRandomFaults(t *testing.T) {
	for name, p := range map[string]Parameters{"default": Default(), "paper": Paper(), "sjf": Variants()["sjf"]} {
		t.Run(name, func(t *testing.T) {
			p.ActionTimeout = 10 * time.Second
			for seed := range *seeds {
				r := rand.New(rand.NewPCG(seed, 8))
				k := randomKernel(t, r, p)
				some := func(most float64) float64 { return most * float64(r.IntN(3)) / 2 }
				k.faults = &faults{r: r, until: k.now.Add(3 * time.Minute), fail: some(0.4), silent: some(0.2), restart: some(0.01),
					end: some(0.002), resize: some(0.01), from: k.memory * 3 / 4, most: k.memory}
				k.finish(seed)
			}
		})
	}
}
