package store

import (
	"context"
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Ended is a job that has ended, its owner, and when it ended.
type Ended struct {
	ID  cluster.JobID
	UID uint32
	At  timeline.Time
}

// Ended returns the jobs that have ended, those that ended last first.
func (s *Store) Ended(ctx context.Context) ([]Ended, error) {
	var jobs []Ended
	query := "SELECT id, owner_uid, finished_ns FROM jobs WHERE ended = 1 ORDER BY finished_ns DESC, id DESC"
	err := s.read(ctx, query, nil, func(scan func(...any) error) error {
		var j Ended
		err := scan(&j.ID, &j.UID, &j.At)
		jobs = append(jobs, j)
		return err
	})
	return jobs, err
}

// Remove deletes jobs with their tasks from the store, and records that their files are to be removed: see Removed.
// Jobs that have not ended stay.
func (s *Store) Remove(ctx context.Context, ids []cluster.JobID) error {
	return s.write(ctx, "remove jobs from", func(tx *change) error {
		for _, id := range ids {
			for _, statement := range []string{
				"INSERT INTO removed (job, owner_uid) SELECT id, owner_uid FROM jobs WHERE id = ? AND ended = 1",
				"DELETE FROM jobs WHERE id = ? AND ended = 1", // and, by cascade, their tasks and usage
			} {
				if _, err := tx.ExecContext(ctx, statement, int64(id)); err != nil {
					return fmt.Errorf("job %d: %w", id, err)
				}
			}
		}
		return nil
	})
}

// Removed returns the deleted jobs whose files may still be there, by ascending id.
func (s *Store) Removed(ctx context.Context) ([]cluster.JobID, error) {
	return s.jobIDs(ctx, "SELECT job FROM removed ORDER BY job")
}

// FilesGone records that the files of deleted jobs have been removed.
func (s *Store) FilesGone(ctx context.Context, ids []cluster.JobID) error {
	return s.write(ctx, "remove jobs from", func(tx *change) error {
		for _, id := range ids {
			if _, err := tx.ExecContext(ctx, "DELETE FROM removed WHERE job = ?", int64(id)); err != nil {
				return fmt.Errorf("job %d: %w", id, err)
			}
		}
		return nil
	})
}

// Newest returns the greatest id that was ever assigned to a job, 0 if none was. A job with an id up to Newest that is
// not found has been removed.
func (s *Store) Newest(ctx context.Context) (cluster.JobID, error) {
	var id cluster.JobID
	err := s.read(ctx, "SELECT seq FROM sqlite_sequence WHERE name = 'jobs'", nil, func(scan func(...any) error) error {
		return scan(&id)
	})
	return id, err
}
