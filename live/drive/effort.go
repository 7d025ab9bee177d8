package drive

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Effort returns the processor time that work takes in this goroutine. The time in which work waits for a disk or for
// the loop does not count: it takes no processor from the programs, and on a busy disk the next work would be put off
// for minutes.
func Effort(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := threadTime()
	work()
	return threadTime() - begun
}

// threadTime returns the processor time of the thread that calls it.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // It always succeeds with this clock.
	return time.Duration(t.Nano())
}
