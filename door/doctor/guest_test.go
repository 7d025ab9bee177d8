//go:build guest

package doctor_test

import (
	"testing"

	"github.com/bellows-rm/bellows/internal/guest"
)

// A machine of another setup is examined as it is.
func TestGuest(t *testing.T) {
	binary := guest.Build(t, ".")
	t.Run("v2", func(t *testing.T) {
		guest.Run(t, guest.Config{Init: guest.Systemd, Cgroups: guest.Unified, As: []guest.As{guest.Root, guest.Narrow}},
			binary, "-test.run=^TestExamine$")
	})
	t.Run("hybrid", func(t *testing.T) {
		guest.Run(t, guest.Config{Cgroups: guest.Hybrid}, binary, "-test.run=^TestExamine$")
	})
}
