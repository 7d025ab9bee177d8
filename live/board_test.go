package live

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/board"
)

// checkBoard checks that the board shows what it would show if every job were shown anew.
func (r *rig) checkBoard() {
	r.t.Helper()
	if err := r.look(r.t.Context(), func() {
		b, now := r.board.Newest(), r.now()
		var want board.Tally
		for id, j := range r.jobs {
			shown, anew := b.Jobs.Job(id), r.shownAs(j, nil, b.Revision())
			want.Count(anew, 1)
			if shown == nil {
				r.t.Errorf("job %d is not on the board", id)
				continue
			}
			is, is2 := shown.Whole(now), anew.Whole(now)
			is.Version = is2.Version
			for i := range min(len(is.Stages), len(is2.Stages)) { // As reasons, it is asked again later.
				is.Stages = slices.Clone(is.Stages)
				is.Stages[i].Startable = is2.Stages[i].Startable
			}
			// reasons can change as time passes
			if is.Waiting = is2.Waiting; !reflect.DeepEqual(is, is2) || shown.Stuck != anew.Stuck {
				r.t.Errorf("job %d is shown as %+v, and is %+v", id, is, is2)
			}
		}
		if b.Jobs.Len() != len(r.jobs) || b.Tally != want {
			r.t.Errorf("the board has %d jobs and counts %+v, want %d and %+v", b.Jobs.Len(), b.Tally, len(r.jobs), want)
		}
	}); err != nil {
		r.t.Error(err)
	}
}

// follower follows the board by its changes, now and then, and now and then forgets the last of them.
type follower struct {
	at, savedAt int64
	jobs, saved map[cluster.JobID]api.Job
}

// follow checks that all that the follower knows is what the board shows.
func (f *follower) follow(t *testing.T, d *Driver, random *rand.Rand) {
	t.Helper()
	if f.jobs == nil {
		f.jobs = map[cluster.JobID]api.Job{}
	}
	switch random.IntN(6) {
	case 0:
		return
	case 1: // Its connection breaks: it goes on where it was before.
		f.at, f.jobs = f.savedAt, maps.Clone(f.saved)
	case 2:
		f.savedAt, f.saved = f.at, maps.Clone(f.jobs)
	}
	if f.jobs == nil {
		f.jobs = map[cluster.JobID]api.Job{}
	}
	b, now := d.board.Newest(), d.now()
	if u, news := b.Changes(f.at, now); news {
		u.Apply(f.jobs)
		f.at = u.Revision
	}
	want := map[cluster.JobID]api.Job{}
	for j := range b.Jobs.All() {
		if !j.Ended {
			job := j.Whole(now)
			job.Earlier = nil
			want[j.ID] = withoutTime(job, now)
		}
	}
	for id, j := range f.jobs {
		if is := withoutTime(j, now); f.at != b.Revision() || !reflect.DeepEqual(is, want[id]) {
			t.Fatalf("at revision %d of %d, job %d is known as %+v, and shown as %+v", f.at, b.Revision(), id, is, want[id])
		}
	}
	if len(f.jobs) != len(want) {
		t.Fatalf("%d jobs are known, and %d are shown", len(f.jobs), len(want))
	}
}

// withoutTime returns a job without what follows from the time, which passes without a change, and without its
// version, which jobs that are known by their changes do not have.
func withoutTime(j api.Job, now timeline.Time) api.Job {
	tasks := j.Tasks
	j.Tasks, j.Version = nil, 0
	for _, t := range tasks {
		t.InPhase = api.InPhase{}
		if t.Throttle != nil && !t.Throttle.Until.After(instant(now)) {
			t.Throttle = nil
		}
		if !t.RetryAt.After(instant(now)) {
			t.RetryAt = time.Time{}
		}
		j.Tasks = append(j.Tasks, t)
	}
	return j
}

// Why many jobs wait is found out a part at a time: the last of them is not late by more than a second, and no job
// that has not changed is shown as changed.
func TestReasonsOfManyJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		first := r.submit(submission(2))
		const waiting = 3 * askedAtOnce
		for range waiting {
			r.submit(submission(1))
		}
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		time.Sleep(time.Second)
		synctest.Wait()
		reasons := func() (all map[string]int) {
			all = map[string]int{}
			jobs, err := r.Jobs(t.Context())
			if err != nil || len(jobs) == 0 {
				t.Fatal(err)
			}
			for _, j := range jobs {
				all[j.Waiting]++
			}
			return all
		}
		const room = "no node has 400MiB and 1 core free"
		if got, want := reasons(), map[string]int{"": 1, room: 1, "job 2 comes first": waiting - 1}; !maps.Equal(got, want) {
			t.Errorf("the jobs wait because of %v, want %v", got, want)
		}
		before := r.board.Newest()
		r.fake.ended(a.Container, cluster.Succeeded, 0)
		r.fake.launched(r.order(cluster.Start))
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := reasons(), map[string]int{"": 2, room: 1, "job 3 comes first": waiting - 2}; !maps.Equal(got, want) {
			t.Errorf("the jobs wait because of %v, want %v", got, want)
		}
		after := r.board.Newest()
		r.fake.ended(b.Container, cluster.Succeeded, 0)
		r.order(cluster.Start)
		synctest.Wait()
		r.checkBoard()
		if j := r.job(first); !j.Ended {
			t.Errorf("job %+v", j)
		}
		if u, _ := after.Changes(before.Revision(), r.now()); u.Snapshot || len(u.Jobs) != waiting+1 {
			t.Errorf("%d jobs have changed, want %d", len(u.Jobs), waiting+1)
		}
		if same, news := after.Changes(after.Revision(), r.now()); news || len(same.Jobs) != 0 {
			t.Errorf("changed since the revision itself: %+v", same)
		}
	})
}
