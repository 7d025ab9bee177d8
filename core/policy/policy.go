// Package policy decides which task runs where, when, and with how much memory. Each policy is a function of a
// book.Plan, in a file of its name; a long one has more files, whose names begin with its name. The other files are
// what several policies share: queues, sort keys, settings.
package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Policy decides what should change now. Decide neither blocks nor reads a clock, draws random numbers, or keeps p: the
// same now and the same p give the same decisions with every driver. A policy must be able to recompute from p
// whatever it caches.
type Policy interface {
	Name() string
	Traits() Traits
	Decide(now timeline.Time, p *book.Plan)
}

// Traits are what callers must know about a policy. They never change. The zero Traits describe a policy that starts
// tasks only with their ideal memory, as room permits, can run every job that fits on a node, and caches nothing.
type Traits struct {
	// UnderSizes: it may start tasks with less than their ideal memory.
	UnderSizes bool
	// Resizes: it may give containers sizes that neither the stage nor its profile allows.
	Resizes bool
	// Together: it starts all tasks of a stage in one step where the stage says so.
	Together bool
	// Deadlines: a job that has not started by its deadline comes before others.
	Deadlines bool
	// LooksAhead: it decides by forecasts, and wants to know how tasks come along: which phase they have reached, and when
	// they stand still.
	LooksAhead bool
	// ByPhase: it may grant tasks what each phase of their forecast demands, instead of their ideal need.
	ByPhase bool
	// Weighs: what it grants of CPU is the weight of a task and not its limit. The task may use what the others of its
	// node leave, up to what its stage requests: see book.TaskState.
	Weighs bool
	// Stops: it may stop running tasks for a while: see book.Plan.SuspendUntil.
	Stops bool
	// FreePageOut: it counts on memory that leaves and comes back at once and at no cost, as only a simulator can have it.
	FreePageOut bool
	// Quotas: something other than room on a node, such as a quota, limits what may run. The end of a task can
	// therefore let another task start on a different node that had room all the time.
	Quotas bool
	// Drives: it serves jobs that start their own tasks, and asks them for executors: see cluster.Demand.
	Drives bool
	// Admit returns an error that says why the policy can never run a job; nil admits every job.
	Admit func(s *book.Snapshot, j *cluster.Job) error
	// Why says why a job waits, if the policy knows more than that other jobs come first or that no node has room; nil if
	// it does not.
	Why book.Why
	// Divisions is how often the policy has divided executors among jobs anew; nil if it divides none.
	Divisions func() int64
	// DropCaches discards everything that can be recomputed from the plan, which changes no decision; nil if nothing is
	// cached.
	DropCaches func()
}

// CheckRuns returns an error that says why p can never run j on the nodes of s: j fits on no node, or p does not admit
// it.
func CheckRuns(p Policy, s *book.Snapshot, j *cluster.Job) error {
	t := p.Traits()
	if i := slices.IndexFunc(j.Stages, func(s cluster.Stage) bool { return s.Together }); i >= 0 && !t.Together {
		return fmt.Errorf("job %q stage %q together: policy %s cannot start the tasks of a stage together", j.Name,
			j.StageName(i), p.Name())
	}
	if j.Drives && !t.Drives {
		return fmt.Errorf("job %q starts its own tasks: policy %s asks for no executor back", j.Name, p.Name())
	}
	if err := s.CheckFits(j, t.UnderSizes); err != nil || t.Admit == nil {
		return err
	}
	return t.Admit(s, j)
}

// entry is a policy in the registry.
type entry struct {
	about string
	make  func(*settings) Policy
}

// registry lists every policy by name.
var registry = map[string]entry{
	"capacity": {"YARN's capacity scheduling: queues with guaranteed and maximum shares", newCapacity},
	"contention-aware": {"each phase gets what it demands, and tasks start where the forecasts of all leave room " +
		"until they end (ECS, section V.D)", newContentionAware},
	"drf": {"dominant resource fairness, with queues in a hierarchy (DRF, H-DRF)", newDRF},
	"ecs": {"each phase gets what it demands, and tasks that have time stop while their node would be " +
		"over-allocated (ECS, Algorithm 1)", newECS},
	"fifo": {"first come, first served; the first job that does not fit blocks all jobs behind it", newFIFO},
	"fair": {"YARN's fair sharing by memory", newFair},
	"mira": {"each node is an executor that runs one task at a time; executors are shared fairly and " +
		"change jobs at once (Mira, Algorithm 1)", newMira},
	"prism": {"each phase of a task is scheduled like a task, and waits until it has room (PRISM, as " +
		"ECS describes it)", newPRISM},
	"prophet": {"what fits best over time, by forecasts of disk and network demand, among the jobs that " +
		"have waited longest (Prophet, Algorithm 1)", newProphet},
	"pufferfish": {"FLEX containers start where most memory is available, or wait; REGULAR containers get " +
		"memory back from them (Pufferfish, section 4.3.2)", newPufferfish},
	"srjf": {"shortest remaining job first: the job with the least work left to start is served first " +
		"(YARN-ME, section 6.2)", newSRJF},
	"static": {"over-provisioned containers: every task gets its peak memory, or a container of one size",
		newStatic},
	"tetris": {"multi-resource packing by peak demands (Tetris, SIGCOMM 2014)", newTetris},
	"yarn-me": {"fair sharing that under-sizes tasks where that does not delay their job (YARN-ME, " +
		"Algorithm 1)", newYarnME},
}

// Names returns the names of all policies, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }

// About returns a one-line description of the named policy, and its parameters; nothing if there is no such policy.
func About(name string) (string, []Parameter) {
	e, ok := registry[name]
	if !ok {
		return "", nil
	}
	s := settings{policy: name}
	e.make(&s)
	return e.about, s.declared
}

// New returns the named policy. Settings map "POLICY.NAME" to a value; settings of other policies are ignored, so that
// one map can serve several policies: see CheckUsed. The error names the wrong policy, setting or value.
func New(name string, values map[string]string) (Policy, error) {
	e, ok := registry[name]
	if !ok {
		return nil, fmt.Errorf("policy %q: must be one of %s", name, strings.Join(Names(), ", "))
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := checkName(key); err != nil {
			return nil, err
		}
	}
	s := settings{policy: name, values: values}
	p := e.make(&s)
	return p, s.err
}

// CheckUsed returns an error that names the first of the settings that exists for none of the named policies: it
// would change nothing.
func CheckUsed(values map[string]string, names ...string) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := checkName(key); err != nil {
			return err
		}
		if owner, _, _ := strings.Cut(key, "."); !slices.Contains(names, owner) {
			return fmt.Errorf("setting %s=%q: must be a setting of a policy that is used: %s", key, values[key],
				strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", "))
		}
	}
	return nil
}

func checkName(key string) error {
	owner, _, _ := strings.Cut(key, ".")
	if _, ok := registry[owner]; !ok {
		return fmt.Errorf("setting %q: must be POLICY.NAME with a policy of %s", key, strings.Join(Names(), ", "))
	}
	var names []string
	_, parameters := About(owner)
	for _, p := range parameters {
		if p.Name == key {
			return nil
		}
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("setting %q: policy %s has no settings", key, owner)
	}
	return fmt.Errorf("setting %q: must be one of %s", key, strings.Join(names, ", "))
}
