package agent

import (
	"fmt"
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
// docs/measured.md for the measurements.
const anchorPages = 64

// layAnchor charges an anchor to the control group of this process, and gives the pages to the pipe.
func layAnchor(pipe *os.File) error {
	size := anchorPages * os.Getpagesize()
	// The kernel may allow less to an ordinary user with many pipes; layAnchor uses what fits.
	_, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, size)
	pages, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("map the anchor: %w", err)
	}
	vector := unix.Iovec{Base: &pages[0]}
	vector.SetLen(len(pages))
	if _, err := unix.Vmsplice(int(pipe.Fd()), []unix.Iovec{vector}, unix.SPLICE_F_NONBLOCK); err != nil {
		return fmt.Errorf("splice the anchor: %w", err)
	}
	return nil
}
