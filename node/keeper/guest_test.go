//go:build guest

package keeper

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/guest"
)

// The tests of this package, once for each kind of control groups. Those of package agent are about the same keeper,
// with containers that an agent starts.
func TestGuest(t *testing.T) {
	binary := guest.Build(t, ".")
	for _, c := range []struct {
		name    string
		cgroups guest.Cgroups
	}{{"v2", guest.Unified}, {"hybrid", guest.Hybrid}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			guest.Run(t, guest.Config{Init: guest.Systemd, Cgroups: c.cgroups, As: []guest.As{guest.Root},
				Timeout: 5 * time.Minute}, binary)
		})
	}
}
