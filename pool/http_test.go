package pool_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// post sends a message to the handler of a pool, and reads the answer into out.
func post(t *testing.T, h http.Handler, path string, message []byte, out any) (status int, payload []byte) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, bytes.NewReader(message)))
	if w.Code != http.StatusOK {
		return w.Code, w.Body.Bytes()
	}
	payload, err := executor.Decode(w.Body.Bytes(), out)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, payload
}

func message(t *testing.T, head any, payload ...[]byte) []byte {
	t.Helper()
	m, err := executor.Encode(head, payload...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A task goes over HTTP from its application to an executor, and its result back.
func TestHandler(t *testing.T) {
	h := start(t, nil).Handler()
	var a, e executor.Lease
	if status, text := post(t, h, "/applications", message(t, executor.Enrolment{Key: "0123456789abcdef"}),
		&a); status != 200 {
		t.Fatalf("enrol: %d %s", status, text)
	}
	if status, text := post(t, h, "/executors", message(t, executor.Registration{Executor: 7, Secret: "secret"}),
		&e); status != 200 {
		t.Fatalf("register: %d %s", status, text)
	}
	g := executor.Growth{Lease: a.Lease, Number: 1, Stages: []executor.StageGrowth{{Function: "f", Sizes: []int{3, 2}}},
		Closed: true}
	var room executor.Room
	if status, text := post(t, h, "/applications/1/tasks", message(t, g, []byte("abcde")), &room); status != 200 ||
		room.Held != 5 {
		t.Fatalf("grow: %d %s, %+v", status, text, room)
	}
	var work executor.Work
	if status, arguments := post(t, h, "/executors/7/next", message(t, executor.Next{Lease: e.Lease}),
		&work); status != 200 || string(arguments) != "abc" {
		t.Fatalf("next: %d %s, %+v", status, arguments, work)
	}
	var beat executor.BeatAnswer
	if status, text := post(t, h, "/executors/7/beat", message(t, executor.Beat{Lease: e.Lease, Work: work.Work}),
		&beat); status != 200 || beat.Cancel {
		t.Errorf("beat: %d %s, %+v", status, text, beat)
	}
	done := executor.Next{Lease: e.Lease, Done: &executor.Report{Work: work.Work, Size: 2, Output: 3}}
	if status, arguments := post(t, h, "/executors/7/next", message(t, done, []byte("ok"), []byte("out")),
		&work); status != 200 || string(arguments) != "de" {
		t.Errorf("next: %d %s, %+v", status, arguments, work)
	}
	var results executor.Results
	if status, payload := post(t, h, "/applications/1/results", message(t, executor.Collect{Lease: a.Lease}),
		&results); status != 200 || string(payload) != "okout" ||
		len(results.Results) != 1 || results.Results[0].Output != 3 || results.Running != 1 {
		t.Errorf("results: %d %s, %+v", status, payload, results)
	}
}

// What is wrong with a message is answered with a status that says whose mistake it is, and one sentence.
func TestHandlerRefuses(t *testing.T) {
	h := start(t, func(c *pool.Config) { c.Room = 10 }).Handler()
	var a executor.Lease
	post(t, h, "/applications", message(t, executor.Enrolment{Key: "0123456789abcdef"}), &a)
	grow := func(g executor.Growth, payload string) []byte {
		g.Lease, g.Number = a.Lease, 1
		return message(t, g, []byte(payload))
	}
	stage := executor.StageGrowth{Function: "f", Sizes: []int{1}}
	for _, c := range []struct {
		path    string
		message []byte
		status  int
		says    string
	}{
		{"/executors", []byte("{"), 400, "must be a JSON object"},
		{"/executors", message(t, executor.Registration{Executor: -1, Secret: "secret"}), 400, "must be from 0"},
		{"/executors", message(t, executor.Registration{Executor: 1, Secret: "guess"}), 403, "secret"},
		{"/executors/1/next", message(t, executor.Next{Lease: "x"}), 410, "lease has ended"},
		{"/executors/x/next", message(t, executor.Next{}), 410, "lease has ended"},
		{"/executors/1/next", message(t, executor.Next{Done: &executor.Report{Size: 1 << 40}}), 400, "bytes that follow"},
		{"/applications", message(t, executor.Enrolment{Key: "short"}), 400, "16 to 256 bytes"},
		{"/applications", message(t, executor.Enrolment{Key: "0123456789abcdeg", Weight: -1}), 400, "weight"},
		{"/applications/1/tasks", grow(executor.Growth{Stages: []executor.StageGrowth{stage}}, "ab"), 400, "2 follow"},
		{"/applications/1/tasks", grow(executor.Growth{Stages: []executor.StageGrowth{{Stage: 1, Function: "f"}}}, ""), 400,
			"from 0 to 0"},
		{"/applications/1/tasks", grow(executor.Growth{Stages: []executor.StageGrowth{{Sizes: []int{1}}}}, "a"), 400,
			"function"},
		{"/applications/1/tasks", grow(executor.Growth{Stages: []executor.StageGrowth{{Function: "f", Sizes: []int{-2}}}},
			""), 400, "sizes[0]"},
		{"/applications/1/tasks", grow(executor.Growth{Stages: []executor.StageGrowth{{Function: "f", After: []int{0}}}},
			""), 400, "earlier stage"},
		{"/applications/2/results", message(t, executor.Collect{Lease: a.Lease}), 410, "lease has ended"},
	} {
		var out map[string]any
		status, text := post(t, h, c.path, c.message, &out)
		if status != c.status || !strings.Contains(string(text), c.says) || bytes.Count(text, []byte("\n")) > 1 {
			t.Errorf("%s %.60q: %d %s, want %d with %q", c.path, c.message, status, text, c.status, c.says)
		}
	}
	// A single growth may exceed the room; the next has to wait.
	post(t, h, "/applications/1/tasks",
		grow(executor.Growth{Stages: []executor.StageGrowth{{Function: "f", Sizes: []int{20}}}}, strings.Repeat("a", 20)),
		new(executor.Room))
	more := message(t, executor.Growth{Lease: a.Lease, Number: 2, Stages: []executor.StageGrowth{{Sizes: []int{1}}}},
		[]byte("a"))
	if status, text := post(t, h, "/applications/1/tasks", more, new(executor.Room)); status != 429 {
		t.Errorf("without room: %d %s", status, text)
	}
}

// Whatever is sent, the pool goes on.
func FuzzHandler(f *testing.F) {
	paths := []string{"/executors", "/executors/0/beat", "/applications", "/applications/1/tasks"}
	f.Add(uint8(0), []byte(`{"executor":0,"secret":"secret","running":{"key":"0123456789abcdef","stage":-1}}`))
	f.Add(uint8(3), []byte(
		`{"lease":"L","number":1,"stages":[{"function":"f","sizes":[1,-1,2]},{"stage":1,"function":"g","after":[0]}],"closed":true}`+"\nabc"))
	f.Add(uint8(2), []byte(`{"key":"0123456789abcdef0","weight":1e300}`))
	f.Fuzz(func(t *testing.T, path uint8, text []byte) {
		p := start(t, nil)
		var a, e executor.Lease
		post(t, p.Handler(), "/applications", message(t, executor.Enrolment{Key: "0123456789abcdef"}), &a)
		post(t, p.Handler(), "/executors", message(t, executor.Registration{Secret: "secret"}), &e)
		lease := a.Lease
		if path%4 == 1 {
			lease = e.Lease
		}
		post(t, p.Handler(), paths[path%4], bytes.Replace(text, []byte(`"L"`), []byte(`"`+lease+`"`), 1), &map[string]any{})
		if v, err := p.View(t.Context()); err != nil || v.Broken != "" {
			t.Fatalf("after %q to %s: %+v %v", text, paths[path%4], v, err)
		}
	})
}
