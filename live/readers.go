package live

import (
	"context"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/board"
	"github.com/bellows-rm/bellows/live/kept"
)

// readers is what callers share who only read: what is slow to find out is found out once for all of them, and what
// holds up the loop is bounded together. Its methods may be called from any goroutine.
type readers struct {
	containers kept.Recent[map[cluster.ContainerID]cluster.Reading]
	crowd      kept.Recent[string] // whether the machine is crowded
	past       *board.Ended
	// has the time from which the next explanation may be requested of the loop, while none is being
	explains chan time.Time
}

func newReaders() readers {
	return readers{past: board.NewEnded(), explains: make(chan time.Time, 1)}
}

// begin lets callers in.
func (r *readers) begin(now time.Time) { r.explains <- now }

// readings returns readings of the containers, at most kept.Old old, and when they were taken. All callers share
// the result.
func (r *readers) readings(b Backend) (map[cluster.ContainerID]cluster.Reading, time.Time) {
	return r.containers.Get(b.Readings)
}

// crowded says whether all daemons of the machine together may grant more than it has: see Status. The Backend reads
// all sockets and groups of the machine for it, so the answer is kept as long as readings are.
func (r *readers) crowded(b Backend) string {
	c, ok := b.(Crowded)
	if !ok {
		return ""
	}
	text, _ := r.crowd.Get(c.Crowded)
	return text
}

const (
	// explainPart bounds the time for which explanations hold up the loop to 1/explainPart of all time, however many are
	// requested.
	explainPart = 10
	// explainDebt is how long a wait must be to be worth one: shorter waits add up.
	explainDebt = 2 * time.Millisecond
)

// turn waits until the caller may hold up the loop: one at a time, and once the loop has had its part of the time since
// the callers before. The caller calls done with the time for which it has held up the loop.
func (r *readers) turn(ctx context.Context) (done func(held time.Duration), err error) {
	var free time.Time
	select {
	case free = <-r.explains:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = func(held time.Duration) {
		if held > 0 {
			if now := time.Now(); free.Before(now) {
				free = now
			}
			free = free.Add((explainPart - 1) * held)
		}
		r.explains <- free
	}
	if wait := time.Until(free); wait > explainDebt {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			done(0)
			return nil, ctx.Err()
		}
	}
	return done, nil
}

// readings returns the current readings of the containers, at most kept.Old old. All callers share the result.
func (d *Driver) readings() map[cluster.ContainerID]cluster.Reading {
	readings, _ := d.datedReadings()
	return readings
}

// datedReadings returns readings, and when they were taken.
func (d *Driver) datedReadings() (map[cluster.ContainerID]cluster.Reading, time.Time) {
	return d.readers.readings(d.backend)
}
