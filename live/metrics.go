package live

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/counts"
)

// Metrics returns what the Driver has counted. It does not use the engine.
func (d *Driver) Metrics() counts.Values {
	m := d.counts.Read(d.now())
	m.Hangs, m.Open = d.watchdog.Count(), make([]int64, cluster.NumJobStatuses)
	for j := range d.board.Newest().Jobs.All() {
		if !j.Ended {
			m.Open[j.Status]++
		}
	}
	for _, r := range d.readings() {
		m.Swapped += value(r.Swap)
	}
	return m
}
