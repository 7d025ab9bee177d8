// Package machine has the commands for this machine: to start and end its daemon, print its status, prune its records,
// and manage swap.
package machine

import "github.com/spf13/cobra"

// Commands returns the commands in the order in which help lists them.
func Commands() []*cobra.Command {
	return []*cobra.Command{upCommand(), statusCommand(), downCommand(), pruneCommand(), swapCommand()}
}
