//go:build guest

package cgroup_test

import (
	"testing"

	"github.com/bellows-rm/bellows/internal/guest"
)

// The tests of this package that need a kernel, on machines of every setup.

func TestGuestBare(t *testing.T) {
	binary := guest.Build(t, ".")
	for _, c := range []struct {
		name    string
		cgroups guest.Cgroups
	}{{"v2", guest.Unified}, {"v1", guest.Legacy}, {"hybrid", guest.Hybrid}} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); run(t, guest.BareInit, c.cgroups, binary, guest.Root) })
	}
}

func TestGuestSystemd(t *testing.T) {
	binary := guest.Build(t, ".")
	t.Run("v2", func(t *testing.T) {
		t.Parallel()
		run(t, guest.Systemd, guest.Unified, binary, guest.Root, guest.RootScope, guest.Narrow, guest.Wide)
	})
	t.Run("hybrid", func(t *testing.T) { t.Parallel(); run(t, guest.Systemd, guest.Hybrid, binary, guest.Root) })
}

func run(t *testing.T, init guest.Init, cgroups guest.Cgroups, binary string, as ...guest.As) {
	guest.Run(t, guest.Config{
		Init: init, Cgroups: cgroups, As: as, SwapBytes: 512 << 20, ScratchBytes: 64 << 20,
		Skips: func(as guest.As, test string) bool {
			root := as == guest.Root || as == guest.RootScope
			switch test {
			case "TestKernelIO", "TestKernelDiskLimit":
				return as == guest.Narrow
			case "TestKernelRefusesStrangers":
				return !root
			case "TestKernelOpenRootFromAnotherScope":
				return root
			}
			return false
		},
	}, binary, "-test.run=^TestKernel",
		// Its time bound is too short for an emulated CPU: it runs on the test machine itself only.
		"-test.skip=^TestKernelKillDoesNotWaitForCPU$")
}
