package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/simulate"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/studies/firstuse"
)

const firstuseLong = `Run twelve programs that people know, with no flag but the command, on a node
that has memory for a few of them: under bellows, in boxes of their peak, under
GNU parallel in four ways, and all at once. Each result must be that of the
program alone. The kinds of jobs are:

compute   each uses a core
wait      each waits for its input, which comes as from a slow network

It needs root and the programs, says which are missing, and makes its own swap.
One call measures one node (studies/first-use.md).`

const firstuseExample = `  sudo bellows-lab firstuse
  sudo bellows-lab firstuse --kind wait --node 1GiB --swap 0
  sudo bellows-lab firstuse --tenths 1 --rounds 1 --node 400MiB --out trial`

func firstuseCommand() *cobra.Command {
	o := firstuse.Options{Kind: firstuse.Compute, Node: 2 * resource.GiB, Swap: 6 * resource.GiB, Rounds: 5, Tenths: 10}
	asJSON, quiet := false, false
	cmd := &cobra.Command{
		Use:     "firstuse",
		Short:   "Compare what people get who run known programs without a flag",
		Long:    firstuseLong,
		Example: firstuseExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range o.Against {
				if all := firstuse.Others(); !slices.Contains(all, name) {
					return command.Usage(fmt.Errorf("--against %q: must be of %s", name, strings.Join(all, ", ")))
				}
			}
			var line *terminal.Progress // none
			if !quiet {
				line = terminal.NewProgress(cmd.ErrOrStderr(), "firstuse")
			}
			o.Say, o.Show = line.Say, line.Show
			res, err := firstuse.Measure(cmd.Context(), o)
			line.Clear()
			if err != nil {
				return err
			}
			if res.Why == "" {
				write := func(w io.Writer) error { return terminal.WriteJSON(w, res) }
				if err := simulate.WriteFile(filepath.Join(o.Out, "result.json"), write); err != nil {
					return err
				}
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), res)
			}
			if err := res.Write(cmd.OutOrStdout()); err != nil || res.Why == "" {
				return err
			}
			return command.Code(command.Failed)
		},
	}
	f := cmd.Flags()
	f.Var(flags.Choice(&o.Kind, firstuse.Kinds()...), "kind", "kind of jobs: compute or wait")
	f.Var(flags.Memory(&o.Node), "node", "memory of the node")
	f.Var(flags.Memory(&o.Swap).OrZero(), "swap", "its swap, for which a file is made; 0: none")
	f.Var(flags.Count(&o.Rounds, 1, 100), "rounds",
		"number of runs of the mix under each contender; at least 5 are needed for a result")
	f.Var(flags.Texts(&o.Against), "against", "contenders beside bellows; default: all, which a result needs")
	f.Var(flags.Count(&o.Tenths, 1, 20), "tenths", "size of the inputs, in tenths of the full size")
	f.StringVar(&o.Bellows, "bellows", "bellows", "`program` to measure")
	f.StringVar(&o.Out, "out", "bellows-firstuse", "`directory` for results")
	f.StringVar(&o.Dir, "dir", "",
		"`directory` for inputs and swap, up to 10 GiB; default: that for temporary files")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	return cmd
}
