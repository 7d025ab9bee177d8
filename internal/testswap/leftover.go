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

// A holder of the lock that is killed leaves its swap behind: the next ones would share what they swap with it. So while a test
// holds the lock its file says what the machine swapped to before, and whoever finds that text there turns off what came since.

// takeOver makes the locked file say what the machine swaps to now, and turns off before what a test that was killed left.
func takeOver(t testing.TB, lock *os.File) {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return // Without a kernel that tells there is no swap either.
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

// swaps is what the machine swaps to, as /proc/swaps writes it: a blank in a name is no blank there.
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

// since is what of now a test may have added: of the rest it made nothing.
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
