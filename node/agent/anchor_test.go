package agent

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// TestAnchor: a program of 100 MiB is swapped out repeatedly, and runs on in less memory than it works with. It is not
// killed as long as there is room in swap. Without the anchor Linux 6.18 killed it in ten of ten runs next to other
// work.
func TestAnchor(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	onceInGuests(t)
	testswap.Need(t, 256<<20)
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "gate")
	o := asFlex(b.order(os.Args[0], "pattern", "100", gate), 32*resource.MiB, 32*resource.MiB) // the agent leaves it alone
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	g := b.container(o.Container).group
	limit := func(mib int64) {
		// The kernel may find it busy: then it keeps what it had.
		_ = keeper.SetMemory(t.Context(), g, resource.Amount(mib)*resource.MiB)
	}
	from := uint64(time.Now().UnixNano())
	t.Logf("seed %d", from)
	r := rand.New(rand.NewPCG(from, 0))
	all := func(int64) bool { return true }
	long := 12 * time.Second
	if slow() {
		long /= 3
	}
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(
		time.Duration(r.Int64N(int64(1500 * time.Millisecond)))) {
		if r.IntN(2) == 0 {
			limit([]int64{40, 52, 64, 96}[r.IntN(4)])
			continue
		}
		if err := g.Freeze(t.Context()); errors.Is(err, cgroup.ErrUnsupported) {
			t.Skipf("needs a freezer: %v", err)
		} else if err != nil {
			b.openGate(gate, 1) // says how it ended
		}
		_, _ = g.PageOut(t.Context(), all) // An ordinary user may not; then lowering the limit does it.
		limit(32)
		if err := g.Thaw(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	limit(120)
	b.openGate(gate, 1)
}
