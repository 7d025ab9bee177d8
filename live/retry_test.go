package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// A task that has failed pauses before its next attempt, twice as long each time, also if another daemon starts
// meanwhile: the pause counts from the end of the run. Its job says when and why.
func TestPauseBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(1)
		s.Job.MaxAttempts, s.Job.RetryDelay = 4, 10*time.Second
		id := r.submit(s)
		fails := func() time.Time {
			o := r.order(cluster.Start)
			r.fake.launched(o)
			r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: o.Container.Run,
				Outcome: cluster.Failed, Detail: "ended with exit code 1"}
			synctest.Wait()
			return time.Now()
		}
		says := func(want string, at time.Time) {
			t.Helper()
			synctest.Wait()
			j := r.job(id)
			if j.Waiting != want || j.Status != cluster.StatusRunning || j.Stages[0].Pending != 1 ||
				len(j.Tasks) != 1 || !j.Tasks[0].RetryAt.Equal(at) {
				t.Errorf("waits because %q, %s, again at %v; want %q, at %v", j.Waiting, j.Status, j.Tasks[0].RetryAt, want, at)
			}
			e, err := r.Explain(t.Context(), id)
			if err != nil || !strings.Contains(e.Why, want) {
				t.Errorf("explained %q, %v", e.Why, err)
			}
		}
		again := fails().Add(10 * time.Second)
		says("attempt 2 begins at "+again.Format(time.TimeOnly)+", because attempt 1 ended with exit code 1", again)
		r.noOrder()
		time.Sleep(10*time.Second - 1)
		r.noOrder()
		time.Sleep(time.Nanosecond)

		again = fails().Add(20 * time.Second)
		time.Sleep(5 * time.Second)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake()
		r.start(fifo(t))
		says("attempt 3 begins at "+again.Format(time.TimeOnly)+", because attempt 2 ended with exit code 1", again)
		time.Sleep(time.Until(again) - 1)
		r.noOrder()
		time.Sleep(time.Nanosecond)

		fails()
		if err := r.Close(); err != nil { // The pause ends while no daemon runs.
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.fake = newFake()
		r.start(fifo(t))
		fails()
		if j := r.wait(id); j.Status != cluster.StatusFailed || !j.Tasks[0].RetryAt.IsZero() {
			t.Errorf("%+v", j)
		}
	})
}

// A job whose task pauses between attempts can be killed at once.
func TestKillInAPauseBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(1)
		s.Job.MaxAttempts, s.Job.RetryDelay = 2, time.Hour
		id := r.submit(s)
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Failed, 1)
		synctest.Wait()
		if err := r.Cancel(t.Context(), user, id); err != nil {
			t.Fatal(err)
		}
		if j := r.wait(id); j.Status != cluster.StatusCancelled || !j.Tasks[0].RetryAt.IsZero() {
			t.Errorf("%+v", j)
		}
	})
}
