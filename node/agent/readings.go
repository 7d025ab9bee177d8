package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Readings implements live.Backend.
func (a *Agent) Readings() map[cluster.ContainerID]cluster.Reading {
	groups := a.containers.groups()
	readings := make(map[cluster.ContainerID]cluster.Reading, len(groups))
	round := newRound(len(groups))
	for id, g := range groups {
		// A group that has just gone has no reading.
		if r, err := a.monitor.reading(id, g); err == nil {
			out := translate(r)
			a.keeper.Describe(id, &out)
			out.LimitShown = out.State != 0 && !g.Encloses()
			readings[id] = out
		}
		round.next()
	}
	a.keeper.Waiting(readings)
	return readings
}

func translate(r cgroup.Reading) cluster.Reading {
	out := cluster.Reading{Memory: known(r.MemoryBytes), Anonymous: known(r.AnonBytes), Swap: known(r.SwapBytes),
		Peak: known(r.PeakBytes), Limit: known(r.MemoryLimitBytes), Read: known(r.ReadBytes),
		Written: known(r.WrittenBytes), Processes: known(r.Procs)}
	if t, ok := r.CPUTime.Get(); ok {
		ns := int64(t)
		out.CPUTime = &ns
	}
	if out.Limit != nil && *out.Limit == cgroup.NoLimit {
		out.Limit = nil
	}
	return out
}

func known(m cgroup.Maybe[int64]) *int64 {
	if v, ok := m.Get(); ok {
		return &v
	}
	return nil
}

// deviceOf returns the disk of a folder, major:minor; empty if that is unknown.
func deviceOf(dir string) string {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return ""
	}
	return wholeDevice(fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev))))
}

// wholeDevice returns the device of a partition: rules are about whole devices.
func wholeDevice(device string) string {
	dir := filepath.Join("/sys/dev/block", device)
	if _, err := os.Stat(filepath.Join(dir, "partition")); err != nil {
		return device
	}
	target, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return device
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(target), "dev"))
	if err != nil {
		return device
	}
	return string(bytes.TrimSpace(text))
}
