package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cgroup"
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/inherited"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// SuperviseCommand is the word that turns this program into a supervisor; see Supervise.
const SuperviseCommand = "supervise"

// Files that a supervisor, and then the program's first stage, inherit from their parents in addition to the standard
// three.
const (
	lockFD   = 3 // supervisor: the container's lock
	statusFD = 4 // supervisor: reports to the agent once that the program runs, or why not
	reportFD = 3 // first stage: reports to the supervisor why the program cannot run; the kernel closes it when the program runs
	anchorFD = 4 // first stage: where its anchor goes
)

// Supervise is the supervisor of one container: the program calls it with the arguments after SuperviseCommand, before
// anything else, and exits with the returned code. It is no command for people.
//
// It is two programs. "supervise DIR" is started by the agent. It starts "supervise enter DIR", which enters the
// control group, takes the rights of the user and becomes the user's program.
func Supervise(args []string) int {
	switch {
	case len(args) == 2 && args[0] == "enter":
		return enter(folder(args[1]))
	case len(args) == 1:
		debug.SetGCPercent(20) // There is one supervisor per container: memory matters more than time.
		return supervise(folder(args[0]))
	}
	fmt.Fprintln(os.Stderr, "bellows supervise: is started by bellows itself")
	return 2
}

// status is the supervisor's report to the agent.
type status struct {
	Started timeline.Time `json:"started_ns,omitempty"`
	// Ended says that the program never ran and exit.json says why.
	Ended bool `json:"ended,omitempty"`
	// Failed is why the supervisor cannot do its work: then nothing ran, and there is no exit.json. Short says that the
	// machine was short of something that it may have again.
	Failed string `json:"failed,omitempty"`
	Short  bool   `json:"short,omitempty"`
}

// unable returns how a container ends whose program cannot be run, because of what its user asked for.
func unable(code int, format string, operands ...any) *ending {
	return &ending{Exit: cluster.Exit{Code: code}, Detail: fmt.Sprintf(format, operands...)}
}

// faulty returns how a container ends whose program cannot be run, because of the machine.
func faulty(format string, operands ...any) *ending {
	err := fmt.Errorf(format, operands...)
	return &ending{Exit: cluster.Exit{Code: 126}, Detail: err.Error(), Fault: true, Short: isShortage(err)}
}

func supervise(f folder) int {
	agent := os.Getppid()
	tell, lock := os.NewFile(statusFD, "status"), os.NewFile(lockFD, "lock")
	// Kept open to the end: the garbage collector closes a file without references, and releases the lock with it.
	defer lock.Close()
	if err := inherited.CloseDescriptors(); err != nil {
		return fail(tell, lock, err)
	}
	// Signals are caught and dropped, not ignored: ignored signals would stay ignored in the program.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0); err != nil {
		return fail(tell, lock, fmt.Errorf("write the pid: %w", err))
	}
	var s spec
	if err := f.get("spec.json", &s); err != nil {
		return fail(tell, lock, err)
	}
	if err := f.setAside(); err != nil {
		return fail(tell, lock, fmt.Errorf("reserve space in %s: %w", f, err))
	}
	for _, file := range s.SupervisorJoin {
		// Where the supervisor runs matters little: outside of the group it is only not accounted as ours.
		if door, err := os.OpenFile(file, os.O_WRONLY, 0); err == nil {
			_, _ = door.WriteString("0")
			door.Close()
		}
	}
	defer func() { // after the end is recorded: there may be much to remove
		if err := f.removeTmp(); err != nil {
			fmt.Fprintf(os.Stderr, "remove the private temporary folder: %v\n", err)
		}
	}()
	anchor, lay, err := os.Pipe()
	if err != nil {
		return fail(tell, lock, fmt.Errorf("make a pipe: %w", err))
	}
	defer anchor.Close() // the anchor goes with it
	var in *mouth
	if s.Launch.Input {
		if in, err = openMouth(f); err != nil {
			return fail(tell, lock, fmt.Errorf("listen for input: %w", err))
		}
		defer in.close()
	}
	var printed outputs
	command, why := launch(f, &s, lock, in.end(), lay, &printed)
	lay.Close()
	if why != nil {
		why.Ended = now()
		return finish(f, &s, agent, *why, func() { say(tell, status{Ended: true}) })
	}
	begun := now()
	_ = f.putStarted(started{begun, monotonic()}) // On a full disk only the time of the start is lost.
	say(tell, status{Started: begun})
	go guard(f, &s)
	if in != nil {
		go in.feed(s.Lease)
	}
	limit := keepTimeLimit(f, &s)
	transferred := awaitEnd(command.Process.Pid)
	_ = command.Wait() // The process state has the result.
	e := settle(f, &s, command.ProcessState, limit.end(), transferred)
	printed.finish()
	e.Started = begun
	return finish(f, &s, agent, e, nil)
}

// fail ends the supervisor before it has started anything, and reports why.
func fail(tell, lock *os.File, err error) int {
	fmt.Fprintln(os.Stderr, err)
	_ = lock.Truncate(0) // The lock's text may claim more than is true.
	say(tell, status{Failed: err.Error(), Short: isShortage(err)})
	return 1
}

func say(to *os.File, s status) {
	_ = json.NewEncoder(to).Encode(s) // If the agent is gone, the report is lost.
	to.Close()
}

// finish writes the record and notifies the processes that wait for it. The agent is the process that started this one.
func finish(f folder, s *spec, agent int, e ending, then func()) int {
	record(func() error { return f.putEnding(e) }, func() bool { return os.Getppid() == agent || leased(s.Lease) })
	if then != nil {
		then()
	}
	return 0
}

// recordWait is how long a supervisor without a daemon tries to record the end of its program.
const recordWait = time.Minute

// record tries until it succeeds, because the exit code would be lost with the supervisor. Space is reserved for the
// record, so that it fails only if the disk does. The supervisor gives up when there has been no daemon for recordWait;
// a daemon could notice that the disk works again, or end the supervisor.
func record(put func() error, attended func() bool) {
	alone := time.Duration(0)
	for alone < recordWait {
		err := put()
		if err == nil || errors.Is(err, os.ErrNotExist) { // The folder is gone: the record is not needed.
			return
		}
		fmt.Fprintf(os.Stderr, "record the end: %v\n", err)
		time.Sleep(time.Second)
		if alone += time.Second; attended() {
			alone = 0
		}
	}
}

func now() timeline.Time { return timeline.Time(time.Now().UnixNano()) }

// launch starts the program and returns when it runs, or why it does not.
func launch(f folder, s *spec, lock, stdin, anchor *os.File, printed *outputs) (*exec.Cmd, *ending) {
	if s.Launch.PrivateTmp {
		if err := f.makeTmp(); err != nil {
			return nil, faulty("make a private temporary folder: %w", err)
		}
	}
	stdout, err := printed.add(s.Launch.Stdout, s.Launch.As, s.OutputLimit)
	if err != nil {
		return nil, faulty("open the output file: %w", err)
	}
	defer stdout.Close()
	stderr, err := printed.add(s.Launch.Stderr, s.Launch.As, s.OutputLimit)
	if err != nil {
		return nil, faulty("open the error file: %w", err)
	}
	defer stderr.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, faulty("start: %w", err)
	}
	listen, speak, err := os.Pipe()
	if err != nil {
		return nil, faulty("start: %w", err)
	}
	defer listen.Close()
	command := exec.Command(self, SuperviseCommand, "enter", string(f))
	command.Env = []string{"GOMAXPROCS=1"}
	command.Dir = "/"
	command.Stdout, command.Stderr = stdout, stderr
	if stdin != nil {
		defer stdin.Close() // When the program stops reading, no other process may seem to read.
		command.Stdin = stdin
	}
	command.ExtraFiles = []*os.File{speak, anchor}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces(&s.Launch)}
	if err := launches(lock); err != nil {
		speak.Close()
		return nil, faulty("note that the program starts: %w", err)
	}
	err = command.Start()
	speak.Close()
	if err != nil {
		return nil, faulty("start: %w", err)
	}
	printed.begin()
	text, _ := io.ReadAll(listen)
	if len(text) == 0 {
		// The pipe closed without a report: the program runs. (Or the first stage was killed: its exit code will say
		// so.)
		return command, nil
	}
	_ = command.Wait()
	var why ending
	if err := json.Unmarshal(text, &why); err != nil {
		return nil, &ending{Fault: true, Detail: fmt.Sprintf("start: the report of the first stage cannot be read: %v", err)}
	}
	return nil, &why
}

// enter enters the control group, takes the user's rights and becomes the user's program. It does as much as possible
// before it enters, because from then on its memory counts.
func enter(f folder) int {
	runtime.LockOSThread() // Some of what the program inherits belongs to the thread that executes it.
	if err := inherited.CloseDescriptors(); err != nil {
		return refuse(&ending{Exit: cluster.Exit{Code: 126}, Detail: err.Error(), Fault: true})
	}
	var s spec
	if err := f.get("spec.json", &s); err != nil {
		return refuse(faulty("%w", err))
	}
	_ = inherited.TakeOOMScore(s.OOMScore) // before it enters: the kernel must find in the group what it may kill first
	var doors []*os.File
	for _, path := range s.Join {
		door, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return refuse(faulty("enter the control group: %w", err))
		}
		doors = append(doors, door)
	}
	own := s.Launch.Inherited
	if own == nil {
		own = &cluster.Inherited{Umask: 0o022}
	} else if err := inherited.TakeNice(*own, s.Launch.As.UID); err != nil {
		return refuse(faulty("take nice %d: %w", own.Nice, err))
	}
	unix.Umask(int(own.Umask))
	for _, door := range doors {
		if _, err := door.WriteString("0"); err != nil {
			return refuse(faulty("enter the control group: write to %s: %w", door.Name(), err))
		}
	}
	_ = layAnchor(os.NewFile(anchorFD, "anchor")) // The program can run without an anchor; a program that swaps much is then in some danger.
	if err := f.isolate(&s.Launch); err != nil {
		return refuse(faulty("%w", err))
	}
	if err := become(s.Launch.As); err != nil {
		return refuse(faulty("%w", err))
	}
	launch, err := s.Launch.Decoded()
	if err != nil {
		return refuse(unable(126, "%v", err))
	}
	if err := os.Chdir(launch.Dir); err != nil {
		return refuse(unable(126, "working directory %q: %v%s", launch.Dir, bare(err), hidden(&launch, launch.Dir)))
	}
	if err := openInput(launch.Stdin); err != nil {
		return refuse(unable(126, "input file %q: %v", launch.Stdin, bare(err)))
	}
	program, why := find(launch.Args[0], launch.Env)
	if why != nil {
		return refuse(why)
	}
	inherited.TakeLimits(*own)
	err = unix.Exec(program, launch.Args, launch.Env)
	if isShortage(err) && !errors.Is(err, unix.ENOMEM) { // That may result from the little memory of the container.
		return refuse(faulty("execute a program: %w", err)) // All users see the faults of the machine: the text does not name the program.
	}
	return refuse(unable(126, "program %q cannot be executed: %v", program, err))
}

// refuse reports to the supervisor why the program cannot run.
func refuse(why *ending) int {
	_ = json.NewEncoder(os.NewFile(reportFD, "report")).Encode(why)
	return why.Code
}

// openInput makes a file the standard input; an empty name leaves it as it is.
func openInput(name string) error {
	if name == "" {
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Dup2(int(file.Fd()), 0)
}

// bare returns the cause of an error without the context.
func bare(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// become takes a user's rights, in the only order that works: groups first, the user last. A process without privileges
// can only keep its own rights. Nothing that an ordinary user executes afterwards has more rights, as a program with the
// setuid bit would have otherwise: such a program could leave the control group. The goroutine must be locked to its thread.
func become(as cluster.Credentials) error {
	if os.Geteuid() != 0 {
		if uint32(os.Geteuid()) != as.UID {
			return fmt.Errorf("run as user %d: only root can run programs as another user", as.UID)
		}
		return nil
	}
	groups := make([]int, len(as.Groups))
	for i, g := range as.Groups {
		groups[i] = int(g)
	}
	// The package syscall changes every thread; unix changes one.
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("set the groups of user %d: %w", as.UID, err)
	}
	if err := syscall.Setresgid(int(as.GID), int(as.GID), int(as.GID)); err != nil {
		return fmt.Errorf("set group %d: %w", as.GID, err)
	}
	if err := syscall.Setresuid(int(as.UID), int(as.UID), int(as.UID)); err != nil {
		return fmt.Errorf("become user %d: %w", as.UID, err)
	}
	if as.UID == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges for user %d: %w", as.UID, err)
	}
	return nil
}

// find looks a program up as a shell would: a name with a slash is a path, any other name is searched for along PATH of
// env.
func find(name string, env []string) (string, *ending) {
	if strings.Contains(name, "/") {
		return name, check(name, name)
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			path = value
		}
	}
	why := unable(127, "program %q was not found along PATH=%s", name, path)
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, name)
		switch problem := check(name, candidate); {
		case problem == nil:
			return candidate, nil
		case problem.Code == 126:
			why = problem
		}
	}
	return "", why
}

func check(name, path string) *ending {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return unable(127, "program %q was not found", name)
	case err != nil:
		return unable(126, "program %q: %v", name, bare(err))
	case info.IsDir():
		return unable(126, "program %q is a directory", name)
	case unix.Access(path, unix.X_OK) != nil:
		return unable(126, "program %q may not be executed by this user", name)
	}
	return nil
}

// awaitEnd waits until a child has ended and returns what it and its children have transferred, which the kernel forgets
// when the child is waited for; nil if it is unknown.
func awaitEnd(pid int) *cgroup.Transfers {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	has, err := cgroup.TransfersOf(pid)
	if err != nil {
		return nil
	}
	return &has
}

// withRemaining adds what the processes that are left in a group have transferred.
func withRemaining(g *cgroup.Group, transferred *cgroup.Transfers) *cgroup.Transfers {
	tally, err := g.Tally()
	if err != nil {
		return transferred
	}
	remaining, _ := tally.Read()
	sum := transferred.Plus(remaining)
	return &sum
}

// settle kills the other processes of the container and takes its last reading. A container ends with its program, which has
// transferred this.
func settle(f folder, s *spec, state *os.ProcessState, tooLong bool, transferred *cgroup.Transfers) ending {
	e := ending{Exit: cluster.Exit{Ended: now(), Code: state.ExitCode(), CPUTime: state.UserTime() + state.SystemTime()}}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = int(ws.Signal())
		e.Code = 128 + e.Signal
	}
	if tooLong {
		e.Code, e.TimeLimit = timedOut, s.Launch.Timeout
	}
	g, err := openGroup(s)
	if err != nil {
		return e // The agent kills the remaining processes.
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if tooLong || f.exists("killed") {
		waitEmpty(g, time.Now().Add(s.Grace))
	} else if pids, err := g.Procs(); err == nil {
		e.Left = int64(len(pids))
	}
	if transferred != nil && !boundsAll(g) {
		e.Transferred = transferred
		if e.Left > 0 {
			e.Transferred = withRemaining(g, transferred)
		}
	}
	_ = g.Kill(ctx) // The agent tries again.
	reading, err := g.Read()
	if err != nil {
		return e
	}
	e.OOMKills, _ = reading.OOMKills.Get()
	if t, ok := reading.CPUTime.Get(); ok {
		e.CPUTime = t
	}
	e.Peak = resource.Amount(reading.PeakBytes.Or(0))
	return e
}

// waitEmpty waits for the promised time until processes that were requested to end have ended.
func waitEmpty(g *cgroup.Group, until time.Time) {
	for time.Now().Before(until) {
		if pids, err := g.Procs(); err != nil || len(pids) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// openGroup finds the container's control group, if it is still the group that was made for the container.
func openGroup(s *spec) (*cgroup.Group, error) {
	host, err := cgroup.Discover("")
	if err != nil {
		return nil, err
	}
	root, err := host.OpenRoot(s.Place)
	if err != nil {
		return nil, err
	}
	g, err := root.Open(s.Container.String())
	if err != nil {
		return nil, err
	}
	if g.Identity() != s.Identity {
		return nil, cgroup.ErrGone
	}
	return g, nil
}
