// Command bellows runs memory-hungry batch work so that it shares memory: on this machine, or in a simulation of many.
// This package holds flags and wiring only.
package main

import (
	"os"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/internal/hungry"
)

func main() {
	// Supervisors of containers are this program too; they must stay small.
	if len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand {
		os.Exit(agent.Supervise(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == hungry.Command {
		os.Exit(hungry.Run(os.Args[2:]))
	}
	os.Exit(newTree().Execute(os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
