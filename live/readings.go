package live

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
)

// readingsLast is how long readings are shown before new ones are taken: people see no difference sooner, and reading
// takes milliseconds per container.
const readingsLast = 100 * time.Millisecond

// gauge keeps the last readings of the Backend. Callers that ask while readings are taken share the result.
type gauge struct {
	free     chan struct{} // contains one token while no goroutine reads or takes them
	at       time.Time
	readings map[cluster.ContainerID]cluster.Reading
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
