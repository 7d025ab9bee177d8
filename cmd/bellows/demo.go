package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/demo"
)

const demoLong = `Run the same mix of real sorts on a small part of this machine under fixed and
elastic allocations of memory, say which is best and why, and compare all of it
with what the simulator predicted from profiles and the job file alone.

It needs GNU sort, gzip, two cores, 208 MiB of memory, 1 GiB of disk, and the
same rights as "bellows up"; nothing is installed and nothing is left behind but
the picture. Where there can be no containers, the mix is simulated, with
profiles recorded elsewhere. Other work on the machine disturbs it.`

const demoExample = `  bellows demo
  bellows demo --rounds 1 --svg picture.svg
  bellows demo --simulate-only --json`

// demoOptions are the flags of demo.
type demoOptions struct {
	rounds, repeats int
	limit           time.Duration
	dir, svg        string
	simulate        bool
	asJSON, quiet   bool
}

func demoCommand() *cobra.Command {
	o := demoOptions{rounds: 3, repeats: 3, limit: 7*time.Minute + 40*time.Second}
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "See real programs share too little memory",
		Long:    demoLong,
		Example: demoExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(countValue{&o.rounds, 1, 100}, "rounds", "how often the mix runs under each allocation")
	f.Var(countValue{&o.repeats, 1, 100}, "repeats", "how often a program is measured at each size")
	f.Var(durationValue{&o.limit, 0}, "limit", "rounds that would end later are left out; 0: never")
	f.StringVar(&o.dir, "dir", "", "`directory` to work in, on a disk; unless given, that for temporary files")
	f.StringVar(&o.svg, "svg", "bellows-demo.svg", "`file` for the picture of memory and tasks over time; empty: none")
	f.BoolVar(&o.simulate, "simulate-only", false, "run nothing, but simulate it with profiles recorded elsewhere")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func (o *demoOptions) run(cmd *cobra.Command) error {
	told := teller{to: cmd.ErrOrStderr(), transient: isTerminal(cmd.ErrOrStderr())}
	if o.quiet {
		told.to, told.transient = io.Discard, false
	}
	res, err := demo.Demonstrate(cmd.Context(), demo.Options{Rounds: o.rounds, Repeats: o.repeats, Limit: o.limit, Dir: o.dir,
		Simulate: o.simulate, Say: told.say, Show: told.show})
	told.clear()
	if err != nil {
		return err
	}
	if err := o.draw(res); err != nil {
		return err
	}
	if o.asJSON {
		return writeJSON(cmd.OutOrStdout(), res)
	}
	if err := demo.Write(cmd.OutOrStdout(), res); err != nil || o.svg == "" {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nThe picture of memory and tasks over time is %s.\n", o.svg)
	return err
}

// draw writes the picture, if one is wanted.
func (o *demoOptions) draw(res *demo.Result) error {
	if o.svg == "" {
		return nil
	}
	file, err := os.Create(o.svg)
	if err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	if err := demo.WriteSVG(file, res); err != nil {
		file.Close()
		return fmt.Errorf("write the picture: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// teller prints lines that stay and, on a terminal, below them one that changes.
type teller struct {
	to        io.Writer
	transient bool
}

func (t *teller) say(line string) {
	t.clear()
	fmt.Fprintln(t.to, line)
}

func (t *teller) show(line string) {
	if t.transient {
		fmt.Fprint(t.to, "\r\033[K"+cut(line, width-1))
	}
}

func (t *teller) clear() {
	if t.transient {
		fmt.Fprint(t.to, "\r\033[K")
	}
}
