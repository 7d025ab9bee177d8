package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// The header of a key is a string in quotes, as the draft of the standard has it, or without them.
func TestKeyHeader(t *testing.T) {
	const job, other = `{"dir":"/","stages":null}`, `{"dir":"/tmp","stages":null}`
	tests := []struct {
		key, body string
		status    int
		id        int64
	}{
		{"none", job, 201, 1},
		{"none", job, 201, 2},
		{"", job, 400, 0}, // of a client whose variable is empty, and that would submit twice
		{`"a"`, job, 201, 3},
		{`"a"`, job, 201, 3},
		{`a`, job, 201, 3},
		{`"b"`, job, 201, 4},
		{`"a"`, other, 422, 0},
		{`"a"`, job + " ", 422, 0}, // byte by byte
		{strings.Repeat("x", 200), job, 201, 5},
		{strings.Repeat("x", 201), job, 400, 0},
		{`""`, job, 400, 0},
		{`"a`, job, 400, 0},
		{`a"`, job, 400, 0},
		{`"a b"`, job, 400, 0},
		{`"a\\"`, job, 400, 0},
		{"\u00e4", job, 400, 0},
	}
	c, _ := start(t, newFake(), newFakeStore())
	for _, tt := range tests {
		request, err := http.NewRequest("POST", "http://bellows/v1/jobs", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if tt.key != "none" {
			request.Header.Set("Idempotency-Key", tt.key)
		}
		answer, err := httpOf(c).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			api.Submitted
			Problem
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || json.Unmarshal(text, &got) != nil || answer.StatusCode != tt.status || got.ID != tt.id {
			t.Errorf("key %s: %d %s, %v, want %d and job %d", tt.key, answer.StatusCode, text, err, tt.status, tt.id)
		}
		if want := map[int]api.Kind{400: api.Invalid, 422: api.KeyReused}[tt.status]; got.Kind != want ||
			want == api.Invalid && got.Field != "Idempotency-Key" {
			t.Errorf("key %s: %s", tt.key, text)
		}
	}
}

// cutting returns a handler that carries out requests to submit, and cuts the connection instead of answering the
// first ones.
func cutting(h http.Handler, answers *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && answers.Add(-1) >= 0 {
			h.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	})
}

// A client whose connection breaks after the job was accepted, and before the answer, learns the id of that job.
func TestLostAnswer(t *testing.T) {
	d := newFake()
	var lost atomic.Int32
	c, _, _ := startBehind(t, d, newFakeStore(), func(h http.Handler) http.Handler { return cutting(h, &lost) })
	accepted := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.submitted)
	}
	for i, cuts := range []int32{0, 1, 3} {
		lost.Store(cuts)
		id, err := c.Submit(context.Background(), api.Submission{Dir: "/"})
		if err != nil || int(id) != i+1 || accepted() != i+1 {
			t.Errorf("%d answers are lost: job %d, %v, of %d", cuts, id, err, accepted())
		}
	}
	// After a while the client gives up.
	c.Patience = 400 * time.Millisecond
	lost.Store(1 << 20)
	begun := time.Now()
	if _, err := c.Submit(context.Background(), api.Submission{Dir: "/"}); api.KindOf(err) != api.Unavailable ||
		accepted() != 4 {
		t.Errorf("all answers are lost: %v after %v, %d jobs", err, time.Since(begun), accepted())
	}
}
