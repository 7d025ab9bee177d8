package live

import (
	"context"

	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// Changes waits until something has changed since a revision, and returns what, as of now. It returns a snapshot at
// once if the revision is 0, of an earlier run of the daemon, or so old that some of the jobs that have ended since
// are forgotten. It keeps nothing for its caller: whoever asks seldom gets all that has changed meanwhile, each job
// once.
func (d *Driver) Changes(ctx context.Context, from int64) (api.Update, error) {
	for {
		newer := d.board.newer()
		if u, news := d.board.newest().changes(from, d.now()); news {
			return u, nil
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return api.Update{}, ctx.Err()
		case <-d.turns.Ended():
			return api.Update{}, errStopped
		}
	}
}

// changes returns what has changed since a revision; news is false if nothing has.
func (b *board) changes(from int64, now timeline.Time) (u api.Update, news bool) {
	u.Revision = b.revision
	if from < b.first || from > b.revision {
		u.Snapshot = true
		for j := range b.jobs.all() {
			if !j.Ended {
				u.Jobs = append(u.Jobs, j.since(0, now))
			}
		}
		return u, true
	}
	left := len(b.left)
	for left > 0 && b.left[left-1].revision > from {
		left--
	}
	for _, j := range b.left[left:] {
		u.Jobs = append(u.Jobs, j.since(from, now))
	}
	for j := range b.jobs.since(from) {
		u.Jobs = append(u.Jobs, j.since(from, now))
	}
	return u, from < b.revision
}

// since returns a job with the tasks that have changed after a revision.
func (b *boardJob) since(revision int64, now timeline.Time) api.Job {
	out := b.Job // without a version: some tasks are left out
	for _, t := range b.tasks {
		if t.revision > revision {
			out.Tasks = append(out.Tasks, t.at(now))
		}
	}
	return out
}
