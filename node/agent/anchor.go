package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// anchorPages is the number of pages of a container's anchor. They are charged to the container, no program uses them,
// and the kernel can never reclaim them, because a pipe refers to them whose other end the supervisor keeps open.
//
// They are a remedy for a fault of the kernel. When a control group is full, Linux reclaims active pages only if there
// are also inactive pages, or if its counts say that those are few; and it updates the counts only every 2 s. A program
// that was swapped out and runs again in little memory can touch all its memory within that time. Then no page is
// inactive, the counts say that many are, the kernel finds nothing to reclaim, and kills, whatever room there is in
// swap. With an anchor some pages are always inactive. A thread isolates 32 at once when it looks for pages to reclaim,
// and while such a thread waits for a core these pages are out of reach for other threads: hence more. See
// studies/measured.md for the measurements.
const anchorPages = 64

// lay charges an anchor to the control group, and gives the pages to the pipe. The program can run without an anchor;
// one that swaps much is then in some danger.
func (w *way) lay(pipe *os.File) {
	size := anchorPages * os.Getpagesize()
	// The kernel may allow less to an ordinary user with many pipes; the anchor uses what fits.
	_, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, size)
	place, err := unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return
	}
	w.anchor = place
	vector := &unix.Iovec{Base: &place[0]}
	vector.SetLen(size)
	w.may(unix.SYS_MMAP, addressOf(place), size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED|unix.MAP_POPULATE, -1, 0).failed = 1
	w.may(unix.SYS_VMSPLICE, int(pipe.Fd()), vector, 1, unix.SPLICE_F_NONBLOCK)
}
