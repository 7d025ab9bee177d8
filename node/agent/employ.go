package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/node/inherited"
)

// A supervisor has one container at a time, but may have several one after another: a process takes longer to start
// than the work of starting a program. Between containers it waits for the agent that started it, and ends with it:
// the connection between them is closed. So no supervisor works for an agent of another release, and none is left
// behind.

const (
	// leisure is how long a supervisor without a container waits for one. One of them waits as long as the agent works.
	leisure = 10 * time.Second
	// mostIdle is how many supervisors wait at most.
	mostIdle = 8
)

// supervisor is the process of a supervisor, as the agent knows it.
type supervisor struct {
	program string
	conn    *net.UnixConn
	reports *json.Decoder   // from conn
	gone    <-chan struct{} // closed when the process has ended
	proven  bool            // it has had a container before
	since   time.Time       // it waits for a container
	forget  func() bool     // stops what closes conn with the agent
}

// crew are the supervisors of an agent.
type crew struct {
	closed  context.Context // ends with the agent
	program string          // that they are to be processes of
	mu      sync.Mutex
	idle    []*supervisor // those that wait for a container; the last one for the shortest time
}

// employ has a supervisor take care of a container: one that waits, or a new one.
func (c *crew) employ(dir folder, lock, log *os.File) (*supervisor, error) {
	for s := c.takeIdle(); s != nil; s = c.takeIdle() {
		if s.assign(dir, lock, log) == nil {
			return s, nil
		}
		s.dismiss() // It has died.
	}
	return c.hire(dir, lock, log)
}

// hire starts a supervisor.
func (c *crew) hire(dir folder, lock, log *os.File) (*supervisor, error) {
	ours, theirs, err := connected()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	command := exec.Command(c.program, SuperviseCommand, titled(dir))
	command.Args[0] = "bellows"
	command.Env = []string{"GOMAXPROCS=1"}
	command.Dir = "/"
	command.Stdout, command.Stderr = log, log
	command.ExtraFiles = []*os.File{lock, theirs}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	s := &supervisor{program: c.program, conn: ours, reports: json.NewDecoder(ours), gone: reap(command)}
	s.forget = context.AfterFunc(c.closed, func() { ours.Close() })
	return s, nil
}

// connected returns the two ends of a connection between the agent and a supervisor.
func connected() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a connection: %w", err)
	}
	theirs = os.NewFile(uintptr(pair[1]), "agent")
	file := os.NewFile(uintptr(pair[0]), "supervisor")
	if ours, err = connection(file); err != nil {
		return nil, nil, errors.Join(err, file.Close(), theirs.Close())
	}
	return ours, theirs, nil
}

// connection returns the connection of a file and closes the file. The error says that the file is not a connection.
func connection(file *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a connection to a supervisor"), c.Close())
	}
	return u, file.Close()
}

// reap returns a channel that is closed when a supervisor has ended. Its goroutine is independent of the agent and
// outlives it, so that no supervisor stays behind as a zombie while this process lives.
func reap(command *exec.Cmd) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // Its result is in the record.
	}()
	return ended
}

// assign gives a supervisor that waits its next container: the folder, and with it the lock and the log.
func (s *supervisor) assign(dir folder, lock, log *os.File) error {
	_, _, err := s.conn.WriteMsgUnix([]byte(dir), unix.UnixRights(int(lock.Fd()), int(log.Fd())), nil)
	return err
}

// freed returns a channel that is closed when the supervisor is done with its container. It can have the next one
// then, unless the process has ended. If the agent is closed, the channel is closed when the process ends.
func (c *crew) freed(s *supervisor) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var said status
		if err := s.reports.Decode(&said); err == nil && said.Free {
			c.keepIdle(s)
			return
		}
		s.dismiss()
		<-s.gone
	}()
	return done
}

// dismiss lets a supervisor end, at once or after its container.
func (s *supervisor) dismiss() {
	s.forget()
	s.conn.Close()
}

// takeIdle returns the supervisor that has waited for the shortest time; nil if there is none.
func (c *crew) takeIdle() *supervisor {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := len(c.idle); n > 0; n = len(c.idle) {
		s := c.idle[n-1]
		c.idle = c.idle[:n-1]
		if s.program == c.program {
			return s
		}
		s.dismiss()
	}
	return nil
}

// keepIdle lets a supervisor wait for its next container, unless enough do.
func (c *crew) keepIdle(s *supervisor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Err() != nil || len(c.idle) == mostIdle {
		s.dismiss()
		return
	}
	s.proven, s.since = true, time.Now()
	c.idle = append(c.idle, s)
	time.AfterFunc(leisure, c.dismissIdle)
}

// dismissIdle lets the supervisors end that have waited for too long; the last one stays.
func (c *crew) dismissIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.idle) > 1 && time.Since(c.idle[0].since) >= leisure {
		c.idle[0].dismiss()
		c.idle = c.idle[1:]
	}
}

// serve is the process of a supervisor: it takes care of the container that it was started for, and then of those
// that the agent gives it. It shows which one it has, and ends when the agent has gone.
func serve(f folder, shown title) int {
	lock, tell := os.NewFile(lockFD, "lock"), os.NewFile(statusFD, "agent")
	if err := inherited.CloseDescriptors(); err != nil {
		fail(tell, lock, err)
		return 1
	}
	// An execution that fails has an effect: package syscall gives the number of open files, which it has raised for
	// this process, the limit that programs are to inherit.
	_ = syscall.Exec("", []string{""}, nil)
	// Signals are caught and dropped, not ignored: ignored signals would stay ignored in the program.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	agent, err := connection(tell)
	if err != nil {
		fail(tell, lock, err)
		return 1
	}
	for {
		shown.show(f)
		if !supervise(f, lock, agent) {
			return 1
		}
		shown.show(f.none())
		say(agent, status{Free: true})
		if f, lock, err = nextContainer(agent); err != nil {
			return 0
		}
	}
}

// nextContainer waits for the next container of a supervisor. An error says that the agent has gone, or is shutting
// down.
func nextContainer(agent *net.UnixConn) (folder, *os.File, error) {
	text, rights := make([]byte, unix.PathMax), make([]byte, unix.CmsgSpace(2*4))
	n, m, _, _, err := agent.ReadMsgUnix(text, rights)
	if err != nil {
		return "", nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return "", nil, err
	}
	if len(messages) != 1 {
		return "", nil, errors.New("an assignment without files")
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return "", nil, err
	}
	if len(files) != 2 {
		return "", nil, errors.New("an assignment needs two files")
	}
	lock, log := os.NewFile(uintptr(files[0]), "lock"), files[1]
	for _, fd := range []int{1, 2} {
		err = errors.Join(err, unix.Dup3(log, fd, 0))
	}
	return folder(text[:n]), lock, errors.Join(err, unix.Close(log))
}
