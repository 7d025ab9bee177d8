package jobs

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/live"
)

// leveledWords says since when and until when leveling holds a task, for which other task and why, or that this was not possible;
// empty if it does not hold the task.
func leveledWords(l *live.Leveled) string {
	if l == nil {
		return ""
	}
	until := "until " + l.Until.Local().Format(time.TimeOnly) + keepsGoing(l.For)
	if l.Failed != "" {
		return fmt.Sprintf("leveling wanted to hold it %s, but it still runs: %s", until, l.Failed)
	}
	text := "leveled "
	if !l.Since.IsZero() {
		text += "since " + l.Since.Local().Format(time.TimeOnly) + " "
	}
	if text += until; l.Why != "" {
		text += ": " + l.Why
	}
	return text
}

// keepsGoing names the task that keeps going because of a hold of leveling, if there is one.
func keepsGoing(id cluster.TaskID) string {
	if id == (cluster.TaskID{}) {
		return ""
	}
	return fmt.Sprintf(", so that task %s keeps going", id)
}
