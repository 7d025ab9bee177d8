package drive

import (
	"context"
	"time"
)

// Share is the share of the time of a loop that callers have who hold it up, one at a time. It has the time from which
// the next of them may, while none does. Its methods may be called from any goroutine.
type Share chan time.Time

// NewShare returns a Share that blocks all callers before Begin.
func NewShare() Share { return make(Share, 1) }

// Begin lets callers in from now on.
func (s Share) Begin(now time.Time) { s <- now }

const (
	// SharePart bounds the time for which callers hold up the loop to 1/SharePart of all time, however many there
	// are.
	SharePart = 10
	// shareDebt is how long a wait must be to be worth one: shorter waits add up.
	shareDebt = 2 * time.Millisecond
)

// Turn waits until the caller may hold up the loop: one at a time, and once the loop has had its part of the time since
// the callers before. The caller calls done with the time for which it has held up the loop.
func (s Share) Turn(ctx context.Context) (done func(held time.Duration), err error) {
	var free time.Time
	select {
	case free = <-s:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = func(held time.Duration) {
		if held > 0 {
			if now := time.Now(); free.Before(now) {
				free = now
			}
			free = free.Add((SharePart - 1) * held)
		}
		s <- free
	}
	if wait := time.Until(free); wait > shareDebt {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			done(0)
			return nil, ctx.Err()
		}
	}
	return done, nil
}
