package live

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/board"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/store"
)

// keepEnded stores the given number of ended jobs, each with three tasks, one of them failed, and an environment as
// large as a shell's.
func (r *rig) keepEnded(n int) {
	r.t.Helper()
	s := submission(3)
	s.Job.Owner = user.User
	var env []string
	for i := range 40 {
		env = append(env, fmt.Sprintf("VARIABLE_NUMBER_%d=%032d", i, i))
	}
	request := store.Request{Job: s.Job, As: s.Caller, Env: env, Dir: s.Dir}
	b := store.Batch{Jobs: map[cluster.JobID]store.JobState{}}
	for range n {
		id, err := r.store.AddJob(context.Background(),
			store.Job{Submitted: 1, Request: request, State: store.JobState{Status: cluster.StatusPending}})
		if err != nil {
			r.t.Fatal(err)
		}
		code := 1
		b.Jobs[id] = store.JobState{Status: cluster.StatusFailed, Ended: true, Started: 1, Finished: 2, ExitCode: &code,
			Detail: "why", Succeeded: 2}
		for i := range int32(3) {
			t := store.Task{Container: cluster.ContainerID{Task: cluster.TaskID{Job: id, Index: i}, Run: 1}, Node: "n1",
				Grant: resource.Of(1000, resource.GiB), Why: "fits", Booked: 1, Started: 1, Ended: 2, Outcome: cluster.Succeeded,
				Exit: &cluster.Exit{Started: 1, Ended: 2}}
			if i == 2 {
				t.Outcome, t.Exit.Code, t.Detail = cluster.Failed, 1, "ended with exit code 1"
			}
			b.Tasks = append(b.Tasks, t)
		}
	}
	if err := r.store.Write(context.Background(), b); err != nil {
		r.t.Fatal(err)
	}
}

// all reads pages with the given number of jobs until the last page.
func (r *rig) all(most int) (jobs []api.Job) {
	r.t.Helper()
	for after := cluster.JobID(0); ; {
		page, err := r.JobsAfter(context.Background(), after, most)
		if err != nil || len(page) > most {
			r.t.Fatalf("%d jobs after job %d: %v", len(page), after, err)
		}
		jobs = append(jobs, page...)
		if len(page) < most {
			return jobs
		}
		after = page[len(page)-1].ID
	}
}

// Pages contain every job once, in order, ended or not, as Job shows it without tasks and stages.
func TestPagesOfEndedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		r.open()
		r.keepEnded(7)
		r.start(fifo(t))
		defer r.end()
		r.submit(submission(2))
		for _, most := range []int{1, 3, 8, 1000} {
			jobs := r.all(most)
			if len(jobs) != 8 {
				t.Fatalf("%d jobs on pages of %d", len(jobs), most)
			}
			for i, got := range jobs {
				want := r.job(cluster.JobID(i + 1))
				want.Tasks, want.Earlier = nil, nil
				if want.Ended {
					want.Stages = nil
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("listed as\n%+v, but is\n%+v", got, want)
				}
			}
		}
	})
}

// What is kept of jobs that have ended is what the store has: lists and jobs are the same the second time, and jobs
// that were removed are gone from both.
func TestEndedJobsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ended = 5*board.SpanSize + 20
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		r.open()
		r.keepEnded(ended)
		r.start(fifo(t))
		defer r.end()
		r.submit(submission(2))
		r.submit(submission(1))
		check := func(removed map[cluster.JobID]bool) {
			t.Helper()
			stored, err := r.store.List(t.Context(), 0, ended+2)
			if err != nil || len(stored) != ended+2-len(removed) {
				t.Fatalf("%d jobs are stored, %v", len(stored), err)
			}
			want, ok := r.board.Newest().Page(stored)
			for _, most := range []int{7, board.SpanSize, 300, 1000, 7} {
				if got := r.all(most); !ok || !reflect.DeepEqual(got, want) {
					t.Fatalf("pages of %d have %d jobs, want %d", most, len(got), len(want))
				}
			}
			for _, id := range []cluster.JobID{1, 5, board.SpanSize, board.SpanSize + 1, ended} {
				first, err := r.Job(t.Context(), id, false)
				again, err2 := r.Job(t.Context(), id, false)
				if removed[id] != (api.KindOf(err) == api.NotFound) || (err2 == nil) != (err == nil) ||
					!reflect.DeepEqual(first, again) || err == nil && first.Version != board.Final {
					t.Fatalf("job %d: %+v, %v, and then %+v, %v", id, first, err, again, err2)
				}
			}
		}
		check(nil)
		for _, keep := range []int{ended - 1, ended - 5, ended - board.SpanSize - 100, 20} {
			time.Sleep(time.Minute)
			pruned, err := r.Prune(t.Context(), retention.Rule{Newest: keep}, false)
			if err != nil || len(pruned.Jobs) == 0 {
				t.Fatalf("%+v, %v", pruned, err)
			}
			gone := map[cluster.JobID]bool{}
			for id := range cluster.JobID(ended - keep) {
				gone[id+1] = true
			}
			check(gone)
		}
	})
}

// A list of ended jobs costs a fraction of reading each job completely.
func BenchmarkEndedJobs(b *testing.B) {
	const jobs = 10_000
	r := &rig{t: b, dir: b.TempDir(), fake: newFake()}
	r.open()
	r.keepEnded(jobs)
	r.start(fifo(b))
	defer r.end()
	b.Run("listed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := len(r.all(1000)); n != jobs {
				b.Fatalf("%d jobs", n)
			}
		}
	})
	b.Run("each whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for id := range cluster.JobID(jobs) {
				r.job(id + 1)
			}
		}
	})
}
