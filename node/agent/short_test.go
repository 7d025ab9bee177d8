package agent

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// TestShortTasks: programs that end as soon as they begin, many at a time, or that do not exist, leave nothing
// allocated: in the end one that needs all of the machine starts.
func TestShortTasks(t *testing.T) {
	const tasks, atATime = 120, 12
	b := newBench(t)
	begun := 0
	begin := func() {
		command := "true"
		if begun++; begun%6 == 0 {
			command = "/no/such/program"
		}
		o := b.order(command)
		o.Grant = resource.Of(100, 16*resource.MiB)
		b.Apply([]cluster.Order{o})
	}
	for range atATime {
		begin()
	}
	for range tasks {
		b.next(cluster.TaskEnded)
		if begun < tasks {
			begin()
		}
	}
	all := b.order("true")
	all.Grant = resource.Of(100, resource.GiB)
	b.Apply([]cluster.Order{all})
	if e := b.next(cluster.TaskEnded); e.Task != all.Container.Task || e.Outcome != cluster.Succeeded {
		t.Errorf("what needs all of the machine ended as %s: %s", e.Outcome, e.Detail)
	}
}
