package store

import (
	"context"
	"fmt"

	"github.com/bellows-rm/bellows/core/timeline"
)

// Token gives whoever presents its secret rights of a user: see door/server/token.go. The secret is not stored.
type Token struct {
	ID    int64
	UID   uint32
	User  string // the name of UID; another user who gets the uid later does not get the token
	Scope string
	Hash  [32]byte // SHA-256 of the secret

	Created, Expires timeline.Time
	// Revoked is 0 as long as the token was not revoked, and Used as long as it was not presented.
	Revoked, Used timeline.Time
}

// deadTokens is how many tokens of a user are kept that were revoked or have expired: the newest.
const deadTokens = 100

// AddToken stores a token and returns its id. Of the tokens of its user that are dead when it is created, it removes
// all but the newest.
func (s *Store) AddToken(ctx context.Context, t Token) (id int64, err error) {
	err = s.write(ctx, "add a token to", func(tx *change) error {
		const dead = "owner_uid = ?1 AND (revoked_ns > 0 OR expires_ns <= ?2)"
		if _, err := tx.ExecContext(ctx, "DELETE FROM tokens WHERE "+dead+" AND id NOT IN (SELECT id FROM tokens WHERE "+
			dead+" ORDER BY id DESC LIMIT ?3)", t.UID, int64(t.Created), deadTokens); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx,
			"INSERT INTO tokens (owner_uid, owner_name, scope, hash, created_ns, expires_ns) VALUES (?, ?, ?, ?, ?, ?)", t.UID,
			t.User, t.Scope, t.Hash[:], int64(t.Created), int64(t.Expires))
		if err != nil {
			return err
		}
		id, err = res.LastInsertId()
		return err
	})
	return id, err
}

// Token returns a token, or ErrNotFound.
func (s *Store) Token(ctx context.Context, id int64) (Token, error) {
	all, err := s.tokens(ctx, "WHERE id = ?", id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("token %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return Token{}, err
	}
	return all[0], nil
}

// Tokens returns the tokens of all users, by ascending id.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) { return s.tokens(ctx, "ORDER BY id") }

func (s *Store) tokens(ctx context.Context, where string, args ...any) (all []Token, err error) {
	query := "SELECT id, owner_uid, owner_name, scope, hash, created_ns, expires_ns, revoked_ns, used_ns FROM tokens " +
		where
	err = s.read(ctx, query, args, func(scan func(...any) error) error {
		var t Token
		var hash []byte
		if err := scan(&t.ID, &t.UID, &t.User, &t.Scope, &hash, &t.Created, &t.Expires, &t.Revoked, &t.Used); err != nil {
			return err
		}
		if copy(t.Hash[:], hash) != len(t.Hash) {
			return fmt.Errorf("token %d: its hash has %d bytes", t.ID, len(hash))
		}
		all = append(all, t)
		return nil
	})
	return all, err
}

// RevokeToken records that a token is revoked, unless it was before.
func (s *Store) RevokeToken(ctx context.Context, id int64, at timeline.Time) error {
	return s.write(ctx, "revoke a token in", func(tx *change) error {
		_, err := tx.ExecContext(ctx, "UPDATE tokens SET revoked_ns = ? WHERE id = ? AND revoked_ns = 0", int64(at), id)
		return err
	})
}

// TokenUsed records that a token was used, unless a later use is recorded.
func (s *Store) TokenUsed(ctx context.Context, id int64, at timeline.Time) error {
	return s.write(ctx, "record the use of a token in", func(tx *change) error {
		_, err := tx.ExecContext(ctx, "UPDATE tokens SET used_ns = ?1 WHERE id = ?2 AND used_ns < ?1", int64(at), id)
		return err
	})
}
