// Package supervisor makes each program that imports it the supervisor of its containers, too: the agent starts the
// program with the arguments of agent.SuperviseCommand.
//
// The supervisor runs while packages are initialized. Packages are initialized in the order of their paths, those
// that others import first: so what a supervisor does not need, such as the metrics of the API, is not initialized at
// all. That takes 2 milliseconds, and half a megabyte for as long as the container runs.
package supervisor

import (
	"os"

	"github.com/bellows-rm/bellows/node/agent"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand {
		os.Exit(agent.Supervise(os.Args[2:]))
	}
}
