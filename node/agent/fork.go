package agent

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe" // for the addresses that system calls take, and for linkname

	"golang.org/x/sys/unix"
)

// entry is a list of system calls that a process makes, one after another; the last one executes a program. The
// process is a clone of this one, in which no Go code can run but a loop that makes the calls: everything is prepared
// before. So only the program is loaded for a container, and not this large one as well.
type entry struct {
	calls []call
	kept  []any // what the calls refer to by address
}

// call is a system call of an entry.
type call struct {
	number uintptr
	args   [6]uintptr
	// takes is 1 + the index of the argument that is the result of the call before; 0 means none.
	takes int
	// failed and passed are how many of the next calls are left out if it fails, or if it does not; stop ends the process.
	failed, passed int
	// harmless is an error that counts as success.
	harmless syscall.Errno
	// why explains its failure, which ends the process.
	why func(syscall.Errno) *ending
}

const stop = -1

// must adds a call whose failure ends the process.
func (e *entry) must(why func(syscall.Errno) *ending, number uintptr, args ...any) *call {
	c := e.may(number, args...)
	c.failed, c.why = stop, why
	return c
}

// may adds a call that may fail.
func (e *entry) may(number uintptr, args ...any) *call {
	c := call{number: number}
	for i, arg := range args {
		c.args[i] = e.address(arg)
	}
	e.calls = append(e.calls, c)
	return &e.calls[len(e.calls)-1]
}

// address returns an argument as a system call takes it, and keeps what it refers to. A string gets an end; one that
// contains an end itself becomes the address of none, as which the kernel refuses it.
func (e *entry) address(arg any) uintptr {
	switch v := arg.(type) {
	case int:
		return uintptr(v)
	case uintptr:
		return v
	case string:
		text, err := syscall.BytePtrFromString(v)
		if err != nil {
			return 0
		}
		e.kept = append(e.kept, text)
		return uintptr(unsafe.Pointer(text))
	case []string:
		all, err := syscall.SlicePtrFromStrings(v)
		if err != nil {
			return 0
		}
		e.kept = append(e.kept, all)
		return uintptr(unsafe.Pointer(&all[0]))
	case []uint32:
		if len(v) == 0 {
			return 0
		}
		e.kept = append(e.kept, v)
		return uintptr(unsafe.Pointer(&v[0]))
	case *unix.Rlimit:
		e.kept = append(e.kept, v)
		return uintptr(unsafe.Pointer(v))
	case *unix.CPUSet:
		e.kept = append(e.kept, v)
		return uintptr(unsafe.Pointer(v))
	case *unix.Iovec:
		e.kept = append(e.kept, v)
		return uintptr(unsafe.Pointer(v))
	case *unix.Ifreq:
		e.kept = append(e.kept, v)
		return uintptr(unsafe.Pointer(v))
	}
	panic(fmt.Sprintf("an argument of type %T", arg))
}

// addressOf returns the address of memory that the kernel has mapped.
func addressOf(pages []byte) uintptr { return uintptr(unsafe.Pointer(&pages[0])) }

// here is the directory of paths that are relative to the working directory, AT_FDCWD.
const here = ^uintptr(99)

// results is what became of the calls of an entry: memory that supervisor and clone share.
type results struct {
	pages []byte
	// errs has the error of each call, 0 for none; and last 1 + the index of the call whose failure ended the process, 1
	// + their number if the program was not executed, 0 if it was.
	errs []uintptr
}

func newResults(calls int) (*results, error) {
	size := (calls + 1) * int(unsafe.Sizeof(uintptr(0)))
	pages, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	return &results{pages: pages, errs: unsafe.Slice((*uintptr)(unsafe.Pointer(&pages[0])), calls+1)}, nil
}

// of returns the error of a call; 0 means none.
func (r *results) of(i int) syscall.Errno { return syscall.Errno(r.errs[i]) }

// ended returns the index of the call that ended the process before it executed a program; ok is false if it executed
// one, or was killed.
func (r *results) ended() (i int, ok bool) {
	end := int(r.errs[len(r.errs)-1])
	return end - 1, end > 0
}

func (r *results) close() { _ = unix.Munmap(r.pages) }

// start clones this process. The clone makes the calls; start returns when it has executed a program or has ended.
func (e *entry) start(namespaces uintptr) (*os.Process, *results, error) {
	r, err := newResults(len(e.calls))
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	syscall.ForkLock.Lock()
	pid, failed := e.clone(unix.CLONE_VFORK|uintptr(unix.SIGCHLD)|namespaces, r.errs)
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(e)
	if failed != 0 {
		r.close()
		return nil, nil, os.NewSyscallError("clone", failed)
	}
	process, err := os.FindProcess(int(pid))
	if err != nil {
		r.close()
		return nil, nil, err
	}
	return process, r, nil
}

// clone is what package syscall does when it starts a program, with a list of calls in between. The memory of the
// clone is its own. In the clone there are no other threads: nothing may allocate, grow the stack, or wait for
// another goroutine.
//
//go:noinline
//go:norace
//go:nocheckptr
func (e *entry) clone(flags uintptr, errs []uintptr) (pid uintptr, failed syscall.Errno) {
	var (
		calls        = e.calls
		last, result uintptr
		err          syscall.Errno
		i, skip      int
		c            *call
	)
	beforeFork()
	pid, _, failed = syscall.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if failed != 0 || pid != 0 {
		afterFork()
		return pid, failed
	}
	afterForkInChild()
	for i = 0; i < len(calls); i++ {
		c = &calls[i]
		if c.takes > 0 {
			c.args[c.takes-1] = last
		}
		result, _, err = syscall.RawSyscall6(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if err == c.harmless {
			err = 0
		}
		errs[i] = uintptr(err)
		last, skip = result, c.passed
		if err != 0 {
			skip = c.failed
		}
		if skip == stop {
			break
		}
		i += skip
	}
	errs[len(calls)] = uintptr(i + 1)
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 126, 0, 0)
	}
}

// What the runtime needs around a clone: signals are blocked meanwhile, and get the handlers of a new process in the
// clone.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()
