package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// network is the part of a server that answers over the network: with TLS alone, and only requests with a token.
type network struct {
	http        *http.Server
	connections *connections
	handshakes  handshakes
	address     string                          // where the server listens; empty if it does not
	certificate atomic.Pointer[tls.Certificate] // of new connections
}

// init makes the part of s. handler answers requests whose sender is known.
func (n *network) init(s *Server, handler http.Handler) {
	n.connections = newConnections(s.connections.most/networkShare, s.connections.daemon)
	n.http = &http.Server{
		Handler:           s.survive(s.tokens.authenticated(handler, s.metrics.refused.Inc)),
		ConnContext:       withConnection,
		ConnState:         n.connections.follow,
		ReadHeaderTimeout: 10 * time.Second, // and for the handshake before it
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// networkShare: once a server listens on the network, one in networkShare of its connections is for the network, and
// the socket has the others. Neither takes connections from the other.
const networkShare = 4

type connectionKey struct{}

// withConnection is the ConnContext of the network.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, countedIn(c))
}

// handshakes spreads the work of TLS handshakes, which anybody can cause, over time: those of one place, and all.
// After a pause some may follow each other at once.
type handshakes struct {
	mu     sync.Mutex
	all    time.Time // when the next one may go on, less the time of a burst
	places map[netip.Prefix]time.Time
	swept  time.Time // when places were last removed
}

const (
	handshakePace      = 5 * time.Millisecond // between two handshakes; one takes some 0.6 ms of a processor
	handshakePlacePace = 20 * time.Millisecond
	handshakeBurst     = 2 * time.Second // the pause after which no further ones may follow at once
)

// take returns when the next handshake of a place may go on.
func (h *handshakes) take(now time.Time, place netip.Prefix) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Places that may go on at once are as those that never came.
	if len(h.places) > mostConnections && now.Sub(h.swept) >= handshakeBurst {
		h.swept = now
		maps.DeleteFunc(h.places, func(_ netip.Prefix, next time.Time) bool { return next.Before(now.Add(-handshakeBurst)) })
	}
	if h.places == nil {
		h.places = map[netip.Prefix]time.Time{}
	}
	earliest := now.Add(-handshakeBurst)
	later := func(t time.Time) time.Time {
		if t.Before(earliest) {
			return earliest
		}
		return t
	}
	own := later(h.places[place]).Add(handshakePlacePace)
	h.places[place], h.all = own, later(h.all).Add(handshakePace)
	if own.After(h.all) {
		return own
	}
	return h.all
}

// giveBack takes back a take for a handshake that will not go on: those that come later wait for it no longer.
func (h *handshakes) giveBack(place netip.Prefix) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = h.all.Add(-handshakePace)
	if own, ok := h.places[place]; ok {
		h.places[place] = own.Add(-handshakePlacePace)
	}
}

// wait returns when a handshake may go on, or with an error when its connection has ended.
func (h *handshakes) wait(hello *tls.ClientHelloInfo) error {
	own := countedIn(hello.Conn)
	if own == nil {
		return nil
	}
	own.greet()
	select {
	case <-time.After(time.Until(h.take(time.Now(), own.of.place))):
		return nil
	case <-hello.Context().Done():
		h.giveBack(own.of.place)
		return hello.Context().Err()
	}
}

// OnNetwork makes s ready to answer requests on l, over TLS with a certificate. It is called before Serve. serve
// answers the requests until Shutdown is called or l fails.
func (s *Server) OnNetwork(l net.Listener, c *tls.Certificate) (serve func() error) {
	n := &s.network
	s.connections.yield(n.connections.most)
	n.address = l.Addr().String()
	n.certificate.Store(c)
	settings := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, // input needs a connection of its own
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, n.handshakes.wait(hello) // nil: these settings
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return n.certificate.Load(), nil },
	}
	bounded := &roomy{Listener: l, connections: n.connections, closed: make(chan struct{})}
	return func() error {
		if err := n.http.Serve(tls.NewListener(bounded, settings)); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("answer on %s: %w", n.address, err)
		}
		return nil
	}
}

// Certify sets the certificate of new connections over the network. Connections that are open keep theirs.
func (s *Server) Certify(c *tls.Certificate) { s.network.certificate.Store(c) }

// listens says where the server listens on the network; nil if it does not.
func (s *Server) listens() *api.Listens {
	if s.network.address == "" {
		return nil
	}
	return &api.Listens{Address: s.network.address, Certificate: s.network.certificate.Load().Leaf.NotAfter}
}

// LoadCertificate reads a certificate with those of its authorities, and its key, both PEM. It refuses a key that all
// users of the machine can read.
func LoadCertificate(certificate, key string) (*tls.Certificate, error) {
	info, err := os.Stat(key)
	if err != nil {
		return nil, fmt.Errorf("tls_key: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("tls_key %s: has mode %04o, with which all users can get at it: run `chmod o= %s`", key,
			info.Mode().Perm(), key)
	}
	c, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("tls_cert %s and tls_key %s: %w", certificate, key, err)
	}
	return &c, nil
}
