package agent

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// anchorPages is how many pages the anchor of a container has: pages that count as its own, that nobody uses, and that the kernel
// can never take away, because a pipe refers to them, of which the supervisor holds the other end.
//
// They are there for a fault of the kernel's. When a control group is full, Linux takes pages in use away only if there are
// pages not in use, too, or if its counts say that those are few; and it brings the counts up to date every 2 s only. A program
// that was swapped out and runs again in little memory can touch all that it has within that time: no page is out of use, the
// counts say that many are, the kernel finds nothing to take, and kills, whatever room there is in swap. With an anchor some
// pages are always out of use. Threads take 32 at once when they look for pages to give up, and while one that does waits for
// a core these are out of reach for others: hence more. See docs/measured.md for what was measured.
const anchorPages = 64

// layAnchor charges the control group that this process is in with an anchor, and gives it to the pipe.
func layAnchor(pipe *os.File) error {
	size := anchorPages * os.Getpagesize()
	// An ordinary user with many pipes may be allowed less; what fits is laid.
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
