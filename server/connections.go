package server

import (
	"net"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// mostConnections is the largest number of connections at a time, if the limit on descriptors allows that.
const mostConnections = 512

// connectionsFor returns how many connections the server may have with the given limit on descriptors. A connection
// that follows an output takes two descriptors. One half of all descriptors is left for containers, whose supervisors
// take one each.
func connectionsFor(descriptors uint64) int {
	return int(max(4, min(mostConnections, descriptors/4)))
}

// descriptorLimit returns how many descriptors this process may have open.
func descriptorLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}

// Descriptors returns how many descriptors this process may have open, how many connections a server in it may have at a time,
// and how many it would have without that limit.
func Descriptors() (limit uint64, connections, most int) {
	limit = descriptorLimit()
	return limit, connectionsFor(limit), mostConnections
}

// connections bounds the number of connections at a time. A new connection replaces the connection that has been idle
// longest. If none is idle, it waits until a connection becomes idle or ends.
type connections struct {
	most int

	mu     sync.Mutex
	open   int
	idle   []*connection // the longest idle first
	change chan struct{} // closed, and replaced, when a connection ends or becomes idle
}

func newConnections(most int) *connections {
	return &connections{most: most, change: make(chan struct{})}
}

// count returns how many connections there are, and how many there may be.
func (s *connections) count() (open, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.most
}

// connection is a counted connection.
type connection struct {
	*net.UnixConn
	among *connections
	once  sync.Once
}

// Close closes c, so that another connection may be accepted.
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

// forget removes c from the idle connections.
func (s *connections) forget(c *connection) {
	s.idle = slices.DeleteFunc(s.idle, func(other *connection) bool { return other == c })
}

// tell wakes the goroutines that wait for a free place.
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

// enter counts a connection when there is a free place for it; ok is false if closed ended before.
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

// roomy is a listener with a bound on the number of its connections.
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
