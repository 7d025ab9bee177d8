package client

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/live/api"
)

// Remote says how a client reaches a daemon over the network.
type Remote struct {
	URL           string // https://HOST:PORT
	TokenFile     string // has the text of a token in one line; only its owner may be able to read it
	AuthorityFile string // certificates of those who may have signed the daemon's, PEM; empty: those of the system
}

// NewRemote returns a client for the daemon at an address of the network. It reads the files, and does not
// connect yet. A token is sent over TLS alone, and only to whoever has a certificate for the host of the URL. The
// error is Invalid.
func NewRemote(r Remote) (*Client, error) {
	at, err := url.Parse(r.URL)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.User != nil || strings.Trim(at.Path, "/") != "" ||
		at.RawQuery != "" || at.Fragment != "" {
		return nil, api.Errorf(api.Invalid, "server %q: must be https://HOST:PORT: a token is sent over TLS alone", r.URL)
	}
	if r.TokenFile == "" {
		return nil, api.Errorf(api.Invalid,
			"server %s: needs a token: name its file with --token-file or $BELLOWS_TOKEN_FILE", r.URL)
	}
	token, err := readToken(r.TokenFile)
	if err != nil {
		return nil, err
	}
	authorities, err := readAuthorities(r.AuthorityFile)
	if err != nil {
		return nil, err
	}
	return overTLS(at.Host, token, authorities), nil
}

// overTLS returns a client that sends all requests to a host, with a token. authorities is nil for those of the system.
func overTLS(host, token string, authorities *x509.CertPool) *Client {
	const patience = 10 * time.Second
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: patience}).DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: authorities},
		TLSHandshakeTimeout: patience,
		DisableCompression:  true,
	}
	return &Client{"https://" + host, &http.Client{Transport: &withToken{transport, host, token},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, submitTime}
}

// withToken sends requests to a host over TLS, each with a token.
type withToken struct {
	next        http.RoundTripper
	host, token string
}

// RoundTrip implements http.RoundTripper.
func (t *withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Clone(r.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = "https", t.host, t.host
	sent.Header.Set("Authorization", "Bearer "+t.token)
	return t.next.RoundTrip(sent)
}

// readToken reads the text of a token from a file that no other user can read.
func readToken(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", api.Errorf(api.Invalid, "token file: %w", err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", api.Errorf(api.Invalid, "token file %s: %w", path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", api.Errorf(api.Invalid, "token file %s: must be a regular file", path)
	case st.Uid != 0 && st.Uid != uint32(os.Geteuid()):
		return "", api.Errorf(api.Invalid, "token file %s: belongs to user %d: must belong to you or root", path, st.Uid)
	case st.Mode&0o077 != 0:
		return "", api.Errorf(api.Invalid,
			"token file %s: has mode %04o, with which other users can get at it: run `chmod 600 %s`", path, st.Mode&0o7777, path)
	}
	const longest = 200
	text, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err != nil {
		return "", api.Errorf(api.Invalid, "token file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if _, _, ok := api.ParseToken(token); !ok || len(text) > longest {
		return "", api.Errorf(api.Invalid,
			"token file %s: must have the text of one token, as `bellows token create` prints it", path)
	}
	return token, nil
}

// readAuthorities reads certificates of authorities; nil without a file.
func readAuthorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, api.Errorf(api.Invalid, "ca file: %w", err)
	}
	all := x509.NewCertPool()
	if !all.AppendCertsFromPEM(text) {
		return nil, api.Errorf(api.Invalid, "ca file %s: must have certificates in PEM", path)
	}
	return all, nil
}
