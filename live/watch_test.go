package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// Whoever asks for changes gets a snapshot first, and then each change: a job as it starts, one of its tasks, its end.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		other := r.submit(submission(1))
		synctest.Wait()
		jobs := map[cluster.JobID]api.Job{}
		at := int64(0)
		next := func(want string) (u api.Update) {
			t.Helper()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			u, err := r.Changes(ctx, at)
			got := fmt.Sprint("snapshot ", u.Snapshot)
			for _, j := range u.Jobs {
				got += fmt.Sprintf(", job %d %s", j.ID, j.Status)
				for _, k := range j.Tasks {
					got += fmt.Sprintf(" %s %s", k.Task, k.State)
				}
			}
			if err != nil || got != want || u.Revision <= at {
				t.Fatalf("changed at %d: %s (%v), want %s", u.Revision, got, err, want)
			}
			at = u.Revision
			u.Apply(jobs)
			return u
		}
		next("snapshot true, job 1 pending 1.0.0 starting")
		a := r.order(cluster.Start)
		r.fake.launched(a)
		next("snapshot false, job 1 running 1.0.0 running")
		second := r.submit(submission(2))
		b := r.order(cluster.Start)
		r.fake.launched(b)
		next("snapshot false, job 2 running 2.0.0 running")
		if j := jobs[second]; j.Waiting == "" || len(j.Tasks) != 1 || len(jobs) != 2 {
			t.Errorf("job %+v", j)
		}
		r.fake.ended(a.Container, cluster.Succeeded, 0)
		c := r.order(cluster.Start)
		next("snapshot false, job 1 succeeded 1.0.0 ended, job 2 running 2.0.1 starting")
		if _, here := jobs[other]; here || len(jobs[second].Tasks) != 2 {
			t.Errorf("known are %+v", jobs)
		}
		r.fake.launched(c)
		r.fake.ended(b.Container, cluster.Succeeded, 0)
		r.fake.ended(c.Container, cluster.Succeeded, 0)
		next("snapshot false, job 2 succeeded 2.0.0 ended 2.0.1 ended")
		if len(jobs) != 0 {
			t.Errorf("known are %+v", jobs)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if u, err := r.Changes(ctx, at); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing changes, and there is %+v, %v", u, err)
		}
	})
}

// Those who wait for changes are woken by a change, all of them, and by the end of the driver. A reader that does not
// come back holds up nobody.
func TestWaitingForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		synctest.Wait()
		at := r.board.Newest().Revision()
		var mu sync.Mutex
		var got []int64
		var failures []error
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				u, err := r.Changes(t.Context(), at)
				if err == nil {
					_, err = r.Changes(t.Context(), u.Revision+1<<40) // of a later run: all, at once
				}
				mu.Lock()
				got, failures = append(got, u.Revision), append(failures, err)
				mu.Unlock()
			})
			waiting.Go(func() {
				for from := at; ; {
					u, err := r.Changes(t.Context(), from)
					if err != nil {
						mu.Lock()
						failures = append(failures, err)
						mu.Unlock()
						return
					}
					from = u.Revision
				}
			})
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("changed, and nothing was done: %v", got)
		}
		r.submit(submission(1))
		synctest.Wait()
		if now := r.board.Newest().Revision(); len(got) != 100 || slices.Min(got) <= at || slices.Max(got) > now {
			t.Errorf("%d were woken, at %v", len(got), got)
		}
		r.end()
		waiting.Wait()
		ended := 0
		for _, err := range failures {
			if errors.Is(err, errStopped) {
				ended++
			} else if err != nil {
				t.Error(err)
			}
		}
		if ended != 100 {
			t.Errorf("%d heard of the end of the driver, want 100", ended)
		}
	})
}
