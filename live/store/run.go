package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bellows-rm/bellows/core/timeline"
)

// Run is one run of the daemon.
type Run struct {
	ID       int64 // assigned by AddRun, ascending
	UID      uint32
	User     string
	Policy   string
	Settings map[string]string
	Started  timeline.Time
	Ended    timeline.Time // 0 while it goes on, and after an end that was not recorded
}

// AddRun records that a run has begun and returns its id.
func (s *Store) AddRun(ctx context.Context, r Run) (int64, error) {
	settings, err := json.Marshal(r.Settings)
	if err != nil {
		return 0, fmt.Errorf("store run: %w", err)
	}
	var id int64
	err = s.write(ctx, "write to", func(tx *change) error {
		return tx.QueryRowContext(ctx,
			`INSERT INTO runs (owner_uid, owner_name, policy, settings, started_ns) VALUES (?, ?, ?, ?, ?) RETURNING id`,
			r.UID, r.User, r.Policy, string(settings), int64(r.Started)).Scan(&id)
	})
	return id, err
}

// EndRun records that a run has ended.
func (s *Store) EndRun(ctx context.Context, id int64, at timeline.Time) error {
	return s.write(ctx, "write to", func(tx *change) error {
		_, err := tx.ExecContext(ctx, `UPDATE runs SET ended_ns = ? WHERE id = ?`, int64(at), id)
		return err
	})
}

// Runs returns all runs, oldest first.
func (s *Store) Runs(ctx context.Context) ([]Run, error) {
	var runs []Run
	query := `SELECT id, owner_uid, owner_name, policy, settings, started_ns, ended_ns FROM runs ORDER BY id`
	err := s.read(ctx, query, nil, func(scan func(...any) error) error {
		var r Run
		var settings string
		if err := scan(&r.ID, &r.UID, &r.User, &r.Policy, &settings, &r.Started, &r.Ended); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(settings), &r.Settings); err != nil {
			return fmt.Errorf("run %d: %w", r.ID, err)
		}
		runs = append(runs, r)
		return nil
	})
	return runs, err
}

// RemoveRuns deletes the run upTo and all earlier runs.
func (s *Store) RemoveRuns(ctx context.Context, upTo int64) error {
	return s.write(ctx, "remove runs from", func(tx *change) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM runs WHERE id <= ?", upTo)
		return err
	})
}
