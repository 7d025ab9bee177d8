package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
)

// newQuotaRig is newRig with quotas.
func newQuotaRig(t *testing.T, q *cluster.Quotas) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), fake: newFake(), quotas: q}
	r.open()
	r.start(fifo(t))
	return r
}

// ofUsers are quotas of every user.
func ofUsers(l cluster.Limits) *cluster.Quotas {
	return &cluster.Quotas{Users: map[string]cluster.Limits{"": l}}
}

// by returns a submission of another user.
func by(name string, uid uint32, tasks int) Submission {
	s := submission(tasks)
	s.Caller = cluster.Credentials{UID: uid, GID: uid, User: name}
	return s
}

// overQuota checks that a quota refuses a submission, with these words.
func (r *rig) overQuota(s Submission, want string) error {
	r.t.Helper()
	_, err := r.Submit(r.t.Context(), s)
	if api.KindOf(err) != api.OverQuota || err.Error() != want {
		r.t.Errorf("error %v, want %s", err, want)
	}
	return err
}

// What a user may not have now waits, also after a restart, and others are not kept waiting. A replay of the log
// decides the same.
func TestQuotaOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, ofUsers(cluster.Limits{cluster.QuotaMemory: {Most: int64(400 * resource.MiB)}}))
		id := r.submit(submission(3))
		first := r.order(cluster.Start)
		r.fake.launched(first)
		synctest.Wait()
		r.noOrder()
		const why = "over the memory quota of its user: 400MiB of 400MiB taken"
		if got := r.job(id).Waiting; got != why {
			t.Errorf("job waits: %q", got)
		}
		if e, err := r.Explain(t.Context(), id); err != nil || e.Why != "The next task of the job has not started: "+why+"." {
			t.Errorf("explained: %q, %v", e.Why, err)
		} else if len(e.Remedies) != 1 || !strings.HasPrefix(e.Remedies[0], "It starts when other tasks of its user ") {
			t.Errorf("what helps: %q", e.Remedies)
		}
		other := r.submit(by("bob", 2001, 1))
		if o := r.order(cluster.Start); o.Task.Job != other {
			t.Errorf("started %s", o.Task)
		} else {
			r.fake.ended(o.Container, cluster.Succeeded, 0)
		}
		r.fake.ended(first.Container, cluster.Succeeded, 0)
		second := r.order(cluster.Start)
		r.fake.launched(second)
		synctest.Wait()
		log := r.EventLog()
		r.end()
		header, records := readLog(t, log)
		if at, ok := replay(t, header, records); !ok {
			t.Errorf("a replay decides otherwise at record %d", at)
		}

		r.fake = newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: second.Task, Run: 1, Grant: second.Grant,
			Launched: 1})
		r.open()
		r.start(fifo(t))
		defer r.end()
		synctest.Wait()
		r.noOrder()
		if got := r.job(id).Waiting; got != why {
			t.Errorf("after a restart the job waits: %q", got)
		}
		r.fake.ended(second.Container, cluster.Succeeded, 0)
		r.order(cluster.Start)
	})
}

// A job that exceeds a quota whatever else runs is refused as a mistake, one that exceeds a quota now as its kind says.
func TestQuotaRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, ofUsers(cluster.Limits{cluster.QuotaMemory: {Most: int64(300 * resource.MiB)},
			cluster.QuotaRunning: {Most: 1, Refuses: true}}))
		defer r.end()
		_, err := r.Submit(t.Context(), submission(1))
		if api.KindOf(err) != api.Invalid ||
			!strings.Contains(err.Error(), "memory 400MiB: must be at most 300MiB, the quota of user ada") {
			t.Errorf("error %v", err)
		}
		small := submission(1)
		small.Job.Stages[0].Ideal = resource.Of(100, 100*resource.MiB)
		r.submit(small)
		e := r.overQuota(small,
			`job "sorts" quota running of user ada: must be at most 1 job, with 1 job taken and 1 job added`)
		if api.RetryAfter(e) != 0 {
			t.Error("the end of a job is foreseen")
		}
		o := r.order(cluster.Start)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		synctest.Wait()
		r.submit(small)
	})
}

// Submissions above the quota of a minute are refused with the time to wait, also after a restart; those of others
// are not.
func TestQuotaOfSubmissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, ofUsers(cluster.Limits{cluster.QuotaSubmissions: {Most: 2, Refuses: true}}))
		r.submit(submission(1))
		time.Sleep(20 * time.Second)
		r.submit(submission(1))
		err := r.overQuota(submission(1),
			`job "sorts" quota submissions of user ada: must be at most 2 jobs a minute, with 2 jobs taken and 1 job added: try again in 40s`)
		if wait := api.RetryAfter(err); wait > 40*time.Second || wait < 39*time.Second {
			t.Errorf("try again after %v", wait)
		}
		r.submit(by("bob", 2001, 1))
		root := by("root", 0, 1)
		for range 5 {
			r.submit(root)
		}
		r.end()
		r.fake = newFake()
		r.open()
		r.start(fifo(t))
		defer r.end()
		synctest.Wait()
		if _, err := r.Submit(t.Context(), submission(1)); api.KindOf(err) != api.OverQuota {
			t.Errorf("after a restart: %v", err)
		}
		time.Sleep(40 * time.Second)
		r.submit(submission(1))
		if _, err := r.Submit(t.Context(), submission(1)); api.KindOf(err) != api.OverQuota {
			t.Errorf("after a minute: %v", err)
		}
	})
}

// Where the administrator wants that, a submission waits for its turn, but not for long.
func TestSubmissionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, ofUsers(cluster.Limits{cluster.QuotaSubmissions: {Most: 1}}))
		defer r.end()
		r.submit(submission(1))
		if _, err := r.Submit(t.Context(), submission(1)); api.KindOf(err) != api.OverQuota {
			t.Errorf("a submission that would wait for a minute: %v", err)
		}
		time.Sleep(40 * time.Second)
		begun := time.Now()
		r.submit(submission(1))
		if took := time.Since(begun); took < 19*time.Second || took > 21*time.Second {
			t.Errorf("it waited for %v", took)
		}
		time.Sleep(50 * time.Second)
		if _, err := r.Submit(Hurried(t.Context()), submission(1)); api.KindOf(err) != api.OverQuota ||
			api.RetryAfter(err) != 10*time.Second {
			t.Errorf("a caller in a hurry: %v", err)
		}
		time.Sleep(10 * time.Second)
		r.submit(submission(1))
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(45 * time.Second)
		if _, err := r.Submit(gone, submission(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who left: %v", err)
		}
	})
}

// A submission waits while too many jobs of the user wait, and is accepted when one of them has started.
func TestQuotaOfWaitingJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, ofUsers(cluster.Limits{cluster.QuotaWaiting: {Most: 1}}))
		defer r.end()
		r.submit(submission(2))
		running := r.order(cluster.Start)
		r.order(cluster.Start)
		r.submit(submission(1))
		begun := time.Now()
		r.overQuota(submission(1),
			`job "sorts" quota waiting of user ada: must be at most 1 job, with 1 job taken and 1 job added`)
		if took := time.Since(begun); took != quotaPatience {
			t.Errorf("it was refused after %v", took)
		}
		accepted := make(chan error, 1)
		go func() {
			_, err := r.Submit(t.Context(), submission(1))
			accepted <- err
		}()
		time.Sleep(time.Second)
		select {
		case err := <-accepted:
			t.Errorf("accepted: %v", err)
		default:
		}
		r.fake.ended(running.Container, cluster.Succeeded, 0)
		if err := <-accepted; err != nil {
			t.Error(err)
		}
	})
}

// Quotas can change while jobs wait and run.
func TestSetQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, nil)
		defer r.end()
		set := func(memory resource.Amount) {
			if err := r.SetQuotas(ofUsers(cluster.Limits{cluster.QuotaMemory: {Most: int64(memory)}})); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		set(400 * resource.MiB)
		r.submit(submission(3))
		r.order(cluster.Start)
		synctest.Wait()
		r.noOrder()
		set(800 * resource.MiB)
		second := r.order(cluster.Start)
		set(400 * resource.MiB)
		r.fake.ended(second.Container, cluster.Succeeded, 0)
		synctest.Wait()
		r.noOrder()
		if err := r.SetQuotas(nil); err != nil {
			t.Fatal(err)
		}
		r.order(cluster.Start)
	})
}

// Who has too much output submits nothing more until some of it was removed.
func TestQuotaOfOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, ofUsers(cluster.Limits{cluster.QuotaOutput: {Most: 4096, Refuses: true}}))
		defer r.end()
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		printed := func(bytes int) {
			if err := os.MkdirAll(filepath.Dir(o.Launch.Stdout), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(o.Launch.Stdout, make([]byte, bytes), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(weighEvery)
			synctest.Wait()
		}
		printed(1)
		r.submit(submission(1))
		printed(9000)
		r.overQuota(submission(1), `job "sorts" quota output of user ada: must be at most 4KiB, with 9KB taken`)
		r.submit(by("bob", 2001, 1))
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(id)
		time.Sleep(weighEvery)
		synctest.Wait()
		if _, err := r.Submit(t.Context(), submission(1)); api.KindOf(err) != api.OverQuota {
			t.Errorf("the output of a job that has ended does not count: %v", err)
		}
		if _, err := r.Prune(t.Context(), retention.Rule{}, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(weighEvery)
		synctest.Wait()
		r.submit(submission(1))
	})
}

// Jobs that are submitted together count each, and are refused together; the one that could never start is named.
func TestQuotasOfManyJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, ofUsers(cluster.Limits{cluster.QuotaSubmissions: {Most: 9}, cluster.QuotaWaiting: {Most: 4},
			cluster.QuotaMemory: {Most: int64(400 * resource.MiB)}}))
		defer r.end()
		refused := func(n int, want string) {
			t.Helper()
			begun := time.Now()
			if _, _, err := r.SubmitAll(t.Context(), user, Key{}, many(n, nil)); api.KindOf(err) != api.OverQuota ||
				err.Error() != want || time.Since(begun) != 0 {
				t.Errorf("%d jobs: %v, want %s", n, err, want)
			}
		}
		refused(10, `job "job 0" quota submissions of user ada: must be at most 9 jobs a minute, with 0 jobs taken and 10 jobs added`)
		refused(5, `job "job 0" quota waiting of user ada: must be at most 4 jobs, with 0 jobs taken and 5 jobs added`)
		_, _, err := r.SubmitAll(t.Context(), user, Key{}, many(1, func(_ int, s *Submission) error {
			s.Job.Stages[0].Ideal[resource.Memory]++
			return nil
		}))
		if of, ok := errors.AsType[*OfJob](err); !ok || of.Index != 0 || api.KindOf(err) != api.Invalid ||
			!strings.Contains(err.Error(), "the quota of user ada") {
			t.Errorf("error %v", err)
		}
		if _, n, err := r.SubmitAll(t.Context(), user, Key{}, many(3, nil)); err != nil || n != 3 {
			t.Errorf("%d jobs: %v", n, err)
		}
		r.order(cluster.Start)
		synctest.Wait()
		r.noOrder()
	})
}

// Submissions that a quota refuses are counted by the quota, whether it refuses now or for ever.
func TestQuotaRefusalsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, &cluster.Quotas{
			Users: map[string]cluster.Limits{"": {cluster.QuotaSubmissions: {Most: 3, Refuses: true},
				cluster.QuotaMemory: {Most: int64(400 * resource.MiB)}}},
			Queues: map[string]cluster.Limits{"batch": {cluster.QuotaRunning: {Most: 1, Refuses: true}}}})
		defer r.end()
		submit := func(kind api.Kind, s Submission) {
			t.Helper()
			if _, err := r.Submit(t.Context(), s); api.KindOf(err) != kind {
				t.Fatalf("submitted with %v", err)
			}
		}
		of, large := by("ada", 1000, 1), by("ada", 1000, 1)
		of.Job.Queue, large.Job.Stages = "batch", slices.Clone(large.Job.Stages)
		large.Job.Stages[0].Ideal[resource.Memory] = resource.GiB
		submit(0, of)
		submit(api.OverQuota, of)  // running, of the queue
		submit(api.Invalid, large) // memory, for ever
		submit(api.OverQuota, by("ada", 1000, 1))
		if _, _, err := r.SubmitAll(t.Context(), cluster.Credentials{UID: 1000, User: "ada"}, Key{},
			func(yield func(Submission, error) bool) { yield(by("ada", 1000, 1), nil) }); api.KindOf(err) != api.OverQuota {
			t.Errorf("many at once: %v", err)
		}
		m := r.Metrics()
		users, queues := make([]int64, cluster.NumQuotaKinds), make([]int64, cluster.NumQuotaKinds)
		users[cluster.QuotaMemory], users[cluster.QuotaSubmissions], queues[cluster.QuotaRunning] = 1, 2, 1
		if !slices.Equal(m.RefusedOfUsers, users) || !slices.Equal(m.RefusedOfQueues, queues) {
			t.Errorf("refused of users %v, of queues %v", m.RefusedOfUsers, m.RefusedOfQueues)
		}
		r.fake.ended(r.order(cluster.Start).Container, cluster.Succeeded, 0)
	})
}

// What of each quota is taken is told as it is now, and many who ask share few looks at the engine.
func TestQuotaUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuotaRig(t, &cluster.Quotas{
			Users: map[string]cluster.Limits{"": {cluster.QuotaMemory: {Most: int64(400 * resource.MiB)},
				cluster.QuotaWaiting: {Most: 5, Refuses: true}, cluster.QuotaSubmissions: {Most: 9, Refuses: true}},
				"bob": {cluster.QuotaMemory: {Most: cluster.Unlimited}, cluster.QuotaRunning: {Most: 3}}},
			Queues: map[string]cluster.Limits{"batch": {cluster.QuotaCPU: {Most: 4000}}}})
		defer r.end()
		is := func(user string, want ...string) {
			t.Helper()
			all, err := r.QuotaUse(t.Context(), user)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, q := range all {
				taken := "?"
				if q.Taken != nil {
					taken = q.Kind.Format(*q.Taken)
				}
				got = append(got, fmt.Sprintf("%s%s %s: %s of %s", q.User, q.Queue, q.Kind, taken, q.Kind.Format(q.Most)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("quotas of %q:\n%s\nwant\n%s", user, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		const me, queue = "ada", "batch cpus: 0 cores of 4 cores"
		bobs := []string{"bob running: 0 jobs of 3 jobs", "bob waiting: 0 jobs of 5 jobs",
			"bob submissions: 0 jobs of 9 jobs"}
		is("", append(bobs, queue)...)
		is(me, append(append([]string{"ada memory: 0B of 400MiB", "ada waiting: 0 jobs of 5 jobs",
			"ada submissions: 0 jobs of 9 jobs"}, bobs...), queue)...)
		is("root", append(bobs, queue)...)

		of := by(me, 1000, 1)
		of.Job.Queue = "batch"
		id := r.submit(of)
		o := r.order(cluster.Start)
		r.fake.launched(o)
		synctest.Wait()
		r.submit(by(me, 1000, 2))
		is("", append(append([]string{"ada memory: 400MiB of 400MiB", "ada waiting: 1 job of 5 jobs",
			"ada submissions: 2 jobs of 9 jobs"}, bobs...), "batch cpus: 1 core of 4 cores")...)
		if got := r.QueuesOf(api.Owner{UID: 1000, Name: me}); !maps.Equal(got,
			map[string]bool{"batch": true, cluster.DefaultQueue: true}) || len(r.QueuesOf(api.Owner{UID: 1001, Name: me})) > 0 {
			t.Errorf("queues %v", got)
		}
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		_ = id
	})
}
