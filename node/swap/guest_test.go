//go:build guest

package swap

import (
	"testing"

	"github.com/bellows-rm/bellows/internal/guest"
)

// Swap on a partition and on zram.
func TestGuest(t *testing.T) {
	binary := guest.Build(t, ".")
	for _, c := range []struct {
		name    string
		cgroups guest.Cgroups
	}{{"v2", guest.Unified}, {"hybrid", guest.Hybrid}} {
		t.Run(c.name, func(t *testing.T) {
			guest.Run(t, guest.Config{
				Cgroups: c.cgroups, SwapBytes: 512 << 20,
				Skips: func(_ guest.As, test string) bool {
					// All file systems are in memory, and the kernel has no zswap.
					return test == "TestKinds/file" || test == "TestKinds/zswap"
				},
			}, binary, "-test.run=^TestKinds$")
		})
	}
}
