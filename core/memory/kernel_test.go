package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// kernel is a model of a node: programs with working sets that grow and shrink, limits that the manager sets, and a
// swap device for the memory above the limits. All reads from and writes to swap share the device. The model checks
// that the manager keeps its invariants.
type kernel struct {
	t        testing.TB
	manager  *Manager
	books    *books
	p        Parameters
	memory   resource.Amount
	swap     resource.Amount
	rate     resource.Amount // of the swap device, bytes per second, in and out together
	now      timeline.Time
	programs []*program
	byID     map[cluster.ContainerID]*program
	orders   []*order // actions under way
	log      []string
	kills    int
	moved    resource.Amount // total read from and written to swap
	done     int
	limits   resource.Amount // sum after the last step
	faults   *faults
	changed  timeline.Time // when the node's memory last changed
	shuffle  *rand.Rand    // shuffles the readings; nil keeps their order
	tick     time.Duration // how often containers are read
	name     string        // of the run, a seed for example
	again    bool          // a killed program is started again here; otherwise elsewhere
	budget   resource.Amount
	after    func()                                          // called after each step; may be nil
	seen     func(a *Action, p *program) (fail, silent bool) // called for each action; may be nil
	onKill   func(p *program)                                // the kernel kills p; nil: it must not kill
}

// faults are the failures that occur until a given time.
type faults struct {
	r          *rand.Rand
	until      timeline.Time
	fail       float64 // share of actions that the kernel refuses
	silent     float64 // share of actions whose outcome is never reported, done or not
	restart    float64 // share of steps after which the manager is lost
	end        float64 // share of steps in which a program ends early
	resize     float64 // share of steps in which the node's memory changes
	from, most resource.Amount
}

func (k *kernel) happens(share func(*faults) float64) bool {
	return k.faults != nil && k.now < k.faults.until && k.faults.r.Float64() < share(k.faults)
}

// program is what runs in a container.
type program struct {
	Envelope
	sets      []resource.Amount // working set at equal steps of its life, interpolated between them
	work      time.Duration     // run time with enough memory
	pass      time.Duration     // work in which it touches all of its working set once
	arrives   timeline.Time
	submitted timeline.Time // when it first arrived
	ended     timeline.Time
	state     string // "", asked, refused, running, done, moved
	progress  time.Duration
	limit     resource.Amount
	held      resource.Amount // anonymous memory and swap together
	resident  resource.Amount // the part of held in memory
	traffic   int64
	pressed   bool // since the last reading
	stopped   bool
	giving    bool // an action keeps it suspended
	lastTurn  timeline.Time
	everTurn  bool
	stoppedAt timeline.Time
	waited    time.Duration // total time suspended
	after     *program      // this program makes no progress before after has ended
	lock      *wait         // nil: it waits for no other program
	pipe      *pipe         // nil: it neither writes to nor reads from a pipe
	sleeps    *nap          // nil: it never sleeps
	locked    bool          // nothing of it can be swapped
	worked    time.Duration // time spent computing
	kills     int           // by the manager
}

// wait makes a program stop at a point of its work until another program reaches a point or ends, as for a lock held by
// the other.
type wait struct {
	at, until time.Duration
	of        *program
}

// pipe couples two programs from a point of their work on: the reader cannot overtake the writer, and the writer can be
// ahead of the reader only by what the pipe holds.
type pipe struct {
	other   *program
	from    time.Duration
	holds   time.Duration
	written bool // by this one
}

// nap makes a program sleep at a point of its work.
type nap struct {
	at, long time.Duration
	until    timeline.Time
}

// waiting reports whether p can make no progress, however much memory it has.
func (k *kernel) waiting(p *program) bool {
	if p.after != nil && p.after.state != "done" {
		return true
	}
	if l := p.lock; l != nil && p.progress >= l.at && l.of.state != "done" && l.of.progress < l.until {
		return true
	}
	if s := p.sleeps; s != nil && p.progress >= s.at {
		if s.until == 0 {
			s.until = k.now.Add(s.long)
		}
		return k.now < s.until
	}
	if q := p.pipe; q != nil && p.progress >= q.from && q.other.state != "done" {
		other := max(0, q.other.progress-q.other.pipe.from)
		if q.written {
			other += q.holds
		}
		return p.progress-q.from >= other
	}
	return false
}

// order is an action under way.
type order struct {
	Action
	program *program
	fail    bool
	partly  bool // it stops at another limit
	silent  bool
}

// setAt is the working set after the given work.
func (p *program) setAt(progress time.Duration) resource.Amount {
	if len(p.sets) == 1 || progress >= p.work {
		return p.sets[len(p.sets)-1]
	}
	at := float64(progress) / float64(p.work) * float64(len(p.sets)-1)
	i := int(at)
	return p.sets[i] + resource.Amount((at-float64(i))*float64(p.sets[i+1]-p.sets[i]))
}

func (p *program) peak() resource.Amount {
	peak := p.sets[0]
	for _, s := range p.sets {
		peak = max(peak, s)
	}
	return peak
}

func (p *program) swapped() resource.Amount { return p.held - p.resident }

// run runs the node until all programs have ended or the time is up.
func (k *kernel) run(limit time.Duration) {
	end := k.now.Add(limit)
	for k.now < end && k.done < len(k.programs) {
		k.step()
		k.now = k.now.Add(k.tick)
	}
}

func (k *kernel) step() { k.stepWith(k.goWrong) }

func (k *kernel) stepWith(happen func(in *Input)) {
	var in Input
	happen(&in)
	for _, p := range k.programs {
		if (p.state == "" || p.state == "refused") && k.now >= p.arrives {
			p.state = "asked"
			in.Requests = append(in.Requests, Request{p.Envelope})
		}
	}
	k.work(&in)
	k.finishOrders(&in)
	in.Node = &NodeReading{Memory: k.memory, SwapFree: min(k.budget, k.swap-k.swapUsed()),
		SwapFull: k.swap-k.swapUsed() < SwapReserve(k.memory)}
	for _, p := range k.programs {
		if p.state == "running" {
			r := Reading{Container: p.Container, Anonymous: p.resident, Swap: p.swapped(), SwapTraffic: p.traffic,
				Pressed: p.pressed, Worked: time.Millisecond + p.worked}
			if p.locked {
				r.Locked = p.resident
			}
			in.Readings = append(in.Readings, r)
			p.pressed = false
		}
	}
	if k.shuffle != nil {
		k.shuffle.Shuffle(len(in.Readings), func(i, j int) {
			in.Readings[i], in.Readings[j] = in.Readings[j], in.Readings[i]
		})
	}
	actions := k.manager.Step(k.now, in)
	k.audit(&in, actions)
	for _, a := range actions {
		k.carryOut(a)
	}
	if next := k.manager.Next(); next <= k.now {
		k.fail("the next step is to be at %v", time.Duration(next))
	}
	k.check()
}

// goWrong injects the failures of this step.
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
			k.note("%v ends", p.Container)
			k.end(p, "done", in)
		}
	}
}

// restart replaces the manager by a new one that knows only what the kernel shows.
func (k *kernel) restart(in *Input) {
	k.note("restart")
	orders := k.orders
	k.orders = nil
	for _, p := range k.programs {
		p.giving = false
	}
	for _, o := range orders {
		// A program that was ordered to end ends, even if the manager that ordered it is gone.
		if o.program.state == "running" && (o.Kind == Kill || o.Kind == End || k.faults == nil || k.faults.r.IntN(2) == 0) {
			k.apply(o, in)
		}
	}
	in.Comebacks = k.manager.Comebacks()
	var err error
	if k.manager, err = New(k.p); err != nil {
		k.t.Fatal(err)
	}
	in.Ended, k.books = nil, newBooks()
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

// work lets programs run for one tick. The device serves the programs and the orders in progress; each gets the same
// share of what it requests.
func (k *kernel) work(in *Input) {
	most := resource.Amount(float64(k.rate) * k.tick.Seconds())
	var wanted resource.Amount
	for _, o := range k.orders {
		if o.program.Container == o.Container {
			wanted += min(most, o.wants())
		}
	}
	for _, p := range k.programs {
		if p.runs() {
			wanted += min(most, p.move(k.tick).traffic())
		}
	}
	share := 1.0
	if wanted > most {
		share = float64(most) / float64(wanted)
	}
	for _, o := range k.orders {
		if o.program.Container == o.Container {
			moved := min(o.wants(), 1+resource.Amount(share*float64(min(most, o.wants()))))
			if room := max(0, k.swap-k.swapUsed()); o.Kind == Shrink && moved > room {
				moved, o.Limit = room, o.program.resident-room // the order ends there
				o.fail, o.partly = true, true
			}
			o.transfer(moved)
			k.moved += moved
		}
	}
	for _, p := range k.programs {
		if p.state == "running" {
			if p.stopped {
				p.waited += k.tick
			}
		}
		if p.runs() {
			k.runFor(p, share, most, in)
		}
	}
}

func (p *program) runs() bool { return p.state == "running" && !p.stopped && !p.giving }

// movement is a program's traffic between memory and swap in some time at full speed.
type movement struct {
	held    resource.Amount // afterwards
	in, out resource.Amount // pages read and written
}

func (m movement) traffic() resource.Amount { return m.in + m.out }

// move returns what p does in the given work: it allocates the growth of its working set and touches all of the set
// once per pass. Touched pages in swap are read in; if there is no room for them, as many pages are written out.
func (p *program) move(work time.Duration) movement {
	m := movement{held: p.setAt(p.progress + work)}
	swapped := p.swapped()
	if m.held < p.held && p.held > 0 {
		swapped = resource.Amount(float64(swapped) * float64(m.held) / float64(p.held))
	}
	touched := float64(work) / float64(p.pass)
	m.in = resource.Amount(float64(swapped) * touched)
	if p.limit-(m.held-swapped) >= swapped {
		m.in = min(m.in, swapped)
	}
	resident := m.held - swapped + m.in
	m.out = max(0, resident-p.limit)
	return m
}

// runFor lets p run for a tick, or for the part of it that the device allows.
func (k *kernel) runFor(p *program, share float64, most resource.Amount, in *Input) {
	if k.waiting(p) {
		return
	}
	done := k.tick
	if wants := p.move(k.tick).traffic(); wants > 0 {
		done = time.Duration(float64(k.tick) * share * min(1, float64(most)/float64(wants)))
	}
	m := p.move(max(done, time.Microsecond))
	swapped := p.swapped()
	if m.held < p.held && p.held > 0 {
		swapped = resource.Amount(float64(swapped) * float64(m.held) / float64(p.held))
	}
	swapped = max(0, swapped-m.in+m.out)
	if p.locked && m.out > 0 || k.swapUsed()-p.swapped()+swapped > k.swap {
		k.killed(p, in)
		return
	}
	p.held, p.resident = m.held, m.held-swapped
	if p.resident > p.limit {
		p.resident = p.limit
	}
	p.traffic += int64(m.traffic())
	k.moved += m.traffic()
	p.pressed = p.pressed || m.out > 0
	p.worked += done
	if p.progress += max(done, time.Microsecond); p.progress >= p.work {
		k.end(p, "done", in)
	}
}

// wants is what an order still has to move between memory and swap.
func (o *order) wants() resource.Amount {
	p := o.program
	switch {
	case o.fail && !o.partly:
		return 0
	case o.Kind == Shrink:
		return max(0, p.resident-o.Limit)
	case o.Kind == Grow && o.Suspended && p.held <= p.limit:
		return p.swapped() // it is read in before its programs run
	}
	return 0
}

func (o *order) transfer(moved resource.Amount) {
	if o.Kind == Shrink {
		moved = -moved
	}
	o.program.resident += moved
	o.program.traffic += int64(max(moved, -moved))
}

func (k *kernel) end(p *program, how string, in *Input) {
	p.state, p.held, p.resident, p.ended = how, 0, 0, k.now
	k.done++
	in.Ended = append(in.Ended, p.Container)
}

// killed ends a program that lacks memory and gets none from swap.
func (k *kernel) killed(p *program, in *Input) {
	if k.onKill == nil {
		k.fail("the kernel kills %v, which holds %d of %d, with %d of %d in swap", p.Container, p.held, p.limit,
			k.swapUsed(), k.swap)
	}
	k.onKill(p)
	k.end(p, "killed", in)
}

func (k *kernel) finishOrders(in *Input) {
	orders := k.orders
	k.orders = nil
	for _, o := range orders {
		if o.program.state != "running" || o.program.Container != o.Container {
			continue // it has ended in the meantime
		}
		if o.wants() > 0 {
			k.orders = append(k.orders, o)
			continue
		}
		o.program.giving = false
		k.apply(o, in)
		if !o.silent && o.Kind != Kill && o.Kind != End {
			in.Outcomes = append(in.Outcomes, Outcome{Action: o.ID, Limit: o.program.limit, Failed: o.fail})
		}
	}
}

// apply carries out an order.
func (k *kernel) apply(o *order, in *Input) {
	p := o.program
	if o.fail && !o.partly {
		return
	}
	switch o.Kind {
	case Grow:
		p.limit = o.Limit
	case Shrink:
		p.limit = min(p.limit, max(o.Limit, p.resident))
	case End:
		k.end(p, "ended", in)
	case Kill:
		if !k.again {
			k.end(p, "moved", in) // the paper expects it to be launched on another node
			return
		}
		in.Ended = append(in.Ended, p.Container)
		p.state, p.held, p.resident, p.progress, p.limit = "", 0, 0, 0, 0
		p.arrives = k.now.Add(time.Second)
		delete(k.byID, p.Container)
		p.Container.Run++
		k.byID[p.Container] = p
	}
}

func (k *kernel) carryOut(a Action) {
	p := k.byID[a.Container]
	if p == nil {
		k.t.Fatalf("action for unknown container %v", a.Container)
	}
	if a.Kind != Refuse || k.swap > 0 {
		k.note("%v %v limit %d to %d of %d, holds %d+%d: %s", a.Kind,
			a.Container, p.limit, a.Limit, k.memory, p.resident, p.swapped(), a.Reason.Words())
	}
	if p.Class != cluster.Flex && a.Kind != Admit && a.Kind != Refuse {
		k.fail("%v of a REGULAR container", a.Kind)
	}
	asked := a.Limit
	fail, silent := k.happens(func(f *faults) float64 { return f.fail }),
		k.happens(func(f *faults) float64 { return f.silent })
	if k.seen != nil {
		fail, silent = k.seen(&a, p)
	}
	o := &order{Action: a, program: p, fail: fail, partly: fail && a.Limit != asked, silent: silent}
	switch a.Kind {
	case Admit:
		p.state, p.limit, p.stopped, p.everTurn = "running", max(p.Min, a.Limit), false, false
		return
	case Refuse:
		p.state, p.arrives = "refused", k.now.Add(time.Second)
		return
	case Grow, Shrink:
		if a.Limit < p.Min && !(a.Suspended && k.p.Squeeze > 0 && p.HeartbeatTimeout == 0) || a.Limit > p.Max {
			k.fail("limit %d: must be %d to %d", a.Limit, p.Min, p.Max)
		}
		if a.Kind == Shrink {
			k.turn(p, a.Suspended)
			if p.giving = o.wants() > 0; !p.giving && !o.fail {
				p.limit = min(p.limit, a.Limit)
			}
		} else if !o.fail && a.Limit > p.limit {
			p.limit = a.Limit
		}
	case Suspend, Resume, Breathe:
		if !o.fail {
			k.turn(p, a.Kind != Resume)
		}
	case Kill:
		k.kills++
		p.kills++
		k.checkKill(a)
	}
	k.orders = append(k.orders, o)
}

// checkKill checks that no program is killed for another one that fits together with the minimum memory of all:
// swapping would do.
func (k *kernel) checkKill(a Action) {
	if dry := k.swap-k.swapUsed() < SwapReserve(k.memory); dry && k.p.Strategy == InOrder {
		if !k.byID[a.Container].Requeue {
			k.fail("%v is requeued, and must not be", a.Container)
		}
		return
	}
	if k.p.Strategy != InOrder || k.faults != nil || k.budget < k.swap || k.swap-k.swapUsed() < k.swap/2 {
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

// turn suspends or resumes a program. A suspended program must not be resumed within Settle.
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

// audit checks the books: the rooms that the manager counts cover every limit that may come into force, and no more as
// long as the kernel answers.
func (k *kernel) audit(in *Input, actions []Action) {
	if err := audit(k.manager, actions); err != nil {
		k.fail("%v", err)
	}
	k.books.follow(in, actions, func(id cluster.ContainerID) resource.Amount { return k.byID[id].Min })
	if rooms, allocated := k.books.rooms(), k.manager.Allocated(); rooms > allocated || rooms < allocated &&
		k.faults == nil {
		k.fail("rooms add up to %d, and %d are allocated", rooms, allocated)
	}
}

// check runs after every step.
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
	if k.after != nil {
		k.after()
	}
	if used := k.swapUsed(); used > k.swap {
		k.fail("swap used %d of %d", used, k.swap)
	}
	if k.p.Strategy == InOrder || k.faults != nil {
		return
	}
	for _, p := range k.programs {
		may := k.manager.tolerance(&container{Envelope: p.Envelope})
		if long := k.now.Sub(p.stoppedAt); p.state == "running" && p.stopped && may > 0 && long > may+time.Second {
			k.fail("%v is suspended for %v, and may be for %v", p.Container, long, may)
		}
	}
}

// note keeps a log for failures.
func (k *kernel) note(format string, operands ...any) {
	const kept = 40
	if len(k.log) == 2*kept {
		k.log = append(k.log[:0], k.log[kept:]...)
	}
	k.log = append(k.log, fmt.Sprintf("%v ", time.Duration(k.now))+fmt.Sprintf(format, operands...))
}

func (k *kernel) fail(format string, operands ...any) {
	k.t.Helper()
	for _, l := range k.log {
		k.t.Log(l)
	}
	k.t.Fatalf("%s at %v: "+format, append([]any{k.name, time.Duration(k.now)}, operands...)...)
}

// newKernel is a node without programs.
func newKernel(t testing.TB, p Parameters, memory, swap, rate resource.Amount) *kernel {
	m, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return &kernel{t: t, manager: m, p: p, memory: memory, swap: swap, rate: rate, budget: swap,
		tick: 50 * time.Millisecond, books: newBooks(), again: p.Strategy == InOrder,
		byID: map[cluster.ContainerID]*program{}}
}

// add adds a program to the node.
func (k *kernel) add(p *program) {
	p.submitted = p.arrives
	k.programs = append(k.programs, p)
	k.byID[p.Container] = p
}
