package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
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

// attempts are how the runs of the task of a job end; first is 0 if there is one run.
type attempts struct {
	job         cluster.Job
	first, last cluster.Outcome
}

// A task is tried again, or not, by the same rule whether the engine decides or cannot any more: then the job ends as
// it would have ended, or waits for the next start. A job that fails although attempts are left says why.
func TestLastAttemptWithoutAnEngine(t *testing.T) {
	var all []attempts
	outcomes := []cluster.Outcome{cluster.Failed, cluster.OutOfMemory, cluster.Killed, cluster.Lost, cluster.Preempted}
	for _, j := range []cluster.Job{{MaxAttempts: 1}, {MaxAttempts: 1, AtMostOnce: true}, {MaxAttempts: 2},
		{MaxAttempts: 2, RetryOn: cluster.RetryOnOOM}, {MaxAttempts: 2, RetryOn: cluster.RetryOnError}} {
		for _, first := range append(outcomes, 0) {
			for _, last := range outcomes {
				all = append(all, attempts{j, first, last})
			}
		}
	}
	with, without := endOfAttempts(t, all, false), endOfAttempts(t, all, true)
	for i := range all {
		a, with, without := &all[i], &with[i], &without[i]
		if with.Ended != without.Ended || with.Ended && (with.Status != without.Status || with.Detail != without.Detail) {
			t.Errorf("%+v: with an engine %v %v %q, without %v %v %q", a, with.Ended, with.Status, with.Detail, without.Ended,
				without.Status, without.Detail)
		}
		counted := with.Tasks[0].Run
		if a.first == cluster.Preempted && !a.job.AtMostOnce {
			counted--
		}
		left, clause := with.Ended && counted < a.job.MaxAttempts, "; it is not tried again, because retry_on is "
		if says := strings.HasSuffix(with.Detail, clause+a.job.RetryOn.String()); says != left {
			t.Errorf("%+v: %q", a, with.Detail)
		}
	}
}

// endOfAttempts returns jobs of one task after their runs have ended, the last ones perhaps without an engine.
func endOfAttempts(t *testing.T, all []attempts, broken bool) (ended []api.Job) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for i := range all {
			s := submission(1)
			of := &all[i].job
			s.Job.MaxAttempts, s.Job.AtMostOnce, s.Job.RetryOn = of.MaxAttempts, of.AtMostOnce, of.RetryOn
			s.Job.Stages[0].Ideal, s.Job.Stages[0].Args = resource.Of(1, resource.MiB), []string{"true"}
			r.submit(s)
		}
		run := map[cluster.JobID]cluster.Order{}
		end := func(outcomeOf func(*attempts) cluster.Outcome) {
			synctest.Wait()
			for len(r.fake.orders) > 0 {
				o := r.order(cluster.Start)
				run[o.Task.Job] = o
				r.fake.launched(o)
				synctest.Wait()
			}
			for i := range all {
				o, runs := run[cluster.JobID(1+i)]
				if how := outcomeOf(&all[i]); runs && how != 0 {
					delete(run, o.Task.Job)
					r.fake.ended(o.Container, how, 1)
					synctest.Wait()
				}
			}
		}
		end(func(a *attempts) cluster.Outcome { return a.first })
		end(func(*attempts) cluster.Outcome { return 0 })
		if err := r.do(t.Context(), func() {
			if broken {
				r.health.broken = api.Errorf(api.Internal, "a policy took an impossible decision")
			}
		}); err != nil {
			t.Fatal(err)
		}
		end(func(a *attempts) cluster.Outcome { return a.last })
		for i := range all {
			ended = append(ended, r.job(cluster.JobID(1+i)))
		}
	})
	return ended
}
