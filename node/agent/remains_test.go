package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// TestMemoryThatOutlivesItsContainer: a program leaves a file in memory. Its end says so, and the engine learns of it
// before the end, after a restart of the agent, and when the file is gone.
func TestMemoryThatOutlivesItsContainer(t *testing.T) {
	b := newBench(t)
	file := fmt.Sprintf("/dev/shm/bellows-test-%d", os.Getpid())
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Skipf("needs a file system in memory: %v", err)
	}
	defer os.Remove(file)
	const size = 24 * resource.MiB
	o := b.order("sh", "-c", fmt.Sprintf("head -c %d /dev/zero > %s", int64(size), file))
	b.Apply([]cluster.Order{o})
	if e := b.next(cluster.NodeLeftover); e.Held < size || e.Held > 2*size {
		t.Errorf("%d bytes are reported as left, want about %d", e.Held, size)
	}
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded ||
		!strings.Contains(e.Detail, "left 24MiB in memory") {
		t.Errorf("ended %+v", e)
	}
	b.Forget(o.Container)
	b.reopen()
	if e := b.next(cluster.NodeLeftover); e.Held < size || b.remaining() != e.Held {
		t.Errorf("after a restart %d bytes are reported as left, and %d are withheld", e.Held, b.remaining())
	}
	b.next(cluster.Synced)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	b.takeRemains()
	if e := b.next(cluster.NodeLeftover); e.Held != 0 || b.remaining() != 0 {
		t.Errorf("without the file %d bytes are reported as left, and %d are withheld", e.Held, b.remaining())
	}
	// What containers share while they run is theirs.
	o = b.order("sh", "-c", fmt.Sprintf("head -c %d /dev/zero > %s; echo written; exec sleep 1000", int64(size), file))
	b.Apply([]cluster.Order{o})
	b.awaitOutput(o, "written\n")
	b.takeRemains()
	if b.remaining() != 0 {
		t.Errorf("a file of a program that runs is left over: %d bytes", b.remaining())
	}
}
