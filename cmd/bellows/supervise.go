package main

import (
	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/node/agent"
)

// superviseCommand is the command that the agent starts for every container; package
// supervisor runs it before main. It is in the tree so that it is no unknown command.
func superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:                agent.SuperviseCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return command.Code(agent.Supervise(args)) },
	}
}
