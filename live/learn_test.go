package live

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/learn"
	"github.com/bellows-rm/bellows/live/store"
)

// readThenWrite is the usage of a program that reads for some seconds and then computes for as many.
func readThenWrite(seconds int) usage.Usage {
	var u usage.Usage
	known := usage.SetOf(usage.CPU, usage.Memory, usage.Swap, usage.Read, usage.Written)
	for i := range 2 * seconds {
		s := usage.Span{Length: time.Second, Known: known, Used: usage.Amounts{usage.CPU: 100, usage.Memory: 50 << 20,
			usage.Read: 80 << 20}}
		if i >= seconds {
			s.Used = usage.Amounts{usage.CPU: 1000, usage.Memory: 200 << 20}
		}
		u.Spans = append(u.Spans, s)
	}
	return u
}

// twoPhases is a job of one task of an application.
func twoPhases(input resource.Amount) Submission {
	s := submission(1)
	s.Job.App, s.Job.Stages[0].Input = "two-phases", input
	return s
}

// runUsing submits a job and runs its task with a usage.
func (r *rig) runUsing(s Submission, u usage.Usage) api.Job {
	r.t.Helper()
	return r.endUsing(r.start1(s), u)
}

// start1 submits a job and launches its task.
func (r *rig) start1(s Submission) cluster.Order {
	r.t.Helper()
	id := r.submit(s)
	o := r.order(cluster.Start)
	if o.Task.Job != id {
		r.t.Fatalf("job %d starts, want %d", o.Task.Job, id)
	}
	r.fake.launched(o)
	synctest.Wait()
	return o
}

// endUsing ends the only task of a job, which was started, with a usage.
func (r *rig) endUsing(o cluster.Order, u usage.Usage) api.Job {
	r.t.Helper()
	r.fake.usage[o.Container] = u
	r.fake.ended(o.Container, cluster.Succeeded, 0)
	j := r.wait(o.Task.Job)
	synctest.Wait()
	return j
}

// The runs of an application teach what the next one demands when, scaled by its input; the engine gets it with the
// submission, and the next Driver knows it too. A replay needs none of it.
func TestLearning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		first := r.runUsing(twoPhases(resource.GiB), readThenWrite(10))
		if s := first.Stages[0]; len(s.Phases) > 0 || s.Duration != 0 {
			t.Errorf("the first run is expected to %+v", s.Stage)
		}
		if e, err := r.Explain(t.Context(), first.ID); err != nil || e.Forecasts[0].Runs != 1 ||
			!strings.Contains(e.Forecasts[0].Notes[0], "among the first runs") {
			t.Errorf("%v %+v", err, e.Forecasts)
		}
		second := r.runUsing(twoPhases(2*resource.GiB), readThenWrite(20))
		s := second.Stages[0]
		if len(s.Phases) != 2 || s.Duration != 40*time.Second || s.Told.Samples != 1 || s.Told.Model == "" ||
			s.Phases[0].Demand[resource.Disk] < 70*resource.MiB || s.Phases[1].Demand[resource.CPU] < 900 {
			t.Errorf("the second run is expected to %+v", s.Stage)
		}
		if s.Ideal != resource.Of(1000, 400*resource.MiB) {
			t.Errorf("what is reserved became %v", s.Ideal)
		}
		stated := twoPhases(resource.GiB)
		stated.Job.Stages[0].Duration = 10 * time.Second
		if s := r.runUsing(stated, readThenWrite(10)).Stages[0]; s.Duration != 10*time.Second ||
			s.RunTime() != 10*time.Second || s.Phases[0].Duration != 5*time.Second || s.Told.Samples != 2 {
			t.Errorf("with a stated run time: %+v", s.Stage)
		}
		stated.Job.Stages[0].Phases = []cluster.Phase{{Duration: 10 * time.Second}}
		if s := r.runUsing(stated, readThenWrite(10)).Stages[0]; len(s.Phases) != 1 || s.Told != (cluster.Provenance{}) {
			t.Errorf("with stated phases: %+v", s.Stage)
		}
		other := twoPhases(resource.GiB)
		other.Caller = cluster.Credentials{UID: 3000, GID: 3000, User: "bob"}
		if s := r.runUsing(other, readThenWrite(10)).Stages[0]; len(s.Phases) != 0 {
			t.Errorf("another user's run: %+v", s.Stage)
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
		if s := r.runUsing(twoPhases(resource.GiB), readThenWrite(10)).Stages[0]; s.Told.Samples != 4 {
			t.Errorf("after a restart: %+v", s.Stage)
		}
	})
}

// What a run teaches counts for jobs of its application that wait, and for no job that has started or says itself
// what it will do. The revised forecast survives a restart.
func TestLearningWhileAJobWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		whole := twoPhases(0)
		whole.Job.Stages[0].Ideal = resource.Of(2000, 800*resource.MiB)
		running := r.submit(whole)
		o := r.order(cluster.Start)
		r.fake.launched(o)
		waiting := r.submit(whole)
		stated := whole
		stated.Job.Stages = append([]cluster.Stage(nil), whole.Job.Stages...)
		stated.Job.Stages[0].Phases = []cluster.Phase{{Duration: time.Second}}
		alsoWaiting, says := r.submit(whole), r.submit(stated)
		synctest.Wait()
		r.fake.usage[o.Container] = readThenWrite(10)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(running)
		synctest.Wait()
		if s := r.job(waiting).Stages[0]; s.Told.Samples != 0 {
			t.Errorf("the job that starts at once: %+v", s.Stage)
		}
		check := func(when string) {
			t.Helper()
			if s := r.job(alsoWaiting).Stages[0]; s.Told.Samples != 1 || len(s.Phases) != 2 || s.Duration != 20*time.Second {
				t.Errorf("%s: the job that waits: %+v", when, s.Stage)
			}
			if s := r.job(says).Stages[0]; s.Told.Samples != 0 || len(s.Phases) != 1 {
				t.Errorf("%s: the job that says itself: %+v", when, s.Stage)
			}
			if state := r.Driver.jobs[alsoWaiting].state; len(state.Stages[0].Phases) != 2 {
				t.Errorf("%s: the engine has %+v", when, state.Stages[0])
			}
		}
		check("revised")
		log := r.EventLog()
		if err := r.Driver.Close(); err != nil {
			t.Fatal(err)
		}
		r.checkReplay(log)
		r.fake = newFake()
		r.start(fifo(t))
		defer r.end()
		synctest.Wait()
		check("after a restart")
	})
}

// What a run teaches counts for a job that was paused before the driver began, too.
func TestLearningWhileAJobIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		running := r.submit(twoPhases(0))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.submit(twoPhases(0))
		paused := r.submit(twoPhases(0))
		if err := r.Pause(t.Context(), user, paused, cluster.TaskID{}, false); err != nil {
			t.Fatal(err)
		}
		if err := r.Driver.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: o.Grant, Launched: 1})
		r.fake.usage = map[cluster.ContainerID]usage.Usage{o.Container: readThenWrite(10)}
		r.start(fifo(t))
		defer r.end()
		synctest.Wait()
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(running)
		synctest.Wait()
		if j := r.job(paused); j.Stages[0].Told.Samples != 1 || r.Driver.health.broken != nil {
			t.Errorf("%+v: %v", j.Stages[0], r.Driver.health.broken)
		}
	})
}

// Time in which a program was suspended, or kept still by a throttle, is no time that it needs. A run whose disk the
// kernel bounded for long, or which others hindered there for long, teaches nothing, and one for a moment not what it
// demands of the disk then.
func TestStandingStillTeachesNothing(t *testing.T) {
	suspended, throttled, bounded, briefly := readThenWrite(10), readThenWrite(10), readThenWrite(10), readThenWrite(10)
	hindered, hinderedBriefly := readThenWrite(10), readThenWrite(10)
	for i := range 3 {
		hindered.Spans[3+i].Pressed = time.Second
	}
	hinderedBriefly.Spans[4].Pressed, hinderedBriefly.Spans[4].Used[usage.Read] = time.Second, 20<<20
	stands := usage.Span{Length: 30 * time.Second, Suspended: 30 * time.Second, Known: suspended.Spans[0].Known,
		Used: usage.Amounts{usage.Memory: 50 << 20}}
	suspended.Spans = slices.Insert(suspended.Spans, 5, stands)
	for i := range throttled.Spans[2:8] {
		throttled.Spans[2+i].Length, throttled.Spans[2+i].Suspended = 4*time.Second, 3*time.Second
	}
	slow := func(s *usage.Span) {
		s.Length, s.Bounded = 4*time.Second, true
	}
	for i := range 8 {
		slow(&bounded.Spans[1+i])
	}
	slow(&briefly.Spans[5])
	briefly.Spans[5].Length = time.Second
	briefly.Spans[5].Used[usage.Read] = 20 << 20
	for _, test := range []struct {
		what string
		u    usage.Usage
		runs int
	}{{"suspended", suspended, 1}, {"throttled by standing still", throttled, 1}, {"bounded", bounded, 0},
		{"bounded for a moment", briefly, 1}, {"hindered", hindered, 0}, {"hindered for a moment", hinderedBriefly, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, fifo(t))
			defer r.end()
			r.fake.usage = map[cluster.ContainerID]usage.Usage{}
			r.runUsing(twoPhases(0), test.u)
			s := r.runUsing(twoPhases(0), test.u).Stages[0]
			if s.Told.Samples != test.runs {
				t.Errorf("%s: learned from %d runs", test.what, s.Told.Samples)
			}
			if test.runs > 0 && (s.Duration != 20*time.Second || len(s.Phases) != 2 || s.Phases[0].Duration != 10*time.Second ||
				s.Phases[0].Demand[resource.Disk] != 80*resource.MiB || s.Phases[1].Demand[resource.CPU] != 1000) {
				t.Errorf("%s: %v, %+v", test.what, s.Duration, s.Phases)
			}
		})
	}
}

// If something of a run was not measured or is not sound, the log says so once, at its default level, and what runs
// taught shows it. The log also names a run that teaches nothing. A run that is whole is not mentioned.
func TestReservations(t *testing.T) {
	gap, nothing, beyond, torn := readThenWrite(10), readThenWrite(10), readThenWrite(10), readThenWrite(10)
	// a clock that jumped
	gap.Spans[12] = usage.Span{Length: time.Hour, Known: usage.SetOf(usage.CPU),
		Used: usage.Amounts{usage.CPU: 3_600_000}, Gap: true}
	for i := range nothing.Spans {
		nothing.Spans[i].Known, nothing.Spans[i].Used = 0, usage.Amounts{}
	}
	beyond.Spans[3].Used[usage.Memory] = int64(resource.MostMemory) + 1<<20
	for _, c := range []struct {
		what    string
		u       usage.Usage
		missing string
		said    string // in the log; empty: nothing
		kept    bool   // the run is shown with what was said
	}{
		{"whole", readThenWrite(10), "", "", false},
		{"a jump of the clock", gap, "", "no samples were taken for 1h0m0s of 1h0m19s", true},
		{"an amount out of range", beyond, "", "samples 1: memory must be 0 to", true},
		{"damaged samples", torn, "the last 5 bytes of its samples were damaged and are dropped",
			"the last 5 bytes of its samples", true},
		{"no kind", nothing, "", "gaps 20: nothing was measured for 20s of 20s", true},
		{"no length", usage.Usage{Spans: []usage.Span{{Length: time.Second, Suspended: time.Second}}}, "",
			"nothing of it was measured", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text bytes.Buffer
				r := &rig{t: t, dir: t.TempDir(), fake: newFake(), logTo: &text}
				r.open()
				r.start(fifo(t))
				defer r.end()
				r.fake.usage, r.fake.missing = map[cluster.ContainerID]usage.Usage{}, c.missing
				r.runUsing(twoPhases(0), c.u)
				all, err := r.Learned(t.Context(), user.UID, user.User, "two-phases")
				if err != nil {
					t.Fatal(err)
				}
				var lines []string
				for line := range strings.Lines(text.String()) {
					if strings.Contains(line, "a run teaches") {
						lines = append(lines, line)
					}
				}
				if c.said == "" && len(lines) > 0 || c.said != "" && (len(lines) != 1 || !strings.Contains(lines[0], c.said) ||
					!strings.Contains(lines[0], "container=")) {
					t.Errorf("the log says %q, want %q", lines, c.said)
				}
				doubtful := len(all) == 1 && all[0].DoubtfulRuns == 1 &&
					strings.Contains(strings.Join(all[0].Doubtful[0].Notes, "; "), c.said)
				if doubtful != c.kept || !c.kept && len(all) == 1 && all[0].DoubtfulRuns != 0 {
					t.Errorf("known is %+v", all)
				}
			})
		})
	}
}

// A history that cannot be read, or of another version, stops nothing: the daemon says which, and begins it anew.
func TestUnreadableHistory(t *testing.T) {
	for _, text := range []string{"{broken", `{"version":99,"apps":[]}`} {
		synctest.Test(t, func(t *testing.T) {
			r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
			r.fake.usage = map[cluster.ContainerID]usage.Usage{}
			r.open()
			if err := r.store.PutLearned(t.Context(), store.App{UID: user.UID, User: "ada", Name: "two-phases",
				Learned: json.RawMessage(text)}, store.Lessons{}); err != nil {
				t.Fatal(err)
			}
			r.start(fifo(t))
			defer r.end()
			id := r.submit(twoPhases(0))
			if e, err := r.Explain(t.Context(), id); err != nil || !strings.Contains(e.Forecasts[0].Notes[0], "cannot be read") {
				t.Errorf("%v %+v", err, e.Forecasts)
			}
			o := r.order(cluster.Start)
			r.fake.launched(o)
			synctest.Wait()
			r.fake.usage[o.Container] = readThenWrite(10)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
			r.wait(id)
			synctest.Wait()
			if s := r.runUsing(twoPhases(0), readThenWrite(10)).Stages[0]; s.Told.Samples != 1 {
				t.Errorf("the run after the one that began anew: %+v", s.Stage)
			}
		})
	}
}

// What cannot be stored, as on a full disk, is learned later.
func TestLearningIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		db, err := sql.Open("sqlite", filepath.Join(r.dir, store.File))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(
			`CREATE TRIGGER full BEFORE INSERT ON apps BEGIN SELECT RAISE(FAIL, 'disk full'); END`); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if s := r.runUsing(twoPhases(0), readThenWrite(10)).Stages[0]; s.Told.Samples != 0 {
				t.Errorf("it is told of %d runs, which cannot be stored", s.Told.Samples)
			}
		}
		if _, err := db.Exec(`DROP TRIGGER full`); err != nil {
			t.Fatal(err)
		}
		time.Sleep(learn.Again)
		synctest.Wait()
		if s := r.runUsing(twoPhases(0), readThenWrite(10)).Stages[0]; s.Told.Samples != 2 {
			t.Errorf("it is told of %d runs, want 2", s.Told.Samples)
		}
	})
}

// What was learned and what was measured go at once when they are forgotten, and the next run begins anew.
func TestForgottenIsLearnedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		if err := r.store.PutProfile(t.Context(), store.Profile{UID: user.UID, User: user.User, Name: "two-phases",
			Measured: api.Measured{IdealMemory: 10, MinMemory: 1}}); err != nil {
			t.Fatal(err)
		}
		r.runUsing(twoPhases(0), readThenWrite(10))
		r.runUsing(twoPhases(0), readThenWrite(10))
		if a, err := r.store.App(t.Context(), user.UID, user.User, "two-phases"); err != nil || a.Profile == nil ||
			a.Learned == nil {
			t.Errorf("%v %+v", err, a)
		}
		if err := r.store.Forget(t.Context(), user.UID, user.User, "two-phases"); err != nil {
			t.Fatal(err)
		}
		if all, err := r.Learned(t.Context(), user.UID, user.User, "two-phases"); err != nil || len(all) != 0 {
			t.Errorf("%v %+v", err, all)
		}
		for samples := range 2 {
			if s := r.runUsing(twoPhases(0), readThenWrite(10)).Stages[0]; s.Told.Samples != samples {
				t.Errorf("it is told of %d runs, want %d", s.Told.Samples, samples)
			}
		}
	})
}

// A demand that no node can meet is said, and neither cut nor refused.
func TestForecastBeyondTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := twoPhases(0)
		s.Job.Stages[0].Phases = []cluster.Phase{{Duration: 0},
			{Duration: time.Second, Demand: resource.Of(64*resource.Core, resource.MiB)}}
		id := r.submit(s)
		e, err := r.Explain(t.Context(), id)
		if err != nil || len(e.Forecasts) != 1 || len(e.Forecasts[0].Notes) != 2 {
			t.Fatalf("%v %+v", err, e.Forecasts)
		}
		if got, want := e.Forecasts[0].Notes[1],
			"Phase 2 demands 64 cores, and no node has more than 2 cores: it will take longer than "+
				"expected."; !strings.EqualFold(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// If many jobs wait, the forecasts of the jobs that were submitted first are revised first after a run.
func TestManyJobsThatWaitAreRevisedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		whole := twoPhases(0)
		whole.Job.Stages[0].Ideal = resource.Of(2000, 800*resource.MiB)
		var ids []cluster.JobID
		for range learn.MostRevised + 12 {
			ids = append(ids, r.submit(whole))
		}
		told := func() (n [3]int) {
			for i, id := range ids[2:] {
				s := r.job(id).Stages[0].Told.Samples
				n[s]++
				if i > 1 && s > r.job(ids[i+1]).Stages[0].Told.Samples {
					t.Errorf("job %d knows more than the one before it", id)
				}
			}
			return n
		}
		for i, want := range [][3]int{{10, learn.MostRevised, 0}, {9, 1, learn.MostRevised}} {
			o := r.order(cluster.Start)
			r.fake.launched(o)
			synctest.Wait()
			r.fake.usage[o.Container] = readThenWrite(10)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
			r.wait(ids[i])
			synctest.Wait()
			if got := told(); got != want {
				t.Errorf("after run %d: %v know of 0, 1 and 2 runs, want %v", i+1, got, want)
			}
		}
	})
}

// BenchmarkLearningForManyThatWait ends a run of an application while two thousand more jobs of it wait, and waits
// until the daemon answers again.
func BenchmarkLearningForManyThatWait(b *testing.B) {
	r := &rig{t: b, dir: b.TempDir(), fake: newFake()}
	r.open()
	r.start(fifo(b))
	defer r.end()
	r.fake.usage = map[cluster.ContainerID]usage.Usage{}
	whole := twoPhases(0)
	whole.Job.Stages[0].Ideal = resource.Of(2000, 800*resource.MiB)
	for range 2000 {
		r.submit(whole)
	}
	for b.Loop() {
		r.submit(whole)
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.usage[o.Container] = readThenWrite(10)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(o.Task.Job)
		for ids, err := r.store.Unlearned(b.Context()); err != nil || len(ids) > 0; ids,
			err = r.store.Unlearned(b.Context()) {
			time.Sleep(time.Millisecond)
		}
		r.submit(whole) // after the forecasts are revised
	}
}

// A run that got less CPU than it would have used, or waited for its memory in swap, teaches a lower bound of its CPU;
// and the cores of a run are those that its stage requested, whatever it was granted last.
func TestCurbedRunsTeachLowerBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		for i, c := range []struct {
			change func(*usage.Span)
			bound  bool
		}{
			{func(*usage.Span) {}, false},
			{func(s *usage.Span) { s.Curbed = 50 * time.Millisecond }, false},
			{func(s *usage.Span) { s.Curbed = 200 * time.Millisecond }, true},
			{func(s *usage.Span) { s.Used[usage.Swap] = 2 << 20 }, true},
			{func(s *usage.Span) { s.Suspended, s.Curbed = time.Second/2, time.Second/8 }, true},
		} {
			u := readThenWrite(10)
			for k := range u.Spans {
				c.change(&u.Spans[k])
			}
			j := r.runUsing(twoPhases(resource.GiB), u)
			var last profile.Run
			err := r.learner.Read(t.Context(), learn.AppOf(user, "two-phases"), func(h *profile.History, _ error) error {
				runs, observed := h.Runs(profile.AppOf(&cluster.Job{Owner: j.Owner, App: "two-phases",
					Stages: []cluster.Stage{{}}}, 0))
				if observed != i+1 {
					t.Fatalf("%d runs after %d", observed, i+1)
				}
				last = runs[len(runs)-1]
				return nil
			})
			if err != nil || last.AtLeast.Has(resource.CPU) != c.bound || last.AtLeast.Has(resource.Memory) ||
				len(last.Notes) > 0 != c.bound {
				t.Errorf("case %d: %v, %+v", i, err, last)
			}
			if last.Cores != 1000 || last.CPU < 540 || last.CPU > 1100 {
				t.Errorf("case %d: of %d cores, it used %d", i, last.Cores, last.CPU)
			}
		}
	})
}

// A run whose memory was not seen at its peak teaches no need below the true one: what it held while it stood still
// counts, and what may have been more is a lower bound.
func TestHinderedRunsTeachNoLessMemory(t *testing.T) {
	const usual, peak = 200 * resource.MiB, 300 * resource.MiB
	known := usage.SetOf(usage.CPU, usage.Memory, usage.Swap, usage.Read, usage.Written)
	for name, c := range map[string]struct {
		span  usage.Span // in the middle of the run
		exit  cluster.Exit
		want  resource.Amount
		bound bool
	}{
		"undisturbed": {span: usage.Span{Length: time.Second, Known: known,
			Used: usage.Amounts{usage.CPU: 1000, usage.Memory: int64(peak)}}, want: peak},
		"in swap": {span: usage.Span{Length: time.Second, Known: known,
			Used: usage.Amounts{usage.CPU: 1000, usage.Memory: int64(peak) / 3, usage.Swap: 2 * int64(peak) / 3}}, want: peak},
		"stood still at its peak": {span: usage.Span{Length: time.Minute, Suspended: time.Minute, Known: known,
			Used: usage.Amounts{usage.Memory: int64(peak) - 100<<20, usage.Swap: 100 << 20}}, want: peak},
		"between two samples": {span: usage.Span{Length: time.Second, Known: known,
			Used: usage.Amounts{usage.CPU: 1000, usage.Memory: int64(usual)}}, exit: cluster.Exit{Used: peak}, want: peak},
		"not measured for a time": {span: usage.Span{Length: 3 * time.Second, Gap: true, Known: usage.SetOf(usage.CPU)},
			want: usual, bound: true},
		"not measured, but bounded by the kernel's count": {span: usage.Span{Length: 3 * time.Second, Gap: true,
			Known: usage.SetOf(usage.CPU)}, exit: cluster.Exit{Peak: usual}, want: usual},
		"one of its processes was killed for memory": {span: usage.Span{Length: time.Second, Known: known,
			Used: usage.Amounts{usage.CPU: 1000, usage.Memory: int64(peak)}}, exit: cluster.Exit{OOMKills: 1}, want: peak,
			bound: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, fifo(t))
				defer r.end()
				u := readThenWrite(10)
				u.Spans = slices.Insert(u.Spans, 12, c.span)
				o := r.start1(twoPhases(0))
				r.fake.usage = map[cluster.ContainerID]usage.Usage{o.Container: u}
				c.exit.Started, c.exit.Ended = 1, 2
				r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: o.Container.Run,
					Outcome: cluster.Succeeded, Exit: &c.exit}
				r.wait(o.Task.Job)
				synctest.Wait()
				err := r.learner.Read(t.Context(), learn.AppOf(user, "two-phases"), func(h *profile.History, _ error) error {
					runs, _ := h.Runs(h.Apps()[0])
					if run := &runs[0]; run.Peak[resource.Memory] != c.want || run.AtLeast.Has(resource.Memory) != c.bound ||
						run.Unknown.Has(resource.Memory) {
						t.Errorf("it taught %+v, want a peak of %s, a lower bound: %v", run, resource.FormatMemory(c.want), c.bound)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}
