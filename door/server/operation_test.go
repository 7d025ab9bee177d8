package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/server/openapi"
	"github.com/bellows-rm/bellows/live/api"
)

// asked is the parameters of a request, one of every kind.
type asked struct {
	JobPath
	Name string `query:"name"`
	Run  int    `query:"run"`
	From int64  `query:"from" minimum:"0"`
	Kill bool   `query:"kill"`
}

// ask sends a request to an operation with the parameters asked, and returns the values that the operation received, or
// the Error that it answered.
func ask(t testing.TB, address string) (*asked, *api.Error) {
	t.Helper()
	var given *asked
	a := newOperations("test", "1", "", guard{})
	register(a, sizes, "GET", "/jobs/{job}", "ask", "Ask", 204, func(_ context.Context, in *asked) (*struct{}, error) {
		given = in
		return nil, nil
	})
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	a.mux.ServeHTTP(w, r.WithContext(asUser(r.Context(), 1000, "ada")))
	if given != nil {
		return given, nil
	}
	e := new(api.Error)
	if err := json.Unmarshal(w.Body.Bytes(), e); err != nil || w.Code != e.Kind.Status() || e.Message == "" {
		t.Fatalf("%s: status %d, %s: no error of ours", address, w.Code, w.Body)
	}
	return nil, e
}

func TestParameters(t *testing.T) {
	tests := []struct {
		address string
		want    asked
	}{
		{"/jobs/7", asked{JobPath: JobPath{7}}},
		{"/jobs/-1", asked{JobPath: JobPath{-1}}},
		{"/jobs/9223372036854775807", asked{JobPath: JobPath{1<<63 - 1}}},
		{"/jobs/7?name=a%20b&run=-2&from=3&kill=true", asked{JobPath{7}, "a b", -2, 3, true}},
		{"/jobs/7?kill=1", asked{JobPath: JobPath{7}, Kill: true}},
		{"/jobs/7?kill=F&from=0", asked{JobPath: JobPath{7}}},
		{"/jobs/7?name=&run=&from=&kill=", asked{JobPath: JobPath{7}}},
		{"/jobs/7?run=1&run=x", asked{JobPath: JobPath{7}, Run: 1}},
		{"/jobs/7?unknown=x&job=8", asked{JobPath: JobPath{7}}},
	}
	for _, tt := range tests {
		if got, e := ask(t, tt.address); e != nil || *got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.address, got, e, tt.want)
		}
	}
}

func TestParametersThatAreWrong(t *testing.T) {
	tests := []struct{ address, want string }{
		{"/jobs/x", `job "x": must be an integer`},
		{"/jobs/7.5", `job "7.5": must be an integer`},
		{"/jobs/0x7", `job "0x7": must be an integer`},
		{"/jobs/%20", `job " ": must be an integer`},
		{"/jobs/1%0A", `job "1\n": must be an integer`},
		{"/jobs/99999999999999999999%0A", `job "99999999999999999999\n": must be an integer`},
		{"/jobs/9223372036854775808", "job 9223372036854775808: must be from -9223372036854775808 to 9223372036854775807"},
		{"/jobs/7?run=1e3", `run "1e3": must be an integer`},
		{"/jobs/7?from=-1", "from -1: must be from 0 to 9223372036854775807"},
		{"/jobs/7?from=-99999999999999999999", "from -99999999999999999999: must be from 0 to 9223372036854775807"},
		{"/jobs/7?from=a", `from "a": must be an integer`},
		{"/jobs/7?kill=yes", `kill "yes": must be true or false`},
		{"/jobs/7?kill=2", `kill "2": must be true or false`},
		{"/jobs/x?kill=yes", `job "x": must be an integer`},
	}
	for _, tt := range tests {
		if got, e := ask(t, tt.address); e == nil || e.Kind != api.Invalid || e.Message != tt.want {
			t.Errorf("%s: got %+v, %+v, want %s", tt.address, got, e, tt.want)
		}
	}
}

// The operation accepts what the document allows, and receives the value that was sent.
func FuzzParameters(f *testing.F) {
	for _, text := range []string{"0", "-1", "+7", "007", "9223372036854775808", "1_0", "true", "FALSE", "a\nb", "%"} {
		f.Add(text)
	}
	parameters := parametersOf(reflect.TypeFor[asked]())
	a := newOperations("test", "1", "", guard{})
	schemas := make([]openapi3.Schema, len(parameters))
	for i, p := range parameters {
		text, err := json.Marshal(a.parameter(p).Schema)
		if err := errors.Join(err, json.Unmarshal(text, &schemas[i])); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, p := range parameters {
			v := reflect.New(p.field.Type).Elem()
			if e := p.set(v, text); e != nil {
				if e.Kind != api.Invalid || !strings.HasPrefix(e.Message, p.name+" ") || strings.Contains(e.Message, "\n") {
					t.Errorf("%s %q: %+v", p.name, text, e)
				}
				continue
			}
			var back any
			sent, err := json.Marshal(v.Interface())
			if err := errors.Join(err, json.Unmarshal(sent, &back)); err != nil {
				t.Fatal(err)
			}
			if err := schemas[i].VisitJSON(back, openapi3.EnableJSONSchema2020()); err != nil {
				t.Errorf("%s %q: read as %v, which the document refuses: %v", p.name, text, v, err)
			}
			again := reflect.New(p.field.Type).Elem()
			if e := p.set(again, strings.Trim(string(sent), `"`)); v.Kind() != reflect.String && (e != nil || !again.Equal(v)) {
				t.Errorf("%s %q: read as %v, and that as %v, %v", p.name, text, v, again, e)
			}
		}
	})
}

func TestBodies(t *testing.T) {
	_, socket := start(t, newFake(), newFakeStore())
	h := httpOf(client.New(socket))
	job := `{"dir":"/","stages":null}`
	tests := []struct {
		name, kind, body string
		want             string // the error; "" is success
	}{
		{"a job", "application/json", job, ""},
		{"no type", "", job, ""},
		{"type with a parameter", "application/json; charset=utf-8", job, ""},
		{"type of JSON", "application/merge-patch+json", job, ""},
		{"another type", "application/x-www-form-urlencoded", job,
			`Content-Type "application/x-www-form-urlencoded": must be application/json`},
		{"no type at all", "json", job, `Content-Type "json": must be application/json`},
		{"none", "application/json", "", "request body: must be JSON, but is empty"},
		{"null", "application/json", " null\n", "request body: must be a JSON object, but is null"},
		{"cut off", "application/json", "{", "request body: unexpected end of JSON input"},
		{"two", "application/json", job + job, "request body: invalid character '{' after top-level value"},
		{"no object", "application/json", "[]", "request body: must be of type object, but is a JSON array"},
		{"no array", "application/json", `{"stages": 3}`,
			"request body, field stages: must be of type array, but is a JSON number"},
		{"no integer", "application/json", `{"stages": [{"tasks": 1.5}]}`,
			"request body, field stages.tasks: must be of type integer, but is a JSON number 1.5"},
		{"a number for a word", "application/json", `{"stages": [{"elasticity": {"kind": 1}}]}`,
			"request body, field stages.elasticity.kind: must be of type string, but is a JSON number"},
		{"too large a number", "application/json", `{"stages": [{"tasks": 1e300}]}`,
			"request body, field stages.tasks: must be of type integer, but is a JSON number 1e300"},
		{"a word that is none", "application/json", `{"stages": [{"elasticity": {"kind": "odd"}}]}`,
			`request body: elasticity kind "odd": must be one of none, step, sawtooth, points, sawtooth-table`},
		{"a class that is none", "application/json", `{"class": "loose"}`,
			`request body: class "loose": must be regular or flex`},
	}
	for _, tt := range tests {
		r, err := http.NewRequest("POST", "http://bellows/v1/jobs", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if tt.kind != "" {
			r.Header.Set("Content-Type", tt.kind)
		}
		answer, err := h.Do(r)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var e api.Error
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || json.Unmarshal(text, &e) != nil || e.Message != tt.want ||
			(answer.StatusCode == 201) != (tt.want == "") {
			t.Errorf("%s: status %d, %s, %v; want %s", tt.name, answer.StatusCode, text, err, tt.want)
		}
	}
}

// A body of the maximum size and one that is a byte longer are read without a connection: sending them takes too long
// on a busy machine.
func TestLongestBody(t *testing.T) {
	handler := New(newFake(), &fakePools{}, newFakeStore(), api.Daemon{}, slog.New(slog.DiscardHandler)).handler()
	for size, refused := range map[int]bool{maxBody: false, maxBody + 1: true} {
		job := `{"dir":"/","stages":null}`
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer,
			httptest.NewRequest("POST", "/v1/jobs", strings.NewReader(job+strings.Repeat(" ", size-len(job)))))
		const why = "request body: must be at most 8388608 bytes"
		if got := strings.Contains(answer.Body.String(), why); got != refused ||
			strings.Contains(answer.Body.String(), "request body") != refused {
			t.Errorf("%d bytes: %d %s", size, answer.Code, answer.Body)
		}
	}
}

// A client that does not send the announced body does not keep resources for long.
func TestBodyThatDoesNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(newFake(), &fakePools{}, newFakeStore(), api.Daemon{}, slog.New(slog.DiscardHandler))
		here, there := net.Pipe()
		go func() { _ = s.http.Serve(&oneConnection{conn: there, closed: make(chan struct{})}) }()
		if _, err := io.WriteString(here,
			"POST /v1/jobs HTTP/1.1\r\nHost: bellows\r\nContent-Length: 10\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(here)
		if want := "request body: must arrive within 5s"; err != nil || !bytes.Contains(text, []byte(want)) {
			t.Errorf("%q, %v, want %s", text, err, want)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// oneConnection is a listener that accepts one connection.
type oneConnection struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConnection) Close() error   { close(l.closed); return nil }
func (l *oneConnection) Addr() net.Addr { return l.conn.LocalAddr() }

// A value that JSON cannot represent is our bug: it is reported as an error, not sent in part.
func TestAnswerThatIsNoJSON(t *testing.T) {
	a := newOperations("test", "1", "", guard{})
	register(a, anyone, "GET", "/nan", "nan", "No number", 200, func(context.Context, *struct{}) (*body[float64], error) {
		var zero float64
		return &body[float64]{0 / zero}, nil
	})
	w := httptest.NewRecorder()
	a.mux.ServeHTTP(w, httptest.NewRequest("GET", "/nan", nil))
	if want := `{"title":"Internal Server Error","status":500,"detail":"write the answer as JSON: json: unsupported value: NaN",` +
		`"code":"internal","message":"write the answer as JSON: json: unsupported value: NaN"}`; w.Code != 500 ||
		strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

// People read the answers: < and & are not escaped.
func TestAnswerIsReadable(t *testing.T) {
	w := httptest.NewRecorder()
	writeBody(w, 200, "<a> & b")
	if got := w.Body.String(); got != "\"<a> & b\"\n" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s of type %s", got, w.Header().Get("Content-Type"))
	}
}

// What the document cannot describe correctly is found when the server is made, not when a request arrives.
func TestOperationsThatCannotBe(t *testing.T) {
	type Problem struct{ Other int }
	type Inner struct {
		A int `json:"x"`
	}
	tests := map[string]func(*operations){
		"a parameter of a kind that is not read": func(a *operations) {
			register(a, anyone, "GET", "/a", "a", "", 200, func(context.Context, *struct {
				X float64 `query:"x"`
			}) (*struct{}, error) {
				return nil, nil
			})
		},
		"two types of one name": func(a *operations) {
			register(a, anyone, "GET", "/a", "a", "", 200, func(context.Context, *struct{}) (*body[Problem], error) {
				return nil, nil
			})
		},
		"a type that only its method describes": func(a *operations) {
			register(a, anyone, "GET", "/a", "a", "", 200, func(context.Context, *struct{}) (*body[openapi.Types], error) {
				return nil, nil
			})
		},
		"a field twice": func(a *operations) {
			register(a, anyone, "GET", "/a", "a", "", 200, func(context.Context, *struct{}) (*body[struct {
				Inner
				B int `json:"x"`
			}], error) {
				return nil, nil
			})
		},
	}
	for name, add := range tests {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			add(newOperations("test", "1", "", guard{}))
		}()
	}
}
