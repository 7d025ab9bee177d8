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

// PageOut requests that the kernel write the anonymous memory of the group's processes to swap, piece by piece. Before
// each piece it calls more with the amount of address space requested so far, and stops when more returns false. It
// returns when all is written or on its way. In contrast to lowering a bound it writes large pieces, at the speed of
// the device. The memory counts as used until the bound is lowered afterwards, which is quick then. Freeze the group
// before, or its processes bring the pages back. PageOut needs Linux 5.10, and root or the rights to trace the
// processes and to set priorities (CAP_SYS_PTRACE, CAP_SYS_NICE). Otherwise the error is ErrUnsupported.
func (g *Group) PageOut(ctx context.Context, more func(asked int64) bool) (asked int64, err error) {
	return g.advise(ctx, unix.MADV_PAGEOUT, more)
}

// Prefetch requests that the kernel read swapped memory of the group's processes back ahead of faults, up to bytes of
// their memory, and returns the amount requested. Frozen groups can be prefetched. From a swap file it is several times
// as fast as faults; from zram it is slower.
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
		case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) ||
			errors.Is(err, unix.EACCES):
			return asked, fmt.Errorf("page group %s: process %d: %w", g.name, pid, errors.Join(ErrUnsupported, err))
		case err != nil:
			return asked, fmt.Errorf("page group %s: process %d: %w", g.name, pid, err)
		}
	}
	return asked, nil
}

// pagePiece is the size of one request: small, so that the end of a context is noticed soon.
const pagePiece = 16 << 20

var errEnough = errors.New("enough")

// adviseProcess requests paging for one process; asked is the amount requested before. The descriptor makes sure that
// the process is still the one whose memory was listed.
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
	n, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(pidfd), uintptr(unsafe.Pointer(&vector)), 1,
		uintptr(advice), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int64(n), nil
}

// addressRange is a piece of a process's address space, from inclusive, to exclusive.
type addressRange struct{ from, to uintptr }

// anonymousRanges lists the ranges of a process's memory that only swap can free.
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
	if len(fields) > 5 && fields[5] != "[heap]" && !strings.HasPrefix(fields[5], "[anon") &&
		!strings.HasPrefix(fields[5], "[stack") {
		return addressRange{}, false
	}
	if _, err := fmt.Sscanf(fields[0], "%x-%x", &r.from, &r.to); err != nil || r.to <= r.from {
		return addressRange{}, false
	}
	return r, true
}
