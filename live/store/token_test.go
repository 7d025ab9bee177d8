package store

import (
	"errors"
	"reflect"
	"testing"

	"github.com/bellows-rm/bellows/core/timeline"
)

func TestTokens(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Token{
		{UID: 7, User: "ada", Scope: "read", Hash: [32]byte{1, 31: 2}, Created: 10, Expires: 100},
		{UID: 1<<32 - 2, User: "bob", Scope: "admin", Created: 20, Expires: 30},
	}
	for i := range want {
		if want[i].ID, err = s.AddToken(ctx, want[i]); err != nil || want[i].ID != int64(i+1) {
			t.Fatalf("token %d, %v", want[i].ID, err)
		}
	}
	for _, at := range []timeline.Time{50, 40, 60} {
		if err := s.TokenUsed(ctx, 1, at); err != nil {
			t.Fatal(err)
		}
		if err := s.RevokeToken(ctx, 2, at); err != nil {
			t.Fatal(err)
		}
	}
	want[0].Used, want[1].Revoked = 60, 50
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if got, err := s.Tokens(ctx); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("tokens %+v, want %+v: %v", got, want, err)
	}
	if got, err := s.Token(ctx, 2); err != nil || got != want[1] {
		t.Errorf("token 2 is %+v: %v", got, err)
	}
	if _, err := s.Token(ctx, 3); !errors.Is(err, ErrNotFound) || err.Error() != "token 3: not found" {
		t.Errorf("token 3: %v", err)
	}
}

// Of the dead tokens of a user the newest are kept; live ones and those of other users stay, and no id is given twice.
func TestDeadTokensAreRemoved(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	add := func(uid uint32, created, expires timeline.Time) int64 {
		t.Helper()
		id, err := s.AddToken(ctx, Token{UID: uid, User: "u", Scope: "read", Created: created, Expires: expires})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	other := add(8, 1, 2)
	live := add(7, 1, 1000)
	revoked := add(7, 1, 1000)
	if err := s.RevokeToken(ctx, revoked, 2); err != nil {
		t.Fatal(err)
	}
	for range deadTokens {
		add(7, 1, 5)
	}
	last := add(7, 9, 1000) // when all but one of those before are dead
	all, err := s.Tokens(ctx)
	if err != nil || len(all) != deadTokens+3 || all[0].ID != other || all[1].ID != live || all[2].ID != revoked+1 ||
		all[len(all)-1].ID != last {
		t.Errorf("%d tokens, the first are %+v: %v", len(all), all[:min(3, len(all))], err)
	}
}
