package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/bound"
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/comparison"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/flags"
	"github.com/bellows-rm/bellows/cmd/internal/terminal"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sweep"
	"github.com/bellows-rm/bellows/workload"
)

const compareLong = `Run policies on many seeds of a workload, on all cores, and print how they
compare: means with their 95 % confidence intervals, each result over a lower
bound that no policy of its kind can beat, and each policy over the first on the
same seeds.

WORKLOAD is uniform, exponential or flex, of which every seed draws another
workload, or a file. What is random about a file is how far off estimates are:
seeds need --misjudge there.

A policy may bring settings along that hold for it alone:

  NAME[@pool][:SETTING=VALUE...]     as in yarn-me:timeline=resimulate
  NAME@SIZE, NAME@peak               FLEX jobs in fixed containers: fair@8GB

--svg and --png draw how far results are from the bounds, distributions of job
runtimes, job by job against the first policy, what was granted over time, and
the tasks of each policy on nodes; --html puts all into one file. The same seeds
give the same files, byte by byte, on any number of cores.

Ctrl-C prints what is done so far.`

const compareExample = `  bellows compare --policy fair,yarn-me uniform --penalty sawtooth:1.5
  bellows compare --policy yarn-me,yarn-me:timeline=resimulate uniform \
      --jobs 50 --nodes 50 --seeds 30 --html timelines.html
  bellows compare --policy pufferfish,fair@4GB,fair@peak flex --jobs 40
  bellows compare --policy fair,yarn-me u100.trace --nodes 100 \
      --penalty sawtooth:1.5 --misjudge duration=0.15 --csv runs.csv`

// compareOptions are the flags of compare: those of simulate, and its own.
type compareOptions struct {
	simulateOptions
	seeds                    int
	cpu                      bool
	csv, svgDir, pngDir, web string
}

func compareCommand() *cobra.Command {
	o := compareOptions{simulateOptions: simulateDefaults()}
	cmd := &cobra.Command{
		Use:     "compare --policy A,B,... WORKLOAD",
		Short:   "Compare policies on many seeds, with tables and pictures",
		Long:    compareLong,
		Example: compareExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.workload.name = args[0]
			}
			if o.workload.name == "" {
				return command.Usagef("workload: must be given: a file, or uniform, exponential or flex")
			}
			if err := o.workload.open(); err != nil {
				return err
			}
			o.settle(cmd)
			if err := o.settleSeeds(cmd.Flags().Changed("seeds")); err != nil {
				return err
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&o.policies, "policy", o.policies, "`names` of policies, the first of which others are compared with")
	f.Var(flags.Count(&o.seeds, 1, 1_000_000), "seeds", "seeds to run each policy on, from --seed on (10, if anything is random)")
	o.workload.flags(f)
	_ = f.MarkHidden("workload") // as in simulate, for those who are used to it
	o.clusterFlags(f)
	f.BoolVar(&o.pool, "pool", false, "run every policy on one node as large as all: the Meganode of YARN-ME")
	f.Var(flags.Settings(o.settings), "set", "a policy's setting; may be given again")
	f.Var(flags.Count(&o.parallel, 0, 1<<10), "parallel", "runs at the same time; 0: one per core")
	f.StringVar(&o.csv, "csv", "", "`file` to write a row per run to")
	f.StringVar(&o.svgDir, "svg", "", "`directory` to write pictures to, as SVG")
	f.StringVar(&o.pngDir, "png", "", "`directory` to write pictures to, as PNG")
	f.StringVar(&o.web, "html", "", "`file` to write table and pictures to, as one page")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVar(&o.intervals, "bounds", false, "with the interval bound, a better least job runtime; takes longer")
	f.BoolVar(&o.cpu, "cpu", false, "with the CPU time of every run, which differs from call to call")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	o.profileFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(policy.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// settleSeeds decides how many seeds there are. Where nothing is random there can be only one.
func (o *compareOptions) settleSeeds(given bool) error {
	random := o.workload.generated() || o.workload.misjudged != "none"
	switch {
	case given && o.seeds > 1 && !random:
		return command.Usagef("seeds %d: nothing is random about the file %s: give --misjudge, or one seed", o.seeds, o.workload.name)
	case !given && random:
		o.seeds = 10
	case !given:
		o.seeds = 1
	}
	return nil
}

// entrant is a policy as it was asked for. Every run makes its own, because policies keep caches.
type entrant struct {
	label    string
	options  simulateOptions // with this policy alone, and its settings
	settings map[string]string
}

// entrants reads NAME[@pool][@SIZE|@peak][:SETTING=VALUE...]. A part without = belongs to the value before it.
func (o *compareOptions) entrants() ([]entrant, error) {
	var all []entrant
	for _, label := range o.policies {
		parts := strings.Split(label, ":")
		e := entrant{label: label, options: o.simulateOptions}
		e.options.policies = parts[:1]
		_, name, err := parseContender(parts[0])
		if err != nil {
			return nil, err
		}
		e.options.settings = maps.Clone(o.settings)
		last := ""
		for _, part := range parts[1:] {
			setting, value, ok := strings.Cut(part, "=")
			switch {
			case ok && setting != "":
				last = name + "." + strings.TrimPrefix(setting, name+".")
				e.options.settings[last] = value
			case !ok && last != "":
				e.options.settings[last] += ":" + part
			default:
				return nil, command.Usagef("policy %q: %q must be SETTING=VALUE", label, part)
			}
		}
		e.settings = settingsInForce(name, e.options.settings)
		if slices.ContainsFunc(all, func(other entrant) bool { return other.label == label }) {
			return nil, command.Usagef("policy %q: given twice", label)
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, command.Usagef("policy: must name at least one of %s", strings.Join(policy.Names(), ", "))
	}
	return all, nil
}

// compared is one call of compare.
type compared struct {
	*compareOptions
	config     sim.Config
	entrants   []entrant
	misjudged  workload.Misjudgement
	file       *workload.Workload // rightly estimated; nil if workloads are generated
	comparison *comparison.Comparison
	workload   *workload.Workload // of the first seed
}

func (o *compareOptions) run(cmd *cobra.Command) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as in simulate
	config, err := o.config()
	if err != nil {
		return err
	}
	c := &compared{compareOptions: o, config: config}
	if c.entrants, err = o.entrants(); err != nil {
		return err
	}
	if c.misjudged, err = workload.ParseMisjudgement(o.workload.misjudged); err != nil {
		return command.Usage(err)
	}
	if !o.workload.generated() {
		right := o.workload
		right.misjudged = "none"
		if c.file, err = right.load(cmd.Context()); err != nil {
			return err
		}
	}
	if err := c.check(cmd.Context()); err != nil {
		return err
	}
	var policies []comparison.Policy
	for _, e := range c.entrants {
		policies = append(policies, comparison.Policy{Label: e.label, Settings: e.settings})
	}
	c.comparison = comparison.New(policies)
	return c.finish(cmd.OutOrStdout(), cmd.ErrOrStderr(), c.sweep(cmd))
}

// finish prints what is done and returns the error that sets the exit code. interrupt is why the sweep ended early, if it
// did.
func (c *compared) finish(out, errOut io.Writer, interrupt error) error {
	if interrupt != nil {
		fmt.Fprintf(errOut, "bellows: interrupted after %d of %s\n", len(c.comparison.Runs), terminal.Count(c.runs(), "run"))
		if len(c.comparison.Runs) == 0 {
			return interrupt
		}
	}
	err := c.report(out, errOut)
	if interrupt != nil {
		return interrupt
	}
	return err
}

// check refuses what no run could do: policies that do not exist, tasks that fit nowhere.
func (c *compared) check(ctx context.Context) (err error) {
	if c.workload, err = c.draw(ctx, 0); err != nil {
		return err
	}
	for i := range c.entrants {
		p, err := c.entrants[i].options.contenders(c.config)
		if err != nil {
			return err
		}
		if err := p[0].checkFits(p[0].box.fill(c.workload)); err != nil {
			return command.Usage(err)
		}
	}
	return nil
}

func (c *compared) runs() int { return c.seeds * len(c.entrants) }

// seed returns the k-th seed: that of the generator, or of misjudgements if the workload is a file.
func (c *compared) seed(k int) uint64 {
	if c.file != nil {
		return c.compareOptions.workload.misjudgeSeed + uint64(k)
	}
	return c.compareOptions.workload.generate.Seed + uint64(k)
}

// draw returns the workload of the k-th seed.
func (c *compared) draw(ctx context.Context, k int) (*workload.Workload, error) {
	if c.file != nil {
		if c.misjudged != (workload.Misjudgement{}) {
			return c.sized(workload.Misjudge(c.file, c.misjudged, c.seed(k))), nil
		}
		return c.sized(&workload.Workload{Jobs: slices.Clone(c.file.Jobs)}), nil
	}
	w := c.compareOptions.workload
	w.generate.Seed += uint64(k)
	w.misjudgeSeed += uint64(k)
	drawn, err := w.load(ctx)
	if err != nil {
		return nil, err
	}
	return c.sized(drawn), nil
}

// sweep runs all, seed by seed, and returns an error only if it was interrupted.
func (c *compared) sweep(cmd *cobra.Command) error {
	var show *terminal.Progress
	if !c.quiet {
		show = terminal.NewProgress(cmd.ErrOrStderr(), "runs done")
	}
	defer show.Clear()
	show.Set("", 0, c.runs())
	ctx := cmd.Context()
	return sweep.Run(ctx, c.runs(), c.parallel, func(i int) (comparison.Run, error) {
		done := make(chan comparison.Run, 1)
		go func() { done <- c.one(ctx, i) }()
		select {
		case r := <-done:
			return r, nil
		case <-ctx.Done(): // an interrupt ends the process where the simulation cannot be told
			return comparison.Run{}, ctx.Err()
		}
	}, func(i int, r comparison.Run) {
		c.comparison.Add(r)
		show.Set("", i+1, c.runs())
	})
}

// drawn reports whether pictures are asked for.
func (c *compared) drawn() bool { return c.svgDir != "" || c.pngDir != "" || c.web != "" }

// one carries out run i. What goes wrong is a part of the result, so that others go on.
func (c *compared) one(ctx context.Context, i int) comparison.Run {
	k, p := i/len(c.entrants), i%len(c.entrants)
	run := comparison.Run{Policy: p, Seed: c.seed(k)}
	w, err := c.draw(ctx, k)
	if err != nil {
		run.Error = err.Error()
		return run
	}
	all, err := c.entrants[p].options.contenders(c.config)
	if err != nil {
		run.Error = err.Error()
		return run
	}
	this := &all[0]
	w = this.box.fill(w)
	var grants map[cluster.TaskID]resource.Vector
	if k == 0 && c.drawn() {
		grants = grantsOf(&this.config)
	}
	which := bound.Options{AnySize: this.policy.Traits().Resizes}
	if c.intervals {
		which.Iterations = bound.DefaultIterations
	}
	bounds := bound.Of(w, this.config.Nodes, this.policy.Traits().UnderSizes, which)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
	res, err := sim.Run(this.config, w, this.policy)
	if err == nil {
		err = finished(res)
	}
	if err != nil {
		run.Error = err.Error()
		return run
	}
	run.BoundAverage, run.BoundMakespan = bounds.AverageJobRuntime.Seconds(), bounds.Makespan.Seconds()
	if c.cpu {
		run.CPU = seconds(cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) - begin)
	}
	measure(&run, res)
	if grants != nil {
		run.Picture = schedule(this.config, grants, res)
	}
	return run
}

// finished returns an error if jobs failed or did not end.
func finished(res *sim.Result) error {
	if failed := res.Failures(); len(failed) > 0 {
		return fmt.Errorf("%d of %s failed; job %d (%s): %s", len(failed), terminal.Count(len(res.Jobs), "job"), failed[0].ID, failed[0].Name, failed[0].Failure)
	}
	left := res.Unfinished()
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s did not end; job %d (%s): %s", len(left), terminal.Count(len(res.Jobs), "job"), left[0].ID, left[0].Name, left[0].Stuck)
}
