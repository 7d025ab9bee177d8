package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// asCaller returns a request as it arrives over a socket from some user.
func asCaller(method, address string, body io.Reader) *http.Request {
	r := httptest.NewRequest(method, "http://bellows/", body)
	path, query, _ := strings.Cut(address, "?")
	r.URL.Path, r.URL.RawQuery = path, query
	return r.WithContext(asUser(r.Context(), 1000, "ada"))
}

// asUser returns the context of a request from a user and the groups of the user, the first of which is that of the
// same number.
func asUser(ctx context.Context, uid uint32, name string, groups ...uint32) context.Context {
	return context.WithValue(ctx, peerKey{}, cluster.Credentials{UID: uid, GID: uid, User: name, Groups: groups})
}

// An empty JSON value takes memory, too: the number of values is bounded as well as the number of bytes.
func TestBodyOfManyValues(t *testing.T) {
	handler := New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{}, slog.New(slog.DiscardHandler)).http.Handler
	objects := `{"dir":"/","stages":[{}` + strings.Repeat(",{}", mostValues) + `]}`
	texts := `{"dir":"/","stages":[{"args":[""` + strings.Repeat(`,""`, mostValues) + `]}]}`
	commas := `{"dir":"/","stages":[{"args":["a` + strings.Repeat(`,[{\"`, mostValues) + `"]}]}`
	for body, refused := range map[string]bool{objects: true, texts: true, commas: false} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, asCaller("POST", "/v1/jobs", strings.NewReader(body)))
		const why = "request body: must hold at most 200000 values, but holds "
		if got := strings.Contains(answer.Body.String(), why); got != refused || (answer.Code == 201) == refused {
			t.Errorf("%.50s: %d %s", body, answer.Code, answer.Body)
		}
	}
}

// Of several large bodies, the next is read when the one before has been answered; small bodies pass.
func TestLargeBodiesWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newOperations("test", "1", "", guard{})
		working, most := 0, 0
		let := make(chan struct{})
		register(a, anyone, "POST", "/large", "large", "", 204, func(_ context.Context, in *body[[]string]) (*struct{},
			error) {
			working++
			most = max(most, working)
			if len(in.Body) > 0 {
				<-let
			}
			working--
			return nil, nil
		})
		large := `["` + strings.Repeat("x", smallBody) + `"]`
		codes := make(chan int, 10)
		send := func(body string) {
			answer := httptest.NewRecorder()
			a.mux.ServeHTTP(answer, httptest.NewRequest("POST", "/large", strings.NewReader(body)))
			codes <- answer.Code
		}
		for range 3 {
			go send(large)
		}
		synctest.Wait()
		if working != 1 {
			t.Errorf("%d large bodies are at work", working)
		}
		send("[]")
		if code := <-codes; code != 204 {
			t.Errorf("a small body was answered %d", code)
		}
		for range 3 {
			let <- struct{}{}
			if code := <-codes; code != 204 {
				t.Errorf("a large body was answered %d", code)
			}
		}
		if most > 2 {
			t.Errorf("%d bodies, one of them small, were processed at once", most)
		}
		// A caller whose turn does not come gets an error.
		go send(large)
		synctest.Wait()
		send(large)
		if code := <-codes; code != 503 {
			t.Errorf("a large body whose turn does not come was answered %d", code)
		}
		let <- struct{}{}
		<-codes
	})
}

// A request that hits a bug is answered and logged with the place of the bug; the daemon survives.
func TestBug(t *testing.T) {
	var log bytes.Buffer
	d := &buggy{fake: newFake()}
	s := New(d, &fakePools{}, fakeProfiles{}, api.Daemon{}, slog.New(slog.NewTextHandler(&log, nil)))
	answer := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(answer, asCaller("GET", "/v1/status", nil))
	var e api.Error
	if err := json.Unmarshal(answer.Body.Bytes(), &e); err != nil || answer.Code != 500 || e.Kind != api.Internal ||
		e.Message != "GET /v1/status: hit a bug of bellows, which the daemon's log describes" {
		t.Errorf("%d %s, %v", answer.Code, answer.Body, err)
	}
	for _, want := range []string{"level=ERROR", "no such thing", "body_test.go", "path=/v1/status"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not hold %q: %s", want, &log)
		}
	}
	if strings.Count(strings.TrimSpace(log.String()), "\n") > 0 {
		t.Errorf("the log entry is more than one line: %s", &log)
	}
}

type buggy struct{ *fake }

func (*buggy) Status(context.Context) (api.ClusterStatus, error) {
	panic("no such thing")
}

// Every request is answered: as the API describes, or with an Error of one line that is no bug of ours.
func FuzzRequests(f *testing.F) {
	f.Add("POST", "/v1/jobs",
		`{"dir":"/","stages":[{"tasks":1,"cpu_millicores":1,"args":["true"],"elasticity":{"kind":1}}]}`)
	f.Add("POST", "/v1/jobs", `{"stages":[{"elasticity":{"kind":"points","points":[{"memory_bytes":1e300}]}}]}`)
	f.Add("POST", "/v1/jobs", `{"class":{"a":[]},"weight":"x","stages":{}}`)
	f.Add("PUT", "/v1/profiles/a b", `{"ideal_memory_bytes":-1,"elasticity":{"kind":[]}}`)
	f.Add("PUT", "/v1/profiles/\x1b[2J", `{}`)
	f.Add("GET", "/v1/jobs/9223372036854775808?ended=1", "")
	f.Add("GET", "/v1/tasks/1.-2.3/output?from=-1&follow=x", "")
	f.Add("DELETE", "/v1/jobs/1", "\x00")
	handler := New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{}, slog.New(slog.DiscardHandler)).http.Handler
	f.Fuzz(func(t *testing.T, method, address, body string) {
		if strings.Contains(address, "ended") || strings.Contains(address, "follow") {
			return // waits for input that does not come
		}
		r := asCaller("GET", address, strings.NewReader(body))
		r.Method = method
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		if answer.Code < 400 {
			return
		}
		var e api.Error
		if err := json.Unmarshal(answer.Body.Bytes(), &e); err != nil || e.Message == "" ||
			strings.Contains(e.Message, "bug of bellows") || strings.Contains(e.Message, "\n") {
			t.Errorf("%s %q %q: %d %s, %v", method, address, body, answer.Code, answer.Body, err)
		}
	})
}

// One user who sends large bodies over many connections does not keep the body of another user waiting for more than
// one of them.
func TestUsersTakeTurnsWithLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newOperations("test", "1", "", guard{})
		var order []uint32
		let := make(chan struct{})
		register(a, anyone, "POST", "/large", "large", "", 204, func(ctx context.Context, _ *body[[]string]) (*struct{},
			error) {
			order = append(order, ctx.Value(peerKey{}).(cluster.Credentials).UID)
			<-let
			return nil, nil
		})
		send := func(uid uint32) {
			r := httptest.NewRequest("POST", "/large", strings.NewReader(`["`+strings.Repeat("x", smallBody)+`"]`))
			a.mux.ServeHTTP(httptest.NewRecorder(), r.WithContext(asUser(r.Context(), uid, "a user")))
		}
		for range 10 {
			go send(1000)
		}
		synctest.Wait()
		go send(2000)
		synctest.Wait()
		for range 11 {
			let <- struct{}{}
			synctest.Wait()
		}
		if len(order) != 11 || order[0] != 1000 || order[1] != 2000 {
			t.Errorf("bodies came in this order: %v", order)
		}
	})
}
