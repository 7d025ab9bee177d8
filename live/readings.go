package live

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
)

// readingsLast is how long readings are shown before new ones are taken: people see no difference sooner, and reading
// takes milliseconds per container.
const readingsLast = 100 * time.Millisecond

// gauge keeps the last readings of the Backend, and whether the machine is crowded. Callers that ask while readings are taken share the
// result.
type gauge struct {
	free     chan struct{} // contains one token while no goroutine reads or takes them
	at       time.Time
	readings map[cluster.ContainerID]cluster.Reading

	crowded   string
	crowdedAt time.Time
}

func newGauge() gauge {
	g := gauge{free: make(chan struct{}, 1)}
	g.free <- struct{}{}
	return g
}

// readings returns the current readings of the containers, at most readingsLast old. All callers share the result.
func (d *Driver) readings() map[cluster.ContainerID]cluster.Reading {
	readings, _ := d.datedReadings()
	return readings
}

// datedReadings returns readings, and when they were taken.
func (d *Driver) datedReadings() (map[cluster.ContainerID]cluster.Reading, time.Time) {
	g := &d.gauge
	<-g.free
	defer func() { g.free <- struct{}{} }()
	if g.readings == nil || time.Since(g.at) >= readingsLast {
		g.readings, g.at = d.backend.Readings(), time.Now()
	}
	return g.readings, g.at
}

// crowded says whether all daemons of the machine together may grant more than it has: see Status. The Backend reads all sockets and
// groups of the machine for it, so the answer is kept as long as readings are.
func (d *Driver) crowded() string {
	c, ok := d.backend.(Crowded)
	if !ok {
		return ""
	}
	g := &d.gauge
	<-g.free
	defer func() { g.free <- struct{}{} }()
	if time.Since(g.crowdedAt) >= readingsLast {
		g.crowded, g.crowdedAt = c.Crowded(), time.Now()
	}
	return g.crowded
}
