package sim

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/timeline"
)

// Startup is what passes on a node between the order to run a task and its run. The zero value is nothing.
type Startup struct {
	// Container and Executor are the starts of the container and of the executor inside it, where both must be started: cold.
	Container, Executor time.Duration
	// Warm is what it takes instead to take over an executor that idles on the node.
	Warm time.Duration
	// Keep is how long an executor idles after its task; 0: it ends with it. What it holds while it idles is not counted.
	Keep time.Duration
	// Shared says that executors serve any job, not only the one for which they were started.
	Shared bool
	// Ramp is how long an application waits until it doubles what it asks for: its second cold executor comes after one Ramp
	// at the earliest, the fourth after two, and so on, counted from the first after it had none running. 0: it asks for all
	// at once. The node is held meanwhile, which it would not be.
	Ramp time.Duration
}

// Acquisition is how a cluster acquires what its tasks run in, from the decision on.
type Acquisition struct {
	Heartbeat            time.Duration
	StartsPerHeartbeat   int
	CoordinatorHeartbeat time.Duration
	Startup              Startup
}

// Apply makes c acquire work that way.
func (a Acquisition) Apply(c *Config) {
	c.Heartbeat, c.StartsPerHeartbeat, c.CoordinatorHeartbeat, c.Startup = a.Heartbeat, a.StartsPerHeartbeat, a.CoordinatorHeartbeat, a.Startup
	c.LaunchDelay = 0
}

// The measurements behind the presets are those of Mira, section II.A and IV.B: Spark 2.2 on 14 nodes, from a task that is
// ready to its executor. docs/truth.md sets the presets beside them.

// YARN is Spark on YARN: nodes report every second and are given one container each time (YARN's defaults), an
// application asks every 200 ms (Spark's default while it waits). Mira measured 3.2 s for the first executor, of
// which 1.9 s are the executor; of the rest the heartbeats make 0.4 s on 14 idle nodes here, which leaves 0.9 s for the
// container.
func YARN() Acquisition {
	return Acquisition{Heartbeat: time.Second, StartsPerHeartbeat: 1, CoordinatorHeartbeat: 200 * time.Millisecond,
		Startup: Startup{Container: 900 * time.Millisecond, Executor: 1900 * time.Millisecond, Warm: 10 * time.Millisecond,
			Keep: time.Minute, Ramp: time.Second}}
}

// SparkStandalone is Spark's own resource manager, which Mira measured to be 23 % faster than YARN: 2.46 s for the first
// executor, 1.9 s of it the executor. It works without heartbeats; an application asks for executors as on YARN.
func SparkStandalone() Acquisition {
	return Acquisition{Startup: Startup{Container: 560 * time.Millisecond, Executor: 1900 * time.Millisecond, Warm: 10 * time.Millisecond,
		Keep: time.Minute, Ramp: time.Second}}
}

// Bellows is long-lived executors that all jobs share, which Mira introduced: 36 ms until a warm one is
// taken over (75th percentile), 1.1 s for a cold one.
func Bellows() Acquisition {
	return Acquisition{Startup: Startup{Executor: 1100 * time.Millisecond, Warm: 36 * time.Millisecond, Keep: time.Hour, Shared: true}}
}

// Acquisitions returns the names that AcquisitionOf knows.
func Acquisitions() []string { return []string{"yarn", "spark-standalone", "bellows"} }

// AcquisitionOf returns a preset by its name.
func AcquisitionOf(name string) (Acquisition, error) {
	switch name {
	case "yarn":
		return YARN(), nil
	case "spark-standalone":
		return SparkStandalone(), nil
	case "bellows":
		return Bellows(), nil
	}
	return Acquisition{}, fmt.Errorf("acquisition %q: must be one of %v", name, Acquisitions())
}

func (s *Startup) check() error {
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"container", s.Container}, {"executor", s.Executor}, {"warm", s.Warm}, {"keep", s.Keep}, {"ramp", s.Ramp}} {
		if d.is < 0 {
			return fmt.Errorf("startup %s %v: must not be negative", d.name, d.is)
		}
	}
	return nil
}

// executor idles on a node.
type executor struct {
	job   *job
	until timeline.Time
}

// acquiring is how far an application is in asking for executors.
type acquiring struct {
	since timeline.Time // of the first cold one, after it had none
	cold  int           // asked for since
	held  int           // tasks that were ordered and have not ended
}

// order returns how long it takes from now, when a task is ordered to run, until it does.
func (r *run) order(t *task) time.Duration {
	s := &r.config.Startup
	if *s == (Startup{}) {
		return 0
	}
	if t.result.Coordinator {
		return s.Container + s.Executor
	}
	t.ordered = true
	a := &t.job.acquiring
	a.held++
	if r.takeOver(t) {
		return s.Warm
	}
	if a.held == 1 {
		a.since, a.cold = r.now, 0
	}
	a.cold++
	doublings := bits.Len(uint(a.cold)) - 1
	asked := max(r.now, a.since.Add(time.Duration(doublings)*s.Ramp))
	return asked.Sub(r.now) + s.Container + s.Executor
}

// takeOver takes an idle executor from the task's node, if there is one for it.
func (r *run) takeOver(t *task) bool {
	idle := r.idle[t.node]
	alive := idle[:0]
	found := false
	for _, e := range idle {
		switch {
		case e.until < r.now:
		case !found && (r.config.Startup.Shared || e.job == t.job):
			found = true
		default:
			alive = append(alive, e)
		}
	}
	r.idle[t.node] = alive
	return found
}

// giveUp ends what a task runs in, or lets it idle if the task succeeded.
func (r *run) giveUp(t *task, how cluster.Outcome) {
	t.job.acquiring.held--
	if s := &r.config.Startup; s.Keep > 0 && how == cluster.Succeeded {
		r.idle[t.node] = append(r.idle[t.node], executor{t.job, r.now.Add(s.Keep)})
	}
}
