package keeper

import (
	"context"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
)

// Adopted is how a container is that was found.
type Adopted struct {
	By     cluster.Holders // the holders for which it stands still, with the memory manager
	Hold   cluster.Hold
	Out    bool            // by the newest order: its memory is to be out
	Left   resource.Amount // how much memory of its grant has left it
	Bound  cluster.Bound   // zero if there is none
	Detail string          // how the bound is carried out, unless the kernel alone does
}

// Adopt takes over a container that an earlier keeper had, and brings it to what its record says. The keeper does not
// work yet; what it reports of the container comes after Watch.
func (k *Keeper) Adopt(c *Container, r Record) Adopted {
	c.stillness.hush()
	if c.record.adopt(r); r.WasResized() {
		k.adoptSize(c)
	}
	k.adoptHold(c)
	k.adoptOut(c)
	k.found = append(k.found, news{started: found(k.closed, c), of: c})
	bound, how := k.adoptBound(c)
	k.heldByMemoryNow(c, c.Stopped()&ByMemory != 0)
	return Adopted{By: c.stillness.tells(), Hold: c.Held(), Out: c.outing.wants(), Left: c.Out(), Bound: bound,
		Detail: how}
}

// Watch stays with a container that was adopted, as long as what was found in force needs that.
func (k *Keeper) Watch(c *Container) {
	if c.outing.moves() {
		k.owner.Go(func() { k.moveMemory(c) })
	}
	if bound := c.Recorded().Bound; bound != (cluster.Bound{}) {
		k.keepBound(c, bound)
	}
	if h := c.Held(); h.Levels() {
		k.expectEnd(c, h.Until)
	}
}

// found describes a container that was found running, as the kernel shows it. A frozen FLEX container that is not
// paused waits for the memory manager. Every other container that is not paused runs at full speed: a REGULAR container
// that the last keeper left frozen would otherwise stay frozen.
func found(ctx context.Context, c *Container) *memory.Started {
	s := &memory.Started{Envelope: c.envelope(), Out: c.isOut()}
	frozen, _ := c.Group.Frozen()
	if s.Suspended = frozen && s.Class == cluster.Flex && c.Held().By == 0 && !s.Out; s.Suspended {
		c.posture.adopt(func(s *stance) { s.still |= ByMemory })
		c.posture.note(c.Group)
	} else {
		_ = c.change(ctx, func(*stance) {}) // If that fails, the audit finds it.
	}
	s.Limit = min(s.Max, limitOf(c.Group))
	return s
}
