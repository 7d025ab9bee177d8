package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/cgroup"
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/memory"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// keeper drives the memory manager of this machine: one goroutine reads containers when the kernel gives notice, and at
// intervals as the net below, and hands the manager's actions to goroutines of their own, because the kernel can take
// seconds.
type keeper struct {
	agent   *Agent
	manager *memory.Manager
	watcher *cgroup.Watcher // nil where the kernel gives no notice
	news    chan news
	done    chan struct{}
	found   []news // containers that were there already; until begin

	// Owned by the goroutine.
	kept    map[cluster.ContainerID]*kept
	byGroup map[*cgroup.Group]cluster.ContainerID
	swap    *gauge
	answers map[cluster.ContainerID]chan<- error // nil: it may start

	deciding sync.Mutex // held while the manager works or is asked

	mu    sync.Mutex
	state map[cluster.ContainerID]keptState // for people
}

// kept is a FLEX container whose memory is managed.
type kept struct {
	container *container
	envelope  memory.Envelope
	gauge     *cgroup.Gauge
	held      cgroup.Held // at the last reading
	traffic   int64
	limit     resource.Amount
	suspended bool
	read      time.Time // when it was last read
	due       time.Time // when it is to be read again
	// armed is when the kernel is asked for notice again, zero if it is being asked; deaf is how long it was not asked for the
	// last time.
	armed time.Time
	deaf  time.Duration
}

// keptState is what people see of a FLEX container.
type keptState struct {
	waiting   bool // it has not started
	suspended bool
	why       string
	since     time.Time
}

// news is something that the goroutine must know.
type news struct {
	started *memory.Started
	of      *container // of started and outcome
	ended   cluster.ContainerID
	request *memory.Request
	answer  chan<- error
	outcome *memory.Outcome
}

// Between two readings of a container half the time passes in which it would come near its limit at the rate at which it
// grew, within these bounds; the kernel's notice comes in between. Without notice it is blindInterval at most.
const (
	soonest       = 10 * time.Millisecond
	latest        = 5 * time.Second
	blindInterval = time.Second
	// After a notice the next is asked for so soon; twice as late each time it led to nothing, as under page cache that comes
	// and goes.
	shortDeaf = 20 * time.Millisecond
	longDeaf  = time.Second
	// After a first notice the container is read again so soon: the kernel's counters of swap lag behind.
	eager = 5 * time.Millisecond
	// What is due within so much time is done at once.
	together = 25 * time.Millisecond
)

// newKeeper returns a keeper that does not work yet.
func newKeeper(a *Agent) (*keeper, error) {
	m, err := memory.New(memory.Default())
	if err != nil {
		return nil, err
	}
	k := &keeper{agent: a, manager: m, news: make(chan news, 64), done: make(chan struct{}),
		swap: newGauge(a), kept: map[cluster.ContainerID]*kept{}, byGroup: map[*cgroup.Group]cluster.ContainerID{},
		answers: map[cluster.ContainerID]chan<- error{}, state: map[cluster.ContainerID]keptState{}}
	if k.watcher, err = cgroup.NewWatcher(); err != nil {
		a.log.Warn("the kernel gives no notice of memory pressure; containers are read every second", "error", err)
	}
	go k.swap.keepCount()
	return k, nil
}

// begin starts the goroutine, which ends with the agent.
func (k *keeper) begin() { go k.run() }

// tell passes news on unless the agent is closed.
func (k *keeper) tell(n news) {
	select {
	case k.news <- n:
	case <-k.agent.closed.Done():
	}
}

// askAgain is how long a container that could not have its memory waits before it asks again.
const askAgain = time.Second

// admit waits until there is memory for a container that is to start, however long that takes: what waits is lost to nobody.
// The error says that it need not start any more.
func (k *keeper) admit(c *container, e memory.Envelope) error {
	for {
		answer := make(chan error, 1)
		k.tell(news{request: &memory.Request{Envelope: e}, answer: answer})
		var refused error
		select {
		case refused = <-answer:
		case <-c.killed:
			return errors.New("ended before there was memory for it")
		case <-k.agent.closed.Done():
			return k.agent.closed.Err()
		}
		k.wait(c.id, refused)
		if refused == nil {
			return nil
		}
		select {
		case <-time.After(askAgain):
		case <-c.killed:
			return fmt.Errorf("ended before there was memory for it: %w", refused)
		case <-k.agent.closed.Done():
			return k.agent.closed.Err()
		}
	}
}

// wait notes for people why a container has not started; nil ends it.
func (k *keeper) wait(id cluster.ContainerID, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.state[id]
	if why == nil {
		delete(k.state, id)
		return
	}
	if !known {
		s.since = time.Now()
	}
	s.waiting, s.why = true, why.Error()
	k.state[id] = s
}

// waiting describes the containers that have not started for want of memory.
func (k *keeper) waiting(readings map[cluster.ContainerID]cluster.Reading) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, s := range k.state {
		if _, runs := readings[id]; s.waiting && !runs {
			readings[id] = cluster.Reading{State: "waiting", Why: s.why, Since: s.since}
		}
	}
}

func (k *keeper) run() {
	defer close(k.done)
	var notices <-chan *cgroup.Group
	if k.watcher != nil {
		defer k.watcher.Close()
		notices = k.watcher.Notices()
	}
	look := time.NewTimer(latest)
	defer look.Stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	lease := time.NewTicker(leaseRenewal)
	defer lease.Stop()
	k.renewLease()
	k.adopt()
	look.Reset(0)
	for {
		var in memory.Input
		select {
		case <-lease.C:
			k.renewLease()
			continue
		case n := <-k.news:
			k.takeNews(n, &in)
			for more := true; more; {
				select {
				case n := <-k.news:
					k.takeNews(n, &in)
				default:
					more = false
				}
			}
		case g := <-notices:
			k.hear(g, &in)
		case <-look.C:
			k.lookAround(&in)
		case <-wake.C:
		case <-k.agent.closed.Done():
			return
		}
		k.decide(in)
		look.Reset(time.Until(k.nextLook()))
		if next := k.manager.Next(); next != timeline.Never {
			wake.Reset(time.Duration(next - now()))
		}
	}
}

// adopt takes over what was found.
func (k *keeper) adopt() {
	var in memory.Input
	for _, n := range k.found {
		k.takeNews(n, &in)
	}
	k.found = nil
	k.decide(in)
}

// decide lets the manager work and passes on what it wants.
func (k *keeper) decide(in memory.Input) {
	in.Node = &memory.NodeReading{Memory: k.agent.config.Capacity[resource.Memory], SwapFree: k.swap.free()}
	k.deciding.Lock()
	actions := k.manager.Step(now(), in)
	k.deciding.Unlock()
	for _, a := range actions {
		k.carryOut(a)
	}
}

// hear reads a group of which the kernel gave notice.
func (k *keeper) hear(g *cgroup.Group, in *memory.Input) {
	id, ok := k.byGroup[g]
	if !ok {
		return
	}
	k.read(id, true, in)
	c := k.kept[id]
	if c.deaf < 4*shortDeaf && !c.suspended {
		c.due = time.Now().Add(eager)
	}
	c.deaf = min(max(2*c.deaf, shortDeaf), longDeaf)
	c.armed = time.Now().Add(c.deaf)
}

// lookAround does what is due: it reads containers, and asks the kernel for notice again.
func (k *keeper) lookAround(in *memory.Input) {
	soon := time.Now().Add(together)
	for id, c := range k.kept {
		if !c.armed.IsZero() && c.armed.Before(soon) {
			c.armed = time.Time{}
			k.watcher.Rearm(c.container.group)
		}
		if c.due.Before(soon) {
			k.read(id, false, in)
		}
	}
}

// nextLook is when something is due.
func (k *keeper) nextLook() time.Time {
	next := time.Now().Add(latest)
	for _, c := range k.kept {
		if c.due.Before(next) {
			next = c.due
		}
		if !c.armed.IsZero() && c.armed.Before(next) {
			next = c.armed
		}
	}
	return next
}

func (k *keeper) takeNews(n news, in *memory.Input) {
	switch {
	case n.started != nil:
		in.Started = append(in.Started, *n.started)
		if n.of.spec.Launch.Class == cluster.Flex {
			k.keep(n.of, n.started)
		}
	case n.request != nil:
		k.answers[n.request.Container] = n.answer
		in.Requests = append(in.Requests, *n.request)
		k.readAll(in) // what is reclaimed for it must be judged by what is held now
	case n.outcome != nil:
		in.Outcomes = append(in.Outcomes, *n.outcome)
		if c, ok := k.kept[n.of.id]; ok {
			if n.outcome.Limit > 0 {
				c.limit = n.outcome.Limit
			}
			c.deaf = 0
			k.read(n.of.id, false, in)
		}
	default:
		in.Ended = append(in.Ended, n.ended)
		k.drop(n.ended)
	}
}

func (k *keeper) keep(c *container, s *memory.Started) {
	gauge, err := c.group.Gauge()
	if err != nil {
		return // it is about to end
	}
	k.kept[c.id] = &kept{container: c, envelope: s.Envelope, gauge: gauge, limit: max(s.Limit, s.Min), suspended: s.Suspended, due: time.Now()}
	k.note(c.id, s.Suspended, memory.Reason{})
	k.byGroup[c.group] = c.id
	if k.watcher != nil {
		k.watcher.Add(c.group)
	}
}

func (k *keeper) drop(id cluster.ContainerID) {
	k.mu.Lock()
	delete(k.state, id)
	k.mu.Unlock()
	c, ok := k.kept[id]
	if !ok {
		return
	}
	if k.watcher != nil {
		k.watcher.Remove(c.container.group)
	}
	c.gauge.Close()
	delete(k.byGroup, c.container.group)
	delete(k.kept, id)
}

func (k *keeper) readAll(in *memory.Input) {
	for id := range maps.Keys(k.kept) {
		k.read(id, false, in)
	}
}

// read adds a reading of a container. Swap traffic is what swap grew and shrank by, and what was faulted in again: version
// 1 counts no more.
func (k *keeper) read(id cluster.ContainerID, pressed bool, in *memory.Input) {
	c, ok := k.kept[id]
	if !ok {
		return
	}
	moment := time.Now()
	held, err := c.gauge.Read()
	if err != nil {
		c.due = moment.Add(latest)
		return // it is about to end
	}
	const page = 4096
	c.traffic += max(held.SwapBytes-c.held.SwapBytes, c.held.SwapBytes-held.SwapBytes) + max(0, held.AnonRefaults-c.held.AnonRefaults)*page
	c.due = moment.Add(c.rest(held, moment.Sub(c.read), k.watcher == nil))
	c.held, c.read = held, moment
	in.Readings = append(in.Readings, memory.Reading{Container: id, Anonymous: resource.Amount(held.AnonBytes),
		Swap: resource.Amount(held.SwapBytes), SwapTraffic: c.traffic, Pressed: pressed})
}

// rest returns how long a container need not be read, given what it holds now and how long ago it was read.
func (c *kept) rest(now cgroup.Held, since time.Duration, blind bool) time.Duration {
	most := latest
	if blind || c.suspended || now.SwapBytes != c.held.SwapBytes {
		most = blindInterval
	}
	if grew := now.AnonBytes - c.held.AnonBytes; grew > 0 && !c.suspended {
		near := max(0, int64(c.limit)*9/10-now.AnonBytes)
		half := float64(since) * float64(near) / float64(grew) / 2
		most = time.Duration(min(float64(most), half))
	}
	return max(most, soonest)
}

// carryOut passes an action on. Only answers are given at once.
func (k *keeper) carryOut(a memory.Action) {
	switch a.Kind {
	case memory.Admit, memory.Refuse:
		if answer, ok := k.answers[a.Container]; ok {
			delete(k.answers, a.Container)
			var refused error
			if a.Kind == memory.Refuse {
				refused = fmt.Errorf("memory cannot be had: %s", k.swap.explain(a.Reason))
			}
			answer <- refused
		}
		return
	}
	c, ok := k.kept[a.Container]
	if !ok {
		return
	}
	k.agent.log.Debug("memory", "container", a.Container, "action", a.Kind, "limit", a.Limit, "why", a.Reason.Words())
	switch a.Kind {
	case memory.Suspend, memory.Resume, memory.Grow, memory.Shrink:
		// A resize leaves it as it is.
		c.suspended = a.Kind == memory.Suspend || a.Kind != memory.Resume && a.Suspended
		k.note(a.Container, c.suspended, a.Reason)
	}
	go k.perform(c.container, c.envelope, a)
}

// note keeps what people may ask for.
func (k *keeper) note(id cluster.ContainerID, suspended bool, why memory.Reason) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, known := k.state[id]
	s := keptState{suspended: suspended, why: why.Words(), since: time.Now()}
	if known && old.suspended == suspended {
		s.since = old.since
	}
	if suspended && known && old.suspended {
		s.why = old.why // why it was suspended, not why it grew meanwhile
	}
	k.state[id] = s
}

// describe adds what the manager knows to a reading.
func (k *keeper) describe(id cluster.ContainerID, r *cluster.Reading) {
	k.mu.Lock()
	s, ok := k.state[id]
	k.mu.Unlock()
	if !ok || s.waiting {
		return
	}
	r.State, r.Why, r.Since = "running", s.why, s.since
	if !s.suspended {
		return
	}
	r.State = "suspended"
	k.deciding.Lock()
	at, likely := k.manager.Outlook(id)
	k.deciding.Unlock()
	if in := time.Duration(at - now()); likely && in > 0 {
		r.Why = fmt.Sprintf("%s; likely to go on in %v", r.Why, in.Round(time.Second))
	}
}

// perform does one action and tells what came of it.
func (k *keeper) perform(c *container, e memory.Envelope, a memory.Action) {
	ctx, cancel := context.WithTimeout(k.agent.closed, memory.Default().ActionTimeout)
	defer cancel()
	limit, err := k.agent.breathe(ctx, c, e, a)
	if err != nil && !errors.Is(err, cgroup.ErrGone) && k.agent.closed.Err() == nil {
		k.agent.log.Warn("memory", "container", c.id, "action", a.Kind.String(), "limit", int64(a.Limit), "error", err)
	}
	k.tell(news{of: c, outcome: &memory.Outcome{Action: a.ID, Limit: limit, Failed: err != nil}})
}
