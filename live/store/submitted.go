package store

import (
	"context"

	"github.com/bellows-rm/bellows/core/timeline"
)

// Submitted says when a job was submitted, and by which user to which queue.
type Submitted struct {
	UID   uint32
	User  string // empty if the user has no name
	Queue string // empty if the job names none
	At    timeline.Time
}

// mostSubmitted bounds the jobs that SubmittedBetween looks at.
const mostSubmitted = 100_000

// SubmittedBetween returns the jobs that were submitted after one time and not after another, by ascending id, of the
// newest 100,000 jobs.
func (s *Store) SubmittedBetween(ctx context.Context, after, until timeline.Time) ([]Submitted, error) {
	var all []Submitted
	query := `SELECT owner_uid, owner_name, coalesce(json_extract(request, '$.job.queue'), ''), submitted_ns FROM jobs
		WHERE id > (SELECT coalesce(max(id), 0) FROM jobs) - ? AND submitted_ns > ? AND submitted_ns <= ? ORDER BY id`
	err := s.read(ctx, query, []any{mostSubmitted, int64(after), int64(until)}, func(scan func(...any) error) error {
		var j Submitted
		err := scan(&j.UID, &j.User, &j.Queue, &j.At)
		all = append(all, j)
		return err
	})
	return all, err
}
