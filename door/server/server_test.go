package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

func TestSubmissionArrivesWithCaller(t *testing.T) {
	d := newFake()
	c, _ := start(t, d, fakeProfiles{})
	job := cluster.Job{Name: "sort", Class: cluster.Flex, MaxAttempts: 2, Stages: []cluster.Stage{
		{Name: "a", Tasks: 3, Ideal: resource.Of(1500, 1<<30).With(resource.Disk, 7), MinMemory: 1 << 28,
			Duration: time.Minute, Elasticity: cluster.Elasticity{Kind: cluster.SawTooth, Factor: 1.5},
			Command: cluster.Command{Args: []string{"sort", "-S", "{memory}"}, Env: map[string]string{"A": "b"}}},
		{Name: "b", Tasks: 1, Parents: []int{0}, Ideal: resource.Of(1000, 1<<20), Profile: "p",
			Command: cluster.Command{Args: []string{"true"}, Dir: "sub"}},
	}}
	own := cluster.Inherited{Umask: 0o027, Nice: 3,
		Limits: map[string]cluster.ResourceLimit{"nofile": {Soft: 10, Hard: -1}}}
	id, err := c.Submit(context.Background(), api.SubmissionOf(&job, []string{"X=y"}, "/tmp", &own))
	if err != nil || id != 1 {
		t.Fatalf("Submit: id %d, %v", id, err)
	}
	got := d.submitted[0]
	want := live.Submission{Job: job, Env: []string{"X=y"}, Dir: "/tmp", Inherited: &own}
	if got.Caller.UID != uint32(os.Getuid()) || got.Caller.GID != uint32(os.Getgid()) {
		t.Errorf("caller is %+v, but this is user %d of group %d", got.Caller, os.Getuid(), os.Getgid())
	}
	if len(got.Key.Text) < 20 {
		t.Errorf("key %q", got.Key.Text)
	}
	got.Caller, got.Key = cluster.Credentials{}, live.Key{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("submitted\n%+v, want\n%+v", got, want)
	}
}

// A submission of several attempts that states no pause between them has the usual one; a stated pause of 0 means none.
func TestRetryDelayOfASubmission(t *testing.T) {
	for body, want := range map[string]time.Duration{`{}`: 0, `{"max_attempts":2}`: cluster.DefaultRetryDelay,
		`{"max_attempts":2,"retry_delay_ns":0}`: 0, `{"max_attempts":2,"retry_delay_ns":5}`: 5} {
		var s api.Submission
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatal(err)
		}
		if got := submissionOf(&s, cluster.Credentials{}).Job.RetryDelay; got != want {
			t.Errorf("%s: the pause is %v, want %v", body, got, want)
		}
	}
}

func TestErrorsKeepTheirKind(t *testing.T) {
	tests := []struct {
		kind api.Kind
		want api.Kind
	}{
		{api.Invalid, api.Invalid}, {api.NotFound, api.NotFound}, {api.Denied, api.Denied},
		{api.Conflict, api.Conflict}, {api.Internal, api.Internal}, {0, api.Internal},
	}
	for _, tt := range tests {
		d := newFake()
		d.err = api.Errorf(tt.kind, "memory 9GiB: must be at most 4GiB")
		c, _ := start(t, d, fakeProfiles{})
		err := c.Kill(context.Background(), 3)
		if api.KindOf(err) != tt.want || err.Error() != "memory 9GiB: must be at most 4GiB" {
			t.Errorf("kind %v: code %q, %q", tt.kind, api.KindOf(err), err)
		}
	}
}

func TestMalformedRequestsAreInvalid(t *testing.T) {
	_, socket := start(t, newFake(), fakeProfiles{})
	h := httpOf(client.New(socket))
	tests := []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/jobs", "{", 400},
		{"POST", "/v1/jobs", `{"stages": 3}`, 400},
		{"POST", "/v1/jobs", `{"class": "loose"}`, 400},
		{"GET", "/v1/jobs/x", "", 400},
		{"GET", "/v1/tasks/1.2.3.4", "", 400},
		{"GET", "/v1/nothing", "", 404},
		{"PATCH", "/v1/nothing", "", 404},
		{"PATCH", "/v1/jobs/1", "", 405},
		{"DELETE", "/v1/status", "", 405},
		{"GET", "/", "", 404},
		{"GET", "/openapi.json", "", 200},
	}
	for _, tt := range tests {
		req, _ := http.NewRequest(tt.method, "http://bellows"+tt.path, strings.NewReader(tt.body))
		r, err := h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != tt.status {
			t.Errorf("%s %s %s: status %d, want %d: %s", tt.method, tt.path, tt.body, r.StatusCode, tt.status, text)
		}
		var e api.Error
		if tt.status >= 400 && (json.Unmarshal(text, &e) != nil || e.Kind == 0 || e.Message == "") {
			t.Errorf("%s %s %s: %s is no error of ours", tt.method, tt.path, tt.body, text)
		}
	}
}

func TestFollowedOutputArrivesAsItIsWritten(t *testing.T) {
	d := newFake()
	file := filepath.Join(t.TempDir(), "stdout")
	d.logs = []api.LogFile{{Task: cluster.TaskID{Job: 1}, Run: 1, Stdout: file}}
	c, _ := start(t, d, fakeProfiles{})
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := c.Output(context.Background(), w, api.Output{Task: cluster.TaskID{Job: 1}, Follow: true})
		done <- errors.Join(err, w.Close())
	}()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, text := range []string{"first", "second"} {
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != text {
			t.Fatalf("followed %q, %v, want %q", got, err, text)
		}
	}
	if _, err := f.WriteString("last"); err != nil {
		t.Fatal(err)
	}
	close(d.ended)
	rest, err := io.ReadAll(r)
	if err := errors.Join(err, <-done); err != nil || string(rest) != "last" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
}

func TestOutputFromTheMiddle(t *testing.T) {
	d := newFake()
	file := filepath.Join(t.TempDir(), "stderr")
	if err := os.WriteFile(file, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	task := cluster.TaskID{Job: 1, Index: 2}
	d.logs = []api.LogFile{{Task: task, Run: 1, Stderr: "/nowhere"}, {Task: task, Run: 2, Stderr: file, Ended: true}}
	c, _ := start(t, d, fakeProfiles{})
	var b bytes.Buffer
	n, err := c.Output(context.Background(), &b, api.Output{Task: task, Stderr: true, From: 4})
	if err != nil || n != 6 || b.String() != "456789" {
		t.Errorf("got %d bytes %q, %v", n, &b, err)
	}
	if _, err := c.Output(context.Background(), &b, api.Output{Task: task, Run: 3}); api.KindOf(err) != api.NotFound {
		t.Errorf("a run that never was: %v", err)
	}
}

func TestProfilesBelongToTheCaller(t *testing.T) {
	profiles := fakeProfiles{}
	c, _ := start(t, newFake(), profiles)
	ctx := context.Background()
	if _, err := c.Profile(ctx, "a b/c"); api.KindOf(err) != api.NotFound {
		t.Errorf("before it is stored: %v", err)
	}
	p := api.Measured{IdealMemory: 5, MinMemory: 2, Duration: time.Second,
		Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 2}, Args: []string{"x"}}
	if err := c.PutProfile(ctx, "a b/c", p); err != nil {
		t.Fatal(err)
	}
	if stored := profiles["a b/c"]; stored.UID != uint32(os.Getuid()) || stored.Made == 0 {
		t.Errorf("stored for user %d, made %d", stored.UID, stored.Made)
	}
	got, err := c.Profile(ctx, "a b/c")
	if err != nil || got.Name != "a b/c" || got.IdealMemory != 5 || got.Elasticity.Factor != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := c.PutProfile(ctx, "broken", p); err != nil {
		t.Fatal(err)
	}
	apps, err := c.Apps(ctx, "")
	if err != nil || len(apps) != 2 || apps[0].Measured.IdealMemory != 5 || len(apps[0].Learned) != 1 ||
		len(apps[0].Learned[0].Variants[0].Phases) != 1 ||
		!strings.Contains(apps[1].Trouble, "cannot be read") {
		t.Errorf("applications %+v, %v", apps, err)
	}
	if a, err := c.App(ctx, "a b/c"); err != nil || a.Learned[0].Variants[0].Unknown[0] != "network" {
		t.Errorf("application %+v, %v", a, err)
	}
	if err := c.ForgetApp(ctx, "", "a b/c"); err != nil {
		t.Error(err)
	}
	if _, err := c.App(ctx, "a b/c"); api.KindOf(err) != api.NotFound {
		t.Errorf("after it was forgotten: %v", err)
	}
	p.Elasticity.Factor = 0.5
	if err := c.PutProfile(ctx, "bad", p); api.KindOf(err) != api.Invalid {
		t.Errorf("a profile that is faster when spilling: %v", err)
	}
}

// A profile says all that was measured: what is left out would be stored as a measured zero.
func TestProfilesAreComplete(t *testing.T) {
	profiles := fakeProfiles{}
	c, _ := start(t, newFake(), profiles)
	all := map[string]any{"ideal_memory_bytes": 4, "min_memory_bytes": 1, "duration_ns": 1,
		"elasticity": cluster.Elasticity{}}
	for field := range all {
		body := maps.Clone(all)
		delete(body, field)
		if field == "elasticity" {
			body["elasticity"] = map[string]any{"kind": nil}
			field = "elasticity.kind"
		}
		_, err := client.Call[struct{}](t.Context(), c, "PUT", "/v1/profiles/p", nil, body)
		if api.KindOf(err) != api.Invalid || err.Error() != "request body, field "+field+": must be stated" {
			t.Errorf("without %s: %v", field, err)
		}
	}
	if len(profiles) > 0 {
		t.Errorf("stored %v", profiles)
	}
}

func TestListenReplacesOnlyDeadSockets(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "s")
	l, err := Listen(path, Door{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	if _, err := Listen(path, Door{}); err == nil || !strings.Contains(err.Error(), "another daemon answers") {
		t.Errorf("a second listener: %v", err)
	}
	// As after a kill: the socket exists, and no daemon answers on it.
	l.(*listener).UnixListener.Close()
	again, err := Listen(path, Door{})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after closing, the socket is there: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, Door{}); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("in place of a file: %v", err)
	}
}

func TestNoDaemonIsOneSentence(t *testing.T) {
	c := client.New(filepath.Join(t.TempDir(), "none"))
	_, err := c.Status(context.Background())
	if api.KindOf(err) != api.Unavailable || !strings.Contains(err.Error(), "bellows up") {
		t.Errorf("%v", err)
	}
}

func TestParseTask(t *testing.T) {
	tests := []struct {
		text string
		want cluster.TaskID
		ok   bool
	}{
		{"7", cluster.TaskID{Job: 7}, true},
		{"7.1.12", cluster.TaskID{Job: 7, Stage: 1, Index: 12}, true},
		{"7.1", cluster.TaskID{Job: 7, Stage: 1}, true},
		{"", cluster.TaskID{}, false},
		{"7.", cluster.TaskID{}, false},
		{"-1", cluster.TaskID{}, false},
		{"1.2.3.4", cluster.TaskID{}, false},
		{"1.2.3.4.5", cluster.TaskID{}, false},
		{"1.9999999999.0", cluster.TaskID{}, false},
		{"999999999999999999.999999999.999999999", cluster.TaskID{Job: 999999999999999999, Stage: 999999999,
			Index: 999999999}, true},
		{"+1", cluster.TaskID{}, false},
		{"1.2\n", cluster.TaskID{}, false},
	}
	for _, tt := range tests {
		got, err := api.ParseTask(tt.text)
		if (err == nil) != tt.ok || (tt.ok && got != tt.want) {
			t.Errorf("ParseTask(%q) = %v, %v", tt.text, got, err)
		}
	}
}

func FuzzParseTask(f *testing.F) {
	f.Add("7.1.12")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := api.ParseTask(text)
		if err != nil {
			return
		}
		if again, err := api.ParseTask(id.String()); err != nil || again != id {
			t.Errorf("%q reads as %v, which reads as %v, %v", text, id, again, err)
		}
	})
}
