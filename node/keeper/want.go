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
	open versions
	busy bool // a goroutine carries them out
}

type versions [cluster.NumWantFields][]cluster.DecisionID

func (o *orders) add(f cluster.WantField, d *cluster.Decision) {
	o.want.Set(d)
	o.open[f] = append(o.open[f], d.ID)
}

// begin notes that a goroutine carries them out from now on, unless one does.
func (o *orders) begin() (begins bool) {
	begins = !o.busy
	o.busy = true
	return begins
}

// underWay reports whether a goroutine carries them out.
func (o *orders) underWay() bool { return o.busy }

// take returns what is to be carried out. If that is nothing, and there is not more to do, its goroutine ends.
func (o *orders) take(more bool) (want cluster.Want, open versions, ok bool) {
	open, ok = o.open, more
	for f := range open {
		ok = ok || len(open[f]) > 0
	}
	o.open, o.busy = versions{}, ok
	return o.want, open, ok
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
	c.orders.add(f, &o.Decision)
	c.ordering.Unlock()
	k.attend(c)
}

// attend begins a goroutine that carries out what is wanted of a container, unless one does.
func (k *Keeper) attend(c *Container) {
	c.ordering.Lock()
	begins := c.orders.begin()
	c.ordering.Unlock()
	if begins {
		k.owner.Go(func() { k.carryOut(c) })
	}
}

// take returns what is wanted of a container, with the versions that are to be answered. ok is false if nothing is to
// be done.
func (c *Container) take() (want cluster.Want, open versions, ok bool) {
	c.ordering.Lock()
	defer c.ordering.Unlock()
	return c.orders.take(c.leveled.take())
}

// carryOut brings a container into the state that is wanted of it, one field after another, and answers the versions.
// Each field is answered by itself: a size that cannot be had changes nothing of a hold.
func (k *Keeper) carryOut(c *Container) {
	for want, open, ok := c.take(); ok; want, open, ok = c.take() {
		for _, f := range inOrder {
			last := len(open[f]) - 1
			if last < 0 {
				continue
			}
			for _, id := range open[f][:last] {
				k.owner.Report(cluster.Event{Kind: cluster.DecisionSuperseded, Task: c.ID.Task, Run: c.ID.Run, Decision: id})
			}
			select {
			case <-c.Ending:
				return // Its end answers the orders. A frozen process would not see that it is to end.
			default:
			}
			detail, err := k.bring(c, f, &want)
			if k.closed.Err() != nil {
				return // The next keeper finds the record.
			}
			if !errors.Is(err, cgroup.ErrGone) { // its end answers the order
				k.owner.Answer(c.ID, open[f][last], detail, err)
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
	is Record
}

// adopt takes over the record that an earlier keeper left.
func (r *recorded) adopt(is Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is = is
}

func (r *recorded) get() Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.is
}

// put changes the record. If that fails, the record is as before.
func (r *recorded) put(in Records, how func(*Record)) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.is
	how(&next)
	switch next {
	case r.is:
		return nil
	case Record{}:
		err = in.Remove()
	default:
		err = in.Put(&next)
	}
	if err == nil {
		r.is = next
	}
	return err
}

// Recorded returns the record of the container.
func (c *Container) Recorded() Record { return c.record.get() }

// put changes the record. If that fails, the record is as before.
func (c *Container) put(how func(*Record)) error { return c.record.put(c.Records, how) }
