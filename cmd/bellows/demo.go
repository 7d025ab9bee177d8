package main

import (
	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/demo"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
)

const demoLong = `Run the same real programs twice on a small part of this machine, with memory in
fixed boxes and with memory that is shared, check their results, and say which
was faster and why. It takes two minutes. The parts are:

elastic   sorts that can run with less memory at a price in time
flex      programs whose memory grows and shrinks

It needs GNU sort, two cores, 640 MiB of memory, 2 GiB of disk, the rights of
"bellows up", and for flex swap, which root creates if there is none. It removes
its files. Other work on the machine disturbs both parts. See docs/demo.md.`

// demoOptions are the flags of demo.
type demoOptions struct {
	part, dir     string
	asJSON, quiet bool
}

func demoCommand() *cobra.Command {
	o := demoOptions{part: "both"}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See real programs share too little memory",
		Long:  demoLong,
		Example: `  bellows demo
  bellows demo --part flex`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.Var(flags.Choice(&o.part, "both", demo.Elastic, demo.Flex), "part", "`part` to run: elastic, flex or both")
	f.StringVar(&o.dir, "dir", "", "`directory` to work in, on a disk; default: that for temporary files")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func (o *demoOptions) run(cmd *cobra.Command) error {
	var line *terminal.Progress // none
	if !o.quiet {
		line = terminal.NewProgress(cmd.ErrOrStderr(), "demo")
	}
	with := demo.Options{Parts: []string{o.part}, Dir: o.dir, Say: line.Say, Show: line.Show}
	if o.part == "both" {
		with.Parts = []string{demo.Elastic, demo.Flex}
	}
	res, err := demo.Demonstrate(cmd.Context(), with)
	line.Clear()
	if err != nil {
		return err
	}
	if o.asJSON {
		err = terminal.WriteJSON(cmd.OutOrStdout(), res)
	} else {
		err = demo.Write(cmd.OutOrStdout(), res)
	}
	for i := range res.Parts {
		if p := &res.Parts[i]; err == nil && len(p.Fixed.Wrong)+len(p.Shared.Wrong) > 0 {
			return command.Code(command.Failed)
		}
	}
	return err
}
