package sim

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// keeper drives the memory manager of a node, as the agent does on a real machine: it passes readings to the manager
// and carries out the manager's actions.
type keeper struct {
	node       cluster.NodeID
	memory     resource.Amount // of the node
	manager    *memory.Manager
	containers []*container // in the order of their first requests for memory
	device     swapDevice

	input    memory.Input    // since the last step
	changed  []*container    // since they were last sampled
	seen     []*container    // to be sampled with the next step, whenever that is
	refused  []*container    // to repeat their requests
	awake    bool            // it is to be stepped now
	due      timeline.Time   // when it has something to do next
	dueTurn  uint64          // of the agenda item for due
	next     timeline.Time   // when the manager is to be stepped next
	look     timeline.Time   // when its containers are to be sampled; Never if nothing has changed
	gone     bool            // its node has left
	promised resource.Amount // swap reserved for pages on their way there, bytes
	held     resource.Amount // sum of its containers' limits, bytes
	reported resource.Amount // what was last reported to the engine: see holds
}

// keep gives every node a memory manager.
func (r *run) keep() error {
	r.parameters = r.config.Flex.parameters()
	for i := range r.config.Nodes {
		if err := r.addKeeper(&r.config.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) addKeeper(n *cluster.Node) error {
	m, err := memory.New(r.parameters)
	r.keepers = append(r.keepers, &keeper{node: n.ID, memory: n.Capacity[resource.Memory], manager: m,
		due: timeline.Never, next: timeline.Never, look: timeline.Never})
	return err
}

// mayLaunch reports whether there is memory for a task. If not, the task is launched once there is.
func (r *run) mayLaunch(t *task) bool {
	if r.keepers == nil || t.container != nil && t.container.admitted {
		return true
	}
	k := r.keepers[t.node]
	id := cluster.ContainerID{Task: t.id, Run: int(t.run)}
	t.container = &container{task: t, envelope: memory.Envelope{Container: id, Envelope: *t.envelope}, asked: r.now}
	k.containers = append(k.containers, t.container)
	r.request(k, t.container)
	return false
}

// request requests from the manager the memory of a container that is to start. The manager must know the present use
// of the other containers, to judge what to reclaim.
func (r *run) request(k *keeper, c *container) {
	k.input.Requests = append(k.input.Requests, memory.Request{Envelope: c.envelope})
	k.seeChanged()
	r.wake(k)
}

// memoryChanged has a changed container sampled: now, or with the next look.
func (r *run) memoryChanged(k *keeper, c *container) {
	r.config.Observers.container(r.now, c)
	if r.config.Flex.Look == 0 {
		k.see(c)
		r.wake(k)
		return
	}
	r.lookLater(k, c, r.roundUp(r.now))
}

func (r *run) lookLater(k *keeper, c *container, at timeline.Time) {
	if !slices.Contains(k.changed, c) {
		k.changed = append(k.changed, c)
	}
	if at < k.look {
		k.look = at
		r.schedule(k)
	}
}

// see has a container sampled with the next step.
func (k *keeper) see(c *container) {
	if !slices.Contains(k.seen, c) {
		k.seen = append(k.seen, c)
	}
}

// seeChanged has the changed containers sampled with the next step.
func (k *keeper) seeChanged() {
	for _, c := range k.changed {
		k.see(c)
	}
	k.changed = k.changed[:0]
}

// roundUp is the first time of a look at or after t.
func (r *run) roundUp(t timeline.Time) timeline.Time {
	every := timeline.Time(r.config.Flex.Look)
	return (t + every - 1) / every * every
}

// decideAll steps the managers of all nodes where something has happened.
func (r *run) decideAll() {
	for len(r.awake) > 0 {
		list := r.awake
		r.awake = nil
		for _, k := range list {
			k.awake = false
			r.decide(k)
		}
	}
}

// decide steps a manager and carries out its actions.
func (r *run) decide(k *keeper) {
	if k.gone || r.err != nil {
		return
	}
	r.still++
	if r.now >= k.next {
		r.giveUpOrders(k)
	}
	if r.now >= k.look {
		k.look = timeline.Never
		k.seeChanged()
	}
	in := &k.input
	news := r.now >= k.next || len(k.seen)+len(in.Outcomes)+len(in.Ended) > 0
	r.askAgain(k, news)
	room := r.nodes[k.node].swap + k.promised
	in.Node = &memory.NodeReading{Memory: k.memory, SwapFree: room, SwapFull: room < memory.SwapReserve(k.memory)}
	for _, c := range k.seen {
		r.read(k, c)
	}
	k.seen = k.seen[:0]
	actions := k.manager.Step(r.now, *in)
	*in = memory.Input{Readings: in.Readings[:0], Outcomes: in.Outcomes[:0], Ended: in.Ended[:0],
		Requests: in.Requests[:0]}
	for i := range actions {
		r.carryOut(k, &actions[i])
	}
	k.next = k.manager.Next()
	r.schedule(k)
	if k.holds() != k.reported {
		r.protocol.limitsChanged(k.node)
	}
}

// askAgain repeats the requests of refused containers, once something has changed and they have waited long enough.
func (r *run) askAgain(k *keeper, news bool) {
	waiting := k.refused[:0]
	for _, c := range k.refused {
		if c.worth = c.worth || news; c.worth && r.now >= c.again {
			k.input.Requests = append(k.input.Requests, memory.Request{Envelope: c.envelope})
		} else {
			waiting = append(waiting, c)
		}
	}
	clear(k.refused[len(waiting):])
	k.refused = waiting
}

// schedule puts the next time at which the keeper has something to do on the agenda.
func (r *run) schedule(k *keeper) {
	due := min(k.next, k.look)
	for _, c := range k.refused {
		if c.worth {
			due = min(due, c.again)
		}
	}
	if due == k.due {
		return
	}
	k.due = due
	if due != timeline.Never {
		k.dueTurn = r.agenda.turn()
		r.agenda.pushAt(due, k.dueTurn, kept, int32(k.node))
	}
}

// tick handles the time at which a keeper has something to do.
func (r *run) tick(id cluster.NodeID, i item) {
	if k := r.keepers[id]; k.due == i.at && k.dueTurn == i.seq {
		k.due = timeline.Never
		r.wake(k)
	}
}

// read samples a container.
func (r *run) read(k *keeper, c *container) {
	if !c.admitted || c.out || !c.flex() || c.task.flow == nil || c.task.ended() {
		return
	}
	if c.short() && c.moving == nil && c.task.ending == 0 && r.nodes[k.node].swap > 0 { // swap was full
		r.allocate(c)
	}
	swapped := c.swapped
	if c.wanting() > 0 {
		swapped += page // a page that is on its way out
	}
	k.input.Readings = append(k.input.Readings, memory.Reading{Container: c.id(), Anonymous: c.resident, Swap: swapped,
		SwapTraffic: c.traffic, Pressed: c.short()})
	if c.short() {
		// The container goes on swapping, and the next look is to notice that.
		next := r.now.Add(pagingLook)
		if r.config.Flex.Look > 0 {
			next = r.roundUp(r.now + 1)
		}
		r.lookLater(k, c, next)
	}
}

// carryOut carries out an action of the manager, or begins to.
func (r *run) carryOut(k *keeper, a *memory.Action) {
	r.config.Observers.action(r.now, k.node, a)
	c := r.latest(a.Container.Task).container
	switch a.Kind {
	case memory.Admit:
		if c.out {
			r.comeBack(c)
		} else {
			r.admit(c, a.Limit)
		}
	case memory.Refuse:
		c.again, c.worth = r.now.Add(askAgain), false
		k.refused = append(k.refused, c)
	case memory.Kill:
		r.result.Jobs[c.task.job.index].ManagerKills++
		r.killForMemory(c.task, cluster.Preempted)
	case memory.End:
		r.killForMemory(c.task, cluster.OutOfMemory)
	default:
		r.take(c, *a)
	}
}

// admit lets a container start with the given limit, 0 for its Min.
func (r *run) admit(c *container, limit resource.Amount) {
	r.waited(c)
	c.admitted = true
	r.setLimit(c, max(c.envelope.Min, limit))
	r.config.Observers.container(r.now, c) // the only change of a REGULAR container
	r.agenda.push(r.now, launched, c.task.index)
}

// waited counts how long a container waited for its memory.
func (r *run) waited(c *container) {
	r.result.Jobs[c.task.job.index].WaitedForMemory += r.now.Sub(c.asked)
}

// killForMemory kills a task for memory, as the agent does: Preempted to give its memory to others, after which it runs
// again, and the killed run is no attempt; or OutOfMemory because none can be had for it or another.
func (r *run) killForMemory(t *task, how cluster.Outcome) {
	if t.killing == 0 {
		t.killing = how
	}
	r.agenda.push(r.now.Add(orderTime+r.config.KillDelay), killed, t.index)
}

// giveUpOrders ends orders that have reached their timeout.
func (r *run) giveUpOrders(k *keeper) {
	for _, c := range k.containers {
		if c.order != nil && r.now.Sub(c.order.asked) >= r.parameters.ActionTimeout {
			r.giveUpOrder(c)
		}
	}
}

// letGo removes an ending task from its node's memory manager.
func (r *run) letGo(t *task) {
	c := t.container
	if c == nil {
		return
	}
	k := r.keepers[t.node]
	r.callOff(k, c, overflow, pageOut, fault, prefetch, leave)
	r.nodes[t.node].swap += c.swapped - c.parked
	c.swapped, c.resident, c.set, c.order = 0, 0, 0, nil
	r.stand(c, false)
	if !c.admitted {
		r.waited(c)
	}
	r.setLimit(c, 0)
	is := func(o *container) bool { return o == c }
	k.containers = slices.DeleteFunc(k.containers, is)
	k.changed, k.seen = slices.DeleteFunc(k.changed, is), slices.DeleteFunc(k.seen, is)
	k.input.Ended = append(k.input.Ended, c.id())
	r.unask(k, c)
	t.container = nil
	r.config.Observers.container(r.now, c)
	r.wake(k)
}

// holds is what the containers of a node hold: the sum of their limits, without what they never touched.
func (k *keeper) holds() resource.Amount { return max(0, k.held-k.manager.Untouched()) }

// held is the report of what the containers of a node hold.
func (r *run) held(id cluster.NodeID) cluster.Event {
	k := r.keepers[id]
	k.reported = k.holds()
	return cluster.Event{Kind: cluster.NodeMemory, Node: id, Held: k.reported}
}
