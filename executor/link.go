package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"
)

// DefaultAway is for how long the daemon may be away before an executor or an application gives up.
const DefaultAway = time.Minute

// firstPause and longestPause are between two attempts to reach the daemon.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// link sends messages to a pool.
type link struct {
	http *http.Client
	base string
	away time.Duration // how long the daemon may be away
}

// socketLink is a link to a pool of the daemon that listens on a socket.
func socketLink(socket, pool string, away time.Duration) link {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return linkTo(&http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true}},
		"http://bellows/v1/pools/"+pool, away)
}

// linkTo is a link to a pool at a URL.
func linkTo(client *http.Client, base string, away time.Duration) link {
	return link{client, base, cmp.Or(away, DefaultAway)}
}

// close closes its connections once they are idle.
func (l link) close() { l.http.CloseIdleConnections() }

// patiently tries again what fails because the daemon is away. What the daemon answers, even an error, is final. The
// first failure may come late: of a message that waited for its answer, or after a time in which the machine stood
// still.
func (l link) patiently(ctx context.Context, try func() ([]byte, error)) ([]byte, error) {
	pause := firstPause
	for failed := (time.Time{}); ; {
		payload, err := try()
		if err == nil || ctx.Err() != nil || isFinal(err) || !failed.IsZero() && time.Since(failed) > l.away {
			return payload, err
		}
		if failed.IsZero() {
			failed = time.Now()
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// StatusError is the answer of a pool that refuses a message.
type StatusError struct {
	Status int    // of HTTP
	Text   string // one sentence
}

// Error implements error.
func (e *StatusError) Error() string { return e.Text }

// isStatus reports whether err is an answer with a status.
func isStatus(err error, status int) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Status == status
}

// isFinal reports whether err does not change by waiting: an answer, or that the socket is not open to this user. A
// socket has its permissions before it has its name.
func isFinal(err error) bool {
	if errors.Is(err, fs.ErrPermission) {
		return true
	}
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Status < http.StatusInternalServerError
}

// mostAnswer bounds an answer, in bytes.
const mostAnswer = 256 << 20

// post sends a message and reads the answer into out. A refusal is a *StatusError.
func (l link) post(ctx context.Context, path string, head, out any, payload ...[]byte) ([]byte, error) {
	return l.send(ctx, http.MethodPost, path, head, out, payload...)
}

// send sends a message by a method of HTTP.
func (l link) send(ctx context.Context, method, path string, head, out any, payload ...[]byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.base+path, nil)
	if err != nil {
		return nil, err
	}
	if err := setBody(r, head, payload); err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", MediaType)
	answer, err := l.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, refusalIn(answer)
	}
	return Read(answer.Body, mostAnswer, answer.ContentLength, out)
}

// setBody makes a message the body of a request. The payload is not copied.
func setBody(r *http.Request, head any, payload [][]byte) error {
	text, err := Encode(head)
	if err != nil {
		return err
	}
	parts := append([][]byte{text}, payload...)
	for _, p := range parts {
		r.ContentLength += int64(len(p))
	}
	r.GetBody = func() (io.ReadCloser, error) { // also for another attempt, on another connection
		readers := make([]io.Reader, len(parts))
		for i, p := range parts {
			readers[i] = bytes.NewReader(p)
		}
		return io.NopCloser(io.MultiReader(readers...)), nil
	}
	r.Body, err = r.GetBody()
	return err
}

// refusalIn reads why an answer is a refusal: the detail of a problem of RFC 9457, or a text.
func refusalIn(answer *http.Response) *StatusError {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	var problem struct {
		Detail string `json:"detail"`
	}
	if answer.Header.Get("Content-Type") == "application/problem+json" && json.Unmarshal(text, &problem) == nil {
		return &StatusError{answer.StatusCode, problem.Detail}
	}
	return &StatusError{answer.StatusCode, strings.TrimSpace(string(text))}
}
