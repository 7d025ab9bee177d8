package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// KeyLife is how long a Key counts, unless its user has given too many since: see PruneKeys.
const KeyLife = 24 * time.Hour

// Key is what a user calls a request by, so that the request is carried out once, however often it arrives.
type Key struct {
	UID    uint32
	User   string // empty if the user has no name
	Text   string
	Digest []byte        // of the request
	At     timeline.Time // when it arrived
	First  cluster.JobID // the first of the jobs that it added; the ids of the others follow
	Jobs   int
}

// Key returns the Key of the same user and text that counts when k arrives, nil if there is none.
func (s *Store) Key(ctx context.Context, k *Key) (*Key, error) {
	earlier, err := findKey(ctx, s.reader, k)
	if err != nil {
		return nil, s.explain("read", err)
	}
	return earlier, nil
}

// findKey is Key in a database or a transaction.
func findKey(ctx context.Context, in interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, k *Key) (*Key, error) {
	found := Key{UID: k.UID, User: k.User, Text: k.Text}
	err := in.QueryRowContext(ctx,
		`SELECT digest, made_ns, first_job, jobs FROM keys WHERE owner_uid = ? AND owner_name = ? AND key = ? AND made_ns > ?`, k.UID, k.User, k.Text, int64(k.At.Add(-KeyLife))).Scan(&found.Digest, &found.At, &found.First, &found.Jobs)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("key: %w", err)
	}
	return &found, nil
}

// putKey stores a key, in place of one of the same user and text that counts no more.
func putKey(ctx context.Context, tx *change, k *Key) error {
	_, err := tx.ExecContext(ctx,
		`INSERT OR REPLACE INTO keys (owner_uid, owner_name, key, made_ns, digest, first_job, jobs) VALUES (?, ?, ?, ?, ?, ?, ?)`, k.UID, k.User, k.Text, int64(k.At), k.Digest, int64(k.First), k.Jobs)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	return nil
}

// prunedKeys is how many keys a transaction of PruneKeys deletes, so that other writers can write in between.
const prunedKeys = 1000

// PruneKeys deletes the keys that do not count any more: those older than KeyLife, and of each user all but the
// newest most.
func (s *Store) PruneKeys(ctx context.Context, now timeline.Time, most int) error {
	var gone []int64
	query := `SELECT id FROM (SELECT id, made_ns, row_number() OVER (PARTITION BY owner_uid, owner_name ORDER BY id DESC) AS nth FROM keys)
		WHERE made_ns <= ? OR nth > ?`
	err := s.read(ctx, query, []any{int64(now.Add(-KeyLife)), most}, func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		gone = append(gone, id)
		return err
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(gone, prunedKeys) {
		err := s.write(ctx, "remove keys from", func(tx *change) error {
			for _, id := range some {
				if _, err := tx.ExecContext(ctx, "DELETE FROM keys WHERE id = ?", id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
