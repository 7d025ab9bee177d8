package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

func TestJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(3))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		synctest.Wait()
		r.noOrder()
		if got := fmt.Sprint(a.Launch.Args); got != "[sort -S 393216K part0]" {
			t.Errorf("command %s", got)
		}
		if !slices.Contains(a.Launch.Env, "LC_ALL=C") || slices.Contains(a.Launch.Env, "LC_ALL=de_DE") ||
			a.Launch.Dir != "/work" || a.Launch.As.UID != 2000 {
			t.Errorf("launch %+v", a.Launch)
		}
		r.fake.launched(a)
		r.fake.launched(b)
		synctest.Wait()
		if j := r.job(id); j.Status != cluster.StatusRunning || j.Stages[0].Running != 2 || j.Stages[0].Pending != 1 ||
			j.Waiting == "" || j.Owner != "ada" {
			t.Errorf("job %+v", j)
		}
		r.fake.ended(a.Container, cluster.Succeeded, 0)
		c := r.order(cluster.Start)
		r.fake.launched(c)
		r.fake.ended(c.Container, cluster.Succeeded, 0)
		r.fake.ended(b.Container, cluster.Succeeded, 0)
		j := r.wait(id)
		if j.Status != cluster.StatusSucceeded || j.ExitCode == nil || *j.ExitCode != 0 || j.Stages[0].Succeeded != 3 ||
			len(j.Tasks) != 3 {
			t.Errorf("job %+v", j)
		}
		synctest.Wait()
		for _, o := range []cluster.Order{a, b, c} {
			if !r.fake.forgotten[o.Container] {
				t.Errorf("container %s was not forgotten", o.Container)
			}
		}
		// Ended jobs are read from the store.
		if again := r.job(id); again.Status != cluster.StatusSucceeded || len(again.Tasks) != 3 || !again.Ended {
			t.Errorf("job %+v", again)
		}
		if jobs, err := r.Jobs(t.Context()); err != nil || len(jobs) != 0 {
			t.Errorf("jobs %v %v", jobs, err)
		}
		if jobs, err := r.JobsAfter(t.Context(), 0, 10); err != nil || len(jobs) != 1 || jobs[0].SucceededCount != 3 ||
			jobs[0].TaskCount != 3 {
			t.Errorf("jobs %v %v", jobs, err)
		}
		if logs, err := r.Logs(t.Context(), id); err != nil || len(logs) != 3 || !logs[0].Ended ||
			logs[0].Stdout != a.Launch.Stdout {
			t.Errorf("logs %v %v", logs, err)
		}
	})
}

func TestFailureEndsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(3))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		r.fake.ended(b.Container, cluster.OutOfMemory, 137)
		if k := r.order(cluster.Kill); k.Container != a.Container {
			t.Errorf("killed %s", k.Container)
		}
		synctest.Wait()
		if j := r.job(id); j.Ended || j.Status != cluster.StatusFailed || j.Tasks[0].State != api.TaskEnding {
			t.Errorf("job %+v", j)
		}
		r.fake.ended(a.Container, cluster.Killed, 143)
		j := r.wait(id)
		if j.Status != cluster.StatusFailed || *j.ExitCode != 137 || j.Detail != "task 1.0.1: out-of-memory" ||
			j.Stages[0].Failed != 2 || j.Stages[0].Pending != 1 {
			t.Errorf("job %+v", j)
		}
	})
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(1)
		s.Job.MaxAttempts = 2
		id := r.submit(s)
		for run := 1; run <= 2; run++ {
			o := r.order(cluster.Start)
			if o.Container.Run != run {
				t.Errorf("run %d, want %d", o.Container.Run, run)
			}
			r.fake.launched(o)
			r.fake.ended(o.Container, cluster.Failed, run)
		}
		if j := r.wait(id); j.Status != cluster.StatusFailed || *j.ExitCode != 2 {
			t.Errorf("job %+v", j)
		}
		if logs, err := r.Logs(t.Context(), id); err != nil || len(logs) != 2 {
			t.Errorf("logs %v %v", logs, err)
		}
	})
}

// A task that the machine does not start is tried again after growing pauses, without end: it has its resources only
// while it is tried, and no failure of the machine is one of its job.
func TestStartsThatFailAreTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(1))
		begun, last := time.Now(), time.Now()
		var waits []time.Duration
		for time.Since(begun) < time.Hour {
			o := r.order(cluster.Start)
			waits, last = append(waits, time.Since(last)), time.Now()
			r.fake.events <- cluster.Event{Kind: cluster.DecisionFailed, Task: o.Task, Run: o.Container.Run, Decision: o.ID,
				Detail: "the limit is refused"}
			synctest.Wait()
		}
		if got := fmt.Sprint(waits[:8]); got != "[0s 1s 2s 4s 8s 16s 30s 30s]" || slices.Max(waits) > longestPause {
			t.Errorf("it was asked again after %v", waits)
		}
		words := fmt.Sprintf(
			"task 1.0.0 could not be started, and is tried again at %s: the limit is refused; %d starts have failed since %s",
			time.Now().Add(longestPause).Format(time.TimeOnly), len(waits), begun.Format(time.TimeOnly))
		if j := r.job(id); j.Status != cluster.StatusPending || j.Waiting != words || j.Stages[0].Pending != 1 {
			t.Errorf("job %+v", j)
		}
		if e, err := r.Explain(t.Context(), id); err != nil || e.Why != "The next task of the job has not started: "+words+
			"." {
			t.Errorf("explained %q, %v", e.Why, err)
		}
		if s, err := r.Status(t.Context()); err != nil || s.Trouble != words || s.Nodes[0].FreeMemory != s.Nodes[0].Memory {
			t.Errorf("status %+v, %v", s, err)
		}
		other := r.submit(submission(1)) // has what the first one gave back
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(other)
		if o.Task.Job != other {
			t.Errorf("started %+v", o)
		}
		o = r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		j := r.wait(id)
		if runs, err := r.store.Tasks(t.Context(), id); j.Status != cluster.StatusSucceeded || err != nil || len(runs) != 1 {
			t.Errorf("job %+v, runs %+v, %v", j, runs, err)
		}
		if s, err := r.Status(t.Context()); err != nil || s.Trouble != "" {
			t.Errorf("status %+v, %v", s, err)
		}
	})
}

// An owner who pauses a task that is held back keeps it from being tried until it is resumed.
func TestPauseOfWhatIsHeldBack(t *testing.T) {
	for _, pageOut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, fifo(t))
			defer r.end()
			id := r.submit(submission(1))
			o := r.order(cluster.Start)
			r.fake.events <- cluster.Event{Kind: cluster.DecisionFailed, Task: o.Task, Run: o.Container.Run, Decision: o.ID,
				Detail: "no"}
			synctest.Wait()
			if err := r.Pause(t.Context(), user, id, o.Task, pageOut); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			r.noOrder()
			if err := r.Resume(t.Context(), user, id, o.Task); err != nil {
				t.Fatal(err)
			}
			o = r.order(cluster.Start)
			r.fake.launched(o)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
			if j := r.wait(id); j.Status != cluster.StatusSucceeded {
				t.Errorf("job %+v", j)
			}
		})
	}
}

// While a failed start is held back, its job can be cancelled at once.
func TestCancelDoesNotWaitForWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.events <- cluster.Event{Kind: cluster.DecisionFailed, Task: o.Task, Run: o.Container.Run, Detail: "no"}
		synctest.Wait()
		begun := time.Now()
		if err := r.Cancel(t.Context(), user, id); err != nil {
			t.Fatal(err)
		}
		if j := r.wait(id); j.Status != cluster.StatusCancelled || time.Since(begun) != 0 {
			t.Errorf("job %+v after %v", j, time.Since(begun))
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(5))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		if err := r.Cancel(t.Context(), user, id); err != nil {
			t.Fatal(err)
		}
		if err := r.Cancel(t.Context(), user, id); err != nil {
			t.Errorf("cancel again: %v", err)
		}
		r.order(cluster.Kill)
		r.order(cluster.Kill)
		r.fake.ended(a.Container, cluster.Killed, 143)
		r.fake.launched(b)
		r.fake.ended(b.Container, cluster.Killed, 143)
		if j := r.wait(id); j.Status != cluster.StatusCancelled || *j.ExitCode != 143 {
			t.Errorf("job %+v", j)
		}
		synctest.Wait()
		r.noOrder()
		if err := r.Cancel(t.Context(), user, id); api.KindOf(err) != api.Invalid ||
			err.Error() != "job 1: cannot be ended, because it has ended already (cancelled)" {
			t.Errorf("cancel what has ended: %v", err)
		}
		if err := r.Cancel(t.Context(), user, 99); api.KindOf(err) != api.NotFound {
			t.Errorf("cancel what never was: %v", err)
		}
	})
}

// Lost, late and repeated events, and events of unknown containers, have no other effects.
func TestOddEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(2))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.ended(a.Container, cluster.Succeeded, 0) // its launch was never reported
		r.fake.launched(a)                              // too late
		r.fake.ended(a.Container, cluster.Failed, 1)    // reported already
		stranger := cluster.ContainerID{Task: cluster.TaskID{Job: 77}, Run: 1}
		r.fake.ended(stranger, cluster.Failed, 1)
		r.fake.events <- cluster.Event{Kind: cluster.TaskAdopted, Task: stranger.Task, Run: 1}
		r.fake.launched(b)
		r.fake.launched(b)
		r.fake.ended(cluster.ContainerID{Task: b.Task, Run: 9}, cluster.Failed, 1)
		r.fake.ended(b.Container, cluster.Succeeded, 0)
		if j := r.wait(id); j.Status != cluster.StatusSucceeded {
			t.Errorf("job %+v", j)
		}
		synctest.Wait()
		if !r.fake.forgotten[stranger] {
			t.Error("the end of an unknown container would be reported for ever")
		}
	})
}

func TestMistakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for _, c := range []struct {
			name   string
			change func(*Submission)
			want   string
		}{
			{"too large", func(s *Submission) { s.Job.Stages[0].Ideal[resource.Memory] = 2 * resource.GiB },
				`job "sorts" stage "sort" memory 2GiB: must be at most what a node has, 1GiB`},
			{"too many cores", func(s *Submission) { s.Job.Stages[0].Ideal[resource.CPU] = 3000 },
				`job "sorts" stage "sort" cpu 3 cores: must be at most what a node has, 2 cores`},
			{"no memory", func(s *Submission) { s.Job.Stages[0].Ideal[resource.Memory] = 0 },
				`job "sorts" stage "sort" memory 0B: must be above 0`},
			{"cycle", func(s *Submission) { s.Job.Stages[0].Parents = []int{0} },
				`job "sorts" parents: must not form a cycle, but sort waits for sort`},
			{"empty command", func(s *Submission) {
				s.Job.Stages[0].Args = nil
			}, `job "sorts" stage "sort" command: must begin with the name of a program`},
			{"placeholder", func(s *Submission) { s.Job.Stages[0].Args = []string{"a", "{no}"} }, "{no}"},
			{"relative", func(s *Submission) {
				s.Dir = "here"
			}, `job "sorts" working directory "here": must be an absolute path`},
			{"profile", func(s *Submission) { s.Job.Stages[0].Profile = "p" },
				`job "sorts" stage "sort" profile "p": does not exist; measure it with bellows profile`},
		} {
			s := submission(1)
			c.change(&s)
			if _, err := r.Submit(t.Context(), s); api.KindOf(err) != api.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v: %v", c.name, api.KindOf(err), err)
			}
		}
		if jobs, err := r.JobsAfter(t.Context(), 0, 10); err != nil || len(jobs) != 0 {
			t.Errorf("jobs %v %v", jobs, err)
		}
		if _, err := r.Job(t.Context(), 5, false); api.KindOf(err) != api.NotFound {
			t.Errorf("job 5: %v", err)
		}
		if _, err := r.WaitTask(t.Context(), cluster.TaskID{Job: 5}, false); api.KindOf(err) != api.NotFound {
			t.Errorf("task of job 5: %v", err)
		}
	})
}

func TestProfileFillsWhatIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := policy.New("yarn-me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, p)
		defer r.end()
		profile := store.Profile{UID: user.UID, User: user.User, Name: "sort",
			Measured: api.Measured{IdealMemory: 600 * resource.MiB,
				MinMemory: 200 * resource.MiB, Duration: time.Minute, Elasticity: cluster.Elasticity{Kind: cluster.Step,
					Factor: 1.5}}}
		if err := r.store.PutProfile(t.Context(), profile); err != nil {
			t.Fatal(err)
		}
		s := submission(4)
		s.Job.Stages[0].Profile = "sort"
		s.Job.Stages[0].Ideal[resource.Memory] = 0
		id := r.submit(s)
		r.fake.launched(r.order(cluster.Start))
		o := r.order(cluster.Start)
		if got := o.Grant[resource.Memory]; got < 200*resource.MiB || got > 424*resource.MiB {
			t.Errorf("granted %v", o.Grant)
		}
		r.fake.launched(o)
		synctest.Wait()
		e, err := r.Explain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Tasks) != 2 || e.Tasks[1].Slowdown != 1.5 || !strings.Contains(e.Tasks[1].Why, "under-sized") ||
			e.EstimatedEnd.IsZero() {
			t.Errorf("explained %+v", e)
		}
	})
}

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(2)
		s.Job.Stages[0].Duration = time.Minute
		running := r.submit(s)
		waits := r.submit(s)
		r.fake.launched(r.order(cluster.Start))
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		e, err := r.Explain(t.Context(), waits)
		if err != nil {
			t.Fatal(err)
		}
		if e.Why != "The next task of the job has not started: no node has 400MiB and 1 core free. 800MiB of memory "+
			"are held by job 1." || !e.EarliestStart.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("explained %+v", e)
		}
		e, err = r.Explain(t.Context(), running)
		if err != nil {
			t.Fatal(err)
		}
		if e.Why != "The remaining tasks of the job are running." || !e.EstimatedEnd.Equal(time.Now().Add(time.Minute)) ||
			len(e.Tasks) != 2 || len(e.Decisions) != 2 {
			t.Errorf("explained %+v", e)
		}
	})
}

func TestWaitTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(3))
		a := r.order(cluster.Start)
		started := make(chan api.Task)
		go func() {
			task, err := r.WaitTask(t.Context(), cluster.TaskID{Job: id}, false)
			if err != nil {
				t.Error(err)
			}
			started <- task
		}()
		synctest.Wait()
		select {
		case <-started:
			t.Error("it has not started yet")
		default:
		}
		r.fake.launched(a)
		if task := <-started; task.State != api.TaskRunning {
			t.Errorf("task %+v", task)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.WaitTask(ctx, cluster.TaskID{Job: id}, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited with %v", err)
		}
		if err := r.Cancel(t.Context(), user, id); err != nil {
			t.Fatal(err)
		}
		if _, err := r.WaitTask(t.Context(), cluster.TaskID{Job: id, Index: 7}, false); api.KindOf(err) != api.NotFound {
			t.Errorf("waited with %v", err)
		}
		r.fake.ended(a.Container, cluster.Killed, 143)
		r.fake.ended(r.order(cluster.Start).Container, cluster.Killed, 143)
		if _, err := r.WaitTask(t.Context(), cluster.TaskID{Job: id, Index: 2}, false); api.KindOf(err) != api.NotFound {
			t.Errorf("waited with %v", err)
		}
	})
}

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		if err := r.Shutdown(t.Context(), false); api.KindOf(err) != api.Conflict ||
			!strings.HasPrefix(err.Error(), "job 1 has not ended") {
			t.Errorf("shut down with %v", err)
		}
		down := make(chan error)
		go func() { down <- r.Shutdown(t.Context(), true) }()
		r.order(cluster.Kill)
		if _, err := r.Submit(t.Context(), submission(1)); err == nil {
			t.Error("a job was taken on the way down")
		}
		r.fake.ended(o.Container, cluster.Killed, 143)
		if err := <-down; err != nil {
			t.Error(err)
		}
		<-r.Done()
		j, err := r.store.Job(t.Context(), id)
		if err != nil || !j.State.Ended || j.State.Status != cluster.StatusCancelled {
			t.Errorf("job %+v %v", j.State, err)
		}
		if _, err := r.Job(t.Context(), id, false); err == nil {
			t.Error("a stopped driver answers")
		}
	})
}

// bug is a policy that, from a given call on, starts a task without room for it, or panics.
type bug struct {
	policy.Policy
	after  int
	panics bool
}

func (b *bug) Decide(now timeline.Time, p *book.Plan) {
	b.after--
	if b.after >= 0 {
		b.Policy.Decide(now, p)
		return
	}
	if b.panics {
		panic("index out of range")
	}
	for _, j := range p.Jobs {
		p.Start(j, 0, p.Nodes[0], 400*resource.MiB, cluster.BecauseFits(0))
		p.Start(j, 0, p.Nodes[0], 400*resource.MiB, cluster.BecauseFits(0))
	}
}

// A bug of the policy stops decisions and nothing else: containers keep running, their ends are recorded, jobs can be
// listed and killed, and the next start continues from there.
func TestPolicyBugLosesNothing(t *testing.T) {
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &bug{Policy: fifo(t), after: 5, panics: panics}) // Synced, two jobs, two launches
			defer r.end()
			first := r.submit(submission(2))
			second := r.submit(submission(1))
			a, b := r.order(cluster.Start), r.order(cluster.Start)
			r.fake.launched(a)
			r.fake.launched(b)
			synctest.Wait()
			r.fake.ended(a.Container, cluster.Failed, 3)
			synctest.Wait()
			s, err := r.Status(t.Context())
			if err != nil || !strings.Contains(s.Trouble, "policy fifo took an impossible decision") {
				t.Errorf("status %+v %v", s, err)
			}
			if _, err := r.Submit(t.Context(), submission(1)); api.KindOf(err) != api.Internal ||
				!strings.Contains(err.Error(), "impossible decision") {
				t.Errorf("submit: %v", err)
			}
			if _, err := r.Wait(t.Context(), second); api.KindOf(err) != api.Internal ||
				!strings.Contains(err.Error(), "impossible decision") {
				t.Errorf("wait for a job that cannot start: %v", err)
			}
			if err := r.Cancel(t.Context(), user, first); err != nil {
				t.Error(err)
			}
			if k := r.order(cluster.Kill); k.Container != b.Container {
				t.Errorf("killed %s", k.Container)
			}
			r.fake.ended(b.Container, cluster.Killed, 143)
			if j := r.wait(first); j.Status != cluster.StatusCancelled || *j.ExitCode != 3 {
				t.Errorf("job %+v", j)
			}
			synctest.Wait()
			r.noOrder()
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			r.fake = newFake()
			r.start(fifo(t))
			o := r.order(cluster.Start)
			r.fake.launched(o)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
			if j := r.wait(second); j.Status != cluster.StatusSucceeded {
				t.Errorf("job %+v", j)
			}
		})
	}
}

// A restart finds everything unchanged: running tasks, tasks that ended in the meantime, stored tasks that never
// started, cancelled jobs, and the number of failures of each task.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(2)
		s.Job.MaxAttempts = 2
		s.Job.Stages = append(s.Job.Stages, cluster.Stage{Name: "merge", Tasks: 1, Parents: []int{0},
			Ideal: resource.Of(1000, 100*resource.MiB), Command: cluster.Command{Args: []string{"merge"}}})
		dag := r.submit(s)
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		r.fake.ended(a.Container, cluster.Failed, 7)
		a = r.order(cluster.Start)
		r.fake.launched(a)
		other := r.submit(submission(1))
		cancelled := r.submit(submission(1))
		if err := r.Cancel(t.Context(), user, cancelled); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		stranger := cluster.ContainerID{Task: cluster.TaskID{Job: 99}, Run: 1}
		r.fake = newFake(
			cluster.Event{Kind: cluster.TaskAdopted, Task: a.Task, Run: a.Container.Run, Grant: a.Grant, Launched: 5},
			cluster.Event{Kind: cluster.TaskAdopted, Task: stranger.Task, Run: 1, Grant: resource.Of(1000, 900*resource.MiB),
				Launched: 5},
			cluster.Event{Kind: cluster.TaskEnded, Task: b.Task, Run: b.Container.Run, Outcome: cluster.Succeeded,
				Exit: &cluster.Exit{}},
		)
		r.start(fifo(t))
		o := r.order(cluster.Start) // and the stranger is not killed
		if o.Task.Job != other {
			t.Errorf("started %s", o.Container)
		}
		if j := r.job(cancelled); j.Status != cluster.StatusCancelled || !j.Ended {
			t.Errorf("job %+v", j)
		}
		j := r.job(dag)
		if j.Status != cluster.StatusRunning || j.Stages[0].Succeeded != 1 || j.Stages[0].Running != 1 ||
			j.Stages[1].Pending != 1 {
			t.Errorf("job %+v", j)
		}
		// It has failed once before; a second failure is its last.
		r.fake.ended(a.Container, cluster.Failed, 8)
		if j := r.wait(dag); j.Status != cluster.StatusFailed || *j.ExitCode != 8 {
			t.Errorf("job %+v", j)
		}
	})
}

// An order that was stored but never reached the machine is issued again, as a new run.
func TestOrderThatNeverArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(1))
		r.order(cluster.Start)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake()
		r.start(fifo(t))
		o := r.order(cluster.Start)
		if o.Container.Run != 2 {
			t.Errorf("started %s", o.Container)
		}
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		if j := r.wait(id); j.Status != cluster.StatusSucceeded {
			t.Errorf("job %+v", j)
		}
	})
}

// A node may have less capacity after a restart than its running containers use. They keep running, and nothing more
// starts until there is room.
func TestRestartOnLessMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.submit(submission(3))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		synctest.Wait()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake(
			cluster.Event{Kind: cluster.TaskAdopted, Task: a.Task, Run: 1, Grant: a.Grant},
			cluster.Event{Kind: cluster.TaskAdopted, Task: b.Task, Run: 1, Grant: b.Grant})
		first := <-r.fake.events
		first.NewNode.Capacity = resource.Of(1000, 500*resource.MiB)
		events := r.fake.events
		r.fake.events = make(chan cluster.Event, 10)
		r.fake.events <- first
		for range 3 {
			r.fake.events <- <-events
		}
		r.start(fifo(t))
		synctest.Wait()
		r.noOrder()
		s, err := r.Status(t.Context())
		if err != nil || s.Trouble != "" || s.Running != 2 {
			t.Errorf("status %+v %v", s, err)
		}
	})
}

// The recorded events of a live run, replayed to another engine, give the same decisions; other events do not.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := policy.New("yarn-me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, p)
		defer r.end()
		s := submission(4)
		s.Job.Stages[0].Duration = time.Minute
		s.Job.Stages[0].MinMemory = 100 * resource.MiB
		s.Job.Stages[0].Elasticity = cluster.Elasticity{Kind: cluster.SawTooth, Factor: 1.5}
		for range 3 {
			r.submit(s)
			time.Sleep(time.Second)
		}
		for n := 0; n < 12; n++ {
			o := r.order(cluster.Start)
			r.fake.launched(o)
			time.Sleep(10 * time.Second)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
		}
		r.wait(3)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		header, log := readLog(t, r.EventLog())
		if header.Policy != "yarn-me" {
			t.Errorf("header %+v", header)
		}
		if at, ok := replay(t, header, log); !ok {
			t.Errorf("record %d of %d came out differently", at, len(log))
		}
		changed := 0
		for i := range log {
			if log[i].Events == nil || log[i].Events[0].Kind != cluster.TaskEnded {
				continue
			}
			other := slices.Clone(log)
			other[i].Events = []cluster.Event{log[i].Events[0]}
			other[i].Events[0].Outcome = cluster.Lost // It must run again.
			if _, ok := replay(t, header, other); ok {
				t.Errorf("event %d was changed, and no decision", i)
			}
			changed++
		}
		if changed != 12 {
			t.Errorf("%d ends in the log", changed)
		}
	})
}

func readLog(t *testing.T, path string) (eventlog.Header, []eventlog.Record) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := eventlog.NewReader(file, path)
	if err != nil {
		t.Fatal(err)
	}
	var log []eventlog.Record
	for {
		record, err := in.Next()
		if errors.Is(err, io.EOF) {
			return in.Header, log
		}
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, record)
	}
}

// On a full disk the ends of tasks are recorded in reserved space, and no task starts; the same holds after a restart.
// When there is room, everything continues.
func TestEndsAreRecordedOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, "64m")
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, fake: newFake()}
		r.open()
		r.start(fifo(t))
		defer func() { r.end() }()
		first, cancelled, second := r.submit(submission(2)), r.submit(submission(1)), r.submit(submission(1))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		synctest.Wait()
		empty := fill(t, dir)
		r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: a.Task, Run: 1, Outcome: cluster.Succeeded,
			Exit: &cluster.Exit{}, Detail: strings.Repeat("x", 100_000)}
		synctest.Wait()
		r.noOrder()
		if !r.fake.forgotten[a.Container] {
			t.Error("the end of a container was not recorded")
		}
		full := func() {
			t.Helper()
			if s, err := r.Status(t.Context()); err != nil || !strings.Contains(s.Trouble, "free some space") {
				t.Errorf("status %+v %v", s, err)
			}
			if _, err := r.Submit(t.Context(), submission(1)); api.KindOf(err) != api.Internal ||
				!strings.Contains(err.Error(), "free some space") {
				t.Errorf("submit: %v", err)
			}
		}
		full()
		r.end()
		r.fake = newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: b.Task, Run: 1, Grant: b.Grant, Launched: 1})
		r.open()
		r.start(fifo(t))
		full()
		r.fake.ended(b.Container, cluster.Failed, 1) // and with it the first job
		if j := r.wait(first); j.Status != cluster.StatusFailed {
			t.Errorf("job %+v", j)
		}
		synctest.Wait()
		r.noOrder()
		// A job whose task is to start once there is space ends without it.
		if j, err := r.Job(t.Context(), cancelled, false); err != nil || len(j.Tasks) != 1 ||
			j.Tasks[0].State != api.TaskStarting {
			t.Errorf("job %+v, %v", j, err)
		}
		if err := r.Cancel(t.Context(), user, cancelled); err != nil {
			t.Error(err)
		}
		if j := r.wait(cancelled); j.Status != cluster.StatusCancelled {
			t.Errorf("job %+v", j)
		}
		r.noOrder()
		empty()
		time.Sleep(2 * retryAfter)
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		if j := r.wait(second); j.Status != cluster.StatusSucceeded {
			t.Errorf("job %+v", j)
		}
		if s, err := r.Status(t.Context()); err != nil || s.Trouble != "" {
			t.Errorf("status %+v %v", s, err)
		}
		r.submit(submission(1))
	})
}

// smallDisk returns the directory of a file system of its own with a size, such as "1m".
func smallDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("bellows-test", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves no room on a small disk; empty makes room again.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 64<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
}

// While recording fails, no task is started and no job is accepted, but tasks to be killed are killed, and ends are not
// forgotten; when there is room again everything continues.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t, "1m")
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, fake: newFake()}
		var err error
		if r.store, err = store.Open(dir); err != nil {
			t.Fatal(err)
		}
		r.start(fifo(t))
		defer r.end()
		first := r.submit(submission(3))
		second := r.submit(submission(1))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		synctest.Wait()
		empty := fill(t, dir)
		// It is larger than the rest of the log's last page.
		r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: a.Task, Run: 1, Outcome: cluster.Succeeded,
			Exit: &cluster.Exit{}, Detail: strings.Repeat("x", 100_000)}
		synctest.Wait()
		r.noOrder()
		if r.fake.forgotten[a.Container] {
			t.Error("the end of a container was forgotten before it was stored")
		}
		s, err := r.Status(t.Context())
		if err != nil || !strings.Contains(s.Trouble, "its disk is full: free some space") {
			t.Errorf("status %+v %v", s, err)
		}
		if _, err := r.Submit(t.Context(), submission(1)); api.KindOf(err) != api.Internal ||
			!strings.Contains(err.Error(), "no jobs are accepted now: state directory "+dir+": its disk is full") {
			t.Errorf("submit: %v", err)
		}
		if err := r.Cancel(t.Context(), user, first); api.KindOf(err) != api.Internal {
			t.Errorf("cancel: %v", err)
		}
		if k := r.order(cluster.Kill); k.Container != b.Container {
			t.Errorf("killed %s", k.Container)
		}
		empty()
		time.Sleep(2 * retryAfter)
		synctest.Wait()
		if !r.fake.forgotten[a.Container] {
			t.Error("the end of a container was not stored")
		}
		// A task whose start was decided in the meantime, and whose job was then cancelled, is not started.
		r.fake.ended(b.Container, cluster.Killed, 143)
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		if j := r.wait(first); j.Status != cluster.StatusCancelled {
			t.Errorf("job %+v", j)
		}
		if j := r.wait(second); j.Status != cluster.StatusSucceeded {
			t.Errorf("job %+v", j)
		}
		if _, log := readLog(t, r.EventLog()); len(log) < 10 {
			t.Errorf("%d records in the log", len(log))
		}
	})
}
