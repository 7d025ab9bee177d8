// Package policy decides which task runs where, when, and with how much memory. Each policy is a function of a
// book.Plan, in a file of its name; a long one has more files, whose names begin with its name. The policies of two
// papers are packages of their own, ecs and mira. Package contract says what a policy is, and package queue has queues
// of jobs.
package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/ecs"
	"github.com/bellows-rm/bellows/core/policy/mira"
)

// Policy, Traits and Parameter are those of package contract, which every policy imports.
type (
	Policy    = contract.Policy
	Traits    = contract.Traits
	Parameter = contract.Parameter
)

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
	make  func(*contract.Settings) Policy
}

// Default is the policy of a daemon if the user chooses no other.
const Default = "bellows"

// registry lists every policy by name.
var registry = map[string]entry{
	"bellows": {"the policy of a daemon unless another is chosen, to be left alone: fair order, elastic sizes, places " +
		"by alignment and forecast, leveling and back-off in one; the others are for comparison", newBellows},
	"capacity": {"YARN's capacity scheduling: queues with guaranteed and maximum shares", newCapacity},
	"contention-aware": {"each phase gets what it demands, and tasks start where the forecasts of all leave room " +
		"until they end (ECS, section V.D)", ecs.NewContentionAware},
	"drf": {"dominant resource fairness, with queues in a hierarchy (DRF, H-DRF)", newDRF},
	"ecs": {"each phase gets what it demands, and tasks that have time stop while their node would be " +
		"over-allocated (ECS, Algorithm 1)", ecs.New},
	"fifo": {"first come, first served; the first job that does not fit blocks all jobs behind it", newFIFO},
	"fair": {"YARN's fair sharing by memory", newFair},
	"mira": {"each node is an executor that runs one task at a time; executors are shared fairly and " +
		"change jobs at once (Mira, Algorithm 1)", mira.New},
	"prism": {"each phase of a task is scheduled like a task, and waits until it has room (PRISM, as " +
		"ECS describes it)", ecs.NewPRISM},
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
	s := contract.Settings{Policy: name}
	e.make(&s)
	return e.about, s.Declared
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
	s := contract.Settings{Policy: name, Values: values}
	p := e.make(&s)
	return p, s.Err
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
