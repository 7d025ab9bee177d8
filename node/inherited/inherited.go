// Package inherited reads and sets what a process inherits from its parent: umask, limits, nice, CPUs and open files.
// A job inherits them from the process that submitted it; neither the job nor its supervisor inherits the open files
// of the daemon's parent.
package inherited

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// CloseDescriptors marks every open file but the standard three to be closed when this process executes another
// program.
func CloseDescriptors() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Linux before 5.11 has no system call for all files at once.
	entries, listed := os.ReadDir("/proc/self/fd")
	if listed != nil {
		return fmt.Errorf("close inherited files: %w, and %w", err, listed)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// Read returns what this process has inherited.
func Read() (cluster.Inherited, error) {
	var h cluster.Inherited
	old := unix.Umask(0o077) // The only way to read it is to set it.
	unix.Umask(old)
	h.Umask = uint32(old)
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return h, fmt.Errorf("read nice: %w", err)
	}
	h.Nice = 20 - nice // The system call returns 20 minus the nice value, which is never negative.
	if h.CPUs, err = pinned(); err != nil {
		return h, err
	}
	h.Limits = map[string]cluster.ResourceLimit{}
	for number, name := range cluster.LimitNames {
		l, err := limit(number)
		if err != nil {
			return h, fmt.Errorf("read limit %s: %w", name, err)
		}
		h.Limits[name] = cluster.ResourceLimit{Soft: known(l.Cur), Hard: known(l.Max)}
	}
	return h, nil
}

// pinned returns the CPUs on which this process may run; none if that is every CPU of the machine.
func pinned() (all []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read on which CPUs this process may run: %w", err)
	}
	if n := set.Count(); n == 0 || n >= Online("/") {
		return nil, nil
	}
	for cpu := range cluster.MostCPUNumber + 1 {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all, nil
}

// Online returns how many CPUs the machine has whose proc is mounted below root; 0 if that is unknown.
func Online(root string) (n int) {
	text, _ := os.ReadFile(filepath.Join("/", root, "proc/stat"))
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, "cpu"); ok && number[0] != ' ' { // The line without a number is the sum.
			n++
		}
	}
	return n
}

// CPUs returns the CPUs on which a program is to run; nil if it stays on those of this process.
func CPUs(h *cluster.Inherited) *unix.CPUSet {
	if len(h.CPUs) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, cpu := range h.CPUs {
		set.Set(cpu)
	}
	return &set
}

// limit reads a limit. A Go program raises its own limit of open files at its start, to the hard limit or one less; the
// original limit is read from its parent, mostly the shell that started it.
func limit(number int) (l unix.Rlimit, err error) {
	if err := unix.Prlimit(0, number, nil, &l); err != nil || number != unix.RLIMIT_NOFILE || l.Max-l.Cur > 1 {
		return l, err
	}
	var parent unix.Rlimit
	if unix.Prlimit(os.Getppid(), number, nil, &parent) == nil && parent.Max == l.Max {
		l.Cur = parent.Cur
	}
	return l, nil
}

func known(v uint64) int64 {
	if v == unix.RLIM_INFINITY || v > 1<<63-1 {
		return -1
	}
	return int64(v)
}

func raw(v int64) uint64 {
	if v < 0 {
		return unix.RLIM_INFINITY
	}
	return uint64(v)
}

// protected is the oom_score_adj of processes that the kernel shall kill last when memory runs out; -1000 would mean
// never.
const protected = -900

// OOMScore is the file with the oom_score_adj of the process that opens it. To lower it needs CAP_SYS_RESOURCE, which
// even root may lack.
const OOMScore = "/proc/self/oom_score_adj"

// Protect makes the kernel kill other processes before this process and its children. It returns the previous
// oom_score_adj of this process, and why it is not protected.
func Protect() (was int, err error) {
	text, err := os.ReadFile(OOMScore)
	if err != nil {
		return 0, err
	}
	if was, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || was <= protected {
		return was, err
	}
	return was, SetOOMScore(protected)
}

// SetOOMScore sets the oom_score_adj of this process, -1000 to 1000.
func SetOOMScore(score int) error { return os.WriteFile(OOMScore, []byte(strconv.Itoa(score)), 0) }

// Nice returns the nice value that a program of a user gets, and whether it differs from that of this thread, which a
// clone inherits. A process must take it before it takes the rights of the user, who could not lower the nice value
// of a daemon that runs with a higher one; but only root gets a value below 0 in this way.
func Nice(h *cluster.Inherited, uid uint32) (nice int, differs bool) {
	nice = h.Nice
	if uid != 0 {
		nice = max(nice, 0)
	}
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return nice, err != nil || 20-now != nice
}

// Limits returns the limits that a program gets, by their number, none of them above the hard limit of this process,
// which is that of the daemon. A process that has taken them should do little but execute another program, since
// memory may be limited.
func Limits(h *cluster.Inherited) map[int]unix.Rlimit {
	all := map[int]unix.Rlimit{}
	for number, name := range cluster.LimitNames {
		l, ok := h.Limits[name]
		if !ok {
			continue
		}
		var now unix.Rlimit
		if unix.Prlimit(0, number, nil, &now) != nil {
			continue
		}
		most := min(raw(l.Hard), now.Max)
		all[number] = unix.Rlimit{Cur: min(raw(l.Soft), most), Max: most}
	}
	return all
}
