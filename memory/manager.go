// Package memory is the memory manager of one node (Pufferfish, Chen et al., SoCC 2019): it sees how much memory containers
// hold and swap, and grows, shrinks, suspends and resumes them within the bounds that the engine sets, without asking. It is
// a pure function of what it is told: it reads no clock and no file, and whoever drives it carries its actions out.
package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Manager manages the memory of one node.
type Manager struct {
	p          Parameters
	node       NodeReading
	containers map[cluster.ContainerID]*container
	ordered    []*container // by rank, then ID
	requests   []Request
	actions    []Action
	lastID     ActionID
	lastPuff   timeline.Time
	puffed     bool
	now        timeline.Time
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
	Ended   []cluster.ContainerID
	// Changed envelopes replace those of containers that are here.
	Changed []Envelope
	// Requests for containers that are to start: each is answered by Admit or Refuse. An admitted one counts from then on
	// as started with its least memory.
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
	return &Manager{p: p, containers: map[cluster.ContainerID]*container{}}, nil
}

// Step takes in what happened and returns what is to be done, in order. The slice is valid until the next step. The caller
// also steps at the time that Next names.
func (m *Manager) Step(now timeline.Time, in Input) []Action {
	m.now, m.actions = now, m.actions[:0]
	m.takeIn(in)
	m.expire()
	m.endLongSuspensions()
	m.serveRequests()
	m.resumeMet()
	m.puff()
	m.suspendShort()
	m.shrinkSlack()
	m.breathe()
	return m.actions
}

func (m *Manager) takeIn(in Input) {
	if in.Node != nil {
		m.node = *in.Node
	}
	for _, id := range in.Ended {
		m.remove(id)
	}
	for i := range in.Started {
		m.add(&in.Started[i])
	}
	for i := range in.Changed {
		if c, ok := m.containers[in.Changed[i].Container]; ok {
			c.Envelope = in.Changed[i]
			c.order = in.Changed[i].order()
		}
	}
	for i := range in.Outcomes {
		m.settle(&in.Outcomes[i])
	}
	for i := range in.Readings {
		if c, ok := m.containers[in.Readings[i].Container]; ok {
			c.observe(m.now, &in.Readings[i])
		}
	}
	m.requests = append(m.requests, in.Requests...)
	slices.SortFunc(m.ordered, byRank)
}

func byRank(a, b *container) int {
	if a.order != b.order {
		return cmp.Compare(a.order, b.order)
	}
	return compareIDs(a.Container, b.Container)
}

func compareIDs(a, b cluster.ContainerID) int {
	return cmp.Or(cmp.Compare(a.Task.Job, b.Task.Job), cmp.Compare(a.Task.Stage, b.Task.Stage),
		cmp.Compare(a.Task.Index, b.Task.Index), cmp.Compare(a.Run, b.Run))
}

func (m *Manager) add(s *Started) {
	if old, twice := m.containers[s.Container]; twice { // admitted before it started
		old.Envelope, old.order = s.Envelope, s.Envelope.order()
		return
	}
	c := &container{Envelope: s.Envelope, order: s.Envelope.order(), limit: s.Limit, turned: m.now}
	if c.limit == 0 {
		c.limit = c.Min
	}
	c.target, c.lent = c.limit, c.limit > c.Min
	if s.Suspended {
		c.suspend(m.now)
	}
	m.containers[c.Container] = c
	m.ordered = append(m.ordered, c)
}

func (m *Manager) remove(id cluster.ContainerID) {
	m.requests = slices.DeleteFunc(m.requests, func(r Request) bool { return r.Container == id })
	c, ok := m.containers[id]
	if !ok {
		return
	}
	delete(m.containers, id)
	m.ordered = slices.DeleteFunc(m.ordered, func(o *container) bool { return o == c })
}

// settle takes over what came of an action.
func (m *Manager) settle(o *Outcome) {
	for _, c := range m.ordered {
		if c.pending == nil || c.pending.ID != o.Action {
			continue
		}
		if o.Limit > 0 {
			c.limit = o.Limit
		}
		m.finish(c, o.Failed)
		return
	}
}

// finish ends the action under way of c.
func (m *Manager) finish(c *container, failed bool) {
	kind := c.pending.Kind
	c.pending, c.target = nil, c.limit
	if kind == Grow && !failed {
		c.short = false // whether it still is, the next reading will say
	}
	if failed && (kind == Suspend || kind == Resume) {
		c.suspended = !c.suspended // as before; it is asked for again if it is still wanted
	}
}

// expire gives up actions that the kernel does not finish: what they should have brought is decided anew.
func (m *Manager) expire() {
	for _, c := range m.ordered {
		if c.pending != nil && c.pending.Kind != Kill && m.now.Sub(c.pending.asked) >= m.p.ActionTimeout {
			m.finish(c, true)
		}
	}
}

// ask adds an action and marks it as under way.
func (m *Manager) ask(kind ActionKind, c *container, limit resource.Amount, why Reason) {
	m.lastID++
	a := Action{ID: m.lastID, Kind: kind, Container: c.Container, Limit: limit, Suspended: c.suspended, Reason: why}
	m.actions = append(m.actions, a)
	c.pending = &pending{a, m.now}
	switch kind {
	case Grow, Shrink:
		c.target, c.pages = limit, false
		c.lent = limit > c.Min
	case Suspend:
		c.suspend(m.now)
	case Resume:
		c.suspended, c.turned, c.order = false, m.now, c.Envelope.order()
	case Breathe:
		c.breath = m.now.Add(m.p.Breath)
	}
}

// answer ends a request.
func (m *Manager) answer(kind ActionKind, id cluster.ContainerID, why Reason) {
	m.lastID++
	m.actions = append(m.actions, Action{ID: m.lastID, Kind: kind, Container: id, Reason: why})
}

// allocated is A of Algorithm 1: what containers may hold together, and what they may still hold until the kernel has
// finished.
func (m *Manager) allocated() resource.Amount {
	var a resource.Amount
	for _, c := range m.ordered {
		a += c.room()
	}
	return a
}

// left is what may still be puffed: nothing of what a container that is to start waits for.
func (m *Manager) left() resource.Amount {
	left := resource.Amount(m.p.Stop*float64(m.node.Memory)) - m.allocated()
	if len(m.requests) > 0 {
		left -= m.requests[0].Min
	}
	return left
}

// settled reports whether c may be suspended or resumed again.
func (m *Manager) settled(c *container) bool { return m.now.Sub(c.turned) >= m.p.Settle }

// resumeMet resumes containers that hold no more than they may: because they were puffed, or because they gave memory
// back themselves, their swap drained or not.
func (m *Manager) resumeMet() {
	for _, c := range m.ordered {
		if c.suspended && c.pending == nil && c.read && c.demand() <= c.limit && m.settled(c) {
			m.ask(Resume, c, 0, Reason{Code: DemandMet, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}

// suspendShort suspends what is out of memory and was not helped in this step.
func (m *Manager) suspendShort() {
	for _, c := range m.ordered {
		if c.short && c.demand() >= c.limit && !c.suspended && !c.pages && c.pending == nil && c.limit < c.Max && m.settled(c) {
			m.ask(Suspend, c, 0, Reason{Code: OutOfMemory, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}

// shrinkSlack takes back what a puffed container does not use (section 4.3.1), once it has not needed more for a while.
func (m *Manager) shrinkSlack() {
	for _, c := range m.ordered {
		if !c.flex() || !c.lent || !c.read || c.pending != nil || c.suspended || c.holding(m.now, m.p.Hold) {
			continue
		}
		slack := min(m.p.SlackBytes, resource.Amount(m.p.SlackShare*float64(c.demand())))
		ahead := resource.Amount(float64(c.demand()) * m.p.Ahead / (1 - m.p.Ahead)) // less would be grown again at once
		fits := max(c.Min, c.demand()+ahead+slack)
		// What is not worth the trouble stays: a tenth of what it holds already.
		if fits < c.limit-c.limit/10 {
			m.ask(Shrink, c, fits, Reason{Code: Slack, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}

// endLongSuspensions kills what was suspended for longer than it may be, and lets what was suspended for half of that
// come before its next (section 4.3.3). It is also what keeps a consumer from waiting for ever for a suspended producer.
func (m *Manager) endLongSuspensions() {
	raised := false
	for i, c := range m.ordered {
		may := m.tolerance(c)
		if !c.suspended || may <= 0 {
			continue
		}
		switch long := m.now.Sub(c.since); {
		case long >= may && (c.pending == nil || c.pending.Kind != Kill):
			m.ask(Kill, c, 0, Reason{Code: TooLong, A: int64(long), B: int64(may)})
		case long >= may/2 && c.order == c.Envelope.order():
			if above := m.jobAbove(i); above != nil {
				c.order, raised = above.Envelope.order()-1, true
			}
		}
	}
	if raised {
		slices.SortFunc(m.ordered, byRank)
	}
}

// jobAbove returns a container of the job that comes before that of ordered[i].
func (m *Manager) jobAbove(i int) *container {
	for k := i - 1; k >= 0; k-- {
		if m.ordered[k].flex() && m.ordered[k].Rank < m.ordered[i].Rank {
			return m.ordered[k]
		}
	}
	return nil
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
		if due, ok := m.breathDue(c); ok && m.now >= due && c.pending == nil {
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

// Next returns when the manager must be stepped again even if nothing happens; Never if it need not.
func (m *Manager) Next() timeline.Time {
	next := timeline.Never
	for _, c := range m.ordered {
		if c.pending != nil && c.pending.Kind != Kill {
			next = min(next, c.pending.asked.Add(m.p.ActionTimeout))
		}
		if at, ok := m.breathDue(c); ok && c.pending == nil {
			next = min(next, at)
		}
		if may := m.tolerance(c); c.suspended && may > 0 {
			next = min(next, c.since.Add(may))
			if c.order == c.Envelope.order() {
				next = min(next, c.since.Add(may/2))
			}
		}
		if c.flex() && c.pending == nil && !m.settled(c) {
			next = min(next, c.turned.Add(m.p.Settle))
		}
		if c.lent && c.holding(m.now, m.p.Hold) {
			next = min(next, c.lastShort.Add(m.p.Hold))
		}
		if c.wants() && m.p.Interval > 0 && m.puffed {
			next = min(next, m.lastPuff.Add(m.p.Interval))
		}
		if c.wants() && m.p.KillPatience > 0 {
			next = min(next, c.shortSince.Add(m.p.KillPatience))
		}
	}
	if next <= m.now {
		next = m.now.Add(time.Millisecond)
	}
	return next
}
