package keeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// auditInterval is how often the memory manager's books are compared with the containers. A report about a container
// may be on its way; therefore only what was wrong the last time, too, is corrected.
const auditInterval = time.Minute

// twice has what is wrong with containers by the audit that is under way, and by the last one.
type twice[Wrong comparable] struct{ now, last map[cluster.ContainerID]Wrong }

// begin begins an audit.
func (t *twice[Wrong]) begin() { t.now, t.last = map[cluster.ContainerID]Wrong{}, t.now }

// again notes what is wrong with a container, and reports whether that was so by the last audit, too.
func (t *twice[Wrong]) again(id cluster.ContainerID, what Wrong) bool {
	t.now[id] = what
	was, known := t.last[id]
	return known && was == what
}

// audit compares the memory manager's books with the owner's containers, and corrects what was wrong twice. Without it,
// memory of a container that is gone would never be given out again, and memory of a container that is missing from the
// books would be given out twice.
func (k *Keeper) audit() {
	var in memory.Input
	k.suspects.begin()
	all := k.owner.Containers()
	there := maps.Clone(all)
	maps.DeleteFunc(there, func(_ cluster.ContainerID, c *Container) bool { return c == nil }) // not started
	k.auditStillness(there)
	k.auditStances(there)
	for id := range k.manager.Containers() {
		if _, known := there[id]; known {
			continue
		}
		_, has := all[id]
		if k.suspects.again(id, true) && !has {
			in.Ended = append(in.Ended, id)
			k.drop(id)
			k.mend(id, "is gone, and its memory was not given back")
		}
	}
	books := map[cluster.ContainerID]bool{}
	for id := range k.manager.Containers() {
		books[id] = true
	}
	for id, c := range there {
		if books[id] {
			continue
		}
		if k.suspects.again(id, true) {
			s := &memory.Started{Envelope: c.envelope(), Limit: limitOf(c.Group)}
			k.takeNews(news{started: s, of: c}, &in)
			k.mend(id, "runs, and its memory was not counted")
		}
	}
	if len(in.Ended)+len(in.Started) > 0 {
		k.decide(in)
	}
}

func (k *Keeper) mend(id cluster.ContainerID, what string) {
	k.mended.Add(1)
	k.log.Error("the memory manager's books were wrong and have been corrected", "container", id, "what", what)
}

// overdue is how late the duty cycle of a throttle may be before the audit resumes its container.
const overdue = 30 * time.Second

// auditStillness resumes containers that a throttle has stopped for longer than its duty cycle planned, or leveling
// for longer than it should, because the goroutine that should resume them hangs.
func (k *Keeper) auditStillness(there map[cluster.ContainerID]*Container) {
	for id, c := range there {
		if c.leveledFor(k.config.Clock(), LevelingGrace+overdue) {
			k.mended.Add(1)
			k.log.Error("resuming a container that leveling has stopped for too long", "container", id)
			k.overdue(c)
		}
		until := time.Duration(c.stillUntil.Load())
		if until == 0 || SinceBoot() < until+overdue || !c.stillUntil.CompareAndSwap(int64(until), 0) {
			continue
		}
		k.mended.Add(1)
		k.log.Error("resuming a throttled container that was stopped for too long", "container", id)
		k.owner.Go(func() { k.letGo(c) })
	}
}

// leveledFor reports whether leveling should have ended its hold of a container some time before now. It does not
// wait for a change that is under way.
func (c *Container) leveledFor(now timeline.Time, by time.Duration) (is bool) {
	c.posture.look(func(s *stance) { is = s.engine.Overdue(now, by) })
	return is
}

// leftover is what a container's stance, or the kernel, does to it although no party wants that any more. A change of
// stance that failed leaves it: nothing orders the end of a throttle again, and an action of the memory manager that
// was given up may come after the one that replaced it. A hold of the engine is never left over: its record is there
// as long as the hold, and the engine, which learns that an order failed, can order again. For a hold of leveling see
// auditStillness.
type leftover struct {
	still  Party // who have it stopped
	bound  bool  // its disk is bounded
	frozen bool  // the kernel has it frozen, and its stance does not
}

// leftoverOf returns what of a stance of c no party wants any more. While no action of the memory manager is under
// way, nothing of its memory is being swapped out.
func (k *Keeper) leftoverOf(c *Container, s *stance) (l leftover) {
	l.still = s.still & (ByMemory | BySwapping)
	if is, _ := k.shown.of(c.ID); is.suspended {
		l.still &^= ByMemory
	}
	c.ordering.Lock()
	defer c.ordering.Unlock()
	if !c.orders.underWay() && c.keeping == nil {
		l.still |= s.still & ByBackOff
		l.bound = s.disk.Device != "" && s.disk.Rate != cgroup.Unlimited()
	}
	return l
}

// auditStances ends what was left over of a container the last time, too.
func (k *Keeper) auditStances(there map[cluster.ContainerID]*Container) {
	k.left.begin()
	for id, c := range there {
		l := k.look(c)
		if l == (leftover{}) || !k.left.again(id, l) {
			continue
		}
		k.mended.Add(1)
		k.log.Error("resuming a container that no party wanted stopped or bounded any more", "container", id, "left",
			fmt.Sprintf("%+v", l))
		k.owner.Go(func() { k.endLeftover(c) })
	}
}

// look returns what is left over of a container. It does not wait for what is under way.
func (k *Keeper) look(c *Container) (l leftover) {
	if !c.acting.TryLock() {
		return leftover{}
	}
	defer c.acting.Unlock()
	c.posture.look(func(s *stance) {
		l = k.leftoverOf(c, s)
		requested, _ := c.Group.Frozen()
		l.frozen = requested && !s.held()
	})
	return l
}

// endLeftover ends what is left over now: a party may want it again.
func (k *Keeper) endLeftover(c *Container) {
	c.acting.Lock()
	defer c.acting.Unlock()
	ctx, cancel := context.WithTimeout(k.closed, throttleWithin)
	defer cancel()
	err := c.change(ctx, func(s *stance) {
		l := k.leftoverOf(c, s)
		if s.still &^= l.still; l.bound {
			s.disk.Rate = cgroup.Unlimited()
		}
	})
	if err != nil && !errors.Is(err, cgroup.ErrGone) && k.closed.Err() == nil {
		k.log.Warn("cannot resume a container", "container", c.ID, "error", err)
	}
}

// Mended returns how many containers were mended whose books or stances were wrong, since the keeper began.
func (k *Keeper) Mended() int64 { return k.mended.Load() }
