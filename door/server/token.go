package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// Tokens is the part of store.Store with the tokens of network clients.
type Tokens interface {
	AddToken(ctx context.Context, t store.Token) (int64, error)
	Token(ctx context.Context, id int64) (store.Token, error)
	Tokens(ctx context.Context) ([]store.Token, error)
	RevokeToken(ctx context.Context, id int64, at timeline.Time) error
	TokenUsed(ctx context.Context, id int64, at timeline.Time) error
}

// hashOf returns what is stored of a secret.
func hashOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// bearer returns the token that a request presents; ok is false unless it has exactly one header Authorization, with
// the scheme Bearer and a token: see RFC 6750, section 2.1. headers are the values of all headers of that name.
func bearer(headers []string) (id int64, secret string, ok bool) {
	if len(headers) != 1 {
		return 0, "", false
	}
	scheme, text, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return 0, "", false
	}
	return api.ParseToken(strings.TrimLeft(text, " "))
}

// mostTokens is how many tokens a user can have that neither are revoked nor have expired.
const mostTokens = 100

// TokenPath is the part of a request's path that names a token.
type TokenPath struct {
	Token int64 `path:"token" doc:"id of a token"`
}

// tokenOf returns what is shown of a stored token.
func tokenOf(t *store.Token) api.Token {
	at := func(ns timeline.Time) time.Time {
		if ns == 0 {
			return time.Time{}
		}
		return time.Unix(0, int64(ns))
	}
	return api.Token{ID: t.ID, UID: t.UID, User: t.User, Scope: scopeNamed(t.Scope), Created: at(t.Created),
		Expires: at(t.Expires), Revoked: at(t.Revoked), Used: at(t.Used)}
}

// scopeNamed returns the scope of a stored token; noScope, which allows nothing, if a later release has stored
// another one.
func scopeNamed(name string) (s api.Scope) {
	if s.UnmarshalText([]byte(name)) != nil {
		return api.NoScope
	}
	return s
}

// tokenOperations adds the operations about tokens. They need the socket: a token that is stolen must not make
// others, which outlive it.
func (s *Server) tokenOperations(a *operations) {
	register(a, local, "POST", "/v1/tokens", "create-token",
		"Create a token, with which a client over the network has rights of its user", 201,
		func(ctx context.Context, in *body[api.NewToken]) (*body[api.IssuedToken], error) {
			issued, err := s.createToken(ctx, &a.guard, callerOf(ctx), &in.Body)
			return &body[api.IssuedToken]{issued}, err
		})
	register(a, local, "GET", "/v1/tokens", "tokens", "List the caller's tokens, for operators those of all users", 200,
		func(ctx context.Context, _ *struct{}) (*body[[]api.Token], error) {
			all, err := s.tokens.store.Tokens(ctx)
			var own []api.Token
			for i := range all {
				if callerOf(ctx).owns(ownerOf(&all[i])) {
					own = append(own, tokenOf(&all[i]))
				}
			}
			return &body[[]api.Token]{own}, err
		})
	register(a, local, "DELETE", "/v1/tokens/{token}", "revoke-token",
		"Revoke a token of the caller, for operators one of any user; requests with it end", 204,
		func(ctx context.Context, in *TokenPath) (*struct{}, error) {
			t, err := s.tokens.store.Token(ctx, in.Token)
			if errors.Is(err, store.ErrNotFound) || err == nil && !callerOf(ctx).owns(ownerOf(&t)) {
				return nil, api.Errorf(api.NotFound, "token %d: you have no such token; `bellows token list` lists yours",
					in.Token)
			}
			if err == nil {
				err = s.tokens.revoke(ctx, t.ID)
			}
			if err == nil {
				s.log.Info("token revoked", "token", t.ID, "user", t.User, "by_uid", callerOf(ctx).UID)
			}
			return nil, err
		})
}

// ownerOf returns the user to whom a token belongs.
func ownerOf(t *store.Token) api.Owner { return api.Owner{UID: t.UID, Name: t.User} }

// createToken creates a token that a caller requests.
func (s *Server) createToken(ctx context.Context, g *guard, by *caller, n *api.NewToken) (api.IssuedToken, error) {
	of, operates := by.Credentials, by.operator
	if n.User != "" && n.User != by.User {
		if by.UID != 0 {
			return api.IssuedToken{}, api.Errorf(api.Denied, "user %s: only root creates tokens for other users", n.User)
		}
		var err error
		if of, err = s.tokens.named(n.User); err != nil {
			return api.IssuedToken{}, api.Errorf(api.Invalid, "user %s: cannot be found on this machine: %w", n.User, err)
		}
		operates = g.operates(&of)
	}
	switch {
	case of.User == "":
		return api.IssuedToken{},
			api.Errorf(api.Invalid, "user %d: has no name on this machine, and a token belongs to a user with a name", of.UID)
	case n.Scope == api.NoScope:
		return api.IssuedToken{}, api.Errorf(api.Invalid, "scope: must be one of %s", strings.Join(api.ScopeNames(), ", "))
	case n.Scope == api.AdminScope && !operates:
		return api.IssuedToken{}, api.Errorf(api.Denied, "scope admin: %s is no operator: must be read or submit", of.User)
	case n.Lifetime < api.LeastLifetime || n.Lifetime > api.MostLifetime:
		return api.IssuedToken{}, api.Errorf(api.Invalid, "lifetime %v: must be from %v to %v", n.Lifetime, api.LeastLifetime,
			api.MostLifetime)
	}
	now := time.Now()
	secret := api.NewSecret()
	t := store.Token{UID: of.UID, User: of.User, Scope: n.Scope.String(), Hash: hashOf(secret),
		Created: timeline.Time(now.UnixNano()), Expires: timeline.Time(now.Add(n.Lifetime).UnixNano())}
	if err := s.tokens.add(ctx, &t); err != nil {
		return api.IssuedToken{}, err
	}
	s.log.Info("token created", "token", t.ID, "user", t.User, "scope", t.Scope, "expires",
		tokenOf(&t).Expires.Format(time.RFC3339), "by_uid", by.UID)
	return api.IssuedToken{Token: tokenOf(&t), Secret: api.TokenText(t.ID, secret)}, nil
}

// add stores a token, unless its user has too many, and sets its id.
func (k *tokens) add(ctx context.Context, t *store.Token) error {
	k.adding.Lock()
	defer k.adding.Unlock()
	all, err := k.store.Tokens(ctx)
	if err != nil {
		return err
	}
	n := 0
	for i := range all {
		if ownerOf(&all[i]) == ownerOf(t) && all[i].Revoked == 0 && all[i].Expires > t.Created {
			n++
		}
	}
	if n >= mostTokens {
		return api.Errorf(api.Conflict,
			"user %s: has %d tokens that are valid, which is the most: revoke one with `bellows token revoke`", t.User, n)
	}
	t.ID, err = k.store.AddToken(ctx, *t)
	return err
}

// account returns a user of this machine with the groups that the system gives the user: jobs that are submitted with
// a token run with these rights. The error is a user.UnknownUserIdError if there is no such user.
func account(uid uint32) (cluster.Credentials, error) {
	return withGroups(user.LookupId(strconv.FormatUint(uint64(uid), 10)))
}

// accountNamed is account for the name of a user.
func accountNamed(name string) (cluster.Credentials, error) { return withGroups(user.Lookup(name)) }

func withGroups(u *user.User, err error) (cluster.Credentials, error) {
	if err != nil {
		return cluster.Credentials{}, err
	}
	groups, err := u.GroupIds()
	if err != nil {
		return cluster.Credentials{}, err
	}
	numbers := make([]uint32, 0, len(groups)+2)
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return cluster.Credentials{}, fmt.Errorf("user %s: number %q: %w", u.Username, text, err)
		}
		numbers = append(numbers, uint32(n))
	}
	return cluster.Credentials{UID: numbers[0], GID: numbers[1], Groups: numbers[2:], User: u.Username}, nil
}
