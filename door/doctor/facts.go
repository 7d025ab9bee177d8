package doctor

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/server"
	"github.com/bellows-rm/bellows/durable/statedir"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/node/agent"
	"github.com/bellows-rm/bellows/node/swap"
)

// Config says for which daemon a machine is examined.
type Config struct {
	State, Socket string // absolute paths of its state directory and its socket
	Version       string // of this program
}

// Facts are what the checks judge. Each part has the checks that need nothing else.
type Facts struct {
	Config
	System
	UID  int
	User string // empty if the user has no name

	Available resource.Amount // to programs, bytes
	Capacity
	Groups
	Swap
	StateDir
	Limits

	Now time.Time
	Clock
	// Newest is the file in the state directory that was changed last, and Changed is when; empty if there is none.
	Newest  string
	Changed time.Time

	SocketErr  error
	SocketLeft bool // there is a socket, on which no daemon answers
	SocketMode fs.FileMode
	SocketGID  uint32 // group of the socket
	Status     *api.Status
	StatusErr  error
	Holder     string // process that has the lock of the state directory
	Held       bool
	// Began is when the process of the daemon began, by the present clock; zero if unknown.
	Began time.Time
}

// System is the kernel.
type System struct {
	Release, Arch string
}

// Capacity is what a daemon may manage of the machine.
type Capacity struct {
	Usable      agent.Usable
	CapacityErr error
}

// Groups are the control groups of a daemon.
type Groups struct {
	Found     agent.Found
	GroupsErr error
	PSI       error // why the kernel reports no pressure stalls; nil if it does
}

// Swap is the swap of the machine, and what of it a daemon may use.
type Swap struct {
	Devices       []swap.Device
	Zswap         *swap.Zswap // nil if the kernel has none
	SwapErr       error
	Spent, PerDay resource.Amount // bytes that swapping wrote to disks in a day, and may write; 0 is no limit
}

// StateDir is the state directory.
type StateDir struct {
	Path        string
	StateExists bool
	StateErr    error
	Disk        unix.Statfs_t // with the state directory, or with the directory in which it would be made
	DiskErr     error
}

// Limits are the limits of this process.
type Limits struct {
	Descriptors       uint64
	Connections, Most int               // at a time, with these descriptors and without their limit
	Rlimits           map[string]uint64 // by the names of ulimit's documentation; a missing one is unknown
}

// Clock says whether a program keeps the clock right.
type Clock struct {
	Synced   bool
	ClockErr error
}

// look collects the facts of this machine.
func look(ctx context.Context, c Config) *Facts {
	f := &Facts{Config: c, System: lookAtSystem(), UID: os.Geteuid(), Groups: lookAtGroups(c.State),
		Swap: lookAtSwap(c.State), StateDir: lookAtState(c.State), Limits: lookAtLimits(), Now: time.Now(),
		Clock: lookAtClock()}
	if u, err := user.LookupId(strconv.Itoa(f.UID)); err == nil {
		f.User = u.Username
	}
	f.Capacity, f.Available = lookAtCapacity()
	f.lookAtNewest()
	f.askDaemon(ctx)
	return f
}

func lookAtSystem() System { return System{Release: release(), Arch: runtime.GOARCH} }

// lookAtCapacity also returns how much memory is available to programs, bytes.
func lookAtCapacity() (c Capacity, available resource.Amount) {
	if c.Usable, c.CapacityErr = agent.FindUsable(); c.CapacityErr == nil {
		memory, err := swap.Machine{}.Memory()
		available, c.CapacityErr = memory.Available, err
	}
	return c, available
}

func lookAtGroups(state string) (g Groups) {
	g.PSI = readable("/proc/pressure/memory")
	g.Found, g.GroupsErr = agent.Probe(state)
	return g
}

func lookAtSwap(state string) (s Swap) {
	machine := swap.Machine{}
	s.Devices, s.SwapErr = machine.Devices()
	s.Zswap = machine.Zswap()
	if spent, perDay, err := swap.LastDay(machine, swap.BudgetPath(state)); err == nil {
		s.Spent, s.PerDay = spent, perDay
	}
	return s
}

func lookAtLimits() (l Limits) {
	l.Descriptors, l.Connections, l.Most = server.Descriptors()
	l.Rlimits = rlimits()
	return l
}

// release returns the release of the kernel; empty if it is unknown.
func release() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	text, _, _ := bytes.Cut(name.Release[:], []byte{0})
	return string(text)
}

// readable returns why a file of the kernel cannot be read.
func readable(path string) error {
	_, err := os.ReadFile(path)
	return err
}

// rlimits returns the limits of this process.
func rlimits() map[string]uint64 {
	all := map[string]uint64{}
	for name, which := range map[string]int{fileSize: unix.RLIMIT_FSIZE, addressSpace: unix.RLIMIT_AS,
		userProcesses: unix.RLIMIT_NPROC} {
		var limit unix.Rlimit
		if unix.Getrlimit(which, &limit) == nil {
			all[name] = limit.Cur
		}
	}
	return all
}

// lookAtState examines the state directory and its disk.
func lookAtState(state string) (d StateDir) {
	d.Path = state
	d.StateExists, d.StateErr = statedir.Check(state)
	for dir := state; ; dir = filepath.Dir(dir) {
		d.DiskErr = unix.Statfs(dir, &d.Disk)
		if !errors.Is(d.DiskErr, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return d
		}
	}
}

// lookAtNewest finds what was changed last in the state directory.
func (f *Facts) lookAtNewest() {
	entries, _ := os.ReadDir(f.State) // An unreadable directory is an error of its check.
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(f.Changed) {
			f.Newest, f.Changed = e.Name(), info.ModTime()
		}
	}
}

func lookAtClock() Clock {
	var clock unix.Timex
	if _, err := unix.Adjtimex(&clock); err != nil {
		return Clock{ClockErr: err}
	}
	const unsynchronized = 0x40 // STA_UNSYNC of linux/timex.h
	return Clock{Synced: clock.Status&unsynchronized == 0}
}

// patience is how long a daemon may take to answer.
const patience = 5 * time.Second

// askDaemon asks the daemon, if one runs.
func (f *Facts) askDaemon(ctx context.Context) {
	f.SocketErr = server.CheckSocket(f.Socket)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status, err := client.New(f.Socket).Status(ctx)
	if err == nil {
		f.Status, f.Began = &status, begun(status.PID)
		if info, err := os.Stat(f.Socket); err == nil {
			f.SocketMode = info.Mode()
			f.SocketGID = info.Sys().(*syscall.Stat_t).Gid
		}
		return
	}
	f.StatusErr = err
	f.Holder, f.Held, _ = store.LockHolder(f.State)
	_, missing := os.Lstat(f.Socket)
	f.SocketLeft = missing == nil
}

// begun returns when a process began, by the present clock; zero if that is unknown.
func begun(pid int) time.Time {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return time.Time{}
	}
	// The name of the program, in parentheses, may contain blanks. The fields after it begin with the third one.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const startTime, third = 22, 3
	if len(fields) <= startTime-third {
		return time.Time{}
	}
	const perSecond = 100 // USER_HZ, on all architectures that bellows is built for
	ticks, err := strconv.ParseInt(fields[startTime-third], 10, 64)
	var boot unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ticks)*(time.Second/perSecond) - time.Duration(boot.Nano()))
}
