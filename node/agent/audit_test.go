package agent

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
)

// TestAudit: a container in the memory manager's books that there is not, and one that there is and is not in the books, are found
// wrong at the first audit and mended at the second; what is right stays.
func TestAudit(t *testing.T) {
	b := newBench(t)
	right, missing := b.order("sleep", "1000"), b.order("sleep", "1000")
	for _, o := range []cluster.Order{right, missing} {
		b.Apply([]cluster.Order{o})
		b.next(cluster.DecisionDone)
	}
	k := b.keeper
	b.Close() // the keeper's goroutine ends, and the test has its place
	lost := cluster.ContainerID{Task: cluster.TaskID{Job: 9999}, Run: 1}
	k.decide(memory.Input{Started: []memory.Started{{Envelope: memory.Envelope{Container: lost, Envelope: cluster.Envelope{Min: 100 * resource.MiB, Max: 100 * resource.MiB}}}},
		Ended: []cluster.ContainerID{missing.Container}})
	if held := k.manager.Allocated(); held != 164*resource.MiB {
		t.Fatalf("%d bytes are allocated, and the books are not as wrong as they should be", held)
	}
	k.audit()
	if n := b.Mended(); n != 0 {
		t.Errorf("%d containers are mended at first sight", n)
	}
	k.audit()
	k.audit()
	if n, held := b.Mended(), k.manager.Allocated(); n != 2 || held != 128*resource.MiB {
		t.Errorf("%d containers are mended, and %d bytes allocated", n, held)
	}
	b.open()
	for range 2 {
		b.next(cluster.TaskAdopted)
	}
}
