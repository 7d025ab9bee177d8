//go:build guest

package agent

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/guest"
)

// The tests of this package, on machines of every kind: with version 2 control groups, as root and as ordinary users to
// whom a group was delegated.
func TestGuest(t *testing.T) {
	binary := guest.Build(t, ".")
	// The guest has a C library, but no shell.
	programs := map[string]string{"sh": "/bin/sh", "sleep": "/bin/sleep", "cat": "/bin/cat", "id": "/usr/bin/id", "setsid": "/usr/bin/setsid", "true": "/bin/true",
		"sha256sum": "/usr/bin/sha256sum", "nice": "/usr/bin/nice", "touch": "/usr/bin/touch", "stat": "/usr/bin/stat", "ls": "/bin/ls"}
	const swap, spare = 448 << 20, 2560 // MiB of memory: what zram may hold counts no further than what containers leave
	for _, c := range []struct {
		name       string
		cgroups    guest.Cgroups
		as         []guest.As
		disk, zram int64
		memory     int
	}{
		{"v2", guest.Unified, []guest.As{guest.Root, guest.RootScope, guest.Narrow, guest.Wide}, swap, 0, 0},
		{"v2 with zram", guest.Unified, []guest.As{guest.Root}, 0, swap, spare},
		{"hybrid", guest.Hybrid, []guest.As{guest.Root}, swap, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			guest.Run(t, guest.Config{
				Init: guest.Systemd, Cgroups: c.cgroups, As: c.as, SwapBytes: c.disk, ZramBytes: c.zram, MemoryMiB: c.memory, Timeout: 25 * time.Minute,
				Env: []string{"BELLOWS_TEST_GUEST=1"}, Files: programs,
				Skips: func(as guest.As, test string) bool {
					switch test {
					case "TestHeartbeats", "TestFullSwapDisk": // neither a JVM nor a disk to make
						return true
					case "TestMappedFile", "TestSwapRunsFull": // nor files on a disk, nor so little swap
						return true
					case "TestWaitForLock", "TestWaitForPipe", "TestAsleep": // nor the time
						return true
					case "TestUnreadableRecords/no_permission":
						return as == guest.Root || as == guest.RootScope
					case "TestLockedMemory", "TestOutputLeavesRoomOnTheDisk",
						"TestAnchor", "TestShrinkLeavesTimeForHeartbeats", "TestProgramHasTheRightsOfItsUser", "TestNoControlGroups", "TestFullDisk":
						return as != guest.Root && as != guest.RootScope
					}
					return false
				},
			}, binary)
		})
	}
}
