// Package profiling has the command that measures how much longer a program takes with less memory.
package profiling

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/node/agent"
	"github.com/bellows-rm/bellows/node/profiler"
)

const profileLong = `Measure what less memory costs a program: run it at several sizes, fit a model,
and store the profile for "bellows run --profile" and job files. {memory} in the
arguments becomes the size of each run, less what a program needs beside its
data. The size limits the page cache of the program, too.

Sizes are chosen during the measurement, between the largest and --least; runs
that other work disturbed are set aside, and no profile is stored if the rest
differ too much. The kernel kills runs with too little memory; their files are
not removed. The command runs the program itself, with the rights of "bellows
up"; if quotas limit you, a job counts for them meanwhile. docs/profiles.md says
more. A program called list is measured by "bellows profile -- list".`

const profileExample = `  bellows profile -- sort -S {memory} -o /dev/null big.txt
  bellows profile --max-memory 1GiB -- samtools sort -m {memory*0.8} in.bam
  bellows profile --name wc --sizes 64MiB,128MiB,256MiB,512MiB -- wc big.txt`

// profileOptions are the flags of profile.
type profileOptions struct {
	place    place.Place
	name     string
	sizes    []resource.Amount
	heldOut  []resource.Amount
	least    resource.Amount
	max      resource.Amount
	count    int
	repeats  int
	cpus     resource.Amount
	overhead resource.Amount
	input    resource.Amount
	dryRun   bool
	noStore  bool
	asJSON   bool
	quiet    bool
	claims   *claims // nil if no quota limits the user
}

// Command returns the command profile.
func Command() *cobra.Command {
	o := profileOptions{count: 9, repeats: 3, cpus: resource.Core}
	cmd := &cobra.Command{
		Use:     "profile [flags] -- COMMAND [ARGUMENT...]",
		Short:   "Measure a program, and list what is known of programs",
		Long:    profileLong,
		Example: profileExample,
		Args:    command.SomeArguments("command: must be given, as in `bellows profile -- sort -S {memory} big.txt`"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.name, "name", "", "`name` of the stored profile; default: the program's name")
	f.Var(flags.Memory(&o.max), "max-memory",
		"largest size, with which the program neither spills nor swaps; default: measured by one run")
	f.Var(flags.Memory(&o.least), "least", "smallest size to measure; default: a tenth of the largest")
	f.Var(flags.Count(&o.count, 2, 100), "count", "number of sizes; a third of the sizes is held out to test the model")
	f.Var(flags.Sizes(&o.sizes), "sizes", "sizes to measure, such as 64MiB,128MiB; default: chosen during the measurement")
	f.Var(flags.Sizes(&o.heldOut), "held-out", "sizes to test the model on; default: every second of --sizes")
	f.Var(flags.Count(&o.repeats, 1, 100), "repeats", "number of runs at each size")
	f.Var(flags.CPU(&o.cpus), "cpus", "cores for each run")
	f.Var(flags.Memory(&o.overhead).OrZero(), "overhead",
		"part of the program's memory that holds no data; only the model uses it")
	f.Var(flags.Memory(&o.input).OrZero(), "input", "size of the program's data in memory, if known")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be measured, and measure nothing")
	f.BoolVar(&o.noStore, "no-store", false, "print the profile without storing it")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	o.place.Flags(cmd, true)
	cmd.AddCommand(knownCommands()...)
	return cmd
}

func (o *profileOptions) run(cmd *cobra.Command, args []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	if err := command.FindProgram(args[0], dir); err != nil {
		return err
	}
	if o.name == "" {
		o.name = filepath.Base(args[0])
	}
	if !o.dryRun {
		if _, err := agent.Capacity(0, o.cpus); err != nil { // With fewer cores, another program would be measured.
			return command.Usage(err)
		}
		if o.claims, err = o.findClaims(cmd.Context(), cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	subject := cluster.Command{Args: args}
	if o.max == 0 && len(o.sizes) == 0 && !o.dryRun {
		if err := o.findLargest(cmd, subject, dir); err != nil {
			return err
		}
	}
	plan, err := o.plan()
	if err != nil {
		return err
	}
	program := profile.Program{Input: o.input}
	if program.Buffer, err = profiler.BufferOf(subject, o.overhead, plan.Fitted[len(plan.Fitted)-1]); err != nil {
		return command.Usage(err)
	}
	if err := checkCommand(subject, plan); err != nil {
		return command.Usage(err)
	}
	tell := cmd.OutOrStdout()
	if o.asJSON {
		tell = cmd.ErrOrStderr()
	}
	if !o.asJSON || !o.quiet {
		printPlan(tell, args, plan)
	}
	if o.dryRun {
		return nil
	}
	res, err := o.measure(cmd, subject, dir, plan)
	if err != nil {
		return err
	}
	report, err := learn(o.name, args, plan, res, program)
	if err != nil {
		return err
	}
	if o.asJSON {
		err = terminal.WriteJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.print(cmd.OutOrStdout())
	}
	if err == nil {
		err = report.refusal()
	}
	if err != nil || o.noStore {
		return err
	}
	if err := o.store(cmd.Context(), report); err != nil {
		return err
	}
	if !o.asJSON {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "stored as %q: use it with `bellows run --profile %s`\n", o.name, o.name)
	}
	return err
}

// checkCommand returns an error if a placeholder of the command is unknown, or cannot be filled at some size.
func checkCommand(c cluster.Command, p *profiler.Plan) error {
	least, most := p.Fitted[0], p.Fitted[len(p.Fitted)-1]
	stage := cluster.Stage{Tasks: 1, Ideal: resource.Of(resource.Core, most), MinMemory: least, Command: c}
	return (&cluster.Job{ID: 1, Name: "profile", Stages: []cluster.Stage{stage}}).CheckCommand(0)
}

// mostRepeats is the factor by which the repeats of a size may grow if they differ too much.
const mostRepeats = 3

// plan returns the sizes, or how to choose them.
func (o *profileOptions) plan() (*profiler.Plan, error) {
	p := &profiler.Plan{Repeats: o.repeats}
	if o.repeats > 1 {
		p.MostRepeats = mostRepeats * o.repeats
	}
	switch {
	case len(o.sizes) > 0 && (o.max > 0 || o.least > 0):
		return nil, command.Usagef("sizes: cannot be combined with --max-memory and --least")
	case len(o.sizes) == 0 && o.max == 0:
		return nil, command.Usagef("max-memory: must be given with --dry-run, or --sizes")
	case len(o.sizes) == 0:
		return p, o.chooseSizes(p)
	case len(o.heldOut) > 0:
		p.HeldOut = o.heldOut
		p.Fitted = slices.DeleteFunc(o.sizes, func(m resource.Amount) bool { return slices.Contains(o.heldOut, m) })
	default:
		p.Fitted, p.HeldOut = profiler.Split(o.sizes)
	}
	return p, command.Usage(p.Check())
}

// chooseSizes plans the largest and the smallest size; further sizes between them are chosen during the measurement.
func (o *profileOptions) chooseSizes(p *profiler.Plan) error {
	least := o.least
	if least == 0 {
		const whole = resource.MiB
		least = max((o.max/10+whole-1)/whole*whole, 2*whole)
	}
	if least >= o.max {
		return command.Usagef("least %s: must be below the largest size, %s", resource.FormatMemory(least),
			resource.FormatMemory(o.max))
	}
	p.Fitted, p.HeldOut, p.Search = []resource.Amount{least, o.max}, o.heldOut, true
	const few = 4 // with fewer sizes none is held out
	if len(o.heldOut) == 0 && o.count >= few {
		p.Try = o.count / 3
	}
	p.Choose = o.count - len(p.Fitted) - p.Try
	return command.Usage(p.Check())
}

func printPlan(w io.Writer, args []string, p *profiler.Plan) {
	list := func(sizes []resource.Amount) string {
		var texts []string
		for _, m := range sizes {
			texts = append(texts, resource.FormatMemory(m))
		}
		return strings.Join(texts, ", ")
	}
	say := func(format string, args ...any) {
		fmt.Fprintln(w, terminal.Fold(fmt.Sprintf(format, args...), terminal.Width-2, "  "))
	}
	say("measuring %s", strings.Join(args, " "))
	chosen, heldOut := "", list(p.HeldOut)
	if p.Choose > 0 {
		chosen = fmt.Sprintf(", and %s between them where the run time changes most", terminal.Count(p.Choose, "size"))
	}
	if p.Try > 0 {
		heldOut = fmt.Sprintf("%s in the middle of the widest gaps left", terminal.Count(p.Try, "size"))
	}
	say("fitted to: %s%s", list(p.Fitted), chosen)
	if heldOut != "" {
		say("held out: %s", heldOut)
	}
	say("%s, %s with the one that warms up", terminal.Count(p.Repeats, "round"),
		terminal.Count(1+p.Repeats*(len(p.Fitted)+p.Choose+len(p.HeldOut)+p.Try), "run"))
	if p.MostRepeats > p.Repeats {
		say("up to %s where repeats differ by more than %.0f%%", terminal.Count(p.MostRepeats, "round"),
			100*profile.MostNoise)
	}
	if p.Search {
		say("if it fails with %s, the smallest size that works is searched above that, in at most 12 runs; the kernel "+
			"kills those with too little memory", resource.FormatMemory(p.Fitted[0]))
	}
}

// findLargest runs the program once, with half of the machine's available memory, to measure how much it uses.
func (o *profileOptions) findLargest(cmd *cobra.Command, subject cluster.Command, dir string) error {
	machine, err := agent.Capacity(0, 0)
	if err != nil {
		return err
	}
	plenty := machine[resource.Memory] / 2
	if o.claims != nil {
		plenty = min(plenty, o.claims.most)
	}
	stage := cluster.Stage{Tasks: 1, Ideal: resource.Of(resource.Core, plenty), Command: subject}
	if err := (&cluster.Job{ID: 1, Name: "profile", Stages: []cluster.Stage{stage}}).CheckCommand(0); err != nil {
		return command.Usage(err)
	}
	return o.inContainer(cmd, subject, dir, plenty, func(ctx context.Context, c *profiler.Container) error {
		if o.max, err = profiler.Unhindered(ctx, c, plenty); err == nil && !o.quiet {
			fmt.Fprintf(cmd.ErrOrStderr(), "one run with %s: %s should be enough\n", resource.FormatMemory(plenty),
				resource.FormatMemory(o.max))
		}
		return err
	})
}

// inContainer makes a container for the program, which counts for the quotas of the user with this memory, and
// removes it afterwards.
func (o *profileOptions) inContainer(cmd *cobra.Command, subject cluster.Command, dir string, memory resource.Amount,
	do func(context.Context, *profiler.Container) error) error {
	ctx := cmd.Context()
	if o.claims != nil {
		held, release, err := o.claims.hold(ctx, memory)
		if err != nil {
			return err
		}
		defer release()
		ctx = held
	}
	c, err := profiler.NewContainer(subject, os.Environ(), dir, o.cpus)
	if err != nil {
		return err
	}
	defer func() {
		if err := c.Close(); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "bellows: a control group was not removed: %v\n", err)
		}
	}()
	return cause(ctx, do(ctx, c))
}

// measure runs the program at every size.
func (o *profileOptions) measure(cmd *cobra.Command, subject cluster.Command, dir string,
	plan *profiler.Plan) (res *profiler.Result, err error) {
	var seen func(done, all int, run profiler.Run, m profiler.Measurement)
	if !o.quiet {
		w := cmd.ErrOrStderr()
		seen = func(done, all int, run profiler.Run, m profiler.Measurement) {
			what := fmt.Sprintf("%.2fs", m.Duration.Seconds())
			if run.Round == 0 {
				what += " (warm-up)"
			}
			if m.Failure != "" {
				what = "does not work: " + m.Failure
			}
			fmt.Fprintln(w, terminal.Cut(fmt.Sprintf("[%*d/%d] %8s  %s", len(fmt.Sprint(all)), done, all,
				resource.FormatMemory(run.Memory), what), 2*terminal.Width))
		}
	}
	err = o.inContainer(cmd, subject, dir, slices.Max(slices.Concat(plan.Fitted, plan.HeldOut)),
		func(ctx context.Context, c *profiler.Container) error {
			res, err = profiler.Measure(ctx, c, plan, seen)
			return err
		})
	return res, err
}

// store stores the profile through the daemon or, where no daemon runs, in its state directory.
func (o *profileOptions) store(ctx context.Context, r *profileReport) error {
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	evidence, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("store the profile: %w", err)
	}
	p := api.Measured{IdealMemory: r.Model.IdealMemory, MinMemory: r.Model.MinMemory, Duration: r.Model.IdealDuration,
		Elasticity: r.Model.Elasticity(), Args: r.Args, Evidence: evidence}
	err = client.PutProfile(ctx, o.name, p)
	if api.KindOf(err) != api.Unavailable {
		return err
	}
	if err := o.place.Fill(); err != nil {
		return err
	}
	lock, err := store.TakeLock(o.place.State)
	if err != nil {
		return err
	}
	defer lock.Release()
	s, err := store.Open(o.place.State)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.PutProfile(ctx, store.Profile{UID: uint32(os.Getuid()), User: place.UserName(), Name: o.name,
		Made: timeline.Time(time.Now().UnixNano()), Measured: p})
}
