package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

// pipes is a listener for connections within the process, so that a test in a bubble has its time.
type pipes struct {
	made   chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{made: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) connect() (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.made <- there:
		return here, nil
	case <-p.closed:
		return nil, syscall.ECONNREFUSED
	}
}

// served is a server that a user asks.
type served struct {
	*Server
	pipes *pipes
}

// serve serves d to a user until the test ends.
func serve(t *testing.T, d Driver, uid uint32, name string) *served {
	t.Helper()
	s := &served{New(d, &fakePools{}, fakeProfiles{}, api.Daemon{UID: 2000}, slog.New(slog.DiscardHandler)), newPipes()}
	s.http.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return asUser(ctx, uid, name)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(s.pipes) }()
	t.Cleanup(func() {
		_ = s.Shutdown(t.Context()) // its time is over
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// client returns a client whose connections break after as many bytes as most says.
func (s *served) client(most func() int) *client.Client {
	dial := func(context.Context, string, string) (net.Conn, error) {
		c, err := s.pipes.connect()
		return &breaking{c, most()}, err
	}
	return client.Over("pipe", &http.Transport{DialContext: dial, DisableKeepAlives: true})
}

// breaking is a connection that breaks after some bytes were read.
type breaking struct {
	net.Conn
	left int
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.left <= 0 {
		_ = b.Conn.Close()
		return 0, &net.OpError{Op: "read", Net: "unix", Err: syscall.ECONNRESET}
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// watch sends a request to watch on a connection of its own, and returns the answer.
func (s *served) watch(t *testing.T, query string) io.ReadCloser {
	t.Helper()
	r, err := httpOf(s.client(func() int { return 1 << 30 })).Get("http://bellows/v1/watch" + query)
	if err != nil {
		t.Fatal(err)
	}
	if kind := r.Header.Get("Content-Type"); r.StatusCode != 200 || kind != "text/event-stream" {
		t.Errorf("answered %s with %s", r.Status, kind)
	}
	return r.Body
}

// changing is a driver whose jobs change: each update is of the next revision. It knows no updates up to the revision
// forgotten.
type changing struct {
	*fake
	mu        sync.Mutex
	updates   []api.Update
	forgotten int64
	newer     chan struct{}
}

func newChanging() *changing { return &changing{fake: newFake(), newer: make(chan struct{})} }

// change makes an update of jobs.
func (c *changing) change(jobs ...api.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates = append(c.updates, api.Update{Revision: int64(len(c.updates)) + 1, Jobs: jobs})
	close(c.newer)
	c.newer = make(chan struct{})
}

func (c *changing) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten = int64(len(c.updates))
}

// now returns the jobs that have not ended.
func (c *changing) now() map[cluster.JobID]api.Job {
	jobs := map[cluster.JobID]api.Job{}
	for i := range c.updates {
		c.updates[i].Apply(jobs)
	}
	return jobs
}

func (c *changing) Changes(ctx context.Context, from int64) (api.Update, error) {
	for {
		c.mu.Lock()
		u, newer := api.Update{Revision: int64(len(c.updates))}, c.newer
		if u.Snapshot = from < max(1, c.forgotten) || from > u.Revision; u.Snapshot {
			for _, j := range c.now() {
				u.Jobs = append(u.Jobs, j)
			}
		} else {
			for _, later := range c.updates[from:] {
				u.Jobs = append(u.Jobs, later.Jobs...)
			}
		}
		c.mu.Unlock()
		if u.Snapshot || u.Revision > from {
			return u, nil
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return api.Update{}, ctx.Err()
		}
	}
}

// jobOf returns a job with changed tasks.
func jobOf(id cluster.JobID, name string, tasks ...int32) api.Job {
	j := api.Job{ID: id, Name: name, Owner: "ada", UID: 1000, Status: cluster.StatusRunning, TaskCount: 5000}
	for _, index := range tasks {
		j.Tasks = append(j.Tasks, api.Task{Task: cluster.TaskID{Job: id, Index: index}, Run: 1, Detail: name})
	}
	return j
}

// Wherever its connections break, and however much the driver forgets, a client that watches knows the jobs in the
// end, and nobody waits for it.
func TestWatchResumes(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			d := newChanging()
			s := serve(t, d, 1000, "ada")
			var mu sync.Mutex // for random and cuts
			number := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			d.change(jobOf(1, "first"))
			cuts := 0
			client := s.client(func() int {
				mu.Lock()
				defer mu.Unlock()
				if cuts++; random.IntN(8) == 0 {
					return 1 << 30
				}
				return 300 + random.IntN(3000)
			})
			ctx, cancel := context.WithCancel(t.Context())
			jobs := map[cluster.JobID]api.Job{}
			revision := int64(0)
			var watcher sync.WaitGroup
			watcher.Go(func() {
				for u, err := range client.Watch(ctx, 0) {
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					if u.Revision < revision {
						t.Errorf("revision %d after %d", u.Revision, revision)
					}
					revision = u.Revision
					u.Apply(jobs)
					time.Sleep(time.Duration(number(3)) * 50 * time.Millisecond)
				}
			})
			for range 60 {
				id := cluster.JobID(1 + number(8))
				j := jobOf(id, fmt.Sprint("name", number(1000)), int32(number(3)), int32(3+number(3)))
				if j.Ended = number(4) == 0; number(20) == 0 {
					j.Name = strings.Repeat("long", 1000)
				}
				d.change(j)
				if number(10) == 0 {
					d.forget()
				}
				time.Sleep(time.Duration(number(300)) * time.Millisecond)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			got, _ := json.Marshal(jobs) // Maps are written in the order of their keys.
			want, _ := json.Marshal(d.now())
			if !bytes.Equal(got, want) || revision != 61 {
				t.Errorf("seed %d: at revision %d the client knows\n%s, want\n%s", seed, revision, got, want)
			}
			t.Logf("%d connections", cuts)
			cancel()
			watcher.Wait()
		})
	}
}

// readEvents reads as many events as most, or "end" in place of the first that does not come.
func readEvents(t *testing.T, from io.Reader, most int) (all []string) {
	t.Helper()
	var text bytes.Buffer
	for len(all) < most {
		part := make([]byte, 1)
		if _, err := from.Read(part); err != nil {
			return append(all, "end")
		}
		text.Write(part)
		if strings.HasSuffix(text.String(), "\n\n") {
			all = append(all, strings.TrimSpace(text.String()))
			text.Reset()
		}
	}
	return all
}

// What is sent are server-sent events: updates with the revision as id, a comment now and then, and at last why they
// end.
func TestWatchedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newChanging()
		s := serve(t, d, 1000, "ada")
		d.change(jobOf(1, "first"))
		d.change(jobOf(2, "second", 3))
		from := s.watch(t, "?from=1")
		begun := time.Now()
		if got := readEvents(t, from, 1); !strings.HasPrefix(got[0],
			"event: update\nid: 2\ndata: {\"revision\":2,\"jobs\":[{\"id\":2,") || !strings.Contains(got[0], `"index":3}`) {
			t.Errorf("sent %q", got)
		}
		if got := readEvents(t, from, 1); got[0] != ":" || time.Since(begun) != watchPace+heartbeat {
			t.Errorf("after %v, sent %q", time.Since(begun), got)
		}
		d.change(jobOf(1, "first again"))
		if got := readEvents(t, from, 1); !strings.HasPrefix(got[0], "event: update\nid: 3\n") {
			t.Errorf("sent %q", got)
		}
		d.change(jobOf(1, "not seen"))
		d.change(jobOf(2, "not seen either"))
		d.forget()
		if got := readEvents(t, from, 3); len(got) != 2 ||
			!strings.HasPrefix(got[0], "event: dropped\ndata: {\"reason\":\"too slow: ") || got[1] != "end" {
			t.Errorf("sent %q", got)
		}
		again := s.watch(t, "?from=3")
		if got := readEvents(t, again, 1); !strings.HasPrefix(got[0],
			"event: update\nid: 5\ndata: {\"revision\":5,\"snapshot\":true,") {
			t.Errorf("sent %q", got)
		}
		s.leave()
		if got := readEvents(t, again, 3); len(got) != 2 ||
			!strings.HasPrefix(got[0], "event: dropped\ndata: {\"reason\":\"the daemon ends") {
			t.Errorf("sent %q", got)
		}
	})
}

// A client of server-sent events that connects again says what it knows in a header.
func TestLastEventID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newChanging()
		s := serve(t, d, 1000, "ada")
		for range 5 {
			d.change(jobOf(1, "first"))
		}
		for id, want := range map[string]string{"": "snapshot", "4": "id: 5",
			"x": "Last-Event-ID \"x\": must be an integer"} {
			request, _ := http.NewRequest("GET", "http://bellows/v1/watch?from=0", nil)
			request.Header.Set("Last-Event-ID", id)
			r, err := httpOf(s.client(func() int { return 1 << 30 })).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, 1000)
			n, _ := r.Body.Read(text)
			if got := string(text[:n]); !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), want) || id == "4" &&
				strings.Contains(got, "snapshot") {
				t.Errorf("after %q, sent %q", id, got)
			}
			r.Body.Close()
		}
	})
}

// A client that does not read is cut off, and holds up nobody: neither the driver nor other clients.
func TestSlowWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newChanging()
		s := serve(t, d, 1000, "ada")
		d.change(jobOf(1, "first"))
		for range s.watchers.share() {
			c, err := s.pipes.connect()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() { _, _ = io.WriteString(c, "GET /v1/watch HTTP/1.1\r\nHost: bellows\r\n\r\n") }()
		}
		synctest.Wait()
		for u, err := range s.client(func() int { return 1 << 30 }).Watch(t.Context(), 0) {
			if api.KindOf(err) != api.Unavailable {
				t.Errorf("one more watcher gets %+v, %v", u, err)
			}
		}
		begun := time.Now()
		for range 100 {
			d.change(jobOf(1, strings.Repeat("much", 1000)))
		}
		if took := time.Since(begun); took != 0 || s.watchers.count() != s.watchers.share() {
			t.Errorf("100 changes took %v, with %d watchers", took, s.watchers.count())
		}
		time.Sleep(watchPatience + time.Second)
		synctest.Wait()
		if n := s.watchers.count(); n != 0 {
			t.Errorf("%d watchers that do not read are still served", n)
		}
		for u, err := range s.client(func() int { return 1 << 30 }).Watch(t.Context(), 0) {
			if err != nil || !u.Snapshot {
				t.Errorf("the next watcher gets %+v, %v", u, err)
			}
			break
		}
	})
}

// Large updates are sent in parts; only the last has the revision as id.
func TestPartsOfUpdates(t *testing.T) {
	var tasks []int32
	for i := range int32(2500) {
		tasks = append(tasks, i)
	}
	whole := api.Update{Revision: 9, Snapshot: true, Jobs: []api.Job{jobOf(1, "few", 1, 2), jobOf(2, "many", tasks...),
		jobOf(3, "none")}}
	all := parts(whole)
	jobs, want := map[cluster.JobID]api.Job{7: {}}, map[cluster.JobID]api.Job{}
	for i, part := range all {
		n := len(part.Jobs)
		for _, j := range part.Jobs {
			n += len(j.Tasks)
		}
		if part.Revision != 9 || part.Snapshot != (i == 0) || part.More != (i < len(all)-1) || n > inEvent+1 {
			t.Errorf("part %d of %d: snapshot %v, more %v, %d jobs and tasks", i, len(all), part.Snapshot, part.More, n)
		}
		part.Apply(jobs)
	}
	whole.Apply(want)
	got, _ := json.Marshal(jobs)
	if text, _ := json.Marshal(want); !bytes.Equal(got, text) || len(all) != 3 {
		t.Errorf("%d parts are %.300s, want %.300s", len(all), got, text)
	}
	if none := parts(api.Update{Revision: 9, Snapshot: true}); len(none) != 1 || none[0].More || !none[0].Snapshot {
		t.Errorf("nothing is %+v", none)
	}
}

// Who watches sees of the jobs of others what lists show.
func TestWatchersSeeNoNamesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newChanging()
		d.change(jobOf(1, "secret", 1))
		for _, user := range []struct {
			uid   uint32
			name  string
			other bool
		}{{0, "root", false}, {1000, "ada", false}, {1000, "eve", true}, {2000, "daemon", false}, {3000, "bob", true}} {
			s := serve(t, d, user.uid, user.name)
			for u, err := range s.client(func() int { return 1 << 30 }).Watch(t.Context(), 0) {
				text, _ := json.Marshal(u)
				want := 2 // its name, and what a task says
				if user.other {
					want = 0
				}
				if err != nil || len(u.Jobs) != 1 || len(u.Jobs[0].Tasks) != 1 || strings.Count(string(text), "secret") != want {
					t.Errorf("user %+v gets %s, %v", user, text, err)
				}
				break
			}
		}
	})
}

// Who wants the state of the machine gets it at first and then about every second, whether jobs change or not, and is
// told when the daemon ends. Of the tasks of others it has no texts.
func TestWatchMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newChanging()
		d.tasks = []api.Task{{Task: cluster.TaskID{Job: 1}, Owner: api.Owner{UID: 1000, Name: "ada"}, Run: 1,
			Detail: "secret", Usage: &cluster.Reading{Anonymous: new(int64(5)), Why: "secret"}}}
		d.change(jobOf(1, "first"))
		for _, user := range []struct {
			uid   uint32
			name  string
			texts int
		}{{1000, "ada", 2}, {3000, "bob", 0}} {
			s := serve(t, d, user.uid, user.name)
			begun, machines, updates := time.Now(), 0, 0
			for seen, err := range s.client(func() int { return 1 << 30 }).WatchMachine(t.Context(), 0) {
				if err != nil {
					t.Error(err)
					break
				}
				if seen.Lost != nil {
					if machines != 3 || !strings.Contains(seen.Lost.Error(), "the daemon ends") {
						t.Errorf("after %d events: %v", machines, seen.Lost)
					}
					break
				}
				if seen.Update != nil {
					updates++
					d.change(jobOf(1, fmt.Sprint("change ", updates)))
					continue
				}
				text, _ := json.Marshal(seen.Machine)
				at, usual := time.Since(begun), time.Duration(machines)*machinePace
				if m := seen.Machine; m.Status.Policy != "fair" || m.At.Year() != 2030 || len(m.Tasks) != 1 ||
					*m.Tasks[0].Usage.Anonymous != 5 ||
					strings.Count(string(text), "secret") != user.texts || at < usual-machinePace/2 || at > usual+machinePace/2+
					watchPace {
					t.Errorf("%s gets %s after %v", user.name, text, at)
				}
				if machines++; machines == 3 {
					s.leave()
				}
			}
			if updates < 14 || updates > 27 {
				t.Errorf("%s gets %d updates in about two seconds", user.name, updates)
			}
		}
	})
}

// While nothing changes, the state of the machine is sent all the same, and nothing else.
func TestWatchQuietMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newChanging()
		d.change(jobOf(1, "first"))
		from, begun := serve(t, d, 1000, "ada").watch(t, "?from=1&machine=true"), time.Now()
		defer from.Close()
		for i, got := range readEvents(t, from, 3) {
			if !strings.HasPrefix(got, "event: machine\ndata: {\"status\":{\"version\":") {
				t.Errorf("event %d is %q", i, got)
			}
		}
		if took := time.Since(begun); took != 2*machinePace {
			t.Errorf("three events took %v", took)
		}
	})
}

// The answer begins at once, although nothing changes: a client with a limit for the first byte would give up.
func TestWatchBeginsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newChanging()
		d.change(jobOf(1, "first"))
		begun := time.Now()
		defer serve(t, d, 1000, "ada").watch(t, "?from=1").Close()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the answer began after %v", took)
		}
	})
}

// Whenever clients have begun to watch, the state of the machine is sent to all of them at the same times.
func TestMachineAtTheSameTimes(t *testing.T) {
	second := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for after, want := range map[time.Duration]time.Duration{0: time.Second, 499 * time.Millisecond: time.Second,
		500 * time.Millisecond: 2 * time.Second, 999 * time.Millisecond: 2 * time.Second} {
		if got := nextMachine(second.Add(after)).Sub(second); got != want {
			t.Errorf("after %v, it is sent at %v, want %v", after, got, want)
		}
	}
}

// What is sent about a machine is as the document of the API says.
func TestMachineIsAsDescribed(t *testing.T) {
	d := asDescribed(t, New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{},
		slog.New(slog.DiscardHandler)).http.Handler)
	for _, set := range []func(reflect.Value){func(reflect.Value) {}, fill} {
		var m api.Machine
		set(reflect.ValueOf(&m).Elem())
		text, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if err := conforms(d.doc.Components.Schemas["Machine"].Value, text); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	}
}
