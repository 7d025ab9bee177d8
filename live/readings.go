package live

import (
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Reading all containers takes milliseconds, and callers do not wait for it while there are readings that are young
// enough.
const (
	// readingsLast is how long readings are shown before new ones are taken: people see no difference sooner.
	readingsLast = 100 * time.Millisecond
	// readingsOld is how long readings are shown at most.
	readingsOld = 500 * time.Millisecond
	// readingsPart bounds the time for which containers are read to 1/readingsPart of all time, unless readings would
	// become older than readingsOld: new ones are begun when there is still time for four of them.
	readingsPart = 20
)

// recent is a value that takes long to make. It is made only when a caller asks for it, and callers share it.
type recent[T any] struct {
	mu     sync.Mutex
	value  T
	at     time.Time     // when it was made; zero if it never was
	due    time.Time     // when it is made again at the earliest
	making chan struct{} // closed when the one that is being made is there; nil if none is
}

// get returns a value that is at most readingsOld old, and when it was made. It waits only if there is none: while
// one is made that replaces one younger than that, callers get the one before.
func (r *recent[T]) get(from func() T) (T, time.Time) {
	for {
		r.mu.Lock()
		now := time.Now()
		usable := !r.at.IsZero() && now.Sub(r.at) <= readingsOld
		if r.making == nil && (!usable || !now.Before(r.due)) {
			r.making = make(chan struct{})
			go r.remake(from)
		}
		value, at, making := r.value, r.at, r.making
		r.mu.Unlock()
		if usable {
			return value, at
		}
		<-making
	}
}

func (r *recent[T]) remake(from func() T) {
	begun := time.Now()
	value := from()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value, r.at = value, time.Now()
	took := r.at.Sub(begun)
	r.due = r.at.Add(max(readingsLast, min((readingsPart-1)*took, readingsOld-4*took)))
	close(r.making)
	r.making = nil
}

// readings returns the current readings of the containers, at most readingsOld old. All callers share the result.
func (d *Driver) readings() map[cluster.ContainerID]cluster.Reading {
	readings, _ := d.datedReadings()
	return readings
}

// datedReadings returns readings, and when they were taken.
func (d *Driver) datedReadings() (map[cluster.ContainerID]cluster.Reading, time.Time) {
	return d.readers.readings(d.backend)
}
