package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// every operation about pool p, except for the list of all.
func poolRequests(t *testing.T) (all []operation) {
	for _, o := range eachOperation(t) {
		if strings.HasPrefix(o.path, "/v1/pools/") {
			all = append(all, o)
		}
	}
	if len(all) != 10 {
		t.Fatalf("%d operations", len(all))
	}
	return all
}

// Another user neither registers an executor nor attaches an application, neither sees a pool nor reads what passes,
// whatever the request names; and the answer does not tell whether there is such a pool. Operators do all that if
// they say whose pool it is.
func TestPoolsOfOthers(t *testing.T) {
	for _, o := range poolRequests(t) {
		for who, c := range callers {
			operates := strings.HasSuffix(who, "operator")
			for _, pool := range []string{"p", "q"} {
				h, _ := guarded(t, api.Job{})
				asked := o
				asked.path, asked.body = strings.Replace(o.path, "/pools/p", "/pools/"+pool, 1),
					strings.Replace(o.body, `"p"`, `"`+pool+`"`, 1)
				answer := askAs(h, asked, "?user=ada", c.uid, c.name, c.groups)
				var e api.Error
				_ = json.Unmarshal(answer.Body.Bytes(), &e)
				switch {
				case c.name == "ada" && c.uid == 1000, operates:
					if (answer.Code < 300) != (pool == "p" || o.id == "put-pool" && !operates) {
						t.Errorf("%s of pool %s of ada by %s: %d %s", o.id, pool, who, answer.Code, answer.Body)
					}
				case c.name == "ada": // of another uid: it is asked for its own
					if o.id != "put-pool" && answer.Code != 404 {
						t.Errorf("%s of pool %s by %s: %d %s", o.id, pool, who, answer.Code, answer.Body)
					}
				case e.Kind != api.Denied || e.Message != `user "ada": only this user and operators may see these pools`:
					t.Errorf("%s of pool %s of ada by %s: %d %s", o.id, pool, who, answer.Code, answer.Body)
				}
				if strings.Contains(answer.Body.String(), secret) &&
					(!operates && who != "ada, owner" || strings.Contains(answer.Body.String(), secret+"env")) {
					t.Errorf("%s of pool %s by %s: %s", o.id, pool, who, answer.Body)
				}
			}
		}
	}
}

// Everybody lists their own pools, an operator those of all, or of one user. None has the environment of executors.
func TestListOfPools(t *testing.T) {
	h, _ := guarded(t, api.Job{})
	list := operation{method: "GET", path: "/v1/pools"}
	for _, tt := range []struct {
		uid   uint32
		name  string
		query string
		n     int
	}{{1000, "ada", "", 1}, {1000, "eve", "", 0}, {3001, "ada", "", 0}, {3000, "bob", "", 0}, {0, "root", "", 1},
		{0, "root", "?user=ada", 1}, {0, "root", "?user=bob", 0}} {
		var got []api.PoolSummary
		answer := askAs(h, list, tt.query, tt.uid, tt.name, nil)
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || len(got) != tt.n ||
			strings.Contains(answer.Body.String(), secret+"env") {
			t.Errorf("%s%s: %d %s", tt.name, tt.query, answer.Code, answer.Body)
		}
	}
	if answer := askAs(h, list, "?user=ada", 3000, "bob", nil); answer.Code != 403 {
		t.Errorf("bob: %d %s", answer.Code, answer.Body)
	}
}

// The address names the pool; a pool is made by, and belongs to, whoever asks.
func TestPutPool(t *testing.T) {
	l := &fakePools{}
	s := New(newFake(), l, newFakeStore(), api.Daemon{UID: daemonUser}, slog.New(slog.DiscardHandler))
	put := func(body string) int {
		return askAs(s.http.Handler, operation{method: "PUT", path: "/v1/pools/q", body: body}, "", 1000, "ada",
			[]uint32{100}).Code
	}
	if code := put(`{"name":"other","max":1,"ideal_memory_bytes":1}`); code != 400 || len(l.by) > 0 {
		t.Errorf("another name: %d", code)
	}
	if code := put(`{"name":"q","max":3,"ideal_memory_bytes":1,"env":["A=b"]}`); code != 200 {
		t.Errorf("%d", code)
	}
	r := api.PoolRef{UID: 1000, User: "ada", Name: "q"}
	if d := l.all[r]; d.Spec.Name != "q" || d.Spec.Max != 3 || d.Spec.Env[0] != "A=b" || l.by[0].UID != 1000 ||
		l.by[0].Groups[0] != 100 {
		t.Errorf("%+v by %+v", l.all, l.by)
	}
}

// startPool begins a real pool, whose executors have the secret "secret".
func startPool(t testing.TB, c pool.Config) *pool.Pool {
	t.Helper()
	var err error
	if c.Policy, err = policy.New("mira", nil); err != nil {
		t.Fatal(err)
	}
	c.Name, c.Log = "p", slog.New(slog.DiscardHandler)
	c.Verify = func(_ int, secret string) bool { return secret == "secret" }
	p := pool.Start(c)
	t.Cleanup(p.Close)
	return p
}

// ownPool serves pool p of the user of this test.
func ownPool(t testing.TB, h http.Handler) *fakePools {
	t.Helper()
	me := api.OwnerOf(cluster.Credentials{UID: uint32(os.Getuid()), User: users.name(uint32(os.Getuid()))})
	r := api.PoolRef{UID: me.UID, User: me.Name, Name: "p"}
	return &fakePools{all: map[api.PoolRef]api.PoolDetail{r: {PoolSummary: api.PoolSummary{PoolRef: r}}}, handler: h}
}

// servePools serves pools on a socket, to at most most connections that are not of executors.
func servePools(t *testing.T, l Pools, most int) (s *Server, socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := Listen(socket, Door{})
	if err != nil {
		t.Fatal(err)
	}
	s = New(newFake(), l, newFakeStore(), api.Daemon{UID: uint32(os.Getuid())}, slog.New(slog.DiscardHandler))
	s.http.Handler = asDescribed(t, s.http.Handler)
	s.connections.most = most
	serveUntilEnd(t, s, func() error { return s.Serve(listener) })
	return s, socket
}

// The library works over the API as over a pool alone: 112 executors of one user and its applications get all
// results, while the user has 12 connections that are no executors'. Answers and requests are as the document says.
func TestExecutorsOverTheAPI(t *testing.T) {
	p := startPool(t, pool.Config{Grace: time.Millisecond})
	s, socket := servePools(t, ownPool(t, p.Handler()), 12)
	ctx, cancel := context.WithCancel(t.Context())
	var executors sync.WaitGroup
	defer executors.Wait()
	defer cancel()
	const many, applications, tasks = 112, 3, 60
	for number := range many {
		executors.Go(func() {
			e := &executor.Executor{Socket: socket, Pool: "p", Number: number, Secret: "secret",
				Functions: map[string]executor.Function{
					"double": func(_ context.Context, a []byte) ([]byte, error) { return append(a, a...), nil }}}
			if err := e.Run(ctx); ctx.Err() == nil {
				t.Errorf("executor %d: %v", number, err)
			}
		})
	}
	var all sync.WaitGroup
	for number := range applications {
		all.Go(func() {
			a, err := executor.Enrol(ctx, executor.ApplicationConfig{Socket: socket, Pool: "p",
				Enrolment: executor.Enrolment{Name: fmt.Sprint(number)}})
			if err != nil {
				t.Error(err)
				return
			}
			large := strings.Repeat("x", 100<<10) // waits for room
			arguments := make([][]byte, tasks)
			for i := range arguments {
				arguments[i] = []byte(fmt.Sprint(i, large))
			}
			got, err := runAll(ctx, a, arguments)
			if err != nil || got != tasks {
				t.Errorf("application %d: %d results, %v", number, got, err)
			}
		})
	}
	all.Wait()
	for v := (pool.View{}); len(v.Executors) < many; {
		var err error
		if v, err = p.View(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.New(socket).Status(ctx); err != nil { // another program
		t.Error(err)
	}
	if n := s.connections.countExecutors(); n < many {
		t.Errorf("%d connections of executors", n)
	}
	if n := s.messageRoom.taken; n != 0 {
		t.Errorf("%d bytes are still arriving", n)
	}
}

// runAll submits a task with each of the arguments, and returns how many right results there are.
func runAll(ctx context.Context, a *executor.Application, arguments [][]byte) (n int, err error) {
	stage := a.NewStage(executor.Stage{Function: "double"})
	grown := make(chan error, 1)
	go func() {
		grown <- a.Grow(ctx, stage, arguments...)
		a.Close()
	}()
	for {
		some, err := a.Collect(ctx)
		for _, o := range some {
			if want := string(arguments[o.Task]); !o.Failed && string(o.Payload) == want+want {
				n++
			}
		}
		if err == io.EOF {
			return n, <-grown
		}
		if err != nil {
			return n, err
		}
	}
}

// A wrong secret, a lease that has ended, an unknown application and a full pool are problems with a kind; a pool
// that ends, too.
func TestRefusalsOfPools(t *testing.T) {
	p := startPool(t, pool.Config{Grace: time.Millisecond, Room: 1 << 10})
	_, socket := servePools(t, ownPool(t, p.Handler()), 100)
	c := client.New(socket)
	send := func(path string, head any, payload int) error {
		text, err := executor.Encode(head, make([]byte, payload))
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest("POST", "http://bellows/v1/pools/p"+path, strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := sent(c, r)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	app, err := p.Enrol(t.Context(), executor.Enrolment{Key: "the key of an application"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path    string
		head    any
		payload int
		want    api.Kind
	}{
		{"/executors", executor.Registration{Executor: 1, Secret: "guessed"}, 0, api.Denied},
		{"/executors", executor.Registration{Executor: -1, Secret: "secret"}, 0, api.Invalid},
		{"/executors", "text", 0, api.Invalid},
		{"/executors/x/next", executor.Next{}, 0, api.Invalid},
		{"/executors/1/next", executor.Next{Lease: "guessed"}, 0, api.Gone},
		{"/applications/1/results", executor.Collect{Lease: "guessed"}, 0, api.Gone},
		{"/applications/1/tasks",
			executor.Growth{Lease: app.Lease, Number: 1, Stages: []executor.StageGrowth{{Function: "f", Sizes: []int{900}}}},
			900, 0},
		{"/applications/1/tasks",
			executor.Growth{Lease: app.Lease, Number: 2, Stages: []executor.StageGrowth{{Function: "f", Sizes: []int{900}}}},
			900, api.OverQuota},
	} {
		if err := send(tt.path, tt.head, tt.payload); api.KindOf(err) != tt.want || tt.want == 0 && err != nil ||
			tt.want != 0 && err.Error() == "" {
			t.Errorf("%s %+v: %v %v, want %v", tt.path, tt.head, api.KindOf(err), err, tt.want)
		}
	}
}

// Whatever values a pool or a message has, they are as described.
func TestPoolsAreAsDescribed(t *testing.T) {
	d := asDescribed(t, New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{},
		slog.New(slog.DiscardHandler)).http.Handler)
	for name, value := range map[string]any{"PoolDetail": new(api.PoolDetail), "PoolSummary": new(api.PoolSummary),
		"PoolSpec": new(api.PoolSpec), "Registration": new(executor.Registration), "Lease": new(executor.Lease),
		"Next": new(executor.Next), "Work": new(executor.Work), "Beat": new(executor.Beat),
		"BeatAnswer": new(executor.BeatAnswer),
		"Enrolment":  new(executor.Enrolment), "Growth": new(executor.Growth), "Room": new(executor.Room),
		"Collect": new(executor.Collect), "Results": new(executor.Results), "Cancellation": new(executor.Cancellation)} {
		for _, filled := range []bool{false, true} {
			if v := reflect.ValueOf(value).Elem(); filled {
				fill(v)
			}
			if err := conforms(d.doc.Components.Schemas[name].Value, []byte(mustJSON(t, value))); err != nil {
				t.Errorf("%s: %v: %s", name, err, mustJSON(t, value))
			}
		}
	}
}

// A request that waits for work or for results ends at once when the daemon ends, and says that the next daemon
// answers it.
func TestPollsEndWithTheDaemon(t *testing.T) {
	p := startPool(t, pool.Config{Grace: time.Millisecond})
	lease, err := p.Register(t.Context(), executor.Registration{Executor: 1, Secret: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	app, err := p.Enrol(t.Context(), executor.Enrolment{Key: "the key of an application"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var came atomic.Int32
	handler := p.Handler()
	s, socket := servePools(t, ownPool(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came.Add(1)
		handler.ServeHTTP(w, r)
	})), 100)
	c := client.New(socket)
	ended := make(chan error, 2)
	for path, head := range map[string]any{"/executors/1/next": executor.Next{Lease: lease.Lease},
		fmt.Sprintf("/applications/%d/results", app.Application): executor.Collect{Lease: app.Lease}} {
		go func() { ended <- sendMessage(c, "POST", "/v1/pools/p"+path, head) }()
	}
	for came.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	begun := time.Now()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-ended; api.KindOf(err) != api.Unavailable || err.Error() != errLeaving.Message {
			t.Errorf("%v", err)
		}
	}
	if took := time.Since(begun); took > pool.DefaultPoll/4 {
		t.Errorf("it took %v", took)
	}
}

// Executors do not take the connections of anybody, within bounds of their own.
func TestExecutorsHaveConnectionsOfTheirOwn(t *testing.T) {
	s := newConnections(4, 2000)
	s.mostExecutors = 6
	enter := func(uid uint32) (*connection, error) {
		here, _ := pair(t)
		return s.enter(here, party{uid: uid}, nil)
	}
	var first *connection
	for range 3 { // half of those of executors
		c, err := enter(7)
		if err != nil {
			t.Fatal(err)
		}
		c.excuse()
		c.excuse()
		s.follow(c, http.StateIdle)
		first = c
	}
	for range 2 { // half of the others
		c, err := enter(7)
		if err != nil {
			t.Fatal(err)
		}
		c.excuse() // no room
	}
	if _, err := enter(7); err != errShare {
		t.Errorf("%v", err)
	}
	for range 2 {
		if _, err := enter(8); err != nil {
			t.Error(err)
		}
	}
	if open, _ := s.count(); open != 4 || s.countExecutors() != 3 {
		t.Errorf("%d and %d are open", open, s.countExecutors())
	}
	_ = first.Close()
	_ = first.Close()
	if open, _ := s.count(); open != 4 || s.countExecutors() != 2 || s.ofExecutors[party{uid: 7}] != 2 {
		t.Errorf("%d and %d are open", open, s.countExecutors())
	}
	for descriptors, want := range map[uint64]int{0: 0, 1024: 128, 1 << 20: 2048} {
		if got := executorsFor(descriptors); got != want {
			t.Errorf("%d with %d descriptors", got, descriptors)
		}
	}
}

// Messages of more than 64 KiB wait for room: one user has that of the largest message, and keeps nobody else waiting.
func TestRoomForMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMessageRoom(2000)
		take := func(uid uint32, bytes int64) (err error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return m.await(ctx, uid, bytes)
		}
		for _, uid := range []uint32{7, 8} {
			if err := take(uid, pool.MostMessage-10); err != nil {
				t.Error(err)
			}
			if err := take(uid, 11); err != context.DeadlineExceeded {
				t.Errorf("beyond its share: %v", err)
			}
		}
		for range 2 {
			if err := take(0, pool.MostMessage); err != nil {
				t.Error(err)
			}
		}
		if err := take(9, 100); err != context.DeadlineExceeded {
			t.Errorf("beyond all: %v", err)
		}
		begun := time.Now()
		time.AfterFunc(5*time.Second, func() { m.give(7, pool.MostMessage-10) })
		if err := m.await(t.Context(), 9, 100); err != nil || time.Since(begun) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if err := m.await(t.Context(), 8, 11); api.KindOf(err) != api.Unavailable || time.Since(begun) != 5*time.Second+
			bodyTurn {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// A message that does not arrive ends in time, and takes no room after that; the wait for the answer has no deadline.
func TestMessageThatDoesNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ownPool(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var head executor.Next
			if _, err := executor.Read(r.Body, pool.MostMessage, r.ContentLength, &head); err != nil {
				http.Error(w, err.Error(), 400)
				return
			}
			time.Sleep(time.Hour)
			stubAnswers(w, r)
		}))
		s := New(newFake(), l, newFakeStore(), api.Daemon{}, slog.New(slog.DiscardHandler))
		s.http.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			for r := range l.all {
				ctx = asUser(ctx, r.UID, r.User)
			}
			return ctx
		}
		for _, tt := range []struct{ body, want string }{{"{", "HTTP/1.1 400 "},
			{"{}" + strings.Repeat("\n", 99_998), "HTTP/1.1 200 "}} {
			here, there := net.Pipe()
			go func() { _ = s.http.Serve(&oneConnection{conn: there, closed: make(chan struct{})}) }()
			go func() {
				_, _ = io.WriteString(here,
					"POST /v1/pools/p/executors/1/next HTTP/1.1\r\nHost: bellows\r\nContent-Length: 100000\r\n\r\n"+tt.body)
			}()
			begun := time.Now()
			line, err := bufio.NewReader(here).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, tt.want) || s.messageRoom.taken != 0 {
				t.Errorf("%q, %v, after %v, %d", line, err, time.Since(begun), s.messageRoom.taken)
			}
			here.Close()
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
