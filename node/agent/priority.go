package agent

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// giveWay gives the calling goroutine a thread of its own that runs when the other threads of the daemon have no work.
func giveWay() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19) // It is allowed to everybody.
}

// takePriority gives the calling goroutine a thread of its own that runs before every ordinary thread when it has work:
// on busy cores an ordinary thread is woken milliseconds late, and niceness counts only within a session. Threads and
// processes that it starts do not inherit this. It needs the right to set priorities (CAP_SYS_NICE), and in version 1 a
// control group that may have real-time threads.
func takePriority() error {
	runtime.LockOSThread()
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}, 0)
}
