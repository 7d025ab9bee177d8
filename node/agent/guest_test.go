//go:build guest

package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/guest"
)

// The tests of this package, once for each kind of control groups. Tests that depend on rights or on swap also run as
// ordinary users with a delegated group, and with zram.
func TestGuest(t *testing.T) {
	binary := guest.Build(t, ".")
	// The guest has a C library, but no shell.
	programs := map[string]string{"sh": "/bin/sh", "sleep": "/bin/sleep", "cat": "/bin/cat", "id": "/usr/bin/id",
		"setsid": "/usr/bin/setsid", "true": "/bin/true", "sha256sum": "/usr/bin/sha256sum", "nice": "/usr/bin/nice",
		"touch": "/usr/bin/touch", "stat": "/usr/bin/stat", "ls": "/bin/ls",
		"grep": "/bin/grep", "mkdir": "/bin/mkdir", "chmod": "/bin/chmod", "nproc": "/usr/bin/nproc", "head": "/usr/bin/head"}
	// What root, a scope and the controllers that were delegated decide, in each of them: all else is the same as for
	// root.
	const rights = "^(TestProgramRunsAndItsEndIsTold|TestMemoryKillIsTold|TestKillEndsForksToo|" +
		"TestContainersAreFoundAgain|" +
		"TestFoundAgainContainersCanBeKilled|TestReadings|TestProgramHasTheRightsOfItsUser|" +
		"TestProgramIsInsideFromTheStart|TestCapacity|" +
		"TestNoControlGroups|TestFullDisk|TestFlexGrows|TestFlexGivesWay|TestSuspendedContainerCanBeKilled|" +
		"TestNothingStaysFrozen|" +
		"TestShrinkLeavesTimeForHeartbeats|TestRestartWhileSuspended|TestOwn|TestUnreadableRecords|TestUnreadableFolders|" +
		"TestSecondAgentOfTheSameGroups|TestOtherDaemonsAreCounted|TestLease|TestFlexShowsWhatItMayHave|TestFlexFoundAgain|" +
		"TestFlexEndsWithItsProgram|TestFlexWithoutInnerGroup)$"
	// What depends on what memory is swapped to.
	const swapping = "^(TestFlex|TestNothingStaysFrozen|TestRefusedContainerWaits|TestShrink|TestStreaming|" +
		"TestFullSwap|TestNothingGivesWay|" +
		"TestRestartWhileSuspended|TestSwap|TestWriteBudget|TestPromised|TestAnchor|TestDaemonDies)"
	const swap, spare = 448 << 20, 2560 // MiB of memory: what zram may hold counts no further than what containers leave
	for _, c := range []struct {
		name       string
		cgroups    guest.Cgroups
		as         []guest.As
		disk, zram int64
		memory     int
		run        map[guest.As]string
	}{
		{"v2", guest.Unified, []guest.As{guest.Root, guest.RootScope, guest.Narrow, guest.Wide}, swap, 0, 0,
			map[guest.As]string{guest.RootScope: rights, guest.Narrow: rights, guest.Wide: rights}},
		{"v2 with zram", guest.Unified, []guest.As{guest.Root}, 0, swap, spare, map[guest.As]string{guest.Root: swapping}},
		{"hybrid", guest.Hybrid, []guest.As{guest.Root}, swap, 0, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // Each guest has one core, and runs for ten minutes.
			guest.Run(t, guest.Config{
				Init: guest.Systemd, Cgroups: c.cgroups, As: c.as, SwapBytes: c.disk, ZramBytes: c.zram, MemoryMiB: c.memory,
				Timeout: 25 * time.Minute, Run: c.run,
				Env: []string{"BELLOWS_TEST_GUEST=1"}, Files: programs,
				Skips: func(as guest.As, test string) bool {
					if strings.HasPrefix(test, "TestIdle/") { // Its programs are not there; TestKernelAsleep of package cgroup is.
						return true
					}
					switch test {
					case "TestHeartbeats", "TestFullSwapDisk", "TestFlexDuckDB": // neither a JVM, a database nor a disk to make
						return true
					case "TestFlexWithoutInnerGroup":
						return c.cgroups != guest.Unified
					case "TestNetworkIsCounted": // nor the programs that make a link
						return true
					// nor files on a disk, nor so little swap
					case "TestMappedFile", "TestSwapRunsFull", "TestPageOutStays/little_swap":
						return true
					case "TestPressureOfDisks": // nor FUSE
						return true
					case "TestWithoutSwapOneIsRequeued", "TestSwapIsRemovedBeneath": // these guests have swap
						return true
					case "TestWaitForLock", "TestWaitForPipe", "TestAsleep": // nor the time
						return true
					case "TestNoNewRights": // nor a program to copy in its path
						return true
					case "TestLockedMemory", "TestOutputLeavesRoomOnTheDisk",
						"TestAnchor", "TestShrinkLeavesTimeForHeartbeats", "TestProgramHasTheRightsOfItsUser", "TestNoControlGroups",
						"TestFullDisk":
						return as != guest.Root && as != guest.RootScope
					}
					return false
				},
			}, binary)
		})
	}
}
