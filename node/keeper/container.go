package keeper

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Setup is what its owner says of a container.
type Setup struct {
	ID    cluster.ContainerID
	Group *cgroup.Group
	// Grant and Envelope are those that it has when the keeper gets it.
	Grant    resource.Vector
	Envelope cluster.Envelope
	Records  Records
	// Ending is closed when it is to end, Gone when its owner watches it no longer.
	Ending, Gone <-chan struct{}
}

// Container is a control group with an envelope and a stance.
type Container struct {
	Setup
	acting sync.Mutex // one action of the memory manager at a time
	// stance is changed with changing locked, by the method change.
	changing sync.Mutex
	stance   stance
	stood    stood
	// breathing says that a goroutine lets it breathe while the engine holds it; changed with changing locked.
	breathing bool

	// ordering guards the orders that have not been carried out, and the next three.
	ordering                  sync.Mutex
	throttles, holds, resizes mailbox
	outing                    outing
	overdue                   bool        // leveling may hold it for too long
	expects                   *time.Timer // sets overdue in time

	ordered  chan struct{} // has an element when the goroutine that stays with it for a throttle has something to do
	throttle Throttle      // that was found in force; set before the inventory is reported
	// stillness is what was last reported of it.
	stillness stillness
	// stillUntil is when its throttle should let it run again, as time since boot, ns; 0 while the throttle has not
	// stopped it.
	stillUntil atomic.Int64
}

// NewContainer returns a container that no party has stopped.
func NewContainer(s Setup) *Container {
	return &Container{Setup: s, stance: stance{grant: s.Grant, mostCPU: s.Envelope.MostCPU},
		ordered: make(chan struct{}, 1)}
}

// mailbox has the orders of a kind, for one container, that have not been carried out. busy says that a goroutine
// carries them out.
type mailbox struct {
	orders []cluster.Order
	busy   bool
}

// put adds an order. The caller has to begin a goroutine unless one carries out orders already.
func (m *mailbox) put(o cluster.Order) (busy bool) {
	m.orders, busy, m.busy = append(m.orders, o), m.busy, true
	return busy
}

// take returns the orders that have not been carried out; ok is false if there are none and nothing else is to be done.
func (m *mailbox) take(more bool) (orders []cluster.Order, ok bool) {
	orders, m.orders = m.orders, nil
	m.busy = more || len(orders) > 0
	return orders, m.busy
}

// envelope returns what the memory manager may do with the container, as it was when the keeper got it.
func (c *Container) envelope() memory.Envelope {
	return memory.Envelope{Container: c.ID, Envelope: c.Envelope}
}

// Record names what a keeper records of a container.
type Record string

// What a keeper records of a container. Whoever looks after the container while there is no keeper goes by it.
const (
	HoldRecord     Record = "hold"     // a Hold: from before the container stops until after it runs again
	ThrottleRecord Record = "throttle" // a Throttle: from before it takes effect until after it is lifted
	OutRecord      Record = "out"      // from before its memory is paged out until it is back: its limit may not be raised
	SizeRecord     Record = "resize"   // a Size, if it was resized
)

// Records keeps the records of one container.
type Records interface {
	Put(r Record, value any) error
	// Get reads a record into a value. The error is an fs.ErrNotExist if there is none.
	Get(r Record, value any) error
	Has(r Record) bool
	Remove(r Record) error
}
