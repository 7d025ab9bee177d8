package server

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// Page is the part of a request for a list that says how much of it is wanted. The entries have an order; whoever
// wants the next page asks for what follows the last entry.
type Page struct {
	Limit int `query:"limit" doc:"the most entries of the answer; an answer with fewer is the last; 0 is the default of the list" minimum:"0" maximum:"1000"`
}

// wants reports whether a job is wanted. Only who owns it sees its name.
func wants(f *api.JobFilter, j *api.Job, owns bool) bool {
	return (f.Status == "" || f.Status == j.Status.String()) && (f.User == "" || f.User == j.Owner) &&
		(f.Name == "" || owns && f.Name == j.Name)
}

// listJobs is a request for jobs.
type listJobs struct {
	All   bool  `query:"all" doc:"also jobs that have ended, at most 1000 in one answer"`
	After int64 `query:"after" doc:"only jobs with a greater id, usually the last id of the page before" minimum:"0"`
	Page
	api.JobFilter
}

// list returns the jobs of a page, with more than the caller may see: register cuts it.
func (s *Server) list(ctx context.Context, in *listJobs) ([]api.Job, error) {
	limit, after := cmp.Or(in.Limit, api.JobsOnPage), in.After
	if in.All && in.JobFilter == (api.JobFilter{}) {
		page, err := s.driver.JobsAfter(ctx, cluster.JobID(after), limit)
		if page == nil {
			page = []api.Job{}
		}
		return page, err
	}
	out := []api.Job{}
	if !in.All {
		jobs, err := s.driver.Jobs(ctx)
		return in.add(out, jobs, cmp.Or(in.Limit, len(jobs)), callerOf(ctx)), err
	}
	for {
		page, err := s.driver.JobsAfter(ctx, cluster.JobID(after), api.JobsOnPage)
		if err != nil {
			return nil, err
		}
		out = in.add(out, page, limit, callerOf(ctx))
		if len(out) == limit || len(page) < api.JobsOnPage {
			return out, nil
		}
		after = int64(page[len(page)-1].ID)
	}
}

// add appends the jobs that are wanted, until there are limit of them.
func (in *listJobs) add(to, jobs []api.Job, limit int, c *caller) []api.Job {
	for i := range jobs {
		j := &jobs[i]
		if len(to) < limit && (in.After == 0 || int64(j.ID) > in.After) &&
			wants(&in.JobFilter, j, c.owns(api.Owner{UID: j.UID, Name: j.Owner})) {
			to = append(to, *j)
		}
	}
	return to
}

// listTasks is a request for tasks.
type listTasks struct {
	Usage bool   `query:"usage" doc:"add the current use of the tasks' containers"`
	After string `query:"after" doc:"only tasks that follow this one, job.stage.index: usually the last of the page before" example:"7.0.2" pattern:"task"`
	User  string `query:"user" doc:"only tasks of the user of this name"`
	State string `query:"state" doc:"only tasks in this state" enum:"starting,running,ending,ended"`
	Page
}

// list returns the tasks of a page.
func (in *listTasks) list(all []api.Task) ([]api.Task, error) {
	var after cluster.TaskID
	if in.After != "" {
		var err error
		if after, err = api.ParseTask(in.After); err != nil {
			return nil, wrong("after", strconv.Quote(in.After), "must be the id of a task, such as 7.0.2")
		}
	}
	follows := func(t cluster.TaskID) bool {
		return in.After == "" || t.Compare(after) > 0
	}
	var out []api.Task
	for i := range all {
		t := &all[i]
		if follows(t.Task) && (in.User == "" || in.User == t.Owner.Name) && (in.State == "" || in.State == t.State.String()) {
			out = append(out, *t)
		}
	}
	return out[:min(len(out), cmp.Or(in.Limit, len(out)))], nil
}

// named is a request for a list of what has a name, by name.
type named struct {
	After string `query:"after" doc:"only what follows this name, byte by byte: usually the last name of the page before"`
	Page
}

// pageOf returns a page of a list that is ordered by name.
func pageOf[T any](in *named, all []T, name func(*T) string) []T {
	all = slices.DeleteFunc(all, func(one T) bool { return name(&one) <= in.After && in.After != "" })
	return all[:min(len(all), cmp.Or(in.Limit, len(all)))]
}
