// Package memory is the memory manager of one node (Pufferfish, Chen et al., SoCC 2019): it sees how much memory containers
// hold and swap, and grows, shrinks, suspends and resumes them within the bounds that the engine sets, without asking. It is
// a pure function of what it is told: it reads no clock and no file, and whoever drives it carries its actions out.
package memory

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Manager manages the memory of one node.
type Manager struct {
	p          Parameters
	strategy   *strategy
	node       NodeReading
	containers map[cluster.ContainerID]*container
	acting     map[ActionID]*container // by actions under way, or given up
	ordered    []*container            // by rank, then ID, unless unsorted
	unsorted   bool
	requests   []request // in the order in which they asked first
	// early are containers of which only the end is known yet, and when it was told: what else is told of them comes late.
	early    map[cluster.ContainerID]timeline.Time
	kept     bool // a container of class FLEX could not start, lastly at keptAt
	keptAt   timeline.Time
	wanting  []*container // of the present step, as are gifts
	gifts    []gift
	actions  []Action
	lastID   ActionID
	turns    int64
	lastPuff timeline.Time
	puffed   bool
	now      timeline.Time
}

// Request asks for the memory of a container that is to start: all of it if it is REGULAR, its least if it is FLEX.
type Request struct {
	Envelope
}

// Input is what happened since the last step.
type Input struct {
	Node     *NodeReading // nil: as before
	Readings []Reading
	Outcomes []Outcome
	// Started containers have been launched, or found running, with the given limit.
	Started []Started
	// Ended containers are gone for good, whatever else is told of them in this step or up to ActionTimeout later: a container
	// that is run again has another ID.
	Ended []cluster.ContainerID
	// Changed envelopes replace those of containers that are here.
	Changed []Envelope
	// Requests for containers that are to start: each is answered by Admit or Refuse. An admitted one counts from then on
	// as started with its least memory. One that is refused may ask again; see Parameters.ClaimFor.
	Requests []Request
}

// Started is a container that runs.
type Started struct {
	Envelope
	Limit     resource.Amount // in force, bytes; 0 is Min
	Suspended bool            // it was found suspended
}

// New returns a manager without containers.
func New(p Parameters) (*Manager, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &Manager{p: p, strategy: &strategies[p.Strategy], containers: map[cluster.ContainerID]*container{}, acting: map[ActionID]*container{},
		early: map[cluster.ContainerID]timeline.Time{}}, nil
}

// Step takes in what happened and returns what is to be done, in order. The slice is valid until the next step. The caller
// also steps at the time that Next names.
func (m *Manager) Step(now timeline.Time, in Input) []Action {
	m.now, m.actions = now, m.actions[:0]
	m.takeIn(in)
	m.expire()
	m.endTurns()
	m.strategy.limitSuspensions(m)
	m.yield()
	m.fit()
	m.serveRequests()
	m.resumeMet()
	m.wakeYielding()
	m.growShort()
	m.puffAhead()
	m.suspendShort()
	m.shrinkSlack()
	m.breathe()
	m.insist()
	return m.actions
}

// takeIn takes in what happened. What has ended goes last: a short task asks, starts and ends within one step, and what came
// in after its end would stay for ever.
func (m *Manager) takeIn(in Input) {
	if in.Node != nil {
		m.node = *in.Node
	}
	for i := range in.Started {
		m.add(&in.Started[i])
	}
	for i := range in.Changed {
		if c, ok := m.containers[in.Changed[i].Container]; ok {
			c.Envelope, c.place, m.unsorted = in.Changed[i], m.p.usual(&in.Changed[i]), true
		}
	}
	for i := range in.Outcomes {
		m.settle(&in.Outcomes[i])
	}
	for i := range in.Readings {
		if c, ok := m.containers[in.Readings[i].Container]; ok {
			c.observe(m.now, &in.Readings[i], &m.p)
		}
	}
	m.takeRequests(in.Requests)
	m.remove(in.Ended)
	m.sort()
	m.tighten()
}

// sort puts containers in their order again if it has changed.
func (m *Manager) sort() {
	if m.unsorted {
		slices.SortFunc(m.ordered, byRank)
		m.unsorted = false
	}
}

func byRank(a, b *container) int {
	return cmp.Or(comparePlaces(a.place, b.place), compareIDs(a.Container, b.Container))
}

func compareIDs(a, b cluster.ContainerID) int {
	return cmp.Or(cmp.Compare(a.Task.Job, b.Task.Job), cmp.Compare(a.Task.Stage, b.Task.Stage),
		cmp.Compare(a.Task.Index, b.Task.Index), cmp.Compare(a.Run, b.Run))
}

func (m *Manager) add(s *Started) {
	if m.hasEnded(s.Container) {
		return
	}
	if old, twice := m.containers[s.Container]; twice { // admitted before it started
		old.Envelope, old.place, old.began, m.unsorted = s.Envelope, m.p.usual(&s.Envelope), m.now, true
		return
	}
	c := &container{Envelope: s.Envelope, place: m.p.usual(&s.Envelope), limit: s.Limit, turned: m.now, began: m.now}
	if c.limit == 0 {
		c.limit = c.Min
		c.turned = m.now.Add(-m.p.Settle) // it has just begun: nothing is to settle
	}
	c.target, c.lent = c.limit, c.limit > c.Min
	if c.lent { // found, and perhaps out of memory a moment ago
		c.lastShort, c.everShort = m.now, true
	}
	if c.why = (Reason{Code: Found}); s.Suspended {
		c.suspend(m.now)
	}
	if s.Suspended && !c.flex() { // nobody suspends REGULAR containers
		c.suspended, c.unsure = false, true
	}
	m.containers[c.Container] = c
	m.ordered, m.unsorted = append(m.ordered, c), true
}

func (m *Manager) remove(ended []cluster.ContainerID) {
	if len(ended) == 0 {
		return
	}
	for _, id := range ended {
		c, ok := m.containers[id]
		if !ok {
			m.early[id] = m.now
			continue
		}
		if c.pending != nil {
			delete(m.acting, c.pending.ID)
		}
		for _, a := range c.overdue {
			delete(m.acting, a.ID)
		}
		delete(m.containers, id)
	}
	m.requests = slices.DeleteFunc(m.requests, func(r request) bool { return slices.Contains(ended, r.Container) })
	m.ordered = slices.DeleteFunc(m.ordered, func(c *container) bool { return m.containers[c.Container] != c })
}

// hasEnded reports whether the end of a container was told before anything else of it.
func (m *Manager) hasEnded(id cluster.ContainerID) bool {
	_, ended := m.early[id]
	return ended
}

// settle takes over what came of an action.
func (m *Manager) settle(o *Outcome) {
	c, ok := m.acting[o.Action]
	if !ok {
		return
	}
	delete(m.acting, o.Action)
	late := c.pending == nil || c.pending.ID != o.Action
	c.learn(o, m.now, m.p.ActionTimeout)
	if o.Limit > 0 {
		// The kernel does one after the other: what was asked for earlier will not happen any more.
		c.limit = o.Limit
		c.overdue = slices.DeleteFunc(c.overdue, func(a Action) bool {
			if a.ID <= o.Action {
				delete(m.acting, a.ID)
			}
			return a.ID <= o.Action
		})
	}
	switch {
	case late && c.pending == nil:
		c.target = c.limit
	case late:
	case c.pending.Kind == Kill && !o.Failed: // under way until it has ended
	default:
		m.finish(c, o.Failed)
	}
}

// learn notes what could not be taken from c: less than an eighth of what was asked for came free. It is asked for again later and
// later, up to most.
func (c *container) learn(o *Outcome, now timeline.Time, most time.Duration) {
	if c.pending == nil || c.pending.ID != o.Action || c.pending.Kind != Shrink || o.Limit <= c.pending.Limit {
		return
	}
	if was := c.pending.from; was-o.Limit >= (was-c.pending.Limit)/8 {
		c.stuckFor = 0
		return
	}
	c.stuckFor = min(max(time.Second, 2*c.stuckFor), most)
	c.stuck, c.stuckUntil = o.Limit, now.Add(c.stuckFor)
}

// giveUp keeps in mind what the kernel may still do although nobody waits for it any more.
func (m *Manager) giveUp(c *container) {
	switch {
	case c.pending == nil:
	case c.pending.Kind == Grow || c.pending.Kind == Shrink:
		c.overdue = append(c.overdue, c.pending.Action)
	default:
		delete(m.acting, c.pending.ID)
	}
}

// finish ends the action under way of c.
func (m *Manager) finish(c *container, failed bool) {
	kind := c.pending.Kind
	c.pending, c.target = nil, c.limit
	c.lent = c.limit > c.Min
	if kind != Grow && kind != Kill {
		if c.unsure {
			c.turned = m.now // no sooner; even what failed may have done that much
		}
		c.unsure = failed
	}
	if failed {
		c.alone = m.now.Add(m.p.RetryAfter << min(c.failed, 6))
		c.failed++
		return
	}
	c.failed = 0
	if kind == Grow {
		c.short = false // whether it still is, the next reading will say
	}
}

// insist asks again for suspensions and resumptions that the kernel has not confirmed: a container of which the manager
// believes that it runs must not stay frozen.
func (m *Manager) insist() {
	for _, c := range m.ordered {
		if !c.unsure || !c.idle(m.now) {
			continue
		}
		kind := Resume
		if c.suspended {
			kind = Suspend
		}
		m.order(kind, c, 0, c.why)
	}
}

// expire gives up actions that the kernel does not finish, for what they should have brought is decided anew, and claims, and
// forgets ends that nothing came after.
func (m *Manager) expire() {
	for _, c := range m.ordered {
		if c.pending != nil && m.now.Sub(c.pending.asked) >= m.p.ActionTimeout {
			m.giveUp(c)
			m.finish(c, true)
		}
	}
	m.dropClaims()
	maps.DeleteFunc(m.early, func(_ cluster.ContainerID, told timeline.Time) bool { return m.now.Sub(told) >= m.p.ActionTimeout })
}

// ask orders an action and notes what will be so when it is done.
func (m *Manager) ask(kind ActionKind, c *container, limit resource.Amount, why Reason) {
	m.order(kind, c, limit, why)
	switch kind {
	case Grow, Shrink:
		c.target, c.pages = limit, false
		c.lent = limit > c.Min
	case Suspend:
		c.why = why
		c.suspend(m.now)
	case Resume:
		c.why = why
		c.suspended, c.turned, c.stood = false, m.now, m.now.Sub(c.since)
		if c.place.turn == 0 && !c.place.yields {
			c.place = m.p.usual(&c.Envelope)
		}
	case Breathe:
		c.breath = m.now.Add(m.p.BreathOf(c.HeartbeatTimeout))
	}
}

// order adds an action and marks it as under way.
func (m *Manager) order(kind ActionKind, c *container, limit resource.Amount, why Reason) {
	m.lastID++
	a := Action{ID: m.lastID, Kind: kind, Container: c.Container, Limit: limit, Suspended: c.suspended, Reason: why}
	m.actions = append(m.actions, a)
	m.giveUp(c) // a kill does not wait
	c.act = pending{a, m.now, c.limit}
	c.pending = &c.act
	m.acting[a.ID] = c
}

// answer ends a request.
func (m *Manager) answer(kind ActionKind, id cluster.ContainerID, why Reason) {
	m.lastID++
	m.actions = append(m.actions, Action{ID: m.lastID, Kind: kind, Container: id, Reason: why})
}

// Containers returns the containers that count, in no order: the manager's books.
func (m *Manager) Containers() iter.Seq[cluster.ContainerID] { return maps.Keys(m.containers) }

// Allocated is A of Algorithm 1, bytes: what containers may hold together, and what they may still hold until the kernel has
// finished.
func (m *Manager) Allocated() resource.Amount {
	var a resource.Amount
	for _, c := range m.ordered {
		a += c.room()
	}
	return a
}

// left is what may still be puffed: nothing of what containers that are to start wait for.
func (m *Manager) left() resource.Amount { return m.unkept() - m.claimed() }

// unkept is what is left with what is kept for claims.
func (m *Manager) unkept() resource.Amount {
	return resource.Amount(m.p.Stop*float64(m.node.Memory)) - m.node.Memory + m.free()
}

// settled reports whether c may be suspended or resumed again.
func (m *Manager) settled(c *container) bool { return m.now.Sub(c.turned) >= m.p.Settle }

// tighten finds who has nearly filled its limit with what cannot go to swap, because swap is full or its programs locked it: the
// kernel kills for the next page. If it was about to need more lately it grows or stands still before that.
func (m *Manager) tighten() {
	if m.p.Ahead <= 0 {
		return
	}
	for _, c := range m.ordered {
		margin := resource.Amount(m.p.Ahead * float64(c.limit))
		could := c.anonymous - c.locked
		if m.node.SwapFull {
			could = 0
		}
		was, grows := c.tight, c.suspended || c.climbed && m.now.Sub(c.climbedAt) < m.p.Hold
		c.tight = grows && c.flex() && c.read && c.limit < c.Max && could < margin && c.anonymous >= c.limit-margin
		if c.tight && !was && !c.short && !c.suspended {
			c.shortSince = m.now
		}
		if c.tight {
			c.lastShort, c.everShort = m.now, true
		}
	}
}

// resumeMet resumes containers that hold no more than they may: because they were puffed, or because they gave memory
// back themselves, their swap drained or not. One that is as large as it may become is resumed whatever it holds.
func (m *Manager) resumeMet() {
	for _, c := range m.ordered {
		if c.suspended && !c.tight && c.idle(m.now) && c.read && (c.demand() <= c.limit && c.limit >= c.Min || c.limit >= c.Max) && m.settled(c) {
			m.ask(Resume, c, 0, Reason{Code: DemandMet, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}

// suspendShort suspends what is out of memory and was not helped in this step; at once if it was found with, or a lost answer left
// it, so little that the kernel may find nothing that it could swap out, and kill.
func (m *Manager) suspendShort() {
	if !m.strategy.reclaims {
		return
	}
	for _, c := range m.ordered {
		if c.belowLeast() && c.idle(m.now) {
			m.ask(Suspend, c, 0, Reason{Code: BelowLeast, A: int64(c.limit), B: int64(c.Min)})
			continue
		}
		if c.tight && !c.suspended && c.idle(m.now) {
			m.ask(Suspend, c, 0, m.tightness(c))
			continue
		}
		if c.short && c.demand() >= c.limit && !c.suspended && !c.pages && c.idle(m.now) && c.limit < c.Max && m.settled(c) {
			m.ask(Suspend, c, 0, Reason{Code: OutOfMemory, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}

// tightness says why c would be killed.
func (m *Manager) tightness(c *container) Reason {
	if m.node.SwapFull {
		return Reason{Code: SwapFull, A: int64(c.demand()), B: int64(c.limit)}
	}
	return Reason{Code: Locked, A: int64(c.locked), B: int64(c.limit)}
}

// tolerance is how long c may be suspended; 0: for ever.
func (m *Manager) tolerance(c *container) time.Duration {
	if m.p.Tolerance > 0 && c.Duration > 0 {
		return time.Duration(m.p.Tolerance * float64(c.Duration))
	}
	return m.p.LongestSuspension
}

// breathe lets suspended programs send their heartbeats.
func (m *Manager) breathe() {
	for _, c := range m.ordered {
		if due, ok := m.breathDue(c); ok && m.now >= due && c.idle(m.now) {
			m.ask(Breathe, c, 0, Reason{Code: Alive, A: int64(c.HeartbeatTimeout)})
		}
	}
}

// breathDue returns when c must run for a moment; ok is false if it need not.
func (m *Manager) breathDue(c *container) (at timeline.Time, ok bool) {
	if !c.suspended || c.HeartbeatTimeout <= 0 || m.p.BreathEvery <= 0 {
		return 0, false
	}
	return c.breath.Add(time.Duration(m.p.BreathEvery * float64(c.HeartbeatTimeout))), true
}

// Next returns when the manager must be stepped again even if nothing happens; Never if it need not. It is after the time of
// the last step: what could not be done then waits for what happens.
func (m *Manager) Next() timeline.Time {
	next := timeline.Never
	at := func(t timeline.Time) {
		if t > m.now {
			next = min(next, t)
		}
	}
	lacking := m.firstShort() != nil
	for _, c := range m.ordered {
		if lacking && c.progress.known && !c.suspended {
			at(m.stallsAt(c))
		}
		if c.place.yields && c.progress.awoke {
			at(m.awakeUntil(c))
		}
		if c.pending != nil {
			at(c.pending.asked.Add(m.p.ActionTimeout))
			continue
		}
		at(c.alone)
		at(c.turned.Add(m.p.Settle))
		if due, ok := m.breathDue(c); ok {
			at(due)
		}
		may := m.tolerance(c)
		if c.suspended && may > 0 {
			at(c.since.Add(may))
			at(c.since.Add(may / 2))
		}
		if c.place.turn > 0 && !c.suspended {
			at(c.turned.Add(m.turn(c)))
		}
		if c.lent && c.everShort {
			at(c.lastShort.Add(m.p.Hold))
		}
		if c.wants() {
			at(m.lastPuff.Add(m.p.Interval))
			at(c.shortSince.Add(m.p.KillPatience))
			at(c.shortSince.Add(m.p.Patience))
		}
	}
	for i := range m.requests {
		if r := &m.requests[i]; r.claim {
			at(r.asked.Add(m.p.ClaimFor))
		}
	}
	return next
}
