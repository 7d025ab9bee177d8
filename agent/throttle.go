package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/bellows-rm/bellows/cgroup"
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// throttle is a bound on a container as it was ordered. It is recorded beside spec.json before it takes effect, and until
// its effect is taken back: after a crash in between, the next agent, or the supervisor if there is none, finishes what
// was ordered.
type throttle struct {
	Bound resource.Vector `json:"bound"` // zero: it is to end
	Until timeline.Time   `json:"until_ns"`
	// Device is the disk that the kernel bounds, major:minor; empty if it cannot.
	Device string `json:"device,omitempty"`
}

// lasts reports whether the throttle still bounds something.
func (t *throttle) lasts() bool { return t.Bound[resource.Disk] > 0 && t.Until > now() }

const throttleFile = "throttle.json"

// throttle returns the record of a throttle; ok is false if there is none. A record that cannot be read is one that is to
// end: what it bounded is bounded no more.
func (f folder) throttle() (t throttle, ok bool) {
	err := f.get(throttleFile, &t)
	if errors.Is(err, fs.ErrNotExist) {
		return throttle{}, false
	}
	if err != nil {
		return throttle{}, true
	}
	return t, true
}

// byDutyCycle is how a disk is bounded where the kernel does not bound all transfers.
var byDutyCycle = fmt.Sprintf("by standing still part of the time, looked at every %v to %v, because this kernel does not bound buffered writes", dutySoon, dutyLook)

// orderThrottle takes an order to throttle a container. The end of a container answers its orders: there is nothing to
// do for one that is not there.
func (a *Agent) orderThrottle(o cluster.Order) {
	a.mu.Lock()
	c := a.containers[o.Container]
	if c == nil {
		a.mu.Unlock()
		return
	}
	if c.group == nil {
		a.mu.Unlock()
		a.failed(c.id, o.ID, errors.New("the container has not started"))
		return
	}
	c.throttles = append(c.throttles, o)
	begun := c.throttled
	c.throttled = true
	a.mu.Unlock()
	if !begun {
		a.begin(func() { a.keepThrottled(c, throttle{}) })
		return
	}
	select {
	case c.ordered <- struct{}{}:
	default:
	}
}

// takeThrottles returns the orders that have not been carried out; ok is false if there are none and the caller, who has
// nothing in force, need not stay with the container.
func (a *Agent) takeThrottles(c *container, inForce bool) (orders []cluster.Order, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	orders, c.throttles = c.throttles, nil
	c.throttled = inForce || len(orders) > 0
	return orders, c.throttled
}

// keepThrottled carries out the throttles of a container, one after another, and stays with the container while one is in
// force. th is in force already; zero is none.
func (a *Agent) keepThrottled(c *container, th throttle) {
	for {
		if th.Bound != (resource.Vector{}) && !th.lasts() {
			if err := a.lift(c, &th); err != nil && !errors.Is(err, cgroup.ErrGone) {
				a.log.Warn("cannot end a throttle", "container", c.id, "error", err)
			}
			th = throttle{}
		}
		orders, ok := a.takeThrottles(c, th.Bound != resource.Vector{})
		if !ok {
			return
		}
		for i := range orders {
			o := &orders[i]
			if i < len(orders)-1 {
				a.events.put(cluster.Event{Kind: cluster.DecisionSuperseded, Task: c.id.Task, Run: c.id.Run, Decision: o.ID})
				continue
			}
			th = throttle{Bound: o.Bound, Until: o.At}
			detail, err := a.impose(c, &th)
			if a.closed.Err() != nil {
				return // The next agent finds the record.
			}
			if err != nil {
				th = throttle{}
				a.failed(c.id, o.ID, err)
				continue
			}
			a.events.put(cluster.Event{Kind: cluster.DecisionDone, Task: c.id.Task, Run: c.id.Run, Decision: o.ID, Detail: detail})
		}
		if th.lasts() && !a.keepWithin(c, &th) {
			return
		}
	}
}

// impose records a throttle and makes it take effect; detail says how, if that is not by the kernel alone. If it fails,
// the container is not throttled.
func (a *Agent) impose(c *container, th *throttle) (detail string, err error) {
	if th.Bound[resource.Network] > 0 {
		return "", errors.Join(errors.New("this machine cannot bound the network bandwidth of a container"), a.lift(c, th))
	}
	if !th.lasts() {
		return "", a.lift(c, th)
	}
	th.Device = a.device()
	if err := c.dir.put(throttleFile, th); err != nil {
		return "", errors.Join(fmt.Errorf("record the throttle: %w", err), a.lift(c, th))
	}
	ctx, cancel := context.WithTimeout(a.closed, throttleWithin)
	defer cancel()
	err = c.change(ctx, func(s *stance) {
		s.disk = cgroup.DiskLimit{Device: th.Device, Rate: cgroup.At(int64(th.Bound[resource.Disk]))}
	})
	switch {
	case errors.Is(err, cgroup.ErrGone) || a.closed.Err() != nil:
		return "", err
	case err == nil && boundsAll(c.group):
		return "", nil
	case err != nil:
		th.Device = ""
	}
	// What the kernel does not bound is kept within the bound by standing still.
	_, freezes := c.group.Has(cgroup.Freezer)
	_, slows := c.group.Has(cgroup.CPU)
	if !freezes && !slows {
		return "", errors.Join(errors.New("this machine can neither bound the disk bandwidth of a container nor make it stand still"), a.lift(c, th))
	}
	if _, err := c.group.Tally(); err != nil {
		return "", errors.Join(fmt.Errorf("bound disk bandwidth: %w", err), a.lift(c, th))
	}
	return byDutyCycle, nil
}

// throttleWithin is how long the kernel may take to set a bound.
const throttleWithin = 10 * time.Second

// boundsAll reports whether the kernel bounds and counts all that a group transfers: version 2 knows whose pages it writes, if it
// counts memory in the same hierarchy.
func boundsAll(g *cgroup.Group) bool {
	io, _ := g.Has(cgroup.IO)
	memory, _ := g.Has(cgroup.Memory)
	return io == cgroup.V2 && memory == cgroup.V2
}

// lift ends a throttle: first by its record, so that it is ended even if that is interrupted.
func (a *Agent) lift(c *container, th *throttle) error {
	if recorded, ok := c.dir.throttle(); ok {
		if err := c.dir.put(throttleFile, &throttle{Device: recorded.Device}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.closed), throttleWithin)
	defer cancel()
	err := c.change(ctx, func(s *stance) {
		s.still &^= byBackOff
		if s.disk.Device != "" {
			s.disk.Rate = cgroup.Unlimited()
		}
	})
	if err != nil {
		return fmt.Errorf("lift the bound: %w", err)
	}
	*th = throttle{}
	return durable.RemoveAll(c.dir.path(throttleFile))
}

// adoptThrottle finishes what an earlier agent was ordered to do to a container. The result is the throttle that lasts,
// zero if there is none, and how it is carried out.
func (a *Agent) adoptThrottle(c *container) (th throttle, detail string) {
	th, ok := c.dir.throttle()
	if !ok {
		return throttle{}, ""
	}
	c.stance.disk.Device = th.Device
	detail, err := a.impose(c, &th)
	if err != nil {
		a.log.Warn("the throttle of a container that was found is undone", "container", c.id, "error", err)
		return throttle{}, ""
	}
	return th, detail
}

// keepWithin stays with a throttled container until its throttle is over or another one is ordered; it returns false if
// the container ends, or the agent. Whatever it returns for, it leaves nothing standing still.
func (a *Agent) keepWithin(c *container, th *throttle) bool {
	over := time.NewTimer(th.Until.Sub(now()))
	defer over.Stop()
	var looks <-chan time.Time
	var cycle *cycling
	if !boundsAll(c.group) || th.Device == "" {
		tally, err := c.group.Tally()
		if err == nil {
			cycle = a.newCycling(c, th, tally)
			defer cycle.end()
			looks = cycle.timer.C
		} else if !errors.Is(err, cgroup.ErrGone) {
			a.log.Warn("cannot see what a throttled container transfers", "container", c.id, "error", err)
		}
	}
	for {
		select {
		case <-over.C:
			return true
		case <-c.ordered:
			return true
		case <-c.killed:
			return false
		case <-c.gone:
			return false
		case <-a.closed.Done():
			return false
		case <-looks:
			cycle.look()
		}
	}
}

// cycling is the duty cycle of a container.
type cycling struct {
	dutyCycle
	agent *Agent
	c     *container
	tally *cgroup.Tally
	seen  int64 // bytes, by the tally
	timer *time.Timer
	does  duty
	bad   bool // the last change failed
}

func (a *Agent) newCycling(c *container, th *throttle, tally *cgroup.Tally) *cycling {
	timeout := c.spec.Envelope.HeartbeatTimeout
	p := a.config.Memory
	before, _ := tally.Read() // what was transferred before the throttle
	return &cycling{agent: a, c: c, tally: tally, seen: before.Read + before.Written, timer: time.NewTimer(dutySoon),
		dutyCycle: dutyCycle{rate: float64(th.Bound[resource.Disk]), looked: time.Now(), speed: math.Inf(1), longest: timeout / 4, breath: p.BreathOf(timeout)}}
}

// look measures the container and lets it run or stand still.
func (y *cycling) look() {
	has, err := y.tally.Read()
	bytes := has.Read + has.Written
	if err != nil {
		y.timer.Reset(dutyStill) // It is about to end.
		return
	}
	does, wait := y.next(time.Now(), bytes-y.seen)
	y.seen = bytes
	y.timer.Reset(wait)
	until := int64(0)
	if does == dutyStand {
		until = int64(sinceBoot() + wait)
	}
	y.c.stillUntil.Store(until)
	if does == y.does && !y.bad {
		return
	}
	// A program that waits for I/O which the kernel holds back cannot be frozen meanwhile; it need not be, either.
	ctx, cancel := context.WithTimeout(y.agent.closed, dutyStill)
	defer cancel()
	err = y.c.change(ctx, y.c.heldByBackOff(does))
	if err != nil && !y.bad && !errors.Is(err, cgroup.ErrGone) && y.agent.closed.Err() == nil {
		y.agent.log.Debug("cannot let a container stand still, trying again", "container", y.c.id, "error", err)
	}
	y.does, y.bad = does, err != nil
}

// end lets the container run, unless others hold it.
func (y *cycling) end() {
	y.timer.Stop()
	y.c.stillUntil.Store(0)
	y.agent.letGo(y.c)
}

// letGo ends what the back-off wants of a container.
func (a *Agent) letGo(c *container) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.closed), throttleWithin)
	defer cancel()
	if err := c.change(ctx, c.heldByBackOff(dutyRun)); err != nil && !errors.Is(err, cgroup.ErrGone) {
		a.log.Warn("cannot let a container run on", "container", c.id, "error", err)
	}
}

// heldByBackOff is the change by which the back-off makes a container stand still, run, or breathe.
func (c *container) heldByBackOff(does duty) func(*stance) {
	_, slows := c.group.Has(cgroup.CPU)
	return func(s *stance) {
		s.still &^= byBackOff
		if does == dutyStand {
			s.still |= byBackOff
		}
		s.breaths &^= byBackOff
		if does == dutyBreathe {
			s.breaths |= byBackOff
		}
		s.slows = slows && c.spec.Envelope.HeartbeatTimeout > 0
	}
}

// overdue is how long after a container should have run on the audit lets it.
const overdue = 30 * time.Second

// auditStillness lets containers run on that have stood still for longer than the back-off had reason for. It is the
// safety net below a goroutine that hangs.
func (k *keeper) auditStillness(there map[cluster.ContainerID]*container) {
	for id, c := range there {
		until := time.Duration(c.stillUntil.Load())
		if until == 0 || sinceBoot() < until+overdue || !c.stillUntil.CompareAndSwap(int64(until), 0) {
			continue
		}
		k.mended.Add(1)
		k.agent.log.Error("a throttled container stood still for too long, and runs on", "container", id)
		k.agent.begin(func() { k.agent.letGo(c) })
	}
}
