// Package inherited reads and sets what a process has from the one that started it: umask, limits, nice and open files. A job is to
// have those of whoever submitted it, and neither it nor what starts it the open files of whoever started the daemon.
package inherited

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cluster"
)

// CloseDescriptors has every open file but the standard three closed when this process becomes another program.
func CloseDescriptors() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Linux before 5.11 cannot do so at once.
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
	old := unix.Umask(0o077) // The only way to ask is to set it.
	unix.Umask(old)
	h.Umask = uint32(old)
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return h, fmt.Errorf("read nice: %w", err)
	}
	h.Nice = 20 - nice // The system call tells 20 less it, so as not to return negative numbers.
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

// limit reads a limit. A program in Go raises how many files it may open when it begins, to the hard limit or one less, for itself
// alone: what it was is known of its parent, which is mostly the shell that it was called from.
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

// protected is the oom_score_adj of what shall be ended last when the machine lacks memory; -1000 would be never.
const protected = -900

const oomScore = "/proc/self/oom_score_adj"

// Protect has the kernel end other processes before this one and those that it starts, if it may, and returns the oom_score_adj that
// this one had.
func Protect() (was int) {
	text, err := os.ReadFile(oomScore)
	if err != nil {
		return 0
	}
	was, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	if was > protected {
		_ = TakeOOMScore(protected)
	}
	return was
}

// TakeOOMScore sets oom_score_adj of this process. Only root may lower it.
func TakeOOMScore(score int) error { return os.WriteFile(oomScore, []byte(strconv.Itoa(score)), 0) }

// TakeNice sets the nice value for this goroutine, which keeps its thread from then on: Linux has one for each thread, and the program
// that is executed has that of the thread which does so. It is called before the rights of the user are taken, who could not go back to it if
// the daemon runs with a higher one; but nobody else than root gets less than 0 in this way.
func TakeNice(h cluster.Inherited, uid uint32) error {
	nice := h.Nice
	if uid != 0 {
		nice = max(nice, 0)
	}
	runtime.LockOSThread()
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || 20-now == nice {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}

// TakeLimits sets the limits of this process: those that it may, the others as near as it may. Little may be done afterwards but to
// become another program, since there may be no memory to do it with.
func TakeLimits(h cluster.Inherited) {
	for number, name := range cluster.LimitNames {
		l, ok := h.Limits[name]
		if !ok {
			continue
		}
		want := syscall.Rlimit{Cur: raw(l.Soft), Max: raw(l.Hard)}
		// Package syscall, unlike unix, would otherwise put back how many files there may be when the program is executed.
		if syscall.Setrlimit(number, &want) == nil {
			continue
		}
		var now unix.Rlimit
		if unix.Prlimit(0, number, nil, &now) == nil {
			want.Max = min(want.Max, now.Max)
			want.Cur = min(want.Cur, want.Max)
			_ = syscall.Setrlimit(number, &want)
		}
	}
}
