// Package jobs has the commands for jobs: to run, submit, list, explain, wait for, pause and end them.
package jobs

import "github.com/spf13/cobra"

// Commands returns the commands in the order in which help lists them.
func Commands() []*cobra.Command {
	return []*cobra.Command{runCommand(), submitCommand(), planCommand(), psCommand(), logsCommand(), explainCommand(),
		waitCommand(), pauseCommand(), resumeCommand(), killCommand()}
}
