package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// size is the grant of a container that was resized. It is recorded next to spec.json from before it takes effect: the next agent,
// and the supervisor while there is none, go by it. Only a memory limit is lowered before: then the larger grant counts until the
// limit is known to be lower.
type size struct {
	Grant    resource.Vector  `json:"grant"`
	Envelope cluster.Envelope `json:"envelope"`
	// Was is the grant before, At is when it was changed, and Why is the reason.
	Was resource.Vector `json:"was"`
	At  timeline.Time   `json:"at_ns"`
	Why cluster.Reason  `json:"why,omitzero"`
}

const sizeFile = "resize.json"

// resizeWithin is how long the kernel may take to resize a container.
const resizeWithin = 10 * time.Second

// size returns the record of a container's size; ok is false if the container was never resized, or the record cannot be read.
func (f folder) size() (s size, ok bool) {
	err := f.get(sizeFile, &s)
	return s, err == nil && s.Grant[resource.Memory] > 0
}

// sized returns s with the size that the container has now.
func (f folder) sized(s *spec) *spec {
	now, ok := f.size()
	if !ok {
		return s
	}
	resized := *s
	resized.Grant, resized.Envelope = now.Grant, now.Envelope
	return &resized
}

// take changes a stance to that size; the memory limit is changed apart.
func (s *size) take(of *stance) { of.grant, of.mostCPU = s.Grant, s.Envelope.MostCPU }

// orderResize accepts an order to resize a container.
func (a *Agent) orderResize(o cluster.Order) {
	var begun bool
	c, ok := a.order(&o, func(c *container) {
		c.resizes, begun, c.resizing = append(c.resizes, o), c.resizing, true
	})
	if ok && !begun {
		a.begin(func() { a.carryOutResizes(c) })
	}
}

// takeResizes returns the orders to resize that have not been carried out.
func (a *Agent) takeResizes(c *container) (orders []cluster.Order) {
	a.mu.Lock()
	defer a.mu.Unlock()
	orders, c.resizes = c.resizes, nil
	c.resizing = len(orders) > 0
	return orders
}

// carryOutResizes carries out the last of the waiting orders to resize; the others are superseded.
func (a *Agent) carryOutResizes(c *container) {
	for orders := a.takeResizes(c); len(orders) > 0; orders = a.takeResizes(c) {
		last := len(orders) - 1
		a.supersede(c.id, orders[:last])
		a.answer(c.id, orders[last].ID, a.resize(c, &orders[last]))
		if a.closed.Err() != nil {
			return
		}
	}
}

// resize gives a container another grant. If it fails, the container is as before. A FLEX container gets and gives memory by the
// actions of the memory manager alone, which works with another envelope from now on.
func (a *Agent) resize(c *container, o *cluster.Order) error {
	if !c.spec.heedsResizes() {
		return errOldResize
	}
	if o.Grant[resource.Memory] < cluster.LeastRunMemory || o.Grant[resource.CPU] < cluster.LeastRunCPU {
		return fmt.Errorf("resize to %v: must be at least %v", o.Grant, resource.Of(cluster.LeastRunCPU, cluster.LeastRunMemory))
	}
	ctx, cancel := context.WithTimeout(a.closed, resizeWithin)
	defer cancel()
	before, recorded := c.dir.size()
	if !recorded {
		before = size{Grant: c.spec.Grant, Envelope: c.spec.Envelope}
	}
	was, is := before.Grant[resource.Memory], o.Grant[resource.Memory]
	regular := c.spec.Envelope.Class == cluster.Regular
	if was != is && regular && c.dir.exists(outFile) {
		return errors.New("its memory is paged out")
	}
	undo := func(err error) error {
		back := context.WithoutCancel(ctx)
		if recorded {
			err = errors.Join(err, c.dir.put(sizeFile, &before))
		} else {
			err = errors.Join(err, durable.RemoveAll(c.dir.path(sizeFile)))
		}
		if was != is {
			err = errors.Join(err, a.keeper.change(back, memory.Envelope{Container: c.id, Envelope: before.Envelope}, 0))
		}
		if regular && was > is {
			err = errors.Join(err, setMemory(back, c.group, was))
		}
		return errors.Join(err, c.change(back, before.take), weigh(back, c.group, before.Grant))
	}
	if regular && is < was {
		if err := a.giveBack(ctx, c, is); err != nil {
			return errors.Join(err, setMemory(context.WithoutCancel(ctx), c.group, was))
		}
	}
	if was != is {
		if err := a.keeper.change(ctx, memory.Envelope{Container: c.id, Envelope: o.Envelope}, is-was); err != nil {
			return err
		}
	}
	after := size{Grant: o.Grant, Envelope: o.Envelope, Was: before.Grant, At: now(), Why: o.Reason}
	if err := c.dir.put(sizeFile, &after); err != nil {
		return undo(fmt.Errorf("record the new size: %w", err))
	}
	if err := c.change(ctx, after.take); err != nil {
		return undo(fmt.Errorf("change the container's share of the CPU: %w", err))
	}
	if regular && is > was {
		if err := setMemory(ctx, c.group, is); err != nil {
			return undo(fmt.Errorf("raise the container's memory limit: %w", err))
		}
	}
	return nil
}

// giveBack lowers the limit of a REGULAR container, whose memory is not swapped out: only page cache is given back.
func (a *Agent) giveBack(ctx context.Context, c *container, limit resource.Amount) error {
	r, err := c.group.Read()
	if err != nil {
		return err
	}
	if holds := r.AnonBytes.Or(0); holds > int64(limit) {
		return fmt.Errorf("its programs hold %s of memory, more than %s", resource.FormatMemory(resource.Amount(holds)), resource.FormatMemory(limit))
	}
	if err := setMemory(ctx, c.group, limit); err != nil {
		return fmt.Errorf("lower the container's memory limit: %w", err)
	}
	return nil
}

// change has the memory manager work with another envelope of a container. A REGULAR container gets more memory only if that is
// allocated to no container.
func (k *keeper) change(ctx context.Context, e memory.Envelope, more resource.Amount) error {
	answer := make(chan error, 1)
	k.tell(news{changed: &e, more: more, answer: answer})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the memory manager does not answer: %w", ctx.Err())
	case <-k.agent.closed.Done():
		return k.agent.closed.Err()
	}
}

// takeChange takes in another envelope of a container.
func (k *keeper) takeChange(n news, in *memory.Input) {
	if n.changed.Class == cluster.Regular && n.more > 0 && k.manager.Allocated()+n.more > k.agent.config.Capacity[resource.Memory] {
		n.answer <- errors.New("FLEX containers have grown into the memory")
		return
	}
	in.Changed = append(in.Changed, *n.changed)
	if c, ok := k.kept[n.changed.Container]; ok {
		c.envelope = *n.changed
	}
	n.answer <- nil
}

// adoptSize brings a container that was resized, and that an earlier agent may have left in between, to its size.
func (a *Agent) adoptSize(c *container) {
	grant := c.spec.Grant
	ctx, cancel := context.WithTimeout(a.closed, resizeWithin)
	defer cancel()
	err := weigh(ctx, c.group, grant)
	if c.spec.Envelope.Class == cluster.Regular && !c.dir.exists(outFile) {
		err = errors.Join(err, setMemory(ctx, c.group, grant[resource.Memory]))
	}
	if err != nil && !errors.Is(err, cgroup.ErrGone) {
		a.log.Warn("cannot give a container that was found its size", "container", c.id, "error", err)
	}
}
