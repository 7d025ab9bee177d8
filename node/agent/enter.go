package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/node/inherited"
)

// way is an entry with what it needs while it is made, and what its failure means.
type way struct {
	entry
	doors      []*os.File // into the control group
	anchor     []byte
	name, path string      // of the program, and where it is searched for; path is empty if the name is a path
	candidates []candidate // for the program, in the order in which they are tried
}

// candidate is a path that may be the program. Its calls are one after another: whether it exists, whether it is a
// directory, whether it may be executed, and its execution.
type candidate struct {
	path  string
	first int // index of its first call
}

const callsOfCandidate = 4

// enter prepares the way of a program into its container: into the control group, with the rights of its user, to the
// user's program. As much as possible comes before the control group, because from then on the memory of the process
// counts. The streams are standard input, which may be nil, output and error.
func (f folder) enter(s *spec, streams [3]*os.File, anchor *os.File) (*way, *ending) {
	launch, err := s.Launch.Decoded()
	if err != nil {
		return nil, unable(126, "%v", err)
	}
	w := new(way)
	w.may(unix.SYS_SETSID)
	for fd, stream := range streams {
		if stream != nil {
			w.must(fault("start"), unix.SYS_DUP3, int(stream.Fd()), fd, 0)
		}
	}
	// The score comes before it enters: the kernel must find in the group what it may kill first.
	w.may(unix.SYS_OPENAT, here, inherited.OOMScore, unix.O_WRONLY|unix.O_CLOEXEC).failed = 1
	score := strconv.Itoa(s.OOMScore)
	w.may(unix.SYS_WRITE, 0, score, len(score)).takes = 1
	own := s.Launch.Inherited
	if own == nil {
		own = &cluster.Inherited{Umask: 0o022}
	} else if nice, differs := inherited.Nice(own, s.Launch.As.UID); differs {
		w.must(fault("take nice %d", own.Nice), unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, nice)
	}
	w.may(unix.SYS_UMASK, int(own.Umask))
	if err := w.join(s.Join); err != nil {
		return w, faulty("enter the control group: %w", err)
	}
	if cpus := inherited.CPUs(own); cpus != nil {
		// The control group has given it all of its CPUs. It keeps them if the machine has none of those any more.
		w.may(unix.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(*cpus), cpus)
	}
	w.lay(anchor)
	if err := w.isolate(f, &s.Launch); err != nil {
		return w, faulty("%w", err)
	}
	if err := w.become(s.Launch.As); err != nil {
		return w, faulty("%w", err)
	}
	w.must(func(err syscall.Errno) *ending {
		return unable(126, "working directory %q: %v%s", launch.Dir, err, hidden(&launch, launch.Dir))
	}, unix.SYS_CHDIR, launch.Dir)
	w.read(&launch)
	for number, limit := range inherited.Limits(own) {
		w.may(unix.SYS_PRLIMIT64, 0, number, &limit, 0)
	}
	w.execute(&launch)
	return w, nil
}

// fault explains a failure that is the machine's.
func fault(format string, operands ...any) func(syscall.Errno) *ending {
	return func(err syscall.Errno) *ending { return faulty("%s: %w", fmt.Sprintf(format, operands...), err) }
}

// join enters the control group, in every hierarchy.
func (w *way) join(files []string) error {
	for _, path := range files {
		door, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		w.doors = append(w.doors, door)
		w.must(fault("enter the control group: write to %s", path), unix.SYS_WRITE, int(door.Fd()), "0", 1)
	}
	return nil
}

// close releases what the way needed while it was made.
func (w *way) close() {
	for _, door := range w.doors {
		door.Close()
	}
	if w.anchor != nil {
		_ = unix.Munmap(w.anchor)
	}
}

// become takes a user's rights, in the only order that works: groups first, the user last. A process without privileges
// can only keep its own rights. Nothing that an ordinary user executes afterwards has more rights, as a program with
// the setuid bit would have otherwise: such a program could leave the control group.
func (w *way) become(as cluster.Credentials) error {
	uid, gid := uintptr(as.UID), uintptr(as.GID)
	if os.Geteuid() != 0 {
		if uint32(os.Geteuid()) != as.UID {
			return fmt.Errorf("run as user %d: only root can run programs as another user", as.UID)
		}
		return nil
	}
	w.must(fault("set the groups of user %d", uid), unix.SYS_SETGROUPS, len(as.Groups), as.Groups)
	w.must(fault("set group %d", gid), unix.SYS_SETRESGID, gid, gid, gid)
	w.must(fault("become user %d", uid), unix.SYS_SETRESUID, uid, uid, uid)
	if uid != 0 {
		w.must(fault("give up new privileges for user %d", uid), unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	}
	return nil
}

// read makes a file the standard input, with the user's rights; without a name the input stays as it is.
func (w *way) read(l *cluster.Launch) {
	if l.Stdin == "" {
		return
	}
	w.may(unix.SYS_CLOSE, 0) // The next file is then file 0.
	const flags = unix.O_RDONLY | unix.O_LARGEFILE
	// A pipe that has no writer would stop the process here, where it cannot be ended, and the supervisor with it.
	w.must(func(err syscall.Errno) *ending { return unable(126, "input file %q: %v", l.Stdin, err) },
		unix.SYS_OPENAT, here, l.Stdin, flags|unix.O_NONBLOCK)
	w.may(unix.SYS_FCNTL, 0, unix.F_SETFL, flags)
}

// execute looks the program up as a shell would, with the user's rights, and executes it: a name with a slash is a
// path, any other name is searched for along PATH of the program's environment.
func (w *way) execute(l *cluster.Launch) {
	w.name = l.Args[0]
	paths := []string{w.name}
	if !strings.Contains(w.name, "/") {
		w.path = "/usr/local/bin:/usr/bin:/bin"
		for _, pair := range l.Env {
			if value, ok := strings.CutPrefix(pair, "PATH="); ok {
				w.path = value
			}
		}
		paths = nil
		for _, dir := range filepath.SplitList(w.path) {
			paths = append(paths, filepath.Join(dir, w.name))
		}
	}
	args, env := w.address(l.Args), w.address(l.Env)
	for _, path := range paths {
		w.candidates = append(w.candidates, candidate{path, len(w.calls)})
		w.may(unix.SYS_FACCESSAT, here, path, unix.F_OK).failed = callsOfCandidate - 1
		w.may(unix.SYS_FACCESSAT, here, path+"/.", unix.F_OK).passed = callsOfCandidate - 2
		w.may(unix.SYS_FACCESSAT, here, path, unix.X_OK).failed = callsOfCandidate - 3
		w.must(func(err syscall.Errno) *ending {
			if isShortage(err) && err != unix.ENOMEM { // That may result from the little memory of the container.
				// All users see the faults of the machine: the text does not name the program.
				return faulty("execute a program: %w", err)
			}
			return unable(126, "program %q cannot be executed: %v", path, err)
		}, unix.SYS_EXECVE, path, args, env)
	}
}

// failure returns why the way has not led to a program; nil if it has.
func (w *way) failure(r *results) *ending {
	i, ended := r.ended()
	switch {
	case !ended:
		return nil
	case i < len(w.calls):
		return w.calls[i].why(r.of(i))
	}
	why := unable(127, "program %q was not found", w.name)
	if w.path != "" || !strings.Contains(w.name, "/") {
		why.Detail += " along PATH=" + w.path
	}
	for _, c := range w.candidates {
		if problem := c.problem(w.name, r); problem != nil {
			why = problem
		}
	}
	return why
}

// problem returns why a file that exists is not the program; nil if there is none.
func (c *candidate) problem(name string, r *results) *ending {
	switch exists := r.of(c.first); {
	case exists == unix.ENOENT || exists == unix.ENOTDIR:
		return nil
	case exists != 0:
		return unable(126, "program %q: %v", name, error(exists))
	case r.of(c.first+1) == 0:
		return unable(126, "program %q is a directory", name)
	}
	return unable(126, "program %q may not be executed by this user", name)
}
