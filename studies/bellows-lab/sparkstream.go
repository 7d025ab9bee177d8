package main

import (
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/simulate"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/studies/sparkstream"
)

const sparkstreamLong = `Run streams of queries of several applications of Spark: on warm executors of a
pool, and on Spark standalone with dynamic allocation, with dynamic allocation
that gives executors back after a second, and with the cores split. Each row of
a query must be that of Spark alone.

It needs root, Java 17, and an installation of Spark: "connector/spark/fetch"
prints one (studies/spark-streams.md).`

const sparkstreamExample = `  sudo bellows-lab sparkstream --spark "$(connector/spark/fetch)"`

func sparkstreamCommand() *cobra.Command {
	o := sparkstream.Options{Applications: 2, Executors: 2, Memory: 3 * resource.GiB / 2, Queries: 15,
		Think: 4 * time.Second, Orders: 20000, Rounds: 5}
	asJSON, quiet := false, false
	cmd := &cobra.Command{
		Use:     "sparkstream",
		Short:   "Compare streams of queries on a pool and on Spark standalone",
		Long:    sparkstreamLong,
		Example: sparkstreamExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var line *terminal.Progress // none
			if !quiet {
				line = terminal.NewProgress(cmd.ErrOrStderr(), "sparkstream")
			}
			o.Say, o.Show = line.Say, line.Show
			programs, err := filepath.Abs(o.Programs)
			if err != nil {
				return err
			}
			o.Programs = programs
			res, err := sparkstream.Measure(cmd.Context(), o)
			line.Clear()
			if err != nil {
				return err
			}
			write := func(w io.Writer) error { return terminal.WriteJSON(w, res) }
			if err := simulate.WriteFile(filepath.Join(o.Out, "result.json"), write); err != nil {
				return err
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), res)
			}
			return res.Write(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.Var(flags.Count(&o.Applications, 1, 16), "applications", "number of applications that run at once")
	f.Var(flags.Count(&o.Executors, 1, 64), "executors", "number of executors of one core")
	f.Var(flags.Memory(&o.Memory), "memory", "memory of the container of an executor")
	f.Var(flags.Count(&o.Queries, 1, 10000), "queries", "number of queries of each application")
	f.Var(flags.Duration(&o.Think, 0), "think", "mean time between the end of a query and the next")
	f.Var(flags.Count(&o.Orders, 1000, 10_000_000), "orders", "number of rows of the table of orders")
	f.Var(flags.Count(&o.Rounds, 1, 100), "rounds", "number of runs of the streams under each contender")
	f.StringVar(&o.Spark, "spark", "", "`directory` of an installation of Spark")
	f.StringVar(&o.Programs, "programs", "connector/spark/testdata", "`directory` with session.py and tpch.sql")
	f.StringVar(&o.Bellows, "bellows", "bellows", "`program` to measure")
	f.StringVar(&o.Out, "out", "bellows-sparkstream", "`directory` for results")
	f.StringVar(&o.Dir, "dir", "", "`directory` for working files; default: that for temporary files")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	_ = cmd.MarkFlagRequired("spark")
	return cmd
}
