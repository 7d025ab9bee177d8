package live

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/board"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/live/kept"
)

// readers is what callers share who only read: what is slow to find out is found out once for all of them, and what
// holds up the loop is bounded together. Its methods may be called from any goroutine.
type readers struct {
	containers kept.Recent[map[cluster.ContainerID]cluster.Reading]
	crowd      kept.Recent[string] // whether the machine is crowded
	*board.Ended
	drive.Share // of the time of the loop, for explanations
}

func newReaders() readers {
	return readers{Ended: board.NewEnded(), Share: drive.NewShare()}
}

// begin lets callers in.
func (r *readers) begin(now time.Time) { r.Begin(now) }

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

// readings returns the current readings of the containers, at most kept.Old old. All callers share the result.
func (d *Driver) readings() map[cluster.ContainerID]cluster.Reading {
	readings, _ := d.datedReadings()
	return readings
}

// datedReadings returns readings, and when they were taken.
func (d *Driver) datedReadings() (map[cluster.ContainerID]cluster.Reading, time.Time) {
	return d.readers.readings(d.backend)
}
