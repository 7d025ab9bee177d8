//go:build guest

package cgroup

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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
		Init: init, Cgroups: cgroups, As: as, SwapBytes: 512 << 20, ScratchBytes: 64 << 20, Timeout: 6 * time.Minute,
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

// TestGuestRuntimes shows to programs of this machine groups of version 2, which it has not.
func TestGuestRuntimes(t *testing.T) {
	sizers := findSizers()
	var programs []string
	for _, s := range sizers {
		programs = append(programs, s.Files...)
	}
	text, err := json.Marshal(sizers)
	if err != nil {
		t.Fatal(err)
	}
	guest.Run(t, guest.Config{
		Init: guest.Systemd, Cgroups: guest.Unified, As: []guest.As{guest.RootScope}, MemoryMiB: 2048,
		Programs: programs, Env: []string{"BELLOWS_SIZERS=" + string(text)}, Timeout: 6 * time.Minute,
		Skips: func(_ guest.As, test string) bool {
			name, below := strings.CutPrefix(test, "TestRuntimesRead/")
			_, found := sizers[name]
			return below && !found
		},
	}, guest.Build(t, "."), "-test.run=^TestRuntimesRead$")
}
