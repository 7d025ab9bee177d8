package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"os/user"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// tokens finds out who sends a request over the network, and ends requests whose token ceases to be valid.
type tokens struct {
	store Tokens
	log   *slog.Logger
	// account and named look up a user of this machine: see the functions account and accountNamed.
	account func(uid uint32) (cluster.Credentials, error)
	named   func(name string) (cluster.Credentials, error)

	adding sync.Mutex // so that no user gets more than mostTokens

	mu   sync.Mutex
	open map[int64]map[*tokenRequest]struct{} // requests in progress, by the id of the token that they present
	refusals
}

func newTokens(s Tokens, log *slog.Logger) *tokens {
	return &tokens{store: s, log: log, account: account, named: accountNamed, open: map[int64]map[*tokenRequest]struct{}{}}
}

// tokenRequest is a request in progress that presents a token.
type tokenRequest struct{ end context.CancelCauseFunc }

// endedError is why a request ends before its answer is complete: its token is not valid any more.
type endedError struct{ why *api.Error }

func (e *endedError) Error() string { return e.why.Message }

// orEnded returns why the request of a context has ended, if the reason is its token, or else err.
func orEnded(ctx context.Context, err error) error {
	if ended, ok := errors.AsType[*endedError](context.Cause(ctx)); ok {
		return ended.why
	}
	return err
}

// cutIfEnded ends the connection of a request whose token has ceased to be valid, so that the client does not take a
// part of an answer for the whole.
func cutIfEnded(ctx context.Context) {
	if orEnded(ctx, nil) != nil {
		panic(http.ErrAbortHandler)
	}
}

type scopeKey struct{}

// scopeOf returns the scope of the token of a request; ok is false for a request over the socket, which needs none.
func scopeOf(ctx context.Context) (s api.Scope, ok bool) {
	s, ok = ctx.Value(scopeKey{}).(api.Scope)
	return s, ok
}

// recheck is how long a token is taken for valid while a request lasts: then its expiry and its user are looked at
// again.
const recheck = 10 * time.Second

// usedPace is how exactly the last use of a token is recorded: not more often than that.
const usedPace = time.Hour

// authenticated returns a handler for requests over the network. Whoever presents a valid token is its user to next;
// everybody else gets the same answer, after the same time, and only the log has the reason.
func (k *tokens) authenticated(next http.Handler, counted func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, ok := bearer(r.Header["Authorization"])
		// The request is known before its token is looked up, so that no revocation comes between the two.
		ctx, done := k.begin(r.Context(), id)
		defer done()
		t, from, why, err := k.identify(ctx, id, secret, ok)
		switch {
		case err != nil:
			writeError(w, said(err))
			return
		case why != "":
			counted()
			k.refuse(w, r, id, why)
			return
		}
		if c, _ := ctx.Value(connectionKey{}).(*connection); c != nil {
			c.prove()
		}
		k.used(ctx, &t)
		go k.look(ctx, t.ID, t.Expires)
		ctx = context.WithValue(context.WithValue(ctx, peerKey{}, from), scopeKey{}, scopeNamed(t.Scope))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// begin adds a request in progress that presents a token, which is not yet looked up. The caller calls done at its end.
func (k *tokens) begin(ctx context.Context, id int64) (within context.Context, done func()) {
	ctx, end := context.WithCancelCause(ctx)
	r := &tokenRequest{end}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open[id] == nil {
		k.open[id] = map[*tokenRequest]struct{}{}
	}
	k.open[id][r] = struct{}{}
	return ctx, func() {
		end(nil)
		k.mu.Lock()
		defer k.mu.Unlock()
		if delete(k.open[id], r); len(k.open[id]) == 0 {
			delete(k.open, id)
		}
	}
}

// identify returns the token with an id and a secret, and its user. why is the reason if it is not valid. The error is
// that this cannot be found out now.
func (k *tokens) identify(ctx context.Context, id int64, secret string, presented bool) (t store.Token,
	from cluster.Credentials, why string, err error) {
	t, err = k.store.Token(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return t, from, "", err
	}
	hash := hashOf(secret)
	same := subtle.ConstantTimeCompare(t.Hash[:], hash[:]) == 1
	switch {
	case !presented:
		return t, from, "no token", nil
	case err != nil || !same:
		return t, from, "an unknown token", nil
	}
	from, why, err = k.check(&t)
	return t, from, why, err
}

// check returns the user of a token, or why the token is not valid now.
func (k *tokens) check(t *store.Token) (from cluster.Credentials, why string, err error) {
	switch now := timeline.Time(time.Now().UnixNano()); {
	case t.Revoked != 0:
		return from, "a revoked token", nil
	case t.Expires <= now:
		return from, "an expired token", nil
	}
	from, err = k.account(t.UID)
	_, gone := errors.AsType[user.UnknownUserIdError](err)
	switch {
	case gone:
		return from, "a token of a user who was removed", nil
	case err != nil:
		return from, "", api.Errorf(api.Unavailable, "the user of token %d cannot be looked up: %w", t.ID, err)
	case from.User != t.User:
		return from, "a token of a user whose uid belongs to another user", nil
	}
	return from, "", nil
}

// used records that a token is used. What cannot be recorded is not: the request does not need it.
func (k *tokens) used(ctx context.Context, t *store.Token) {
	if now := time.Now(); now.Sub(time.Unix(0, int64(t.Used))) >= usedPace {
		if err := k.store.TokenUsed(ctx, t.ID, timeline.Time(now.Truncate(usedPace).UnixNano())); err != nil {
			k.log.Debug("cannot record the use of a token", "token", t.ID, "error", err)
		}
	}
}

// look ends the requests with a token when the token expires, or its user is removed, while one of them lasts: until
// ctx ends.
func (k *tokens) look(ctx context.Context, id int64, expires timeline.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(recheck, max(0, time.Until(time.Unix(0, int64(expires)))))):
		}
		why := ""
		switch t, err := k.store.Token(ctx, id); {
		case time.Now().UnixNano() >= int64(expires):
			why = "an expired token"
		case errors.Is(err, store.ErrNotFound):
			why = "a revoked token"
		case err == nil:
			_, why, _ = k.check(&t) // What cannot be found out now may be later.
		}
		if why != "" {
			k.end(id, why)
			return
		}
	}
}

// revoke revokes a token, and ends the requests with it.
func (k *tokens) revoke(ctx context.Context, id int64) error {
	err := k.store.RevokeToken(ctx, id, timeline.Time(time.Now().UnixNano()))
	if err == nil {
		k.end(id, "a revoked token")
	}
	return err
}

// end ends the requests with a token that is not valid any more.
func (k *tokens) end(id int64, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for r := range k.open[id] {
		r.end(&endedError{api.Errorf(api.NoToken, "the request has %s: token %d is not valid any more", why, id)})
	}
}

// Refusals are answered at a bounded rate, whoever sends the requests: each at least refusalDelay after it was found
// out, and refusalPace after the one before. A connection that would wait for longer than refusalWait is closed.
// Valid tokens do not wait.
const (
	refusalDelay = 100 * time.Millisecond
	refusalPace  = 50 * time.Millisecond
	refusalWait  = 5 * time.Second
	refusalLog   = time.Second // time between two lines of the log
)

// refusals are the requests that were refused; the lock is that of tokens.
type refusals struct {
	next   time.Time // when the next one is answered at the earliest
	logged time.Time // when the log had the last line
	silent int       // refused since then
}

// refuse answers a request without a valid token. id is what it presents, and 0 if it presents none.
func (k *tokens) refuse(w http.ResponseWriter, r *http.Request, id int64, why string) {
	k.mu.Lock()
	now := time.Now()
	at := now.Add(refusalDelay)
	if k.next.After(at) {
		at = k.next
	}
	answers := at.Sub(now) <= refusalWait
	if answers {
		k.next = at.Add(refusalPace)
	}
	silent := k.silent
	if k.silent++; now.Sub(k.logged) >= refusalLog {
		k.logged, k.silent = now, 0
		k.log.Warn("refused a request over the network", "from", r.RemoteAddr, "token", id, "reason", why, "others", silent)
	}
	k.mu.Unlock()
	if !answers {
		panic(http.ErrAbortHandler)
	}
	select {
	case <-time.After(at.Sub(now)):
	case <-r.Context().Done():
	}
	// Package http may read the rest of the body before it answers.
	// every connection supports it; recorders in tests may not
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	w.Header().Set("WWW-Authenticate", `Bearer realm="bellows"`)
	w.Header().Set("Connection", "close")
	writeError(w, api.Errorf(api.NoToken,
		"a request over the network needs a valid token in its header Authorization: `bellows token create` makes "+
			"one, on the machine of the daemon"))
}
