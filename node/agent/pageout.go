package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// A container that is stopped gives its memory back if its owner, or the policy, wants that. It stands still (byOut) from before its pages go to swap until
// it has its memory again:
//
//	in memory ──▶ pageOut ──▶ out ──▶ bringBack ──▶ in memory
//	                 ▲                   │
//	                 └───────────────────┘  an order that comes meanwhile turns it round
//
// Its limit is lowered to what is left in memory: only the rest is available to other containers. Before the limit is raised again,
// the memory manager must have the memory.

// outing says what was ordered about the memory of a container, and what is being done; guarded by Agent.mu.
type outing struct {
	recording sync.Mutex         // locked while the record and wanted are brought into agreement
	wanted    bool               // by the newest order: its memory is to be out
	moving    bool               // a goroutine moves its memory
	stop      context.CancelFunc // of the move under way, nil if there is none
}

// outRecord is next to spec.json from before a container's memory is paged out until it is back. While it is there, the supervisor
// keeps the container stopped, and leaves its limit, if there is no agent: only an agent knows whether memory is free.
type outRecord struct {
	Wanted bool `json:"wanted"`
}

const outFile = "out.json"

// errOut is the answer to an action of the memory manager that was ordered before the container's memory was paged out.
var errOut = errors.New("its memory is being paged out")

// isOut reports whether the memory of c is out, or on its way out or back.
func (c *container) isOut() bool {
	c.changing.Lock()
	defer c.changing.Unlock()
	return c.stance.still&byOut != 0
}

// wantOut orders that the memory of a container be out, or not.
func (a *Agent) wantOut(c *container, want bool) {
	c.outing.recording.Lock()
	defer c.outing.recording.Unlock()
	if !want && !c.dir.exists(outFile) {
		return
	}
	if err := c.dir.put(outFile, outRecord{Wanted: want}); err != nil && want {
		a.tellOut(c, 0, fmt.Sprintf("record that it is paged out: %v", err))
		return
	}
	a.mu.Lock()
	begun := c.outing.moving
	if c.outing.moving = true; c.outing.wanted != want && c.outing.stop != nil {
		c.outing.stop()
	}
	c.outing.wanted = want
	a.mu.Unlock()
	if !begun {
		a.begin(func() { a.moveMemory(c) })
	}
}

// endRecord removes the record of a container whose memory is in place, unless it was ordered out meanwhile.
func (a *Agent) endRecord(c *container) error {
	c.outing.recording.Lock()
	defer c.outing.recording.Unlock()
	a.mu.Lock()
	wanted := c.outing.wanted
	a.mu.Unlock()
	if wanted {
		return nil
	}
	return durable.RemoveAll(c.dir.path(outFile))
}

// moveMemory moves the memory of a container to where the newest order wants it.
func (a *Agent) moveMemory(c *container) {
	for {
		a.mu.Lock()
		ctx, cancel := context.WithCancel(a.closed)
		want := c.outing.wanted
		c.outing.stop = cancel
		a.mu.Unlock()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case <-c.killed:
				cancel()
			case <-c.gone:
				cancel()
			case <-ctx.Done():
			}
		}()
		if want {
			a.pageOut(ctx, c)
		} else {
			a.bringBack(ctx, c)
		}
		cancel()
		<-ended
		a.mu.Lock()
		c.outing.stop = nil
		if c.outing.wanted == want {
			c.outing.moving = false
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
	}
}

// pageOut gives back the memory of a container that is paused, as far as possible, and reports how much has left.
func (a *Agent) pageOut(ctx context.Context, c *container) {
	if why := c.staysIn(); why != "" {
		_ = durable.RemoveAll(c.dir.path(outFile))
		a.tellOut(c, 0, why)
		return
	}
	select {
	case a.pagingOut <- struct{}{}: // one at a time: each counts on the room in swap that it finds
		defer func() { <-a.pagingOut }()
	case <-ctx.Done():
		return
	}
	// No action of the memory manager changes the container from here on.
	err := c.change(ctx, func(s *stance) { s.still = s.still&^(byMemory|bySwapping) | byOut })
	if err == nil {
		err = a.leave(ctx, c)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, cgroup.ErrGone) {
		return // The next order, the next agent or the end of the container goes on from here.
	}
	a.log.Warn("cannot page out a paused container", "container", c.id, "error", err)
	a.tellOut(c, c.outBytes(), err.Error())
}

// staysIn says why the memory of a container cannot be paged out at all; empty if it can.
func (c *container) staysIn() string {
	_, freezes := c.group.Has(cgroup.Freezer)
	switch {
	case c.spec.Envelope.HeartbeatTimeout > 0:
		return "its programs run briefly from time to time, to send heartbeats"
	case !c.spec.pagesOut():
		return "an earlier release of bellows started it; its next run can be paged out"
	case !freezes:
		return "this machine cannot freeze a container"
	}
	return ""
}

// outNow is outBytes while the memory of c is out, else 0.
func (c *container) outNow() resource.Amount {
	if !c.isOut() {
		return 0
	}
	return c.outBytes()
}

// outBytes is how much memory of the grant of c its limit leaves to others.
func (c *container) outBytes() resource.Amount {
	limit := limitOf(c.group)
	if limit == 0 {
		return 0
	}
	return max(0, c.dir.sized(c.spec).Grant[resource.Memory]-limit)
}

// leave pages out the memory of a frozen container, lowers its limit to what is left, and reports both.
func (a *Agent) leave(ctx context.Context, c *container) error {
	swap, err := a.keeper.out(ctx, c, 0)
	if err != nil {
		return err
	}
	c.acting.Lock()
	stays, err := a.shrinkToRest(ctx, c, swap)
	c.acting.Unlock()
	if err != nil {
		return err
	}
	// What is left counts in the memory manager before the engine grants the rest.
	if _, err := a.keeper.out(ctx, c, limitOf(c.group)); err != nil {
		return err
	}
	a.tellOut(c, c.outBytes(), stays)
	return nil
}

// shrinkToRest swaps out as much of a container's memory as swap has room for, and lowers its limit to the rest. stays says how
// much is left and why; empty if next to nothing is.
func (a *Agent) shrinkToRest(ctx context.Context, c *container, swap swapOutlook) (stays string, err error) {
	const spare, rounds = 1 << 20, 4
	gauge, err := c.group.Gauge()
	if err != nil {
		return "", err
	}
	defer gauge.Close()
	before, err := gauge.Read()
	if err != nil {
		return "", err
	}
	if c.spec.Envelope.Class != cluster.Flex {
		if err := c.group.ApplyCounted(ctx, cgroup.Limits{SwapBytes: cgroup.At(before.SwapBytes + int64(swap.room))}); err != nil {
			return "", err
		}
	}
	aim, held := max(0, before.InMemory()-int64(swap.room)), before
	for range rounds {
		if held.InMemory() > aim+spare {
			_, _ = c.group.PageOut(ctx, func(int64) bool { // an ordinary user may not; then squeeze does it, more slowly
				now, err := gauge.Read()
				return err == nil && now.InMemory() > aim
			})
		}
		r, err := c.group.Read()
		if err != nil {
			return "", err
		}
		kernel := max(0, r.MemoryBytes.Or(0)-r.AnonBytes.Or(0)-r.FileBytes.Or(0)) // cannot be swapped out
		squeeze(ctx, c.group, aim+kernel+spare)
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
	if err := lowerToUse(ctx, c.group, spare); err != nil {
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

// staysWords says how much of a container's memory has not left, and why; empty if next to nothing is left. bound is what bounds the
// room in swap, for which aim was to stay.
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
func (a *Agent) bringBack(ctx context.Context, c *container) {
	a.tellStillness(c) // it waits for its memory
	if !c.isOut() {    // it never left
		_ = a.endRecord(c)
		return
	}
	e, err := a.keeper.comeBack(ctx, c)
	if err != nil {
		return
	}
	for {
		err := a.refill(ctx, c, e)
		if err == nil || ctx.Err() != nil || errors.Is(err, cgroup.ErrGone) {
			return
		}
		a.log.Warn("cannot give a container its memory back, trying again", "container", c.id, "error", err)
		if !a.stays(c, askAgain) {
			return
		}
	}
}

// refill raises the limit of a container to its grant, reads its pages back, and ends its stop.
func (a *Agent) refill(ctx context.Context, c *container, e memory.Envelope) error {
	c.acting.Lock()
	defer c.acting.Unlock()
	if err := c.change(ctx, func(s *stance) { s.raise = e.Min }); err != nil {
		return err
	}
	a.prefetch(ctx, c.group, limitOf(c.group))
	if e.Class != cluster.Flex {
		// What is in swap stays there until it is used. If version 1 refuses that now, the container can swap until it ends.
		_ = c.group.ApplyCounted(ctx, cgroup.Limits{SwapBytes: cgroup.At(0)})
	}
	a.tellOut(c, 0, "")
	err := c.change(ctx, func(s *stance) {
		if s.still &^= byOut; e.Class == cluster.Flex {
			s.still |= byMemory // the memory manager has it suspended, and resumes it
		}
		s.raise = 0
	})
	if err != nil {
		return err
	}
	a.keeper.listen(c, e, limitOf(c.group))
	a.tellStillness(c)
	return a.endRecord(c)
}

// tellOut reports how much memory of its grant has left a container.
func (a *Agent) tellOut(c *container, out resource.Amount, stays string) {
	e := cluster.Event{Kind: cluster.TaskOut, Task: c.id.Task, Run: c.id.Run}
	e.SetCondition(cluster.Condition{Out: out, Stays: stays})
	a.events.put(e)
}

// adoptOut takes over a container whose memory an earlier agent had paged out, or was moving.
func (a *Agent) adoptOut(c *container) {
	var r outRecord
	if c.dir.get(outFile, &r) != nil && !c.dir.exists(outFile) {
		return
	}
	c.stance.still |= byOut
	c.outing.wanted, c.outing.moving = r.Wanted && c.stance.engine.By != 0, true
}

// out hands a container over to the agent, or notifies the memory manager of its limit, and returns the room in swap.
func (k *keeper) out(ctx context.Context, c *container, limit resource.Amount) (swapOutlook, error) {
	room := make(chan swapOutlook, 1)
	k.tell(news{out: &memory.Out{Container: c.id, Limit: limit}, of: c, room: room})
	select {
	case r := <-room:
		return r, nil
	case <-ctx.Done():
		return swapOutlook{}, ctx.Err()
	}
}

// comeBack waits until the memory manager has the memory of a container that is out, and returns the envelope that it has when that was
// asked for: the container may have been resized.
func (k *keeper) comeBack(ctx context.Context, c *container) (e memory.Envelope, err error) {
	for {
		e = c.dir.sized(c.spec).envelope()
		answer := make(chan error, 1)
		k.tell(news{request: &memory.Request{Envelope: e}, answer: answer})
		select {
		case refused := <-answer:
			if refused == nil {
				k.noWait(c.id)
				return e, nil
			}
			k.wait(c.id, fmt.Errorf("waits for its memory, which was paged out: %w", refused))
		case <-ctx.Done():
			return e, ctx.Err()
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			k.noWait(c.id)
			return e, ctx.Err()
		}
	}
}

// noWait records that a container does not wait for memory any more.
func (k *keeper) noWait(id cluster.ContainerID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.state[id]; ok && s.waiting {
		delete(k.state, id)
	}
}

// takeOut hands a container over to the agent.
func (k *keeper) takeOut(n *news, in *memory.Input) {
	in.Out = append(in.Out, *n.out)
	if c, ok := k.kept[n.of.id]; ok {
		if c.suspended = false; n.out.Limit > 0 {
			c.limit = n.out.Limit
		}
		k.note(n.of, false, memory.Reason{})
	}
	n.room <- k.swap.outlook()
}

// cameBack notes that the memory manager has admitted a container that was out: a FLEX container is suspended from now on.
func (k *keeper) cameBack(id cluster.ContainerID) {
	c, ok := k.kept[id]
	if !ok || !c.container.isOut() {
		return
	}
	c.suspended, c.limit = true, max(c.limit, c.envelope.Min)
	k.note(c.container, true, memory.Reason{Code: memory.PagedOut})
}
