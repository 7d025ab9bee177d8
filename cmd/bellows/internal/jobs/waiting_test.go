package jobs

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// Who waits for the start of a job is told why, once for each reason; of a start within two seconds nothing is said.
func TestSaysWhyItWaits(t *testing.T) {
	waits := func(why string, tasks ...api.Task) api.Job {
		return api.Job{ID: 7, Status: cluster.StatusPending, Waiting: why, Tasks: tasks}
	}
	running := api.Task{State: api.TaskRunning}
	for _, c := range []struct {
		name string
		at   func(passed time.Duration) (api.Job, error)
		want string
	}{
		{"starts at once", func(passed time.Duration) (api.Job, error) {
			if passed < 2*time.Second {
				return waits("no node has 1GiB free"), nil
			}
			return waits("", running), nil
		}, ""},
		{"waits for one thing, and then for another", func(passed time.Duration) (api.Job, error) {
			switch {
			case passed < 20*time.Second:
				return waits("no node has 1GiB free"), nil
			case passed < 3*time.Minute:
				return waits("over the memory quota of its user: 400MiB of 400MiB taken"), nil
			case passed < 5*time.Minute:
				return waits("over the memory quota of its user: 300MiB of 400MiB taken"), nil
			}
			return waits("", running), nil
		}, "bellows: job 7 waits: no node has 1GiB free\n" +
			"bellows: job 7 waits: over the memory quota of its user: 400MiB of 400MiB taken\n"},
		{"has its place, and waits for memory", func(time.Duration) (api.Job, error) {
			return waits("", api.Task{State: api.TaskStarting, Usage: &cluster.Reading{State: cluster.ContainerWaiting,
				Why: "needs 64MiB, and job 3 is out of memory already"}}), nil
		}, "bellows: job 7 waits: needs 64MiB, and job 3 is out of memory already\n"},
		{"waits for its next attempt", func(passed time.Duration) (api.Job, error) {
			if passed < time.Minute {
				return waits("", running), nil
			}
			return waits("attempt 2 begins at 12:00:00", api.Task{State: api.TaskEnded}), nil
		}, "bellows: job 7 waits: attempt 2 begins at 12:00:00\n"},
		{"the daemon does not answer", func(time.Duration) (api.Job, error) {
			return api.Job{}, errors.New("no answer")
		}, ""},
		{"says so once more after a run", func(passed time.Duration) (api.Job, error) {
			if passed > time.Minute && passed < 2*time.Minute {
				return waits("", running), nil
			}
			return waits("no node has 1GiB free"), nil
		}, "bellows: job 7 waits: no node has 1GiB free\nbellows: job 7 waits: no node has 1GiB free\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, out := time.Now(), bytes.Buffer{}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				sayWhyItWaits(ctx, &out, func() (api.Job, error) { return c.at(time.Since(began)) })
				if out.String() != c.want {
					t.Errorf("%q is said, want %q", out.String(), c.want)
				}
			})
		})
	}
}

// Nothing more is asked once the job has ended.
func TestSaysNothingOfAnEndedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		sayWhyItWaits(t.Context(), &bytes.Buffer{}, func() (api.Job, error) {
			asked++
			return api.Job{Ended: true}, nil
		})
		if asked != 1 {
			t.Errorf("asked %d times, want once", asked)
		}
	})
}
