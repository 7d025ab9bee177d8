package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// leveledWords says since when and until when leveling holds a task, for which other task and why, or that this was
// not possible; empty if it does not hold the task.
func leveledWords(l *api.Leveled) string {
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

// memoryWaitWords says before which phase a task waits for memory, since when and until when at the latest, what it
// lacks, and which tasks are before it in line.
func memoryWaitWords(l *api.Leveled, m *api.MemoryWait) string {
	text := fmt.Sprintf("waits for memory before its phase %d", m.Phase)
	if !l.Since.IsZero() {
		text += " since " + l.Since.Local().Format(time.TimeOnly)
	}
	memory := func(bytes int64) string { return resource.FormatMemory(resource.Amount(bytes)) }
	text += fmt.Sprintf(
		", until %s at the latest: the phase needs %s, of which the task has %s, and %s are free on its node; it is ",
		l.Until.Local().Format(time.TimeOnly), memory(m.Needs), memory(m.Has), memory(m.Free))
	if len(m.Behind) == 0 {
		return text + "the first in line"
	}
	var before []string
	for _, id := range m.Behind {
		before = append(before, id.String())
	}
	return text + "in line behind " + strings.Join(before, ", ")
}

// keepsGoing names the task that keeps going because of a hold of leveling, if there is one.
func keepsGoing(id cluster.TaskID) string {
	if id == (cluster.TaskID{}) {
		return ""
	}
	return fmt.Sprintf(", so that task %s keeps going", id)
}
