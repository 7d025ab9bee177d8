// Command bellows runs memory-hungry batch jobs that share memory: on this machine, or in a simulation of many
// machines. This package has only flags and wiring.
package main

import (
	"os"

	"github.com/bellows-rm/bellows/door/cli/command"
	_ "github.com/bellows-rm/bellows/door/cli/supervisor"
	"github.com/bellows-rm/bellows/door/sandbox/hungry"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == hungry.Command {
		os.Exit(hungry.Run(os.Args[2:]))
	}
	os.Exit(newTree().Execute(os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
