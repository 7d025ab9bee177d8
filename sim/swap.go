package sim

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// swapDevice moves the pages of a node's FLEX containers, one transfer after the other, at Machine.transferSpeed.
type swapDevice struct {
	queue []*transfer
	began timeline.Time // start of the first transfer in the queue
	turn  uint64        // of the agenda item for its end; 0 if the queue is empty
}

// transfer moves pages of a container to swap or back.
type transfer struct {
	of    *container
	bytes resource.Amount
	why   transferReason
}

type transferReason uint8

const (
	overflow transferReason = iota // out: the programs run, and ask for memory above the limit
	pageOut                        // out: the limit is to be lowered
	fault                          // in: the programs run, and the limit has room
	prefetch                       // in: the programs are suspended, and the limit has room for all of their pages
	leave                          // out: the programs stand still, and their memory is to be given to others
)

// move puts a transfer into the queue.
func (r *run) move(k *keeper, t *transfer) {
	k.device.queue = append(k.device.queue, t)
	if len(k.device.queue) == 1 {
		r.startTransfer(k)
	}
}

func (r *run) startTransfer(k *keeper) {
	d := &k.device
	d.turn = 0
	if len(d.queue) == 0 {
		return
	}
	d.began, d.turn = r.now, r.agenda.turn()
	takes := time.Duration(0)
	if speed := r.config.Machine.transferSpeed(d.queue[0].why); speed > 0 {
		takes = time.Duration(min(math.Ceil(float64(d.queue[0].bytes)*1e9/speed), math.MaxInt64/2))
	}
	r.agenda.pushAt(after(r.now, takes), d.turn, moved, int32(k.node))
}

// endTransfer handles the end of the first transfer of a node's queue.
func (r *run) endTransfer(id cluster.NodeID, i item) {
	k := r.keepers[id]
	if k.device.turn != i.seq {
		return // it was cancelled
	}
	t := k.device.queue[0]
	k.device.queue = slices.Delete(k.device.queue, 0, 1)
	r.startTransfer(k)
	r.moved(k, t, t.bytes)
	c := t.of
	switch t.why {
	case fault, overflow:
		c.moving = nil
		r.refresh(c)
	case prefetch:
		r.orderDone(c, false)
	case pageOut:
		r.lower(c)
	case leave:
		r.leftMemory(c)
	}
}

// moved books pages that have been moved.
func (r *run) moved(k *keeper, t *transfer, bytes resource.Amount) {
	c := t.of
	switch t.why {
	case fault, prefetch:
		c.swapped, c.resident = c.swapped-bytes, c.resident+bytes
		r.nodes[k.node].swap += bytes
		c.traffic += int64(bytes)
	case pageOut, leave:
		c.resident -= bytes
		r.wentOut(k, c, bytes)
	case overflow: // other pages take their place at once
		r.wentOut(k, c, bytes)
	}
}

func (r *run) wentOut(k *keeper, c *container, bytes resource.Amount) {
	k.promised -= bytes
	c.swapped += bytes
	c.traffic += int64(bytes)
	r.result.Jobs[c.task.job.index].SwappedBytes += bytes
}

// callOff cancels a container's transfers of the given reasons; pages that have already been moved are booked.
func (r *run) callOff(k *keeper, c *container, reasons ...transferReason) {
	d := &k.device
	for i := len(d.queue) - 1; i >= 0; i-- {
		t := d.queue[i]
		if t.of != c || !slices.Contains(reasons, t.why) {
			continue
		}
		done := resource.Amount(0)
		if i == 0 {
			done = min(t.bytes, resource.Amount(r.now.Sub(d.began).Seconds()*r.config.Machine.transferSpeed(t.why)))
		}
		r.moved(k, t, done)
		if t.why == pageOut || t.why == overflow || t.why == leave { // the reserved swap is not needed after all
			k.promised -= t.bytes - done
			r.nodes[k.node].swap += t.bytes - done
		}
		if t == c.moving {
			c.moving = nil
		}
		d.queue = slices.Delete(d.queue, i, i+1)
		if i == 0 {
			r.startTransfer(k)
		}
	}
}
