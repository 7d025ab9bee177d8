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

	// Owned by the goroutine.
	kept    map[cluster.ContainerID]*kept
	byGroup map[*cgroup.Group]cluster.ContainerID
	told    []*cgroup.Group // silent until the next rearm
	swap    *gauge
	answers map[cluster.ContainerID]chan<- error // nil: it may start

	mu    sync.Mutex
	state map[cluster.ContainerID]keptState // for people
}

// kept is a FLEX container whose memory is managed.
type kept struct {
	container *container
	envelope  memory.Envelope
	swap      int64 // at the last reading
	faults    int64
	traffic   int64
}

// keptState is what people see of a FLEX container.
type keptState struct {
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

// How often containers are read without notice, and how soon after a notice the next one is wanted.
const (
	readInterval  = time.Second
	rearmInterval = 20 * time.Millisecond
)

// newKeeper starts the goroutine; it ends with the agent.
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
	go k.run()
	go k.swap.keepCount()
	return k, nil
}

// tell passes news on unless the agent is closed.
func (k *keeper) tell(n news) {
	select {
	case k.news <- n:
	case <-k.agent.closed.Done():
	}
}

// admit waits until there is memory for a container that is to start. The error says why it cannot be had.
func (k *keeper) admit(e memory.Envelope) error {
	answer := make(chan error, 1)
	k.tell(news{request: &memory.Request{Envelope: e}, answer: answer})
	select {
	case err := <-answer:
		return err
	case <-k.agent.closed.Done():
		return k.agent.closed.Err()
	}
}

func (k *keeper) run() {
	defer close(k.done)
	var notices <-chan *cgroup.Group
	if k.watcher != nil {
		defer k.watcher.Close()
		notices = k.watcher.Notices()
	}
	read := time.NewTicker(readInterval)
	defer read.Stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	rearm := time.NewTimer(rearmInterval)
	defer rearm.Stop()
	lease := time.NewTicker(leaseRenewal)
	defer lease.Stop()
	k.renewLease()
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
			k.told = append(k.told, g)
			k.read(k.byGroup[g], true, &in)
			rearm.Reset(rearmInterval)
		case <-rearm.C:
			for _, g := range k.told {
				k.watcher.Rearm(g)
			}
			k.told = k.told[:0]
			continue
		case <-read.C:
			if len(k.kept) == 0 {
				continue
			}
			k.readAll(&in)
		case <-wake.C:
		case <-k.agent.closed.Done():
			return
		}
		in.Node = &memory.NodeReading{Memory: k.agent.config.Capacity[resource.Memory], SwapFree: k.swap.free()}
		for _, a := range k.manager.Step(now(), in) {
			k.carryOut(a)
		}
		if next := k.manager.Next(); next != timeline.Never {
			wake.Reset(time.Duration(next - now()))
		}
	}
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
		k.read(n.of.id, false, in)
	default:
		in.Ended = append(in.Ended, n.ended)
		k.drop(n.ended)
	}
}

func (k *keeper) keep(c *container, s *memory.Started) {
	k.kept[c.id] = &kept{container: c, envelope: s.Envelope}
	k.note(c.id, s.Suspended, memory.Reason{})
	k.byGroup[c.group] = c.id
	if k.watcher != nil {
		k.watcher.Add(c.group)
	}
}

func (k *keeper) drop(id cluster.ContainerID) {
	c, ok := k.kept[id]
	if !ok {
		return
	}
	if k.watcher != nil {
		k.watcher.Remove(c.container.group)
	}
	delete(k.byGroup, c.container.group)
	delete(k.kept, id)
	k.mu.Lock()
	delete(k.state, id)
	k.mu.Unlock()
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
	r, err := c.container.group.Read()
	if err != nil {
		return // it is about to end
	}
	anonymous, _ := r.AnonBytes.Get()
	swap, _ := r.SwapBytes.Get()
	faults, _ := r.AnonRefaults.Get()
	const page = 4096
	c.traffic += max(swap-c.swap, c.swap-swap) + max(0, faults-c.faults)*page
	c.swap, c.faults = swap, faults
	in.Readings = append(in.Readings, memory.Reading{Container: id, Anonymous: resource.Amount(anonymous),
		Swap: resource.Amount(swap), SwapTraffic: c.traffic, Pressed: pressed})
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
		k.note(a.Container, a.Suspended, a.Reason)
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
	defer k.mu.Unlock()
	if s, ok := k.state[id]; ok {
		r.State, r.Why, r.Since = "running", s.why, s.since
		if s.suspended {
			r.State = "suspended"
		}
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
