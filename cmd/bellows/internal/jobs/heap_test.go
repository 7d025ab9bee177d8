package jobs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// TestHeapWithoutMaximum: a container without --max-memory may use all memory that the machine manages, and so may its
// java.
func TestHeapWithoutMaximum(t *testing.T) {
	dir := t.TempDir()
	java := dir + "/java"
	if err := os.WriteFile(java, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ most, managed, heap resource.Amount }{
		{0, 2 * resource.GiB, 2 * resource.GiB},
		{resource.GiB, 2 * resource.GiB, resource.GiB},
		{4 * resource.GiB, 2 * resource.GiB, 2 * resource.GiB},
	} {
		o := runOptions{class: "flex", maxAttempts: 1,
			stage: cluster.Stage{Tasks: 1, Ideal: resource.Of(resource.Core, 256*resource.MiB), MaxMemory: c.most,
				Command: cluster.Command{Runtime: cluster.JVM}}}
		job, err := o.job([]string{java, "Main"}, dir)
		if err != nil {
			t.Fatal(err)
		}
		fitStages(job, c.managed, &strings.Builder{})
		want := []string{java, fmt.Sprintf("-Xmx%dk", resource.Amount(cluster.HeapShare*float64(c.heap))/resource.KiB),
			"Main"}
		if got := job.Stages[0].Args; !slices.Equal(got, want) {
			t.Errorf("with a maximum of %d and %d managed: %q, want %q", c.most, c.managed, got, want)
		}
	}
}
