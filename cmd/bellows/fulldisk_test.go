package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A daemon that does not start because its disk is full says so.
func TestUpOnAFullDisk(t *testing.T) {
	needControlGroups(t)
	state, err := os.MkdirTemp("", "bellows") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(state)
	if err := unix.Mount("bellows-test", state, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	defer func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", state, err)
		}
	}()
	if err := os.WriteFile(filepath.Join(state, "ballast"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	// Under its name in PATH this program is the command: see TestMain. The daemon that it starts is the command too.
	up := exec.Command("bellows", "up", "--state", state, "--memory", "64MiB", "--detach")
	said, err := up.CombinedOutput()
	if up.ProcessState.ExitCode() != 1 || !strings.Contains(string(said), "its disk is full: free some space") {
		t.Errorf("%v: %s", err, said)
	}
}
