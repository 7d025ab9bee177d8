package view

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// awaited says what lets a task start that waits for a reason which does not say so itself.
var awaited = map[cluster.ReasonCode]string{
	cluster.NoRoom:       "It starts when enough tasks have ended; a job that requests less may start earlier.",
	cluster.NotAvailable: "It starts when containers have given memory back; a job that requests less may start earlier.",
	cluster.NodeFull:     "It starts when one of these containers has ended.",
	cluster.OverUserQuota: "It starts when other tasks of its user have ended, or an operator has raised the quota; " +
		"`bellows quota` shows all quotas.",
	cluster.OverQueueQuota: "It starts when other tasks of its queue have ended, or an operator has raised the quota; " +
		"`bellows quota` shows all quotas.",
	cluster.QueueFull:     "It starts when other tasks of its queue have ended.",
	cluster.UserLimit:     "It starts when other tasks of its user in the queue have ended.",
	cluster.NoSuchQueue:   "It never starts: kill it, and submit it to a queue of the policy.",
	cluster.PausedByOwner: "It starts after `bellows resume`.",
	cluster.BehindJob:     "It has its turn when that job has started.",
}

// Awaits says, in a sentence, what lets a job start that waits for a reason; nil if the reason says it.
func Awaits(why cluster.Reason) []string {
	if text := awaited[why.Code]; text != "" {
		return []string{text}
	}
	return nil
}

// Remedies says, a sentence for each stage, what may help a task that has failed for lack of memory.
func Remedies(j *api.Job, spec *cluster.Job, forecasts []api.Forecast) (all []string) {
	told := map[int32]bool{}
	for i := range j.Tasks {
		t := &j.Tasks[i]
		if told[t.Task.Stage] || t.State != api.TaskEnded {
			continue
		}
		text := ""
		switch oom := t.Outcome == cluster.OutOfMemory || t.Exit != nil && t.Exit.OOMKills > 0; {
		case oom:
			text = outgrew(t, spec)
			needed := int64(0)
			if f := forecasts[t.Task.Stage]; !slices.Contains(f.Unknown, resource.Memory.Field()) {
				needed = api.PeakOf(f.Phases)
			}
			if needed > t.MemoryBytes {
				text += "; earlier runs needed " + resource.FormatMemory(resource.Amount(needed))
			}
			text += "."
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

// outgrew says what a task that has ended for want of memory has outgrown, and what helps.
func outgrew(t *api.Task, spec *cluster.Job) string {
	limit, flag, whose := resource.Amount(t.MemoryBytes), "--memory", "the stated"
	if spec.Class == cluster.Flex {
		limit = spec.Stages[t.Task.Stage].MaxMemory
		if spec.Reserve == cluster.ReserveStated {
			flag, whose = "--max-memory", "its maximum of"
		}
	}
	held, quota := resource.Amount(0), resource.Amount(0)
	if t.Exit != nil {
		held, quota = t.Exit.Held, t.Exit.Quota
	}
	switch {
	case quota > 0:
		return fmt.Sprintf("Task %s needed more than the %s that it held, and the memory quota of its user, %s, was used "+
			"up: an operator can raise it; `bellows quota` shows all quotas", t.Task, resource.FormatMemory(held),
			resource.FormatMemory(quota))
	case limit > 0 && (held == 0 || held >= limit-limit/nearLimit):
		return fmt.Sprintf("Task %s outgrew %s %s: leave %s out, or state more", t.Task, whose,
			resource.FormatMemory(limit), flag)
	case held == 0:
		return fmt.Sprintf("Task %s needed more memory than its node could give", t.Task)
	}
	return fmt.Sprintf("Task %s needed more than the %s that it held, and its node could give no more", t.Task,
		resource.FormatMemory(held))
}

// nearLimit is what part of its limit a task may hold less than that when the kernel kills it: the kernel counts in
// batches.
const nearLimit = 20
