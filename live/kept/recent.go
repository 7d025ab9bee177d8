package kept

import (
	"sync"
	"time"
)

// Callers do not wait for a Recent while there is one that is young enough.
const (
	// Lasts is how long one is shown before a new one is made: people see no difference sooner.
	Lasts = 100 * time.Millisecond
	// Old is how long one is shown at most.
	Old = 500 * time.Millisecond
	// Part bounds the time for which they are made to 1/Part of all time, unless one would become older than Old: a new
	// one is begun when there is still time for four of them.
	Part = 20
)

// Recent is a value that takes long to make. It is made only when a caller asks for it, and callers share it.
type Recent[T any] struct {
	mu     sync.Mutex
	value  T
	at     time.Time     // when it was made; zero if it never was
	due    time.Time     // when it is made again at the earliest
	making chan struct{} // closed when the one that is being made is there; nil if none is
}

// Get returns a value that is at most Old old, and when it was made. It waits only if there is none: while
// one is made that replaces one younger than that, callers get the one before.
func (r *Recent[T]) Get(from func() T) (T, time.Time) {
	for {
		r.mu.Lock()
		now := time.Now()
		usable := !r.at.IsZero() && now.Sub(r.at) <= Old
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

func (r *Recent[T]) remake(from func() T) {
	begun := time.Now()
	value := from()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value, r.at = value, time.Now()
	took := r.at.Sub(begun)
	r.due = r.at.Add(max(Lasts, min((Part-1)*took, Old-4*took)))
	close(r.making)
	r.making = nil
}
