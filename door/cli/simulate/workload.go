package simulate

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/workloadfile"
	"github.com/bellows-rm/bellows/format/jobfile"
	"github.com/bellows-rm/bellows/format/workload"
)

// Profiles looks up the profiles that a job file names. done ends the look-up, and returns the first error; a profile
// whose look-up failed counts as unknown.
type Profiles func(context.Context) (lookUp jobfile.Profiles, done func() error, err error)

// workloadOptions are the flags that describe the workload.
type workloadOptions struct {
	profiles Profiles // nil for none
	name     string   // of the file, or of the distribution
	format   string
	file     *workloadfile.File // opened; nil if the workload is generated
	penalty  string
	jobs     int
	seed     uint64
	generate *workload.GenerateOptions // nil if the workload is a file
}

func (o *workloadOptions) flags(f *pflag.FlagSet) {
	usual := workload.DefaultGenerateOptions(workload.Uniform)
	o.format, o.penalty, o.jobs, o.seed = workloadfile.Auto, "none", usual.Jobs, usual.Seed
	f.StringVar(&o.name, "workload", "", "`file` with jobs, - for standard input, or uniform, exponential or flex")
	f.Var(flags.Choice(&o.format, workloadfile.Formats...), "format",
		"format of the file: bellows (a job file), workload or dss; auto: by its content")
	f.Var(flags.Count(&o.jobs, 1, 1_000_000), "jobs", "number of generated jobs (20 for flex)")
	f.Var(flags.Seed(&o.seed), "seed", "seed of generated jobs; the same seed gives the same jobs")
	f.StringVar(&o.penalty, "penalty", o.penalty,
		"`shape` of the slowdown with less memory, for tasks without elasticity: none, step:FACTOR or sawtooth:FACTOR")
}

// open opens the file of the workload and recognises its format, or parses the settings of the generator.
func (o *workloadOptions) open(changed func(string) bool) (err error) {
	if o.name == "" {
		return command.Usagef("workload: must be given: a file, or uniform, exponential or flex")
	}
	name, settings, _ := strings.Cut(o.name, ":")
	if d, unknown := workload.ParseDistribution(name); unknown == nil {
		if changed("format") {
			return command.Usagef("format %s: cannot be combined with generated jobs", o.format)
		}
		g := workload.DefaultGenerateOptions(d)
		if g.Seed = o.seed; changed("jobs") {
			g.Jobs = o.jobs
		}
		if err := parseGenerated(settings, &g); err != nil {
			return command.Usagef("workload %q: %w", o.name, err)
		}
		o.name, o.generate = name, &g
		return nil
	}
	for _, flag := range []string{"jobs", "seed"} {
		if changed(flag) {
			return command.Usagef("%s: cannot be combined with the file %s, which has its jobs", flag, o.name)
		}
	}
	if o.file, err = workloadfile.Open(o.name, o.format); err == nil {
		o.format = o.file.Format
	}
	return err
}

// parseGenerated reads settings of a generator that differ from the defaults: "tasks=1:20,memory=1GB:9GB".
func parseGenerated(settings string, g *workload.GenerateOptions) (err error) {
	if settings == "" {
		return nil
	}
	for part := range strings.SplitSeq(settings, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "tasks":
			g.Tasks, err = workload.ParseTasks(value)
		case "memory":
			g.Memory, err = workload.ParseTaskMemory(value)
		case "duration":
			g.Duration, err = workload.ParseTaskDuration(value)
		case "arrivals":
			g.Arrivals, err = workload.ParseArrivals(value)
		default:
			err = fmt.Errorf("%q must be tasks=, memory=, duration= or arrivals=, with MIN:MAX", part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// generated reports whether the workload comes from a distribution.
func (o *workloadOptions) generated() bool { return o.generate != nil }

func (o *workloadOptions) generatesFlex() bool {
	return o.generated() && o.name == workload.Flex.String()
}

// ours reports whether the workload is a file in a format of our own.
func (o *workloadOptions) ours() bool { return !o.generated() && o.format != workloadfile.DSS }

// cluster returns the cluster that the file suggests; nil if it does not.
func (o *workloadOptions) cluster() *workload.ClusterShape {
	if o.file == nil || o.file.Jobs == nil {
		return nil
	}
	return o.file.Jobs.Header.Cluster
}

// load reads the workload, or generates the workload of the k-th seed. An error in a file is the user's mistake.
func (o *workloadOptions) load(ctx context.Context, k int) (*workload.Workload, error) {
	penalty, err := workload.ParsePenalty(o.penalty)
	if err != nil {
		return nil, command.Usage(err)
	}
	w, err := o.source(ctx, k)
	if err != nil {
		return nil, err
	}
	if penalty.Kind != cluster.NotElastic {
		w.SetPenalty(penalty, workload.DefaultMinShare, workload.DefaultGranularity)
	}
	return w, nil
}

func (o *workloadOptions) source(ctx context.Context, k int) (*workload.Workload, error) {
	if o.generated() {
		d, err := workload.ParseDistribution(o.name)
		if err != nil {
			return nil, command.Usage(err)
		}
		g := *o.generate
		g.Seed += uint64(k)
		w, err := workload.Generate(d, g)
		return w, command.Usage(err)
	}
	if o.format != workloadfile.Bellows || o.profiles == nil {
		return o.file.Read(nil)
	}
	lookUp, done, err := o.profiles(ctx)
	if err != nil {
		return nil, err
	}
	w, err := o.file.Read(lookUp)
	if failed := done(); failed != nil {
		return nil, fmt.Errorf("look up a profile that %s names: %w", o.name, failed)
	}
	return w, err
}

func (o *workloadOptions) describe(w *workload.Workload) workloadJSON {
	d := workloadJSON{Name: o.name, Format: o.format, Jobs: len(w.Jobs), Penalty: o.penalty}
	if o.generated() {
		d.Format, d.Seed = "generated", &o.seed
	}
	for i := range w.Jobs {
		for _, s := range w.Jobs[i].Stages {
			if !s.Coordinator {
				d.Tasks += s.Tasks
			}
		}
	}
	return d
}
