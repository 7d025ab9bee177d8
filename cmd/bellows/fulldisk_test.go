package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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

// A daemon that dies again and again on a full disk, whose last space other programs take, starts each time, shows
// jobs and ends them. It keeps the reserved space for their ends, and goes on by itself once there is space.
func TestRestartsOnAFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	needControlGroups(t)
	dir, err := os.MkdirTemp("", "bellows") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := unix.Mount("bellows-test", dir, "tmpfs", 0, "size=56m,mode=700"); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	}()
	state, gates := filepath.Join(dir, "state"), t.TempDir()
	try := func(args ...string) (code int, said string) {
		cmd := exec.Command("bellows", args...)
		cmd.Env = append(os.Environ(), "BELLOWS_STATE="+state, "BELLOWS_SOCKET="+filepath.Join(gates, "s"))
		text, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(text)
	}
	run := func(want int, args ...string) string {
		t.Helper()
		code, said := try(args...)
		if code != want {
			t.Fatalf("bellows %s: exit code %d, want %d: %s", strings.Join(args, " "), code, want, said)
		}
		return said
	}
	up := func() { run(0, "up", "--memory", "256MiB", "--detach") }
	die := func() {
		text, err := os.ReadFile(filepath.Join(state, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			defer unix.Close(fd)
			err = unix.Kill(pid, unix.SIGKILL)
		}
		if err == nil {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ends := func(name string, code int) string {
		gate := filepath.Join(gates, name)
		return strings.TrimSpace(run(0, "run", "-d", "--cpus", "0.1", "--memory", "16MiB", "--", "sh", "-c",
			fmt.Sprintf("until [ -e %s ]; do sleep 0.05; done; exit %d", gate, code)))
	}
	open := func(name string) {
		if err := os.WriteFile(filepath.Join(gates, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	up()
	defer func() { run(0, "down", "--force") }()
	first, second, third := ends("first", 7), ends("second", 8), ends("third", 9)
	for deadline := time.Now().Add(time.Minute); ; {
		said := run(0, "ps")
		if strings.Count(said, " running ") == 3 { // What has not started by now does not start on a full disk.
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the jobs are\n%s", said)
		}
	}
	reserve := filepath.Join(state, "reserve")
	if _, err := os.Stat(reserve); err != nil {
		t.Fatal(err)
	}

	// Others take all space, and what is freed, until the end of full.
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	full, taken := make(chan struct{}), make(chan struct{})
	rounds := make(chan struct{})
	go func() {
		defer close(taken)
		block := make([]byte, 4096)
		for {
			for {
				if _, err := ballast.Write(block); err != nil {
					break
				}
			}
			select {
			case <-full:
				return
			case rounds <- struct{}{}:
			case <-time.After(time.Millisecond):
			}
		}
	}()
	<-rounds
	for range 3 {
		die()
		up()
		if said := run(0, "ps"); strings.Count(said, " running ") != 3 {
			t.Errorf("the jobs are\n%s", said)
		}
		if said := run(0, "status", "--json"); !strings.Contains(said, "disk is full: free some space") {
			t.Errorf("status:\n%s", said)
		}
		if said := run(1, "run", "--memory", "16MiB", "true"); !strings.Contains(said, "disk is full: free some space") {
			t.Errorf("run: %s", said)
		}
	}
	if _, err := os.Stat(reserve); err != nil {
		t.Error("the starts have spent the reserved space:", err)
	}
	open("first")
	run(7, "wait", first)
	die()
	up()
	run(7, "wait", first)
	// The reserved space is for kills, too. Where others took all of it first, bellows says so, and what was killed
	// stays so.
	if code, said := try("kill", "--wait", second); code != 0 &&
		(code != 1 || !strings.Contains(said,
			"its tasks are being killed and none starts again, but that cannot be recorded now: ")) {
		t.Errorf("kill: exit code %d: %s", code, said)
	}
	run(143, "wait", second)
	die()
	open("third") // ends without a daemon
	up()
	run(9, "wait", third)
	close(full)
	<-taken
	if err := errors.Join(ballast.Close(), os.Remove(ballast.Name())); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		code, said := try("run", "--memory", "16MiB", "true")
		if code == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("with space: %s", said)
		}
	}
	if said := run(0, "status", "--json"); strings.Contains(said, "trouble") {
		t.Errorf("status:\n%s", said)
	}
	logs, err := filepath.Glob(filepath.Join(state, "events", "*.jsonl"))
	if err != nil || len(logs) != 2 { // of the daemons that had space
		t.Errorf("event logs %v, %v", logs, err)
	}
}
