package server

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/store"
)

// fake is a Driver that records its calls and returns preset answers.
type fake struct {
	mu        sync.Mutex
	submitted []live.Submission
	keys      map[string]cluster.JobID
	cancelled []cluster.JobID
	by        cluster.Credentials
	shutdown  *bool
	jobs      map[cluster.JobID]api.Job
	shared    []api.Job // what a list of all jobs returns, if set
	tasks     []api.Task
	logs      []api.LogFile
	found     []cluster.Event
	quotas    []api.QuotaUse // in addition
	input     io.ReadWriteCloser
	err       error
	ended     chan struct{} // closed when task 1.0.0 has ended
	done      chan struct{}
}

func newFake() *fake {
	return &fake{jobs: map[cluster.JobID]api.Job{}, keys: map[string]cluster.JobID{}, ended: make(chan struct{}),
		done: make(chan struct{})}
}

func (f *fake) Submit(_ context.Context, s live.Submission) (cluster.JobID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id, known := f.keys[s.Key.Text]; known {
		if f.submitted[id-1].Key != s.Key {
			return 0, api.Errorf(api.KeyReused, "key %s: reused", s.Key.Text)
		}
		return id, f.err
	}
	f.submitted = append(f.submitted, s)
	id := cluster.JobID(len(f.submitted))
	if s.Key.Text != "" {
		f.keys[s.Key.Text] = id
	}
	return id, f.err
}

func (f *fake) SubmitAll(ctx context.Context, by cluster.Credentials, key live.Key,
	jobs iter.Seq2[live.Submission, error]) (first cluster.JobID, n int, err error) {
	for s, err := range jobs {
		if err != nil {
			return 0, 0, &live.OfJob{Index: n, Err: err}
		}
		s.Caller = by
		if n == 0 {
			s.Key = key
		}
		id, err := f.Submit(ctx, s)
		if err != nil {
			return 0, 0, &live.OfJob{Index: n, Err: err}
		}
		if n++; n == 1 {
			first = id
		}
	}
	return first, n, nil
}

func (f *fake) Pause(_ context.Context, by cluster.Credentials, id cluster.JobID, task cluster.TaskID,
	pageOut bool) error {
	if id == 999 {
		return api.Errorf(api.NotFound, "job %d: there is none", id)
	}
	return nil
}

func (f *fake) Resume(ctx context.Context, by cluster.Credentials, id cluster.JobID, task cluster.TaskID) error {
	return f.Pause(ctx, by, id, task, false)
}

func (f *fake) Cancel(_ context.Context, by cluster.Credentials, id cluster.JobID) error {
	f.by, f.cancelled = by, append(f.cancelled, id)
	return f.err
}

func (f *fake) Jobs(context.Context) ([]api.Job, error) {
	return slices.DeleteFunc(f.after(0), func(j api.Job) bool { return j.Ended }), f.err
}

func (f *fake) JobsAfter(_ context.Context, after cluster.JobID, most int) ([]api.Job, error) {
	if f.shared != nil {
		return f.shared, f.err
	}
	jobs := f.after(after)
	return jobs[:min(most, len(jobs))], f.err
}

func (f *fake) after(id cluster.JobID) []api.Job {
	var jobs []api.Job
	for _, next := range slices.Sorted(maps.Keys(f.jobs)) {
		if next > id {
			jobs = append(jobs, f.jobs[next])
		}
	}
	return jobs
}

func (f *fake) Job(_ context.Context, id cluster.JobID, _ bool) (api.Job, error) {
	j, ok := f.jobs[id]
	if !ok {
		return j, api.Errorf(api.NotFound, "job %d: there is none", id)
	}
	return j, f.err
}

func (f *fake) Owner(ctx context.Context, id cluster.JobID) (api.Owner, error) {
	j, err := f.Job(ctx, id, false)
	return api.Owner{UID: j.UID, Name: j.Owner}, err
}

func (f *fake) Prune(_ context.Context, keep retention.Rule, dry bool) (api.Pruned, error) {
	return api.Pruned{Jobs: []cluster.JobID{1, 2}, OutputBytes: 5}, f.err
}

func (f *fake) Usage(context.Context, cluster.JobID, int) ([]api.TaskUsage, error) {
	return nil, f.err
}

func (f *fake) Tasks(context.Context, bool) ([]api.Task, error) { return f.tasks, f.err }

// Measured returns all tasks, as measured in 2030.
func (f *fake) Measured(context.Context) ([]api.Task, time.Time, error) {
	return f.tasks, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), f.err
}

// Changes has all jobs at revision 1, and then the daemon ends.
func (f *fake) Changes(_ context.Context, from int64) (api.Update, error) {
	if from == 1 {
		return api.Update{}, api.Errorf(api.Internal, "bellows is going down")
	}
	return api.Update{Revision: 1, Snapshot: true, Jobs: f.after(0)}, nil
}

func (f *fake) Wait(ctx context.Context, id cluster.JobID) (api.Job, error) {
	select {
	case <-f.ended:
		return f.jobs[id], f.err
	case <-ctx.Done():
		return api.Job{}, ctx.Err()
	}
}

func (f *fake) WaitTask(ctx context.Context, id cluster.TaskID, ended bool) (api.Task, error) {
	if !ended {
		return api.Task{Task: id, Run: 1}, f.err
	}
	select {
	case <-f.ended:
		return api.Task{Task: id, Run: 1, State: api.TaskEnded}, nil
	case <-ctx.Done():
		return api.Task{}, ctx.Err()
	}
}

func (f *fake) Explain(_ context.Context, id cluster.JobID) (api.Explanation, error) {
	return api.Explanation{Job: f.jobs[id], Why: "It waits."}, f.err
}

// Present has what the test presents as job 1, and the submitted job as job 2.
func (f *fake) Present(ctx context.Context, s live.Submission) (*eventlog.Present, map[cluster.JobID]api.Owner,
	error) {
	owner, _ := f.Owner(ctx, 1)
	s.Job.ID = 2
	return &eventlog.Present{Found: f.found, Job: s.Job}, map[cluster.JobID]api.Owner{1: owner}, f.err
}

func (f *fake) Input(context.Context, cluster.JobID) (io.ReadWriteCloser, error) {
	return f.input, f.err
}

func (f *fake) Logs(context.Context, cluster.JobID) ([]api.LogFile, error) { return f.logs, f.err }

// QuotaUse has quotas of ada, bob and three queues, and of whoever is named.
func (f *fake) QuotaUse(_ context.Context, user string) ([]api.QuotaUse, error) {
	all := []api.QuotaUse{{User: "ada", Kind: cluster.QuotaMemory, Most: 5, Taken: new(int64(3))},
		{User: "bob", Kind: cluster.QuotaOutput, Most: 7, Refuses: true},
		{Queue: "named", Kind: cluster.QuotaRunning, Most: 1, Taken: new(int64(1)), Named: true},
		{Queue: "of-ada", Kind: cluster.QuotaRunning, Most: 1, Taken: new(int64(0))}}
	return append(all, f.quotas...), f.err
}

// QueuesOf says that only ada has jobs, in one queue.
func (f *fake) QueuesOf(o api.Owner) map[string]bool {
	return map[string]bool{"of-ada": o == api.Owner{UID: 1000, Name: "ada"}}
}

func (f *fake) Status(context.Context) (api.ClusterStatus, error) {
	return api.ClusterStatus{Policy: "fair", Nodes: []api.Node{{Name: "here"}}}, f.err
}

func (f *fake) Shutdown(_ context.Context, kill bool) error { f.shutdown = &kill; return f.err }

func (f *fake) Done() <-chan struct{} { return f.done }

// Import says that all runs are new.
func (f *fake) Import(_ context.Context, _ cluster.Credentials, h *profile.History) (all []api.Imported, err error) {
	for _, app := range h.Apps() {
		_, n := h.Runs(app)
		all = append(all, api.Imported{Name: app.Name, Runs: n})
	}
	return all, nil
}

// Learned says the same of every application, except of one called broken.
func (f *fake) Learned(_ context.Context, _ uint32, _, app string) ([]api.Learned, error) {
	if app == "broken" {
		return nil, api.Errorf(api.Invalid, "what its runs taught cannot be read")
	}
	return []api.Learned{{Runs: 1, Last: time.Unix(1, 0),
		Variants: []api.LearnedVariant{{Share: 1, Runs: 1, DurationSeconds: 1,
			Phases: []api.ForecastPhase{{LengthSeconds: 1}}, Unknown: []string{"network"}}}}}, nil
}

// fakeProfiles keeps profiles in memory.
type fakeProfiles map[string]store.Profile

func (p fakeProfiles) PutProfile(_ context.Context, s store.Profile) error {
	p[s.Name] = s
	return nil
}

func (p fakeProfiles) Profile(_ context.Context, _ uint32, _, name string) (store.Profile, error) {
	s, ok := p[name]
	if !ok {
		return s, store.ErrNotFound
	}
	return s, nil
}

func (p fakeProfiles) Profiles(context.Context, uint32, string) ([]store.Profile, error) {
	var all []store.Profile
	for _, s := range p {
		all = append(all, s)
	}
	return all, nil
}

func (p fakeProfiles) App(_ context.Context, _ uint32, _, name string) (store.App, error) {
	s, ok := p[name]
	if !ok {
		return store.App{}, store.ErrNotFound
	}
	return store.App{Name: name, Profile: &s, Learned: []byte("{}")}, nil
}

func (p fakeProfiles) Apps(ctx context.Context, uid uint32, user string) ([]store.App, error) {
	var all []store.App
	for _, name := range slices.Sorted(maps.Keys(p)) {
		a, err := p.App(ctx, uid, user, name)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func (p fakeProfiles) AppsOfUser(ctx context.Context, user string) ([]store.App, error) {
	return p.Apps(ctx, 0, user)
}

func (p fakeProfiles) Forget(_ context.Context, _ uint32, _, name string) error {
	if _, ok := p[name]; !ok {
		return store.ErrNotFound
	}
	delete(p, name)
	return nil
}

func (p fakeProfiles) ForgetOfUser(ctx context.Context, user, name string) error {
	return p.Forget(ctx, 0, user, name)
}

// fakeProfiles has no tokens: fakeStore has.
func (p fakeProfiles) AddToken(context.Context, store.Token) (int64, error) { return 1, nil }
func (p fakeProfiles) Token(context.Context, int64) (store.Token, error) {
	return store.Token{}, store.ErrNotFound
}
func (p fakeProfiles) Tokens(context.Context) ([]store.Token, error)           { return nil, nil }
func (p fakeProfiles) RevokeToken(context.Context, int64, timeline.Time) error { return nil }
func (p fakeProfiles) TokenUsed(context.Context, int64, timeline.Time) error   { return nil }

// fakeStore keeps tokens in memory, too.
type fakeStore struct {
	fakeProfiles
	mu     sync.Mutex
	tokens map[int64]store.Token
}

func newFakeStore() *fakeStore {
	return &fakeStore{fakeProfiles: fakeProfiles{}, tokens: map[int64]store.Token{}}
}

func (s *fakeStore) AddToken(_ context.Context, t store.Token) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.ID = int64(len(s.tokens)) + 1
	s.tokens[t.ID] = t
	return t.ID, nil
}

func (s *fakeStore) Token(_ context.Context, id int64) (store.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tokens[id]
	if !ok {
		return t, store.ErrNotFound
	}
	return t, nil
}

func (s *fakeStore) Tokens(context.Context) (all []store.Token, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.tokens)) {
		all = append(all, s.tokens[id])
	}
	return all, nil
}

func (s *fakeStore) RevokeToken(_ context.Context, id int64, at timeline.Time) error {
	return s.change(id, func(t *store.Token) { t.Revoked = at })
}

func (s *fakeStore) TokenUsed(_ context.Context, id int64, at timeline.Time) error {
	return s.change(id, func(t *store.Token) { t.Used = at })
}

func (s *fakeStore) change(id int64, f func(*store.Token)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[id]
	f(&t)
	s.tokens[id] = t
	return nil
}

// start serves d on a socket in a folder of the test's own, and returns a client. Every request and answer is checked
// against the API's document.
func start(t *testing.T, d Driver, p Store) (c *client.Client, socket string) {
	t.Helper()
	c, socket, _ = startDescribed(t, d, p)
	return c, socket
}

func startDescribed(t *testing.T, d Driver, p Store) (c *client.Client, socket string, about *description) {
	t.Helper()
	return startBehind(t, d, p, func(h http.Handler) http.Handler { return h })
}

// startBehind is startDescribed behind another handler.
func startBehind(t *testing.T, d Driver, p Store, before func(http.Handler) http.Handler) (c *client.Client,
	socket string,
	about *description) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := Listen(socket, Door{})
	if err != nil {
		t.Fatal(err)
	}
	s := New(d, &fakePools{}, p, api.Daemon{Version: "test", PID: os.Getpid(), UID: uint32(os.Getuid())},
		slog.New(slog.DiscardHandler))
	about = asDescribed(t, s.http.Handler)
	s.http.Handler = before(about)
	serveUntilEnd(t, s, func() error { return s.Serve(l) })
	return client.New(socket), socket, about
}

// serveUntilEnd lets a server answer requests until the end of the test.
func serveUntilEnd(t *testing.T, s *Server, serve func() error) {
	served := make(chan error, 1)
	go func() { served <- serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

var _ net.Listener = (*listener)(nil)

// httpOf returns what sends the requests of a client.
func httpOf(c *client.Client) *http.Client {
	h, _ := c.Messages("")
	return h
}

// sent sends a request of a client. An answer that is an error is returned as that.
func sent(c *client.Client, r *http.Request) (*http.Response, error) {
	answer, err := httpOf(c).Do(r)
	if err != nil || answer.StatusCode < 400 {
		return answer, err
	}
	defer answer.Body.Close()
	e := &api.Error{}
	if err := json.NewDecoder(answer.Body).Decode(e); err != nil {
		return nil, err
	}
	return nil, e
}
