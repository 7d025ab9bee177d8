package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/resource"
)

// throttled returns what bounds a running task now; nil if nothing does.
func throttled(t *live.Task) *live.Throttle {
	if t.State == live.TaskRunning && t.Throttle != nil && t.Throttle.InForce {
		return t.Throttle
	}
	return nil
}

// throttleWords says what bounds a task, until when and why.
func throttleWords(t *live.Throttle) string {
	var bounds []string
	for kind, bound := range (resource.Vector{resource.Disk: resource.Amount(t.Disk), resource.Network: resource.Amount(t.Network)}) {
		if bound > 0 {
			bounds = append(bounds, resource.Kind(kind).FormatOf(bound))
		}
	}
	text := "throttled"
	switch {
	case t.Failed != "":
		text = "cannot be throttled"
	case !t.InForce:
		text = "being throttled"
	}
	text += fmt.Sprintf(" to %s until %s", strings.Join(bounds, " and "), t.Until.Local().Format(time.TimeOnly))
	for _, more := range []string{t.Failed, t.Why} {
		if more != "" {
			text += ": " + more
			break
		}
	}
	if t.How != "" {
		text += "; " + t.How
	}
	return text
}
