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

// resizeWithin is how long the kernel may take to resize a container.
const resizeWithin = 10 * time.Second

// size returns the size that the container has now.
func (c *Container) size() cluster.Size {
	if r := c.Recorded(); r.WasResized() {
		return r.Size
	}
	return cluster.Size{Grant: c.Grant, Envelope: c.Envelope}
}

// sized returns the envelope that the container has now.
func (c *Container) sized() memory.Envelope {
	return memory.Envelope{Container: c.ID, Envelope: c.size().Envelope}
}

// sizedTo changes a stance to a size; the memory limit is changed apart.
func sizedTo(size cluster.Size) func(*stance) {
	return func(s *stance) { s.grant, s.mostCPU = size.Grant, size.Envelope.MostCPU }
}

// Resize gives a container another grant. If it fails, the container is as before. A FLEX container gets and gives
// memory by the actions of the memory manager alone, which works with another envelope from now on.
func (k *Keeper) Resize(c *Container, o cluster.Size) error {
	if o.Grant[resource.Memory] < cluster.LeastRunMemory || o.Grant[resource.CPU] < cluster.LeastRunCPU {
		return fmt.Errorf("resize to %v: must be at least %v", o.Grant,
			resource.Of(cluster.LeastRunCPU, cluster.LeastRunMemory))
	}
	ctx, cancel := context.WithTimeout(k.closed, resizeWithin)
	defer cancel()
	before, record := c.size(), c.Recorded()
	was, is := before.Grant[resource.Memory], o.Grant[resource.Memory]
	regular := c.Envelope.Class == cluster.Regular
	if was != is && regular && record.Out {
		return errors.New("its memory is paged out")
	}
	undo := func(err error) error {
		back := context.WithoutCancel(ctx)
		err = errors.Join(err, c.put(func(r *Record) { r.Size, r.Was, r.Resized = record.Size, record.Was, record.Resized }))
		if was != is {
			err = errors.Join(err, k.change(back, memory.Envelope{Container: c.ID, Envelope: before.Envelope}, 0))
		}
		if regular && was > is {
			err = errors.Join(err, SetMemory(back, c.Group, was))
		}
		return errors.Join(err, c.change(back, sizedTo(before)), weigh(back, c.Group, before.Grant))
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
	err := c.put(func(r *Record) {
		r.Size, r.Was, r.Resized = o, before.Grant, timeline.Time(time.Now().UnixNano())
	})
	if err != nil {
		return undo(fmt.Errorf("record the new size: %w", err))
	}
	if err := c.change(ctx, sizedTo(o)); err != nil {
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
		k.shown.read(c)
	}
	n.answer <- nil
}

// adoptSize brings a container that was resized, and that an earlier keeper may have left in between, to its size.
func (k *Keeper) adoptSize(c *Container) {
	grant := c.Grant
	ctx, cancel := context.WithTimeout(k.closed, resizeWithin)
	defer cancel()
	err := weigh(ctx, c.Group, grant)
	if c.Envelope.Class == cluster.Regular && !c.Recorded().Out {
		err = errors.Join(err, SetMemory(ctx, c.Group, grant[resource.Memory]))
	}
	if err != nil && !errors.Is(err, cgroup.ErrGone) {
		k.log.Warn("cannot give a container that was found its size", "container", c.ID, "error", err)
	}
}
