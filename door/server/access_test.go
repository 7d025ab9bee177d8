package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// allowed has a row for each operation of the API: what a request about job 1 of ada is answered to ada, to another
// user, and to an operator.
var allowed = map[string]struct{ owner, stranger, operator int }{
	"status": {200, 200, 200}, "health": {200, 200, 200}, "ready": {200, 200, 200}, "shutdown": {403, 403, 202},
	"prune":  {403, 403, 200},
	"submit": {201, 201, 201}, "plan": {200, 200, 200}, "submit-bulk": {201, 201, 201}, "jobs": {200, 200, 200},
	"job": {200, 200, 200}, "tasks": {200, 200, 200}, "watch": {200, 200, 200},
	"usage": {200, 403, 200}, "explain": {200, 403, 200}, "logs": {200, 403, 200}, "task": {200, 403, 200},
	"output": {200, 403, 200},
	"kill":   {202, 403, 202}, "input": {101, 403, 101}, "pause": {202, 403, 202}, "resume": {202, 403, 202},
	"pauseTask": {202, 403, 202}, "resumeTask": {202, 403, 202},
	"profiles": {200, 200, 200}, "profile": {200, 200, 200}, "store-profile": {204, 204, 204},
	"applications": {200, 200, 200}, "application": {200, 200, 200}, "import-runs": {200, 200, 200},
	"forget-application": {204, 204, 204},
	"create-token":       {201, 201, 201}, "tokens": {200, 200, 200}, "quotas": {200, 200, 200},
	"revoke-token": {204, 404, 204},
	// A pool that does not say of whom is one of the caller: an operator has no pool p, either.
	"pools": {200, 200, 200}, "pool": {200, 404, 404}, "put-pool": {200, 200, 200}, "remove-pool": {204, 404, 404},
	"register-executor": {200, 404, 404}, "next-task": {200, 404, 404}, "beat": {200, 404, 404},
	"enrol": {200, 404, 404}, "grow": {200, 404, 404}, "collect": {200, 404, 404}, "cancel-application": {200, 404, 404},
}

const daemonUser, operators = 2000, 500

// callers are users, with what each is to job 1 of ada, user 1000. A user who has got the uid of ada since is not
// ada, and neither is a user of the same name from elsewhere.
var callers = map[string]struct {
	uid    uint32
	name   string
	groups []uint32
}{
	"ada, owner": {1000, "ada", []uint32{100}}, "bob, stranger": {3000, "bob", []uint32{100, 501}},
	"eve with the uid of ada, stranger": {1000, "eve", nil}, "another ada, stranger": {3001, "ada", nil},
	"nobody, stranger": {1<<32 - 2, "nobody", nil},
	"root, operator":   {0, "root", nil}, "the daemon's user, operator": {daemonUser, "d", nil},
	"a member of the group, operator":     {4000, "op", []uint32{100, operators}},
	"one whose own group it is, operator": {operators, "op2", nil},
}

// guarded is a server with job 1 of ada.
func guarded(t testing.TB, job api.Job) (h http.Handler, d *fake) {
	t.Helper()
	s, d, _ := guardedServer(t, job)
	return s.http.Handler, d
}

// guardedServer is a server with job 1, profile p, pool p and token 1 of ada.
func guardedServer(t testing.TB, job api.Job) (s *Server, d *fake, p *fakeStore) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stdout")
	if err := os.WriteFile(file, []byte(secret+"output"), 0o600); err != nil {
		t.Fatal(err)
	}
	d = newFake()
	job.ID, job.UID, job.Owner = 1, 1000, "ada"
	d.jobs[1] = job
	for i := range job.Tasks {
		job.Tasks[i].Owner = api.Owner{UID: 1000, Name: "ada"}
	}
	d.tasks = job.Tasks
	d.found = foundOf(&job)
	d.logs = []api.LogFile{{Task: cluster.TaskID{Job: 1}, Run: 1, Stdout: file, Ended: true}}
	close(d.ended)
	about := api.Daemon{UID: daemonUser, Operators: &api.Group{Name: "ops", GID: operators}}
	p = newFakeStore()
	p.fakeProfiles["p"] = store.Profile{Measured: api.Measured{Elasticity: cluster.Elasticity{Kind: cluster.Step,
		Factor: 2}}}
	if job.Name != "" {
		d.quotas = []api.QuotaUse{{User: secret + "quotas.user"}, {Queue: secret + "quotas.queue"}}
	}
	p.tokens[1] = store.Token{ID: 1, UID: 1000, User: "ada", Scope: "read"}
	return New(d, ofAda(), p, about, slog.New(slog.DiscardHandler)), d, p
}

// foundOf returns how a job could be found in a cluster: with its texts, and those of fields that only the engine has.
func foundOf(job *api.Job) []cluster.Event {
	spec := &cluster.Job{ID: 1, Name: job.Name, Queue: job.Name, App: job.App, Owner: job.Owner}
	for i := range job.Stages {
		spec.Stages = append(spec.Stages, job.Stages[i].Stage)
	}
	text := ""
	some := cluster.Limits{cluster.QuotaRunning: {Most: 1}}
	quotas := &cluster.Quotas{Users: map[string]cluster.Limits{"": some, "ada": some},
		Queues: map[string]cluster.Limits{"named": some}}
	if job.Name != "" {
		text = secret + "found"
		quotas.Users[secret+"quotas.user"] = some
	}
	return []cluster.Event{{Kind: cluster.QuotasSet, Detail: text, Found: &cluster.Condition{Quotas: quotas}},
		{Kind: cluster.JobSubmitted, Job: 1, NewJob: spec, Detail: text},
		{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1}, Detail: text,
			Found: &cluster.Condition{Stays: text, Progress: &cluster.Progress{Phase: 1}}}}
}

// operation is a request for an operation of the document.
type operation struct{ id, method, path, body string }

// eachOperation returns a request for each operation of the API: about job 1, task 1.0.0, profile p and pool p.
func eachOperation(t *testing.T) (all []operation) {
	t.Helper()
	h, _ := guarded(t, api.Job{})
	history, err := recordedRun().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := json.Marshal(api.RecordedRuns{History: history})
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{"submit": `{"dir":"/","stages":null}`, "plan": `{"dir":"/","stages":null}`,
		"submit-bulk":   `{"dir":"/","jobs":[{"stages":null}]}`,
		"store-profile": `{"ideal_memory_bytes":2,"min_memory_bytes":1,"duration_ns":1,"elasticity":{"kind":"step","factor":2}}`, "import-runs": string(recorded), "create-token": `{"scope":"read","lifetime_ns":3600000000000}`, "put-pool": `{"name":"p","max":1,"ideal_memory_bytes":1}`}
	for path, item := range asDescribed(t, h).doc.Paths.Map() {
		for method, o := range item.Operations() {
			all = append(all, operation{o.OperationID, method, strings.NewReplacer("{job}", "1", "{task}", "1.0.0", "{token}",
				"1", "{name}", "p", "{pool}", "p", "{executor}", "1", "{application}", "1").Replace(path), bodies[o.OperationID]})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return all
}

// askAs sends a request as a user, and returns the answer.
func askAs(h http.Handler, o operation, query string, uid uint32, name string,
	groups []uint32) *httptest.ResponseRecorder {
	r := asCaller(o.method, o.path+query, strings.NewReader(o.body))
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r.WithContext(asUser(context.Background(), uid, name, groups...)))
	return answer
}

// Every operation is answered to every caller as the table says, and every operation is in the table.
func TestEveryOperationKnowsWhoMayCallIt(t *testing.T) {
	all := eachOperation(t)
	if len(all) != len(allowed) {
		t.Errorf("the API has %d operations, and the table %d", len(all), len(allowed))
	}
	for _, o := range all {
		want, ok := allowed[o.id]
		if !ok {
			t.Errorf("operation %s: the table does not say who may call it", o.id)
			continue
		}
		var h http.Handler
		for who, c := range callers {
			if h == nil || o.id == "forget-application" || strings.HasSuffix(o.id, "-pool") {
				h, _ = guarded(t, api.Job{Ended: true, Stages: []api.Stage{{Stage: cluster.Stage{Tasks: 1}}},
					Tasks: []api.Task{{Task: cluster.TaskID{Job: 1}, Run: 1}}})
			}
			status := map[string]int{"owner": want.owner, "stranger": want.stranger,
				"operator": want.operator}[who[strings.LastIndex(who, " ")+1:]]
			if answer := askAs(h, o, "", c.uid, c.name, c.groups); answer.Code != status {
				t.Errorf("operation %s: %s gets %d, want %d: %s", o.id, who, answer.Code, status, answer.Body)
			}
		}
	}
}

// What nobody may do to the job of another user is said in one sentence, which names the owner and nothing else of
// the job. A job that does not exist is missing for everybody.
func TestDenied(t *testing.T) {
	h, d := guarded(t, api.Job{Name: secret})
	for _, o := range eachOperation(t) {
		var e api.Error
		answer := askAs(h, o, "", 3000, "bob", nil)
		switch want := allowed[o.id]; {
		case want.stranger != 403:
			continue
		case want.owner != 403:
			e.Message = "job 1: belongs to ada"
		default:
			e.Message = o.id + ": only root, the daemon's user and members of group ops may do this"
		}
		var got api.Error
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Kind != api.Denied ||
			got.Message != e.Message {
			t.Errorf("operation %s: %s, %v, want %s", o.id, answer.Body, err, e.Message)
		}
		if strings.Contains(o.path, "/1") {
			o.path = strings.Replace(o.path, "/1", "/9", 1)
			if answer := askAs(h, o, "", 3000, "bob", nil); answer.Code != 404 {
				t.Errorf("%s %s: %d %s", o.method, o.path, answer.Code, answer.Body)
			}
		}
	}
	if d.cancelled != nil || d.shutdown != nil {
		t.Errorf("jobs %v were killed, and the daemon %v", d.cancelled, d.shutdown)
	}
}

// secret begins every text that is planted.
const secret = "secret:"

// plant puts a text of its own into every text that v has. The texts name the fields that hold them.
func plant(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Pointer:
		plant(v.Elem(), field)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := field + "." + f.Name
			if f.Anonymous {
				name = field
			}
			if f.IsExported() && v.Type().PkgPath() != "time" {
				plant(v.Field(i), name)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			plant(v.Index(i), field)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			old := v.MapIndex(key)
			k, e := reflect.New(key.Type()).Elem(), reflect.New(old.Type()).Elem()
			k.Set(key)
			e.Set(old)
			plant(k, field+".key")
			plant(e, field)
			v.SetMapIndex(key, reflect.Value{})
			v.SetMapIndex(k, e)
		}
	case reflect.String:
		v.SetString(secret + field)
	}
}

// public are the texts of a job that everybody may see: the names of users and nodes, and words that describe numbers.
var public = []string{"job.Stages.Elasticity", "job.Tasks.Node", "job.Earlier.Node", "job.Paused.By",
	"job.Tasks.Paused.By", "job.Earlier.Paused.By"}

// No answer that another user can get has a text of a job of ada, whatever texts a job gets in future, and its owner
// and operators get them all.
func TestNoWordOfAStrangersJob(t *testing.T) {
	planted := secretsIn(mustJSON(t, plantedJob()))
	if len(planted) < 30 { // there were more when this was written
		t.Errorf("%d texts were planted: %v", len(planted), planted)
	}
	for _, o := range eachOperation(t) {
		h, _ := guarded(t, plantedJob())
		for _, query := range []string{"", "?all=true", "?usage=true", "?ended=true",
			"?all=true&usage=true&ended=true&kill=false&stderr=false&from=0"} {
			for who, c := range callers {
				answer := askAs(h, o, query, c.uid, c.name, c.groups)
				said := secretsIn(answer.Body.String())
				if strings.HasSuffix(who, "stranger") {
					said = slices.DeleteFunc(said, func(text string) bool { return slices.Contains(public, text) })
					if len(said) > 0 {
						t.Errorf("%s %s%s tells %s: %v", o.method, o.path, query, who, said)
					}
				} else if o.id == "job" && len(said) != len(planted)-1 { // guarded has put in the name of the owner
					t.Errorf("%s %s%s tells %s only %v", o.method, o.path, query, who, said)
				} else if (o.id == "plan" || o.id == "quotas") && strings.HasSuffix(who, "operator") != slices.Contains(said,
					"quotas.user") {
					t.Errorf("%s %s%s tells %s %v", o.method, o.path, query, who, said)
				}
			}
		}
	}
}

// plantedJob returns a job with a text of its own in each of its texts.
func plantedJob() (j api.Job) {
	v := reflect.ValueOf(&j).Elem()
	fill(v)
	plant(v, "job")
	return j
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Whatever another user asks, no answer has a text of a job of ada, and no request changes the job.
func FuzzStranger(f *testing.F) {
	f.Add("GET", "/v1/jobs?all=1&after=0", "")
	f.Add("GET", "/v1/jobs/1?usage=true", "")
	f.Add("GET", "/v1/tasks/1.0.0/output?from=0", "")
	f.Add("DELETE", "/v1/jobs/01", "")
	f.Add("PUT", "/v1/tasks/1/pause?page_out=1", "{}")
	f.Add("POST", "/v1/jobs/1/input", "")
	f.Add("POST", "/v1/shutdown?kill=true", "")
	f.Add("GET", "/v1//jobs/../jobs/1/explain", "")
	h, d := guarded(f, plantedJob())
	f.Fuzz(func(t *testing.T, method, address, body string) {
		if strings.Contains(address, "watch") {
			return // it does not end
		}
		r := asCaller("GET", address, strings.NewReader(body))
		r.Method = method
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r.WithContext(asUser(context.Background(), 3000, "bob", 100)))
		told := slices.DeleteFunc(secretsIn(answer.Body.String()), func(text string) bool {
			return slices.Contains(public, text) || strings.Contains(address+body, secret+text)
		})
		if len(told) > 0 || d.cancelled != nil || d.shutdown != nil {
			t.Errorf("%s %q %q: %d tells %v, %v", method, address, body, answer.Code, told, d.cancelled)
		}
	})
}

// secretsIn returns the fields whose texts are in an answer, each once.
func secretsIn(answer string) (fields []string) {
	for i, part := range strings.Split(answer, secret) {
		if i > 0 {
			if end := strings.IndexFunc(part, func(r rune) bool { return r != '.' && !unicode.IsLetter(r) }); end >= 0 {
				part = part[:end]
			}
			fields = append(fields, part)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// What is shown of the job of another user is enough to see how large it is and how far it has come.
func TestSizeOfAStrangersJob(t *testing.T) {
	var job api.Job
	fill(reflect.ValueOf(&job).Elem())
	h, _ := guarded(t, job)
	var got api.Job
	answer := askAs(h, operation{method: "GET", path: "/v1/jobs/1"}, "", 3000, "bob", nil)
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	s, was := &got.Stages[0], &job.Stages[0]
	task, wasTask := &got.Tasks[0], &job.Tasks[0]
	if got.Owner != "ada" || got.Status != job.Status || got.TaskCount != job.TaskCount ||
		!got.Submitted.Equal(job.Submitted) ||
		s.Ideal != was.Ideal || s.MaxMemory != was.MaxMemory || s.Class != was.Class || s.Running != was.Running ||
		s.Stage.Duration != was.Stage.Duration ||
		task.Grant != wasTask.Grant || task.State != wasTask.State || *task.Usage.Memory != *wasTask.Usage.Memory {
		t.Errorf("%s", answer.Body)
	}
	if got.Name != "" || got.ExitCode != nil || got.Waiting != "" || s.Name != "" || s.Phases != nil || task.Why != "" ||
		task.Exit != nil {
		t.Errorf("%s", answer.Body)
	}
}

// An answer is cut for its caller alone: other callers may share what the driver returned.
func TestCutLeavesTheOriginal(t *testing.T) {
	h, d := guarded(t, api.Job{Name: "mine", Tasks: []api.Task{{Task: cluster.TaskID{Job: 1}, Detail: "mine"}}})
	shared := d.after(0)
	d.shared = shared
	for _, path := range []string{"/v1/jobs?all=true", "/v1/tasks"} {
		o := operation{method: "GET"}
		o.path, _, _ = strings.Cut(path, "?")
		if answer := askAs(h, o, strings.TrimPrefix(path, o.path), 3000, "bob", nil); answer.Code != 200 ||
			strings.Contains(answer.Body.String(), "mine") {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	if shared[0].Name != "mine" || d.tasks[0].Detail != "mine" {
		t.Errorf("the driver's own %+v", shared)
	}
}

// An operation whose rule does not suit it is found when the server is made.
func TestRulesThatDoNotSuit(t *testing.T) {
	type nothing = struct{}
	tests := map[string]func(*operations){
		"no rule": func(a *operations) {
			register(a, 0, "GET", "/a", "a", "", 200, func(context.Context, *nothing) (*nothing, error) { return nil, nil })
		},
		"a job, for anyone": func(a *operations) {
			register(a, anyone, "PUT", "/a/{job}", "a", "", 200, func(context.Context, *struct{ JobPath }) (*nothing, error) {
				return nil, nil
			})
		},
		"a task, for operators": func(a *operations) {
			register(a, operator, "PUT", "/a/{task}", "a", "", 200, func(context.Context, *struct{ TaskPath }) (*nothing,
				error) {
				return nil, nil
			})
		},
		"no job, for its owner": func(a *operations) {
			register(a, owner, "GET", "/a", "a", "", 200, func(context.Context, *nothing) (*nothing, error) { return nil, nil })
		},
		"jobs in an answer for anyone": func(a *operations) {
			register(a, anyone, "GET", "/a", "a", "", 200, func(context.Context, *nothing) (*body[struct {
				Deep map[string][]*api.Explanation `json:"deep"`
			}], error) {
				return nil, nil
			})
		},
		"an answer that is not cut": func(a *operations) {
			register(a, sizes, "GET", "/a", "a", "", 200, func(context.Context, *nothing) (*body[api.Explanation], error) {
				return nil, nil
			})
		},
	}
	for name, add := range tests {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "server: operation a: ") {
					t.Errorf("%s: %s", name, text)
				}
			}()
			add(newOperations("test", "1", "", guard{}))
		}()
	}
}

// A caller of whom the kernel says nothing sees nothing of any job.
func TestCallerWithoutAName(t *testing.T) {
	h, _ := guarded(t, api.Job{Name: secret})
	for _, o := range eachOperation(t) {
		answer := httptest.NewRecorder()
		r := httptest.NewRequest(o.method, "http://bellows"+o.path, io.NopCloser(strings.NewReader(o.body)))
		if h.ServeHTTP(answer, r); !slices.Contains([]string{"status", "health", "ready"}, o.id) && answer.Code != 403 {
			t.Errorf("operation %s: %d %s", o.id, answer.Code, answer.Body)
		}
	}
}

// What another user gets of a cluster has no text of a job of ada, and an engine accepts it. The queue is shown if
// the settings of the policy name it.
func TestSizeOfAStrangersJobInACluster(t *testing.T) {
	node := cluster.Node{Name: "n", Capacity: resource.Of(4*resource.Core, 4*resource.GiB)}
	need := resource.Of(resource.Core, resource.GiB)
	spec := &cluster.Job{ID: 1, Name: secret, Owner: "ada", Queue: "production", App: secret, Weight: 2,
		Stages: []cluster.Stage{{Name: secret, Tasks: 1, Ideal: need, DataOn: []string{secret},
			Phases: []cluster.Phase{{Name: secret, Duration: time.Second}, {Duration: 2 * time.Second}},
			Told:   cluster.Provenance{Model: secret}}}}
	some := func(most int64) cluster.Limits { return cluster.Limits{cluster.QuotaRunning: {Most: most}} }
	quotas := &cluster.Quotas{Users: map[string]cluster.Limits{"": some(1), "bob": some(2), secret: some(3)},
		Queues: map[string]cluster.Limits{"named": some(4)}}
	found := []cluster.Event{{Kind: cluster.NodeJoined, NewNode: &node},
		{Kind: cluster.NodeMemory, Held: resource.MiB, Detail: secret},
		{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: quotas}},
		{Kind: cluster.JobSubmitted, Job: 1, NewJob: spec},
		{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1}, Grant: need, Launched: 1,
			Found: &cluster.Condition{ByPhase: true, Stays: secret, Progress: &cluster.Progress{Phase: 1, Ends: 5}}},
		{Kind: cluster.Continued}}
	bob := &caller{Credentials: cluster.Credentials{UID: 3000, User: "bob"}}
	for settings, queue := range map[string]string{"production=70,tests=30": "production", "tests=30": ""} {
		cut := bob.events(found, map[cluster.JobID]api.Owner{1: {UID: 1000, Name: "ada"}},
			map[string]string{"capacity.queues": settings})
		if text := mustJSON(t, cut); strings.Contains(text, secret) {
			t.Errorf("%s", text)
		}
		b := book.NewBook(nil)
		for i := range cut {
			if err := b.Enter(10, &cut[i]); err != nil {
				t.Fatalf("%+v: %v", cut[i], err)
			}
		}
		if j, ok := b.Snapshot().Job(1); !ok || j.Queue != queue || j.Owner != "ada" || j.Weight != 2 ||
			len(j.Tasks) != 1 || j.Stages[0].RunTime() != 3*time.Second {
			t.Errorf("%+v", j)
		}
		if n := b.Snapshot().Nodes[0]; n.Node != node || n.Held != resource.MiB {
			t.Errorf("%+v", n)
		}
		q := cut[2].Condition().Quotas
		for _, c := range []struct {
			party cluster.Party
			most  int64
		}{{cluster.Party{Name: "bob"}, 2}, {cluster.Party{Name: "eve"}, 1}, {cluster.Party{Queue: true, Name: "named"}, 4}} {
			if most := q.Of(c.party, cluster.QuotaRunning).Most; most != c.most {
				t.Errorf("%s may have %d running jobs, want %d", c.party, most, c.most)
			}
		}
	}
	if spec.Name != secret || found[4].Found.Stays != secret || len(quotas.Users) != 3 {
		t.Errorf("the driver's own events were changed: %+v", found)
	}
}
