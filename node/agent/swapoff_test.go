package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/swap"
)

// onlySwap makes a swap file on a machine that has no other swap, and returns what removes it.
func onlySwap(t *testing.T, size resource.Amount) (remove func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	testswap.Lock(t)
	if devices, err := (swap.Machine{}).Devices(); err != nil || len(devices) > 0 {
		t.Skipf("needs a machine without swap: %v %v", devices, err)
	}
	ledger := swap.NewLedger(swap.Machine{}, t.TempDir())
	d, err := ledger.CreateFile("", size)
	if errors.Is(err, swap.ErrRefused) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	on := true
	remove = func() {
		if !on {
			return
		}
		if err := ledger.Remove(context.Background(), d.Path); err != nil {
			t.Errorf("remove swap: %v", err)
		}
		on = false
	}
	t.Cleanup(remove)
	return remove
}

// TestSwapIsRemovedBeneath: swap is removed while programs have memory there. What comes back exceeds the limits of
// their containers, so that the kernel kills them. A program without memory in swap is not concerned,
// and whoever runs again ends right, without swap.
func TestSwapIsRemovedBeneath(t *testing.T) {
	remove := onlySwap(t, 512*resource.MiB)
	b := smallBench(t, 320*resource.MiB)
	gate := filepath.Join(t.TempDir(), "gate")
	beside := b.order(os.Args[0], "tight", "fill", "24", gate)
	beside.Grant[resource.Memory] = 64 * resource.MiB
	b.Apply([]cluster.Order{beside})
	b.next(cluster.DecisionDone)
	orders := map[cluster.TaskID]cluster.Order{}
	for range 2 {
		o := b.growing(150, gate, false)
		orders[o.Task] = o
		b.Apply([]cluster.Order{o})
		b.next(cluster.DecisionDone)
	}
	await(t, "a program has memory in swap", func() bool {
		for _, o := range orders {
			if r := b.reading(o.Container); r.State == cluster.ContainerSuspended && r.Swap != nil && *r.Swap > 16<<20 {
				return true
			}
		}
		return false
	})
	begun := timeline.Time(time.Now().UnixNano())
	remove()
	e := b.next(cluster.TaskEnded)
	if e.Outcome != cluster.OutOfMemory || e.Exit.Ended < begun {
		t.Fatalf("%s ended as %s, %v after the removal began: %s", e.Task, e.Outcome, e.Exit.Ended.Sub(begun), e.Detail)
	}
	t.Log(e.Detail)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for right := 0; ; e = b.next(cluster.TaskEnded) {
		switch {
		case e.Outcome == cluster.OutOfMemory && e.Run == 1 && e.Task != beside.Task:
			b.Forget(cluster.ContainerID{Task: e.Task, Run: e.Run})
			b.Apply([]cluster.Order{again(orders[e.Task])})
		case e.Outcome == cluster.Succeeded:
			if right++; right == 3 {
				return
			}
		default:
			t.Fatalf("%s, run %d, ended as %s: %s", e.Task, e.Run, e.Outcome, e.Detail)
		}
	}
}
