package drive

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Step is a step of an engine that turns a panic into an error: a bug of a policy must not harm what runs. After an
// error the engine must not be used any more.
func Step(e *engine.Engine, now timeline.Time, events ...cluster.Event) (decisions []cluster.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			kind := "none"
			if len(events) > 0 {
				kind = events[len(events)-1].Kind.String()
			}
			err = fmt.Errorf("engine: event %s at %v: panic: %v", kind, now, p)
		}
	}()
	return e.Step(now, events...)
}
