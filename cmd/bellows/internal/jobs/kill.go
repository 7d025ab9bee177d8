package jobs

import (
	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
)

func killCommand() *cobra.Command {
	var p place.Place
	var waits bool
	cmd := &cobra.Command{
		Use:        "kill JOB...",
		SuggestFor: []string{"stop", "cancel", "scancel", "qdel", "rm", "terminate"},
		Short:      "Kill jobs",
		Long: `Kill jobs: running tasks are killed, and waiting tasks never start. The output
of the jobs stays.`,
		Example: `  bellows kill 7
  bellows kill --wait 7 8 9`,
		Args: someJobs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
			ids, err := parseJobs(args)
			if err != nil {
				return err
			}
			return eachOf(cmd, ids, func(id cluster.JobID) error {
				err := client.Kill(cmd.Context(), id)
				if err == nil && waits {
					_, err = client.Wait(cmd.Context(), id)
				}
				return err
			})
		}),
		ValidArgsFunction: completeJobs(&p),
	}
	cmd.Flags().BoolVar(&waits, "wait", false, "wait until the jobs have ended")
	p.Flags(cmd, false)
	return cmd
}
