package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/studies/paging"
	"github.com/bellows-rm/bellows/studies/pattern"
)

const pagingLong = `Measure whether a program should spill or page. At each size the program runs
twice: once it gets the true size in its arguments, so that it spills by itself;
once it gets its ideal memory in its arguments, while a smaller control group
makes the kernel page.

Without a command it measures small programs of its own, one per way of using
memory. With a command, {memory} in its arguments must set how much memory the
program fills. It needs root: it creates a swap file in --dir, turns it on, and
removes it again, and it runs programs in control groups of its own. Nothing
else on the machine may swap meanwhile. Other work on the machine disturbs the
measurement: both ways run one right after the other, and medians are printed.`

const pagingExample = `  bellows-lab paging
  bellows-lab paging --patterns sort,hash --input 128MiB --repeats 5
  bellows-lab paging --ideal 300MiB -- sort -S {memory} -o /dev/null big`

// pagingOptions are the flags of paging.
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
	o := pagingOptions{patterns: pattern.Names(), repeats: 3, giveUp: 10, cpus: resource.Core, input: 256 * resource.MiB,
		shares: []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}}
	cmd := &cobra.Command{
		Use:     "paging [flags] [-- COMMAND [ARGUMENT...]]",
		Short:   "Compare spilling and paging of programs, as root",
		Long:    pagingLong,
		Example: pagingExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(false)
	f.Var(flags.Choices(&o.patterns, pattern.Names()...), "patterns", "built-in `programs` to measure")
	f.Var(flags.Memory(&o.input), "input", "size of the data of these programs")
	f.Var(flags.Memory(&o.ideal), "ideal", "memory with which COMMAND neither spills nor pages")
	f.Var(flags.Numbers(&o.shares, 0, 1), "shares", "sizes to measure, as `shares` of the ideal memory")
	f.Var(flags.Count(&o.repeats, 1, 100), "repeats", "number of runs at each size, each way")
	f.Var(flags.Number(&o.giveUp, 1, 1e6), "give-up",
		"stop a run that is this many `times` as slow as with its ideal memory")
	f.Var(flags.CPU(&o.cpus), "cpus", "cores for each run")
	f.StringVar(&o.dir, "dir", ".", "`folder` for the swap file and spilled data")
	f.StringVar(&o.name, "name", "", "`name` of COMMAND in the results; default: the program's name")
	f.StringVar(&o.note, "note", "", "`text` to keep with the results")
	f.BoolVar(&o.measured, "measured", false, "print the measurements that are part of bellows, and run nothing")
	f.StringVar(&o.svg, "svg", "", "`file` for the picture as SVG")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func (o *pagingOptions) run(cmd *cobra.Command, args []string) error {
	res := profile.MeasuredPaging()
	if !o.measured {
		c, err := o.campaign(cmd, args)
		if err != nil {
			return err
		}
		if res, err = c.Run(cmd.Context()); err != nil {
			return err
		}
	}
	if o.svg != "" {
		if err := writePicture(o.svg, paging.Picture(&res).SVG); err != nil {
			return err
		}
	}
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), res)
	}
	return printPaging(cmd.OutOrStdout(), res)
}

// campaign returns what to measure.
func (o *pagingOptions) campaign(cmd *cobra.Command, args []string) (*paging.Campaign, error) {
	subjects, err := o.subjects(args)
	if err != nil {
		return nil, err
	}
	say := func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
	if o.quiet {
		say = func(string) {}
	}
	c := &paging.Campaign{Subjects: subjects, Plan: paging.Plan{Shares: o.shares, Repeats: o.repeats, GiveUp: o.giveUp},
		CPU: o.cpus, Dir: o.dir, Note: o.note, Say: say}
	if err := c.Check(); err != nil {
		return nil, command.Usage(err)
	}
	if os.Geteuid() != 0 {
		return nil, command.Usagef("this needs root, to make a swap file: run `sudo bellows-lab paging`")
	}
	for _, s := range subjects {
		if err := command.FindProgram(s.Program.Args[0], o.dir); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// subjects returns the programs to measure: the command, or the built-in programs.
func (o *pagingOptions) subjects(args []string) (all []paging.Subject, err error) {
	if len(args) > 0 {
		return o.oneSubject(args)
	}
	if o.ideal > 0 {
		return nil, command.Usagef("ideal: needs a COMMAND; --input is the size of the data of built-in programs")
	}
	for _, name := range o.patterns {
		s, err := paging.Pattern(name, o.input)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (o *pagingOptions) oneSubject(args []string) ([]paging.Subject, error) {
	switch {
	case o.ideal == 0:
		return nil, command.Usagef("ideal: must be given for a command")
	case !strings.Contains(strings.Join(args, " "), "{memory"):
		return nil, command.Usagef("command: must have {memory} in its arguments, to spill at each size")
	}
	name := o.name
	if name == "" {
		name = filepath.Base(args[0])
	}
	return []paging.Subject{{Name: name, Program: cluster.Command{Args: args}, Ideal: o.ideal}}, nil
}

// printPaging prints a table per program.
func printPaging(w io.Writer, p profile.Paging) error {
	fmt.Fprintf(w, "%s, swap %s on %s, kernel %s\n", p.Date, p.Swap, p.Device, p.Kernel)
	for _, c := range p.Curves {
		what := pattern.Describe(c.Pattern)
		if what != "" {
			what = ": " + what
		}
		fmt.Fprintf(w, "\n%s\n", terminal.Fold(fmt.Sprintf("%s%s; ideal %s, %.2fs there", c.Pattern, what,
			resource.FormatMemory(c.Ideal), c.IdealSeconds), terminal.Width-2, "  "))
		t := terminal.NewTable(paging.Heads...)
		for _, row := range paging.Rows(&c) {
			t.Add(row...)
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

// patternCommand returns the command that runs one of the programs that `paging` measures.
func patternCommand() *cobra.Command {
	return &cobra.Command{
		Use:    paging.PatternCommand + " PATTERN INPUT-BYTES BUFFER-BYTES",
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
