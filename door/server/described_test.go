package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
)

// description is a server's API document, and which of its operations were carried out.
type description struct {
	doc  *openapi3.T
	next http.Handler
	t    testing.TB

	mu   sync.Mutex
	done map[string]bool // by operation id
}

// asDescribed returns a handler that fails the test when a request or answer of h does not conform to h's own document.
func asDescribed(t testing.TB, h http.Handler) *description {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		t.Fatalf("load the document: %v", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatalf("the document: %v", err)
	}
	// The document lets daemons add fields; this daemon has none that it does not describe.
	for _, s := range doc.Components.Schemas {
		if len(s.Value.Properties) > 0 {
			s.Value.WithoutAdditionalProperties()
		}
	}
	return &description{doc: doc, next: h, t: t, done: map[string]bool{}}
}

// noted is a response that is passed on and recorded.
type noted struct {
	http.ResponseWriter
	status int
	text   bytes.Buffer
}

func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *noted) Flush() { n.ResponseWriter.(http.Flusher).Flush() }

func (n *noted) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(p []byte) (int, error) {
	n.text.Write(p)
	return n.ResponseWriter.Write(p)
}

func (d *description) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var sent bytes.Buffer
	r.Body = io.NopCloser(io.TeeReader(r.Body, &sent))
	answer := &noted{ResponseWriter: w}
	d.next.ServeHTTP(answer, r)
	if err := d.check(r, sent.Bytes(), answer); err != nil {
		d.t.Errorf("%s %s: status %d: %v: %.2000s", r.Method, r.URL, answer.status, err, answer.text.Bytes())
	}
}

func (d *description) check(r *http.Request, sent []byte, answer *noted) error {
	method, path, _ := strings.Cut(r.Pattern, " ")
	item := d.doc.Paths.Value(path)
	switch {
	case r.Pattern == "GET /openapi.json", r.Pattern == "GET /metrics":
		return nil
	case r.Pattern == "/":
		return conforms(d.doc.Components.Schemas["Problem"].Value, answer.text.Bytes())
	case item == nil || item.GetOperation(method) == nil:
		return fmt.Errorf("the document has no %q", r.Pattern)
	}
	o := item.GetOperation(method)
	described := o.Responses.Status(answer.status)
	if described == nil {
		described = o.Responses.Default()
		if answer.status < 400 {
			return fmt.Errorf("the document has no such status")
		}
	} else {
		d.mu.Lock()
		d.done[o.OperationID] = true
		d.mu.Unlock()
		if o.RequestBody != nil {
			kind := "application/json"
			if isMessage(o.RequestBody.Value.Content) {
				kind = executor.MediaType
				sent, _, _ = bytes.Cut(sent, []byte("\n"))
			}
			if err := conforms(o.RequestBody.Value.Content.Get(kind).Schema.Value, sent); err != nil {
				return fmt.Errorf("the request: %w", err)
			}
		}
	}
	return answer.conforms(described.Value.Content)
}

// isDone reports whether an operation was carried out. An operation that takes its connection over ends after its
// client.
func (d *description) isDone(operation string) bool {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		d.mu.Lock()
		done := d.done[operation]
		d.mu.Unlock()
		if done || time.Now().After(deadline) {
			return done
		}
	}
}

// conforms checks an answer against the content that the document gives for its status.
func (n *noted) conforms(content openapi3.Content) error {
	stated := n.Header().Get("Content-Type")
	if len(content) == 0 {
		if n.text.Len() > 0 || stated != "" {
			return fmt.Errorf("there is no content in the document, but %d bytes of %q", n.text.Len(), stated)
		}
		return nil
	}
	kind, _, _ := mime.ParseMediaType(stated)
	described := content[kind]
	switch {
	case described == nil:
		return fmt.Errorf("the document has no content of type %q", stated)
	case described.Schema == nil || described.Schema.Value.Format == "binary":
		return nil // any bytes
	}
	text := n.text.Bytes()
	if kind == executor.MediaType {
		text, _, _ = bytes.Cut(text, []byte("\n"))
	}
	return conforms(described.Schema.Value, text)
}

// isMessage reports whether a body is described as a message.
func isMessage(c openapi3.Content) bool { return c[executor.MediaType] != nil }

func conforms(s *openapi3.Schema, text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return s.VisitJSON(value, openapi3.EnableJSONSchema2020(), openapi3.EnableFormatValidation())
}

// lavish is a driver that answers with one value of everything.
type lavish struct {
	*fake
	job  api.Job
	task api.Task
	why  api.Explanation
	is   api.ClusterStatus
	used []api.TaskUsage
}

// newLavish returns a driver whose values were set; task 1.0.0 has printed text.
func newLavish(t *testing.T, set func(reflect.Value)) *lavish {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stdout")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &lavish{fake: newFake()}
	for _, v := range []any{&l.job, &l.task, &l.why, &l.is, &l.used} {
		set(reflect.ValueOf(v).Elem())
	}
	here, there := net.Pipe()
	there.Close()
	l.input = here
	l.logs = []api.LogFile{{Task: cluster.TaskID{Job: 1}, Run: 1, Stdout: file, Ended: true}}
	return l
}

func (l *lavish) Jobs(context.Context) ([]api.Job, error) { return []api.Job{l.job}, nil }
func (l *lavish) JobsAfter(context.Context, cluster.JobID, int) ([]api.Job, error) {
	return []api.Job{l.job}, nil
}
func (l *lavish) Tasks(context.Context, bool) ([]api.Task, error)   { return []api.Task{l.task}, nil }
func (l *lavish) Status(context.Context) (api.ClusterStatus, error) { return l.is, nil }

func (l *lavish) Job(context.Context, cluster.JobID, bool) (api.Job, error) { return l.job, nil }
func (l *lavish) Wait(context.Context, cluster.JobID) (api.Job, error)      { return l.job, nil }

func (l *lavish) WaitTask(context.Context, cluster.TaskID, bool) (api.Task, error) {
	return l.task, nil
}

func (l *lavish) Usage(context.Context, cluster.JobID, int) ([]api.TaskUsage, error) {
	return l.used, nil
}

func (l *lavish) Explain(context.Context, cluster.JobID) (api.Explanation, error) { return l.why, nil }

// Whatever values the answers contain, they conform to the document.
func TestAnswersAreAsDescribed(t *testing.T) {
	for name, set := range map[string]func(reflect.Value){"empty": func(reflect.Value) {}, "full": fill} {
		t.Run(name, func(t *testing.T) {
			driver := newLavish(t, set)
			profile, job, task := api.Measured{}, api.Submission{}, cluster.TaskID{Job: 1}
			set(reflect.ValueOf(&profile).Elem())
			set(reflect.ValueOf(&job).Elem())
			profile.Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: 2} // the API checks it
			job.Class, job.Reserve = new(cluster.Regular), nil
			c, _, d := startDescribed(t, driver, newFakeStore())
			for what, err := range everyOperation(c, job, profile, task) {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			for _, item := range d.doc.Paths.Map() {
				for _, o := range item.Operations() {
					if !d.isDone(o.OperationID) {
						t.Errorf("operation %s of the document was not carried out", o.OperationID)
					}
				}
			}
		})
	}
}

// recordedRun is a history of one run.
func recordedRun() *profile.History {
	h := &profile.History{}
	_, _ = h.Observe(profile.App{Name: "p"}, profile.Run{Duration: time.Second}) // the run is sound
	return h
}

// everyOperation calls every operation and returns the results.
func everyOperation(c *client.Client, job api.Submission, profile api.Measured, task cluster.TaskID) map[string]error {
	ctx := context.Background()
	errs := map[string]error{}
	_, errs["profiles, while there are none"] = client.Call[[]api.NamedProfile](ctx, c, "GET", "/v1/profiles", nil, nil)
	errs["store-profile"] = c.PutProfile(ctx, "p", profile)
	_, errs["profiles"] = client.Call[[]api.NamedProfile](ctx, c, "GET", "/v1/profiles", nil, nil)
	_, errs["profile"] = c.Profile(ctx, "p")
	_, errs["applications"] = c.Apps(ctx, "")
	_, errs["application"] = c.App(ctx, "p")
	_, errs["import-runs"] = c.Import(ctx, recordedRun())
	errs["forget-application"] = c.ForgetApp(ctx, "", "p")
	_, errs["status"] = c.Status(ctx)
	_, errs["health"] = client.Call[Health](ctx, c, "GET", "/v1/health", nil, nil)
	_, errs["ready"] = client.Call[Readiness](ctx, c, "GET", "/v1/ready", nil, nil)
	_, errs["submit"] = c.Submit(ctx, job)
	_, errs["submit-bulk"] = c.SubmitAll(ctx, api.Bulk{Dir: "/", Jobs: []api.Submission{job, job}})
	_, errs["jobs"] = c.Jobs(ctx)
	for _, err := range c.JobPages(ctx, true, api.JobFilter{}) {
		errs["jobs, all"] = err
	}
	_, errs["job"] = c.Job(ctx, 1, true)
	_, errs["job, ended"] = c.Wait(ctx, 1)
	_, errs["usage"] = c.Usage(ctx, 1, 7)
	_, errs["explain"] = c.Explain(ctx, 1)
	_, errs["plan"] = c.Present(ctx, job)
	_, errs["logs"] = client.Call[[]api.LogFile](ctx, c, "GET", "/v1/jobs/1/logs", nil, nil)
	sink, err := c.Input(ctx, 1)
	if errs["input"] = err; err == nil {
		errs["input, closed"] = sink.Close()
	}
	_, errs["tasks"] = c.Tasks(ctx, true)
	for u, err := range c.Watch(ctx, 0) {
		if errs["watch"] = err; err == nil && u.Revision != 1 {
			errs["watch"] = fmt.Errorf("began with %+v", u)
		}
		break
	}
	_, errs["task"] = c.WaitTask(ctx, task)
	_, errs["output"] = c.Output(ctx, io.Discard, api.Output{Task: task})
	for what, id := range map[string]cluster.TaskID{"job": {}, "task": task} {
		errs["pause a "+what] = c.Pause(ctx, 1, id, true)
		errs["resume a "+what] = c.Resume(ctx, 1, id)
	}
	_, errs["put-pool"] = c.PutPool(ctx, "", api.PoolSpec{Name: "p", Command: []string{"sleep"},
		Settings: map[string]string{"a": "b"}, Inherited: job.Inherited})
	_, errs["pools"] = c.Pools(ctx, "")
	_, errs["pool"] = c.Pool(ctx, "", "p")
	say := func(operation, method, path string, head any) {
		errs[operation] = sendMessage(c, method, "/v1/pools/p"+path, head)
	}
	say("register-executor", "POST", "/executors", executor.Registration{Running: &executor.Held{}})
	say("next-task", "POST", "/executors/1/next", executor.Next{Done: &executor.Report{}})
	say("beat", "POST", "/executors/1/beat", executor.Beat{})
	say("enrol", "POST", "/applications", executor.Enrolment{})
	say("grow", "POST", "/applications/1/tasks", executor.Growth{Stages: []executor.StageGrowth{{Sizes: []int{1}}}})
	say("collect", "POST", "/applications/1/results", executor.Collect{})
	say("cancel-application", "DELETE", "/applications/1", executor.Cancellation{})
	errs["remove-pool"] = c.RemovePool(ctx, "", "p")
	issued, err := c.CreateToken(ctx, api.NewToken{Scope: api.SubmitScope, Lifetime: time.Hour})
	errs["create-token"] = err
	_, errs["quotas"] = c.Quotas(ctx, "")
	_, errs["tokens"] = c.Tokens(ctx)
	errs["revoke-token"] = c.RevokeToken(ctx, issued.ID)
	errs["kill"] = c.Kill(ctx, 1)
	_, errs["prune"] = c.Prune(ctx, time.Hour, 3, true)
	errs["shutdown"] = c.Shutdown(ctx, true)
	return errs
}

// sendMessage sends a message, with bytes, and reads the answer.
func sendMessage(c *client.Client, method, path string, head any) error {
	text, err := executor.Encode(head, []byte("\x00\n"))
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, "http://bellows"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", executor.MediaType)
	answer, err := sent(c, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(answer.Body); err == nil && !bytes.HasSuffix(text, []byte("}\n\x00\xff\n1")) {
		err = fmt.Errorf("answered %q", text)
	}
	return err
}

// fill gives every part of v a value that is not its zero.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1e9, 123456789)))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":[1,null]}`))
		return
	case timeline.Time:
		v.SetInt(1e18)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("<text>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(-7)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint32:
		v.SetUint(1<<32 - 2) // a user id that some systems give to "nobody"
	case reflect.Float64:
		v.SetFloat(1.5)
	default:
		panic(fmt.Sprintf("no value for a %s", v.Type()))
	}
}

// A check of the check above: it finds every kind of disagreement.
func TestDescriptionIsStrict(t *testing.T) {
	d := asDescribed(t, New(newFake(), &fakePools{}, fakeProfiles{}, api.Daemon{},
		slog.New(slog.DiscardHandler)).http.Handler)
	job, err := json.Marshal(api.Job{})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, old, new string }{
		{"another type", `"id":0`, `"id":"0"`},
		{"a field more", `"id":0`, `"id":0,"more":1`},
		{"a field less", `"id":0,`, ``},
		{"null for an object", `"id":0`, `"id":null`},
		{"a negative user", `"uid":0`, `"uid":-1`},
		{"no time", `"submitted":"0001-01-01T00:00:00Z"`, `"submitted":"yesterday"`},
	}
	s := d.doc.Components.Schemas["Job"].Value
	if err := conforms(s, job); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		text := strings.Replace(string(job), tt.old, tt.new, 1)
		if text == string(job) {
			t.Fatalf("%s: there is no %s in %s", tt.name, tt.old, job)
		}
		if conforms(s, []byte(text)) == nil {
			t.Errorf("%s: %s is said to be a job", tt.name, text)
		}
	}
}
