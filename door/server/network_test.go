package server

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/internal/testcert"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/node/input"
)

// listening is a server that listens on the loopback address, with TLS, until the test ends.
type listening struct {
	*Server
	address     string
	stored      *fakeStore
	certificate string // file with it, which is its own authority
}

func listen(t *testing.T, d Driver) *listening {
	t.Helper()
	certificate, key, err := testcert.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := LoadCertificate(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stored := newFakeStore()
	s := &listening{New(d, &fakePools{}, stored, api.Daemon{UID: daemonUser}, slog.New(slog.DiscardHandler)),
		l.Addr().String(), stored, certificate}
	s.tokens.account = usual().of
	serveUntilEnd(t, s.Server, s.OnNetwork(l, pair))
	return s
}

// remote writes a file with a token of ada, and says how a client reaches s with it.
func (s *listening) remote(t *testing.T, scope string) (r client.Remote, id int64) {
	t.Helper()
	text := s.stored.issue(store.Token{UID: 1000, User: "ada", Scope: scope})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, _, _ = api.ParseToken(text)
	return client.Remote{URL: "https://" + s.address, TokenFile: file, AuthorityFile: s.certificate}, id
}

func (s *listening) client(t *testing.T, r client.Remote) *client.Client {
	t.Helper()
	c, err := client.NewRemote(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A job that is submitted with a token is that of the token's user, with the user's groups.
func TestSubmitOverTheNetwork(t *testing.T) {
	d := newFake()
	s := listen(t, d)
	r, _ := s.remote(t, "submit")
	c := s.client(t, r)
	if !c.Remote() {
		t.Error("the client does not say that its daemon is on the network")
	}
	if _, err := c.Submit(t.Context(), api.Submission{Name: "a", Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	if got, want := d.submitted[0].Caller, usual()[1000]; !reflect.DeepEqual(got, want) {
		t.Errorf("submitted as %+v, want %+v", got, want)
	}
	status, err := c.Status(t.Context())
	if err != nil || status.Listens == nil || status.Listens.Address != s.address || status.Listens.Certificate.IsZero() {
		t.Errorf("the status has %+v, %v", status.Listens, err)
	}
	if err := c.Shutdown(t.Context(), true); api.KindOf(err) != api.Denied || d.shutdown != nil {
		t.Errorf("shut down: %v", err)
	}
	if _, err := c.CreateToken(t.Context(), api.NewToken{Scope: api.ReadScope, Lifetime: api.MostLifetime}); api.KindOf(
		err) != api.Denied || len(s.stored.tokens) != 1 {
		t.Errorf("a token made a token: %v", err)
	}
}

// The input of a program, for which a connection is taken over, can come over the network.
func TestInputOverTheNetwork(t *testing.T) {
	d := newFake()
	d.jobs[1] = api.Job{ID: 1, UID: 1000, Owner: "ada"}
	here, there := net.Pipe()
	defer here.Close()
	d.input = there
	s := listen(t, d)
	r, id := s.remote(t, "submit")
	sink, err := s.client(t, r).Input(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if err := input.WriteFrame(sink, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Read(make([]byte, 1)); err != nil {
		t.Errorf("nothing arrives: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, here) }()
	if err := s.tokens.revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if n, err := sink.Read(make([]byte, 1)); err == nil {
		t.Errorf("after the token was revoked, %d bytes came", n)
	}
}

// Without TLS nothing is answered but one sentence, and TLS before version 1.3 is refused.
func TestOnlyTLS(t *testing.T) {
	s := listen(t, newFake())
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c,
		"GET /v1/status HTTP/1.1\r\nHost: bellows\r\nAuthorization: Bearer x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if want := "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"; string(text) != want {
		t.Errorf("answered %q, %v", text, err)
	}
	if c, err := tls.Dial("tcp", s.address,
		&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		c.Close()
		t.Error("TLS 1.2 is answered")
	}
}

// A client sends its token only over TLS to a server with a certificate that it trusts.
func TestTokenStaysWithTheClient(t *testing.T) {
	s := listen(t, newFake())
	good, _ := s.remote(t, "read")
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	heard := make(chan string, 1)
	go func() {
		c, err := plain.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		text := make([]byte, 4096)
		n, _ := c.Read(text)
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		heard <- string(text[:n])
	}()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for _, tt := range []struct {
		url, authorities string
		kind             api.Kind
		want             string
	}{
		{good.URL, "", api.Denied,
			good.URL + ": its certificate is not trusted, and no token was sent: name the authority that signed it with " +
				"--ca-file"},
		{"https://" + plain.Addr().String(), s.certificate, api.Denied,
			"answers without TLS of version 1.3, and no token was sent"},
		{"https://" + gone.Addr().String(), s.certificate, api.Unavailable,
			"cannot be reached: connect: connection refused"},
	} {
		_, err := s.client(t, client.Remote{URL: tt.url, TokenFile: good.TokenFile,
			AuthorityFile: tt.authorities}).Status(t.Context())
		if api.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v: %v, want %s", tt.url, api.KindOf(err), err, tt.want)
		}
	}
	if text := <-heard; strings.Contains(text, "bellows_") {
		t.Errorf("the token was sent: %q", text)
	}
}

// A file with a token is refused if other users can read it, and so is whatever is no token, no address and no
// authority.
func TestRemoteIsChecked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := api.TokenText(1, api.NewSecret())
	good := write("good", token, 0o600)
	for _, tt := range []struct {
		r    client.Remote
		want string
	}{
		{client.Remote{URL: "http://host:1", TokenFile: good, AuthorityFile: ""},
			`server "http://host:1": must be https://HOST:PORT: a token is sent over TLS alone`},
		{client.Remote{URL: "host:1", TokenFile: good, AuthorityFile: ""}, "must be https://HOST:PORT"},
		{client.Remote{URL: "https://", TokenFile: good, AuthorityFile: ""}, "must be https://HOST:PORT"},
		{client.Remote{URL: "https://user:word@host:1", TokenFile: good, AuthorityFile: ""}, "must be https://HOST:PORT"},
		{client.Remote{URL: "https://host:1/path", TokenFile: good, AuthorityFile: ""}, "must be https://HOST:PORT"},
		{client.Remote{URL: "https://host:1?a=b", TokenFile: good, AuthorityFile: ""}, "must be https://HOST:PORT"},
		{client.Remote{URL: "https://host:1", TokenFile: "", AuthorityFile: ""},
			"needs a token: name its file with --token-file or $BELLOWS_TOKEN_FILE"},
		{client.Remote{URL: "https://host:1", TokenFile: filepath.Join(dir, "none"), AuthorityFile: ""}, "no such file"},
		{client.Remote{URL: "https://host:1", TokenFile: dir, AuthorityFile: ""}, "must be a regular file"},
		{client.Remote{URL: "https://host:1", TokenFile: write("group", token, 0o640), AuthorityFile: ""},
			"has mode 0640, with which other users can get at it: run `chmod 600 "},
		{client.Remote{URL: "https://host:1", TokenFile: write("others", token, 0o604), AuthorityFile: ""}, "has mode 0604"},
		{client.Remote{URL: "https://host:1", TokenFile: write("two", token+"\n"+token, 0o600), AuthorityFile: ""},
			"must have the text of one token"},
		{client.Remote{URL: "https://host:1", TokenFile: write("long", token+strings.Repeat(" ", 1000)+"x", 0o600),
			AuthorityFile: ""},
			"must have the text of one token"},
		{client.Remote{URL: "https://host:1", TokenFile: good, AuthorityFile: filepath.Join(dir, "none")}, "ca file: open "},
		{client.Remote{URL: "https://host:1", TokenFile: good, AuthorityFile: good}, "must have certificates in PEM"},
		{client.Remote{URL: "https://host:1/", TokenFile: write("line", token+"\n", 0o400), AuthorityFile: ""}, ""},
	} {
		_, err := client.NewRemote(tt.r)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", tt.r, err)
			}
		} else if api.KindOf(err) != api.Invalid || !strings.Contains(err.Error(), tt.want) ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%+v: %v, want %s", tt.r, err, tt.want)
		}
	}
}

// New connections get the certificate that was set last.
func TestCertificateIsReplaced(t *testing.T) {
	s := listen(t, newFake())
	serial := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	certificate, key, err := testcert.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	next, err := LoadCertificate(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	s.Certify(next)
	if after := serial(); after == before || after != next.Leaf.SerialNumber.String() {
		t.Errorf("serial number %s, and %s before", after, before)
	}
}

func TestLoadCertificate(t *testing.T) {
	certificate, key, err := testcert.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, otherKey, err := testcert.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(otherKey, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ certificate, key, want string }{
		{certificate, key, ""},
		{other, key, "private key does not match public key"},
		{key, key, "tls_cert " + key + " and tls_key " + key + ": tls: failed to find"},
		{certificate, certificate + "x", "tls_key: stat "},
		{certificate + "x", key, "no such file"},
		{other, otherKey, "has mode 0644, with which all users can get at it: run `chmod o= " + otherKey + "`"},
	} {
		_, err := LoadCertificate(tt.certificate, tt.key)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s and %s: %v, want %s", tt.certificate, tt.key, err, tt.want)
		}
	}
}

// However many connections come over the network, the socket keeps its own, and no place of the network has all.
func TestNetworkTakesNoConnections(t *testing.T) {
	s := New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{}, slog.New(slog.DiscardHandler))
	_, all := s.connections.count()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.OnNetwork(l, nil)
	_, local := s.connections.count()
	_, remote := s.network.connections.count()
	if local+remote > all || local < all/2 || remote < 1 {
		t.Errorf("of %d connections %d are for the socket, and %d for the network", all, local, remote)
	}
	c := newConnections(4, 0)
	enter := func(address string) error {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close(); there.Close() })
		entered, err := c.enter(here, party{place: placeOf(netip.MustParseAddr(address))}, nil)
		if err == nil {
			entered.prove()
		}
		return err
	}
	for _, tt := range []struct {
		address string
		want    error
	}{{"192.0.2.1", nil}, {"::ffff:192.0.2.1", nil}, {"192.0.2.1", errShare}, {"2001:db8::1", nil}, {"2001:db8::2", nil},
		{"2001:db8::3", errShare}, {"2001:db8::ffff:0:0:1", errShare}} {
		if err := enter(tt.address); err != tt.want {
			t.Errorf("%s: %v, want %v", tt.address, err, tt.want)
		}
	}
	if a, b := placeOf(netip.MustParseAddr("2001:db8:0:1::1")), placeOf(netip.MustParseAddr("2001:db8:0:2::1")); a == b {
		t.Errorf("two networks are one place: %v", a)
	}
}

// BenchmarkRequestByToken is what a request over the network costs beside TLS: its token is read from the store, and
// its user from the system.
func BenchmarkRequestByToken(b *testing.B) {
	kept, err := store.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer kept.Close()
	root, err := account(0)
	if err != nil {
		b.Skip(err)
	}
	secret, now := api.NewSecret(), time.Now()
	id, err := kept.AddToken(b.Context(), store.Token{User: root.User, Scope: "read", Hash: hashOf(secret),
		Expires: timeline.Time(now.Add(time.Hour).UnixNano()), Used: timeline.Time(now.UnixNano())})
	if err != nil {
		b.Fatal(err)
	}
	s := New(newFake(), &fakePools{}, kept, api.Daemon{}, slog.New(slog.DiscardHandler))
	for b.Loop() {
		if answer := present(s, operation{method: "GET", path: "/v1/health"}, api.TokenText(id, secret)); answer.Code != 200 {
			b.Fatal(answer.Body)
		}
	}
}

// Whoever opens connections and sends no token, be it half a handshake or half a header, keeps out nobody who has
// one, from however many places.
func TestHalfOpenConnectionsMakeRoom(t *testing.T) {
	t.Run("from four places", func(t *testing.T) {
		halfOpenConnectionsMakeRoom(t, []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}, 4, 3)
	})
	t.Run("from the place of the client", func(t *testing.T) {
		halfOpenConnectionsMakeRoom(t, []string{"127.0.0.1", "127.0.0.1"}, 8, 2)
	})
}

// halfOpenConnectionsMakeRoom opens a number of connections from each place, those of one place of one of so many
// kinds.
func halfOpenConnectionsMakeRoom(t *testing.T, places []string, each, kinds int) {
	s := listen(t, newFake())
	c := s.network.connections
	c.mu.Lock()
	c.most = 8
	c.mu.Unlock()
	dial := func(from string) net.Conn {
		t.Helper()
		local := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		half, err := local.DialContext(t.Context(), "tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { half.Close() })
		return half
	}
	for i, from := range places {
		for range each {
			half := dial(from)
			switch i % kinds {
			case 1: // a part of a hello
				if _, err := half.Write([]byte{22, 3, 1, 1, 0, 1}); err != nil {
					t.Fatal(err)
				}
			case 2: // a part of a header; the handshake may be cut off by the next connections
				go func() {
					if c := tls.Client(half, &tls.Config{InsecureSkipVerify: true}); c.Handshake() == nil {
						_, _ = io.WriteString(c, "GET /v1/status HTTP/1.1\r\nHost: b")
					}
				}()
			}
		}
	}
	r, _ := s.remote(t, "read")
	client, begun := s.client(t, r), time.Now()
	_, err := client.Status(t.Context())
	// The server gives a place 0.1 s for its handshakes, and closes half ones itself after 10 s.
	for err != nil && time.Since(begun) < 3*time.Second {
		_, err = client.Status(t.Context())
	}
	if err != nil {
		t.Errorf("with a token, behind 16 connections without one: %v", err)
	}
	if open, most := c.count(); open > most {
		t.Errorf("%d connections, and at most %d", open, most)
	}
}

// A connection without a token makes room: the oldest of the place with most of them. One over which a token came
// does not.
func TestStrangersMakeRoom(t *testing.T) {
	c := newConnections(4, 0)
	closed := make(chan struct{})
	close(closed)
	enter := func(address string) *connection {
		t.Helper()
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close(); there.Close() })
		entered, err := c.enter(here, party{place: placeOf(netip.MustParseAddr(address))}, closed)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		return entered
	}
	gone := func(entered *connection) bool { return entered.SetDeadline(time.Time{}) != nil }
	a, first, second, other := enter("192.0.2.1"), enter("192.0.2.2"), enter("192.0.2.2"), enter("192.0.2.3")
	third := enter("192.0.2.4")
	if !gone(first) || gone(a) || gone(second) || gone(other) {
		t.Error("what made room is not the oldest connection of the place that has most")
	}
	a.prove()
	next := enter("192.0.2.5")
	if gone(a) || !gone(second) {
		t.Error("what made room is not the oldest connection without a token")
	}
	for _, proven := range []*connection{other, third, next} {
		proven.prove()
	}
	here, _ := net.Pipe()
	defer here.Close()
	if _, err := c.enter(here, party{place: placeOf(netip.MustParseAddr("192.0.2.6"))}, closed); err != net.ErrClosed {
		t.Errorf("when a token came over all: %v", err)
	}
}

// At the share of a place a connection without a token makes room, too: first the oldest that has not begun a
// handshake, then the oldest that had time enough for it. Clients that come faster than handshakes go on do not cut
// off each other.
func TestStrangersMakeRoomForTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(8, 0)
		closed := make(chan struct{})
		close(closed)
		var opened []net.Conn
		defer func() {
			for _, end := range opened {
				end.Close()
			}
		}()
		enter := func() (*connection, error) {
			here, there := net.Pipe()
			opened = append(opened, here, there)
			return c.enter(here, party{place: placeOf(netip.MustParseAddr("192.0.2.1"))}, closed)
		}
		gone := func(entered *connection) bool { return entered.SetDeadline(time.Time{}) != nil }
		var all []*connection
		more := func() {
			t.Helper()
			one, err := enter()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		isGone := func(i int) {
			t.Helper()
			for j, one := range all {
				if gone(one) != (j == i) {
					t.Errorf("connection %d is gone: %v, want that %d is", j, gone(one), i)
				}
			}
			all = slices.Delete(all, i, i+1)
		}
		for range 4 { // half of all
			more()
		}
		all[0].prove()
		all[1].greet()
		if _, err := enter(); err != errShare {
			t.Errorf("when all have just come: %v", err)
		}
		time.Sleep(helloWait)
		more()
		isGone(2)
		for _, one := range all[2:] {
			one.greet()
		}
		if _, err := enter(); err != errShare {
			t.Errorf("when all have begun a handshake: %v", err)
		}
		time.Sleep(handshakeWait)
		more()
		isGone(1)
		for _, one := range all {
			one.prove()
		}
		time.Sleep(handshakeWait)
		if _, err := enter(); err != errShare {
			t.Errorf("when a token came over all: %v", err)
		}
	})
}

// Handshakes are spread over time, those of one place more than those of many.
func TestHandshakesAreSpread(t *testing.T) {
	var h handshakes
	now := time.Now()
	took := func(n int, place func(i int) netip.Prefix) (last time.Duration) {
		for i := range n {
			last = max(0, h.take(now, place(i)).Sub(now))
		}
		return last
	}
	one := func(int) netip.Prefix { return placeOf(netip.MustParseAddr("192.0.2.1")) }
	many := func(i int) netip.Prefix {
		return placeOf(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if at := took(100, one); at != 0 {
		t.Errorf("the last of 100 handshakes after a pause waits %v", at)
	}
	if at := took(100, one); at != 2*time.Second {
		t.Errorf("the last of 100 further ones waits %v, want 2s", at)
	}
	if at := took(1, many); at != 0 {
		t.Errorf("one of another place waits %v", at)
	}
	now = now.Add(time.Hour)
	if at := took(400+200, many); at != time.Second {
		t.Errorf("the last of 600 handshakes of as many places waits %v, want 1s", at)
	}
	now = now.Add(time.Hour)
	took(200, one)
	for range 100 { // connections that end while they wait leave no wait behind
		h.giveBack(one(0))
	}
	if at := took(1, one); at != handshakePlacePace {
		t.Errorf("the next one after 100 that are left waits %v", at)
	}
	took(100_000, many)
	now = now.Add(time.Hour)
	took(1, one)
	if n := len(h.places); n != 1 {
		t.Errorf("%d places are known, and all but 1 may go on at once", n)
	}
}
