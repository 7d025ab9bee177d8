package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// auditInterval is how often the memory manager's books are compared with the containers. A report about a container
// may be on its way; therefore only what was wrong the last time, too, is corrected.
const auditInterval = time.Minute

// audit compares the memory manager's books with the agent's containers, and corrects what was wrong twice. Without it,
// memory of a container that is gone would never be given out again, and memory of a container that is missing from the
// books would be given out twice.
func (k *keeper) audit() {
	var in memory.Input
	wrong := map[cluster.ContainerID]bool{}
	there := k.agent.started()
	k.auditStillness(there)
	k.auditStances(there)
	for id := range k.manager.Containers() {
		if _, known := there[id]; known {
			continue
		}
		if wrong[id] = true; k.suspects[id] && !k.agent.has(id) {
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
		if wrong[id] = true; k.suspects[id] {
			s := &memory.Started{Envelope: c.spec.envelope(), Limit: limitOf(c.group)}
			k.takeNews(news{started: s, of: c}, &in)
			k.mend(id, "runs, and its memory was not counted")
		}
	}
	k.suspects = wrong
	if len(in.Ended)+len(in.Started) > 0 {
		k.decide(in)
	}
}

func (k *keeper) mend(id cluster.ContainerID, what string) {
	k.mended.Add(1)
	k.agent.log.Error("the memory manager's books were wrong and have been corrected", "container", id, "what", what)
}

// overdue is how late the duty cycle of a throttle may be before the audit resumes its container.
const overdue = 30 * time.Second

// auditStillness resumes containers that a throttle has stopped for longer than its duty cycle planned, or leveling for longer
// than it should, because the goroutine that should resume them hangs.
func (k *keeper) auditStillness(there map[cluster.ContainerID]*container) {
	for id, c := range there {
		if c.leveledFor(k.agent.clock(), levelingGrace+overdue) {
			k.mended.Add(1)
			k.agent.log.Error("resuming a container that leveling has stopped for too long", "container", id)
			k.agent.overdue(c)
		}
		until := time.Duration(c.stillUntil.Load())
		if until == 0 || sinceBoot() < until+overdue || !c.stillUntil.CompareAndSwap(int64(until), 0) {
			continue
		}
		k.mended.Add(1)
		k.agent.log.Error("resuming a throttled container that was stopped for too long", "container", id)
		k.agent.begin(func() { k.agent.letGo(c) })
	}
}

// leveledFor reports whether leveling should have ended its hold of a container some time before now. It does not wait for a change that
// is under way.
func (c *container) leveledFor(now timeline.Time, by time.Duration) bool {
	if !c.changing.TryLock() {
		return false
	}
	defer c.changing.Unlock()
	return c.stance.engine.overdue(now, by)
}

// leftover is what a container's stance, or the kernel, does to it although no party wants that any more. A change of stance that
// failed leaves it: nothing orders the end of a throttle again, and an action of the memory manager that was given up may come
// after the one that replaced it. A hold of the engine is never left over: its record is there as long as the hold, and the
// engine, which learns that an order failed, can order again. For a hold of leveling see auditStillness.
type leftover struct {
	still  holders // who have it stopped
	bound  bool    // its disk is bounded
	frozen bool    // the kernel has it frozen, and its stance does not
}

// leftoverOf returns what of a stance of c no party wants any more. While no action of the memory manager is under way, nothing
// of its memory is being swapped out.
func (k *keeper) leftoverOf(c *container, s *stance) (l leftover) {
	k.mu.Lock()
	if l.still = s.still & (byMemory | bySwapping); k.state[c.id].suspended {
		l.still &^= byMemory
	}
	k.mu.Unlock()
	k.agent.mu.Lock()
	defer k.agent.mu.Unlock()
	if !c.throttled {
		l.still |= s.still & byBackOff
		l.bound = s.disk.Device != "" && s.disk.Rate != cgroup.Unlimited()
	}
	return l
}

// auditStances ends what was left over of a container the last time, too.
func (k *keeper) auditStances(there map[cluster.ContainerID]*container) {
	left := map[cluster.ContainerID]leftover{}
	for id, c := range there {
		l := k.look(c)
		if l == (leftover{}) {
			continue
		}
		left[id] = l
		if k.left[id] != l {
			continue
		}
		k.mended.Add(1)
		k.agent.log.Error("resuming a container that no party wanted stopped or bounded any more", "container", id, "left", fmt.Sprintf("%+v", l))
		k.agent.begin(func() { k.endLeftover(c) })
	}
	k.left = left
}

// look returns what is left over of a container. It does not wait for what is under way.
func (k *keeper) look(c *container) leftover {
	if !c.acting.TryLock() {
		return leftover{}
	}
	defer c.acting.Unlock()
	if !c.changing.TryLock() {
		return leftover{}
	}
	defer c.changing.Unlock()
	l := k.leftoverOf(c, &c.stance)
	requested, _ := c.group.Frozen()
	l.frozen = requested && !c.stance.held()
	return l
}

// endLeftover ends what is left over now: a party may want it again.
func (k *keeper) endLeftover(c *container) {
	c.acting.Lock()
	defer c.acting.Unlock()
	ctx, cancel := context.WithTimeout(k.agent.closed, throttleWithin)
	defer cancel()
	err := c.change(ctx, func(s *stance) {
		l := k.leftoverOf(c, s)
		if s.still &^= l.still; l.bound {
			s.disk.Rate = cgroup.Unlimited()
		}
	})
	if err != nil && !errors.Is(err, cgroup.ErrGone) && k.agent.closed.Err() == nil {
		k.agent.log.Warn("cannot resume a container", "container", c.id, "error", err)
	}
}

// Mended implements live.Audited.
func (a *Agent) Mended() int64 { return a.keeper.mended.Load() }

// has reports whether the agent knows a container, started or not.
func (a *Agent) has(id cluster.ContainerID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.containers[id]
	return ok
}

// started returns the containers that have a control group and a record.
func (a *Agent) started() map[cluster.ContainerID]*container {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[cluster.ContainerID]*container{}
	for id, c := range a.containers {
		if c.group != nil && c.spec != nil {
			all[id] = c
		}
	}
	return all
}
