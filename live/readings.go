package live

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
)

// readingsLast is how long readings are shown before they are taken anew: nobody sees a difference sooner, and to read every
// container takes milliseconds each.
const readingsLast = 100 * time.Millisecond

// gauge holds the last readings of the Backend. Those who ask while they are taken share them.
type gauge struct {
	free     chan struct{} // holds one while nobody reads or takes them
	at       time.Time
	readings map[cluster.ContainerID]cluster.Reading
}

func newGauge() gauge {
	g := gauge{free: make(chan struct{}, 1)}
	g.free <- struct{}{}
	return g
}

// readings returns what the containers hold now, or held up to readingsLast ago. They belong to everybody who asked.
func (d *Driver) readings() map[cluster.ContainerID]cluster.Reading {
	g := &d.gauge
	<-g.free
	defer func() { g.free <- struct{}{} }()
	if g.readings == nil || time.Since(g.at) >= readingsLast {
		g.readings, g.at = d.backend.Readings(), time.Now()
	}
	return g.readings
}
