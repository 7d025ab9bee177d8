package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/store"
)

// Profiles is the part of store.Store with what is known of applications.
type Profiles interface {
	PutProfile(ctx context.Context, p store.Profile) error
	Profile(ctx context.Context, uid uint32, user, name string) (store.Profile, error)
	Profiles(ctx context.Context, uid uint32, user string) ([]store.Profile, error)
	App(ctx context.Context, uid uint32, user, name string) (store.App, error)
	Apps(ctx context.Context, uid uint32, user string) ([]store.App, error)
	AppsOfUser(ctx context.Context, user string) ([]store.App, error)
	Forget(ctx context.Context, uid uint32, user, name string) error
	ForgetOfUser(ctx context.Context, user, name string) error
}

// Store is the part of store.Store that the API uses.
type Store interface {
	Profiles
	Tokens
}

// body is a response whose body is JSON.
type body[T any] struct{ Body T }

// PageOut is the part of a request to pause that concerns memory.
type PageOut struct {
	Wanted bool `query:"page_out" doc:"page out the memory of the programs as far as possible: paged_out of a task says how much has left"`
}

// JobPath is the part of a request's path that names a job.
type JobPath struct {
	Job int64 `path:"job" doc:"id of a job"`
}

// TaskPath is the part of a request's path that names a task.
type TaskPath struct {
	Task string `path:"task" doc:"job.stage.index" example:"7.0.2" pattern:"task"`
}

func (p JobPath) id() cluster.JobID { return cluster.JobID(p.Job) }

// job implements ofJob.
func (p JobPath) job() (cluster.JobID, error) { return p.id(), nil }

// id returns the task that the path names.
func (p TaskPath) id() (cluster.TaskID, error) {
	id, err := api.ParseTask(p.Task)
	if err != nil {
		return id, api.Errorf(api.Invalid, "%v", err)
	}
	return id, nil
}

// job implements ofJob.
func (p TaskPath) job() (cluster.JobID, error) {
	id, err := p.id()
	return id.Job, err
}

// patterns are the forms of parameters, as the document has them, by the names that tags have for them.
var patterns = map[string]*regexp.Regexp{
	"task": api.TaskForm,
}

// handler returns the handler of all requests to the API.
func (s *Server) handler() http.Handler {
	a := newOperations("bellows", "1",
		"Jobs that share the memory of a machine. Times are RFC 3339, sizes bytes, CPU millicores.",
		guard{s.daemon.UID, s.daemon.Operators, s.driver.Owner})
	s.machine(a)
	s.health(a)
	s.jobs(a)
	s.bulk(a)
	s.tasks(a)
	s.watch(a)
	s.plan(a)
	s.knowledge(a)
	s.quotas(a)
	s.poolOperations(a)
	s.tokenOperations(a)
	document := a.document()
	a.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(document)
	})
	a.mux.Handle("GET /metrics", s.metrics.handler())
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if has := a.methods(r); len(has) > 0 {
			w.Header().Set("Allow", strings.Join(has, ", "))
			writeError(w, wrongFor(http.StatusMethodNotAllowed, api.NotFound, "", "method", api.Clipped(r.Method),
				"must be one of %s at %s", strings.Join(has, ", "), api.Clipped(r.URL.Path)))
			return
		}
		writeError(w, api.Errorf(api.NotFound, "%s %s: no such address; GET /openapi.json lists them", r.Method,
			api.Clipped(r.URL.Path)))
	})
	return s.metrics.counted(a.doc, a.mux)
}

// methods returns the methods that an address has, sorted; none if there is no such address.
func (a *operations) methods(r *http.Request) (has []string) {
	for _, method := range []string{"DELETE", "GET", "HEAD", "POST", "PUT"} {
		if _, pattern := a.mux.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL}); pattern != "/" {
			has = append(has, method)
		}
	}
	return has
}

// status returns the state of the daemon and its nodes.
func (s *Server) status(ctx context.Context) (api.Status, error) {
	status, err := s.driver.Status(ctx)
	about := s.daemon
	about.Configuration = s.configuration.Load()
	about.Listens = s.listens()
	return api.Status{Daemon: about, ClusterStatus: status}, err
}

func (s *Server) machine(a *operations) {
	register(a, anyone, "GET", "/v1/status", "status", "Return the state of the daemon and its nodes", 200,
		func(ctx context.Context, _ *struct{}) (*body[api.Status], error) {
			status, err := s.status(ctx)
			return &body[api.Status]{status}, err
		})
	register(a, operator, "POST", "/v1/shutdown", "shutdown", "End the daemon", 202,
		func(ctx context.Context, in *struct {
			Kill bool `query:"kill" doc:"kill the jobs that have not ended"`
		}) (*struct{}, error) {
			// The shutdown proceeds even if the caller does not wait for the answer.
			return nil, s.driver.Shutdown(context.WithoutCancel(ctx), in.Kill)
		})
	register(a, operator, "POST", "/v1/prune", "prune", "Remove jobs that have ended, with their tasks and output", 200,
		func(ctx context.Context, in *struct {
			OlderThan int64 `query:"older_than_ns" doc:"remove jobs that ended longer ago than this and at least 10 s ago" minimum:"0"`
			Keep      int   `query:"keep" doc:"number of newest ended jobs to keep in any case" minimum:"0"`
			Dry       bool  `query:"dry_run" doc:"return what would be removed, and remove nothing"`
		}) (*body[api.Pruned], error) {
			pruned, err := s.driver.Prune(ctx, retention.Rule{For: time.Duration(in.OlderThan), Newest: in.Keep}, in.Dry)
			return &body[api.Pruned]{pruned}, err
		})
}

func (s *Server) jobs(a *operations) {
	register(a, anyone, "POST", "/v1/jobs", "submit", "Submit a job", 201,
		ofCaller(func(ctx context.Context, caller cluster.Credentials, in *keyed[api.Submission]) (*body[api.Submitted],
			error) {
			key, err := in.key()
			if err != nil {
				return nil, err
			}
			job := submissionOf(&in.Body, caller)
			job.Key = key
			id, err := s.driver.Submit(ctx, job)
			return &body[api.Submitted]{api.Submitted{ID: int64(id)}}, err
		}))
	register(a, sizes, "GET", "/v1/jobs", "jobs", "List jobs", 200,
		func(ctx context.Context, in *listJobs) (*body[[]api.Job], error) {
			jobs, err := s.list(ctx, in)
			return &body[[]api.Job]{jobs}, err
		})
	register(a, sizes, "GET", "/v1/jobs/{job}", "job", "Return a job with its tasks", 200,
		func(ctx context.Context, in *struct {
			JobPath
			Usage bool `query:"usage" doc:"add the current use of the job's containers"`
			Ended bool `query:"ended" doc:"answer when the job has ended"`
		}) (*body[api.Job], error) {
			if in.Ended {
				job, err := s.driver.Wait(ctx, in.id())
				return &body[api.Job]{job}, err
			}
			job, err := s.driver.Job(ctx, in.id(), in.Usage)
			return &body[api.Job]{job}, err
		})
	register(a, owner, "GET", "/v1/jobs/{job}/usage", "usage", "Return what the tasks of a job used over time", 200,
		func(ctx context.Context, in *struct {
			JobPath
			Spans int `query:"spans" doc:"largest number of spans of each run; 0 is the limit of an answer, 100000 spans, which the runs share" minimum:"0"`
		}) (*body[[]api.TaskUsage], error) {
			runs, err := s.driver.Usage(ctx, in.id(), in.Spans)
			return &body[[]api.TaskUsage]{runs}, err
		})
	register(a, owner, "DELETE", "/v1/jobs/{job}", "kill", "Kill a job", 202,
		func(ctx context.Context, in *struct{ JobPath }) (*struct{}, error) {
			return nil, s.driver.Cancel(ctx, callerOf(ctx).Credentials, in.id())
		})
	register(a, owner, "PUT", "/v1/jobs/{job}/pause", "pause",
		"Pause a job: none of its tasks starts, and its programs are stopped", 202, func(ctx context.Context, in *struct {
			JobPath
			PageOut
		}) (*struct{}, error) {
			return nil, s.driver.Pause(ctx, callerOf(ctx).Credentials, in.id(), cluster.TaskID{}, in.PageOut.Wanted)
		})
	register(a, owner, "DELETE", "/v1/jobs/{job}/pause", "resume", "Resume a paused job, and its paused tasks", 202,
		func(ctx context.Context, in *struct{ JobPath }) (*struct{}, error) {
			return nil, s.driver.Resume(ctx, callerOf(ctx).Credentials, in.id(), cluster.TaskID{})
		})
	register(a, owner, "GET", "/v1/jobs/{job}/explain", "explain", "Explain the state of a job", 200,
		func(ctx context.Context, in *struct{ JobPath }) (*body[api.Explanation], error) {
			why, err := s.explain(ctx, in.id())
			return &body[api.Explanation]{why}, err
		})
	register(a, owner, "POST", "/v1/jobs/{job}/input", "input",
		"Send input to the program of a job, in frames on the upgraded connection", 101,
		func(ctx context.Context, in *struct{ JobPath }) (*upgraded, error) {
			sink, err := s.driver.Input(ctx, in.id())
			if err != nil {
				return nil, err
			}
			return &upgraded{func(source net.Conn) { s.relay(ctx, source, sink) }}, nil
		})
	register(a, owner, "GET", "/v1/jobs/{job}/logs", "logs", "List the files with the output of a job", 200,
		func(ctx context.Context, in *struct{ JobPath }) (*body[[]api.LogFile], error) {
			files, err := s.driver.Logs(ctx, in.id())
			return &body[[]api.LogFile]{files}, err
		})
}

// explain explains a job. The driver explains one at a time, and users take turns.
func (s *Server) explain(ctx context.Context, id cluster.JobID) (api.Explanation, error) {
	done, err := s.explaining.take(ctx, callerOf(ctx).UID)
	if err != nil {
		return api.Explanation{}, err
	}
	defer done()
	return s.driver.Explain(ctx, id)
}

func (s *Server) tasks(a *operations) {
	register(a, sizes, "GET", "/v1/tasks", "tasks", "List the tasks of jobs that have not ended", 200,
		func(ctx context.Context, in *listTasks) (*body[[]api.Task], error) {
			tasks, err := s.driver.Tasks(ctx, in.Usage)
			if err != nil {
				return nil, err
			}
			tasks, err = in.list(tasks)
			return &body[[]api.Task]{tasks}, err
		})
	register(a, owner, "GET", "/v1/tasks/{task}", "task", "Return a task that runs or has ended", 200,
		ofTask(func(ctx context.Context, id cluster.TaskID, in *struct {
			TaskPath
			Ended bool `query:"ended" doc:"answer when the job has ended"`
		}) (*body[api.Task], error) {
			task, err := s.driver.WaitTask(ctx, id, in.Ended)
			return &body[api.Task]{task}, err
		}))
	register(a, owner, "PUT", "/v1/tasks/{task}/pause", "pauseTask", "Pause a task: its programs are stopped", 202,
		ofTask(func(ctx context.Context, id cluster.TaskID, in *struct {
			TaskPath
			PageOut
		}) (*struct{}, error) {
			return nil, s.driver.Pause(ctx, callerOf(ctx).Credentials, id.Job, id, in.PageOut.Wanted)
		}))
	register(a, owner, "DELETE", "/v1/tasks/{task}/pause", "resumeTask", "Resume a paused task", 202,
		ofTask(func(ctx context.Context, id cluster.TaskID, in *struct{ TaskPath }) (*struct{}, error) {
			return nil, s.driver.Resume(ctx, callerOf(ctx).Credentials, id.Job, id)
		}))
	register(a, owner, "GET", "/v1/tasks/{task}/output", "output", "Return the output of a task", 200,
		ofTask(func(ctx context.Context, id cluster.TaskID, in *struct {
			TaskPath
			Stderr bool  `query:"stderr" doc:"standard error instead of standard output"`
			Run    int   `query:"run" doc:"number of the run of the task; 0 is the newest run"`
			Follow bool  `query:"follow" doc:"continue until the run has ended"`
			From   int64 `query:"from" doc:"number of bytes to skip at the beginning" minimum:"0"`
			All    bool  `query:"all" doc:"the task waits for this reader before it drops output, as long as the reader makes progress"`
		}) (*streamed, error) {
			return s.output(ctx, api.Output{Task: id, Run: in.Run, Stderr: in.Stderr, Follow: in.Follow, From: in.From,
				All: in.All})
		}))
}

// Profile is a profile to be stored. It is complete, because what was left out would be stored as a measured zero.
type Profile struct{ api.Measured }

func (*Profile) complete() {}

func profileOf(p store.Profile) api.NamedProfile {
	return api.NamedProfile{Name: p.Name, Made: time.Unix(0, int64(p.Made)), Measured: p.Measured}
}

func (s *Server) knowledge(a *operations) {
	s.applications(a)
	register(a, anyone, "GET", "/v1/profiles", "profiles", "List the caller's profiles", 200,
		ofCaller(func(ctx context.Context, caller cluster.Credentials, in *named) (*body[[]api.NamedProfile], error) {
			stored, err := s.profiles.Profiles(ctx, caller.UID, caller.User)
			stored = pageOf(in, stored, func(p *store.Profile) string { return p.Name })
			out := make([]api.NamedProfile, len(stored))
			for i := range stored {
				out[i] = profileOf(stored[i])
			}
			return &body[[]api.NamedProfile]{out}, err
		}))
	register(a, anyone, "GET", "/v1/profiles/{name}", "profile", "Return a profile of the caller", 200,
		ofCaller(func(ctx context.Context, caller cluster.Credentials, in *struct {
			Name string `path:"name"`
		}) (*body[api.NamedProfile], error) {
			stored, err := s.profiles.Profile(ctx, caller.UID, caller.User, in.Name)
			if errors.Is(err, store.ErrNotFound) {
				return nil, api.Errorf(api.NotFound, "profile %q: does not exist; `bellows profile` measures it", in.Name)
			}
			return &body[api.NamedProfile]{profileOf(stored)}, err
		}))
	register(a, anyone, "PUT", "/v1/profiles/{name}", "store-profile",
		"Store a profile, in place of an old profile of the same name", 204,
		ofCaller(func(ctx context.Context, caller cluster.Credentials, in *struct {
			Name string `path:"name"`
			Body Profile
		}) (*struct{}, error) {
			if !cluster.IsName(in.Name) {
				return nil, api.Errorf(api.Invalid, "%v", cluster.CheckName("profile name", in.Name))
			}
			p := store.Profile{Measured: in.Body.Measured}
			if err := p.Elasticity.Check(); err != nil {
				return nil, api.Errorf(api.Invalid, "profile %q: %v", in.Name, err)
			}
			p.Name, p.UID, p.User = in.Name, caller.UID, caller.User
			p.Made = timeline.Time(time.Now().UnixNano())
			err := s.profiles.PutProfile(ctx, p)
			if errors.Is(err, store.ErrProfiles) {
				err = api.Errorf(api.OverQuota, "profile %q: %w", in.Name, err)
			}
			return nil, err
		}))
}
