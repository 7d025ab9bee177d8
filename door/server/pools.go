package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
)

// Pools is the part of pools.Pools that the API uses.
type Pools interface {
	Put(ctx context.Context, by cluster.Credentials, owner api.Owner, s api.PoolSpec) (created bool, err error)
	Delete(ctx context.Context, by cluster.Credentials, r api.PoolRef) error
	List(ctx context.Context) ([]api.PoolSummary, error)
	Detail(ctx context.Context, r api.PoolRef) (api.PoolDetail, error)
	Handler(r api.PoolRef) (http.Handler, error)
}

// PoolOwner is the part of a request that says whose pools it concerns.
type PoolOwner struct {
	User string `query:"user" doc:"name of the owner, if that is not the caller; for operators"`
}

// PoolPath names a pool.
type PoolPath struct {
	Pool string `path:"pool" doc:"name of a pool"`
	PoolOwner
}

// ExecutorPath names an executor of a pool.
type ExecutorPath struct {
	PoolPath
	Executor int64 `path:"executor" doc:"number of an executor in its pool" minimum:"0"`
}

// EnrolledPath names an application of a pool.
type EnrolledPath struct {
	PoolPath
	Application int64 `path:"application" doc:"number of an application, as its lease says" minimum:"1"`
}

// refOf returns the pool that a request names. Whether there is one of the caller is not looked at. Of another user
// it is not said to who is no operator.
func (s *Server) refOf(ctx context.Context, p *PoolPath) (api.PoolRef, error) {
	c := callerOf(ctx)
	me := api.OwnerOf(c.Credentials)
	if _, err := c.mayAskFor(p.User, "pools"); err != nil {
		return api.PoolRef{}, err
	}
	if p.User == "" || p.User == me.Name {
		return api.PoolRef{UID: me.UID, User: me.Name, Name: p.Pool}, nil
	}
	all, err := s.pools.List(ctx)
	for i := range all {
		if r := all[i].PoolRef; r.User == p.User && r.Name == p.Pool {
			return r, nil
		}
	}
	if err == nil {
		err = api.Errorf(api.NotFound, "pool %q of %s: there is none", cluster.Clip(p.Pool), cluster.Clip(p.User))
	}
	return api.PoolRef{}, err
}

// withoutEnv returns a specification without what may have secrets.
func withoutEnv(s api.PoolSpec) api.PoolSpec {
	s.Env = nil
	return s
}

// poolOperations adds the operations about pools of executors. A user has no access to the pools of another one, and
// sees nothing of them: their executors are jobs, whose size everybody sees.
func (s *Server) poolOperations(a *operations) {
	register(a, own, "GET", "/v1/pools", "pools", "List the caller's pools; for operators those of all users", 200,
		func(ctx context.Context, in *PoolOwner) (*body[[]api.PoolSummary], error) {
			c := callerOf(ctx)
			of, err := c.mayAskFor(in.User, "pools")
			if err != nil {
				return nil, err
			}
			all, err := s.pools.List(ctx)
			if err != nil {
				return nil, err
			}
			all = slices.DeleteFunc(all, func(p api.PoolSummary) bool {
				return of != "" && p.User != of || !c.owns(p.Owner())
			})
			for i := range all {
				all[i].Spec = withoutEnv(all[i].Spec)
			}
			return &body[[]api.PoolSummary]{all}, nil
		})
	register(a, own, "GET", "/v1/pools/{pool}", "pool",
		"Return a pool with its executors and applications; the environment of executors is left out", 200,
		func(ctx context.Context, in *PoolPath) (*body[api.PoolDetail], error) {
			r, err := s.refOf(ctx, in)
			if err != nil {
				return nil, err
			}
			d, err := s.pools.Detail(ctx, r)
			d.Spec = withoutEnv(d.Spec)
			return &body[api.PoolDetail]{d}, err
		})
	register(a, own, "PUT", "/v1/pools/{pool}", "put-pool",
		"Make a pool, or change it: executors that are not as it says any more are replaced", 200,
		func(ctx context.Context, in *struct {
			PoolPath
			Body api.PoolSpec
		}) (*body[api.StoredPool], error) {
			if in.Body.Name != in.Pool {
				return nil, wrong("name", strconv.Quote(api.Clipped(in.Body.Name)), "must be that of the address, %q",
					api.Clipped(in.Pool))
			}
			r, err := s.refOf(ctx, &in.PoolPath)
			if err != nil {
				return nil, err
			}
			created, err := s.pools.Put(ctx, callerOf(ctx).Credentials, r.Owner(), in.Body)
			return &body[api.StoredPool]{api.StoredPool{Created: created}}, err
		})
	register(a, own, "DELETE", "/v1/pools/{pool}", "remove-pool",
		"Remove a pool, with its executors and applications; the answer comes when they have ended", 204,
		func(ctx context.Context, in *PoolPath) (*struct{}, error) {
			r, err := s.refOf(ctx, in)
			if err != nil {
				return nil, err
			}
			return nil, s.pools.Delete(ctx, callerOf(ctx).Credentials, r)
		})
	s.messages(a)
}

// messages adds the operations by which executors and applications talk to a pool: see package executor.
func (s *Server) messages(a *operations) {
	type (
		toPool[T any] struct {
			PoolPath
			Body message[T]
		}
		toExecutors[T any] struct {
			ExecutorPath
			Body message[T]
		}
		toApplications[T any] struct {
			EnrolledPath
			Body message[T]
		}
	)
	register(a, own, "POST", "/v1/pools/{pool}/executors", "register-executor", "Register an executor with its secret",
		200, func(ctx context.Context, in *toPool[executor.Registration]) (*body[reply[executor.Lease]], error) {
			return relay[executor.Lease](ctx, s, &in.PoolPath, in.Body.request, fromExecutor)
		})
	register(a, own, "POST", "/v1/pools/{pool}/executors/{executor}/next", "next-task",
		"Report a task, and wait for the next", 200,
		func(ctx context.Context, in *toExecutors[executor.Next]) (*body[reply[executor.Work]], error) {
			return relay[executor.Work](ctx, s, &in.PoolPath, in.Body.request, fromExecutor)
		})
	register(a, own, "POST", "/v1/pools/{pool}/executors/{executor}/beat", "beat",
		"Keep the lease of an executor while its task runs", 200,
		func(ctx context.Context, in *toExecutors[executor.Beat]) (*body[reply[executor.BeatAnswer]], error) {
			return relay[executor.BeatAnswer](ctx, s, &in.PoolPath, in.Body.request, fromExecutor)
		})
	register(a, own, "POST", "/v1/pools/{pool}/applications", "enrol", "Enrol an application", 200,
		func(ctx context.Context, in *toPool[executor.Enrolment]) (*body[reply[executor.Lease]], error) {
			return relay[executor.Lease](ctx, s, &in.PoolPath, in.Body.request, fromApplication)
		})
	register(a, own, "POST", "/v1/pools/{pool}/applications/{application}/tasks", "grow", "Add tasks to an application",
		200, func(ctx context.Context, in *toApplications[executor.Growth]) (*body[reply[executor.Room]], error) {
			return relay[executor.Room](ctx, s, &in.PoolPath, in.Body.request, fromApplication)
		})
	register(a, own, "POST", "/v1/pools/{pool}/applications/{application}/results", "collect",
		"Confirm results, and wait for the next", 200,
		func(ctx context.Context, in *toApplications[executor.Collect]) (*body[reply[executor.Results]], error) {
			return relay[executor.Results](ctx, s, &in.PoolPath, in.Body.request, waitsForResults)
		})
	register(a, own, "DELETE", "/v1/pools/{pool}/applications/{application}", "cancel-application",
		"Cancel an application", 200,
		func(ctx context.Context, in *toApplications[executor.Cancellation]) (*body[reply[struct{}]], error) {
			return relay[struct{}](ctx, s, &in.PoolPath, in.Body.request, fromApplication)
		})
}

// belowPool returns the part of a path after the name of a pool.
func belowPool(path, pool string) string { return strings.TrimPrefix(path, "/v1/pools/"+pool) }
