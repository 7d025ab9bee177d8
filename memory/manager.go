package memory

import (
	"iter"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
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
	// endedEarly are containers whose end was reported before anything else, and when: other news of them is late.
	endedEarly map[cluster.ContainerID]timeline.Time

	lastPuff    moment
	flexRefused moment // a FLEX container could not start
	turns       int64  // how many there were
	lastID      ActionID

	// Of the present step:
	now     timeline.Time
	actions []Action
	gifts   []gift       // see collect
	short   []*container // see candidates
}

// Request asks for the Min of a container that is to start.
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
	// Ended containers are gone for good, whatever other news of them comes in this step or up to ActionTimeout later: a container
	// that is run again has another ID.
	Ended []cluster.ContainerID
	// Changed envelopes replace those of containers that are known.
	Changed []Envelope
	// Requests for containers that are to start: each is answered by Admit or Refuse, in this step or a later one. An admitted
	// container counts from then on as started with its Min. A refused one may ask again; see Parameters.ClaimFor.
	Requests []Request
}

// Started is a container that was launched or found.
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
		endedEarly: map[cluster.ContainerID]timeline.Time{}}, nil
}

// Step takes in what happened and returns what is to be done, in order. The slice is valid until the next step. The caller also
// steps at the time that Next names.
//
// A container gets one action in a step at most, unless it is killed. So a phase passes over all that an earlier phase has
// helped, and the order of the phases says what comes first.
func (m *Manager) Step(now timeline.Time, in Input) []Action {
	m.now, m.actions = now, m.actions[:0]

	// 1. Take in what is known now, and give up what was not answered in time: its container may get an action in this step.
	m.takeIn(in)
	m.expireOrders()
	m.expireRequests()

	// 2. Put the containers in order: all below serves the first first. Turns end before others begin, or a container whose turn is
	// over would still come before them. Who yields is decided on the order that results.
	m.endTurns()
	m.strategy.limitSuspensions(m)
	m.updateYielding()

	// 3. Take back what the node no longer has, before any memory is given.
	m.fitNode()

	// 4. Admit containers that are to start. They come before growth: a REGULAR one has a right to its memory, and a FLEX one
	// that grew first would have to give it back.
	m.serveRequests()

	// 5. Resume what holds no more than its limit. It takes no memory; but the first container that runs may have others
	// suspended for it when memory is given, so it must be known which run.
	m.resumeFitting()
	m.resumeYielding()

	// 6. Give memory to containers that are short, as the strategy says. Then, of what they leave, to those that soon will be.
	m.growShort()
	m.growAhead()

	// 7. Suspend what is still short. A container that is getting memory has an action under way, and goes on.
	m.suspendShort()

	// 8. Take slack back from what is left alone by all of the above. Who needed it has taken it already.
	m.shrinkSlack()

	// 9. Let suspended programs breathe, and order again what is in doubt. Both can wait for another action of their container.
	m.breathe()
	m.orderAgain()
	return m.actions
}

// takeIn takes in what happened. Ends are taken in last: a short task asks, starts and ends within one step, and what was taken in
// after its end would stay for ever.
func (m *Manager) takeIn(in Input) {
	if in.Node != nil {
		m.node = *in.Node
	}
	for i := range in.Started {
		m.add(&in.Started[i])
	}
	for i := range in.Changed {
		if c, ok := m.containers[in.Changed[i].Container]; ok {
			c.Envelope = in.Changed[i]
			m.move(c, m.p.ranked(&c.Envelope))
		}
	}
	for i := range in.Outcomes {
		m.takeOutcome(&in.Outcomes[i])
	}
	for i := range in.Readings {
		if c, ok := m.containers[in.Readings[i].Container]; ok {
			c.observe(m.now, &in.Readings[i], &m.p)
		}
	}
	m.takeRequests(in.Requests)
	m.remove(in.Ended)
	m.sort()
	m.findAtRisk()
}

// add begins to manage a container.
func (m *Manager) add(s *Started) {
	if m.hasEnded(s.Container) {
		return
	}
	if old, twice := m.containers[s.Container]; twice { // admitted before it started
		old.Envelope, old.firstSeen = s.Envelope, m.now
		m.move(old, m.p.ranked(&s.Envelope))
		return
	}
	c := &container{Envelope: s.Envelope, limit: s.Limit, changedAt: m.now, firstSeen: m.now, stateReason: Reason{Code: Found}}
	if c.limit == 0 {
		c.limit = c.Min
		c.changedAt = m.now.Add(-m.p.Settle) // it has just begun: nothing is to settle
	}
	c.target, c.grown = c.limit, c.limit > c.Min
	if c.grown { // found, and perhaps short a moment ago
		c.lastShort = moment{m.now, true}
	}
	if s.Suspended {
		c.suspend(m.now, c.stateReason)
	}
	if s.Suspended && !c.flex() { // the manager suspends no REGULAR containers: it is to run
		c.state = runningInDoubt
	}
	m.containers[c.Container] = c
	m.ordered = append(m.ordered, c)
	m.move(c, m.p.ranked(&c.Envelope))
}

// remove forgets containers that have ended, with all that the kernel was asked to do with them.
func (m *Manager) remove(ended []cluster.ContainerID) {
	if len(ended) == 0 {
		return
	}
	for _, id := range ended {
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
func (m *Manager) answer(kind ActionKind, id cluster.ContainerID, why Reason) {
	m.lastID++
	m.actions = append(m.actions, Action{ID: m.lastID, Kind: kind, Container: id, Reason: why})
}

// Containers returns the containers whose rooms are counted, in no order.
func (m *Manager) Containers() iter.Seq[cluster.ContainerID] { return maps.Keys(m.containers) }

// Next returns when the manager must be stepped again even if nothing happens; Never if it need not. It is after the time of
// the last step: what could not be done then waits for what happens.
func (m *Manager) Next() timeline.Time {
	next := timeline.Never
	at := func(t timeline.Time) {
		if t > m.now {
			next = min(next, t)
		}
	}
	short := m.firstShort() != nil
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
