package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PageOut asks the kernel to push the anonymous memory of the group's processes to swap, piece by piece, as long as more says so,
// which is asked before each and told how much of their address space it was asked for. It returns when all is written or on
// its way. Unlike lowering a bound it writes large pieces, at the speed of the device; the memory counts as used until the
// bound is lowered behind it, which is then quick. Freeze the group before, or its processes bring the pages back. It needs
// Linux 5.10, and root or the rights to trace the processes and to set priorities (CAP_SYS_PTRACE, CAP_SYS_NICE); the error is
// ErrUnsupported without.
func (g *Group) PageOut(ctx context.Context, more func(asked int64) bool) (asked int64, err error) {
	return g.advise(ctx, unix.MADV_PAGEOUT, more)
}

// Prefetch asks the kernel to bring swapped memory of the group's processes back, up to bytes of their memory, without
// waiting for faults, and returns how much it was asked for. Frozen groups can be prefetched. From a swap file it is several
// times as fast as faults; from zram it is slower.
func (g *Group) Prefetch(ctx context.Context, bytes int64) (asked int64, err error) {
	return g.advise(ctx, unix.MADV_WILLNEED, func(asked int64) bool { return asked < bytes })
}

func (g *Group) advise(ctx context.Context, advice int, more func(asked int64) bool) (asked int64, err error) {
	pids, err := g.Procs()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		asked, err = adviseProcess(ctx, pid, advice, asked, more)
		switch {
		case errors.Is(err, errEnough):
			return asked, nil
		case errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist): // it ended meanwhile
		case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
			return asked, fmt.Errorf("page group %s: process %d: %w", g.name, pid, errors.Join(ErrUnsupported, err))
		case err != nil:
			return asked, fmt.Errorf("page group %s: process %d: %w", g.name, pid, err)
		}
	}
	return asked, nil
}

// pagePiece is what the kernel is asked for at once: then a context that ends is noticed soon.
const pagePiece = 16 << 20

var errEnough = errors.New("enough")

// adviseProcess works on one process, after so much was asked for. The descriptor makes sure that it is still the one whose
// memory was listed.
func adviseProcess(ctx context.Context, pid, advice int, asked int64, more func(asked int64) bool) (int64, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return asked, err
	}
	defer unix.Close(fd)
	ranges, err := anonymousRanges(pid)
	if err != nil {
		return asked, err
	}
	for _, r := range ranges {
		for at := r.from; at < r.to; at += pagePiece {
			if err := ctx.Err(); err != nil {
				return asked, err
			}
			if !more(asked) {
				return asked, errEnough
			}
			n, err := processMadvise(fd, at, min(pagePiece, r.to-at), advice)
			if err != nil && !errors.Is(err, unix.ENOMEM) && !errors.Is(err, unix.EAGAIN) { // unmapped meanwhile, or locked
				return asked, err
			}
			asked += n
		}
	}
	return asked, nil
}

func processMadvise(pidfd int, at, length uintptr, advice int) (int64, error) {
	vector := struct{ base, length uintptr }{at, length}
	n, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(pidfd), uintptr(unsafe.Pointer(&vector)), 1, uintptr(advice), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int64(n), nil
}

// addressRange is a piece of a process's address space, from inclusive, to exclusive.
type addressRange struct{ from, to uintptr }

// anonymousRanges lists what of a process's memory only swap can take.
func anonymousRanges(pid int) ([]addressRange, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var ranges []addressRange
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if r, ok := parseAnonymous(lines.Text()); ok {
			ranges = append(ranges, r)
		}
	}
	return ranges, lines.Err()
}

// parseAnonymous reads a line of /proc/PID/maps; ok is false if it is not private, writable and without a file.
func parseAnonymous(line string) (r addressRange, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 || !strings.HasPrefix(fields[1], "rw") || !strings.HasSuffix(fields[1], "p") || fields[4] != "0" {
		return addressRange{}, false
	}
	if len(fields) > 5 && fields[5] != "[heap]" && !strings.HasPrefix(fields[5], "[anon") && !strings.HasPrefix(fields[5], "[stack") {
		return addressRange{}, false
	}
	if _, err := fmt.Sscanf(fields[0], "%x-%x", &r.from, &r.to); err != nil || r.to <= r.from {
		return addressRange{}, false
	}
	return r, true
}
