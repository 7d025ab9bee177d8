package live

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/drive"
)

// The reason why a job waits is true at the time of the request, even if nothing was decided about that job meanwhile:
// under fifo the last job waits behind the second, and then, once the second runs, for room.
func TestWaitingIsTrueNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.submit(submission(2))
		second, last := r.submit(submission(1)), r.submit(submission(1))
		var running []cluster.Order
		for range 2 {
			o := r.order(cluster.Start)
			r.fake.launched(o)
			running = append(running, o)
		}
		synctest.Wait()
		expect := func(id cluster.JobID, want string) {
			t.Helper()
			if got := r.job(id).Waiting; got != want {
				t.Errorf("job %d waits: %q, want %q", id, got, want)
			}
			e, err := r.Explain(t.Context(), id)
			if want := "The next task of the job has not started: " + want + "."; err != nil || !strings.HasPrefix(e.Why, want) {
				t.Errorf("job %d is explained: %q, %v, want %q", id, e.Why, err, want)
			}
		}
		expect(second, "no node has 400MiB and 1 core free")
		expect(last, "job 2 comes first")
		r.fake.ended(running[0].Container, cluster.Succeeded, 0)
		synctest.Wait()
		expect(last, "no node has 400MiB and 1 core free")
	})
}

// The rest waits for the stage that must end first, regardless of the reason at an earlier stage.
func TestWaitsForStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(3)
		after := s.Job.Stages[0]
		after.Name, after.Tasks, after.Parents = "merge", 1, []int{0}
		s.Job.Stages = append(s.Job.Stages, after)
		id := r.submit(s)
		r.fake.launched(r.order(cluster.Start))
		o := r.order(cluster.Start)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		if got, want := r.job(id).Waiting, "waits for stage 0 to end"; got != want {
			t.Errorf("the job waits: %q, want %q", got, want)
		}
	})
}

// An explanation describes one moment: a task that ends while containers are measured runs in none of its parts.
func TestExplainIsOfOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(3))
		first := r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		r.fake.glance = func() {
			r.fake.glance = nil
			r.fake.ended(first.Container, cluster.Succeeded, 0)
			synctest.Wait()
		}
		e, err := r.Explain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		explained := map[cluster.TaskID]bool{}
		for _, task := range e.Tasks {
			explained[task.Task] = true
		}
		for _, task := range e.Job.Tasks {
			if (task.State != api.TaskEnded) != explained[task.Task] {
				t.Errorf("task %s is %v, and explained as running: %v", task.Task, task.State, explained[task.Task])
			}
		}
		if e.Job.Waiting != "" || e.Job.SucceededCount != 1 || len(e.Tasks) != 2 ||
			e.Tasks[0].MemoryBytes != int64(400*resource.MiB) {
			t.Errorf("explained as %+v", e)
		}
	})
}

// mute is a policy that panics when it is asked why a job waits.
type mute struct {
	policy.Policy
	panics bool
}

func (m *mute) Traits() policy.Traits {
	t := m.Policy.Traits()
	t.Why = func(timeline.Time, *book.Snapshot, *book.JobState, int) (cluster.Reason, bool) {
		if m.panics {
			panic("index out of range")
		}
		return cluster.Reason{}, false
	}
	return t
}

// A bug in what a policy says ends neither the daemon nor its decisions.
func TestPolicyBugInWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mute{Policy: fifo(t)}
		r := newRig(t, m)
		defer r.end()
		id := r.submit(submission(3))
		for range 2 {
			r.fake.launched(r.order(cluster.Start))
		}
		synctest.Wait()
		panics := func(is bool) { // Why a job waits is found out after a change, and not when somebody asks.
			t.Helper()
			if err := r.do(t.Context(), func() { m.panics = is }); err != nil {
				t.Fatal(err)
			}
		}
		panics(true)
		if got, want := r.job(id).Waiting, "unknown: policy fifo failed to say why: index out of range"; got != want {
			t.Errorf("the job waits: %q, want %q", got, want)
		}
		panics(false)
		if got, want := r.job(id).Waiting, "no node has 400MiB and 1 core free"; got != want {
			t.Errorf("the job waits: %q, want %q", got, want)
		}
	})
}

// However many explanations are requested at once, they hold up the loop for a tenth of the time.
func TestExplanationsLeaveTheLoopItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 10 * time.Millisecond
		m := &slowToSay{Policy: fifo(t), takes: takes}
		r := newRig(t, m)
		defer r.end()
		id := r.submit(submission(3))
		for range 2 {
			r.fake.launched(r.order(cluster.Start))
		}
		time.Sleep(time.Second)
		begun := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := r.Explain(t.Context(), id); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took, want := time.Since(begun), takes+19*drive.SharePart*takes; took != want {
			t.Errorf("20 explanations took %v, want %v", took, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), takes)
		defer cancel()
		if _, err := r.Explain(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an explanation before its turn: %v", err)
		}
	})
}

// slowToSay is a policy that takes a while to say why a job waits.
type slowToSay struct {
	policy.Policy
	takes time.Duration
}

func (s *slowToSay) Traits() policy.Traits {
	t := s.Policy.Traits()
	t.Why = func(timeline.Time, *book.Snapshot, *book.JobState, int) (cluster.Reason, bool) {
		time.Sleep(s.takes)
		return cluster.Reason{}, false
	}
	return t
}
