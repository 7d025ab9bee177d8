package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// Call sends in as JSON and decodes the answer into out. It is for operations that have no method.
func Call[Out any](ctx context.Context, c *Client, method, path string, q url.Values, in any) (out Out, err error) {
	request, err := newRequest(ctx, method, path, q, in)
	if err != nil {
		return out, err
	}
	return answerTo[Out](c, request)
}

// answerTo sends a request and decodes the answer.
func answerTo[Out any](c *Client, request *http.Request) (out Out, err error) {
	r, err := c.do(request)
	if err != nil {
		return out, err
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusNoContent || r.ContentLength == 0 {
		return out, nil
	}
	if err := json.NewDecoder(r.Body).Decode(&out); err != nil && err != io.EOF {
		return out, c.failed(err, "read the daemon's answer")
	}
	return out, nil
}

func newRequest(ctx context.Context, method, path string, q url.Values, in any) (*http.Request, error) {
	var content io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("send to the daemon: %w", err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://bellows"+path+"?"+q.Encode(), content)
	if err != nil {
		return nil, fmt.Errorf("send to the daemon: %w", err)
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

func pauseAddress(id cluster.JobID, task cluster.TaskID) string {
	if task != (cluster.TaskID{}) {
		return "/v1/tasks/" + task.String() + "/pause"
	}
	return jobAddress(id) + "/pause"
}

func poolAddress(name string) string { return "/v1/pools/" + url.PathEscape(name) }

func jobAddress(id cluster.JobID) string { return fmt.Sprintf("/v1/jobs/%d", id) }

func query(name string, on bool) url.Values {
	return url.Values{name: {strconv.FormatBool(on)}}
}

func putFilter(f *api.JobFilter, q url.Values) {
	for name, text := range map[string]string{"status": f.Status, "user": f.User, "name": f.Name} {
		if text != "" {
			q.Set(name, text)
		}
	}
}

// outage is the error of a request without an answer: no daemon listens, or the connection broke.
type outage struct {
	said   *api.Error
	broken bool // the connection broke: the daemon may have received the request
}

func (o *outage) Error() string { return o.said.Message }

// Unwrap returns the error with its kind.
func (o *outage) Unwrap() error { return o.said }

// closedIdle is the text of an unexported error of net/http: the connection was closed before the request was sent.
const closedIdle = "http: server closed idle connection"

// marked remembers whether reading failed, in contrast to writing.
type marked struct {
	r   io.Reader
	err error
}

func (m *marked) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != io.EOF {
		m.err = err
	}
	return n, err
}
