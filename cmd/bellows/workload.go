package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/flags"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
)

// workloadOptions are the flags that say what is simulated.
type workloadOptions struct {
	place        place // where a daemon knows the profiles that jobs name
	name, format string
	file         *workloadFile // opened; nil if the workload is generated
	penalty      string
	generate     workload.GenerateOptions
	misjudged    string // how far off estimates are
	misjudgeSeed uint64
}

func (o *workloadOptions) defaults() {
	o.format, o.penalty = formatAuto, "none"
	o.generate = workload.DefaultGenerateOptions(workload.Uniform)
	o.misjudged, o.misjudgeSeed = "none", 1
}

func (o *workloadOptions) flags(f *pflag.FlagSet) {
	g := &o.generate
	f.StringVar(&o.name, "workload", "", "a `file`, - for standard input, or uniform, exponential or flex")
	f.Var(flags.Choice(&o.format, workloadFormats...), "format", "format of the file: bellows (a job file), workload or dss; auto looks at its content")
	f.StringVar(&o.penalty, "penalty", o.penalty, "cost, as a `shape`, of less memory for tasks that say nothing: none, step:FACTOR or sawtooth:FACTOR")
	f.Var(flags.Count(&g.Jobs, 1, 1_000_000), "jobs", "generated: number of jobs")
	f.Var(flags.Range(&g.Tasks, workload.ParseTasks, strconv.Itoa), "tasks", "generated: tasks of a job")
	f.Var(flags.Range(&g.Memory, workload.ParseTaskMemory, resource.FormatMemoryExact), "task-memory", "generated: ideal memory of a task")
	f.Var(flags.Range(&g.Duration, workload.ParseTaskDuration, shortDuration), "task-duration", "generated: run time at ideal memory")
	f.Var(flags.Range(&g.Arrivals, workload.ParseArrivals, shortDuration), "arrivals", "generated: when jobs are submitted")
	f.Uint64Var(&g.Seed, "seed", g.Seed, "generated: a `number`; same seed, same workload")
	f.StringVar(&o.misjudged, "misjudge", o.misjudged, "`errors` of estimates, up to: any of duration=0.15, memory=-0.5, penalty=0.5, with commas between")
	f.Uint64Var(&o.misjudgeSeed, "misjudge-seed", o.misjudgeSeed, "a `number` to draw those errors from")
}

// settle takes the defaults of the distribution for what no flag has set.
func (o *workloadOptions) settle(changed func(string) bool) {
	d, err := workload.ParseDistribution(o.name)
	if err != nil {
		return
	}
	usual := workload.DefaultGenerateOptions(d)
	if !changed("jobs") {
		o.generate.Jobs = usual.Jobs
	}
	if !changed("tasks") {
		o.generate.Tasks = usual.Tasks
	}
	if !changed("task-memory") {
		o.generate.Memory = usual.Memory
	}
	if !changed("task-duration") {
		o.generate.Duration = usual.Duration
	}
	if !changed("arrivals") {
		o.generate.Arrivals = usual.Arrivals
	}
}

// shortDuration prints whole seconds as such.
func shortDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// generated reports whether the workload comes from a distribution.
func (o *workloadOptions) generated() bool {
	_, err := workload.ParseDistribution(o.name)
	return err == nil
}

// breathes reports whether the workload is generated FLEX jobs.
func (o *workloadOptions) breathes() bool { return o.name == workload.Flex.String() }

// open opens the file of the workload, if it is one, and finds out its format.
func (o *workloadOptions) open() (err error) {
	if !o.generated() && o.file == nil {
		if o.file, err = openWorkload(o.name, o.format); err == nil {
			o.format = o.file.format
		}
	}
	return err
}

// ours reports whether the workload is a file in a format of our own.
func (o *workloadOptions) ours() bool { return !o.generated() && o.format != formatDSS }

// cluster returns the cluster that the file suggests; nil if it does not.
func (o *workloadOptions) cluster() *workload.ClusterShape {
	if o.file == nil || o.file.jobs == nil {
		return nil
	}
	return o.file.jobs.Header.Cluster
}

// load reads or generates the workload. What is wrong with a file is the user's mistake.
func (o *workloadOptions) load(ctx context.Context) (*workload.Workload, error) {
	penalty, err := workload.ParsePenalty(o.penalty)
	if err != nil {
		return nil, command.Usage(err)
	}
	misjudged, err := workload.ParseMisjudgement(o.misjudged)
	if err != nil {
		return nil, command.Usage(err)
	}
	w, err := o.source(ctx)
	if err != nil {
		return nil, err
	}
	if penalty.Kind != cluster.NotElastic {
		w.SetPenalty(penalty, workload.DefaultMinShare, workload.DefaultGranularity)
	}
	if misjudged != (workload.Misjudgement{}) {
		w = workload.Misjudge(w, misjudged, o.misjudgeSeed)
	}
	return w, nil
}

func (o *workloadOptions) source(ctx context.Context) (*workload.Workload, error) {
	if d, err := workload.ParseDistribution(o.name); err == nil {
		w, err := workload.Generate(d, o.generate)
		return w, command.Usage(err)
	}
	if err := o.open(); err != nil {
		return nil, err
	}
	if o.format == formatBellows {
		return o.readJobs(ctx)
	}
	return o.file.read(nil)
}

// readInput returns the content of a file, or of standard input.
func readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// readJobs reads a job file. Profiles that it names are those of the daemon.
func (o *workloadOptions) readJobs(ctx context.Context) (*workload.Workload, error) {
	client, err := o.place.client()
	if err != nil {
		return nil, err
	}
	var failed error
	known := storedProfiles{client: client, state: o.place.state, failed: &failed}
	defer known.close()
	w, err := o.file.read(known.lookUp(ctx))
	if failed != nil {
		return nil, fmt.Errorf("look up a profile that %s names: %w", o.name, failed)
	}
	return w, err
}

// describe says what was simulated.
func (o *workloadOptions) describe(w *workload.Workload) workloadJSON {
	d := workloadJSON{Name: o.name, Format: o.format, Jobs: len(w.Jobs), Penalty: o.penalty}
	if o.generated() {
		d.Format, d.Seed = "generated", &o.generate.Seed
	}
	if o.misjudged != "none" {
		d.Misjudged, d.MisjudgeSeed = o.misjudged, &o.misjudgeSeed
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
