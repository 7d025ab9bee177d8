package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/swap"
)

// noSwap is a bench on a machine without swap.
func noSwap(t *testing.T, memory resource.Amount) *bench {
	t.Helper()
	testswap.Lock(t)
	if devices, err := (swap.Machine{}).Devices(); err != nil || len(devices) > 0 {
		t.Skipf("needs a machine without swap: %v %v", devices, err)
	}
	b := &bench{t: t, dir: t.TempDir(), memory: memory}
	b.open()
	t.Cleanup(b.cleanUp)
	return b
}

// growing is a program that takes the given number of MiB, checks them, and ends when the gate is open.
func (b *bench) growing(mib int, gate string, requeue bool) cluster.Order {
	o := asFlex(b.order(os.Args[0], "tight", "fill", fmt.Sprint(mib), gate), 48*resource.MiB, b.memory)
	o.Envelope.Min, o.Envelope.Requeue = 48*resource.MiB, requeue
	return o
}

// openedGate is a gate through which programs may go at once.
func openedGate(t *testing.T) string {
	gate := filepath.Join(t.TempDir(), "gate")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return gate
}

// again is the next run of a task that was requeued.
func again(o cluster.Order) cluster.Order {
	o.Container.Run++
	return o
}

// TestWithoutSwapOneIsRequeued: three programs grow on a node without swap that holds two of them. The last is
// requeued, with the reason, comes back with at least what it held, and all end right.
func TestWithoutSwapOneIsRequeued(t *testing.T) {
	b := noSwap(t, 400*resource.MiB)
	gate := openedGate(t)
	orders := map[cluster.TaskID]cluster.Order{}
	for range 3 {
		o := b.growing(150, gate, true)
		orders[o.Task] = o
		b.Apply([]cluster.Order{o})
	}
	requeued, right := 0, 0
	for right < 3 {
		e := b.next(cluster.TaskEnded)
		switch {
		case e.Outcome == cluster.Succeeded:
			right++
		case e.Outcome == cluster.Preempted && strings.HasPrefix(e.Detail, "requeued: "):
			if requeued++; requeued > 3 {
				t.Fatal("it is requeued again and again")
			}
			b.Forget(cluster.ContainerID{Task: e.Task, Run: e.Run})
			orders[e.Task] = again(orders[e.Task])
			b.Apply([]cluster.Order{orders[e.Task]})
		default:
			t.Fatalf("%s ended as %s: %s", e.Task, e.Outcome, e.Detail)
		}
	}
	if requeued == 0 {
		t.Error("none was requeued")
	}
	t.Logf("%d requeues", requeued)
}
