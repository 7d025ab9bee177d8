package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// orders is what is wanted of a container, with the versions of that which have not been answered.
type orders struct {
	want cluster.Want
	open [cluster.NumWantFields][]cluster.DecisionID
	busy bool // a goroutine carries them out
}

// inOrder are the fields of a Want as they are carried out. A bound takes effect at once; a container that waits for
// its disk may take long to freeze.
var inOrder = [cluster.NumWantFields]cluster.WantField{cluster.WantBound, cluster.WantSize, cluster.WantHold}

// Order takes an order to stop, resume, throttle or resize a container.
func (k *Keeper) Order(c *Container, o cluster.Order) {
	f, ok := o.Kind.Sets()
	if !ok {
		return
	}
	c.ordering.Lock()
	c.orders.want.Set(&o.Decision)
	c.orders.open[f] = append(c.orders.open[f], o.ID)
	c.ordering.Unlock()
	k.attend(c)
}

// attend begins a goroutine that carries out what is wanted of a container, unless one does.
func (k *Keeper) attend(c *Container) {
	c.ordering.Lock()
	busy := c.orders.busy
	c.orders.busy = true
	c.ordering.Unlock()
	if !busy {
		k.owner.Go(func() { k.carryOut(c) })
	}
}

// take returns what is wanted of a container, with the versions that are to be answered. ok is false if nothing is to
// be done.
func (c *Container) take() (o orders, ok bool) {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	o, ok = c.orders, c.leveled.is
	for f := range o.open {
		ok = ok || len(o.open[f]) > 0
	}
	c.orders.open, c.orders.busy, c.leveled.is = [cluster.NumWantFields][]cluster.DecisionID{}, ok, false
	return o, ok
}

// carryOut brings a container into the state that is wanted of it, one field after another, and answers the versions.
// Each field is answered by itself: a size that cannot be had changes nothing of a hold.
func (k *Keeper) carryOut(c *Container) {
	for o, ok := c.take(); ok; o, ok = c.take() {
		for _, f := range inOrder {
			last := len(o.open[f]) - 1
			if last < 0 {
				continue
			}
			for _, id := range o.open[f][:last] {
				k.owner.Report(cluster.Event{Kind: cluster.DecisionSuperseded, Task: c.ID.Task, Run: c.ID.Run, Decision: id})
			}
			select {
			case <-c.Ending:
				return // Its end answers the orders. A frozen process would not see that it is to end.
			default:
			}
			detail, err := k.bring(c, f, &o.want)
			if k.closed.Err() != nil {
				return // The next keeper finds the record.
			}
			if !errors.Is(err, cgroup.ErrGone) { // its end answers the order
				k.owner.Answer(c.ID, o.open[f][last], detail, err)
			}
		}
		k.endLeveling(c)
		if k.closed.Err() != nil {
			return
		}
	}
}

// bring brings one field of a container into the wanted state. detail says how, if that is not plain.
func (k *Keeper) bring(c *Container, f cluster.WantField, want *cluster.Want) (detail string, err error) {
	switch f {
	case cluster.WantBound:
		return k.Bound(c, want.Bound)
	case cluster.WantSize:
		return "", k.Resize(c, want.Size)
	case cluster.WantHold:
		return "", k.bringHold(c, want.Hold)
	}
	return "", fmt.Errorf("this machine does not know field %d of what is wanted of a container", f)
}

// Record is what a keeper records of a container that is not as it was started: what is wanted of it, each field from
// before it takes effect. The next keeper finishes what is recorded. So does who looks after the container while there
// is no keeper: it never changes the record, and ends every hold but that of the owner.
type Record struct {
	// Hold is there from before the container stops until after it runs again.
	Hold cluster.Hold `json:"hold,omitzero"`
	// Bound is there from before it takes effect until it is lifted, and Device, the disk that the kernel bounds
	// (major:minor, empty if it cannot), until after.
	Bound  cluster.Bound `json:"bound,omitzero"`
	Device string        `json:"device,omitempty"`
	// Size is zero if the container was never resized. Only a memory limit is lowered before it is recorded: then the
	// larger grant counts until the limit is known to be lower. Was is the grant before, and Resized is when it changed.
	Size    cluster.Size    `json:"size,omitzero"`
	Was     resource.Vector `json:"was,omitzero"`
	Resized timeline.Time   `json:"resized_ns,omitempty"`
	// Out is set from before its memory is paged out until it is back: its limit may not be raised.
	Out bool `json:"out,omitempty"`
}

// BoundEnded reports whether a bound is recorded that is over by now, and may not have been lifted.
func (r *Record) BoundEnded(now timeline.Time) bool {
	return (r.Device != "" || r.Bound != cluster.Bound{}) && !r.Bound.Lasts(now)
}

// WasResized reports whether the container was ever resized.
func (r *Record) WasResized() bool { return r.Size != cluster.Size{} }

// Records keeps the record of one container.
type Records interface {
	// Put replaces the record, even on a disk that is full, if there is one already.
	Put(*Record) error
	// Get reads the record. The error is an fs.ErrNotExist if there is none.
	Get(*Record) error
	Remove() error
}

// RecordOf returns the record of a container, which is zero if there is none, or if it cannot be read.
func RecordOf(f Records) (r Record, err error) {
	if err = f.Get(&r); err == nil {
		return r, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return Record{}, err
}

// recorded is the record of a container, in memory and in its Records.
type recorded struct {
	mu sync.Mutex
	Record
}

// Recorded returns the record of the container.
func (c *Container) Recorded() Record {
	c.record.mu.Lock()
	defer c.record.mu.Unlock()
	return c.record.Record
}

// put changes the record. If that fails, the record is as before.
func (c *Container) put(how func(*Record)) (err error) {
	c.record.mu.Lock()
	defer c.record.mu.Unlock()
	next := c.record.Record
	how(&next)
	switch next {
	case c.record.Record:
		return nil
	case Record{}:
		err = c.Records.Remove()
	default:
		err = c.Records.Put(&next)
	}
	if err == nil {
		c.record.Record = next
	}
	return err
}
