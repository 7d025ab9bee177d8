package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// SuperviseCommand is the word that turns this program into a supervisor; see Supervise.
const SuperviseCommand = "supervise"

// Files that a supervisor inherits from the agent in addition to the standard three.
const (
	lockFD   = 3 // the lock of its first container
	statusFD = 4 // its connection to the agent
)

// Supervise is the supervisor of one container: the program calls it with the arguments after SuperviseCommand, before
// anything else, and exits with the returned code. It is no command for people.
//
// "supervise DIR" is started by the agent. A clone of it enters the control group, takes the rights of the user and
// becomes the user's program: see entry. When its container has ended, it can have another: see serve.
func Supervise(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "bellows supervise: is started by bellows itself")
		return 2
	}
	debug.SetGCPercent(20) // There is one supervisor per container: memory matters more than time.
	return serve(folderOf(args[0]), titleOf(args[0]))
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
	// Free says that the container has ended, its end is recorded, and its lock released: the supervisor can have
	// another container.
	Free bool `json:"free,omitempty"`
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

// supervise stays with one container until its end is recorded, and closes its lock. It returns false if it could not
// do its work: then nothing ran.
func supervise(f folder, lock *os.File, tell io.Writer) bool {
	// The record of the end goes into this folder, also if it has been moved meanwhile, with a state directory.
	at := f
	if dir, err := os.Open(string(f)); err == nil {
		defer dir.Close()
		at = folder(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	}
	agent := os.Getppid()
	// Kept open to the end: the garbage collector closes a file without references, and releases the lock with it.
	defer lock.Close()
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
	program, why := launch(f, &s, lock, in.end(), lay, &printed)
	lay.Close()
	if why != nil {
		printed.finish()
		why.Ended = now()
		finish(at, &s, agent, *why)
		say(tell, status{Ended: true})
		return true
	}
	begun := now()
	_ = f.putStarted(started{begun, monotonic()}) // On a full disk only the time of the start is lost.
	say(tell, status{Started: begun})
	guarded, end := context.WithCancel(context.Background())
	defer end()
	go guard(guarded, f, &s)
	if in != nil {
		go in.feed(s.Lease)
	}
	limit := keepTimeLimit(f, &s)
	transferred := awaitEnd(program.Pid)
	state, err := program.Wait()
	if err != nil { // No other waits for it.
		panic(fmt.Sprintf("wait for the program: %v", err))
	}
	e := settle(f, &s, state, limit.end(), transferred)
	printed.finish()
	e.Started = begun
	finish(at, &s, agent, e)
	return true
}

// fail reports why the supervisor cannot start anything.
func fail(tell io.Writer, lock *os.File, err error) bool {
	fmt.Fprintln(os.Stderr, err)
	_ = lock.Truncate(0) // The lock's text may claim more than is true.
	say(tell, status{Failed: err.Error(), Short: isShortage(err)})
	return false
}

func say(to io.Writer, s status) {
	_ = json.NewEncoder(to).Encode(s) // If the agent is gone, the report is lost.
}

// finish writes the record. The agent is the process that started this one.
func finish(f folder, s *spec, agent int, e ending) {
	record(func() error { return f.putEnding(e) }, func() bool { return os.Getppid() == agent || leased(s.Lease) })
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
func launch(f folder, s *spec, lock, stdin, anchor *os.File, printed *outputs) (*os.Process, *ending) {
	defer printed.begin() // Nothing remains open then, whether or not the program runs.
	if stdin != nil {
		defer stdin.Close() // When the program stops reading, no other process may seem to read.
	}
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
	w, why := f.enter(s, [3]*os.File{stdin, stdout, stderr}, anchor)
	if w != nil {
		defer w.close()
	}
	if why != nil {
		return nil, why
	}
	if err := launches(lock); err != nil {
		return nil, faulty("note that the program starts: %w", err)
	}
	process, results, err := w.start(namespaces(&s.Launch))
	if err != nil {
		return nil, faulty("start: %w", err)
	}
	defer results.close()
	// If it was killed on its way, its exit code will say so.
	if why := w.failure(results); why != nil {
		_, _ = process.Wait()
		return nil, why
	}
	return process, nil
}

// awaitEnd waits until a child has ended and returns what it and its children have transferred, which the kernel
// forgets when the child is waited for; nil if it is unknown.
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

// settle kills the other processes of the container and takes its last reading. A container ends with its program,
// which has transferred this.
func settle(f folder, s *spec, state *os.ProcessState, tooLong bool, transferred *cgroup.Transfers) ending {
	e := ending{Exit: cluster.Exit{Ended: now(), Code: state.ExitCode(), CPUTime: state.UserTime() + state.SystemTime()}}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = int(ws.Signal())
		e.Code = 128 + e.Signal
	}
	if tooLong {
		e.Code, e.TimeLimit = timedOut, s.Launch.Timeout
	}
	g, err := openAgain(s)
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
	if transferred != nil && !g.BoundsAll() {
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
	e.Refused, _ = reading.Refused.Get()
	if t, ok := reading.CPUTime.Get(); ok {
		e.CPUTime = t
	}
	e.Peak = resource.Amount(reading.PeakBytes.Or(0))
	e.Held = heldAtLimit(&reading)
	e.Used = heldAtPeak(&reading, state)
	return e
}

// heldAtPeak returns a lower bound of the most memory that a container held, without page cache; 0 if none is known. A
// program may allocate and end between two samples. At the peak of the group, page cache was at most what is left of it
// now, unless a file was removed or the kernel dropped some; so the largest process bounds it, too. The kernel counts
// the memory of the supervisor, which forked, as that of its program, so that a smaller program is not known.
func heldAtPeak(r *cgroup.Reading, state *os.ProcessState) resource.Amount {
	largest, measured := state.SysUsage().(*syscall.Rusage)
	peak, known := r.PeakBytes.Get()
	files, split := r.FileBytes.Get()
	own, err := ownPeak()
	if !measured || !known || !split || err != nil || resource.Amount(largest.Maxrss)*resource.KiB <= own {
		return 0
	}
	return min(resource.Amount(largest.Maxrss)*resource.KiB, resource.Amount(max(0, peak-files)))
}

// ownPeak returns the most memory that this process had. What getrusage says of it includes its parent.
func ownPeak() (peak resource.Amount, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, line, _ := strings.Cut(string(text), "\nVmHWM:")
	_, err = fmt.Sscan(line, &peak)
	return peak * resource.KiB, err
}

// heldAtLimit returns what a container held that the kernel has killed for memory: its limit, unless it never came near
// it, because the machine had no memory left. The kernel has dropped all page cache of the container before.
func heldAtLimit(r *cgroup.Reading) resource.Amount {
	limit, bounded := r.MemoryLimitBytes.Get()
	if r.OOMKills.Or(0) == 0 || !bounded || limit == cgroup.NoLimit || r.PeakBytes.Or(limit) < limit-limit/50 {
		return 0
	}
	return resource.Amount(limit)
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

// openAgain is openGroup of a group that is to be read. While it cannot be read, it tries again for up to recordWait:
// without what the kernel killed, a program that was killed for memory would seem to have failed by itself.
func openAgain(s *spec) (*cgroup.Group, error) {
	begun := time.Now()
	for pause := firstRetry; ; pause = min(2*pause, time.Second) {
		g, err := openGroup(s)
		if err == nil {
			_, err = g.Procs()
		}
		if !isUnread(err) || time.Since(begun) > recordWait {
			return g, err
		}
		time.Sleep(pause)
	}
}

// openGroup finds the container's control group, if it is still the group that was made for the container.
func openGroup(s *spec) (*cgroup.Group, error) {
	root, err := roots.at(s.Place)
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

// roots are the roots that this process has found: a supervisor has one container after another below the same one,
// and looks for it longer than for all else that it reads at the end of a container.
var roots places

type places struct {
	mu    sync.Mutex
	found map[string]*cgroup.Root
}

// at returns the root of a place.
func (p *places) at(place string) (*cgroup.Root, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if root := p.found[place]; root != nil {
		return root, nil
	}
	host, err := cgroup.Discover("")
	if err != nil {
		return nil, err
	}
	root, err := host.OpenRoot(place)
	if err != nil {
		return nil, err
	}
	if p.found == nil {
		p.found = map[string]*cgroup.Root{}
	}
	p.found[place] = root
	return root, nil
}
