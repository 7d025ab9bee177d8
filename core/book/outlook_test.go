package book

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Two tasks of 2 GiB and one of unknown end run on a node of 8 GiB that may have four containers.
func TestOutlookRoomFor(t *testing.T) {
	node := func(most int) *NodeState {
		n := &NodeState{Node: cluster.Node{Capacity: resource.Of(8000, 8*resource.GiB)}, most: most}
		for _, end := range []timeline.Time{timeline.Seconds(20), timeline.Seconds(10), timeline.Never} {
			n.Tasks = append(n.Tasks, &TaskState{Grant: resource.Of(1000, 2*resource.GiB), end: end})
		}
		n.setUnused(resource.Of(5000, 2*resource.GiB))
		return n
	}
	for _, c := range []struct {
		most, count int
		at          timeline.Time
	}{
		{0, 1, timeline.Seconds(5)},
		{0, 2, timeline.Seconds(10)},
		{0, 3, timeline.Seconds(20)},
		{0, 4, timeline.Never}, // one end is unknown
		{4, 1, timeline.Seconds(5)},
		{3, 1, timeline.Seconds(10)},
		{3, 2, timeline.Seconds(20)},
		{3, 3, timeline.Never},
		{2, 1, timeline.Seconds(20)}, // as after a new start with fewer containers per core
		{1, 2, timeline.Never},
	} {
		var o Outlook
		o.Look(node(c.most), func(t *TaskState) (timeline.Time, bool) { return t.end, t.end != timeline.Never })
		at, ok := o.RoomFor(c.count, resource.Of(1000, 2*resource.GiB), timeline.Seconds(5))
		if at != c.at || ok != (c.at != timeline.Never) {
			t.Errorf("%d more tasks, at most %d: room at %v (%v), want %v", c.count, c.most, at, ok, c.at)
		}
	}
}
