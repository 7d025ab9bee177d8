package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/door/peercred"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/input"
)

// Client talks to the daemon behind a socket, or at an address of the network. Its errors are an Error if the daemon
// returned one or cannot be reached.
type Client struct {
	socket string // its path, or the URL of a daemon on the network
	http   *http.Client
	// Patience is for the answer to a submission: longer than a large body waits for its turn.
	Patience time.Duration
}

// Present returns the cluster as it is, and a job as it would be submitted: see live.Driver.Present. Of jobs of other
// users it has the sizes alone.
func (c *Client) Present(ctx context.Context, s api.Submission) (*eventlog.Present, error) {
	r, err := c.send(ctx, "POST", "/v1/plan", nil, s)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	return eventlog.ReadPresent(r.Body, "the daemon's answer")
}

// Messages returns what sends the messages of package executor to one of the caller's pools: a client of HTTP, and
// the URL of the pool.
func (c *Client) Messages(pool string) (*http.Client, string) {
	return c.http, "http://bellows" + poolAddress(pool)
}

// Status returns the status of the daemon.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	return Call[api.Status](ctx, c, "GET", "/v1/status", nil, nil)
}

// Shutdown stops the daemon; kill says whether it kills jobs that have not ended.
func (c *Client) Shutdown(ctx context.Context, kill bool) error {
	_, err := Call[struct{}](ctx, c, "POST", "/v1/shutdown", query("kill", kill), nil)
	return err
}

// Prune removes jobs that ended longer ago than the given time, except the keep jobs that ended last. With dry, it only
// returns which jobs it would remove.
func (c *Client) Prune(ctx context.Context, olderThan time.Duration, keep int, dry bool) (api.Pruned, error) {
	q := query("dry_run", dry)
	q.Set("older_than_ns", strconv.FormatInt(int64(olderThan), 10))
	q.Set("keep", strconv.Itoa(keep))
	return Call[api.Pruned](ctx, c, "POST", "/v1/prune", q, nil)
}

// Submit submits a job, once: see submit. If the daemon hangs, Submit returns an error after submitTime, even if ctx
// never ends.
func (c *Client) Submit(ctx context.Context, s api.Submission) (cluster.JobID, error) {
	done, err := submit[api.Submitted](ctx, c, "/v1/jobs", s)
	return cluster.JobID(done.ID), err
}

// SubmitAll submits jobs, all or none, once, and returns their ids in the order of the jobs.
func (c *Client) SubmitAll(ctx context.Context, b api.Bulk) ([]cluster.JobID, error) {
	done, err := submit[api.SubmittedBulk](ctx, c, "/v1/jobs/bulk", b)
	ids := make([]cluster.JobID, len(done.IDs))
	for i, id := range done.IDs {
		ids[i] = cluster.JobID(id)
	}
	return ids, err
}

// Remote reports whether the daemon is reached over the network, and may be on another machine.
func (c *Client) Remote() bool { return strings.HasPrefix(c.socket, "https://") }

// failedRemotely says in one sentence why a request did not reach a daemon on the network.
func (c *Client) failedRemotely(err error, attempted string) error {
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var noTLS tls.RecordHeaderError
	var broken *net.OpError
	var slow net.Error
	_ = errors.As(err, &broken)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &unknown):
		return api.Errorf(api.Denied,
			"%s: its certificate is not trusted, and no token was sent: name the authority that signed it with --ca-file",
			c.socket)
	case errors.As(err, &untrusted):
		return api.Errorf(api.Denied, "%s: its certificate is not trusted, and no token was sent: %w", c.socket,
			untrusted.Err)
	case errors.As(err, &noTLS), errors.Is(err, http.ErrSchemeMismatch), broken != nil &&
		(broken.Op == "remote error" || broken.Op == "local error"):
		return api.Errorf(api.Denied, "%s: answers without TLS of version 1.3, and no token was sent", c.socket)
	case broken != nil && broken.Op == "dial":
		return &outage{said: api.Errorf(api.Unavailable, "%s: cannot be reached: %w", c.socket, broken.Err)}
	case errors.As(err, &slow) && slow.Timeout():
		return api.Errorf(api.Unavailable, "%s: has not answered in time", c.socket)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.HasSuffix(err.Error(), closedIdle),
		broken != nil:
		return &outage{api.Errorf(api.Unavailable, "%s: the connection to %s broke; jobs continue", attempted, c.socket),
			true}
	}
	return fmt.Errorf("%s on %s: %w", attempted, c.socket, err)
}

// JobPages returns the jobs that a filter wants by ascending id, one page at a time: all, or those that have not
// ended. It ends after an error.
func (c *Client) JobPages(ctx context.Context, all bool, f api.JobFilter) iter.Seq2[[]api.Job, error] {
	return func(yield func([]api.Job, error) bool) {
		q := query("all", all)
		q.Set("limit", strconv.Itoa(api.JobsOnPage))
		putFilter(&f, q)
		for {
			page, err := Call[[]api.Job](ctx, c, "GET", "/v1/jobs", q, nil)
			if !yield(page, err) || err != nil || len(page) < api.JobsOnPage {
				return
			}
			q.Set("after", strconv.FormatInt(int64(page[len(page)-1].ID), 10))
		}
	}
}

// Jobs returns the jobs that have not ended.
func (c *Client) Jobs(ctx context.Context) ([]api.Job, error) {
	return Call[[]api.Job](ctx, c, "GET", "/v1/jobs", nil, nil)
}

// Job returns one job with its tasks.
func (c *Client) Job(ctx context.Context, id cluster.JobID, usage bool) (api.Job, error) {
	return Call[api.Job](ctx, c, "GET", jobAddress(id), query("usage", usage), nil)
}

// Wait returns a job once it has ended.
func (c *Client) Wait(ctx context.Context, id cluster.JobID) (api.Job, error) {
	return Call[api.Job](ctx, c, "GET", jobAddress(id), query("ended", true), nil)
}

// WaitTask returns a task once it runs, or has ended.
func (c *Client) WaitTask(ctx context.Context, id cluster.TaskID) (api.Task, error) {
	return Call[api.Task](ctx, c, "GET", "/v1/tasks/"+id.String(), nil, nil)
}

// Kill kills a job.
func (c *Client) Kill(ctx context.Context, id cluster.JobID) error {
	_, err := Call[struct{}](ctx, c, "DELETE", jobAddress(id), nil, nil)
	return err
}

// Pause pauses a job, or one of its tasks if task is not zero; pageOut says that their memory is to be paged out.
func (c *Client) Pause(ctx context.Context, id cluster.JobID, task cluster.TaskID, pageOut bool) error {
	_, err := Call[struct{}](ctx, c, "PUT", pauseAddress(id, task), query("page_out", pageOut), nil)
	return err
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, id cluster.JobID, task cluster.TaskID) error {
	_, err := Call[struct{}](ctx, c, "DELETE", pauseAddress(id, task), nil, nil)
	return err
}

// Explain returns the reasons for a job's placement, memory and waiting.
func (c *Client) Explain(ctx context.Context, id cluster.JobID) (api.Explanation, error) {
	return Call[api.Explanation](ctx, c, "GET", jobAddress(id)+"/explain", nil, nil)
}

// Usage returns what each run of a job's tasks used over time, in at most most spans; 0 is the limit of the daemon.
func (c *Client) Usage(ctx context.Context, id cluster.JobID, most int) ([]api.TaskUsage, error) {
	q := url.Values{"spans": {strconv.Itoa(most)}}
	return Call[[]api.TaskUsage](ctx, c, "GET", jobAddress(id)+"/usage", q, nil)
}

// Ran returns a job with its tasks, and what their runs used, as Usage does.
func (c *Client) Ran(ctx context.Context, id cluster.JobID, most int) (j api.Job, used []api.TaskUsage, err error) {
	if used, err = c.Usage(ctx, id, most); err == nil {
		j, err = c.Job(ctx, id, false)
	}
	return j, used, err
}

// Tasks returns the tasks of all jobs that have not ended.
func (c *Client) Tasks(ctx context.Context, usage bool) ([]api.Task, error) {
	return Call[[]api.Task](ctx, c, "GET", "/v1/tasks", query("usage", usage), nil)
}

// Watch yields the jobs that have not ended, or what has changed since a revision if that is known, and then what
// changes: Update.Apply keeps jobs up to date by it. When the daemon ends, or drops a caller that was too slow, Watch
// connects again and goes on where it was; what it yields then may be a snapshot. After an error it ends: the daemon
// could not be reached at first or refused, or ctx has ended.
func (c *Client) Watch(ctx context.Context, from int64) iter.Seq2[api.Update, error] {
	return func(yield func(api.Update, error) bool) {
		for seen, err := range c.watch(ctx, from, false) {
			if err != nil {
				yield(api.Update{}, err)
				return
			}
			if seen.Update != nil && !yield(*seen.Update, nil) {
				return
			}
		}
	}
}

// WatchMachine is Watch with the state of the machine, and with the times without a connection.
func (c *Client) WatchMachine(ctx context.Context, from int64) iter.Seq2[Seen, error] {
	return c.watch(ctx, from, true)
}

func (c *Client) watch(ctx context.Context, from int64, machine bool) iter.Seq2[Seen, error] {
	return func(yield func(Seen, error) bool) {
		q := query("machine", machine)
		for reached := false; ; reached = true {
			q.Set("from", strconv.FormatInt(from, 10))
			r, err := c.send(ctx, "GET", "/v1/watch", q, nil)
			switch {
			case err == nil:
				err = api.Errorf(api.Unavailable, "the connection to the daemon on %s ended", c.socket)
				for seen, wrong := range seenIn(r.Body) {
					if seen.Lost != nil {
						err = seen.Lost
						continue
					}
					if !yield(seen, wrong) || wrong != nil {
						r.Body.Close()
						return
					}
					if u := seen.Update; u != nil && !u.More {
						from = u.Revision
					}
				}
				r.Body.Close()
			case !reached || api.KindOf(err) != api.Unavailable:
				yield(Seen{}, err)
				return
			}
			if ctx.Err() == nil && !yield(Seen{Lost: err}, nil) {
				return
			}
			select {
			case <-time.After(watchAgain):
			case <-ctx.Done():
				yield(Seen{}, ctx.Err())
				return
			}
		}
	}
}

// Output copies the output of a task to w and returns the number of bytes copied. Where bytes were dropped, a line says
// how many.
func (c *Client) Output(ctx context.Context, w io.Writer, o api.Output) (int64, error) {
	q := query("stderr", o.Stderr)
	q.Set("follow", strconv.FormatBool(o.Follow))
	q.Set("all", strconv.FormatBool(o.All))
	q.Set("run", strconv.Itoa(o.Run))
	q.Set("from", strconv.FormatInt(o.From, 10))
	r, err := c.send(ctx, "GET", "/v1/tasks/"+o.Task.String()+"/output", q, nil)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	from := &marked{r: r.Body}
	n, err := io.Copy(w, from)
	switch {
	case err == nil:
		return n, nil
	case from.err != nil:
		return n, c.failed(err, "read the output of task "+o.Task.String())
	}
	return n, err // an error of w
}

// PutProfile stores a profile and replaces the caller's old profile of that name.
func (c *Client) PutProfile(ctx context.Context, name string, p api.Measured) error {
	_, err := Call[struct{}](ctx, c, "PUT", "/v1/profiles/"+url.PathEscape(name), nil, p)
	return err
}

// Profile returns the caller's profile of that name.
func (c *Client) Profile(ctx context.Context, name string) (api.NamedProfile, error) {
	return Call[api.NamedProfile](ctx, c, "GET", "/v1/profiles/"+url.PathEscape(name), nil, nil)
}

// Apps returns the stored applications of the caller, by name; for operators of user, unless that is empty.
func (c *Client) Apps(ctx context.Context, user string) ([]api.Application, error) {
	return Call[[]api.Application](ctx, c, "GET", "/v1/apps", url.Values{"user": {user}}, nil)
}

// App returns the stored application of the caller of that name.
func (c *Client) App(ctx context.Context, name string) (api.Application, error) {
	return Call[api.Application](ctx, c, "GET", "/v1/apps/"+url.PathEscape(name), nil, nil)
}

// Import adds runs that another system recorded to the histories of the caller's applications. The owners in h are
// ignored.
func (c *Client) Import(ctx context.Context, h *profile.History) (api.ImportedRuns, error) {
	text, err := h.MarshalJSON()
	if err != nil {
		return api.ImportedRuns{}, err
	}
	return Call[api.ImportedRuns](ctx, c, "POST", "/v1/apps", nil, api.RecordedRuns{History: text})
}

// ForgetApp removes the stored application of that name of the caller; for operators that of user, unless that is
// empty.
func (c *Client) ForgetApp(ctx context.Context, user, name string) error {
	_, err := Call[struct{}](ctx, c, "DELETE", "/v1/apps/"+url.PathEscape(name), url.Values{"user": {user}}, nil)
	return err
}

// CreateToken creates a token. It needs the socket, as the other requests about tokens do.
func (c *Client) CreateToken(ctx context.Context, n api.NewToken) (api.IssuedToken, error) {
	return Call[api.IssuedToken](ctx, c, "POST", "/v1/tokens", nil, n)
}

// Quotas returns the quotas that the caller may see; user may be empty, or the only user whose quotas are wanted.
func (c *Client) Quotas(ctx context.Context, user string) ([]api.QuotaUse, error) {
	return Call[[]api.QuotaUse](ctx, c, "GET", "/v1/quotas", url.Values{"user": {user}}, nil)
}

// Pools returns the pools of the caller, for operators those of all users; user may be empty, or the only user whose
// pools are wanted.
func (c *Client) Pools(ctx context.Context, user string) ([]api.PoolSummary, error) {
	return Call[[]api.PoolSummary](ctx, c, "GET", "/v1/pools", url.Values{"user": {user}}, nil)
}

// Pool returns a pool of a user, empty for the caller, with its executors and applications.
func (c *Client) Pool(ctx context.Context, user, name string) (api.PoolDetail, error) {
	return Call[api.PoolDetail](ctx, c, "GET", poolAddress(name), url.Values{"user": {user}}, nil)
}

// PutPool makes a pool of the caller, or changes the one of that name of a user, empty for the caller.
func (c *Client) PutPool(ctx context.Context, user string, s api.PoolSpec) (created bool, err error) {
	out, err := Call[api.StoredPool](ctx, c, "PUT", poolAddress(s.Name), url.Values{"user": {user}}, s)
	return out.Created, err
}

// RemovePool removes a pool of a user, empty for the caller, and returns when its executors have ended.
func (c *Client) RemovePool(ctx context.Context, user, name string) error {
	_, err := Call[struct{}](ctx, c, "DELETE", poolAddress(name), url.Values{"user": {user}}, nil)
	return err
}

// Tokens returns the tokens of the caller, for operators those of all users.
func (c *Client) Tokens(ctx context.Context) ([]api.Token, error) {
	return Call[[]api.Token](ctx, c, "GET", "/v1/tokens", nil, nil)
}

// RevokeToken revokes a token, and ends the requests with it.
func (c *Client) RevokeToken(ctx context.Context, id int64) error {
	_, err := Call[struct{}](ctx, c, "DELETE", fmt.Sprintf("/v1/tokens/%d", id), nil, nil)
	return err
}

// Input connects to the input of a job's program when the program runs. Package input describes the protocol. The
// caller closes the connection.
func (c *Client) Input(ctx context.Context, id cluster.JobID) (io.ReadWriteCloser, error) {
	request, err := newRequest(ctx, "POST", jobAddress(id)+"/input", nil, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", input.Protocol)
	r, err := c.do(request)
	if err != nil {
		return nil, err
	}
	connection, ok := r.Body.(io.ReadWriteCloser)
	if !ok {
		r.Body.Close()
		return nil, fmt.Errorf("send input to job %d: the daemon answered %s", id, r.Status)
	}
	return connection, nil
}

// send requests an escaped path and returns the response unless it is an error. The caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, q url.Values, in any) (*http.Response, error) {
	request, err := newRequest(ctx, method, path, q, in)
	if err != nil {
		return nil, err
	}
	return c.do(request)
}

func (c *Client) do(request *http.Request) (*http.Response, error) {
	r, err := c.http.Do(request)
	if err != nil {
		return nil, c.failed(err, "send a request to the daemon")
	}
	if r.StatusCode >= 400 {
		defer r.Body.Close()
		e := &api.Error{Kind: api.KindOfStatus(r.StatusCode)}
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(e); err != nil || e.Message == "" {
			e.Message = "the daemon answered " + r.Status
		}
		return nil, e
	}
	return r, nil
}

// failed says in one sentence why the request did not reach the daemon.
func (c *Client) failed(err error, attempted string) error {
	var own *api.Error
	var broken *net.OpError
	switch {
	case errors.As(err, &own):
		return own
	case c.Remote():
		return c.failedRemotely(err, attempted)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return &outage{said: api.Errorf(api.Unavailable,
			"no daemon listens on %s: start one with `bellows up`, or name its socket with --socket", c.socket)}
	case errors.Is(err, fs.ErrPermission):
		return api.Errorf(api.Denied,
			"the daemon's socket %s is not open to you: run this as the daemon's user, as root or as a member of the "+
				"socket's group", c.socket)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.HasSuffix(err.Error(), closedIdle),
		errors.As(err, &broken) && broken.Op != "dial": // reset, broken pipe, or closed by net/http at the first sign of that
		return &outage{api.Errorf(api.Unavailable,
			"%s: the daemon on %s ended; its containers continue, and `bellows up` finds them again", attempted, c.socket), true}
	}
	return fmt.Errorf("%s on %s: %w", attempted, c.socket, err)
}

// New returns a client for the daemon behind the socket at path. It does not connect yet.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		if err := trusted(c, socket); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
	return Over(socket, &http.Transport{DialContext: dial, DisableCompression: true})
}

// Over returns a client that sends its requests over a transport, to a daemon that is called by its socket or URL.
func Over(socket string, by http.RoundTripper) *Client {
	return &Client{socket, &http.Client{Transport: by}, submitTime}
}

// trusted returns an error unless root or the caller's own user listens at the other end: a submission contains the
// whole environment, which may contain secrets.
func trusted(c net.Conn, socket string) error {
	cred, err := peercred.Credentials(c)
	if err != nil {
		return err
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return api.Errorf(api.Denied, "socket %s: user %d listens there, and is neither root nor you; nothing was sent",
			socket, cred.Uid)
	}
	return nil
}

// submitTime is how long a client waits for the answer to a submission: longer than a large body waits for its turn.
const submitTime = time.Minute

// resubmitTime is how long a client tries to repeat a submission whose answer was lost: longer than a restart of the
// daemon takes.
const resubmitTime = 5 * time.Second

// submit sends a submission with a key of its own. If the connection breaks before the answer, which then may be
// lost, the same request is sent again; the daemon does not carry it out twice.
func submit[Out any](ctx context.Context, c *Client, path string, in any) (out Out, err error) {
	bounded, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	key := rand.Text()
	send := func() (out Out, err error) {
		request, err := newRequest(bounded, "POST", path, nil, in)
		if err != nil {
			return out, err
		}
		request.Header.Set("Idempotency-Key", `"`+key+`"`)
		return answerTo[Out](c, request)
	}
	out, err = send()
	if lost, ok := errors.AsType[*outage](err); ok && lost.broken {
		for until := time.Now().Add(resubmitTime); ok && time.Now().Before(until); {
			select {
			case <-time.After(watchAgain):
			case <-bounded.Done():
			}
			again, e := send()
			if _, ok = errors.AsType[*outage](e); !ok {
				out, err = again, e
			}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = api.Errorf(api.Unavailable,
			"the daemon on %s has not answered for %v; it may have accepted the job: `bellows ps` shows it then", c.socket,
			c.Patience)
	}
	return out, err
}
