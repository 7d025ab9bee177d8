package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/input"
)

// inputSocket is where the supervisor of a container takes the input of its program, in the container's folder.
const inputSocket = "input"

// A program whose input nobody sends any more gets the end of it: when there was an agent for inputPatience, through which somebody
// could have sent, and nobody did. Without an agent the input waits.
const (
	inputPatience = time.Minute
	inputLook     = 5 * time.Second
)

// Input connects to the input of a running container. See package input for what goes over the connection.
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

// socket returns a name for a socket in the folder that is good until done is called. It is short, whatever the name of the folder:
// the kernel takes no more than 107 characters.
func (f folder) socket(name string) (address string, done func(), err error) {
	dir, err := os.Open(string(f))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name), func() { dir.Close() }, nil
}

// mouth is what the supervisor of a program with input keeps: where input comes in, and the pipe that it goes into.
type mouth struct {
	listener *net.UnixListener
	sink     *input.Sink
	pipe     *os.File // which the program reads
	closed   context.Context
	close    context.CancelFunc
}

// openMouth makes the pipe of a program and begins to listen for its input.
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
	l.SetUnlinkOnClose(false) // The name is good no more; the socket goes with the folder.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	m := &mouth{listener: l, sink: input.NewSink(write), pipe: read}
	m.closed, m.close = context.WithCancel(context.Background())
	context.AfterFunc(m.closed, func() { l.Close(); write.Close() })
	return m, nil
}

// end is what the program reads; nil of no mouth.
func (m *mouth) end() *os.File {
	if m == nil {
		return nil
	}
	return m.pipe
}

// feed passes input on to the program until it is over or the mouth is closed. Lease is the file that tells whether there is an
// agent.
func (m *mouth) feed(lease string) {
	absent := time.Duration(0) // for how long nobody was connected though somebody could have been
	for !m.sink.Over() {
		_ = m.listener.SetDeadline(time.Now().Add(inputLook)) // It fails if the listener is closed, and so does what follows.
		c, err := m.listener.Accept()
		switch {
		case err == nil:
			absent = 0
			stop := context.AfterFunc(m.closed, func() { c.Close() })
			_ = m.sink.Serve(c) // Who sends comes again.
			stop()
			c.Close()
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return
		case leased(lease):
			if absent += inputLook; absent >= inputPatience {
				m.sink.End()
			}
		default:
			absent = 0
		}
	}
	// Whoever comes late is told that it is over.
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
