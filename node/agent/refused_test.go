package agent

import (
	"fmt"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
)

// TestRefusedProcessesAreTold: whatever the end of a container is, it says that the kernel refused it a process.
func TestRefusedProcessesAreTold(t *testing.T) {
	limit := fmt.Sprintf("reached the limit of %d processes and threads of a container", mostThreads())
	for _, c := range []struct {
		exit   cluster.Exit
		killed bool
		want   string
	}{
		{cluster.Exit{Code: 1, Refused: 3}, false, "ended with exit code 1; " + limit},
		{cluster.Exit{Refused: 1}, false, limit},
		{cluster.Exit{Refused: 1}, true, "killed; " + limit},
		{cluster.Exit{Code: 1}, false, "ended with exit code 1"},
	} {
		if _, got := judge(&ending{Exit: c.exit}, c.killed); got != c.want {
			t.Errorf("%+v: %q, want %q", c.exit, got, c.want)
		}
	}
}
