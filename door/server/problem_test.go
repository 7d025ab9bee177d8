package server

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// What is wrong with a request is one sentence for people and, for programs, field, value and limit. Client reads the
// same sentence.
func TestProblems(t *testing.T) {
	deep := &cluster.WrongField{Job: "j", Stage: 2, StageName: "s", Field: "max_memory", Value: "1GiB",
		Must: "must be at least memory, which is 2GiB"}
	tests := []struct {
		method, path, body string
		err                error // of the driver
		want               Problem
	}{
		{"POST", "/v1/jobs", `{"dir":"/","stages":null}`, api.Errorf(api.Invalid, "%w", deep),
			Problem{Status: 400, Kind: api.Invalid,
				Detail: `job "j" stage "s" max_memory 1GiB: must be at least memory, which is 2GiB`,
				Field:  "stages[2].max_memory", Value: "1GiB", Limit: "must be at least memory, which is 2GiB"}},
		{"POST", "/v1/jobs", `{"dir":"/","stages":null}`,
			api.Errorf(api.Invalid, "%w", &cluster.WrongField{Stage: -1, Field: "name", Value: `"\x1b"`,
				Must: "must be\nprintable"}),
			Problem{Status: 400, Kind: api.Invalid, Detail: `job name "\x1b": must be\nprintable`, Field: "name",
				Value: `"\x1b"`, Limit: `must be\nprintable`}},
		{"POST", "/v1/jobs", `{"stages": [{"tasks": 1.5}]}`, nil, Problem{Status: 400, Kind: api.Invalid,
			Detail: "request body, field stages.tasks: must be of type integer, but is a JSON number 1.5",
			Field:  "stages.tasks", Limit: "must be of type integer, but is a JSON number 1.5"}},
		{"POST", "/v1/jobs", "", nil,
			Problem{Status: 400, Kind: api.Invalid, Detail: "request body: must be JSON, but is empty", Field: "request body",
				Limit: "must be JSON, but is empty"}},
		{"GET", "/v1/jobs?all=maybe", "", nil,
			Problem{Status: 400, Kind: api.Invalid, Detail: `all "maybe": must be true or false`, Field: "all",
				Value: `"maybe"`, Limit: "must be true or false"}},
		{"GET", "/v1/jobs/7", "", nil, Problem{Status: 404, Kind: api.NotFound, Detail: "job 7: there is none"}},
		{"GET", "/v1/nothing", "", nil,
			Problem{Status: 404, Kind: api.NotFound, Detail: "GET /v1/nothing: no such address; GET /openapi.json lists them"}},
		{"TRACE", "/v1/jobs", "", nil,
			Problem{Status: 405, Kind: api.NotFound, Detail: "method TRACE: must be one of GET, HEAD, POST at /v1/jobs",
				Field: "method", Value: "TRACE", Limit: "must be one of GET, HEAD, POST at /v1/jobs"}},
		{"GET", "/v1/status", "", api.Errorf(api.Unavailable, "bellows is starting"),
			Problem{Status: 503, Kind: api.Unavailable, Detail: "bellows is starting"}},
	}
	for _, tt := range tests {
		d := newFake()
		d.err = tt.err
		c, _ := start(t, d, newFakeStore())
		request, err := http.NewRequest(tt.method, "http://bellows"+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := httpOf(c).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		var got Problem
		var read api.Error
		tt.want.Title, tt.want.Message = http.StatusText(tt.want.Status), tt.want.Detail
		if err != nil || json.Unmarshal(text, &got) != nil || !reflect.DeepEqual(got, tt.want) ||
			answer.StatusCode != tt.want.Status || answer.Header.Get("Content-Type") != problemType {
			t.Errorf("%s %s: %s, %s\ngot  %s\nwant %+v", tt.method, tt.path, answer.Status, answer.Header.Get("Content-Type"),
				text, tt.want)
		}
		if json.Unmarshal(text, &read) != nil || read.Kind != tt.want.Kind || read.Message != tt.want.Detail {
			t.Errorf("%s %s: Client reads %+v", tt.method, tt.path, read)
		}
	}
}

// Who asks with a method that an address does not have is told those that it has; other addresses have none.
func TestMethods(t *testing.T) {
	handler := New(newFake(), &fakePools{}, newFakeStore(), api.Daemon{}, slog.New(slog.DiscardHandler)).handler()
	for _, tt := range []struct{ method, path, allow string }{
		{"TRACE", "/v1/jobs", "GET, HEAD, POST"},
		{"OPTIONS", "/v1/jobs/7", "DELETE, GET, HEAD"},
		{"PUT", "/v1/jobs/7/pause", ""}, // has it
		{"PATCH", "/v1/jobs/7/pause", "DELETE, PUT"},
		{"POST", "/openapi.json", "GET, HEAD"},
		{"POST", "/metrics", "GET, HEAD"},
		{"OPTIONS", "*", ""},
		{"POST", "/v1/nothing", ""},
		{"POST", "/", ""},
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(tt.method, tt.path, nil).WithContext(asUser(t.Context(), 0, "root")))
		if got := answer.Header().Get("Allow"); got != tt.allow || (answer.Code == 405) != (tt.allow != "") {
			t.Errorf("%s %s: status %d, Allow %q, want %q", tt.method, tt.path, answer.Code, got, tt.allow)
		}
	}
}

// A compressed body is refused by its name, not for what its bytes look like.
func TestCompressedBody(t *testing.T) {
	handler := New(newFake(), &fakePools{}, newFakeStore(), api.Daemon{}, slog.New(slog.DiscardHandler)).handler()
	for _, path := range []string{"/v1/jobs", "/v1/jobs/bulk", "/v1/pools/p/applications"} {
		for coding, status := range map[string]int{"gzip": 415, "identity": 0, "": 0} {
			r := httptest.NewRequest("POST", path, strings.NewReader("{}")).WithContext(asUser(t.Context(), 0, "root"))
			r.Header.Set("Content-Encoding", coding)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			const why = `Content-Encoding \"gzip\": must be identity: a body cannot be compressed`
			if refused := answer.Code == 415; refused != (status == 415) ||
				strings.Contains(answer.Body.String(), why) != refused {
				t.Errorf("%s of %q: status %d, %s", path, coding, answer.Code, answer.Body)
			}
		}
	}
}
