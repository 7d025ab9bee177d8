package live

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// Holder is a task whose container may hold memory that another one waits for.
type Holder struct {
	Task  cluster.TaskID `json:"task"`
	Bytes int64          `json:"bytes"` // that it may hold now
}

// holders returns who may hold the memory of a node while one of its tasks stands still for want of it: the other tasks there, those
// that may hold most first.
func holders(t *cluster.TaskState, reading func(*cluster.TaskState) *cluster.Reading) []Holder {
	if t.Node == nil {
		return nil
	}
	var all []Holder
	for _, other := range t.Node.Tasks {
		h := Holder{other.ID, int64(other.Grant[resource.Memory])}
		if r := reading(other); r != nil {
			if r.State == cluster.ContainerWaiting {
				continue // It has not begun.
			}
			if r.Limit != nil {
				h.Bytes = *r.Limit
			}
		}
		if other.ID != t.ID {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), compareTasks(a.Task, b.Task)) })
	return all
}
