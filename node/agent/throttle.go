package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// throttle is an ordered bound on a container. It is recorded next to spec.json from before it takes effect until after it is
// lifted: after a crash in between, the next agent, or the supervisor if there is none, finishes what was ordered.
type throttle struct {
	Bound resource.Vector `json:"bound"` // zero: the throttle is to end
	Until timeline.Time   `json:"until_ns"`
	// Device is the disk that the kernel bounds, major:minor; empty if it cannot.
	Device string `json:"device,omitempty"`
}

// lasts reports whether the throttle still bounds something at a time.
func (t *throttle) lasts(now timeline.Time) bool { return t.Bound[resource.Disk] > 0 && t.Until > now }

const throttleFile = "throttle.json"

// throttle returns the record of a throttle; ok is false if there is none. A record that cannot be read counts as a throttle
// that is to end.
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
var byDutyCycle = fmt.Sprintf("by stopping it part of the time, checked every %v to %v, because this kernel does not bound buffered writes", dutySoon, dutyLook)

// orderThrottle takes an order to throttle a container.
func (a *Agent) orderThrottle(o cluster.Order) {
	var begun bool
	c, ok := a.order(&o, func(c *container) {
		c.throttles, begun, c.throttled = append(c.throttles, o), c.throttled, true
	})
	switch {
	case !ok:
	case !begun:
		a.begin(func() { a.keepThrottled(c, throttle{}) })
	default:
		select {
		case c.ordered <- struct{}{}:
		default:
		}
	}
}

// takeThrottles returns the orders that have not been carried out. ok is false if there are none and no throttle is in force: then
// the caller need not stay with the container.
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
		if th.Bound != (resource.Vector{}) && !th.lasts(a.clock()) {
			if err := a.lift(c, &th); err != nil && !errors.Is(err, cgroup.ErrGone) {
				a.log.Warn("cannot end a throttle", "container", c.id, "error", err)
			}
			th = throttle{}
		}
		orders, ok := a.takeThrottles(c, th.Bound != resource.Vector{})
		if !ok {
			return
		}
		if last := len(orders) - 1; last >= 0 {
			a.supersede(c.id, orders[:last])
			o := &orders[last]
			th = throttle{Bound: o.Bound, Until: o.At}
			detail, err := a.impose(c, &th)
			switch {
			case a.closed.Err() != nil:
				return // The next agent finds the record.
			case err != nil:
				th = throttle{}
				a.failed(c.id, o.ID, err)
			default:
				a.done(c.id, o.ID, detail)
			}
		}
		if th.lasts(a.clock()) && !a.keepWithin(c, &th) {
			return
		}
	}
}

// impose records a throttle and puts it into effect; detail says how, unless the kernel alone bounds the container. If impose
// fails, the container is not throttled.
func (a *Agent) impose(c *container, th *throttle) (detail string, err error) {
	if th.Bound[resource.Network] > 0 {
		return "", errors.Join(errors.New("this machine cannot bound the network bandwidth of a container"), a.lift(c, th))
	}
	if !th.lasts(a.clock()) {
		return "", a.lift(c, th)
	}
	if !c.spec.heedsOrders() {
		return "", errors.Join(errOldSupervisor, a.lift(c, th))
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
	case err == nil && c.group.BoundsAll():
		return "", nil
	case err != nil:
		th.Device = ""
	}
	// Where the kernel does not bound all transfers, stopping the container part of the time does.
	_, freezes := c.group.Has(cgroup.Freezer)
	_, slows := c.group.Has(cgroup.CPU)
	if !freezes && !slows {
		return "", errors.Join(errors.New("this machine can neither bound the disk bandwidth of a container nor stop the container"), a.lift(c, th))
	}
	if _, err := c.group.Tally(); err != nil {
		return "", errors.Join(fmt.Errorf("bound disk bandwidth: %w", err), a.lift(c, th))
	}
	return byDutyCycle, nil
}

// throttleWithin is how long the kernel may take to set a bound.
const throttleWithin = 10 * time.Second

// lift ends a throttle: first by its record, so that it is ended even if that is interrupted. A full disk has no room for that
// record, but it allows the removal of the old one.
func (a *Agent) lift(c *container, th *throttle) error {
	if recorded, ok := c.dir.throttle(); ok {
		if err := c.dir.put(throttleFile, &throttle{Device: recorded.Device}); err != nil {
			a.log.Warn("cannot record the end of a throttle, ending it", "container", c.id, "error", err)
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

// adoptThrottle finishes the last order of an earlier agent. It returns the throttle that is in force, zero if there is none, and
// how it is carried out.
func (a *Agent) adoptThrottle(c *container) (th throttle, detail string) {
	th, ok := c.dir.throttle()
	if !ok {
		return throttle{}, ""
	}
	c.stance.disk.Device = th.Device
	detail, err := a.impose(c, &th)
	if err != nil {
		a.log.Warn("cannot continue the throttle of a container that was found, lifting it", "container", c.id, "error", err)
		return throttle{}, ""
	}
	return th, detail
}

// keepWithin enforces a throttle until it expires or is replaced, which returns true, or until the container ends or the agent is
// closed, which returns false. In every case the container is no longer stopped by the throttle afterwards.
func (a *Agent) keepWithin(c *container, th *throttle) bool {
	over := time.NewTimer(th.Until.Sub(a.clock()))
	defer over.Stop()
	var looks <-chan time.Time
	var cycle *cycling
	if !c.group.BoundsAll() || th.Device == "" {
		tally, err := c.group.Tally()
		if err == nil {
			cycle = a.newCycling(c, th, tally)
			defer cycle.end()
			looks = cycle.timer.C
		} else if !errors.Is(err, cgroup.ErrGone) {
			a.log.Warn("cannot measure the transfers of a throttled container", "container", c.id, "error", err)
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
	bad   bool // the last change of stance failed
}

func (a *Agent) newCycling(c *container, th *throttle, tally *cgroup.Tally) *cycling {
	timeout := c.spec.Envelope.HeartbeatTimeout
	p := a.config.Memory
	before, _ := tally.Read() // what was transferred before the throttle
	return &cycling{agent: a, c: c, tally: tally, seen: before.Read + before.Written, timer: time.NewTimer(dutySoon),
		dutyCycle: dutyCycle{rate: float64(th.Bound[resource.Disk]), looked: time.Now(), speed: math.Inf(1), longest: timeout / 4, breath: p.BreathOf(timeout)}}
}

// look measures the container, and lets it run or stops it.
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
	// A program that waits for I/O which the kernel delays cannot be frozen meanwhile, and need not be.
	ctx, cancel := context.WithTimeout(y.agent.closed, dutyStill)
	defer cancel()
	err = y.c.change(ctx, y.c.heldByBackOff(does))
	if err != nil && !y.bad && !errors.Is(err, cgroup.ErrGone) && y.agent.closed.Err() == nil {
		y.agent.log.Debug("cannot stop a container, trying again", "container", y.c.id, "error", err)
	}
	y.does, y.bad = does, err != nil
}

// end lets the container run, unless other parties hold it.
func (y *cycling) end() {
	y.timer.Stop()
	y.c.stillUntil.Store(0)
	y.agent.letGo(y.c)
}

// letGo ends the throttle's hold on a container.
func (a *Agent) letGo(c *container) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.closed), throttleWithin)
	defer cancel()
	if err := c.change(ctx, c.heldByBackOff(dutyRun)); err != nil && !errors.Is(err, cgroup.ErrGone) {
		a.log.Warn("cannot resume a throttled container", "container", c.id, "error", err)
	}
}

// heldByBackOff is the change by which the duty cycle of a throttle stops a container, or lets it run or breathe.
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
