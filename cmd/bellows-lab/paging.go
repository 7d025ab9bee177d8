package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/flags"
	"github.com/bellows-rm/bellows/cmd/internal/terminal"
	"github.com/bellows-rm/bellows/lab/chart"
	"github.com/bellows-rm/bellows/lab/paging"
	"github.com/bellows-rm/bellows/lab/pattern"
	"github.com/bellows-rm/bellows/profile"
	"github.com/bellows-rm/bellows/profiler"
	"github.com/bellows-rm/bellows/resource"
)

const pagingLong = `Measure whether a program should spill or page. At each size it runs twice: told
how little it has, so that it spills by itself, and told that it has its ideal
memory while a smaller control group makes the kernel page.

Without a command it measures small programs of its own, one per way of using
memory; with one, {memory} in its arguments must say how much to fill. It needs
root: it makes a swap file of its own in --dir, turns it on, and takes it away
again, and all it runs is in control groups of its own. Nothing else on the
machine may swap meanwhile. Other work on the machine disturbs it: both ways
are run one right after the other, and medians are printed.`

const pagingExample = `  bellows-lab paging
  bellows-lab paging --patterns sort,hash --input 128MiB --repeats 5
  bellows-lab paging --ideal 300MiB -- sort -S {memory} -o /dev/null big`

// pagingOptions are the flags of profile paging.
type pagingOptions struct {
	patterns []string
	input    resource.Amount
	ideal    resource.Amount
	shares   []float64
	repeats  int
	giveUp   float64
	cpus     resource.Amount
	dir      string
	name     string
	note     string
	measured bool
	svg      string
	asJSON   bool
	quiet    bool
}

func pagingCommand() *cobra.Command {
	o := pagingOptions{repeats: 3, cpus: resource.Core, input: 256 * resource.MiB,
		shares: []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}}
	cmd := &cobra.Command{
		Use:     "paging [flags] [-- COMMAND [ARGUMENT...]]",
		Short:   "Measure spilling against paging, as root",
		Long:    pagingLong,
		Example: pagingExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(false)
	f.StringSliceVar(&o.patterns, "patterns", pattern.Names(), "which `programs` of its own to measure")
	f.Var(flags.Memory(&o.input), "input", "how much data they work on")
	f.Var(flags.Memory(&o.ideal), "ideal", "memory in which COMMAND neither spills nor pages")
	f.Var((*sharesValue)(&o.shares), "shares", "what to measure, of the ideal")
	f.Var(flags.Count(&o.repeats, 1, 100), "repeats", "how often each size is run each way")
	f.Float64Var(&o.giveUp, "give-up", 10, "`times` as slow as with its ideal memory, and a run is ended")
	f.Var(flags.CPU(&o.cpus), "cpus", "cores for each run")
	f.StringVar(&o.dir, "dir", ".", "`folder` for the swap file and what is spilled")
	f.StringVar(&o.name, "name", "", "`name` for COMMAND in the results; unless given, that of the program")
	f.StringVar(&o.note, "note", "", "`text` to be kept with the results")
	f.BoolVar(&o.measured, "measured", false, "run nothing: print what comes with bellows")
	f.StringVar(&o.svg, "svg", "", "draw it into this `file`")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// sharesValue is a flag for a list of numbers.
type sharesValue []float64

func (v *sharesValue) String() string {
	var texts []string
	for _, s := range *v {
		texts = append(texts, strconv.FormatFloat(s, 'g', -1, 64))
	}
	return strings.Join(texts, ",")
}

func (v *sharesValue) Type() string { return "shares" }

func (v *sharesValue) Set(text string) error {
	*v = nil
	for _, t := range strings.Split(text, ",") {
		s, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
		if err != nil {
			return fmt.Errorf("must be numbers such as 0.25,0.5")
		}
		*v = append(*v, s)
	}
	return nil
}

// pagingSubject is a program to measure.
type pagingSubject struct {
	name    string
	program cluster.Command
	ideal   resource.Amount
}

func (o *pagingOptions) run(cmd *cobra.Command, args []string) error {
	res := profile.MeasuredPaging()
	if !o.measured {
		var err error
		if res, err = o.campaign(cmd, args); err != nil {
			return err
		}
	}
	if o.svg != "" {
		text, err := pagingPicture(&res).SVG()
		if err != nil {
			return fmt.Errorf("draw %s: %w", o.svg, err)
		}
		if err := os.WriteFile(o.svg, text, 0o644); err != nil {
			return fmt.Errorf("write the picture: %w", err)
		}
	}
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), res)
	}
	return printPaging(cmd.OutOrStdout(), res)
}

// campaign measures all subjects.
func (o *pagingOptions) campaign(cmd *cobra.Command, args []string) (res profile.Paging, err error) {
	subjects, err := o.subjects(args)
	if err != nil {
		return res, err
	}
	for _, s := range subjects {
		plan := o.plan(s)
		if err := plan.Check(); err != nil {
			return res, command.Usage(err)
		}
	}
	if os.Geteuid() != 0 {
		return res, command.Usagef("this needs root, to make a swap file: run `sudo bellows-lab paging`")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return res, fmt.Errorf("find the folder %s: %w", o.dir, err)
	}
	most := slices.MaxFunc(subjects, func(a, b pagingSubject) int { return int(a.ideal/resource.KiB) - int(b.ideal/resource.KiB) })
	swap, err := paging.NewSwapFile(dir, 2*most.ideal)
	if err != nil {
		return res, err
	}
	o.say(cmd, "swapping to %s, %s, until this ends", swap.Path(), resource.FormatMemory(2*most.ideal))
	defer func() {
		if failure := swap.Close(); failure != nil && err == nil {
			err = failure
		}
	}()
	res = profile.Paging{Date: time.Now().UTC().Format(time.DateOnly), Swap: "file", Device: paging.DeviceOf(dir),
		Kernel: paging.KernelRelease(), Note: o.note}
	for _, s := range subjects {
		curve, err := o.measure(cmd, s, dir)
		if err != nil {
			return res, err
		}
		res.Curves = append(res.Curves, curve)
	}
	return res, nil
}

func (o *pagingOptions) plan(s pagingSubject) paging.Plan {
	return paging.Plan{Ideal: s.ideal, Shares: o.shares, Repeats: o.repeats, GiveUp: o.giveUp}
}

// beside is the memory of the built-in programs besides their data: 4 MiB that cannot be dropped (measured), 6 MiB of
// the program file, which is read again if it is dropped, and a little for the files to which the programs spill.
const beside = 16 * resource.MiB

// subjects returns the programs to measure: the command, or the built-in programs.
func (o *pagingOptions) subjects(args []string) ([]pagingSubject, error) {
	if len(args) > 0 {
		return o.oneSubject(args)
	}
	if o.ideal > 0 {
		return nil, command.Usagef("ideal: belongs to a command; the size of its own programs is --input")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	var all []pagingSubject
	for _, name := range o.patterns {
		if pattern.Describe(name) == "" {
			return nil, command.Usagef("patterns: %q is unknown: must be some of %s", name, strings.Join(pattern.Names(), ", "))
		}
		expression := fmt.Sprintf("{memory-%dMiB:bytes}", int64(beside/resource.MiB))
		args := []string{self, patternName, name, fmt.Sprint(int64(o.input)), expression}
		all = append(all, pagingSubject{name, cluster.Command{Args: args}, o.input + beside})
	}
	return all, nil
}

func (o *pagingOptions) oneSubject(args []string) ([]pagingSubject, error) {
	switch {
	case o.ideal == 0:
		return nil, command.Usagef("ideal: must be given for a command")
	case !strings.Contains(strings.Join(args, " "), "{memory"):
		return nil, command.Usagef("command: must be told its size by {memory}, or it cannot spill at another")
	}
	name := o.name
	if name == "" {
		name = filepath.Base(args[0])
	}
	return []pagingSubject{{name, cluster.Command{Args: args}, o.ideal}}, nil
}

func (o *pagingOptions) say(cmd *cobra.Command, format string, args ...any) {
	if !o.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
	}
}

// measure measures one program.
func (o *pagingOptions) measure(cmd *cobra.Command, s pagingSubject, dir string) (profile.PagingCurve, error) {
	if err := command.FindProgram(s.program.Args[0], dir); err != nil {
		return profile.PagingCurve{}, err
	}
	c, err := profiler.NewContainer(s.program, os.Environ(), dir, o.cpus)
	if err != nil {
		return profile.PagingCurve{}, err
	}
	defer func() {
		if err := c.Close(); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "bellows: a control group is left behind: %v\n", err)
		}
	}()
	plan := o.plan(s)
	curve, err := paging.Measure(cmd.Context(), paging.InContainer(c, s.ideal), &plan, func(done, all int, run paging.Run, m profiler.Measurement) {
		what := fmt.Sprintf("%.2fs", m.Duration.Seconds())
		switch {
		case m.Failure != "":
			what += " " + m.Failure
		case run.Round == 0:
			what += " (warm-up)"
		}
		o.say(cmd, "[%*d/%d] %-6s %-5s at %3.0f%%  %s", len(fmt.Sprint(all)), done, all, s.name, run.Way, 100*run.Share, what)
	})
	curve.Pattern = s.name
	return curve, err
}

// printPaging prints a table per program.
func printPaging(w io.Writer, p profile.Paging) error {
	fmt.Fprintf(w, "%s, swap %s on %s, kernel %s\n", p.Date, p.Swap, p.Device, p.Kernel)
	for _, c := range p.Curves {
		what := pattern.Describe(c.Pattern)
		if what != "" {
			what = ": " + what
		}
		fmt.Fprintf(w, "\n%s\n", terminal.Fold(fmt.Sprintf("%s%s; ideal %s, %.2fs there", c.Pattern, what, resource.FormatMemory(c.Ideal), c.IdealSeconds), terminal.Width-2, "  "))
		t := terminal.NewTable(">SHARE", ">SPILL", ">FROM", ">TO", ">PAGE", ">FROM", ">TO", ">FAILED", "CHEAPER")
		for _, at := range c.Points {
			spill, page := slowdownCells(at.Spill, c.IdealSeconds), slowdownCells(at.Page, c.IdealSeconds)
			t.Add(slices.Concat([]string{fmt.Sprintf("%.0f%%", 100*at.Share)}, spill, page, []string{failures(at.Page), cheaper(at)})...)
		}
		if err := t.Write(w); err != nil {
			return err
		}
		said := "spilling is cheaper at every size measured"
		if from, ok := c.BreakEven(); ok {
			said = fmt.Sprintf("paging is no slower from %.0f%% of the ideal on", 100*from)
		}
		fmt.Fprintln(w, said)
	}
	return nil
}

// pagingPicture draws medians: paging solid, spilling dashed, stopped runs at their time limit.
func pagingPicture(p *profile.Paging) *chart.Plot {
	plot := &chart.Plot{
		Title:    "Paging (solid) and spilling (dashed)",
		Subtitle: fmt.Sprintf("medians; swap %s on %s; lines end where runs were given up or killed", p.Swap, p.Device),
		X:        "memory (% of ideal)", Y: "run time (times that with ideal memory)", LogY: true,
	}
	for i, c := range p.Curves {
		page := chart.Series{Name: c.Pattern + ", pages", Color: i + 1}
		spill := chart.Series{Name: c.Pattern + ", spills", Color: i + 1, Dashed: true}
		for _, at := range c.Points {
			for _, way := range []struct {
				to    *chart.Series
				times profile.Times
			}{{&page, at.Page}, {&spill, at.Spill}} {
				if way.times.Known() && !way.times.AtLeast() {
					way.to.X, way.to.Y = append(way.to.X, 100*at.Share), append(way.to.Y, way.times.Median()/c.IdealSeconds)
				}
			}
		}
		plot.Series = append(plot.Series, page, spill)
	}
	return plot
}

// slowdownCells prints median, fastest and slowest as multiples of the ideal run time.
func slowdownCells(t profile.Times, ideal float64) []string {
	if !t.Known() {
		return []string{"fails", "", ""}
	}
	mark := ""
	if t.AtLeast() {
		mark = ">"
	}
	fastest, slowest := t.Range()
	return []string{fmt.Sprintf("%s%.2fx", mark, t.Median()/ideal), fmt.Sprintf("%.2fx", fastest/ideal), fmt.Sprintf("%s%.2fx", mark, slowest/ideal)}
}

// failures prints how many runs failed of how many.
func failures(t profile.Times) string {
	if t.Failures == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", t.Failures, t.Failures+len(t.Seconds))
}

// cheaper names the way whose slowest repeat was faster than the fastest repeat of the other way.
func cheaper(at profile.PagingPoint) string {
	spillFast, spillSlow := at.Spill.Range()
	pageFast, pageSlow := at.Page.Range()
	switch {
	case at.Page.Failures > 0 && at.Spill.Known():
		return "spill"
	case !at.Spill.Known() && at.Page.Known():
		return "page"
	case !at.Page.Known() && at.Spill.Known():
		return "spill"
	case at.Share == 1:
		return ""
	case spillSlow < pageFast && !at.Spill.AtLeast():
		return "spill"
	case pageSlow < spillFast && !at.Page.AtLeast():
		return "page"
	}
	return "either"
}

// patternName is the name of the command that runs one of the measured programs.
const patternName = "pattern"

// patternCommand returns the command that runs one of the programs that `paging` measures.
func patternCommand() *cobra.Command {
	return &cobra.Command{
		Use:    patternName + " PATTERN INPUT-BYTES BUFFER-BYTES",
		Hidden: true,
		Args:   cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := pattern.Config{Pattern: args[0], Dir: "."}
			for i, to := range []*resource.Amount{&c.Input, &c.Buffer} {
				if _, err := fmt.Sscan(args[i+1], (*int64)(to)); err != nil {
					return command.Usagef("argument %q: must be a number of bytes", args[i+1])
				}
			}
			r, err := pattern.Run(c)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "spilled %d bytes, result %016x\n", int64(r.Spilled), r.Digest)
			return err
		},
	}
}
