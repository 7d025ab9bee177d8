package live

import "github.com/bellows-rm/bellows/core/cluster"

// inventory is what the Backend finds before anything is decided. Only the loop uses it, but for complete.
type inventory struct {
	found  []cluster.Event
	isOver bool
	known  chan struct{} // closed once the engine knows all that was found
	apart  apart
}

func newInventory() *inventory { return &inventory{known: make(chan struct{}), apart: apart{}} }

// take takes an event, unless the inventory is over.
func (i *inventory) take(e cluster.Event) (taken bool) {
	if !i.isOver {
		i.found = append(i.found, e)
	}
	return !i.isOver
}

// all returns the events so far. They are changed in place.
func (i *inventory) all() []cluster.Event { return i.found }

// end begins the time in which events are handled as they come.
func (i *inventory) end() { i.found, i.isOver = nil, true }

// over reports whether events are handled as they come.
func (i *inventory) over() bool { return i.isOver }

// passedOn says that the engine knows all that was found.
func (i *inventory) passedOn() { close(i.known) }

// complete is closed once the engine knows all that was found.
func (i *inventory) complete() <-chan struct{} { return i.known }
