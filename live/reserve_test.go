package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/api"
)

// undecided is a job of one task that leaves to the daemon what is reserved, and may use memory; 0 is as much as there
// is.
func undecided(memory resource.Amount) Submission {
	s := submission(1)
	s.Undecided, s.Job.App, s.Job.Stages[0].Ideal[resource.Memory] = true, "two-phases", memory
	return s
}

// What is not known starts small, and the next run reserves what was needed, whatever the limit is. That survives a
// restart, and a replay needs no history.
func TestReservesWhatIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		run := func(s Submission) (o cluster.Order, j api.Job) {
			t.Helper()
			o = r.start1(s)
			return o, r.endUsing(o, readThenWrite(10)) // 200 MiB at most
		}
		o, j := run(undecided(600 * resource.MiB))
		if o.Grant[resource.Memory] != cluster.FirstReservation || o.Envelope.Class != cluster.Flex ||
			o.Envelope.Max != 600*resource.MiB {
			t.Errorf("the first run is granted %v in %+v", o.Grant, o.Envelope)
		}
		if want := "reserves 64MiB: no run is known; may grow to 600MiB; {memory} is of the 600MiB that its container " +
			"may have"; !strings.Contains(j.Tasks[0].Why, want) {
			t.Errorf("it has its memory because %q, want %q", j.Tasks[0].Why, want)
		}
		if want := fmt.Sprint((600<<10)-(16<<10), "K"); o.Launch.Args[2] != want {
			t.Errorf("it is told %v of memory, want %s", o.Launch.Args, want)
		}
		check := func(what string, o cluster.Order, j api.Job, runs int) {
			t.Helper()
			s := &j.Stages[0]
			if got := o.Grant[resource.Memory]; got < 200*resource.MiB || got > 250*resource.MiB || s.Reserved == nil ||
				s.Reserved.Bytes != got || s.Reserved.Runs != runs || s.Ideal[resource.Memory] != got {
				t.Errorf("%s: granted %v, by %+v", what, o.Grant, s.Reserved)
			}
		}
		o, j = run(undecided(600 * resource.MiB))
		check("the second run", o, j, 1)
		e, err := r.Explain(t.Context(), j.ID)
		if err != nil || !strings.HasPrefix(e.Forecasts[0].Notes[0], "It reserves 225MiB: 1 run, 200MiB, error unknown; "+
			"may grow to 600MiB.") {
			t.Errorf("%v %q", err, e.Forecasts[0].Notes)
		}
		o, j = run(undecided(0))
		check("without a limit", o, j, 2)
		if want := fmt.Sprint((512<<10)-(16<<10), "K"); o.Envelope.Max != resource.GiB || o.Launch.Args[2] != want ||
			!strings.Contains(j.Tasks[0].Why, "; {memory} is of the 512MiB that are half of its node") {
			t.Errorf("%+v, told %v, because %q", o.Envelope, o.Launch.Args, j.Tasks[0].Why)
		}
		java := undecided(0)
		java.Job.Stages[0].Args = []string{"java", "Main"}
		if o, j = run(java); o.Launch.Args[1] != "-Xmx419430k" || !strings.HasSuffix(j.Tasks[0].Why,
			"; java gets a heap of 409.6MiB, 0.8 of the 512MiB that are half of its node") {
			t.Errorf("%v, because %q", o.Launch.Args, j.Tasks[0].Why)
		}
		log := r.EventLog()
		if err := r.Driver.Close(); err != nil {
			t.Fatal(err)
		}
		r.checkReplay(log)
		r.fake = newFake()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		r.start(fifo(t))
		defer r.end()
		o, j = run(undecided(600 * resource.MiB))
		check("after a restart", o, j, 4)
		if o, j = run(undecided(150 * resource.MiB)); o.Grant[resource.Memory] != 150*resource.MiB ||
			!j.Stages[0].Reserved.Limited {
			t.Errorf("with a limit below what is needed: %v, %+v", o.Grant, j.Stages[0].Reserved)
		}
		r.Driver.config.ReservesStated = true
		if o, _ = run(undecided(600 * resource.MiB)); o.Grant[resource.Memory] != 600*resource.MiB ||
			o.Envelope.Class != cluster.Regular {
			t.Errorf("where what is stated is reserved: %v in %+v", o.Grant, o.Envelope)
		}
		if _, err := r.Submit(t.Context(), undecided(0)); api.KindOf(err) != api.Invalid ||
			!strings.Contains(err.Error(), "memory 0B: must be above 0") {
			t.Errorf("%v", err)
		}
	})
}

// Who decides what is reserved: the submitter, if anything is stated about it.
func TestWhoseReservationsAreLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for what, c := range map[string]struct {
			change          func(s *Submission, g *cluster.Stage)
			class           cluster.Class
			starts, may     resource.Amount
			learned, refuse bool
		}{
			"nothing": {func(_ *Submission, g *cluster.Stage) {}, cluster.Flex, 64, 400, true, false},
			"little": {func(_ *Submission, g *cluster.Stage) { g.Ideal[1] = 32 * resource.MiB },
				cluster.Flex, 32, 32, true, false},
			"no memory": {func(_ *Submission, g *cluster.Stage) { g.Ideal[1] = 0 }, cluster.Flex, 64, 0, true, false},
			"a maximum": {func(_ *Submission, g *cluster.Stage) { g.Ideal[1], g.MaxMemory = 0, resource.GiB },
				cluster.Flex, 64, 1024, true, false},
			"both": {func(_ *Submission, g *cluster.Stage) { g.MaxMemory = resource.GiB }, cluster.Flex, 400, 1024, true, false},
			"more than there is": {func(_ *Submission, g *cluster.Stage) { g.Ideal[1] = resource.TiB },
				cluster.Flex, 64, 1 << 20, true, false},
			"a minimum": {func(_ *Submission, g *cluster.Stage) { g.MinMemory = resource.MiB },
				cluster.Regular, 400, 0, false, false},
			"regular": {func(s *Submission, _ *cluster.Stage) { s.Undecided = false }, cluster.Regular, 400, 0, false, false},
			"flex": {func(s *Submission, g *cluster.Stage) { s.Undecided, s.Job.Class = false, cluster.Flex },
				cluster.Flex, 400, 0, false, false},
			"learned": {func(s *Submission, g *cluster.Stage) {
				s.Undecided, s.Job.Class, s.Job.Reserve = false, cluster.Flex, cluster.ReserveLearned
			}, cluster.Flex, 64, 400, true, false},
			"regular and learned": {func(s *Submission, g *cluster.Stage) {
				s.Undecided, s.Job.Reserve = false, cluster.ReserveLearned
			}, 0, 0, 0, false, true},
			"less than a job may have": {func(_ *Submission, g *cluster.Stage) { g.Ideal[1] = resource.KiB },
				0, 0, 0, false, true},
			"evidence": {func(_ *Submission, g *cluster.Stage) {
				g.Reserved = &cluster.Reservation{Bytes: 1, Runs: 99}
			}, cluster.Flex, 64, 400, true, false},
		} {
			s := submission(1)
			s.Undecided = true
			c.change(&s, &s.Job.Stages[0])
			j, err := r.prepare(t.Context(), &s)
			if err != nil || c.refuse {
				if !c.refuse || api.KindOf(err) != api.Invalid {
					t.Errorf("%s: %v", what, err)
				}
				continue
			}
			got, g := &j.Request.Job, &j.Request.Job.Stages[0]
			if got.Class != c.class || (got.Reserve == cluster.ReserveLearned) != c.learned ||
				(g.Reserved != nil) != c.learned || g.Ideal[resource.Memory] != c.starts*resource.MiB ||
				g.MaxMemory != c.may*resource.MiB ||
				c.learned && g.Reserved.Runs > 0 {
				t.Errorf("%s: %s, %v, starts with %v, may grow to %v, %+v", what, got.Class, got.Reserve,
					g.Ideal[resource.Memory], g.MaxMemory, g.Reserved)
			}
		}
	})
}

// What a run teaches is reserved for jobs that wait, and for tasks of running jobs that have not started: these keep
// what they were granted.
func TestReservationsOfWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		many := undecided(600 * resource.MiB)
		many.Job.Stages[0].Tasks = 3
		teacher, runs, waits := r.submit(undecided(0)), r.submit(many), r.submit(undecided(600*resource.MiB))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		synctest.Wait()
		r.noOrder() // no core is free
		// What waits for room says what it would reserve, why, and how far it may grow.
		const want = "no node has 1 core free; it reserves 64MiB: no run is known; may grow to 600MiB"
		if why := r.job(runs).Waiting; why != want {
			t.Errorf("it waits because %q, want %q", why, want)
		}
		r.fake.usage[first.Container] = readThenWrite(10)
		r.fake.ended(first.Container, cluster.Succeeded, 0)
		r.wait(teacher)
		third := r.order(cluster.Start)
		synctest.Wait()
		for _, id := range []cluster.JobID{runs, waits} {
			if s := r.job(id).Stages[0]; s.Reserved == nil || s.Reserved.Runs != 1 ||
				s.Ideal[resource.Memory] < 200*resource.MiB {
				t.Errorf("job %d: %+v", id, s.Reserved)
			}
		}
		if second.Grant[resource.Memory] != cluster.FirstReservation {
			t.Errorf("granted %v", second.Grant)
		}
		e, err := r.Explain(t.Context(), runs)
		if err != nil || !slices.ContainsFunc(e.Tasks, func(x api.TaskExplanation) bool {
			return x.Task == second.Task && x.MemoryBytes == int64(cluster.FirstReservation) && x.Slowdown == 1 &&
				x.IdealBytes == x.MemoryBytes
		}) {
			t.Errorf("%v %+v", err, e.Tasks)
		}
		r.fake.launched(third)
		r.fake.ended(third.Container, cluster.Succeeded, 0)
		if o := r.order(cluster.Start); o.Task.Job != runs || o.Grant[resource.Memory] < 200*resource.MiB {
			t.Errorf("the next task is granted %v", o.Grant)
		}
	})
}

// A history that is not of this program, or of a larger machine, makes no job wait for ever.
func TestLyingHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		huge := usage.Usage{Spans: []usage.Span{{Length: 10 * time.Second,
			Known: usage.SetOf(usage.CPU, usage.Memory, usage.Swap),
			Used:  usage.Amounts{usage.Memory: int64(3 * resource.GiB), usage.CPU: 100}}}}
		r.runUsing(undecided(0), huge)
		id := r.submit(undecided(0))
		if o := r.order(cluster.Start); o.Grant[resource.Memory] != resource.GiB {
			t.Errorf("granted %v of a node of 1 GiB", o.Grant)
		}
		if s := r.job(id).Stages[0]; !s.Reserved.Limited {
			t.Errorf("%+v", s.Reserved)
		}
	})
}

// What nothing was known of, or was learned, is lowered to what a quota that is set later permits, as at a submission:
// the job does not wait for ever. So it is if the quota is set while the daemon does not run.
func TestReservesWithinLaterQuotas(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint(restarts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, fifo(t))
				first := r.submit(submission(2))
				orders := []cluster.Order{r.order(cluster.Start), r.order(cluster.Start)}
				s := undecided(0)
				s.Job.Stages[0].Ideal[resource.CPU] = 0
				waits := r.submit(s)
				if got := r.job(waits).Stages[0].Ideal; got != resource.Of(1000, cluster.FirstReservation) {
					t.Fatalf("at first %v is to be reserved", got)
				}
				var found []cluster.Event
				for _, o := range orders {
					r.fake.launched(o)
					found = append(found, cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: o.Grant, Launched: 1})
				}
				synctest.Wait()
				q := ofUsers(cluster.Limits{cluster.QuotaCPU: {Most: 500}, cluster.QuotaMemory: {Most: int64(32 * resource.MiB)}})
				if restarts {
					if err := r.Driver.Close(); err != nil {
						t.Fatal(err)
					}
					r.fake, r.quotas = newFake(found...), q
					r.start(fifo(t))
				} else if err := r.SetQuotas(q); err != nil {
					t.Fatal(err)
				}
				for _, o := range orders {
					r.fake.ended(o.Container, cluster.Succeeded, 0)
				}
				r.wait(first)
				if o := r.order(cluster.Start); o.Task.Job != waits || o.Grant[resource.CPU] != 500 ||
					o.Grant[resource.Memory] > 32*resource.MiB || o.Grant[resource.Memory] < 31*resource.MiB {
					t.Errorf("job %d starts with %v", o.Task.Job, o.Grant)
				}
				r.end()
			})
		})
	}
}
