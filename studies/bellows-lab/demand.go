package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/simulate"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/studies/demo"
)

const demandLong = `Run existing programs, whose demand comes and goes, under static boxes and under
policies that look ahead, and say which ends first and why. The mixes are:

disk      programs that read a disk and compute in between: static boxes, tetris
          and prophet; an hour and three quarters (docs/forecasts.md)
cores     programs that use two cores, one or hardly any in turn: static boxes,
          prophet and ecs; some 70 minutes (docs/leveling.md)
weights   the same under static boxes, ecs, and ecs with cpu=weight

It needs root and the programs, and leaves only the folder --out: what was run
is not run again. --tenths and --rounds shorten it to a trial, which says so.`

const demandExample = `  sudo bellows-lab demand
  sudo bellows-lab demand --mix cores --out bellows-cores
  sudo bellows-lab demand --tenths 1 --repeats 3 --rounds 1 --out trial`

// demandOptions are the flags of demand.
type demandOptions struct {
	demo.Options
	mix           string
	speed         resource.Amount
	tenths        int
	out           string
	asJSON, quiet bool
}

func demandCommand() *cobra.Command {
	o := demandOptions{Options: demo.Options{Rounds: 9, Repeats: 2}, mix: demo.DemandMixes()[0], speed: 24 * resource.MB,
		tenths: 10}
	cmd := &cobra.Command{
		Use:     "demand",
		Short:   "Compare static boxes and policies that look ahead by real programs",
		Long:    demandLong,
		Example: demandExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.Var(flags.Choice(&o.mix, demo.DemandMixes()...), "mix",
		"programs to run, and the policies to compare by them: disk, cores or weights")
	f.Var(flags.Count(&o.Rounds, 1, 100), "rounds",
		"number of runs of the mix under each policy; at least 9 are needed for a result")
	f.Var(flags.Count(&o.Repeats, 1, 40), "repeats", "number of runs of each program alone")
	f.Var(flags.Count(&o.tenths, 1, 20), "tenths", "size of the inputs, in tenths of the full size")
	f.Var(flags.Rate(&o.speed), "speed", "speed of the disk")
	f.Var(flags.Duration(&o.Limit, 0), "limit", "leave out rounds that would end later than this; 0: no limit")
	f.StringVar(&o.out, "out", "bellows-demand",
		"`directory` for results and the picture; runs whose results are there are not repeated")
	f.StringVar(&o.Dir, "dir", "",
		"`directory` for the content of the disk, up to 6 GiB; default: that for temporary files")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func (o *demandOptions) run(cmd *cobra.Command) error {
	var line *terminal.Progress // none
	if !o.quiet {
		line = terminal.NewProgress(cmd.ErrOrStderr(), "demand")
	}
	o.Say, o.Show, o.Build = line.Say, line.Show, command.VersionText()
	res, err := demo.Demand(cmd.Context(), o.Options, o.mix, o.speed, o.tenths, o.out)
	line.Clear()
	if err != nil {
		return err
	}
	if res.Why == "" {
		path := filepath.Join(o.out, "result.json")
		if err := simulate.WriteFile(path, func(w io.Writer) error { return terminal.WriteJSON(w, res) }); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	if o.asJSON {
		out = io.Discard
	}
	if err := o.show(out, res); err != nil {
		return err
	}
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), res)
	}
	return nil
}

// show prints the result and writes its pictures.
func (o *demandOptions) show(out io.Writer, res *demo.DemandResult) error {
	if err := res.Write(out); err != nil {
		return err
	}
	var files []string
	for _, p := range res.Pictures() {
		file := filepath.Join(o.out, p.Name+".svg")
		if err := writePicture(file, p.SVG); err != nil {
			return err
		}
		files = append(files, file)
	}
	if files == nil {
		return nil
	}
	_, err := fmt.Fprintf(out, "\nEvery run is in %s, and so is the picture %s.\n", o.out, strings.Join(files, ", "))
	return err
}
