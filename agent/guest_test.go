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
	programs := map[string]string{"sh": "/bin/sh", "sleep": "/bin/sleep", "cat": "/bin/cat", "id": "/usr/bin/id", "setsid": "/usr/bin/setsid", "true": "/bin/true"}
	for _, c := range []struct {
		name    string
		cgroups guest.Cgroups
		as      []guest.As
	}{
		{"v2", guest.Unified, []guest.As{guest.Root, guest.RootScope, guest.Narrow, guest.Wide}},
		{"hybrid", guest.Hybrid, []guest.As{guest.Root}},
	} {
		t.Run(c.name, func(t *testing.T) {
			guest.Run(t, guest.Config{
				Init: guest.Systemd, Cgroups: c.cgroups, As: c.as, SwapBytes: 256 << 20, Timeout: 5 * time.Minute, Env: []string{"BELLOWS_TEST_GUEST=1"}, Files: programs,
				Skips: func(as guest.As, test string) bool {
					switch test {
					case "TestProgramHasTheRightsOfItsUser", "TestNoControlGroups", "TestFullDisk":
						return as != guest.Root && as != guest.RootScope
					}
					return false
				},
			}, binary)
		})
	}
}
