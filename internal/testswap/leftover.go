package testswap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A killed owner of the lock leaves its swap behind: later tests would use it, too. Therefore the locked file lists the
// swap that the machine had before. The next owner that finds a list turns off the swap that was added since.

// takeOver writes the machine's swap to the locked file. Before that it turns off swap that a killed test left.
func takeOver(t testing.TB, lock *os.File) {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return // A kernel that does not report it has no swap either.
	}
	text, err := io.ReadAll(lock)
	if err != nil {
		t.Fatalf("read %s: %v", lock.Name(), err)
	}
	if before, died := strings.CutPrefix(string(text), string(boot)); died {
		for _, path := range since(strings.Fields(before), swaps(t)) {
			t.Logf("a test that was killed left %s", path)
			if err := remove(path); err != nil {
				t.Errorf("remove %s: %v", path, err)
			}
		}
	}
	note := string(boot) + strings.Join(swaps(t), "\n")
	if err := lock.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.WriteAt([]byte(note), 0); err != nil {
		t.Fatalf("note what is swapped to in %s: %v", lock.Name(), err)
	}
}

// swaps returns the paths of the machine's swap as /proc/swaps writes them, with blanks escaped.
func swaps(t testing.TB) (paths []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/swaps")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if path := strings.Fields(line)[0]; strings.HasPrefix(path, "/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// since returns the parts of now that a test may have added; a test makes no swap of other kinds.
func since(before, now []string) (added []string) {
	for _, path := range now {
		zram, file := strings.HasPrefix(path, "/dev/zram"), strings.HasPrefix(path, filepath.Clean(os.TempDir())+"/")
		if (zram || file) && !slices.Contains(before, path) {
			added = append(added, path)
		}
	}
	return added
}

func remove(path string) error {
	plain := strings.ReplaceAll(path, `\040`, " ")
	if out, err := exec.Command("swapoff", plain).CombinedOutput(); err != nil {
		return fmt.Errorf("swapoff: %w: %s", err, out)
	}
	if number, zram := strings.CutPrefix(plain, "/dev/zram"); zram {
		return os.WriteFile("/sys/class/zram-control/hot_remove", []byte(number), 0)
	}
	return os.Remove(plain)
}
