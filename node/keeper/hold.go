package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// LevelingGrace is how much longer than it should leveling holds a container that the engine does not resume: its
// daemon hangs, or the order was lost.
const LevelingGrace = 5 * time.Second

// holdWithin is how long the kernel may take to freeze or thaw a container.
const holdWithin = 10 * time.Second

// endLeveling ends the hold of leveling if it is overdue, and otherwise looks again when it will be. The engine ends
// it in time; that the container does not stay stopped must not depend on the engine.
func (k *Keeper) endLeveling(c *Container) {
	h := c.Held()
	if h.Overdue(k.config.Clock(), LevelingGrace) {
		k.log.Warn("resuming a container that leveling should have let go on", "container", c.ID, "until",
			time.Unix(0, int64(h.Until)))
		rest := cluster.Hold{By: h.By &^ cluster.HeldByLeveling}
		rest.PageOut = h.PageOut && rest.By != 0
		err := k.bringHold(c, rest)
		if err == nil || errors.Is(err, cgroup.ErrGone) || k.closed.Err() != nil {
			return
		}
		k.log.Warn("cannot resume a container", "container", c.ID, "error", err)
	}
	if h.Levels() {
		k.expectEnd(c, h.Until)
	}
}

// expectEnd looks, some time after leveling should have ended its hold of a container, whether it has.
func (k *Keeper) expectEnd(c *Container, until timeline.Time) {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	c.leveled.expect(max(until.Add(LevelingGrace).Sub(k.config.Clock()), time.Second), func() { k.overdue(c) })
}

// overstay says whether leveling may hold a container for too long.
type overstay struct {
	is    bool
	timer *time.Timer // sets it in time
}

// late notes that it may.
func (o *overstay) late() { o.is = true }

// take reports whether it may, which is looked into then.
func (o *overstay) take() (is bool) {
	is, o.is = o.is, false
	return is
}

// expect calls late after a time, in place of the call before.
func (o *overstay) expect(after time.Duration, late func()) {
	if o.timer != nil {
		o.timer.Stop()
	}
	o.timer = time.AfterFunc(after, late)
}

// overdue has the hold of leveling ended, if it is overdue.
func (k *Keeper) overdue(c *Container) {
	select {
	case <-c.Gone:
		return
	default:
	}
	c.ordering.Lock()
	c.leveled.late()
	c.ordering.Unlock()
	k.attend(c)
}

// Hold stops a container for the given holders of the engine; with none only the holders of this machine can keep it
// stopped. If Hold fails, the container is as before.
func (k *Keeper) Hold(c *Container, h cluster.Hold) error {
	ctx, cancel := context.WithTimeout(k.closed, holdWithin)
	defer cancel()
	if h.By == 0 {
		if err := c.change(ctx, c.heldByEngine(cluster.Hold{})); err != nil {
			return fmt.Errorf("resume the container: %w", err)
		}
		k.tellStillness(c)
		return c.put(func(r *Record) { r.Hold = h })
	}
	_, freezes := c.Group.Has(cgroup.Freezer)
	if _, slows := c.Group.Has(cgroup.CPU); !freezes && !slows {
		return errors.New("this machine has no control group that can stop a container")
	}
	before := c.Recorded().Hold
	if err := c.put(func(r *Record) { r.Hold = h }); err != nil {
		return fmt.Errorf("record that the container is paused: %w", err)
	}
	if err := c.change(ctx, c.heldByEngine(h)); err != nil {
		return errors.Join(fmt.Errorf("pause the container: %w", err), c.put(func(r *Record) { r.Hold = before }))
	}
	k.tellStillness(c)
	if c.beginsToBreathe() {
		k.owner.Go(func() { k.breatheWhileHeld(c) })
	}
	return nil
}

// bringHold is Hold, after which the memory of the container goes out, or comes back, as the hold wants it.
func (k *Keeper) bringHold(c *Container, h cluster.Hold) error {
	err := k.Hold(c, h)
	if err == nil && k.closed.Err() == nil {
		k.wantOut(c, h.PageOut)
	}
	return err
}

// beginsToBreathe reports whether the programs of a held container send heartbeats, and no goroutine lets it breathe
// yet.
func (c *Container) beginsToBreathe() bool {
	return c.Envelope.HeartbeatTimeout > 0 && c.posture.breathe()
}

// breatheWhileHeld lets a container run for a moment, again and again, so that its programs can send heartbeats, for
// as long as the engine holds it. It also ends a breath when the keeper is closed.
func (k *Keeper) breatheWhileHeld(c *Container) {
	timeout := c.Envelope.HeartbeatTimeout
	breathe := func(does bool) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(k.closed), holdWithin)
		defer cancel()
		err := c.change(ctx, func(s *stance) {
			if s.breaths &^= ByEngine; does {
				s.breaths |= ByEngine
			}
		})
		if err != nil && !errors.Is(err, cgroup.ErrGone) {
			k.log.Warn("cannot let a paused container breathe", "container", c.ID, "error", err)
		}
	}
	for k.stays(c, timeout/4) && !c.posture.rest() {
		breathe(true)
		k.stays(c, k.config.Memory.BreathOf(timeout))
		breathe(false)
	}
}

// stays waits for a time, and reports whether the container and the keeper are still there then.
func (k *Keeper) stays(c *Container, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.Ending:
	case <-c.Gone:
	case <-k.closed.Done():
	}
	return false
}

// Held returns the hold by which the engine has stopped the container.
func (c *Container) Held() cluster.Hold { return c.posture.now().engine }

// heldByEngine is the change that stops a container for holders of the engine; with none it ends their hold.
func (c *Container) heldByEngine(h cluster.Hold) func(*stance) {
	return func(s *stance) {
		s.engine = h
		if s.still &^= ByEngine; h.By != 0 {
			s.still |= ByEngine
		}
		s.slows = c.slows()
	}
}

// adoptHold stops a container that was found for the holders in its record.
func (k *Keeper) adoptHold(c *Container) {
	h := c.Recorded().Hold
	if h.By == 0 {
		return
	}
	if err := k.Hold(c, h); err != nil {
		k.log.Warn("cannot keep a container paused that was found", "container", c.ID, "error", err)
	}
}

// stillness is what is reported to the engine of a container: the holders for which it is stopped.
type stillness struct {
	mu     sync.Mutex
	memory bool // the memory manager has stopped it
	told   cluster.Holders
	quiet  bool // nothing is reported yet: the inventory will report it
}

// hush has nothing reported until tells, which returns what would have been reported.
func (s *stillness) hush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = true
}

func (s *stillness) tells() cluster.Holders {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = false
	return s.told
}

// tell reports for which holders the container is stopped, if that has changed.
func (s *stillness) tell(now func(memory bool) cluster.Holders, report func(cluster.Holders)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := now(s.memory)
	if by == s.told {
		return
	}
	s.told = by
	if !s.quiet {
		report(by)
	}
}

// byMemory records whether the memory manager has stopped the container.
func (s *stillness) byMemory(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = is
}

// tellStillness reports for which holders a container is stopped, if that has changed.
func (k *Keeper) tellStillness(c *Container) {
	c.stillness.tell(func(memory bool) cluster.Holders {
		by := c.Held().By
		if memory || by == 0 && c.isOut() { // it is paused no more, and waits for its memory
			by |= cluster.HeldByMemory
		}
		return by
	}, func(by cluster.Holders) {
		e := cluster.Event{Kind: cluster.TaskSuspended, Task: c.ID.Task, Run: c.ID.Run, By: by}
		if by == 0 {
			e.Kind = cluster.TaskResumed
		}
		k.owner.Report(e)
	})
}

// heldByMemoryNow records whether the memory manager has stopped a container, and reports it.
func (k *Keeper) heldByMemoryNow(c *Container, is bool) {
	c.stillness.byMemory(is)
	k.tellStillness(c)
}

// Wake lets a container run that is stopped, or may be, because it is to end: a frozen process does not handle the
// request to end.
func (k *Keeper) Wake(c *Container) {
	c.ordering.Lock()
	ordered := c.orders.underWay() || c.keeping != nil
	c.ordering.Unlock()
	if c.Envelope.Class != cluster.Flex && !ordered && c.Held().By == 0 && !c.isOut() {
		return
	}
	ctx, cancel := context.WithTimeout(k.closed, 5*time.Second)
	defer cancel()
	if err := c.change(ctx, (*stance).free); err != nil {
		k.log.Warn("cannot resume a container that is to end", "container", c.ID, "error", err)
	}
}
