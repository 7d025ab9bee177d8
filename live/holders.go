package live

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// holders returns the tasks that may use the memory of a node while one of its tasks is suspended or waits for memory:
// the other tasks of the node, the largest first.
func holders(t *book.TaskState, reading func(*book.TaskState) *cluster.Reading) []api.Holder {
	if t.Node == nil {
		return nil
	}
	var all []api.Holder
	for _, other := range t.Node.Tasks {
		h := api.Holder{Task: other.ID, Bytes: int64(other.Grant[resource.Memory])}
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
	slices.SortFunc(all, func(a, b api.Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), a.Task.Compare(b.Task))
	})
	return all
}
