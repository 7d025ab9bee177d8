package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/node/cgroup"
)

// goBeside moves this process into the group, of version 2, above the control groups that an earlier daemon has left,
// where systemd delegated one. systemd removes a scope with all groups below as soon as no process is in it: if this
// daemon stayed in a scope of its own, its control groups would be gone once the last container of the earlier daemon
// has ended.
func goBeside(state string) error {
	text, err := os.ReadFile(filepath.Join(state, "cgroup")) // where package agent notes the place
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	place := filepath.Clean("/" + strings.TrimSpace(string(text)))
	host, err := cgroup.Discover("")
	if err != nil {
		return nil // the agent says it
	}
	h, ok := host.Serves(cgroup.Memory)
	above := filepath.Join(h.Mount, filepath.Dir(place))
	leaf := filepath.Join(above, "bellows-self") // package cgroup has the same for processes that are in the way
	if !ok || h.Version != cgroup.V2 || above == h.Mount || h.Own == above || h.Own == leaf {
		return nil
	}
	if _, err := os.Stat(filepath.Join(h.Mount, place)); errors.Is(err, fs.ErrNotExist) {
		return nil // no container has stayed
	}
	if err := unix.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	procs, err := os.OpenFile(filepath.Join(leaf, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer procs.Close()
	if _, err := fmt.Fprint(procs, os.Getpid()); err != nil {
		return fmt.Errorf("move this process: %w", err)
	}
	return nil
}
