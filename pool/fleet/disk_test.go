package fleet_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/live/api"
)

// The disk with the definitions of pools, the secrets, and the output of executors is full while pools run tasks.
// Streams go on, with one executor less; a pool is refused in one sentence and leaves nothing behind; executors that
// are missing are held back, which explain says. When there is room again, all goes on by itself, and the next daemon
// has every definition.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	r := newRigOn(t, func(dir string) {
		self, err := os.Stat("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("bellows-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", self.Size()+24<<20)); err != nil {
			t.Skipf("needs to mount a file system: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	})
	worker := filepath.Join(r.dir, "worker")
	functions := r.putBoth(2)
	r.put("late", api.PoolGo, worker, 0, 1)
	goOn, end := r.streams(functions)
	defer end()
	goOn()

	ballast := filepath.Join(r.dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 64<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	goOn()
	before := r.definitions()
	status, said := r.send(http.MethodPut, "refused", r.spec("refused", api.PoolGo, worker, 0, 1))
	if status != http.StatusInternalServerError || !strings.Contains(said, `store pool "refused"`) ||
		!strings.Contains(said, "its disk is full: free some space") || strings.Count(strings.TrimSpace(said), "\n") > 0 {
		t.Errorf("a pool on a full disk: %d %q", status, said)
	}
	if status, said := r.send(http.MethodPut, "a",
		r.spec("a", api.PoolGo, worker, 1, 7)); status != http.StatusInternalServerError {
		t.Errorf("a change on a full disk: %d %q", status, said)
	}
	if status, said := r.send(http.MethodGet, "refused", nil); status != http.StatusNotFound {
		t.Errorf("the pool that was refused: %d %q", status, said)
	}
	if after := r.definitions(); after != before {
		t.Errorf("the folder of definitions was\n%s\nand is\n%s", before, after)
	}
	late := make(chan error, 1)
	go func() { late <- r.squares(t.Context(), "late", "square", 50) }()
	r.until("late", "held back", func(d *api.PoolDetail) bool {
		return strings.Contains(d.Why, `none was launched: store pool "late"`) && strings.Contains(d.Why, "its disk is full")
	})
	r.until("a", "with an executor", func(d *api.PoolDetail) bool {
		for _, e := range d.Members {
			if e.PID > 0 && e.State != api.ExecutorLost && e.State != api.ExecutorExpired {
				return syscall.Kill(e.PID, syscall.SIGKILL) == nil
			}
		}
		return false
	})
	goOn()

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Errorf("pool late: %v", err)
	}
	r.until("a", "whole again", func(d *api.PoolDetail) bool { return d.Busy+d.Idle == 2 && d.Spec.Max == 2 })
	goOn()
	r.put("refused", api.PoolGo, worker, 0, 1)
	r.kill()
	for _, name := range []string{"a", "b", "late", "refused"} {
		r.until(name, "back", func(d *api.PoolDetail) bool { return d.Synced })
	}
	goOn()
}

// definitions returns the names and contents of all files with definitions of pools.
func (r *rig) definitions() (all string) {
	r.t.Helper()
	names, err := filepath.Glob(filepath.Join(stateIn(r.dir), "pools", "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		all += fmt.Sprintf("%s: %q\n", filepath.Base(name), text)
	}
	return all
}
