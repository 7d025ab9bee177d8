package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// Blockers returns who holds what is granted on the nodes that are large enough for a task, those who hold most of
// the resource that is lacking first. It is nil if the task waits for something else.
// of returns the blocker that a task belongs to, without what it holds.
func Blockers(s *book.Snapshot, need resource.Vector, of func(*book.TaskState) api.Blocker) (all []api.Blocker,
	lacks resource.Kind) {
	lacks = resource.NumKinds
	var on []*book.NodeState
	for _, n := range s.Nodes {
		switch free := n.Free; {
		case !n.Holds(need):
			continue
		case free[resource.Memory] < need[resource.Memory]:
			lacks = resource.Memory
		case free[resource.CPU] < need[resource.CPU]:
			lacks = min(lacks, resource.CPU)
		default:
			return nil, lacks
		}
		on = append(on, n)
	}
	for _, n := range on {
		for _, t := range n.Tasks {
			all = blocked(all, of(t), t)
		}
	}
	held := func(b *api.Blocker) int64 {
		if lacks == resource.CPU {
			return b.CPUMillicores
		}
		return b.MemoryBytes
	}
	all = slices.DeleteFunc(all, func(b api.Blocker) bool { return held(&b) == 0 })
	slices.SortStableFunc(all, func(a, b api.Blocker) int { return cmp.Compare(held(&b), held(&a)) })
	return all, lacks
}

// blocked adds what a task holds to the blocker that it belongs to.
func blocked(all []api.Blocker, b api.Blocker, t *book.TaskState) []api.Blocker {
	at := slices.IndexFunc(all, func(o api.Blocker) bool {
		return o.Job == b.Job && o.Pool == b.Pool && o.OtherUsers == b.OtherUsers && o.Paused == b.Paused
	})
	if at < 0 {
		all, at = append(all, b), len(all)
	}
	holds := t.Holds()
	all[at].Tasks++
	all[at].MemoryBytes += int64(holds[resource.Memory])
	all[at].CPUMillicores += int64(holds[resource.CPU])
	return all
}

// mostBlockers is how many blockers are put into words.
const mostBlockers = 4

// BlockersWords says who holds what is lacking; empty if no task does.
func BlockersWords(all []api.Blocker, lacks resource.Kind) string {
	var parts []string
	rest := int64(0)
	for i := range all {
		b := &all[i]
		held := b.MemoryBytes
		if lacks == resource.CPU {
			held = b.CPUMillicores
		}
		if i >= mostBlockers {
			rest += held
			continue
		}
		amount := lacks.Format(resource.Amount(held))
		if i == 0 {
			if amount = lacks.FormatOf(resource.Amount(held)); amount == "1 core" {
				amount += " is held"
			} else {
				amount += " are held"
			}
		}
		parts = append(parts, amount+" by "+blockerWords(b, lacks, held))
	}
	if rest > 0 {
		parts = append(parts, lacks.Format(resource.Amount(rest))+" by others")
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, ", ") + "."
}

func blockerWords(b *api.Blocker, lacks resource.Kind, held int64) (text string) {
	switch {
	case b.OtherUsers:
		return "jobs of other users"
	case b.Pool != "" && b.Tasks == 1:
		text = fmt.Sprintf("an executor of pool %s", cluster.Printable(b.Pool))
	case b.Pool != "":
		text = fmt.Sprintf("%d executors of pool %s", b.Tasks, cluster.Printable(b.Pool))
	case b.Paused:
		text = fmt.Sprintf("paused job %d", b.Job)
	default:
		return fmt.Sprintf("job %d", b.Job)
	}
	switch {
	case b.Release == "" || b.Paused && lacks == resource.CPU:
	case b.Paused:
		text += fmt.Sprintf(" (`%s` frees up to %s)", b.Release, lacks.Format(resource.Amount(held)))
	default:
		text += fmt.Sprintf(" (`%s` says why they stay)", b.Release)
	}
	return text
}
