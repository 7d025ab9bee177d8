package keeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// byDutyCycle is how a disk is bounded where the kernel does not bound all transfers.
var byDutyCycle = fmt.Sprintf(
	"by stopping it part of the time, checked every %v to %v, because this kernel does not bound buffered writes",
	dutySoon, dutyLook)

// keeping is a goroutine that stays with a container while a bound is in force.
type keeping struct {
	stop func()
	done chan struct{}
}

// Bound gives a container another bound in place of the one that it has; detail says how, unless the kernel alone
// bounds the container. If Bound fails, the container is not bounded.
func (k *Keeper) Bound(c *Container, b cluster.Bound) (detail string, err error) {
	k.stopKeeping(c)
	detail, err = k.impose(c, b)
	if err == nil && b.Lasts(k.config.Clock()) {
		k.keepBound(c, b)
	}
	return detail, err
}

// keepBound begins a goroutine that stays with a container while a bound is in force, and lifts it in time.
func (k *Keeper) keepBound(c *Container, b cluster.Bound) {
	ctx, stop := context.WithCancel(k.closed)
	mine := &keeping{stop: stop, done: make(chan struct{})}
	c.ordering.Lock()
	c.keeping = mine
	c.ordering.Unlock()
	k.owner.Go(func() {
		defer close(mine.done)
		defer stop()
		if !k.keepWithin(ctx, c, b) {
			return // Of a container that is to end, Wake lifts the bound.
		}
		if err := k.lift(c); err != nil && !errors.Is(err, cgroup.ErrGone) {
			k.log.Warn("cannot end a throttle", "container", c.ID, "error", err)
		}
		c.ordering.Lock()
		defer c.ordering.Unlock()
		if c.keeping == mine {
			c.keeping = nil
		}
	})
}

// stopKeeping ends the goroutine that stays with a container for its bound, if there is one, and waits for it.
func (k *Keeper) stopKeeping(c *Container) {
	c.ordering.Lock()
	last := c.keeping
	c.keeping = nil
	c.ordering.Unlock()
	if last == nil {
		return
	}
	last.stop()
	select {
	case <-last.done:
	case <-k.closed.Done(): // then it may never have begun
	}
}

// impose records a bound and puts it into effect; detail says how, unless the kernel alone bounds the container. If
// impose fails, the container is not bounded.
func (k *Keeper) impose(c *Container, b cluster.Bound) (detail string, err error) {
	if b.Most[resource.Network] > 0 {
		return "", errors.Join(errors.New("this machine cannot bound the network bandwidth of a container"), k.lift(c))
	}
	if !b.Lasts(k.config.Clock()) {
		return "", k.lift(c)
	}
	device := k.config.Disk()
	if err := c.put(func(r *Record) { r.Bound, r.Device = b, device }); err != nil {
		return "", errors.Join(fmt.Errorf("record the throttle: %w", err), k.lift(c))
	}
	ctx, cancel := context.WithTimeout(k.closed, throttleWithin)
	defer cancel()
	err = c.change(ctx, func(s *stance) { s.disk = diskLimit(device, b) })
	switch {
	case errors.Is(err, cgroup.ErrGone) || k.closed.Err() != nil:
		return "", err
	case err == nil && c.Group.BoundsAll():
		return "", nil
	}
	// Where the kernel does not bound all transfers, stopping the container part of the time does.
	_, freezes := c.Group.Has(cgroup.Freezer)
	_, slows := c.Group.Has(cgroup.CPU)
	if !freezes && !slows {
		return "", errors.Join(
			errors.New("this machine can neither bound the disk bandwidth of a container nor stop the container"), k.lift(c))
	}
	if _, err := c.Group.Tally(); err != nil {
		return "", errors.Join(fmt.Errorf("bound disk bandwidth: %w", err), k.lift(c))
	}
	return byDutyCycle, nil
}

// diskLimit is what a bound makes the kernel do with a disk.
func diskLimit(device string, b cluster.Bound) cgroup.DiskLimit {
	return cgroup.DiskLimit{Device: device, Rate: cgroup.At(int64(b.Most[resource.Disk]))}
}

// kernelBounds reports whether the kernel alone keeps a container within a bound.
func (c *Container) kernelBounds(b cluster.Bound) bool {
	is := c.posture.now().disk
	return c.Group.BoundsAll() && is.Device != "" && is == diskLimit(is.Device, b)
}

// throttleWithin is how long the kernel may take to set a bound.
const throttleWithin = 10 * time.Second

// lift ends a bound: first by its record, so that it is ended even if that is interrupted. Where a new record has no
// room on a full disk, it may have room once the bound is lifted.
func (k *Keeper) lift(c *Container) error {
	if err := c.put(func(r *Record) { r.Bound = cluster.Bound{} }); err != nil {
		k.log.Warn("cannot record the end of a throttle, ending it", "container", c.ID, "error", err)
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
	return c.put(func(r *Record) { r.Bound, r.Device = cluster.Bound{}, "" })
}

// adoptBound finishes the last order of an earlier keeper. It returns the bound that is in force, zero if there is
// none, and how it is carried out.
func (k *Keeper) adoptBound(c *Container) (b cluster.Bound, detail string) {
	r := c.Recorded()
	if r.Device == "" && r.Bound == (cluster.Bound{}) {
		return cluster.Bound{}, ""
	}
	c.posture.adopt(func(s *stance) { s.disk.Device = r.Device })
	detail, err := k.impose(c, r.Bound)
	if err != nil {
		k.log.Warn("cannot continue the throttle of a container that was found, lifting it", "container", c.ID, "error", err)
		return cluster.Bound{}, ""
	}
	return c.Recorded().Bound, detail
}

// keepWithin enforces a bound until it is over, which returns true, or until ctx or the container ends, which returns
// false. In every case the container is no longer stopped by the bound afterwards.
func (k *Keeper) keepWithin(ctx context.Context, c *Container, b cluster.Bound) bool {
	over := time.NewTimer(b.Until.Sub(k.config.Clock()))
	defer over.Stop()
	var looks <-chan time.Time
	var cycle *cycling
	if !c.kernelBounds(b) {
		tally, err := c.Group.Tally()
		if err == nil {
			cycle = k.newCycling(c, b, tally)
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
		case <-c.Ending:
			return false
		case <-c.Gone:
			return false
		case <-ctx.Done():
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

func (k *Keeper) newCycling(c *Container, b cluster.Bound, tally *cgroup.Tally) *cycling {
	timeout := c.Envelope.HeartbeatTimeout
	p := k.config.Memory
	before, _ := tally.Read() // what was transferred before the throttle
	return &cycling{keeper: k, c: c, tally: tally, seen: before.Read + before.Written, timer: time.NewTimer(dutySoon),
		dutyCycle: dutyCycle{rate: float64(b.Most[resource.Disk]), looked: time.Now(), speed: math.Inf(1),
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
