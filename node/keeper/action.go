package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// headStart does at once, in the keeper's thread, the part of an action that is quick in the kernel and ends the
// shortage. Act, in a goroutine that may wait for a core, repeats it with everything else that the action needs,
// and reports the result.
func (k *Keeper) headStart(c *Container, e memory.Envelope, act memory.Action) {
	if !c.acting.TryLock() {
		return
	}
	defer c.acting.Unlock()
	if c.isOut() {
		return
	}
	switch act.Kind {
	case memory.Grow:
		c.hasten(k.closed, func(s *stance) { s.raise = act.Limit })
	case memory.Suspend:
		c.hasten(k.closed, c.heldByMemory(e))
	}
}

// Act carries out one action of the memory manager in the container's control group, and returns the limit in force
// afterwards, 0 if that is unknown.
func (k *Keeper) Act(ctx context.Context, c *Container, e memory.Envelope, act memory.Action) (limit resource.Amount,
	err error) {
	c.acting.Lock()
	defer c.acting.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err // The manager has given it up and may have ordered the opposite, which may be carried out already.
	}
	if act.Kind != memory.Kill && act.Kind != memory.End && c.isOut() {
		return 0, errOut
	}
	switch act.Kind {
	case memory.Grow:
		err = SetMemory(ctx, c.Group, act.Limit)
		if err == nil && act.Suspended {
			k.prefetch(ctx, c.Group, act.Limit)
		}
		return limitOf(c.Group), err
	case memory.Shrink:
		err = k.shrink(ctx, c, e, act)
		return limitOf(c.Group), err
	case memory.Suspend:
		return 0, k.suspend(ctx, c, e)
	case memory.Resume:
		return 0, k.resume(ctx, c)
	case memory.Breathe:
		return 0, k.breathe(ctx, c, e)
	case memory.Kill:
		k.owner.Preempt(c.ID, act.Reason.Words())
		return 0, nil
	case memory.End:
		k.owner.Starve(c.ID, act.Reason.Words())
		return 0, nil
	}
	return 0, fmt.Errorf("action %v: unknown", act.Kind)
}

// limitOf returns the limit in force, 0 if that is unknown.
func limitOf(g *cgroup.Group) resource.Amount {
	limit, ok := g.MemoryLimit().Get()
	if !ok || limit == cgroup.NoLimit {
		return 0
	}
	return resource.Amount(limit)
}

// prefetch reads swapped memory back, if all of it fits: faster than the programs' faults would. A failure does no
// harm, and prefetching may not take longer than the faults would. It returns false if the limit has no room for it.
func (k *Keeper) prefetch(ctx context.Context, g *cgroup.Group, limit resource.Amount) (done bool) {
	r, err := g.Read()
	if err != nil {
		return true
	}
	anonymous, _ := r.AnonBytes.Get()
	swap, _ := r.SwapBytes.Get()
	if swap == 0 || !k.patience.may(time.Now()) {
		return true
	}
	if anonymous+swap > int64(limit) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, k.patience.within(swap))
	defer cancel()
	began := time.Now()
	_, err = g.Prefetch(ctx, int64(limit))
	k.patience.took(time.Now(), time.Since(began), swap, err)
	return true
}

// shrink lowers the limit, never raises it. It swaps memory out in large pieces while the programs are frozen; lowering
// the limit is quick then. If the kernel cannot reach the limit, or not in time for the programs' heartbeats, shrink
// lowers the limit as far as possible.
func (k *Keeper) shrink(ctx context.Context, c *Container, e memory.Envelope, act memory.Action) error {
	if act.Suspended {
		// This comes first: the limit may be too low for programs that run.
		if err := k.suspend(ctx, c, e); err != nil {
			return err
		}
	}
	r, err := c.Group.Read()
	if err != nil {
		return err
	}
	limit, bounded := r.MemoryLimitBytes.Get()
	if bounded && limit > int64(act.Limit) {
		err = k.takeDown(ctx, c, e, act.Limit, r.AnonBytes.Or(0) > int64(act.Limit))
	}
	if err != nil && e.HeartbeatTimeout == 0 {
		settleFor(ctx, c.Group, limit)
	}
	// Whatever the result, its programs are suspended or run as the manager believes.
	back := context.WithoutCancel(ctx)
	if act.Suspended {
		err = errors.Join(err, k.suspend(back, c, e))
	} else {
		err = errors.Join(err, k.resume(back, c))
	}
	if err != nil && e.HeartbeatTimeout > 0 { // heartbeats come first
		settleFor(ctx, c.Group, limit)
	}
	return err
}

// takeDown lowers the limit, after swapping out the memory above it. Programs with heartbeats are frozen for a quarter
// of their time-out at most: as much time may have passed before, in suspension.
func (k *Keeper) takeDown(ctx context.Context, c *Container, e memory.Envelope, limit resource.Amount,
	push bool) error {
	if e.HeartbeatTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.HeartbeatTimeout/4)
		defer cancel()
	}
	if push {
		if err := k.pushOut(ctx, c, limit); err != nil {
			return err
		}
	}
	return k.lower(ctx, c, limit)
}

// lower sets a limit below usage. The kernel gives up while pages are being written or are on their way to the disk.
// Then lower freezes the programs, swaps their memory out again, and tries again as long as usage decreases.
func (k *Keeper) lower(ctx context.Context, c *Container, limit resource.Amount) error {
	const pause, most = 10 * time.Millisecond, 20
	least := int64(cgroup.NoLimit)
	for idle := 0; ; {
		err := SetMemory(ctx, c.Group, limit)
		if !errors.Is(err, cgroup.ErrBusy) || ctx.Err() != nil {
			return err
		}
		r, gone := c.Group.Read()
		if gone != nil {
			return gone
		}
		if usage := r.MemoryBytes.Or(0); usage < least {
			least, idle = usage, 0
		} else if idle++; idle == most {
			return err
		}
		if err := k.pushOut(ctx, c, limit); err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// pushOut freezes the programs and swaps out their memory above the limit. Written memory counts until the limit is
// lowered, which takes the kernel half as long as writing: therefore another core lowers the limit meanwhile.
func (k *Keeper) pushOut(ctx context.Context, c *Container, limit resource.Amount) error {
	if err := c.change(ctx, func(s *stance) { s.still |= BySwapping }); err != nil {
		return err
	}
	r, err := c.Group.Read()
	if err != nil {
		return err
	}
	gauge, err := c.Group.Gauge()
	if err != nil {
		return err
	}
	defer gauge.Close()
	before, err := gauge.Read()
	if err != nil {
		return err
	}
	usage := r.MemoryBytes.Or(0)
	kernel := max(0, usage-r.AnonBytes.Or(0)-r.FileBytes.Or(0)) // cannot be swapped out
	const underWay = 48 << 20                                   // perhaps not written yet
	written := make(chan int64, 1)
	var behind sync.WaitGroup
	behind.Go(func() {
		for bytes := range written {
			if target := usage - bytes + underWay; target > int64(limit) {
				squeeze(ctx, c.Group, target)
			}
		}
	})
	// An ordinary user may not page out other processes' memory; then lowering the limit does it, more slowly.
	_, _ = c.Group.PageOut(ctx, func(int64) bool {
		held, err := gauge.Read()
		if err != nil || held.AnonBytes+kernel <= int64(limit) {
			return false
		}
		select {
		case written <- before.AnonBytes - held.AnonBytes:
		default: // usage has not come down as far as the last time
		}
		return true
	})
	close(written)
	behind.Wait()
	return ctx.Err()
}

// squeeze lowers usage to the given amount, and on version 1 the limit, if the kernel can. Version 2 would kill if it
// could not.
func squeeze(ctx context.Context, g *cgroup.Group, bytes int64) {
	r, err := g.Read()
	usage := r.MemoryBytes.Or(0)
	if err != nil || usage <= bytes {
		return
	}
	if v, _ := g.Has(cgroup.Memory); v == cgroup.V2 {
		_ = g.Reclaim(ctx, usage-bytes)
	} else {
		_ = g.Apply(ctx, cgroup.Limits{MemoryBytes: cgroup.At(bytes)})
	}
}

// settleFor lowers the limit to current usage, if that is less than the limit.
func settleFor(ctx context.Context, g *cgroup.Group, was int64) {
	const spare, soon = 4 << 20, 5 * time.Second
	r, err := g.Read()
	if err != nil {
		return
	}
	if usage, ok := r.MemoryBytes.Get(); ok && usage+spare < was {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), soon)
		defer cancel()
		_ = g.Apply(ctx, cgroup.Limits{MemoryBytes: cgroup.At(usage + spare)}) // the manager reads the result
	}
}

// SetMemory sets the memory limit. Version 2 kills when it cannot keep a limit below usage, so usage is lowered first.
func SetMemory(ctx context.Context, g *cgroup.Group, limit resource.Amount) error {
	if v, _ := g.Has(cgroup.Memory); v == cgroup.V2 {
		r, err := g.Read()
		if err != nil {
			return err
		}
		if usage, ok := r.MemoryBytes.Get(); ok && usage > int64(limit) {
			if err := g.Reclaim(ctx, usage-int64(limit)); err != nil && !errors.Is(err, cgroup.ErrUnsupported) {
				return err
			}
		}
	}
	return g.Apply(ctx, cgroup.Limits{MemoryBytes: cgroup.At(int64(limit))})
}

// suspend stops the programs: with heartbeats to send they get 1 % of a core (Group.Apply), else they are frozen
// (Group.Freeze).
func (k *Keeper) suspend(ctx context.Context, c *Container, e memory.Envelope) error {
	return c.change(ctx, c.heldByMemory(e))
}

// resume lets the programs run with the CPU they were granted, unless another party has stopped them: it raises
// the quota of CPU time and thaws the group, in package cgroup (Group.Apply and Group.Thaw).
func (k *Keeper) resume(ctx context.Context, c *Container) error {
	return c.change(ctx, func(s *stance) { s.still &^= ByMemory | BySwapping })
}

// breathe lets a suspended container run for a breath.
func (k *Keeper) breathe(ctx context.Context, c *Container, e memory.Envelope) error {
	if err := c.change(ctx, func(s *stance) { s.breaths |= ByMemory }); err != nil {
		return err
	}
	p := k.config.Memory
	select {
	case <-time.After(p.BreathOf(e.HeartbeatTimeout)):
	case <-ctx.Done():
	}
	return c.change(context.WithoutCancel(ctx), func(s *stance) {
		s.breaths &^= ByMemory
		c.heldByMemory(e)(s)
	})
}
