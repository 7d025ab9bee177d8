//go:build guest

package netcount_test

import (
	"testing"

	"github.com/bellows-rm/bellows/internal/guest"
)

// The tests of this package that need a kernel, on machines of every setup. A guest has no program ip, and so no link.

func TestGuest(t *testing.T) {
	binary := guest.Build(t, ".")
	skips := func(as guest.As, test string) bool { return test == "TestKernelVeth" || as == guest.Narrow }
	for _, c := range []struct {
		name string
		guest.Config
	}{
		{"v2", guest.Config{Init: guest.BareInit, Cgroups: guest.Unified, As: []guest.As{guest.Root}}},
		{"v1", guest.Config{Init: guest.BareInit, Cgroups: guest.Legacy, As: []guest.As{guest.Root}}},
		{"systemd", guest.Config{Init: guest.Systemd, Cgroups: guest.Unified, As: []guest.As{guest.Root, guest.Narrow}}},
		{"hybrid", guest.Config{Init: guest.Systemd, Cgroups: guest.Hybrid, As: []guest.As{guest.Root}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.Skips = skips
			guest.Run(t, c.Config, binary, "-test.run=^TestKernel")
		})
	}
}
