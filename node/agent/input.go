package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/node/input"
)

// inputSocket is the socket, in the container's folder, on which the supervisor accepts the input of its program.
const inputSocket = "input"

// inputLook is how often the agent looks whether a client sends input.
const inputLook = 5 * time.Second

// Input connects to the input of a running container. Package input describes the protocol.
func (a *Agent) Input(id cluster.ContainerID) (io.ReadWriteCloser, error) {
	address, done, err := a.folder(id).socket(inputSocket)
	if err != nil {
		return nil, fmt.Errorf("connect to the input of container %s: %w", id, err)
	}
	defer done()
	c, err := new(net.Dialer).DialContext(a.closed, "unix", address)
	if err != nil {
		return nil, fmt.Errorf("connect to the input of container %s: %w", id, err)
	}
	return c, nil
}

// socket returns a name for a socket in the folder that is valid until done is called. It is short, however long the
// name of the folder: the kernel accepts at most 107 characters.
func (f folder) socket(name string) (address string, done func(), err error) {
	dir, err := os.Open(string(f))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name), func() { dir.Close() }, nil
}

// mouth is the supervisor's part of a program's input: where input arrives, and the pipe that it goes into.
type mouth struct {
	listener *net.UnixListener
	sink     *input.Sink
	pipe     *os.File // the end that the program reads
	closed   context.Context
	close    context.CancelFunc
}

// openMouth makes the pipe of a program and listens for its input.
func openMouth(f folder) (*mouth, error) {
	address, done, err := f.socket(inputSocket)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // The name is not valid any more; the socket goes with the folder.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	m := &mouth{listener: l, sink: input.NewSink(write), pipe: read}
	m.closed, m.close = context.WithCancel(context.Background())
	context.AfterFunc(m.closed, func() { l.Close(); write.Close() })
	return m, nil
}

// end returns the end of the pipe that the program reads; nil if there is no mouth.
func (m *mouth) end() *os.File {
	if m == nil {
		return nil
	}
	return m.pipe
}

// feed passes input to the program until the input ends or the mouth is closed. lease is the file that shows whether
// there is an agent.
func (m *mouth) feed(lease string) {
	absent := time.Duration(0) // how long no client was connected although one could have been
	for !m.sink.Over() {
		// It fails if the listener is closed, and so does the next call.
		_ = m.listener.SetDeadline(time.Now().Add(inputLook))
		c, err := m.listener.Accept()
		switch {
		case err == nil:
			absent = 0
			stop := context.AfterFunc(m.closed, func() { c.Close() })
			_ = m.sink.Serve(c) // The client connects again.
			stop()
			c.Close()
		case isShortage(err):
			time.Sleep(inputLook)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return
		case leased(lease):
			if absent += inputLook; absent >= input.Patience {
				m.sink.End()
			}
		default:
			absent = 0
		}
	}
	// A late client is notified that the input has ended.
	for {
		_ = m.listener.SetDeadline(time.Time{})
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		_ = m.sink.Serve(c)
		c.Close()
	}
}
