package view

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// Remedies says, a sentence for each stage, what may help a task that has failed for lack of memory.
func Remedies(j *api.Job, spec *cluster.Job, forecasts []api.Forecast) (all []string) {
	told := map[int32]bool{}
	for i := range j.Tasks {
		t := &j.Tasks[i]
		if told[t.Task.Stage] || t.State != api.TaskEnded {
			continue
		}
		text := ""
		switch oom := t.Exit != nil && t.Exit.OOMKills > 0; {
		case oom && spec.Class == cluster.Flex:
			text = fmt.Sprintf("Task %s needed more than the maximum of its container: a larger --max-memory lets it "+
				"grow further.", t.Task)
		case oom:
			text = fmt.Sprintf("Task %s could use at most %s", t.Task, resource.FormatMemory(resource.Amount(t.MemoryBytes)))
			peak := int64(0)
			if f := forecasts[t.Task.Stage]; !slices.Contains(f.Unknown, resource.Memory.Field()) {
				peak = api.PeakOf(f.Phases)
			}
			if peak > t.MemoryBytes {
				text += fmt.Sprintf(", and earlier runs used up to %s: give it --memory %s",
					resource.FormatMemory(resource.Amount(peak)), resource.FormatMemory(resource.Amount(api.WithRoom(peak))))
			} else {
				text += " and needed more: give it a larger --memory"
			}
			text += ", or --class flex, so that its container grows."
		case spec.Class == cluster.Flex && t.Outcome == cluster.Failed && cluster.GivenHeap(t.Why) != "":
			text = fmt.Sprintf("If task %s ran out of heap: %s; a larger --max-memory raises it.", t.Task,
				cluster.GivenHeap(t.Why))
		default:
			continue
		}
		told[t.Task.Stage] = true
		all = append(all, text)
	}
	return all
}
