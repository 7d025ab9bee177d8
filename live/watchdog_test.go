package live

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/watchdog"
)

// hanging is a policy whose Decide blocks until it is released while a job named "hangs" has not started, if when
// returns true.
type hanging struct {
	policy.Policy
	when  func(*book.Plan) bool // nil means always
	letGo chan struct{}
}

func (h *hanging) Decide(now timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		if j.Job.Name == "hangs" && j.Pending() > 0 && (h.when == nil || h.when(p)) {
			<-h.letGo
		}
	}
	h.Policy.Decide(now, p)
}

// hangsRig is a rig whose policy hangs on some jobs, and its log.
type hangsRig struct {
	*rig
	policy *hanging
	log    *logged
}

type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newHangsRig(t *testing.T, when func(*book.Plan) bool) *hangsRig {
	r := &hangsRig{rig: &rig{t: t, dir: t.TempDir()}, log: new(logged)}
	r.open()
	t.Cleanup(func() {
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
	r.restart(when)
	return r
}

// restart starts another Driver on the same state, as another process would. The previous Driver, which hangs, is
// released when the test ends.
func (r *hangsRig) restart(when func(*book.Plan) bool, inventory ...cluster.Event) {
	r.t.Helper()
	p := &hanging{Policy: fifo(r.t), when: when, letGo: make(chan struct{})}
	r.policy, r.fake = p, newFake(inventory...)
	d, err := Start(Config{Policy: p, Backend: r.fake, Store: r.store, Dir: r.dir, UID: 1000,
		Log: slog.New(slog.NewTextHandler(r.log, nil))})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Driver = d
	r.t.Cleanup(func() {
		close(p.letGo)
		select { // Close would not wait for a loop that was abandoned.
		case d.turns.Stop() <- struct{}{}:
		case <-d.turns.Ended():
		}
		<-d.turns.Ended()
		d.beside.end()
	})
}

func (r *hangsRig) status() api.ClusterStatus {
	r.t.Helper()
	s, err := r.Status(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// named is a submission of one task with the given name.
func named(name string) Submission {
	s := submission(1)
	s.Job.Name = name
	return s
}

// submitHanging submits a job on which the engine hangs: the submission returns an error after a while.
func (r *hangsRig) submitHanging() {
	r.t.Helper()
	if _, err := r.Submit(r.t.Context(), named("hangs")); err == nil ||
		!strings.Contains(err.Error(), "the engine has not answered for 6s") {
		r.t.Errorf("submitted with %v", err)
	}
}

// While the engine hangs, the log says where, status answers, and no caller waits for ever.
func TestStatusAnswersWhileTheEngineHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHangsRig(t, nil)
		r.submit(named("runs"))
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		if s := r.status(); s.Trouble != "" || !s.AsOf.IsZero() || s.Jobs != 1 || s.Running != 1 {
			t.Errorf("status %+v", s)
		}
		before := time.Now()
		r.submitHanging()
		time.Sleep(time.Second)
		s := r.status()
		if want := "the engine has not answered for 7s; what follows is as of " +
			before.Format(time.TimeOnly); s.Trouble != want {
			t.Errorf("trouble %q, want %q", s.Trouble, want)
		}
		if !s.AsOf.Equal(before) || s.Jobs != 1 || s.Running != 1 || len(s.Nodes) != 1 {
			t.Errorf("status %+v", s)
		}
		if said := r.log.String(); !strings.Contains(said, "(*hanging).Decide") ||
			!strings.Contains(said, "taking in job 2") {
			t.Errorf("the log does not say where it hangs: %s", said)
		}
		if _, err := r.Jobs(t.Context()); err == nil || api.KindOf(err) != api.Internal {
			t.Errorf("ps: %v", err)
		}
		if err := r.Close(); err == nil {
			t.Error("a loop that hangs was closed")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := r.Wait(ctx, 1); err == nil || ctx.Err() != nil {
			t.Errorf("waited with %v", err)
		}
	})
}

// A step that is merely slow has no consequences.
func TestEngineThatIsSlowRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHangsRig(t, nil)
		r.submitHanging()
		time.Sleep(30 * time.Second)
		r.policy.letGo <- struct{}{}
		time.Sleep(2 * time.Second)
		if s := r.status(); s.Trouble != "" || !s.AsOf.IsZero() || s.Jobs != 1 {
			t.Errorf("status %+v", s)
		}
		if _, err := r.Jobs(t.Context()); err != nil {
			t.Errorf("ps: %v", err)
		}
		time.Sleep(time.Hour)
		select {
		case <-r.Dead():
			t.Error("it gave itself up")
		default:
		}
	})
}

// An engine that hangs for good ends the daemon, and the next start sets aside the job on which it hung.
func TestJobThatHangsTheEngineIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHangsRig(t, nil)
		begun := time.Now()
		r.submitHanging()
		<-r.Dead()
		if took := time.Since(begun); took < watchdog.DefaultDead || took > watchdog.DefaultDead+5*time.Second {
			t.Errorf("it gave itself up after %v", took)
		}
		for round := range 3 { // It stays set aside.
			r.restart(nil)
			if id := r.submit(named("runs")); id != cluster.JobID(2+round) {
				t.Errorf("job %d", id)
			}
			o := r.order(cluster.Start)
			r.fake.launched(o)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
			r.wait(o.Task.Job)
			if j := r.job(1); j.Status != cluster.StatusSetAside || j.Ended ||
				!strings.Contains(j.Waiting, "the engine hung when it took the job in") {
				t.Errorf("job %+v", j)
			}
			if e, err := r.Explain(t.Context(), 1); err != nil || !strings.Contains(e.Why, "set aside") {
				t.Errorf("explained %+v, %v", e, err)
			}
			if _, err := r.Wait(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "set aside") {
				t.Errorf("waited with %v", err)
			}
			if s := r.status(); s.Jobs != 1 || s.Pending != 1 {
				t.Errorf("status %+v", s)
			}
		}
		if err := r.Cancel(t.Context(), user, 1); err != nil {
			t.Fatal(err)
		}
		if j := r.wait(1); j.Status != cluster.StatusCancelled {
			t.Errorf("job %+v", j)
		}
		synctest.Wait()
		if err := r.Shutdown(t.Context(), false); err != nil {
			t.Error(err)
		}
	})
}

// If the engine hangs after an event of another job, the next start finds the culprit by taking in the jobs one by one.
func TestCarefulStartFindsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// when there is room to decide about
		tight := func(p *book.Plan) bool { return len(p.Nodes) > 0 && len(p.Nodes[0].Tasks) < 2 }
		r := newHangsRig(t, tight)
		a, b := r.submit(named("runs")), r.submit(named("runs"))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		synctest.Wait()
		guilty := r.submit(named("hangs"))
		waits := r.submit(named("waits"))
		r.fake.ended(first.Container, cluster.Succeeded, 0)
		<-r.Dead() // At an event of job a.
		running := cluster.Event{Kind: cluster.TaskAdopted, Task: second.Task, Run: 1, Grant: second.Grant, Launched: 1}
		ended := cluster.Event{Kind: cluster.TaskEnded, Task: first.Task, Run: 1, Outcome: cluster.Succeeded,
			Exit: &cluster.Exit{Started: 1, Ended: 2}}
		r.restart(tight, running, ended)
		<-r.Dead() // when it took in the culprit
		r.restart(tight, running, ended)
		if o := r.order(cluster.Start); o.Task.Job != waits {
			t.Errorf("order %+v", o)
		}
		for id, want := range map[cluster.JobID]cluster.JobStatus{a: cluster.StatusSucceeded, b: cluster.StatusRunning,
			guilty: cluster.StatusSetAside, waits: cluster.StatusPending} {
			if j := r.job(id); j.Status != want {
				t.Errorf("job %d is %s, want %s", id, j.Status, want)
			}
		}
	})
}

// If the engine hangs on jobs that are already running, it decides nothing: they keep running, and can be killed.
func TestNothingIsDecidedIfThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tight := func(p *book.Plan) bool { return len(p.Nodes[0].Tasks) == 1 }
		r := newHangsRig(t, tight)
		s := submission(3)
		s.Job.Name = "hangs"
		// Both tasks that fit start in the step of the submission: the engine hangs later.
		id := r.submit(s)
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		r.fake.ended(first.Container, cluster.Succeeded, 0)
		<-r.Dead()
		running := cluster.Event{Kind: cluster.TaskAdopted, Task: second.Task, Run: 1, Grant: second.Grant, Launched: 1}
		ended := cluster.Event{Kind: cluster.TaskEnded, Task: first.Task, Run: 1, Outcome: cluster.Succeeded,
			Exit: &cluster.Exit{Started: 1, Ended: 2}}
		r.restart(tight, running, ended)
		<-r.Dead()
		r.restart(tight, running, ended)
		synctest.Wait()
		r.noOrder()
		if s := r.status(); !strings.Contains(s.Trouble, "hangs whenever it decides about the jobs that run") {
			t.Errorf("status %+v", s)
		}
		if err := r.Cancel(t.Context(), user, id); err != nil {
			t.Fatal(err)
		}
		r.order(cluster.Kill)
		r.fake.ended(second.Container, cluster.Killed, 143)
		if j := r.wait(id); j.Status != cluster.StatusCancelled {
			t.Errorf("job %+v", j)
		}
	})
}

// A daemon that is killed during a decision has not hung; a daemon that never survives a step counts as hung.
func TestDeathsWithinAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHangsRig(t, nil)
		go func() { _, _ = r.Submit(t.Context(), named("hangs")) }()
		synctest.Wait()
		for range watchdog.MostDeaths - 1 { // It is killed before the watchdog notices anything, and started again.
			r.restart(nil)
			synctest.Wait()
			if s := r.status(); s.Trouble != "" {
				t.Errorf("status %+v", s)
			}
		}
		r.restart(nil)
		if j := r.job(1); j.Status != cluster.StatusSetAside || !strings.Contains(j.Waiting, "killed each time that it did") {
			t.Errorf("job %+v", j)
		}
		if log := r.log.String(); strings.Contains(log, "hung") || !strings.Contains(log, "killed several times in a row") {
			t.Errorf("the log says %s", log)
		}
	})
}
