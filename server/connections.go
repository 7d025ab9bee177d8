package server

import (
	"net"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// mostConnections is how many connections the server has at a time, where the limit on descriptors allows that.
const mostConnections = 512

// connectionsFor is how many connections the server may have with a limit on descriptors. Each takes two when it follows an
// output, so that one half of all is left for containers, whose supervisors take one each.
func connectionsFor(descriptors uint64) int {
	return int(max(4, min(mostConnections, descriptors/4)))
}

// descriptorLimit is how many descriptors this process may have open.
func descriptorLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}

// connections bounds how many there are at a time. A new one takes the place of the one that has been idle for longest; if
// none is idle it waits until one is, or has ended.
type connections struct {
	most int

	mu     sync.Mutex
	open   int
	idle   []*connection // the one for longest first
	change chan struct{} // closed, and made anew, when a connection ends or becomes idle
}

func newConnections(most int) *connections {
	return &connections{most: most, change: make(chan struct{})}
}

// connection is one of them.
type connection struct {
	*net.UnixConn
	among *connections
	once  sync.Once
}

// Close closes c and makes room for another.
func (c *connection) Close() error {
	c.once.Do(func() {
		c.among.mu.Lock()
		defer c.among.mu.Unlock()
		c.among.open--
		c.among.forget(c)
		c.among.tell()
	})
	return c.UnixConn.Close()
}

// forget takes c from the idle ones.
func (s *connections) forget(c *connection) {
	s.idle = slices.DeleteFunc(s.idle, func(other *connection) bool { return other == c })
}

// tell wakes whoever waits for room.
func (s *connections) tell() {
	close(s.change)
	s.change = make(chan struct{})
}

// follow is the http.Server's ConnState.
func (s *connections) follow(c net.Conn, state http.ConnState) {
	own, ok := c.(*connection)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(own)
	if state == http.StateIdle {
		s.idle = append(s.idle, own)
		s.tell()
	}
}

// enter counts a connection in once there is room; ok is false if closed ended before.
func (s *connections) enter(c *net.UnixConn, closed <-chan struct{}) (entered *connection, ok bool) {
	for {
		s.mu.Lock()
		if s.open < s.most {
			s.open++
			s.mu.Unlock()
			return &connection{UnixConn: c, among: s}, true
		}
		change := s.change
		var idle *connection
		if len(s.idle) > 0 {
			idle = s.idle[0]
		}
		s.mu.Unlock()
		if idle != nil {
			_ = idle.Close()
			continue
		}
		select {
		case <-change:
		case <-closed:
			return nil, false
		}
	}
}

// roomy is a listener whose connections are bounded.
type roomy struct {
	net.Listener
	connections *connections
	once        sync.Once
	closed      chan struct{}
}

// Accept implements net.Listener.
func (l *roomy) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return c, nil
	}
	if entered, ok := l.connections.enter(u, l.closed); ok {
		return entered, nil
	}
	_ = c.Close()
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *roomy) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
