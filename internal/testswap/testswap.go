// Package testswap gives tests swap, to one test at a time on a machine: the kernel swaps to all swap that has room,
// and turning a swap file off reads its content back into memory.
package testswap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Lock waits until no other test uses swap, and keeps other tests from it until the test ends.
func Lock(t testing.TB) {
	t.Helper()
	path := filepath.Join(os.TempDir(), "bellows-test-swap.lock")
	f, err := openLock(path)
	if err != nil {
		t.Skipf("needs swap, and a lock on it: %v", err)
	}
	_ = f.Chmod(0o666) // other users lock the file, too
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		f.Close()
		t.Fatalf("another test holds %s: %v", path, err)
	}
	takeOver(t, f)
	t.Cleanup(func() {
		_ = f.Truncate(0) // The list is empty: nothing is left behind.
		f.Close()
	})
}

// openLock opens the file, which all users share. Its name is known, and any user can create something else under that
// name first. openLock therefore rejects everything but a plain file with one name.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Nlink != 1) {
		err = fmt.Errorf("%s: must be a file with no other name", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Need is Lock, and makes sure that the machine has swap: preferably a file of the given size, bytes, of the test's
// own, because existing swap may be turned off while the test runs, and then the kernel kills programs that have no
// room; or else the existing swap.
func Need(t testing.TB, bytes int64) {
	t.Helper()
	Lock(t)
	err := own(t, bytes)
	if err == nil {
		return
	}
	if len(swaps(t)) == 0 {
		t.Skipf("needs swap: %v", err)
	}
}

func own(t testing.TB, bytes int64) error {
	dir := t.TempDir()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Type == unix.TMPFS_MAGIC || os.Geteuid() != 0 {
		return fmt.Errorf("a file in %s cannot be swapped to: %v", dir, err)
	}
	file := filepath.Join(dir, "swap")
	for _, args := range [][]string{{"fallocate", "-l", fmt.Sprint(bytes), file}, {"chmod", "600", file},
		{"mkswap", "-q", file}, {"swapon", "-p", "32767", file}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	t.Cleanup(func() {
		if err := remove(file); err != nil {
			t.Error(err)
		}
	})
	return nil
}
