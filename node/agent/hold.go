package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// engineHold says for which holders the engine has stopped a container. It is recorded next to spec.json from before the container
// stops until after it runs again: the next agent keeps the container stopped, and so does the supervisor while there is none, but
// for the owner alone. The zero engineHold is none.
type engineHold struct {
	By cluster.Holders
	// Until is when leveling ends its hold, and For is the task that keeps going because of it; zero without leveling.
	Until timeline.Time
	For   cluster.TaskID
}

// holdRecord is how an engineHold is recorded. By leaves leveling out, which holds the container if Until is set: a supervisor of
// an earlier release knows the owner only.
type holdRecord struct {
	By    cluster.Holders `json:"by"`
	Until timeline.Time   `json:"until_ns,omitempty"`
	For   cluster.TaskID  `json:"for,omitzero"`
}

// levelingGrace is how much longer than it should leveling holds a container that the engine does not resume: its daemon hangs, or
// the order was lost.
const levelingGrace = 5 * time.Second

// holdOf returns the hold that an order demands.
func holdOf(o *cluster.Order) engineHold {
	if o.By&cluster.HeldByLeveling == 0 {
		return engineHold{By: o.By}
	}
	return engineHold{By: o.By, Until: o.At, For: o.For}
}

// levels reports whether leveling is among the holders.
func (h *engineHold) levels() bool { return h.By&cluster.HeldByLeveling != 0 }

// overdue reports whether leveling should have ended its hold some time before now.
func (h *engineHold) overdue(now timeline.Time, by time.Duration) bool {
	return h.levels() && h.Until.Add(by) <= now
}

const holdFile = "hold.json"

// holdWithin is how long the kernel may take to freeze or thaw a container.
const holdWithin = 10 * time.Second

// hold returns the record of a hold; ok is false if there is none, or it cannot be read.
func (f folder) hold() (h engineHold, ok bool) {
	var r holdRecord
	if err := f.get(holdFile, &r); err != nil {
		return engineHold{}, false
	}
	if h = engineHold(r); h.Until != 0 {
		h.By |= cluster.HeldByLeveling
	}
	return h, h.By != 0
}

// putHold records a hold.
func (f folder) putHold(h engineHold) error {
	r := holdRecord(h)
	r.By &^= cluster.HeldByLeveling
	return f.put(holdFile, &r)
}

// orderHold accepts an order to stop a container or to let it run.
func (a *Agent) orderHold(o cluster.Order) {
	var begun bool
	c, ok := a.order(&o, func(c *container) {
		c.holds, begun, c.holding = append(c.holds, o), c.holding, true
	})
	if ok && !begun {
		a.begin(func() { a.carryOutHolds(c) })
	}
}

// takeHolds returns the orders to stop or to run that have not been carried out. ok is false if nothing is to be done.
func (a *Agent) takeHolds(c *container) (orders []cluster.Order, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	orders, c.holds = c.holds, nil
	ok = len(orders) > 0 || c.overdue
	c.holding, c.overdue = ok, false
	return orders, ok
}

// carryOutHolds carries out the last of the waiting orders to stop or to run; the others are superseded. It ends a hold of leveling
// that is overdue.
func (a *Agent) carryOutHolds(c *container) {
	for orders, ok := a.takeHolds(c); ok; orders, ok = a.takeHolds(c) {
		last := len(orders) - 1
		a.supersede(c.id, orders[:max(0, last)])
		select {
		case <-c.killed:
			return // Its end answers the order. A frozen process would not see that it is to end.
		default:
		}
		if last >= 0 {
			a.carryOutHold(c, &orders[last])
		}
		a.endLeveling(c)
		if a.closed.Err() != nil {
			return // The next agent finds the record.
		}
	}
}

// carryOutHold carries out an order to stop or to run, and answers it.
func (a *Agent) carryOutHold(c *container, o *cluster.Order) {
	err := a.holdFor(c, holdOf(o))
	if err == nil && a.closed.Err() == nil {
		a.wantOut(c, o.PageOut)
	}
	a.answer(c.id, o.ID, err)
}

// endLeveling ends the hold of leveling if it is overdue, and otherwise looks again when it will be. The engine ends it in time; that
// the container does not stay stopped must not depend on the engine.
func (a *Agent) endLeveling(c *container) {
	h := c.heldForEngine()
	if h.overdue(a.clock(), levelingGrace) {
		a.log.Warn("resuming a container that leveling should have let go on", "container", c.id, "until", time.Unix(0, int64(h.Until)))
		err := a.holdFor(c, engineHold{By: h.By &^ cluster.HeldByLeveling})
		if err == nil || errors.Is(err, cgroup.ErrGone) || a.closed.Err() != nil {
			return
		}
		a.log.Warn("cannot resume a container", "container", c.id, "error", err)
	}
	if h.levels() {
		a.expectEnd(c, h.Until)
	}
}

// expectEnd looks, some time after leveling should have ended its hold of a container, whether it has.
func (a *Agent) expectEnd(c *container, until timeline.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.expects != nil {
		c.expects.Stop()
	}
	c.expects = time.AfterFunc(max(until.Add(levelingGrace).Sub(a.clock()), time.Second), func() { a.overdue(c) })
}

// overdue has the hold of leveling ended, if it is overdue.
func (a *Agent) overdue(c *container) {
	a.mu.Lock()
	begun, here := c.holding, a.containers[c.id] == c
	c.holding, c.overdue = true, true
	a.mu.Unlock()
	if here && !begun {
		a.begin(func() { a.carryOutHolds(c) })
	}
}

// holdFor stops a container for the given holders of the engine; with none only the holders of this machine can keep it stopped. If
// holdFor fails, the container is as before.
func (a *Agent) holdFor(c *container, h engineHold) error {
	ctx, cancel := context.WithTimeout(a.closed, holdWithin)
	defer cancel()
	if h.By == 0 {
		if err := c.change(ctx, c.heldByEngine(engineHold{})); err != nil {
			return fmt.Errorf("resume the container: %w", err)
		}
		a.tellStillness(c)
		return durable.RemoveAll(c.dir.path(holdFile))
	}
	if !c.spec.heedsOrders() {
		return errOldSupervisor
	}
	_, freezes := c.group.Has(cgroup.Freezer)
	if _, slows := c.group.Has(cgroup.CPU); !freezes && !slows {
		return errors.New("this machine has no control group that can stop a container")
	}
	before := c.heldForEngine()
	if err := c.dir.putHold(h); err != nil {
		return fmt.Errorf("record that the container is paused: %w", err)
	}
	if err := c.change(ctx, c.heldByEngine(h)); err != nil {
		err = fmt.Errorf("pause the container: %w", err)
		if before.By != 0 {
			return errors.Join(err, c.dir.putHold(before))
		}
		return errors.Join(err, durable.RemoveAll(c.dir.path(holdFile)))
	}
	a.tellStillness(c)
	if c.beginsToBreathe() {
		a.begin(func() { a.breatheWhileHeld(c) })
	}
	return nil
}

// beginsToBreathe reports whether the programs of a held container send heartbeats, and no goroutine lets it breathe yet.
func (c *container) beginsToBreathe() bool {
	c.changing.Lock()
	defer c.changing.Unlock()
	begins := c.spec.Envelope.HeartbeatTimeout > 0 && !c.breathing
	c.breathing = c.breathing || begins
	return begins
}

// stopsBreathing reports whether the engine no longer holds a container, so that its goroutine for breaths can end.
func (c *container) stopsBreathing() bool {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.breathing = c.stance.engine.By != 0
	return !c.breathing
}

// breatheWhileHeld lets a container run for a moment, again and again, so that its programs can send heartbeats, for as long
// as the engine holds it. It also ends a breath when the agent is closed.
func (a *Agent) breatheWhileHeld(c *container) {
	timeout := c.spec.Envelope.HeartbeatTimeout
	breathe := func(does bool) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.closed), holdWithin)
		defer cancel()
		err := c.change(ctx, func(s *stance) {
			if s.breaths &^= byEngine; does {
				s.breaths |= byEngine
			}
		})
		if err != nil && !errors.Is(err, cgroup.ErrGone) {
			a.log.Warn("cannot let a paused container breathe", "container", c.id, "error", err)
		}
	}
	for a.stays(c, timeout/4) && !c.stopsBreathing() {
		breathe(true)
		a.stays(c, a.config.Memory.BreathOf(timeout))
		breathe(false)
	}
}

// stays waits for a time, and reports whether the container and the agent are still there then.
func (a *Agent) stays(c *container, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.killed:
	case <-c.gone:
	case <-a.closed.Done():
	}
	return false
}

// heldForEngine returns the hold by which the engine has stopped the container.
func (c *container) heldForEngine() engineHold {
	c.changing.Lock()
	defer c.changing.Unlock()
	return c.stance.engine
}

// heldByEngine is the change that stops a container for holders of the engine; with none it ends their hold.
func (c *container) heldByEngine(h engineHold) func(*stance) {
	_, slows := c.group.Has(cgroup.CPU)
	return func(s *stance) {
		s.engine = h
		if s.still &^= byEngine; h.By != 0 {
			s.still |= byEngine
		}
		s.slows = slows && c.spec.Envelope.HeartbeatTimeout > 0
	}
}

// adoptHold stops a container that was found for the holders in its record.
func (a *Agent) adoptHold(c *container) {
	h, ok := c.dir.hold()
	if !ok {
		return
	}
	if err := a.holdFor(c, h); err != nil {
		a.log.Warn("cannot keep a container paused that was found", "container", c.id, "error", err)
	}
}

// stillness is what is reported to the engine of a container: the holders for which it is stopped.
type stillness struct {
	mu     sync.Mutex
	memory bool // the memory manager has stopped it
	told   cluster.Holders
	quiet  bool // nothing is reported yet: the inventory will report it
}

// tellStillness reports for which holders a container is stopped, if that has changed.
func (a *Agent) tellStillness(c *container) {
	s := &c.stillness
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.heldForEngine().By
	if s.memory || now == 0 && c.isOut() { // it is paused no more, and waits for its memory
		now |= cluster.HeldByMemory
	}
	if now == s.told {
		return
	}
	s.told = now
	if s.quiet {
		return
	}
	e := cluster.Event{Kind: cluster.TaskStill, Task: c.id.Task, Run: c.id.Run, By: now}
	if now == 0 {
		e.Kind = cluster.TaskGoesOn
	}
	a.events.put(e)
}

// heldByMemoryNow records whether the memory manager has stopped a container, and reports it.
func (a *Agent) heldByMemoryNow(c *container, is bool) {
	c.stillness.mu.Lock()
	c.stillness.memory = is
	c.stillness.mu.Unlock()
	a.tellStillness(c)
}
