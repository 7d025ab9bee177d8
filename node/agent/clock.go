package agent

import (
	"time"

	"github.com/bellows-rm/bellows/core/timeline"
)

// newClock returns the clock of the engine, which is in the same process: the calendar now, plus the time since then.
// The calendar may be set, and skips hours in which the machine slept: what the engine has ordered until some time
// must neither end at once nor last for hours because of that. The calendar itself is the function now.
func newClock() func() timeline.Time {
	began := time.Now()
	return func() timeline.Time { return timeline.Time(began.UnixNano()).Add(time.Since(began)) }
}
