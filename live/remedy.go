package live

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Peak is the most memory that a run like the latest is expected to use, in bytes; 0 is unknown.
func (l *Learned) Peak() (most int64) {
	for i := range l.Variants {
		if v := &l.Variants[i]; !slices.Contains(v.Unknown, resource.Memory.Field()) {
			most = max(most, peakOf(v.Phases))
		}
	}
	return most
}

func peakOf(phases []ForecastPhase) (most int64) {
	for i := range phases {
		most = max(most, phases[i].Memory)
	}
	return most
}

// ProfileOf returns what a stage that names an application as its profile takes from what its runs taught: memory for
// their peak, 0 if that is unknown, and their run time. ok is false if no run of the stage taught.
func ProfileOf(all []Learned, stage string) (p cluster.Profile, ok bool) {
	at := slices.IndexFunc(all, func(l Learned) bool { return l.Stage == "" || l.Stage == stage })
	if at < 0 || len(all[at].Variants) == 0 {
		return p, false
	}
	l := &all[at]
	p.Ideal = resource.Amount(withRoom(l.Peak()))
	p.Duration = time.Duration(l.Variants[0].DurationSeconds * float64(time.Second))
	return p, true
}

// withRoom returns an eighth more than a peak, in whole MiB: no two runs use the same.
func withRoom(peak int64) int64 {
	return (peak + peak/8 + int64(resource.MiB) - 1) / int64(resource.MiB) * int64(resource.MiB)
}

// remedies says, a sentence for each stage, what may help a task that has failed for lack of memory.
func remedies(j *Job, spec *cluster.Job, forecasts []Forecast) (all []string) {
	told := map[int32]bool{}
	for i := range j.Tasks {
		t := &j.Tasks[i]
		if told[t.Task.Stage] || t.State != TaskEnded {
			continue
		}
		text := ""
		stage := &spec.Stages[t.Task.Stage]
		switch oom := t.Exit != nil && t.Exit.OOMKills > 0; {
		case oom && spec.Class == cluster.Flex:
			text = fmt.Sprintf("Task %s needed more than the maximum of its container: a larger --max-memory lets it "+
				"grow further.", t.Task)
		case oom:
			text = fmt.Sprintf("Task %s could use at most %s", t.Task, resource.FormatMemory(resource.Amount(t.MemoryBytes)))
			peak := int64(0)
			if f := forecasts[t.Task.Stage]; !slices.Contains(f.Unknown, resource.Memory.Field()) {
				peak = peakOf(f.Phases)
			}
			if peak > t.MemoryBytes {
				text += fmt.Sprintf(", and earlier runs used up to %s: give it --memory %s",
					resource.FormatMemory(resource.Amount(peak)), resource.FormatMemory(resource.Amount(withRoom(peak))))
			} else {
				text += " and needed more: give it a larger --memory"
			}
			text += ", or --class flex, so that its container grows."
		case spec.Class == cluster.Flex && t.Outcome == cluster.Failed && stage.Runtime == "" && startsJVM(stage.Args):
			text = "A JVM sizes its heap once, by the memory that its container has at first: --runtime jvm sizes it by " +
				"the maximum of the container."
		default:
			continue
		}
		told[t.Task.Stage] = true
		all = append(all, text)
	}
	return all
}

// startsJVM reports whether a command is that of a JVM, without options that size its heap.
func startsJVM(args []string) bool {
	return len(args) > 0 && filepath.Base(args[0]) == "java" && !slices.ContainsFunc(args[1:], func(arg string) bool {
		return len(arg) > 4 && arg[:4] == "-Xmx"
	})
}
