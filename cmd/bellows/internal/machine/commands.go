// Package machine has the commands for this machine: to configure, start and end its daemon, print its status and
// quotas, check the machine, prune records, and manage tokens and swap.
package machine

import "github.com/spf13/cobra"

// Commands returns the commands in the order in which help lists them.
func Commands() []*cobra.Command {
	return []*cobra.Command{upCommand(), statusCommand(), quotaCommand(), doctorCommand(), downCommand(), pruneCommand(),
		configCommand(), tokenCommand(), swapCommand()}
}
