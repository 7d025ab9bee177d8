package server

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/door/peercred"
	"github.com/bellows-rm/bellows/live/api"
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

// mostOfExecutors is the largest number of connections of executors at a time, if the limit on descriptors allows that.
const mostOfExecutors = 2048

// executorsFor returns how many connections the executors of pools may have in addition, with the given limit on
// descriptors. An executor has a container: they are of the half that is left for those.
func executorsFor(descriptors uint64) int { return int(min(mostOfExecutors, descriptors/8)) }

// MostExecutors returns how many executors may be connected to a server in this process, each by a connection. An
// ordinary user may have half of them.
func MostExecutors() int { return executorsFor(descriptorLimit()) }

// Descriptors returns how many descriptors this process may have open, how many connections a server in it may have
// at a time, and how many it would have without that limit.
func Descriptors() (limit uint64, connections, most int) {
	limit = descriptorLimit()
	return limit, connectionsFor(limit), mostConnections
}

// connections bounds the number of connections at a time. A new connection replaces the connection that has been idle
// longest. If none is idle, it waits until a connection becomes idle or ends. An ordinary user, and a place of the
// network, has at most a share of all connections, so that no one keeps out the others; above it, only a connection
// of the same one is replaced. Whoever opens a connection over the network need not have a token: if none is idle, a
// new connection replaces one over which no valid token came yet, of the place that has most of them, or of the same
// place above its share.
//
// An executor of a pool waits for tasks on its connection for most of its life. The policy of the machine decides how
// many executors there are, so their connections are not among those: see excuse.
type connections struct {
	daemon uint32 // the daemon's user, who has no share, as root

	mu       sync.Mutex
	most     int
	open     int
	of       map[party]int // open connections of each party
	idle     []*connection // the longest idle first
	unproven []*connection // those over the network over which no valid token came yet, the oldest first
	change   chan struct{} // closed, and replaced, when a connection ends or becomes idle

	mostExecutors int
	executors     int
	ofExecutors   map[party]int

	refusing   chan struct{} // has an element for each connection that is being refused
	turnedAway atomic.Int64  // connections that were refused
}

// mostRefusing is how many connections at a time get an answer that says why they are refused; others are just closed.
const mostRefusing = 16

func newConnections(most int, daemon uint32) *connections {
	return &connections{most: most, daemon: daemon, of: map[party]int{}, ofExecutors: map[party]int{},
		change: make(chan struct{}), refusing: make(chan struct{}, mostRefusing)}
}

// party is who has connections: a user of this machine, or a place of the network.
type party struct {
	uid   uint32
	place netip.Prefix // the zero Prefix for a user of this machine
}

// partyOf returns who has a connection that was accepted; ok is false for a connection within this process.
func partyOf(c net.Conn) (p party, ok bool, err error) {
	switch c := c.(type) {
	case *net.UnixConn:
		from, err := peercred.Credentials(c)
		if err != nil {
			return party{}, true, err
		}
		return party{uid: from.Uid}, true, nil
	case *net.TCPConn:
		at, err := netip.ParseAddrPort(c.RemoteAddr().String())
		return party{place: placeOf(at.Addr())}, true, err
	}
	return party{}, false, nil
}

// placeOf returns the addresses that count as one place of the network: one address of version 4, and a network of
// version 6, of which one customer usually has all addresses.
func placeOf(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // The zero Addr has the zero Prefix.
	return p
}

// share is how many connections an ordinary user, or a place of the network, may have. An attached run has four.
func (s *connections) share() int { return max(2, s.most/2) }

// yield lowers the bound by n.
func (s *connections) yield(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = max(2, s.most-n)
}

// count returns how many connections there are, and how many there may be.
func (s *connections) count() (open, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.most
}

// countExecutors returns how many connections executors have.
func (s *connections) countExecutors() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.executors
}

// connection is a counted connection.
type connection struct {
	net.Conn
	of    party
	among *connections
	once  sync.Once
	// executor says that it is one of those of executors; it is read and written under the lock of among.
	executor bool
	// For connections over the network: when it was accepted, and whether a handshake has begun, which among guards.
	since   time.Time
	greeted bool
}

// SyscallConn implements syscall.Conn, for the credentials of the other end.
func (c *connection) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

// CloseWrite lets package http send the end of an answer before it closes the connection.
func (c *connection) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

// Close closes c, so that another connection may be accepted.
func (c *connection) Close() error {
	c.once.Do(func() {
		c.among.mu.Lock()
		defer c.among.mu.Unlock()
		if c.executor {
			c.among.executors--
			less(c.among.ofExecutors, c.of)
		} else {
			c.among.open--
			less(c.among.of, c.of)
		}
		c.among.forget(c)
		c.among.unproven = without(c.among.unproven, c)
		c.among.tell()
	})
	return c.Conn.Close()
}

// less takes one from what a party has.
func less(of map[party]int, p party) {
	if of[p]--; of[p] == 0 {
		delete(of, p)
	}
}

// excuse takes c, over which an executor has shown that it is one, out of the connections that its user may have,
// until it is closed. Of those of executors an ordinary user has at most half, too; if there is no room among them, c
// stays where it is.
func (c *connection) excuse() {
	s := c.among
	s.mu.Lock()
	defer s.mu.Unlock()
	privileged := c.of.uid == 0 || c.of.uid == s.daemon
	if c.executor || c.of.place.IsValid() || s.executors >= s.mostExecutors || !privileged &&
		s.ofExecutors[c.of] >= s.mostExecutors/2 {
		return
	}
	c.executor = true
	s.executors++
	s.ofExecutors[c.of]++
	s.open--
	less(s.of, c.of)
	s.forget(c)
	s.tell()
}

// prove keeps c: a valid token came over it.
func (c *connection) prove() {
	c.among.mu.Lock()
	defer c.among.mu.Unlock()
	c.among.unproven = without(c.among.unproven, c)
}

// greet notes that the client has begun a handshake.
func (c *connection) greet() {
	c.among.mu.Lock()
	defer c.among.mu.Unlock()
	c.greeted = true
}

func without(some []*connection, c *connection) []*connection {
	return slices.DeleteFunc(some, func(other *connection) bool { return other == c })
}

// forget removes c from the idle connections.
func (s *connections) forget(c *connection) { s.idle = without(s.idle, c) }

// A connection whose place has its share is kept for so long without a handshake, and for so long until a token comes
// over it: if all need less, more clients come than can be served, and those that came first are not cut off for
// others.
const (
	helloWait     = 100 * time.Millisecond
	handshakeWait = 2 * time.Second
)

// stranger returns the connection without a token that makes room; nil if there is none. It is the oldest of the
// party that has most of them. If a party has its share, it is the oldest of this party that has not begun a
// handshake in time, else the oldest without a token in time.
func (s *connections) stranger(p party, full bool) (late *connection) {
	if !full {
		p = s.crowd()
	}
	for _, c := range s.unproven {
		age := time.Since(c.since)
		switch {
		case c.of != p:
		case !full, !c.greeted && age >= helloWait:
			return c
		case late == nil && age >= handshakeWait:
			late = c
		}
	}
	return late
}

// crowd returns the party that has most connections without a token.
func (s *connections) crowd() (p party) {
	of := map[party]int{}
	for _, c := range s.unproven {
		if of[c.of]++; of[c.of] > of[p] {
			p = c.of
		}
	}
	return p
}

// tell wakes the goroutines that wait for a free place.
func (s *connections) tell() {
	close(s.change)
	s.change = make(chan struct{})
}

// countedIn returns the counted connection in one that package http serves; nil if that is not counted.
func countedIn(c net.Conn) *connection {
	if encrypted, is := c.(*tls.Conn); is {
		c = encrypted.NetConn()
	}
	own, _ := c.(*connection)
	return own
}

// follow is the http.Server's ConnState.
func (s *connections) follow(c net.Conn, state http.ConnState) {
	own := countedIn(c)
	if own == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(own)
	if state == http.StateIdle && !own.executor {
		s.idle = append(s.idle, own)
		s.tell()
	}
}

// errShare is the answer to a connection of a party that has a whole share of busy connections.
var errShare = errors.New("this user has as many connections as one user may have")

// enter counts a connection of a party when there is room for it. The error is errShare, or net.ErrClosed if closed
// ended before.
func (s *connections) enter(c net.Conn, p party, closed <-chan struct{}) (*connection, error) {
	privileged := !p.place.IsValid() && (p.uid == 0 || p.uid == s.daemon)
	for {
		s.mu.Lock()
		full := !privileged && s.of[p] >= s.share()
		if !full && s.open < s.most {
			s.open++
			s.of[p]++
			entered := &connection{Conn: c, of: p, among: s, since: time.Now()}
			if p.place.IsValid() {
				s.unproven = append(s.unproven, entered)
			}
			s.mu.Unlock()
			return entered, nil
		}
		change := s.change
		var replaced *connection
		if at := slices.IndexFunc(s.idle, func(other *connection) bool { return !full || other.of == p }); at >= 0 {
			replaced = s.idle[at]
		} else {
			replaced = s.stranger(p, full)
		}
		s.mu.Unlock()
		switch {
		case replaced != nil:
			_ = replaced.Close()
			continue
		case full:
			return nil, errShare
		}
		select {
		case <-change:
		case <-closed:
			return nil, net.ErrClosed
		}
	}
}

// refuse answers the first request of a connection with an error, and closes the connection.
func (s *connections) refuse(c *net.UnixConn, uid uint32) {
	select {
	case s.refusing <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	go func() {
		defer func() { <-s.refusing }()
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		// An answer before the request would be an error of the protocol.
		if _, err := c.Read(make([]byte, 4<<10)); err != nil {
			return
		}
		s.mu.Lock()
		share := s.share()
		s.mu.Unlock()
		text, _ := json.Marshal(problemOf(api.Errorf(api.Unavailable,
			"connections: user %d has %d that are in use, as many as one user may have: try again when one of them has ended",
			uid, share)))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: "+problemType+
			"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
	}()
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
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, counts, err := partyOf(c)
		switch {
		case !counts:
			return c, nil
		case err != nil:
			_ = c.Close()
			continue
		}
		entered, err := l.connections.enter(c, from, l.closed)
		switch err {
		case nil:
			return entered, nil
		case errShare:
			l.connections.turnedAway.Add(1)
			if local, is := c.(*net.UnixConn); is {
				l.connections.refuse(local, from.uid)
				continue
			}
			_ = c.Close() // An answer would take a handshake.
		default:
			_ = c.Close()
			return nil, err
		}
	}
}

// Close implements net.Listener.
func (l *roomy) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
