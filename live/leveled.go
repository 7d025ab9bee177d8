package live

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// leveledOf returns the view of a hold of leveling; nil if leveling does not hold the task.
func leveledOf(t *book.TaskState, r *run) *api.Leveled {
	h, ok := t.HeldUntil()
	if !ok {
		return nil
	}
	out := &api.Leveled{Since: instant(h.Since), Until: instant(h.Until), For: h.For}
	if h.Since == 0 && t.SuspendedBy == cluster.HeldByLeveling {
		out.Since = instant(t.SuspendedSince)
	}
	if h.Why.Code != 0 {
		out.Why = h.Why.Words(clock)
	}
	if r != nil && t.Hold.Failed {
		out.Failed = r.failed[cluster.WantHold]
	}
	return out
}

// memoryWaitOf returns what a task waits for that stands in line for memory: that of the first phase, from the
// present one on, which needs more than it is granted; nil if there is none, or if it does not stand in line.
func memoryWaitOf(t *book.TaskState, now timeline.Time) *api.MemoryWait {
	_, waits := t.WaitsForMemory()
	at, known := t.PhaseAt(now)
	stage, phases := t.Stage(), t.Stage().Phases
	for i := int(at); waits && known && i < len(phases); i++ {
		needs := min(stage.Ideal[resource.Memory], t.Job.GrantIn(int(t.ID.Stage), int32(i))[resource.Memory])
		if phases[i].Duration == 0 || needs <= t.WantedGrant()[resource.Memory] {
			continue
		}
		return &api.MemoryWait{Phase: i + 1, Needs: int64(needs), Has: int64(t.Holds()[resource.Memory]),
			Free: int64(max(0, t.Node.Unused()[resource.Memory])), Behind: inLineBefore(t)}
	}
	return nil
}

// inLineBefore returns the tasks of a node that stand in line for memory before t.
func inLineBefore(t *book.TaskState) (all []cluster.TaskID) {
	line := slices.DeleteFunc(slices.Clone(t.Node.Tasks), func(t *book.TaskState) bool {
		_, waits := t.WaitsForMemory()
		return !waits
	})
	slices.SortFunc(line, func(a, b *book.TaskState) int {
		x, _ := a.WaitsForMemory()
		y, _ := b.WaitsForMemory()
		return cmp.Or(cmp.Compare(x.Since, y.Since), a.ID.Compare(b.ID))
	})
	for _, before := range line[:slices.Index(line, t)] {
		all = append(all, before.ID)
	}
	return all
}
