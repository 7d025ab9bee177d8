package sim

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Startup is the delay on a node between the order to run a task and the task's run. The zero value means no delay.
type Startup struct {
	// Container and Executor are the times to start the container and the executor inside it, for a cold start.
	Container, Executor time.Duration
	// Warm is the time to take over an executor that idles on the node, instead of Container and Executor.
	Warm time.Duration
	// Handover is the same for an executor that does not go on at once with the job that it has just served, if that
	// takes longer: it was given back, and is assigned anew.
	Handover time.Duration
	// Keep is how long an executor idles after its task; 0: the executor ends with the task. Tasks of others may get the
	// resources of an idle executor; Result.IdleExecutors says how much memory that is.
	Keep time.Duration
	// Shared says that an executor may serve any job, not only the job that started it.
	Shared bool
	// Ramp is how long an application waits until it doubles its request for executors: its second cold executor comes
	// after one Ramp at the earliest, the fourth after two, and so on, counted from the first one after it had none
	// running. 0: it requests all executors at once. The model keeps the task's grant booked during the wait; a real
	// cluster would not.
	Ramp time.Duration
}

// Acquisition describes how a cluster acquires the containers and executors of its tasks, from the decision on.
type Acquisition struct {
	Heartbeat            time.Duration
	StartsPerHeartbeat   int
	CoordinatorHeartbeat time.Duration
	Startup              Startup
}

// Apply sets the fields of c that describe acquisition.
func (a Acquisition) Apply(c *Config) {
	c.Heartbeat, c.StartsPerHeartbeat, c.CoordinatorHeartbeat, c.Startup = a.Heartbeat, a.StartsPerHeartbeat,
		a.CoordinatorHeartbeat, a.Startup
	c.LaunchDelay = 0
}

// The presets follow the measurements of Mira, sections II.A and IV.B: Spark 2.2 on 14 nodes, from the time when a task
// is ready until it has its executor. docs/truth.md compares the presets with the measurements.

// YARN is Spark on YARN. Nodes report every second and are assigned one container per heartbeat (YARN's defaults). An
// application sends requests every 200 ms (Spark's default while it waits). Mira measured 3.2 s for the first executor:
// 1.9 s start the executor, the heartbeats account for 0.4 s on 14 idle nodes in this model, which leaves 0.9 s for the
// container.
func YARN() Acquisition {
	return Acquisition{Heartbeat: time.Second, StartsPerHeartbeat: 1, CoordinatorHeartbeat: 200 * time.Millisecond,
		Startup: Startup{Container: 900 * time.Millisecond, Executor: 1900 * time.Millisecond, Warm: 10 * time.Millisecond,
			Keep: time.Minute, Ramp: time.Second}}
}

// SparkStandalone is Spark's own resource manager, which Mira measured to be 23 % faster than YARN: 2.46 s for the
// first executor, 1.9 s of it to start the executor. It works without heartbeats; an application requests executors as
// on YARN.
func SparkStandalone() Acquisition {
	return Acquisition{Startup: Startup{Container: 560 * time.Millisecond, Executor: 1900 * time.Millisecond,
		Warm: 10 * time.Millisecond, Keep: time.Minute, Ramp: time.Second}}
}

// Bellows has long-lived executors that all jobs share, as Mira introduced them: a warm executor is taken over within
// 36 ms (75th percentile), a cold one takes 1.1 s.
func Bellows() Acquisition {
	return Acquisition{Startup: Startup{Executor: 1100 * time.Millisecond, Warm: 36 * time.Millisecond, Keep: time.Hour,
		Shared: true}}
}

// Acquisitions returns the names that AcquisitionOf accepts.
func Acquisitions() []string { return []string{"yarn", "spark-standalone", "bellows"} }

// AcquisitionOf returns the preset with the given name.
func AcquisitionOf(name string) (Acquisition, error) {
	switch name {
	case "yarn":
		return YARN(), nil
	case "spark-standalone":
		return SparkStandalone(), nil
	case "bellows":
		return Bellows(), nil
	}
	return Acquisition{}, fmt.Errorf("acquisition %q: must be one of %s", name, strings.Join(Acquisitions(), ", "))
}

func (s *Startup) check() error {
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"container", s.Container}, {"executor", s.Executor}, {"warm", s.Warm}, {"handover", s.Handover}, {"keep", s.Keep},
		{"ramp", s.Ramp}} {
		if d.is < 0 {
			return fmt.Errorf("startup %s %v: must not be negative", d.name, d.is)
		}
	}
	return nil
}

// executor is an executor that is alive, and what it is warm for.
type executor struct {
	job    *job
	since  timeline.Time   // it idles since then
	until  timeline.Time   // and until then
	memory resource.Amount // that it holds meanwhile: the grant of its last task
	used   bool            // it has run a task
	// warm are the stages of which it has run tasks, where that matters, without those that no job can run again.
	warm []warmStage
}

// idled is the memory that an executor has held without a task until now, in byte-seconds.
func (e *executor) idled(now timeline.Time) float64 {
	return float64(e.memory) * min(now, e.until).Sub(e.since).Seconds()
}

// warmStage is a stage of a program: that of a job, or that of all jobs of one owner with the same App.
type warmStage struct {
	job        *job // nil if the program has a name
	owner, app string
	stage      int32
}

// warmStage returns what an executor becomes warm for when it runs t.
func (t *task) warmStage() warmStage {
	if t.job.App == "" {
		return warmStage{job: t.job, stage: t.id.Stage}
	}
	return warmStage{owner: t.job.Owner, app: t.job.App, stage: t.id.Stage}
}

// run notes that e runs a task, and returns how warm it is for it.
func (e *executor) run(t *task) (w workload.Warmth) {
	this := t.warmStage()
	if int(this.stage) < len(t.job.Truth) && t.job.Truth[this.stage].Warms() {
		switch {
		case !e.used:
			w = workload.Fresh
		case !slices.Contains(e.warm, this):
			w = workload.First
		}
		if w != workload.Warm {
			e.warm = append(slices.DeleteFunc(e.warm, func(s warmStage) bool { return s.job != nil && s.job.done }), this)
		}
	}
	e.used = true
	return w
}

// acquiring is the state of an application's requests for executors.
type acquiring struct {
	since timeline.Time // of the first cold executor since the application had none
	cold  int           // executors requested since then
	held  int           // tasks that were ordered and have not ended
}

// hold notes that a task was ordered, and reports whether it is the only one.
func (a *acquiring) hold() (first bool) {
	a.held++
	return a.held == 1
}

// letGo notes that a task that was ordered has ended.
func (a *acquiring) letGo() { a.held-- }

// request returns when a cold executor is requested: each doubling of their number takes a ramp.
func (a *acquiring) request(now timeline.Time, first bool, ramp time.Duration) timeline.Time {
	if first {
		a.since, a.cold = now, 0
	}
	a.cold++
	doublings := bits.Len(uint(a.cold)) - 1
	return max(now, a.since.Add(time.Duration(doublings)*ramp))
}

// order returns the delay from now, when a task is ordered to run, until it runs. It finds the task an executor;
// without startup, each task has a process of its own, which is fresh.
func (r *run) order(t *task) time.Duration {
	s := &r.config.Startup
	if t.result.Coordinator {
		return s.Container + s.Executor
	}
	if *s == (Startup{}) {
		t.result.Warmth = new(executor).run(t)
		return 0
	}
	t.ordered = true
	first := t.job.acquiring.hold()
	warm := r.takeOver(t)
	goesOn := t.executor.job == t.job && t.executor.until == r.now.Add(s.Keep)
	t.result.Warmth = t.executor.run(t)
	switch {
	case warm && goesOn:
		return s.Warm
	case warm:
		return max(s.Warm, s.Handover)
	}
	return t.job.acquiring.request(r.now, first, s.Ramp).Sub(r.now) + s.Container + s.Executor
}

// takeOver takes an idle executor of the task's node that may serve the task, if there is one.
func (r *run) takeOver(t *task) bool {
	idle := r.idle[t.node]
	alive := idle[:0]
	found := false
	for _, e := range idle {
		switch {
		case e.until < r.now:
			r.result.IdleExecutors += e.idled(r.now)
		case !found && (r.config.Startup.Shared || e.job == t.job):
			r.result.IdleExecutors += e.idled(r.now)
			t.executor, found = e, true
		default:
			alive = append(alive, e)
		}
	}
	clear(idle[len(alive):])
	r.idle[t.node] = alive
	return found
}

// giveUp ends the executor of a task, or lets it idle if the task succeeded.
func (r *run) giveUp(t *task, how cluster.Outcome) {
	t.job.acquiring.letGo()
	if s := &r.config.Startup; s.Keep > 0 && how == cluster.Succeeded {
		e := t.executor
		e.job, e.memory, e.since, e.until = t.job, t.grant[resource.Memory], r.now, r.now.Add(s.Keep)
		r.idle[t.node] = append(r.idle[t.node], e)
	}
	t.executor = executor{}
}

// endIdle ends the idle executors of a node.
func (r *run) endIdle(id cluster.NodeID, now timeline.Time) {
	for i := range r.idle[id] {
		e := &r.idle[id][i]
		r.result.IdleExecutors += e.idled(max(now, e.since))
	}
	delete(r.idle, id)
}
