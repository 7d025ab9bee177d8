package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/counts"
	"github.com/bellows-rm/bellows/live/retention"
)

// Driver is the part of live.Driver that the API uses.
type Driver interface {
	Submit(ctx context.Context, s live.Submission) (cluster.JobID, error)
	SubmitAll(ctx context.Context, by cluster.Credentials, key live.Key,
		jobs iter.Seq2[live.Submission, error]) (first cluster.JobID, n int, err error)
	Cancel(ctx context.Context, by cluster.Credentials, id cluster.JobID) error
	Pause(ctx context.Context, by cluster.Credentials, id cluster.JobID, task cluster.TaskID, pageOut bool) error
	Resume(ctx context.Context, by cluster.Credentials, id cluster.JobID, task cluster.TaskID) error
	Owner(ctx context.Context, id cluster.JobID) (api.Owner, error)
	Jobs(ctx context.Context) ([]api.Job, error)
	JobsAfter(ctx context.Context, after cluster.JobID, most int) ([]api.Job, error)
	Job(ctx context.Context, id cluster.JobID, usage bool) (api.Job, error)
	Tasks(ctx context.Context, usage bool) ([]api.Task, error)
	Measured(ctx context.Context) ([]api.Task, time.Time, error)
	Changes(ctx context.Context, from int64) (api.Update, error)
	Usage(ctx context.Context, id cluster.JobID, most int) ([]api.TaskUsage, error)
	Wait(ctx context.Context, id cluster.JobID) (api.Job, error)
	WaitTask(ctx context.Context, id cluster.TaskID, ended bool) (api.Task, error)
	Explain(ctx context.Context, id cluster.JobID) (api.Explanation, error)
	Present(ctx context.Context, s live.Submission) (*eventlog.Present, map[cluster.JobID]api.Owner, error)
	Learned(ctx context.Context, uid uint32, user, app string) ([]api.Learned, error)
	Import(ctx context.Context, by cluster.Credentials, h *profile.History) ([]api.Imported, error)
	Input(ctx context.Context, id cluster.JobID) (io.ReadWriteCloser, error)
	Logs(ctx context.Context, id cluster.JobID) ([]api.LogFile, error)
	QuotaUse(ctx context.Context, user string) ([]api.QuotaUse, error)
	QueuesOf(o api.Owner) map[string]bool
	Status(ctx context.Context) (api.ClusterStatus, error)
	Ready() error
	Metrics() counts.Values
	Prune(ctx context.Context, keep retention.Rule, dry bool) (api.Pruned, error)
	Shutdown(ctx context.Context, kill bool) error
	Done() <-chan struct{}
}

// Server answers requests for one Driver: on one socket, and at one address of the network if it is asked to.
type Server struct {
	driver      Driver
	pools       Pools
	profiles    Profiles
	tokens      *tokens
	daemon      api.Daemon
	log         *slog.Logger
	http        *http.Server
	connections *connections
	network     network
	metrics     *metrics
	watchers    *places // of connections that watch, or wait for results of an application: half of all connections
	messageRoom *messageRoom
	explaining  turns
	updates     updates
	// leaving ends when the server shuts down: clients that send input, watch, or wait for a pool then connect again, to
	// the next daemon.
	leaving context.Context
	leave   context.CancelFunc
	// configuration replaces that of daemon.
	configuration atomic.Pointer[api.Configuration]
}

// New returns a server. It does not listen yet: see Serve.
func New(d Driver, l Pools, p Store, about api.Daemon, log *slog.Logger) *Server {
	s := &Server{driver: d, pools: l, profiles: p, tokens: newTokens(p, log), daemon: about, log: log,
		connections: newConnections(connectionsFor(descriptorLimit()), about.UID), messageRoom: newMessageRoom(about.UID),
		updates: newUpdates()}
	s.connections.mostExecutors = MostExecutors()
	s.configuration.Store(about.Configuration)
	s.metrics = newMetrics(s)
	s.watchers = newPlaces(s.connections.most/2, about.UID)
	s.leaving, s.leave = context.WithCancel(context.Background())
	handler := s.handler()
	s.network.init(s, handler)
	s.http = &http.Server{
		Handler: s.survive(handler),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return withConnection(withPeer(ctx, c), c)
		},
		ConnState:         s.connections.follow,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s
}

// Configured changes the configuration that the status of the daemon has; nil means none.
func (s *Server) Configured(c *api.Configuration) { s.configuration.Store(c) }

// survive answers a request when its handler panics, which is a bug of bellows: the caller gets an error, and the log
// the stack.
func (s *Server) survive(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answering{ResponseWriter: w}
		defer func() {
			p := recover()
			switch {
			case p == nil:
			case p == http.ErrAbortHandler:
				panic(p)
			default:
				s.log.Error("a request hit a bug of bellows", "method", r.Method, "path", r.URL.Path, "panic", p, "stack",
					string(debug.Stack()))
				if answer.begun {
					panic(http.ErrAbortHandler) // cuts the connection, so that the caller does not take half an answer for a whole one
				}
				writeError(w, api.Errorf(api.Internal, "%s %s: hit a bug of bellows, which the daemon's log describes",
					r.Method, r.URL.Path))
			}
		}()
		h.ServeHTTP(answer, r)
	})
}

// answering records whether an answer has begun, and its status.
type answering struct {
	http.ResponseWriter
	begun  bool
	status int      // 0 while it is not stated, which is http.StatusOK
	failed api.Kind // of the error that it is; 0 if it is not an error
}

func (a *answering) WriteHeader(status int) {
	a.begun, a.status = true, status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answering) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (a *answering) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// Unwrap lets an http.ResponseController reach the connection.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Serve answers requests until Shutdown is called or l fails.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(&roomy{Listener: l, connections: s.connections, closed: make(chan struct{})}); !errors.Is(err,
		http.ErrServerClosed) {
		return fmt.Errorf("answer on %s: %w", l.Addr(), err)
	}
	return nil
}

// Shutdown stops the server. Requests in progress have until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leave()
	var both sync.WaitGroup
	var errs [2]error
	for i, h := range []*http.Server{s.http, s.network.http} {
		both.Go(func() {
			if errs[i] = h.Shutdown(ctx); errs[i] != nil {
				_ = h.Close()
			}
		})
	}
	both.Wait()
	return errors.Join(errs[:]...)
}

// said returns an error in the form that the API sends: an error without a kind is Internal.
func said(err error) *api.Error {
	kind := cmp.Or(api.KindOf(err), api.Internal)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		kind = api.Unavailable
	}
	return api.Errorf(kind, "%w", err)
}
