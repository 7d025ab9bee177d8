package keeper

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// TakePriority gives the calling goroutine a thread of its own that runs before every ordinary thread when it has work:
// on busy cores an ordinary thread is woken milliseconds late, and niceness counts only within a session. Threads and
// processes that it starts do not inherit this. It needs the right to set priorities (CAP_SYS_NICE), and in version 1 a
// control group that may have real-time threads.
func TakePriority() error {
	runtime.LockOSThread()
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR,
		Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}, 0)
}
