package live

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/segments"
)

// roll begins the next segment if the log is large, with another engine. It waits for a moment in which no order but
// starts is under way. If something fails, everything stays as it was.
func (d *Driver) roll() {
	now := d.now()
	if d.inventory.over() && d.health.worst() == nil && d.events.Due(now) &&
		d.engine.Snapshot().Quiet() {
		d.beginSegment(now)
	}
}

func (d *Driver) beginSegment(now timeline.Time) {
	d.events.Tried(now)
	if d.events.There() != nil || d.events.Flush() != nil {
		return // The flush of this turn says so. A segment must not hide that the state directory was removed.
	}
	begun := time.Now()
	found := d.engine.TakeOver(now)
	next := d.config.newEngine()
	decisions, err := d.begin(next, now, found)
	var segment *segments.Segment
	if err == nil {
		if segment, err = d.newSegment(next, now, found); err == nil {
			err = d.events.Create(segment)
		}
	}
	if err != nil {
		d.config.newEngine() // drops what the policy has cached of the other engine
		d.events.Stays(err)
		return
	}
	d.events.Continue(segment, d.engine.Steps())
	d.engine = next
	for _, j := range d.jobs {
		if j.state != nil {
			j.state, _ = next.Snapshot().Job(j.ID)
		}
		d.touch(j.ID) // What is not in an inventory, such as estimates of ends, is shown no more.
	}
	d.events.Decided(now, decisions)
	d.takeAll(now, decisions)
	d.log.Debug("segment begun", "event_log", d.events.EventLog(), "bytes", d.events.Size(), "took", time.Since(begun))
	if most := d.keeping.Rule().OfEvents(); most > 0 {
		d.events.DropOldest(most)
	}
}

// newSegment returns the record of an engine that begins with the events found at now. It has no file yet.
func (d *Driver) newSegment(e *engine.Engine, now timeline.Time, found []cluster.Event) (*segments.Segment, error) {
	s, err := segments.NewSegment(d.config.header(e.Snapshot()), now, found)
	if err == nil {
		s.Bound(d.keeping.Rule().OfSegment())
	}
	return s, err
}

// begin tells an engine what was found.
func (d *Driver) begin(e *engine.Engine, now timeline.Time, found []cluster.Event) (decisions []cluster.Decision,
	err error) {
	d.watchdog.StepBegins(d.noteOf(&cluster.Event{Kind: cluster.Continued}))
	defer d.watchdog.StepEnds()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("engine: inventory at %v: panic: %v", now, p)
		}
	}()
	return e.Step(now, found...)
}
