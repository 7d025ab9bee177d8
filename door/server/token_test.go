package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// needed is the scope that a token needs for each operation; "" if no token is enough.
var needed = map[string]string{
	"status": "read", "health": "read", "ready": "read", "shutdown": "admin", "prune": "admin",
	"submit": "submit", "plan": "read", "submit-bulk": "submit", "jobs": "read", "job": "read", "tasks": "read",
	"watch": "read",
	"usage": "read", "explain": "read", "logs": "read", "task": "read", "output": "read",
	"kill": "submit", "input": "submit", "pause": "submit", "resume": "submit", "pauseTask": "submit",
	"resumeTask": "submit",
	"profiles":   "read", "profile": "read", "store-profile": "submit",
	"applications": "read", "application": "read", "import-runs": "submit", "forget-application": "submit",
	"pools": "read", "pool": "read", "put-pool": "submit", "remove-pool": "submit", "register-executor": "submit",
	"next-task": "submit", "beat": "submit",
	"enrol": "submit", "grow": "submit", "collect": "submit", "cancel-application": "submit",
	"create-token": "", "tokens": "", "quotas": "read", "revoke-token": "",
}

// accounts are the users of the machine of a test, by uid.
type accounts map[uint32]cluster.Credentials

// accountsChange excludes changes of accounts while one is looked up.
var accountsChange sync.Mutex

// change gives a uid to another user, or to none.
func (a accounts) change(uid uint32, to *cluster.Credentials) {
	accountsChange.Lock()
	defer accountsChange.Unlock()
	if delete(a, uid); to != nil {
		a[uid] = *to
	}
}

func (a accounts) of(uid uint32) (cluster.Credentials, error) {
	accountsChange.Lock()
	defer accountsChange.Unlock()
	c, ok := a[uid]
	if !ok {
		return c, user.UnknownUserIdError(uid)
	}
	return c, nil
}

func (a accounts) named(name string) (cluster.Credentials, error) {
	for _, c := range a {
		if c.User == name {
			return c, nil
		}
	}
	return cluster.Credentials{}, user.UnknownUserError(name)
}

// usual are ada, who owns job 1, an operator and root.
func usual() accounts {
	return accounts{0: {User: "root"}, 1000: {UID: 1000, GID: 100, Groups: []uint32{100, 501}, User: "ada"},
		4000: {UID: 4000, GID: 4000, Groups: []uint32{4000, operators}, User: "op"}}
}

// issue stores a token and returns its text.
func (s *fakeStore) issue(t store.Token) string {
	secret := api.NewSecret()
	t.Hash = hashOf(secret)
	if t.Expires == 0 {
		t.Expires = timeline.Time(time.Now().Add(time.Hour).UnixNano())
	}
	id, _ := s.AddToken(context.Background(), t)
	return api.TokenText(id, secret)
}

// present sends a request over the network with a token, none if it is empty, and returns the answer.
func present(s *Server, o operation, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(o.method, "https://bellows"+o.path, strings.NewReader(o.body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer := httptest.NewRecorder()
	s.network.http.Handler.ServeHTTP(answer, r)
	return answer
}

// presented is what a request can present, with what is expected of it for an operation.
type presented struct {
	name  string
	token store.Token
	text  string // in place of the text of the token
	none  bool   // no token is stored
	scope string // what it allows; empty: the request is not answered
	as    string // owner, stranger or operator
}

func everyPresented() []presented {
	long := timeline.Time(time.Now().Add(time.Hour).UnixNano())
	unknown := api.TokenText(1<<62, api.NewSecret())
	all := []presented{
		{name: "nothing", none: true}, {name: "no token", none: true, text: "secret"},
		{name: "an unknown token", none: true, text: unknown},
		{name: "the id of a token with another secret", none: true, text: api.TokenText(1, api.NewSecret())},
		{name: "an expired token", token: store.Token{UID: 1000, User: "ada", Scope: "read", Expires: 1}},
		{name: "a revoked token", token: store.Token{UID: 1000, User: "ada", Scope: "admin", Expires: long, Revoked: 1}},
		{name: "a token of the user who had the uid before", token: store.Token{UID: 1000, User: "eve", Scope: "admin"}},
		{name: "a token of a user who was removed", token: store.Token{UID: 7, User: "gone", Scope: "admin"}},
	}
	for _, scope := range api.ScopeNames() {
		all = append(all,
			presented{name: scope + " of ada", token: store.Token{UID: 1000, User: "ada", Scope: scope}, scope: scope,
				as: "owner"},
			presented{name: scope + " of an operator", token: store.Token{UID: 4000, User: "op", Scope: scope}, scope: scope,
				as: "stranger"},
			presented{name: scope + " of root", token: store.Token{UID: 0, User: "root", Scope: scope}, scope: scope,
				as: "stranger"})
	}
	for i := range all[len(all)-2:] {
		all[len(all)-1-i].as = "operator" // with the scope admin
	}
	return all
}

// Every operation is answered to whoever presents a token as the tables say. Whatever is wrong with a token, the
// answer is the same, after the same time.
func TestEveryOperationByToken(t *testing.T) {
	for _, o := range eachOperation(t) {
		scope, ok := needed[o.id]
		if !ok {
			t.Errorf("operation %s: the table does not say which scope it needs", o.id)
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			var refusal *httptest.ResponseRecorder
			ended := api.Job{Ended: true, Stages: []api.Stage{{Stage: cluster.Stage{Tasks: 1}}},
				Tasks: []api.Task{{Task: cluster.TaskID{Job: 1}, Run: 1}}}
			s, _, stored := guardedServer(t, ended)
			for _, p := range everyPresented() {
				s.tokens.account = usual().of
				text := p.text
				if !p.none {
					text = stored.issue(p.token)
				}
				want := 401
				switch rights := allowed[o.id]; {
				case p.scope == "":
				case scope == "" || slices.Index(api.ScopeNames(), p.scope) < slices.Index(api.ScopeNames(), scope):
					want = 403
				default:
					want = map[string]int{"owner": rights.owner, "stranger": rights.stranger, "operator": rights.operator}[p.as]
				}
				begun := time.Now()
				answer := present(s, o, text)
				if answer.Code != want {
					t.Errorf("operation %s with %s: %d, want %d: %s", o.id, p.name, answer.Code, want, answer.Body)
				}
				if answer.Code < 300 && o.method != "GET" { // It may have changed something, which does not count for the next.
					s, _, stored = guardedServer(t, ended)
				}
				if want != 401 {
					continue
				}
				if took := time.Since(begun); took != refusalDelay || answer.Header().Get("WWW-Authenticate") == "" {
					t.Errorf("operation %s with %s: refused after %v with %v", o.id, p.name, took, answer.Header())
				}
				if refusal == nil {
					refusal = answer
				}
				if answer.Body.String() != refusal.Body.String() || fmt.Sprint(answer.Header()) != fmt.Sprint(refusal.Header()) {
					t.Errorf("operation %s with %s: %s, and with nothing: %s", o.id, p.name, answer.Body, refusal.Body)
				}
			}
		})
	}
}

// What needs another scope, or the socket, is said in one sentence.
func TestScopesAreNamed(t *testing.T) {
	s, _, stored := guardedServer(t, api.Job{})
	s.tokens.account = usual().of
	token := stored.issue(store.Token{UID: 1000, User: "ada", Scope: "read"})
	for _, tt := range []struct{ method, path, want string }{
		{"DELETE", "/v1/jobs/1", "kill: needs a token of scope submit, and this one has scope read"},
		{"POST", "/v1/shutdown", "shutdown: needs a token of scope admin, and this one has scope read"},
		{"GET", "/v1/tokens", "tokens: needs the unix socket of the daemon, and is not possible over the network"},
	} {
		var e api.Error
		answer := present(s, operation{method: tt.method, path: tt.path}, token)
		if err := json.Unmarshal(answer.Body.Bytes(), &e); err != nil || e.Kind != api.Denied || e.Message != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.method, tt.path, answer.Body, tt.want)
		}
	}
}

// Neither the document nor the metrics are for whoever has no token, and no answer has the headers of a request
// without one.
func TestNothingWithoutAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, stored := guardedServer(t, api.Job{})
		s.tokens.account = usual().of
		token := stored.issue(store.Token{UID: 1000, User: "ada", Scope: "read"})
		for _, path := range []string{"/openapi.json", "/metrics", "/", "/v1/nothing"} {
			if answer := present(s, operation{method: "GET", path: path}, ""); answer.Code != 401 {
				t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
			}
			if answer := present(s, operation{method: "GET", path: path}, token); answer.Code == 401 {
				t.Errorf("%s with a token: %d %s", path, answer.Code, answer.Body)
			}
			time.Sleep(time.Second) // of the bubble
		}
		r := httptest.NewRequest("GET", "https://bellows/v1/status", nil)
		r.Header["Authorization"] = []string{"Bearer " + token, "Bearer " + token}
		answer := httptest.NewRecorder()
		if s.network.http.Handler.ServeHTTP(answer, r); answer.Code != 401 {
			t.Errorf("two headers: %d", answer.Code)
		}
	})
}

// Requests without a valid token are answered at a bounded rate, whoever sends them, and hold up nobody who has one.
// The log says why, once a second, and has no token.
func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, stored := guardedServer(t, api.Job{})
		s.tokens.account = usual().of
		var log strings.Builder
		s.tokens.log = slog.New(slog.NewTextHandler(&log, nil))
		valid := stored.issue(store.Token{UID: 1000, User: "ada", Scope: "read"})
		revoked := stored.issue(store.Token{UID: 1000, User: "ada", Scope: "read", Revoked: 1})
		const many = 1000
		begun := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		answered, cut := 0, 0
		for range many {
			all.Go(func() {
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					if p := recover(); p == http.ErrAbortHandler {
						cut++
					} else {
						answered++
					}
				}()
				present(s, operation{method: "GET", path: "/v1/status"}, revoked)
			})
		}
		synctest.Wait()
		if answer := present(s, operation{method: "GET", path: "/v1/status"}, valid); answer.Code != 200 ||
			time.Since(begun) != 0 {
			t.Errorf("a valid token gets %d after %v", answer.Code, time.Since(begun))
		}
		all.Wait()
		if most := int(refusalWait/refusalPace) + 1; answered > most || answered < most-5 || answered+cut != many ||
			time.Since(begun) > refusalWait {
			t.Errorf("%d were answered and %d cut off within %v", answered, cut, time.Since(begun))
		}
		time.Sleep(time.Second) // of the bubble
		present(s, operation{method: "GET", path: "/v1/status"}, revoked)
		_, secret, _ := api.ParseToken(revoked)
		if text := log.String(); strings.Count(text, "\n") != 2 || strings.Contains(text, secret) ||
			!strings.Contains(text, `reason="a revoked token"`) || !strings.Contains(text, "others=999") {
			t.Errorf("the log has\n%s", text)
		}
	})
}

// The last use of a token is recorded, not more often than once an hour.
func TestUseIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, stored := guardedServer(t, api.Job{})
		s.tokens.account = usual().of
		token := stored.issue(store.Token{UID: 1000, User: "ada", Scope: "read",
			Expires: timeline.Time(time.Now().Add(9 * time.Hour).UnixNano())})
		id, _, _ := api.ParseToken(token)
		var uses []timeline.Time
		for range 8 {
			present(s, operation{method: "GET", path: "/v1/health"}, token)
			used := stored.tokens[id].Used
			if used%timeline.Time(usedPace) != 0 {
				t.Errorf("used at %v", used)
			}
			uses = append(uses, used)
			time.Sleep(30 * time.Minute) // of the bubble
		}
		if n := len(slices.Compact(uses)); n != 4 {
			t.Errorf("%d uses were recorded: %v", n, uses)
		}
	})
}

// presents is a client's transport that presents a token.
type presents struct {
	http.RoundTripper
	token string
}

func (p presents) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+p.token)
	return p.RoundTripper.RoundTrip(r)
}

// overNetwork serves d to clients that present tokens, within the process, until the test ends.
func overNetwork(t *testing.T, d Driver, users accounts) (with func(token string) *client.Client, s *served,
	stored *fakeStore) {
	t.Helper()
	stored = newFakeStore()
	s = &served{New(d, &fakePools{}, stored, api.Daemon{UID: 2000}, slog.New(slog.DiscardHandler)), newPipes()}
	s.tokens.account = users.of
	ended := make(chan error, 1)
	go func() { ended <- s.network.http.Serve(s.pipes) }()
	t.Cleanup(func() {
		_ = s.Shutdown(t.Context()) // its time is over
		<-ended
	})
	return func(token string) *client.Client {
		c := s.client(func() int { return 1 << 30 })
		h := httpOf(c)
		h.Transport = presents{h.Transport, token}
		return c
	}, s, stored
}

// A watch ends, with the reason, when its token is revoked or expires, and when the user is removed or another user
// has got the uid.
func TestTokenEndsUnderAWatch(t *testing.T) {
	for name, tt := range map[string]struct {
		end    func(s *served, users accounts, id int64)
		within time.Duration
		why    string
	}{
		"revoked": {func(s *served, _ accounts, id int64) { _ = s.tokens.revoke(context.Background(), id) }, 0,
			"a revoked token"},
		"expires": {func(*served, accounts, int64) {}, 25 * time.Second, "an expired token"},
		"user removed": {func(_ *served, users accounts, _ int64) { users.change(1000, nil) }, recheck,
			"a token of a user who was removed"},
		"uid used again": {func(_ *served, users accounts, _ int64) {
			users.change(1000, &cluster.Credentials{UID: 1000, User: "eve"})
		}, recheck, "a token of a user whose uid belongs to another user"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, users := newChanging(), usual()
				d.change(jobOf(1, "first"))
				client, s, stored := overNetwork(t, d, users)
				token := stored.issue(store.Token{UID: 1000, User: "ada", Scope: "read",
					Expires: timeline.Time(time.Now().Add(25 * time.Second).UnixNano())})
				id, _, _ := api.ParseToken(token)
				raw, err := httpOf(client(token)).Get("http://bellows/v1/watch")
				if err != nil {
					t.Fatal(err)
				}
				defer raw.Body.Close()
				readEvents(t, raw.Body, 1)
				begun := time.Now()
				seen := 0
				for u, err := range client(token).Watch(t.Context(), 0) {
					if seen++; seen == 1 {
						if err != nil || len(u.Jobs) != 1 {
							t.Errorf("first %+v, %v", u, err)
						}
						synctest.Wait()
						tt.end(s, users, id)
						got := readEvents(t, raw.Body, 20)
						want := fmt.Sprintf("event: dropped\ndata: {\"reason\":\"the request has %s: token %d is not valid any more\"}",
							tt.why, id)
						if n := len(got); n < 2 || got[n-2] != want || got[n-1] != "end" || time.Since(begun) > tt.within {
							t.Errorf("after %v, sent %q", time.Since(begun), got)
						}
						continue
					}
					if api.KindOf(err) != api.NoToken {
						t.Errorf("then %+v, %v", u, err)
					}
				}
				if seen != 2 {
					t.Errorf("it yielded %d times", seen)
				}
			})
		})
	}
}

// Who waits for the end of a job with a token that is revoked is answered at once, and who follows an output does not
// take what came for the whole.
func TestTokenEndsUnderARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFake()
		d.jobs[1] = api.Job{ID: 1, UID: 1000, Owner: "ada"}
		file := filepath.Join(t.TempDir(), "stdout")
		if err := os.WriteFile(file, []byte("some"), 0o600); err != nil {
			t.Fatal(err)
		}
		d.logs = []api.LogFile{{Task: cluster.TaskID{Job: 1}, Run: 1, Stdout: file}}
		client, s, stored := overNetwork(t, d, usual())
		token := stored.issue(store.Token{UID: 1000, User: "ada", Scope: "read"})
		id, _, _ := api.ParseToken(token)
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := client(token).Wait(t.Context(), 1); api.KindOf(err) != api.NoToken ||
				!strings.Contains(err.Error(), "a revoked token") {
				t.Errorf("who waits gets %v", err)
			}
		})
		all.Go(func() {
			if n, err := client(token).Output(t.Context(), &strings.Builder{},
				api.Output{Task: cluster.TaskID{Job: 1}, Follow: true}); err == nil {
				t.Errorf("who follows gets %d bytes as a whole output", n)
			}
		})
		time.Sleep(time.Second) // of the bubble
		if err := s.tokens.revoke(t.Context(), id); err != nil {
			t.Error(err)
		}
		all.Wait()
		synctest.Wait()
		if n := len(s.tokens.open); n != 0 {
			t.Errorf("%d requests are still known", n)
		}
	})
}

// A connection over the network that sends nothing is closed.
func TestSilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, _ := overNetwork(t, newFake(), usual())
		c, err := s.pipes.connect()
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(begun) > s.network.http.ReadHeaderTimeout {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// Who may create which token, and what is refused.
func TestCreateToken(t *testing.T) {
	s, _, stored := guardedServer(t, api.Job{})
	s.tokens.named = usual().named
	create := func(uid uint32, name, body string, groups ...uint32) *httptest.ResponseRecorder {
		return askAs(s.http.Handler, operation{method: "POST", path: "/v1/tokens", body: body}, "", uid, name, groups)
	}
	const hour = `"lifetime_ns":3600000000000`
	for _, tt := range []struct {
		uid        uint32
		name, body string
		groups     []uint32
		status     int
		want       string // in the answer
	}{
		{1000, "ada", `{"scope":"read",` + hour + `}`, nil, 201, `"uid":1000,"user":"ada","scope":"read"`},
		{1000, "ada", `{"user":"ada","scope":"submit",` + hour + `}`, nil, 201, `"scope":"submit"`},
		{1000, "ada", `{"scope":"admin",` + hour + `}`, nil, 403, "scope admin: ada is no operator: must be read or submit"},
		{1000, "ada", `{"user":"op","scope":"read",` + hour + `}`, nil, 403,
			"user op: only root creates tokens for other users"},
		{4000, "op", `{"scope":"admin",` + hour + `}`, []uint32{operators}, 201, `"scope":"admin"`},
		{4000, "op", `{"user":"ada","scope":"read",` + hour + `}`, []uint32{operators}, 403, "only root"},
		{0, "root", `{"user":"ada","scope":"submit",` + hour + `}`, nil, 201, `"uid":1000,"user":"ada"`},
		{0, "root", `{"user":"ada","scope":"admin",` + hour + `}`, nil, 403, "ada is no operator"},
		{0, "root", `{"user":"op","scope":"admin",` + hour + `}`, nil, 201, `"uid":4000`},
		{0, "root", `{"user":"nope","scope":"read",` + hour + `}`, nil, 400,
			"user nope: cannot be found on this machine: user: unknown user nope"},
		{1<<32 - 9, "", `{"scope":"read",` + hour + `}`, nil, 400, "user 4294967287: has no name on this machine"},
		{1000, "ada", `{` + hour + `}`, nil, 400, "scope: must be one of read, submit, admin"},
		{1000, "ada", `{"scope":"all",` + hour + `}`, nil, 400, `must be one of read, submit, admin`},
		{1000, "ada", `{"scope":"read"}`, nil, 400, "lifetime 0s: must be from 1m0s to 8760h0m0s"},
		{1000, "ada", `{"scope":"read","lifetime_ns":31536000000000001}`, nil, 400, "must be from 1m0s to 8760h0m0s"},
	} {
		answer := create(tt.uid, tt.name, tt.body, tt.groups...)
		if answer.Code != tt.status || !strings.Contains(answer.Body.String(), tt.want) {
			t.Errorf("%s: %s: %d %s, want %d %s", tt.name, tt.body, answer.Code, answer.Body, tt.status, tt.want)
		}
	}
	var issued api.IssuedToken
	if err := json.Unmarshal(create(1000, "ada", `{"scope":"read",`+hour+`}`).Body.Bytes(), &issued); err != nil {
		t.Fatal(err)
	}
	id, secret, ok := api.ParseToken(issued.Secret)
	if kept := stored.tokens[id]; !ok || id != issued.ID || kept.Hash != hashOf(secret) ||
		strings.Contains(mustJSON(t, kept), secret) || issued.Expires.Sub(issued.Created) != time.Hour {
		t.Errorf("issued %+v, stored %+v", issued, kept)
	}
	for len(stored.tokens) < 2*mostTokens {
		if answer := create(1000, "ada", `{"scope":"read",`+hour+`}`); answer.Code == 409 {
			if !strings.Contains(answer.Body.String(), "user ada: has 100 tokens that are valid, which is the most") {
				t.Errorf("%s", answer.Body)
			}
			return
		}
	}
	t.Errorf("a user has %d tokens", len(stored.tokens))
}

// A token that is not one's own is not there; operators see and revoke all.
func TestOthersTokens(t *testing.T) {
	s, _, stored := guardedServer(t, api.Job{})
	list := operation{method: "GET", path: "/v1/tokens"}
	if text := askAs(s.http.Handler, list, "", 1000, "eve", nil).Body.String(); strings.TrimSpace(text) != "null" {
		t.Errorf("who has got the uid of ada sees %s", text)
	}
	for _, c := range callers {
		if c.groups != nil && slices.Contains(c.groups, operators) {
			if text := askAs(s.http.Handler, list, "", c.uid, c.name, c.groups).Body.String(); !strings.Contains(text,
				`"user":"ada"`) {
				t.Errorf("operator %s sees %s", c.name, text)
			}
		}
	}
	revoke := operation{method: "DELETE", path: "/v1/tokens/1"}
	if answer := askAs(s.http.Handler, revoke, "", 3000, "bob", nil); answer.Code != 404 || stored.tokens[1].Revoked != 0 {
		t.Errorf("bob gets %d %s", answer.Code, answer.Body)
	}
	if answer := askAs(s.http.Handler, revoke, "", 0, "root", nil); answer.Code != 204 || stored.tokens[1].Revoked == 0 {
		t.Errorf("root gets %d %s", answer.Code, answer.Body)
	}
}

// The groups of a user are those of the system.
func TestAccount(t *testing.T) {
	root, err := account(0)
	if err != nil {
		t.Skipf("needs a user with the uid 0: %v", err)
	}
	if again, err := accountNamed(root.User); err != nil || fmt.Sprint(again) != fmt.Sprint(root) || root.UID != 0 ||
		!slices.Contains(root.Groups, root.GID) {
		t.Errorf("root is %+v, and by its name %+v, %v", root, again, err)
	}
	if c, err := account(1<<32 - 7); err == nil {
		t.Errorf("nobody is %+v", c)
	}
}

// Whatever a header has, it is a token only if it is one in every letter, so that no two headers present the same
// token but for the case of the scheme and spaces after it.
func FuzzBearer(f *testing.F) {
	for _, text := range []string{"", "Bearer", "Bearer ", "Basic YTpi", "bearer  " + api.TokenText(7, api.NewSecret()),
		"Bearer " + api.TokenText(1<<62, api.NewSecret()), "Bearer bellows_07_" + api.NewSecret(),
		"Bearer bellows_+7_" + api.NewSecret(),
		"Bearer bellows_7_" + strings.ToUpper(api.NewSecret()), "Bearer " + api.TokenText(7, api.NewSecret()) + " ",
		"Bearer\t" + api.TokenText(7, api.NewSecret()), "Bearer bellows_99999999999999999999_" + api.NewSecret()} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, header string) {
		id, secret, ok := bearer([]string{header})
		if !ok {
			if id != 0 || secret != "" {
				t.Errorf("%q is no token, but has id %d and secret %q", header, id, secret)
			}
			return
		}
		text := api.TokenText(id, secret)
		if !strings.HasSuffix(header, " "+text) || strings.Trim(strings.TrimSuffix(header[len("Bearer"):], text),
			" ") != "" || id <= 0 || len(secret) != 52 {
			t.Errorf("%q is token %d with secret %q", header, id, secret)
		}
		if _, _, ok := bearer([]string{header, header}); ok {
			t.Errorf("%q is a token if it is there twice", header)
		}
	})
}

// Every scope has a name by which it is read again.
func TestScopes(t *testing.T) {
	for i, name := range api.ScopeNames() {
		var s api.Scope
		if err := s.UnmarshalText([]byte(name)); err != nil || s != api.ReadScope+api.Scope(i) || s.String() != name {
			t.Errorf("%s is read as %v, %v", name, s, err)
		}
	}
	for _, name := range []string{"", "root", "READ"} {
		var s api.Scope
		if err := s.UnmarshalText([]byte(name)); err == nil || scopeNamed(name) != api.NoScope {
			t.Errorf("%q is read as %v", name, s)
		}
	}
}
