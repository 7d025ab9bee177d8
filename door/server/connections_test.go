package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// crowd serves a fake on a socket with a bound on the number of connections.
func crowd(t *testing.T, most int) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := Listen(socket, Door{})
	if err != nil {
		t.Fatal(err)
	}
	s := New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{UID: uint32(os.Getuid())}, slog.New(slog.DiscardHandler))
	s.connections.most = most
	serveUntilEnd(t, s, func() error { return s.Serve(l) })
	return socket
}

// connect opens a connection of its own.
func connect(t *testing.T, socket string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// status requests the status on a connection and keeps the connection.
func status(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "GET /v1/status HTTP/1.1\r\nHost: bellows\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != 200 {
		t.Fatalf("status %s, %v", answer.Status, err)
	}
	_ = answer.Body.Close()
}

// However many idle connections a client keeps, the next connection is answered.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	socket := crowd(t, 3)
	first := connect(t, socket)
	status(t, first)
	for range 20 {
		status(t, connect(t, socket))
	}
	// A connection becomes idle only some time after its answer has arrived; on a busy machine that is after the
	// answers of all other connections.
	for end := time.Now().Add(time.Minute); ; {
		if err := first.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := first.Read(make([]byte, 1))
		if n == 0 && err == io.EOF {
			return
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
			t.Fatalf("the connection that was idle for longest is still there: %d, %v", n, err)
		}
		status(t, connect(t, socket))
	}
}

// While all connections are busy, the next one waits until one of them has ended.
func TestBusyConnectionsAreWaitedFor(t *testing.T) {
	socket := crowd(t, 2)
	var busy []net.Conn
	for range 2 {
		c := connect(t, socket)
		if _, err := io.WriteString(c, "GET /v1/jobs/1?ended=true HTTP/1.1\r\nHost: bellows\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		busy = append(busy, c)
	}
	next := connect(t, socket)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		status(t, next)
	}()
	_ = busy[0].Close()
	<-answered
}

// Connections leave at least one half of the descriptors to containers, even with a low limit.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 4, 16: 4, 64: 16, 256: 64, 1024: 256, 4096: 512, 1 << 40: 512,
		^uint64(0): 512} {
		got := connectionsFor(descriptors)
		if got != want {
			t.Errorf("%d connections with %d descriptors, want %d", got, descriptors, want)
		}
		if descriptors >= 16 && uint64(2*got) > descriptors/2 {
			t.Errorf("%d connections with %d descriptors leave less than one half", got, descriptors)
		}
	}
	if s := New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{},
		slog.New(slog.DiscardHandler)); s.connections.most != connectionsFor(descriptorLimit()) {
		t.Errorf("a server takes %d connections", s.connections.most)
	}
}

// pair returns the two ends of a connection.
func pair(t *testing.T) (here, there *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if here, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	there = c.(*net.UnixConn)
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

// A user has a share of all connections, and replaces only connections of its own above it; root and the daemon's
// user have no share.
func TestOneUserKeepsNobodyOut(t *testing.T) {
	s := newConnections(12, 2000)
	enter := func(uid uint32) (*connection, error) {
		t.Helper()
		here, _ := pair(t)
		return s.enter(here, party{uid: uid}, nil)
	}
	var first *connection
	for i := range 6 {
		c, err := enter(7)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = c
		}
	}
	others, err := enter(8)
	if err != nil {
		t.Fatal(err)
	}
	s.follow(others, http.StateIdle)
	if _, err := enter(7); err != errShare {
		t.Errorf("one connection more of one user: %v", err)
	}
	s.follow(first, http.StateIdle)
	if _, err := enter(7); err != nil {
		t.Errorf("in place of an idle connection: %v", err)
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the idle connection is open: %v", err)
	}
	for uid, n := range map[uint32]int{0: 2, 2000: 3} {
		for range n {
			if _, err := enter(uid); err != nil {
				t.Errorf("user %d: %v", uid, err)
			}
		}
	}
	if open, _ := s.count(); open != 12 || s.of[party{uid: 7}] != 6 || s.of[party{uid: 8}] != 1 {
		t.Errorf("%d connections are open, %v", open, s.of)
	}
	if _, err := enter(9); err != nil { // in place of that of user 8, which is idle
		t.Errorf("another user: %v", err)
	}
	if _, is := s.of[party{uid: 8}]; is {
		t.Errorf("users without connections are kept: %v", s.of)
	}
}

// Who is refused gets an answer to the request.
func TestRefusedConnection(t *testing.T) {
	s := newConnections(12, 0)
	here, there := pair(t)
	s.refuse(here, 7)
	if _, err := io.WriteString(there, "GET /v1/status HTTP/1.1\r\nHost: bellows\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(there), nil)
	if err != nil {
		t.Fatal(err)
	}
	var e api.Error
	const want = "connections: user 7 has 6 that are in use, as many as one user may have: try again when one of " +
		"them has ended"
	if err := json.NewDecoder(answer.Body).Decode(&e); err != nil || answer.StatusCode != 503 ||
		e.Kind != api.Unavailable || e.Message != want {
		t.Errorf("%s %+v %v", answer.Status, e, err)
	}
	// Of many at a time, some are just closed.
	for range 3 * mostRefusing {
		here, _ := pair(t)
		s.refuse(here, 7)
	}
	if n := len(s.refusing); n > mostRefusing {
		t.Errorf("%d are being refused", n)
	}
}
