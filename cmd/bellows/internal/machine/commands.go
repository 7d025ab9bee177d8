// Package machine is the commands for this machine: to bring its daemon up and down, look at it, prune what it keeps, and manage
// swap.
package machine

import "github.com/spf13/cobra"

// Commands returns the commands in the order in which help lists them.
func Commands() []*cobra.Command {
	return []*cobra.Command{upCommand(), statusCommand(), downCommand(), pruneCommand(), swapCommand()}
}
