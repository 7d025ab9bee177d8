package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// listed is a server with 2500 jobs of ada and bob: every third has ended, every fifth is bob's, and three are called
// rare.
func listed(t *testing.T) (http.Handler, *fake) {
	t.Helper()
	h, d := guarded(t, api.Job{})
	for id := cluster.JobID(1); id <= 2500; id++ {
		j := api.Job{ID: id, Name: "usual", Owner: "ada", UID: 1000, Ended: id%3 == 0}
		if j.Ended {
			j.Status = cluster.StatusFailed
		}
		if id%5 == 0 {
			j.Owner, j.UID = "bob", 3000
		}
		if slices.Contains([]cluster.JobID{3, 1500, 2500}, id) {
			j.Name = "rare"
		}
		d.jobs[id] = j
	}
	return h, d
}

// Lists of jobs have pages, from whatever part of the list, and filters, which find only what the caller may see.
func TestListOfJobs(t *testing.T) {
	h, _ := listed(t)
	every := func(from, to, step int, not int) (ids []cluster.JobID) {
		for id := from; id <= to; id += step {
			if not == 0 || id%not != 0 {
				ids = append(ids, cluster.JobID(id))
			}
		}
		return ids
	}
	tests := []struct {
		query string
		uid   uint32
		want  []cluster.JobID
	}{
		{"", 0, every(1, 2500, 1, 3)},
		{"?limit=3", 0, []cluster.JobID{1, 2, 4}},
		{"?limit=2&after=4", 0, []cluster.JobID{5, 7}},
		{"?after=2495", 0, []cluster.JobID{2497, 2498, 2500}},
		{"?all=true", 0, every(1, 1000, 1, 0)},
		{"?all=true&limit=2&after=998", 0, []cluster.JobID{999, 1000}},
		{"?all=true&after=2498", 0, []cluster.JobID{2499, 2500}},
		{"?all=true&after=2500", 0, nil},
		{"?all=true&name=rare", 0, []cluster.JobID{3, 1500, 2500}},
		{"?all=true&name=rare&limit=1&after=3", 0, []cluster.JobID{1500}},
		{"?name=rare", 0, []cluster.JobID{2500}},
		{"?all=true&status=failed&limit=3&after=1000", 0, []cluster.JobID{1002, 1005, 1008}},
		{"?status=pending&user=bob&limit=3", 0, []cluster.JobID{5, 10, 20}},
		{"?all=true&status=failed&user=bob&name=rare", 0, []cluster.JobID{1500}},
		{"?all=true&name=rare", 1000, []cluster.JobID{3}},
		{"?all=true&name=rare", 3000, []cluster.JobID{1500, 2500}},
		{"?all=true&user=ada&limit=2", 3000, []cluster.JobID{1, 2}},
		{"?status=", 0, every(1, 2500, 1, 3)},
	}
	names := map[uint32]string{0: "root", 1000: "ada", 3000: "bob"}
	for _, tt := range tests {
		answer := askAs(h, operation{method: "GET", path: "/v1/jobs"}, tt.query, tt.uid, names[tt.uid], nil)
		var jobs []api.Job
		if err := json.Unmarshal(answer.Body.Bytes(), &jobs); err != nil {
			t.Errorf("%s: %s", tt.query, answer.Body)
		}
		var got []cluster.JobID
		for _, j := range jobs {
			got = append(got, j.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s of user %d: %d jobs %.80s, want %.80s", tt.query, tt.uid, len(got), fmt.Sprint(got),
				fmt.Sprint(tt.want))
		}
	}
	for query, want := range map[string]string{
		"?limit=1001": "limit 1001: must be from 0 to 1000",
		"?limit=-1":   "limit -1: must be from 0 to 1000",
		"?status=odd": `status "odd": must be one of pending, running, set-aside, succeeded, failed, cancelled`,
		"?status=" + strings.Repeat("x", 999): `status "` + strings.Repeat("x", 300) +
			`...": must be one of pending, running, set-aside, succeeded, failed, cancelled`,
	} {
		var e api.Error
		answer := askAs(h, operation{method: "GET", path: "/v1/jobs"}, query, 0, "root", nil)
		if err := json.Unmarshal(answer.Body.Bytes(), &e); err != nil || answer.Code != 400 || e.Message != want {
			t.Errorf("%s: %d %s, want %s", query, answer.Code, answer.Body, want)
		}
	}
	// The values that the parameter may have are all that a status can be.
	for s := range cluster.JobStatus(cluster.NumJobStatuses) {
		if answer := askAs(h, operation{method: "GET", path: "/v1/jobs"}, "?limit=1&status="+s.String(), 0, "root",
			nil); answer.Code != 200 {
			t.Errorf("status %s: %s", s, answer.Body)
		}
	}
}

// A client reads all pages.
func TestJobPages(t *testing.T) {
	_, d := listed(t)
	c, _ := start(t, d, newFakeStore())
	for _, tt := range []struct {
		all    bool
		filter api.JobFilter
		want   int
	}{{true, api.JobFilter{}, 2500}, {false, api.JobFilter{}, 1667}, {true, api.JobFilter{Name: "rare"}, 3},
		{true, api.JobFilter{Status: "failed", User: "bob"}, 166}} {
		n, last := 0, cluster.JobID(0)
		for page, err := range c.JobPages(context.Background(), tt.all, tt.filter) {
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range page {
				if j.ID <= last {
					t.Fatalf("job %d follows job %d", j.ID, last)
				}
				n, last = n+1, j.ID
			}
		}
		if n != tt.want {
			t.Errorf("%+v: %d jobs, want %d", tt, n, tt.want)
		}
	}
}

// Lists of tasks, profiles and applications have pages, too.
func TestOtherLists(t *testing.T) {
	h, d := guarded(t, api.Job{})
	d.tasks = nil
	for i := range int32(4) {
		task := api.Task{Task: cluster.TaskID{Job: 1, Stage: i / 2, Index: i % 2}, Run: 1, State: api.TaskState(i),
			Owner: api.Owner{UID: 1000, Name: "ada"}}
		d.tasks = append(d.tasks, task)
		task.Task.Job, task.Owner.Name = 2, "bob"
		d.tasks = append(d.tasks, task)
	}
	slices.SortStableFunc(d.tasks, func(a, b api.Task) int { return int(a.Task.Job - b.Task.Job) })
	for query, want := range map[string]string{
		"/v1/tasks":                          "1.0.0 1.0.1 1.1.0 1.1.1 2.0.0 2.0.1 2.1.0 2.1.1 ",
		"/v1/tasks?limit=3&after=1.0.1":      "1.1.0 1.1.1 2.0.0 ",
		"/v1/tasks?user=bob&limit=1":         "2.0.0 ",
		"/v1/tasks?state=ending":             "1.1.0 2.1.0 ",
		"/v1/tasks?state=ending&after=1.1.0": "2.1.0 ",
		"/v1/tasks?after=2.1.1":              "",
	} {
		path, query, _ := strings.Cut(query, "?")
		answer := askAs(h, operation{method: "GET", path: path}, "?"+query, 0, "root", nil)
		var tasks []api.Task
		if err := json.Unmarshal(answer.Body.Bytes(), &tasks); err != nil {
			t.Fatal(answer.Body)
		}
		got := ""
		for _, task := range tasks {
			got += task.Task.String() + " "
		}
		if got != want {
			t.Errorf("%s?%s: %s, want %s", path, query, got, want)
		}
	}
	if answer := askAs(h, operation{method: "GET", path: "/v1/tasks"}, "?after=x", 0, "root", nil); answer.Code != 400 ||
		!strings.Contains(answer.Body.String(), `"field":"after"`) {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	names := []store.Profile{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for _, tt := range []struct {
		in   named
		want string
	}{{named{}, "abc"}, {named{After: "a"}, "bc"}, {named{After: "aa", Page: Page{Limit: 1}}, "b"},
		{named{Page: Page{Limit: 2}}, "ab"}, {named{After: "c"}, ""}} {
		got := ""
		for _, p := range pageOf(&tt.in, slices.Clone(names), func(p *store.Profile) string { return p.Name }) {
			got += p.Name
		}
		if got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.in, got, tt.want)
		}
	}
}
