// Package board has what callers see of a driver: the state at one revision, which never changes afterwards.
package board

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/live/store"
)

// Board is the state of the daemon as callers see it. The loop publishes a board after each piece of work, before it
// acts on what was decided, and a board never changes afterwards. So callers neither wait for the loop, which may be
// waiting for the disk, nor hold it up. A board shares with the board before whatever has not changed: it costs time
// in proportion to what has changed, and to the number of nodes.
type Board struct {
	At     time.Time
	Status api.ClusterStatus // without what the Backend measures
	// Unready is why the driver does not serve, as far as its loop knows; nil if it does.
	Unready error
	// Jobs are all that the driver has: those that have not ended, or whose end is not stored yet.
	Jobs  List
	Tally Tally
	Last  cluster.JobID // the greatest that was ever shown, in this run of the daemon or before
	// revision grows whenever a job or a task changes, and from one run of the daemon to the next.
	revision int64
	// left are the jobs that have left Jobs after the revision first, the latest last; leftSize is how many they are
	// with their tasks.
	left     []*Job
	leftSize int
	first    int64
}

// mostLeft bounds the jobs and tasks of Board.left. Whoever follows the changes and is further behind begins anew.
const mostLeft = 4096

// First returns the board before anything is shown. Each run of the daemon has 2^32 revisions of its own, so that a
// revision of an earlier run is older than all of them; up to run 2^21 they are integers that every reader of JSON
// knows exactly. late is added to the revisions of a run whose number may be that of another. last is the greatest job
// that was ever stored.
func First(run, late int64, last cluster.JobID) *Board {
	revision := run<<32 + late
	return &Board{revision: revision, first: revision, Last: last}
}

// Revision is what callers who follow the changes know.
func (b *Board) Revision() int64 { return b.revision }

// Tally counts the jobs that have not ended, and their tasks.
type Tally struct{ Jobs, Pending, Running int }

// Count adds a job n times; the job may be nil.
func (t *Tally) Count(j *Job, n int) {
	if j == nil || j.Ended {
		return
	}
	t.Jobs += n
	t.Pending += n * j.pending
	t.Running += n * j.running
}

// Changes returns what has changed since a revision; news is false if nothing has.
func (b *Board) Changes(from int64, now timeline.Time) (u api.Update, news bool) {
	u.Revision = b.revision
	if from < b.first || from > b.revision {
		u.Snapshot = true
		for j := range b.Jobs.All() {
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
	for j := range b.Jobs.Since(from) {
		u.Jobs = append(u.Jobs, j.since(from, now))
	}
	return u, from < b.revision
}

// Page returns stored jobs as they are on a board that is not older. ok is false if one of them has left the board
// and its end was not stored when the page was read: by now it is.
func (b *Board) Page(stored []store.Listed) (out []api.Job, ok bool) {
	out = make([]api.Job, 0, len(stored))
	for i := range stored {
		l := &stored[i]
		switch j := b.Jobs.Job(l.ID); {
		case j != nil:
			out = append(out, j.Alone())
		case l.State.Ended:
			out = append(out, listedView(l))
		case l.ID > b.Last:
			return out, true // It is being submitted, as the last of the jobs.
		default:
			return nil, false
		}
	}
	return out, true
}

// listedView returns a stored job as lists show it.
func listedView(l *store.Listed) api.Job {
	out := api.Job{ID: l.ID, Name: l.Name, Owner: api.OwnerOf(cluster.Credentials{UID: l.UID, User: l.User}).Name,
		UID: l.UID, Submitted: drive.Instant(l.Submitted), TaskCount: l.Tasks, SucceededCount: l.State.Succeeded}
	SetState(&out, &l.State)
	if out.Ended {
		out.Version = Final
	}
	return out
}

// SetState copies the progress of a job.
func SetState(out *api.Job, s *store.JobState) {
	out.Status, out.Ended, out.Detail = s.Status, s.Ended, s.Detail
	out.Started, out.Finished = drive.Instant(s.Started), drive.Instant(s.Finished)
	if s.Ended {
		out.ExitCode = s.ExitCode
	}
}
