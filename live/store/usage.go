package store

import (
	"context"
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
)

// Usage is what one run of a task used over time.
type Usage struct {
	Container cluster.ContainerID
	Ended     timeline.Time
	Usage     usage.Usage
	// Missing is one clause on what is missing of it, and why; empty if nothing is.
	Missing string
}

// putUsage stores a usage, unless the run has one. A run that is not in the store any more gets none.
func putUsage(ctx context.Context, tx *change, u *Usage) error {
	id := u.Container
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO usage (job, stage, idx, run, owner_uid, ended_ns, spans, body, missing)
		SELECT job, stage, idx, run, owner_uid, ?5, ?6, ?7, ?8 FROM tasks WHERE job = ?1 AND stage = ?2 AND idx = ?3 AND run = ?4`,
		int64(id.Task.Job), id.Task.Stage, id.Task.Index, id.Run, int64(u.Ended), len(u.Usage.Spans), u.Usage.Marshal(),
		u.Missing)
	if err != nil {
		return fmt.Errorf("usage of task %s: %w", id.Task, err)
	}
	return nil
}

// Usage calls each with what every measured run of a job's tasks used over time, one after the other, the last that
// ended first: all of them together may be large. One that this program cannot read has no spans, and says so in
// Missing. An error of each ends it.
func (s *Store) Usage(ctx context.Context, job cluster.JobID, each func(Usage) error) error {
	query := `SELECT stage, idx, run, ended_ns, body, missing FROM usage WHERE job = ? ORDER BY ended_ns DESC, stage DESC, idx DESC, run DESC`
	return s.read(ctx, query, []any{int64(job)}, func(scan func(...any) error) error {
		u := Usage{Container: cluster.ContainerID{Task: cluster.TaskID{Job: job}}}
		var body []byte
		if err := scan(&u.Container.Task.Stage, &u.Container.Task.Index, &u.Container.Run, &u.Ended, &body,
			&u.Missing); err != nil {
			return err
		}
		var unreadable error
		if u.Usage, unreadable = usage.Unmarshal(body); unreadable != nil {
			u.Missing = unreadable.Error()
		}
		return each(u)
	})
}

// ThinUsage thins the usage of runs that ended before a time to at most most spans, up to atOnce of them, and returns
// how many it thinned. One that this program cannot read stays as it is.
func (s *Store) ThinUsage(ctx context.Context, before timeline.Time, most, atOnce int) (thinned int, err error) {
	type long struct {
		row  int64
		body []byte
	}
	var rows []long
	query := `SELECT rowid, body FROM usage WHERE spans > ? AND ended_ns < ? LIMIT ?`
	if err := s.read(ctx, query, []any{most, int64(before), atOnce}, func(scan func(...any) error) error {
		var r long
		err := scan(&r.row, &r.body)
		rows = append(rows, r)
		return err
	}); err != nil || len(rows) == 0 {
		return 0, err
	}
	return len(rows), s.write(ctx, "thin the usage in", func(tx *change) error {
		for _, r := range rows {
			u, err := usage.Unmarshal(r.body)
			if err == nil {
				r.body = u.Thin(most).Marshal()
			}
			if _, err := tx.ExecContext(ctx, `UPDATE usage SET spans = ?, body = ? WHERE rowid = ?`, min(len(u.Spans), most),
				r.body, r.row); err != nil {
				return err
			}
		}
		return nil
	})
}
