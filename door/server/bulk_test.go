package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

// The jobs of a bulk have what the bulk states for all of them, and what they state for themselves.
func TestBulk(t *testing.T) {
	d := newFake()
	c, _ := start(t, d, newFakeStore())
	all, own := &cluster.Inherited{Umask: 0o027}, &cluster.Inherited{Umask: 0o077}
	ids, err := c.SubmitAll(context.Background(), api.Bulk{Env: []string{"A=all"}, Dir: "/all", Inherited: all,
		Jobs: []api.Submission{
			{Name: "first"}, {Name: "second", Env: []string{"A=own"}, Dir: "/own", Inherited: own},
			{Name: "third", Env: []string{}}}})
	if err != nil || !slices.Equal(ids, []cluster.JobID{1, 2, 3}) {
		t.Fatal(ids, err)
	}
	for i, want := range []live.Submission{
		{Job: cluster.Job{Name: "first"}, Undecided: true, Env: []string{"A=all"}, Dir: "/all", Inherited: all},
		{Job: cluster.Job{Name: "second"}, Undecided: true, Env: []string{"A=own"}, Dir: "/own", Inherited: own},
		// an empty list is left out of the JSON
		{Job: cluster.Job{Name: "third"}, Undecided: true, Env: []string{"A=all"}, Dir: "/all", Inherited: all},
	} {
		got := d.submitted[i]
		if (got.Key == live.Key{}) != (i > 0) || got.Caller.UID == 0 && got.Caller.User == "" {
			t.Errorf("job %d: key %v, caller %+v", i, got.Key, got.Caller)
		}
		got.Key, got.Caller = live.Key{}, cluster.Credentials{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("job %d is %+v, want %+v", i, got, want)
		}
	}
}

// What is wrong in a bulk is named, with the index of the job; how large a bulk may be follows from its jobs.
func TestBulkThatIsWrong(t *testing.T) {
	const job = `{"name":"sort","stages":[{"tasks":1,"cpu_millicores":1000,"ideal_memory_bytes":67108864,"elasticity":{"kind":"none"},"args":["sort","-S","{memory}","big.txt"]}]}`
	many := func(n int, job string) string {
		return `{"dir":"/","jobs":[` + strings.TrimSuffix(strings.Repeat(job+",", n), ",") + `]}`
	}
	wide := `{"name":"x","stages":[{"args":["` + strings.Repeat("x", 1200) + `"]}]}`
	tests := []struct {
		name, body string
		want       string // the error; "" is success
		index      int    // -1 is none
	}{
		{"the most jobs", many(api.MostInBulk, job), "", -1},
		{"large jobs", many(api.MostInBulk, wide), "", -1},
		{"no jobs", `{"dir":"/","jobs":[]}`, "jobs 0: must be 1 to 10000", -1},
		{"a job too many", many(api.MostInBulk+1, job), "jobs 10001: must be 1 to 10000", -1},
		{"no list", `{"jobs":{}}`, "request body, field jobs: must be of type array, but is a JSON object", -1},
		{"a wrong job", many(7312, job)[:len(many(7312, job))-2] + `,{"stages":[{"tasks":"x"}]},` + job + `]}`,
			"jobs[7312]: request body, field stages.tasks: must be of type integer, but is a JSON string", 7312},
		{"a job of too many values", `{"jobs":[` + job + `,{"stages":[{"args":[""` + strings.Repeat(`,""`, mostValues) +
			`]}]}]}`, "jobs[1]: request body: must hold at most 200000 values, but holds 200005", 1},
		{"too many values", `{"jobs":[` + job + `,[""` + strings.Repeat(`,""`, bulkLimits.values) + `]]}`,
			"request body: must hold at most 1000000 values, but holds 1000018", -1},
		{"too many bytes", many(1, job) + strings.Repeat(" ", int(bulkLimits.bytes)),
			"request body: must be at most 33554432 bytes", -1},
	}
	for _, tt := range tests {
		d := newFake()
		handler := New(d, &fakePools{}, newFakeStore(), api.Daemon{}, slog.New(slog.DiscardHandler)).http.Handler
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, asCaller("POST", "/v1/jobs/bulk", strings.NewReader(tt.body)))
		if tt.want == "" {
			var got api.SubmittedBulk
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != 201 ||
				len(got.IDs) != api.MostInBulk || got.IDs[api.MostInBulk-1] != api.MostInBulk {
				t.Errorf("%s: %d %.200s", tt.name, answer.Code, answer.Body)
			}
			continue
		}
		var got Problem
		err := json.Unmarshal(answer.Body.Bytes(), &got)
		index := -1
		if got.Index != nil {
			index = *got.Index
		}
		if err != nil || answer.Code != 400 || got.Detail != tt.want || index != tt.index || got.Field == "" {
			t.Errorf("%s: %d %s, want %s of job %d", tt.name, answer.Code, answer.Body, tt.want, tt.index)
		}
	}
}

// A field of a job that the driver refuses is named with the job.
func TestBulkThatIsRefused(t *testing.T) {
	err := &live.OfJob{Index: 3,
		Err: api.Errorf(api.Invalid, "%w", &cluster.WrongField{Job: "j", Stage: 1, StageName: "s", Field: "tasks",
			Value: "0", Must: "must be 1 to 5"})}
	got := problemOf(said(err))
	want := Problem{Title: "Bad Request", Status: 400, Kind: api.Invalid,
		Detail: `jobs[3]: job "j" stage "s" tasks 0: must be 1 to 5`, Index: new(int), Field: "stages[1].tasks", Value: "0",
		Limit: "must be 1 to 5"}
	*want.Index, want.Message = 3, want.Detail
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, want %+v", *got, want)
	}
}
