package fusedisk

import (
	"sync"
	"time"
)

// Pace is the speed of a disk with one arm.
type Pace struct {
	Rate int64         // bytes per second of a transfer; 0 is as fast as the content
	Seek time.Duration // before a transfer that does not begin where the last one ended
}

// Arm makes transfers take their time, one after the other. The zero Arm is as fast as the content.
type Arm struct {
	mu   sync.Mutex
	pace Pace
	head int64     // where the last transfer ended
	free time.Time // when all transfers that have come are done
}

// late is how far behind its schedule the arm may be and catch up, so that transfers which were woken late, and the
// time from one transfer to the next, cost no speed. After a longer pause it was idle.
const late = 100 * time.Millisecond

// Set changes the pace from now on.
func (a *Arm) Set(p Pace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pace, a.free = p, time.Time{}
}

// Move waits until a transfer that begins now is done.
func (a *Arm) Move(offset, bytes int64) {
	a.mu.Lock()
	done := a.schedule(time.Now(), offset, bytes)
	a.mu.Unlock()
	time.Sleep(time.Until(done))
}

// schedule returns when a transfer that comes now is done.
func (a *Arm) schedule(now time.Time, offset, bytes int64) time.Time {
	if a.pace.Rate == 0 {
		return now
	}
	if a.free.Before(now.Add(-late)) {
		a.free = now
	}
	if offset != a.head {
		a.free = a.free.Add(a.pace.Seek)
	}
	a.head = offset + bytes
	a.free = a.free.Add(time.Duration(float64(bytes) / float64(a.pace.Rate) * float64(time.Second)))
	return a.free
}
