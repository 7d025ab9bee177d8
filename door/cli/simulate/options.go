// Package simulate has the shared parts of commands that simulate: the flags for the workload, the policies, the
// cluster and the seeds; the runs, on all cores; and `bellows simulate` itself.
package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/bound"
	"github.com/bellows-rm/bellows/sim/clusterfile"
	"github.com/bellows-rm/bellows/sim/trial"
)

// Options are the flags that describe a simulation.
type Options struct {
	workload  workloadOptions
	cluster   clusterOptions
	policies  []string // as trial.ParseContender reads them
	settings  map[string]string
	seeds     int
	intervals bool // compute the interval bound, too
	history   bool // jobs that end teach
}

// NewOptions returns options that look up the profiles of job files in profiles.
func NewOptions(profiles Profiles) *Options {
	return &Options{workload: workloadOptions{profiles: profiles}, policies: []string{"fair", "yarn-me"},
		settings: map[string]string{}}
}

// Flags adds the flags to a command. seeds is the command's default number of seeds if anything is random.
func (o *Options) Flags(cmd *cobra.Command, seeds int) {
	f := cmd.Flags()
	o.workload.flags(f)
	o.cluster.flags(f)
	f.Var(flags.Texts(&o.policies), "policy",
		"`names` of policies; NAME@pool: on one node as large as all; NAME@SIZE, NAME@peak: FLEX jobs in fixed "+
			"containers; NAME:SETTING=VALUE: settings of its own. Names: "+strings.Join(policy.Names(), ", "))
	f.Var(flags.Settings(o.settings), "set", "setting of one of the policies; may be repeated")
	o.seeds = seeds
	f.Var(flags.Count(&o.seeds, 1, 1_000_000), "seeds", "number of seeds to run each policy on, from --seed on")
	f.BoolVar(&o.intervals, "bounds", false,
		"compute the interval bound, a tighter lower bound of the mean job runtime, too; takes seconds")
	_ = cmd.RegisterFlagCompletionFunc("policy",
		cobra.FixedCompletions(policy.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// Study is the requested simulations: every contender on every seed.
type Study struct {
	Contenders []trial.Contender
	Seeds      int
	// Workload is the workload of the first seed, Config the cluster of contenders that are not pooled.
	Workload *workload.Workload
	Config   sim.Config

	options *Options
	cluster *clusterfile.Cluster
	file    *workload.Workload // the workload of the file, with right estimates; nil if workloads are generated
	// forecasts are those of the finished runs of each contender, if jobs teach.
	forecasts []sim.Forecasts
}

// Open reads the files that the flags name, and refuses impossible trials: policies that do not exist, tasks that fit
// on no node.
func (o *Options) Open(cmd *cobra.Command) (s *Study, err error) {
	s = &Study{options: o}
	changed := cmd.Flags().Changed
	if err := o.workload.open(changed); err != nil {
		return nil, err
	}
	if s.cluster, err = o.cluster.settle(&o.workload, changed); err != nil {
		return nil, err
	}
	if s.Config, err = s.cluster.Config(); err != nil {
		if o.cluster.file != "" {
			err = fmt.Errorf("%s: %w", o.cluster.file, err)
		}
		return nil, command.Usage(err)
	}
	if s.Seeds, err = o.settleSeeds(s.cluster, changed("seeds")); err != nil {
		return nil, err
	}
	if s.Contenders, err = o.contenders(); err != nil {
		return nil, err
	}
	if !o.workload.generated() {
		if s.file, err = o.workload.load(cmd.Context(), 0); err != nil {
			return nil, err
		}
	}
	if s.Workload, err = s.draw(cmd.Context(), 0); err != nil {
		return nil, err
	}
	return s, command.Usage(s.check())
}

// settleSeeds returns the number of seeds, which is 1 if nothing is random.
func (o *Options) settleSeeds(c *clusterfile.Cluster, given bool) (int, error) {
	switch random := o.workload.generated() || c.Misjudge.Text != "none"; {
	case random, o.seeds == 1:
		return o.seeds, nil
	case !given:
		return 1, nil
	}
	return 0, command.Usagef(
		"seeds %d: nothing is random about the file %s: give misjudge in the file of --cluster, or one seed", o.seeds,
		o.workload.name)
}

// contenders returns the requested policies.
func (o *Options) contenders() ([]trial.Contender, error) {
	var all []trial.Contender
	for _, text := range o.policies {
		c, err := trial.ParseContender(text, o.settings)
		if err != nil {
			return nil, command.Usage(err)
		}
		if slices.ContainsFunc(all, func(other trial.Contender) bool { return other.Label == c.Label }) {
			return nil, command.Usagef("policy %q: given twice", c.Label)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, command.Usagef("policy: must name at least one of %s", strings.Join(policy.Names(), ", "))
	}
	return all, nil
}

// check returns an error if a contender could never run the workload of the first seed, or if a setting is one of no
// contender.
func (s *Study) check() error {
	var used []string
	for _, c := range s.Contenders {
		t, err := c.On(s.Config, s.Workload)
		if err == nil {
			err = t.Check()
		}
		if err != nil {
			return err
		}
		used = append(used, c.Policy)
	}
	return policy.CheckUsed(s.options.settings, used...)
}

// draw returns the workload of the k-th seed.
func (s *Study) draw(ctx context.Context, k int) (*workload.Workload, error) {
	w := s.file
	if w == nil {
		var err error
		if w, err = s.options.workload.load(ctx, k); err != nil {
			return nil, err
		}
	} else {
		w = &workload.Workload{Jobs: slices.Clone(w.Jobs)}
	}
	w, err := s.cluster.Apply(w, k)
	if err == nil && s.options.history {
		err = nameApps(w)
	}
	return w, command.Usage(err)
}

// nameApps names what recurs in jobs that do not say it, as for jobs that are submitted. The error says that nothing
// does.
func nameApps(w *workload.Workload) error {
	any := false
	for i := range w.Jobs {
		j := &w.Jobs[i]
		j.App = cmp.Or(j.App, j.DeriveApp())
		any = any || j.App != ""
	}
	if !any {
		return errors.New("history: no job of the workload names its application (app), or has a command from which " +
			"it could be derived")
	}
	return nil
}

// Runs returns the number of runs. Run i is contender i modulo the number of contenders, on seed i divided by that
// number.
func (s *Study) Runs() int { return s.Seeds * len(s.Contenders) }

// Place returns the contender and the index of the seed of run i.
func (s *Study) Place(i int) (contender, seed int) {
	return i % len(s.Contenders), i / len(s.Contenders)
}

// SeedOf returns the seed of run i: the seed of the generator, or of wrong estimates if the workload is a file.
func (s *Study) SeedOf(i int) uint64 {
	_, k := s.Place(i)
	if s.file != nil {
		return s.cluster.Misjudge.Seed + uint64(k)
	}
	return s.options.workload.seed + uint64(k)
}

// iterations returns the number of iterations of the interval bound.
func (s *Study) iterations() int {
	if s.options.intervals {
		return bound.DefaultIterations
	}
	return 0
}
