package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// A container that is stopped gives its memory back if its owner, or the policy, wants that. It stands still (ByOut)
// from before its pages go to swap until it has its memory again:
//
//	in memory ──▶ pageOut ──▶ out ──▶ bringBack ──▶ in memory
//	                 ▲                   │
//	                 └───────────────────┘  an order that comes meanwhile turns it round
//
// Its limit is lowered to what is left in memory: only the rest is available to other containers. Before the limit is
// raised again, the memory manager must have the memory.

// outing says what was ordered about the memory of a container, and what is being done; guarded by Container.ordering.
type outing struct {
	wanted bool               // by the newest order: its memory is to be out
	moving bool               // a goroutine moves its memory
	stop   context.CancelFunc // of the move under way, nil if there is none
}

// adopt takes over a move that an earlier keeper has begun.
func (o *outing) adopt(want bool) { o.wanted, o.moving = want, true }

// wants reports whether the memory is to be out.
func (o *outing) wants() bool { return o.wanted }

// moves reports whether a goroutine moves the memory, or is to.
func (o *outing) moves() bool { return o.moving }

// order takes the newest order, which ends a move the other way, and reports whether a goroutine moves the memory
// already.
func (o *outing) order(want bool) (moving bool) {
	moving = o.moving
	if o.moving = true; o.wanted != want && o.stop != nil {
		o.stop()
	}
	o.wanted = want
	return moving
}

// begin returns where the memory is to be moved; stop ends the move.
func (o *outing) begin(stop context.CancelFunc) (want bool) {
	o.stop = stop
	return o.wanted
}

// end ends a move, and reports whether the memory is where the newest order wants it.
func (o *outing) end(was bool) bool {
	o.stop = nil
	if o.wanted == was {
		o.moving = false
	}
	return !o.moving
}

// errOut is the answer to an action of the memory manager that was ordered before the container's memory was paged out.
var errOut = errors.New("its memory is being paged out")

// isOut reports whether the memory of c is out, or on its way out or back.
func (c *Container) isOut() bool { return c.posture.now().still&ByOut != 0 }

// wantOut orders that the memory of a container be out, or not. The hold that wants it is recorded already.
func (k *Keeper) wantOut(c *Container, want bool) {
	if !want && !c.Recorded().Out {
		return
	}
	if err := c.put(func(r *Record) { r.Out = true }); err != nil {
		k.tellOut(c, 0, fmt.Sprintf("record that it is paged out: %v", err))
		return
	}
	c.ordering.Lock()
	begun := c.outing.order(want)
	c.ordering.Unlock()
	if !begun {
		k.owner.Go(func() { k.moveMemory(c) })
	}
}

// isBack records that the memory of a container is in place, unless it was ordered out meanwhile.
func (c *Container) isBack() error {
	return c.put(func(r *Record) { r.Out = r.Hold.PageOut })
}

// moveMemory moves the memory of a container to where the newest order wants it.
func (k *Keeper) moveMemory(c *Container) {
	for {
		c.ordering.Lock()
		ctx, cancel := context.WithCancel(k.closed)
		want := c.outing.begin(cancel)
		c.ordering.Unlock()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case <-c.Ending:
				cancel()
			case <-c.Gone:
				cancel()
			case <-ctx.Done():
			}
		}()
		if want {
			k.pageOut(ctx, c)
		} else {
			k.bringBack(ctx, c)
		}
		cancel()
		<-ended
		c.ordering.Lock()
		done := c.outing.end(want)
		c.ordering.Unlock()
		if done {
			return
		}
	}
}

// pageOut gives back the memory of a container that is paused, as far as possible, and reports how much has left.
func (k *Keeper) pageOut(ctx context.Context, c *Container) {
	if why := c.staysIn(); why != "" {
		_ = c.put(func(r *Record) { r.Out = false })
		k.tellOut(c, 0, why)
		return
	}
	select {
	case k.pagingOut <- struct{}{}: // one at a time: each counts on the room in swap that it finds
		defer func() { <-k.pagingOut }()
	case <-ctx.Done():
		return
	}
	// No action of the memory manager changes the container from here on.
	err := c.change(ctx, func(s *stance) { s.still = s.still&^(ByMemory|BySwapping) | ByOut })
	if err == nil {
		err = k.leave(ctx, c)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, cgroup.ErrGone) {
		return // The next order, the next keeper or the end of the container goes on from here.
	}
	k.log.Warn("cannot page out a paused container", "container", c.ID, "error", err)
	k.tellOut(c, c.outBytes(), err.Error())
}

// staysIn says why the memory of a container cannot be paged out at all; empty if it can.
func (c *Container) staysIn() string {
	_, freezes := c.Group.Has(cgroup.Freezer)
	switch {
	case c.Envelope.HeartbeatTimeout > 0:
		return "its programs run briefly from time to time, to send heartbeats"
	case !freezes:
		return "this machine cannot freeze a container"
	}
	return ""
}

// Out is outBytes while the memory of c is out, else 0.
func (c *Container) Out() resource.Amount {
	if !c.isOut() {
		return 0
	}
	return c.outBytes()
}

// outBytes is how much memory of the grant of c its limit leaves to others.
func (c *Container) outBytes() resource.Amount {
	limit := limitOf(c.Group)
	if limit == 0 {
		return 0
	}
	return max(0, c.size().Grant[resource.Memory]-limit)
}

// leave pages out the memory of a frozen container, lowers its limit to what is left, and reports both.
func (k *Keeper) leave(ctx context.Context, c *Container) error {
	swap, err := k.out(ctx, c, 0)
	if err != nil {
		return err
	}
	c.acting.Lock()
	stays, err := k.shrinkToRest(ctx, c, swap)
	c.acting.Unlock()
	if err != nil {
		return err
	}
	// What is left counts in the memory manager before the engine grants the rest.
	if _, err := k.out(ctx, c, limitOf(c.Group)); err != nil {
		return err
	}
	k.tellOut(c, c.outBytes(), stays)
	return nil
}

// shrinkToRest swaps out as much of a container's memory as swap has room for, and lowers its limit to the rest.
// stays says how much is left and why; empty if next to nothing is.
func (k *Keeper) shrinkToRest(ctx context.Context, c *Container, swap swapOutlook) (stays string, err error) {
	const spare, rounds = 1 << 20, 4
	gauge, err := c.Group.Gauge()
	if err != nil {
		return "", err
	}
	defer gauge.Close()
	before, err := gauge.Read()
	if err != nil {
		return "", err
	}
	if c.Envelope.Class != cluster.Flex {
		if err := c.Group.ApplyCounted(ctx,
			cgroup.Limits{SwapBytes: cgroup.At(before.SwapBytes + int64(swap.room))}); err != nil {
			return "", err
		}
	}
	aim, held := max(0, before.InMemory()-int64(swap.room)), before
	for range rounds {
		if held.InMemory() > aim+spare {
			_, _ = c.Group.PageOut(ctx, func(int64) bool { // an ordinary user may not; then squeeze does it, more slowly
				now, err := gauge.Read()
				return err == nil && now.InMemory() > aim
			})
		}
		r, err := c.Group.Read()
		if err != nil {
			return "", err
		}
		kernel := max(0, r.MemoryBytes.Or(0)-r.AnonBytes.Or(0)-r.FileBytes.Or(0)) // cannot be swapped out
		squeeze(ctx, c.Group, aim+kernel+spare)
		was := held
		if held, err = gauge.Read(); err != nil {
			return "", err
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if held.InMemory() <= aim+spare || held.InMemory() >= was.InMemory() {
			break
		}
	}
	if err := lowerToUse(ctx, c.Group, spare); err != nil {
		return "", err
	}
	return staysWords(before, held, aim, swap.bound), nil
}

// lowerToUse lowers a limit to what a frozen container uses, and a little more.
func lowerToUse(ctx context.Context, g *cgroup.Group, spare int64) error {
	r, err := g.Read()
	if err != nil {
		return err
	}
	use := r.MemoryBytes.Or(cgroup.NoLimit)
	if limit := use + spare; use < cgroup.NoLimit && limit < r.MemoryLimitBytes.Or(cgroup.NoLimit) {
		return g.Apply(ctx, cgroup.Limits{MemoryBytes: cgroup.At(limit)})
	}
	return nil
}

// staysWords says how much of a container's memory has not left, and why; empty if next to nothing is left. bound is
// what bounds the room in swap, for which aim was to stay.
func staysWords(before, after cgroup.Held, aim int64, bound string) string {
	rest := after.InMemory()
	if rest <= max(4<<20, before.InMemory()/50) {
		return ""
	}
	why := "the kernel did not swap it out"
	switch {
	case after.LockedBytes > rest/2:
		why = fmt.Sprintf("its programs have locked %s", resource.FormatMemory(resource.Amount(after.LockedBytes)))
	case aim > rest/2:
		why = bound
	}
	return fmt.Sprintf("%s stay in memory: %s", resource.FormatMemory(resource.Amount(rest)), why)
}

// bringBack gives a container its memory again, as soon as it is free, and lets it run unless others hold it.
func (k *Keeper) bringBack(ctx context.Context, c *Container) {
	k.tellStillness(c) // it waits for its memory
	if !c.isOut() {    // it never left
		_ = c.isBack()
		return
	}
	e, err := k.comeBack(ctx, c)
	if err != nil {
		return
	}
	for {
		err := k.refill(ctx, c, e)
		if err == nil || ctx.Err() != nil || errors.Is(err, cgroup.ErrGone) {
			return
		}
		k.log.Warn("cannot give a container its memory back, trying again", "container", c.ID, "error", err)
		if !k.stays(c, askAgain) {
			return
		}
	}
}

// refill raises the limit of a container to its grant, reads its pages back, and ends its stop.
func (k *Keeper) refill(ctx context.Context, c *Container, e memory.Envelope) error {
	c.acting.Lock()
	defer c.acting.Unlock()
	if err := c.change(ctx, func(s *stance) { s.raise = e.Min }); err != nil {
		return err
	}
	k.prefetch(ctx, c.Group, limitOf(c.Group))
	if e.Class != cluster.Flex {
		// What is in swap stays there until it is used. If version 1 refuses that now, the container can swap until it ends.
		_ = c.Group.ApplyCounted(ctx, cgroup.Limits{SwapBytes: cgroup.At(0)})
	}
	k.tellOut(c, 0, "")
	err := c.change(ctx, func(s *stance) {
		if s.still &^= ByOut; e.Class == cluster.Flex {
			s.still |= ByMemory // the memory manager has it suspended, and resumes it
		}
		s.raise = 0
	})
	if err != nil {
		return err
	}
	k.listen(c, e, limitOf(c.Group))
	k.tellStillness(c)
	return c.isBack()
}

// tellOut reports how much memory of its grant has left a container.
func (k *Keeper) tellOut(c *Container, out resource.Amount, stays string) {
	e := cluster.Event{Kind: cluster.TaskPagedOut, Task: c.ID.Task, Run: c.ID.Run}
	e.SetCondition(cluster.Condition{Out: out, Stays: stays})
	k.owner.Report(e)
}

// adoptOut takes over a container whose memory an earlier keeper had paged out, or was moving.
func (k *Keeper) adoptOut(c *Container) {
	if !c.Recorded().Out {
		return
	}
	c.posture.adopt(func(s *stance) { s.still |= ByOut })
	c.outing.adopt(c.Held().PageOut)
}

// out hands a container over to the goroutine that moves its memory, or notifies the memory manager of its limit, and
// returns the room in swap.
func (k *Keeper) out(ctx context.Context, c *Container, limit resource.Amount) (swapOutlook, error) {
	room := make(chan swapOutlook, 1)
	k.tell(news{out: &memory.Out{Container: c.ID, Limit: limit}, of: c, room: room})
	select {
	case r := <-room:
		return r, nil
	case <-ctx.Done():
		return swapOutlook{}, ctx.Err()
	}
}

// comeBack waits until the memory manager has the memory of a container that is out, and returns the envelope that it
// has when that was asked for: the container may have been resized.
func (k *Keeper) comeBack(ctx context.Context, c *Container) (e memory.Envelope, err error) {
	for {
		e = c.sized()
		admits := make(chan answer, 1)
		k.tell(news{request: &memory.Request{Envelope: e}, admits: admits})
		select {
		case got := <-admits:
			if got.refused == nil {
				k.shown.noWait(c.ID)
				return e, nil
			}
			k.shown.wait(c.ID, fmt.Errorf("waits for its memory, which was paged out: %w", got.refused))
		case <-ctx.Done():
			return e, ctx.Err()
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			k.shown.noWait(c.ID)
			return e, ctx.Err()
		}
	}
}

// takeOut hands a container over to the goroutine that moves its memory.
func (k *Keeper) takeOut(n *news, in *memory.Input) {
	in.Out = append(in.Out, *n.out)
	if c, ok := k.kept[n.of.ID]; ok {
		if c.suspended = false; n.out.Limit > 0 {
			c.limit = n.out.Limit
		}
		k.note(n.of, false, memory.Reason{})
	}
	n.room <- k.swap.outlook()
}

// cameBack notes that the memory manager has admitted a container that was out: a FLEX container is suspended from
// now on.
func (k *Keeper) cameBack(id cluster.ContainerID) {
	c, ok := k.kept[id]
	if !ok || !c.container.isOut() {
		return
	}
	c.suspended, c.limit = true, max(c.limit, c.envelope.Min)
	k.note(c.container, true, memory.Reason{Code: memory.PagedOut})
}
