package place

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/format/jobfile"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// Profiles looks up the profiles that a job file names.
type Profiles struct {
	Client *client.Client
	// State is the state directory to read where no daemon runs; empty for none.
	State string
	store *store.Store // nil until it is opened
	// Failed is set to the first error, except for a missing profile.
	Failed *error
}

// LookUp returns the profiles by their names.
func (s *Profiles) LookUp(ctx context.Context) jobfile.Profiles {
	return func(name string) (cluster.Profile, bool) {
		p, err := s.get(ctx, name)
		switch {
		case err == nil:
			return p.OfStage(), true
		case api.KindOf(err) == api.NotFound && s.store == nil: // of the daemon
			if a, err := s.Client.App(ctx, name); err == nil {
				return api.ProfileOf(a.Learned, "")
			}
			return cluster.Profile{}, false
		case api.KindOf(err) != api.NotFound && !errors.Is(err, store.ErrNotFound) && *s.Failed == nil:
			*s.Failed = err
		}
		return cluster.Profile{}, false
	}
}

func (s *Profiles) get(ctx context.Context, name string) (api.Measured, error) {
	if s.store == nil {
		p, err := s.Client.Profile(ctx, name)
		if api.KindOf(err) != api.Unavailable || s.State == "" {
			return p.Measured, err
		}
		// A look-up must not create a store.
		if _, missing := os.Stat(filepath.Join(s.State, store.File)); missing != nil {
			return api.Measured{}, err
		}
		if s.store, err = store.Open(s.State); err != nil {
			return api.Measured{}, err
		}
	}
	p, err := s.store.Profile(ctx, uint32(os.Getuid()), UserName(), name)
	return p.Measured, err
}

// UserName returns the name of the user of this process, empty if the user has none, as the daemon does.
func UserName() string {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return ""
	}
	return u.Username
}

// Close closes the store, if one was opened.
func (s *Profiles) Close() {
	if s.store != nil {
		_ = s.store.Close() // it was only read
	}
}

// StoredProfiles looks up the profiles that a job file names: in the daemon, or in the state directory if no daemon
// runs.
func StoredProfiles(ctx context.Context) (lookUp jobfile.Profiles, done func() error, err error) {
	var p Place
	client, err := p.Client()
	if err != nil { // which does no harm to a file that names no profile
		var failed error
		nowhere := func(string) (cluster.Profile, bool) { failed = err; return cluster.Profile{}, false }
		return nowhere, func() error { return failed }, nil
	}
	var failed error
	known := Profiles{Client: client, State: p.State, Failed: &failed}
	return known.LookUp(ctx), func() error { known.Close(); return failed }, nil
}
