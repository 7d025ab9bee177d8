package memory

import (
	"iter"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Manager manages the memory of one node.
type Manager struct {
	p        Parameters
	strategy *strategy
	node     NodeReading
	requests []request // in the order in which they asked first

	containers map[cluster.ContainerID]*container
	ordered    []*container // by place, unless unsorted
	unsorted   bool
	acting     map[ActionID]*container // by actions under way, and overdue
	// endedEarly are containers whose end was reported before any other news, and when: later news of them is outdated.
	endedEarly map[cluster.ContainerID]timeline.Time
	requeued   map[cluster.TaskID]*comeback // tasks that are to come back
	owners
	inside bool // it sees the containers of one owner: see within

	lastPuff    moment
	flexRefused moment // a FLEX container could not start
	turns       int64  // number of turns so far
	lastID      ActionID

	// Of the present step:
	now     timeline.Time
	actions []Action
	gifts   []gift            // see collect
	short   []*container      // see candidates
	later   []resource.Amount // see sumLater
	endsBy  []ending          // see endings
	stuck   []stuck           // see serveDry
}

// Request asks for the Min of a container that is to start.
type Request struct {
	Envelope
}

// Input is the news since the last step.
type Input struct {
	Node     *NodeReading // nil: as before
	Readings []Reading
	Outcomes []Outcome
	Out      []Out
	// Comebacks are those of an earlier manager of these containers, once, with those that were found.
	Comebacks []Comeback
	// Started containers have been launched, or found running, with the given limit.
	Started []Started
	// Ended containers are gone for good, whatever other news of them comes in this step or up to ActionTimeout later: a
	// container that is run again has another ID.
	Ended []cluster.ContainerID
	// Changed envelopes replace the envelopes of known containers.
	Changed []Envelope
	// Requests for containers that are to start, or that are to come back after Out: each is answered by Admit or
	// Refuse, in this step or a later one. An admitted container counts from then on as started with its Min. A refused
	// one may ask again; see Parameters.ClaimFor.
	Requests []Request
}

// Started is a container that was launched or found.
type Started struct {
	Envelope
	Limit resource.Amount // in force, bytes; 0 is Min
	// it was found suspended; of no meaning for a REGULAR container, which the manager never suspends
	Suspended bool
	Out       bool // it was found with its memory paged out: see Out
}

// New returns a manager without containers.
func New(p Parameters) (*Manager, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &Manager{p: p, strategy: &strategies[p.Strategy], containers: map[cluster.ContainerID]*container{},
		acting: map[ActionID]*container{}, endedEarly: map[cluster.ContainerID]timeline.Time{}}, nil
}

// Step takes in the news and returns the actions to take, in order. The slice is valid until the next step. The
// caller also calls Step at the time that Next names.
//
// A container gets at most one action in a step, unless it is killed. So a phase passes over containers that an
// earlier phase has helped, and the order of the phases is their priority.
func (m *Manager) Step(now timeline.Time, in Input) []Action {
	m.now, m.actions = now, m.actions[:0]

	// 1. Take in the news, and give up actions that were not answered in time: their containers may get an action in
	// this step.
	m.takeIn(in)
	m.expireOrders()
	m.expireRequests()

	// 2. Put the containers in order, in which all later phases serve them. Which of them yield depends on that order.
	m.strategy.limitSuspensions(m)
	m.updateYielding()

	// 3. Take back what the node no longer has, before any memory is given. First of all, running containers get their
	// Min, which may have been raised: with less they would be suspended.
	m.fitNode()
	m.fitShares()
	m.raiseToMin()

	// 4. Admit containers that are to start. They come before growth: a REGULAR container has a right to its memory,
	// which a FLEX container that grew first would have to give back.
	m.serveRequests()

	// 5. Resume containers that hold no more than their limit. That takes no memory, but in phase 6 other containers may
	// be suspended for the first running one, so it must be known which ones run.
	m.resumeFitting()
	m.resumeYielding()

	// 6. Give memory to containers that are short, according to the strategy, and what is left to containers that soon
	// will be.
	m.growShort()
	m.growAhead()

	// 7. Suspend containers that are still short. A container that is getting memory has an action under way, and runs on.
	m.suspendShort()

	// 8. Take slack back from containers without an action. Containers that needed it have taken it already.
	m.shrinkSlack()

	// 9. Let suspended programs breathe, and repeat the orders whose result is in doubt. Both can wait for other actions.
	m.breathe()
	m.orderAgain()
	return m.actions
}

// takeIn takes in the news, ends last: a short task requests memory, starts and ends within one step, and news that
// is taken in after its end would stay for ever.
func (m *Manager) takeIn(in Input) {
	if in.Node != nil {
		m.node = *in.Node
	}
	m.takeComebacks(in.Comebacks)
	for i := range in.Started {
		_, admitted := m.containers[in.Started[i].Container]
		m.add(&in.Started[i])
		if c := m.containers[in.Started[i].Container]; c != nil && !admitted {
			m.findReserve(c)
		}
	}
	for i := range in.Changed {
		if c, ok := m.containers[in.Changed[i].Container]; ok {
			m.change(c, in.Changed[i])
		}
	}
	for i := range in.Outcomes {
		m.takeOutcome(&in.Outcomes[i])
	}
	for i := range in.Out {
		m.takeOut(&in.Out[i])
	}
	for i := range in.Readings {
		if c, ok := m.containers[in.Readings[i].Container]; ok {
			c.observe(m.now, &in.Readings[i], &m.p)
		}
	}
	m.takeRequests(in.Requests)
	m.remove(in.Ended)
	m.sort()
	m.noteQuotas()
	m.counted = false
	m.findAtRisk()
}

// add begins to manage a container.
func (m *Manager) add(s *Started) {
	if m.hasEnded(s.Container) {
		return
	}
	if old, twice := m.containers[s.Container]; twice { // admitted before it started
		old.firstSeen = m.now
		old.setEnvelope(s.Envelope)
		m.counted = false
		m.move(old, m.p.ranked(&s.Envelope))
		return
	}
	c := &container{Envelope: s.Envelope, limit: s.Limit, changedAt: m.now, firstSeen: m.now,
		stateReason: Reason{Code: Found}, out: s.Out}
	if c.limit == 0 {
		c.limit = c.Min
		c.changedAt = m.now.Add(-m.p.Settle) // it has just begun: nothing is to settle
	}
	c.target, c.grown = c.limit, c.limit > c.Min
	if c.grown { // found, and perhaps short a moment ago
		c.lastShort = moment{m.now, true}
	}
	if s.Suspended && c.flex() {
		c.suspend(m.now, c.stateReason)
	}
	m.containers[c.Container], m.counted = c, false
	m.ordered = append(m.ordered, c)
	m.move(c, m.p.ranked(&c.Envelope))
}

// setEnvelope replaces the envelope. A container that was requeued keeps what it came back with, as far as it may have
// that.
func (c *container) setEnvelope(to Envelope) {
	c.Envelope = to
	c.Min = max(c.Min, min(c.reserve, c.Max))
}

// change replaces the envelope of c. A REGULAR container has its Min from now on, so the driver must know that there
// is room.
func (m *Manager) change(c *container, to Envelope) {
	c.setEnvelope(to)
	if !c.flex() && !c.out {
		c.limit, c.target = c.Min, c.Min
	}
	c.grown = c.limit > c.Min
	m.move(c, m.p.ranked(&c.Envelope))
}

// remove forgets containers that have ended, with their actions under way.
func (m *Manager) remove(ended []cluster.ContainerID) {
	if len(ended) == 0 {
		return
	}
	for _, id := range ended {
		m.forgetComebacks(id)
		c, ok := m.containers[id]
		if !ok {
			m.endedEarly[id] = m.now
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

// hasEnded reports whether the end of a container was reported before anything else of it.
func (m *Manager) hasEnded(id cluster.ContainerID) bool {
	_, ended := m.endedEarly[id]
	return ended
}

// answer answers a request.
func (m *Manager) answer(kind ActionKind, id cluster.ContainerID, limit resource.Amount, why Reason) {
	m.lastID++
	m.actions = append(m.actions, Action{ID: m.lastID, Kind: kind, Container: id, Limit: limit, Reason: why})
}

// Containers returns the containers whose rooms are counted, in no order.
func (m *Manager) Containers() iter.Seq[cluster.ContainerID] { return maps.Keys(m.containers) }

// Next returns when the manager must be stepped again even if nothing happens; Never if it need not. It is after the
// time of the last step: what could not be done in that step waits for news.
func (m *Manager) Next() timeline.Time {
	next := timeline.Never
	at := func(t timeline.Time) {
		if t > m.now {
			next = min(next, t)
		}
	}
	short := m.firstShort(nil) != nil
	for _, c := range m.ordered {
		if short && c.progress.known && !c.state.suspended() { // it yields
			at(m.stallsAt(c))
		}
		if c.place.standing == yielding && c.progress.awoke.happened { // it is ranked again
			at(m.awakeUntil(c))
		}
		if c.pending != nil { // nothing else is ordered for it
			at(c.pending.at.Add(m.p.ActionTimeout))
			continue
		}
		at(c.retryAt)
		at(c.changedAt.Add(m.p.Settle))
		if due, ok := m.breathDue(c); ok {
			at(due)
		}
		if may := m.tolerance(c); c.state.suspended() && may > 0 { // it is killed or promoted, or has its turn
			at(c.suspendedAt.Add(may))
			at(c.suspendedAt.Add(may / 2))
		}
		if c.place.standing == onTurn && !c.state.suspended() {
			at(c.changedAt.Add(m.turn(c)))
		}
		if c.grown && c.lastShort.happened { // it gives slack back
			at(c.lastShort.at.Add(m.p.Hold))
		}
		if c.wants() { // it grows, has another container killed, or pages
			at(m.lastPuff.at.Add(m.p.Interval))
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
