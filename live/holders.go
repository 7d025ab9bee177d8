package live

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Holder is a task whose container may use memory that another container waits for.
type Holder struct {
	Task  cluster.TaskID `json:"task"`
	Bytes int64          `json:"bytes"` // the most that it may use now
}

// holders returns the tasks that may use the memory of a node while one of its tasks is suspended or waits for memory:
// the other tasks of the node, the largest first.
func holders(t *book.TaskState, reading func(*book.TaskState) *cluster.Reading) []Holder {
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
	slices.SortFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), a.Task.Compare(b.Task))
	})
	return all
}
