package cgroup

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSignalMembersOnly sends a signal to two processes. One of them is no longer a member at its turn, as if it had
// got the number of an earlier member.
func TestSignalMembersOnly(t *testing.T) {
	var all []*exec.Cmd
	var pids []int
	for range 2 {
		cmd := exec.Command("cat")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all, pids = append(all, cmd), append(pids, cmd.Process.Pid)
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	if fd, err := unix.PidfdOpen(pids[0], 0); err != nil {
		t.Skipf("needs a kernel that holds on to processes: %v", err)
	} else {
		_ = unix.Close(fd)
	}
	member, other := all[0], all[1]
	signal(pids, func() []int { return pids[:1] }, unix.SIGKILL)
	if err := member.Wait(); err == nil {
		t.Error("the member was not killed")
	}
	// This would not end it if it had been sent SIGKILL before.
	if err := other.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	if ws := other.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != unix.SIGTERM {
		t.Errorf("the other ended by %v", ws.Signal())
	}
}
