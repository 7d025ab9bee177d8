package server

import (
	"context"
	"errors"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// applicationOf returns the answer about a stored application.
func (s *Server) applicationOf(ctx context.Context, a *store.App) (api.Application, error) {
	out := api.Application{Name: a.Name}
	if a.Profile != nil {
		p := profileOf(*a.Profile)
		out.Measured = &p
	}
	if a.Unreadable != nil {
		out.Trouble = a.Unreadable.Error()
	}
	if a.Learned == nil {
		return out, nil
	}
	var err error
	if out.Learned, err = s.driver.Learned(ctx, a.UID, a.User, a.Name); api.KindOf(err) == api.Invalid {
		if out.Trouble != "" {
			out.Trouble += "; "
		}
		out.Trouble, err = out.Trouble+err.Error(), nil
	}
	return out, err
}

// ApplicationPath names an application of the caller.
type ApplicationPath struct {
	Name string `path:"name"`
}

// unknown says that nothing is known of an application.
func (p *ApplicationPath) unknown(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return api.Errorf(api.NotFound, "profile %q: does not exist; `bellows profile list` lists what is known", p.Name)
	}
	return err
}

// ofUser are applications of the caller, or for operators of another user.
type ofUser struct {
	User string `query:"user" doc:"for operators: those of the user of this name, instead of the caller's"`
}

// whose returns the caller, and the other user whose applications an operator asks for; empty if they are the
// caller's own.
func (u *ofUser) whose(ctx context.Context) (caller cluster.Credentials, other string, err error) {
	if caller, err = peer(ctx); err != nil || u.User == "" || u.User == api.OwnerOf(caller).Name {
		return caller, "", err
	}
	other, err = callerOf(ctx).mayAskFor(u.User, "applications")
	return caller, other, err
}

// apps returns what is known of the applications.
func (u *ofUser) apps(ctx context.Context, s *Server) ([]store.App, error) {
	caller, other, err := u.whose(ctx)
	switch {
	case err != nil:
		return nil, err
	case other != "":
		return s.profiles.AppsOfUser(ctx, other)
	}
	return s.profiles.Apps(ctx, caller.UID, caller.User)
}

func (s *Server) applications(a *operations) {
	register(a, own, "GET", "/v1/apps", "applications", "List what is known of the caller's applications", 200,
		func(ctx context.Context, in *struct {
			named
			ofUser
		}) (*body[[]api.Application], error) {
			stored, err := in.apps(ctx, s)
			if err != nil {
				return nil, err
			}
			stored = pageOf(&in.named, stored, func(a *store.App) string { return a.Name })
			out := make([]api.Application, len(stored))
			for i := range stored {
				if out[i], err = s.applicationOf(ctx, &stored[i]); err != nil {
					return nil, err
				}
			}
			return &body[[]api.Application]{out}, nil
		})
	register(a, anyone, "GET", "/v1/apps/{name}", "application", "Return what is known of an application of the caller",
		200, ofCaller(func(ctx context.Context, caller cluster.Credentials, in *ApplicationPath) (*body[api.Application],
			error) {
			stored, err := s.profiles.App(ctx, caller.UID, caller.User, in.Name)
			if err != nil {
				return nil, in.unknown(err)
			}
			out, err := s.applicationOf(ctx, &stored)
			return &body[api.Application]{out}, err
		}))
	register(a, anyone, "POST", "/v1/apps", "import-runs",
		"Add runs that another system recorded to what is known of the caller's applications", 200,
		ofCaller(func(ctx context.Context, caller cluster.Credentials, in *body[api.RecordedRuns]) (*body[api.ImportedRuns],
			error) {
			h, notes, err := profile.ReadHistory(in.Body.History)
			if err != nil {
				return nil, api.Errorf(api.Invalid, "%v", err)
			}
			out, err := s.driver.Import(ctx, caller, h)
			return &body[api.ImportedRuns]{api.ImportedRuns{Apps: out, Notes: notes}}, err
		}))
	register(a, own, "DELETE", "/v1/apps/{name}", "forget-application",
		"Forget all that is known of an application of the caller", 204, func(ctx context.Context, in *struct {
			ApplicationPath
			ofUser
		}) (*struct{}, error) {
			caller, other, err := in.whose(ctx)
			switch {
			case err != nil:
				return nil, err
			case other != "":
				return nil, in.unknown(s.profiles.ForgetOfUser(ctx, other, in.Name))
			}
			return nil, in.unknown(s.profiles.Forget(ctx, caller.UID, caller.User, in.Name))
		})
}
