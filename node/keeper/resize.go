package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Size is the grant of a container that was resized. It is recorded from before it takes effect: the next keeper, and
// who looks after the container while there is none, go by it. Only a memory limit is lowered before: then the larger
// grant counts until the limit is known to be lower.
type Size struct {
	Grant    resource.Vector  `json:"grant"`
	Envelope cluster.Envelope `json:"envelope"`
	// Was is the grant before, At is when it was changed, and Why is the reason.
	Was resource.Vector `json:"was"`
	At  timeline.Time   `json:"at_ns"`
	Why cluster.Reason  `json:"why,omitzero"`
}

// resizeWithin is how long the kernel may take to resize a container.
const resizeWithin = 10 * time.Second

// SizeOf returns the record of a container's size; ok is false if the container was never resized, or the record
// cannot be read.
func SizeOf(f Records) (s Size, ok bool) {
	err := f.Get(SizeRecord, &s)
	return s, err == nil && s.Grant[resource.Memory] > 0
}

// size returns the size that the container has now, and whether it is recorded.
func (c *Container) size() (s Size, recorded bool) {
	if s, recorded = SizeOf(c.Records); !recorded {
		s = Size{Grant: c.Grant, Envelope: c.Envelope}
	}
	return s, recorded
}

// sized returns the envelope that the container has now.
func (c *Container) sized() memory.Envelope {
	now, _ := c.size()
	return memory.Envelope{Container: c.ID, Envelope: now.Envelope}
}

// take changes a stance to that size; the memory limit is changed apart.
func (s *Size) take(of *stance) { of.grant, of.mostCPU = s.Grant, s.Envelope.MostCPU }

// orderResize accepts an order to resize a container.
func (k *Keeper) orderResize(c *Container, o cluster.Order) {
	c.ordering.Lock()
	busy := c.resizes.put(o)
	c.ordering.Unlock()
	if !busy {
		k.owner.Go(func() { k.carryOutResizes(c) })
	}
}

// takeResizes returns the orders to resize that have not been carried out.
func (k *Keeper) takeResizes(c *Container) (orders []cluster.Order) {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	orders, _ = c.resizes.take(false)
	return orders
}

// carryOutResizes carries out the last of the waiting orders to resize; the others are superseded.
func (k *Keeper) carryOutResizes(c *Container) {
	for orders := k.takeResizes(c); len(orders) > 0; orders = k.takeResizes(c) {
		last := len(orders) - 1
		k.supersede(c.ID, orders[:last])
		k.answer(c.ID, orders[last].ID, k.Resize(c, &orders[last]))
		if k.closed.Err() != nil {
			return
		}
	}
}

// Resize gives a container another grant. If it fails, the container is as before. A FLEX container gets and gives
// memory by the actions of the memory manager alone, which works with another envelope from now on.
func (k *Keeper) Resize(c *Container, o *cluster.Order) error {
	if o.Grant[resource.Memory] < cluster.LeastRunMemory || o.Grant[resource.CPU] < cluster.LeastRunCPU {
		return fmt.Errorf("resize to %v: must be at least %v", o.Grant,
			resource.Of(cluster.LeastRunCPU, cluster.LeastRunMemory))
	}
	ctx, cancel := context.WithTimeout(k.closed, resizeWithin)
	defer cancel()
	before, recorded := c.size()
	was, is := before.Grant[resource.Memory], o.Grant[resource.Memory]
	regular := c.Envelope.Class == cluster.Regular
	if was != is && regular && c.Records.Has(OutRecord) {
		return errors.New("its memory is paged out")
	}
	undo := func(err error) error {
		back := context.WithoutCancel(ctx)
		if recorded {
			err = errors.Join(err, c.Records.Put(SizeRecord, &before))
		} else {
			err = errors.Join(err, c.Records.Remove(SizeRecord))
		}
		if was != is {
			err = errors.Join(err, k.change(back, memory.Envelope{Container: c.ID, Envelope: before.Envelope}, 0))
		}
		if regular && was > is {
			err = errors.Join(err, SetMemory(back, c.Group, was))
		}
		return errors.Join(err, c.change(back, before.take), weigh(back, c.Group, before.Grant))
	}
	if regular && is < was {
		if err := k.giveBack(ctx, c, is); err != nil {
			return errors.Join(err, SetMemory(context.WithoutCancel(ctx), c.Group, was))
		}
	}
	if was != is {
		if err := k.change(ctx, memory.Envelope{Container: c.ID, Envelope: o.Envelope}, is-was); err != nil {
			return err
		}
	}
	after := Size{Grant: o.Grant, Envelope: o.Envelope, Was: before.Grant, At: timeline.Time(time.Now().UnixNano()),
		Why: o.Reason}
	if err := c.Records.Put(SizeRecord, &after); err != nil {
		return undo(fmt.Errorf("record the new size: %w", err))
	}
	if err := c.change(ctx, after.take); err != nil {
		return undo(fmt.Errorf("change the container's share of the CPU: %w", err))
	}
	if regular && is > was {
		if err := SetMemory(ctx, c.Group, is); err != nil {
			return undo(fmt.Errorf("raise the container's memory limit: %w", err))
		}
	}
	return nil
}

// giveBack lowers the limit of a REGULAR container, whose memory is not swapped out: only page cache is given back.
func (k *Keeper) giveBack(ctx context.Context, c *Container, limit resource.Amount) error {
	r, err := c.Group.Read()
	if err != nil {
		return err
	}
	if holds := r.AnonBytes.Or(0); holds > int64(limit) {
		return fmt.Errorf("its programs hold %s of memory, more than %s", resource.FormatMemory(resource.Amount(holds)),
			resource.FormatMemory(limit))
	}
	if err := SetMemory(ctx, c.Group, limit); err != nil {
		return fmt.Errorf("lower the container's memory limit: %w", err)
	}
	return nil
}

// change has the memory manager work with another envelope of a container. A REGULAR container gets more memory only
// if that is allocated to no container.
func (k *Keeper) change(ctx context.Context, e memory.Envelope, more resource.Amount) error {
	answer := make(chan error, 1)
	k.tell(news{changed: &e, more: more, answer: answer})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the memory manager does not answer: %w", ctx.Err())
	case <-k.closed.Done():
		return k.closed.Err()
	}
}

// takeChange takes in another envelope of a container.
func (k *Keeper) takeChange(n news, in *memory.Input) {
	if n.changed.Class == cluster.Regular && n.more > 0 && k.manager.Allocated()+n.more > k.config.Capacity {
		n.answer <- errors.New("FLEX containers have grown into the memory")
		return
	}
	in.Changed = append(in.Changed, *n.changed)
	if c, ok := k.kept[n.changed.Container]; ok {
		c.envelope = *n.changed
	}
	n.answer <- nil
}

// adoptSize brings a container that was resized, and that an earlier keeper may have left in between, to its size.
func (k *Keeper) adoptSize(c *Container) {
	grant := c.Grant
	ctx, cancel := context.WithTimeout(k.closed, resizeWithin)
	defer cancel()
	err := weigh(ctx, c.Group, grant)
	if c.Envelope.Class == cluster.Regular && !c.Records.Has(OutRecord) {
		err = errors.Join(err, SetMemory(ctx, c.Group, grant[resource.Memory]))
	}
	if err != nil && !errors.Is(err, cgroup.ErrGone) {
		k.log.Warn("cannot give a container that was found its size", "container", c.ID, "error", err)
	}
}
