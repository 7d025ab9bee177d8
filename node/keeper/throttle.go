package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Throttle is an ordered bound on a container. It is recorded from before it takes effect until after it is lifted:
// after a crash in between, the next keeper, or who looks after the container while there is none, finishes what was
// ordered.
type Throttle struct {
	Bound resource.Vector `json:"bound"` // zero: the throttle is to end
	Until timeline.Time   `json:"until_ns"`
	// Device is the disk that the kernel bounds, major:minor; empty if it cannot.
	Device string `json:"device,omitempty"`
}

// Lasts reports whether the throttle still bounds something at a time.
func (t *Throttle) Lasts(now timeline.Time) bool { return t.Bound[resource.Disk] > 0 && t.Until > now }

// ThrottleOf returns the record of a throttle; ok is false if there is none. A record that cannot be read counts as a
// throttle that is to end.
func ThrottleOf(f Records) (t Throttle, ok bool) {
	err := f.Get(ThrottleRecord, &t)
	if errors.Is(err, fs.ErrNotExist) {
		return Throttle{}, false
	}
	if err != nil {
		return Throttle{}, true
	}
	return t, true
}

// byDutyCycle is how a disk is bounded where the kernel does not bound all transfers.
var byDutyCycle = fmt.Sprintf(
	"by stopping it part of the time, checked every %v to %v, because this kernel does not bound buffered writes",
	dutySoon, dutyLook)

// orderThrottle takes an order to throttle a container.
func (k *Keeper) orderThrottle(c *Container, o cluster.Order) {
	c.ordering.Lock()
	busy := c.throttles.put(o)
	c.ordering.Unlock()
	if !busy {
		k.owner.Go(func() { k.keepThrottled(c, Throttle{}) })
		return
	}
	select {
	case c.ordered <- struct{}{}:
	default:
	}
}

// takeThrottles returns the orders that have not been carried out. ok is false if there are none and no throttle is
// in force: then the caller need not stay with the container.
func (k *Keeper) takeThrottles(c *Container, inForce bool) (orders []cluster.Order, ok bool) {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	return c.throttles.take(inForce)
}

// keepThrottled carries out the throttles of a container, one after another, and stays with the container while one
// is in force. th is in force already; zero means none.
func (k *Keeper) keepThrottled(c *Container, th Throttle) {
	for {
		if th.Bound != (resource.Vector{}) && !th.Lasts(k.config.Clock()) {
			if err := k.lift(c, &th); err != nil && !errors.Is(err, cgroup.ErrGone) {
				k.log.Warn("cannot end a throttle", "container", c.ID, "error", err)
			}
			th = Throttle{}
		}
		orders, ok := k.takeThrottles(c, th.Bound != resource.Vector{})
		if !ok {
			return
		}
		if last := len(orders) - 1; last >= 0 {
			k.supersede(c.ID, orders[:last])
			o := &orders[last]
			th = Throttle{Bound: o.Bound, Until: o.At}
			detail, err := k.impose(c, &th)
			switch {
			case k.closed.Err() != nil:
				return // The next keeper finds the record.
			case err != nil:
				th = Throttle{}
				k.owner.Answer(c.ID, o.ID, "", err)
			default:
				k.owner.Answer(c.ID, o.ID, detail, nil)
			}
		}
		if th.Lasts(k.config.Clock()) && !k.keepWithin(c, &th) {
			return
		}
	}
}

// impose records a throttle and puts it into effect; detail says how, unless the kernel alone bounds the container.
// If impose fails, the container is not throttled.
func (k *Keeper) impose(c *Container, th *Throttle) (detail string, err error) {
	if th.Bound[resource.Network] > 0 {
		return "", errors.Join(errors.New("this machine cannot bound the network bandwidth of a container"), k.lift(c, th))
	}
	if !th.Lasts(k.config.Clock()) {
		return "", k.lift(c, th)
	}
	th.Device = k.config.Disk()
	if err := c.Records.Put(ThrottleRecord, th); err != nil {
		return "", errors.Join(fmt.Errorf("record the throttle: %w", err), k.lift(c, th))
	}
	ctx, cancel := context.WithTimeout(k.closed, throttleWithin)
	defer cancel()
	err = c.change(ctx, func(s *stance) {
		s.disk = cgroup.DiskLimit{Device: th.Device, Rate: cgroup.At(int64(th.Bound[resource.Disk]))}
	})
	switch {
	case errors.Is(err, cgroup.ErrGone) || k.closed.Err() != nil:
		return "", err
	case err == nil && c.Group.BoundsAll():
		return "", nil
	case err != nil:
		th.Device = ""
	}
	// Where the kernel does not bound all transfers, stopping the container part of the time does.
	_, freezes := c.Group.Has(cgroup.Freezer)
	_, slows := c.Group.Has(cgroup.CPU)
	if !freezes && !slows {
		return "", errors.Join(
			errors.New("this machine can neither bound the disk bandwidth of a container nor stop the container"), k.lift(c, th))
	}
	if _, err := c.Group.Tally(); err != nil {
		return "", errors.Join(fmt.Errorf("bound disk bandwidth: %w", err), k.lift(c, th))
	}
	return byDutyCycle, nil
}

// throttleWithin is how long the kernel may take to set a bound.
const throttleWithin = 10 * time.Second

// lift ends a throttle: first by its record, so that it is ended even if that is interrupted. A full disk has no room
// for that record, but it allows the removal of the old one.
func (k *Keeper) lift(c *Container, th *Throttle) error {
	if recorded, ok := ThrottleOf(c.Records); ok {
		if err := c.Records.Put(ThrottleRecord, &Throttle{Device: recorded.Device}); err != nil {
			k.log.Warn("cannot record the end of a throttle, ending it", "container", c.ID, "error", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.closed), throttleWithin)
	defer cancel()
	err := c.change(ctx, func(s *stance) {
		s.still &^= ByBackOff
		if s.disk.Device != "" {
			s.disk.Rate = cgroup.Unlimited()
		}
	})
	if err != nil {
		return fmt.Errorf("lift the bound: %w", err)
	}
	*th = Throttle{}
	return c.Records.Remove(ThrottleRecord)
}

// adoptThrottle finishes the last order of an earlier keeper. It returns the throttle that is in force, zero if there
// is none, and how it is carried out.
func (k *Keeper) adoptThrottle(c *Container) (th Throttle, detail string) {
	th, ok := ThrottleOf(c.Records)
	if !ok {
		return Throttle{}, ""
	}
	c.stance.disk.Device = th.Device
	detail, err := k.impose(c, &th)
	if err != nil {
		k.log.Warn("cannot continue the throttle of a container that was found, lifting it", "container", c.ID, "error", err)
		return Throttle{}, ""
	}
	return th, detail
}

// keepWithin enforces a throttle until it expires or is replaced, which returns true, or until the container ends or
// the keeper is closed, which returns false. In every case the container is no longer stopped by the throttle
// afterwards.
func (k *Keeper) keepWithin(c *Container, th *Throttle) bool {
	over := time.NewTimer(th.Until.Sub(k.config.Clock()))
	defer over.Stop()
	var looks <-chan time.Time
	var cycle *cycling
	if !c.Group.BoundsAll() || th.Device == "" {
		tally, err := c.Group.Tally()
		if err == nil {
			cycle = k.newCycling(c, th, tally)
			defer cycle.end()
			looks = cycle.timer.C
		} else if !errors.Is(err, cgroup.ErrGone) {
			k.log.Warn("cannot measure the transfers of a throttled container", "container", c.ID, "error", err)
		}
	}
	for {
		select {
		case <-over.C:
			return true
		case <-c.ordered:
			return true
		case <-c.Ending:
			return false
		case <-c.Gone:
			return false
		case <-k.closed.Done():
			return false
		case <-looks:
			cycle.look()
		}
	}
}

// cycling is the duty cycle of a container.
type cycling struct {
	dutyCycle
	keeper *Keeper
	c      *Container
	tally  *cgroup.Tally
	seen   int64 // bytes, by the tally
	timer  *time.Timer
	does   duty
	bad    bool // the last change of stance failed
}

func (k *Keeper) newCycling(c *Container, th *Throttle, tally *cgroup.Tally) *cycling {
	timeout := c.Envelope.HeartbeatTimeout
	p := k.config.Memory
	before, _ := tally.Read() // what was transferred before the throttle
	return &cycling{keeper: k, c: c, tally: tally, seen: before.Read + before.Written, timer: time.NewTimer(dutySoon),
		dutyCycle: dutyCycle{rate: float64(th.Bound[resource.Disk]), looked: time.Now(), speed: math.Inf(1),
			longest: timeout / 4, breath: p.BreathOf(timeout)}}
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
		until = int64(SinceBoot() + wait)
	}
	y.c.stillUntil.Store(until)
	if does == y.does && !y.bad {
		return
	}
	// A program that waits for I/O which the kernel delays cannot be frozen meanwhile, and need not be.
	ctx, cancel := context.WithTimeout(y.keeper.closed, dutyStill)
	defer cancel()
	err = does.of(ctx, y.c)
	if err != nil && !y.bad && !errors.Is(err, cgroup.ErrGone) && y.keeper.closed.Err() == nil {
		y.keeper.log.Debug("cannot stop a container, trying again", "container", y.c.ID, "error", err)
	}
	y.does, y.bad = does, err != nil
}

// end lets the container run, unless other parties hold it.
func (y *cycling) end() {
	y.timer.Stop()
	y.c.stillUntil.Store(0)
	y.keeper.letGo(y.c)
}

// letGo ends the throttle's hold on a container.
func (k *Keeper) letGo(c *Container) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.closed), throttleWithin)
	defer cancel()
	if err := c.Release(ctx, ByBackOff); err != nil && !errors.Is(err, cgroup.ErrGone) {
		k.log.Warn("cannot resume a throttled container", "container", c.ID, "error", err)
	}
}

// of has the duty cycle of a throttle stop a container, or let it run or breathe.
func (does duty) of(ctx context.Context, c *Container) error {
	switch does {
	case dutyStand:
		return c.Stop(ctx, ByBackOff)
	case dutyBreathe:
		return c.Breathe(ctx, ByBackOff)
	}
	return c.Release(ctx, ByBackOff)
}

// SinceBoot returns the time since the machine started, including the time when it was suspended.
func SinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("read the time since the machine started: %v", err)) // Linux has had this clock since 2.6.39.
	}
	return time.Duration(t.Nano())
}
