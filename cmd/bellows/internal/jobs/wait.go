package jobs

import (
	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/client"
)

const waitLong = `Wait until jobs have ended. The exit code is 0 if the job succeeded; if it
failed, the exit code of the task that made it fail; 1 if it was killed before
it started; 2 if there is no such job. With several jobs, it is the exit code of
the first job, in the given order, that did not succeed; all jobs are waited
for.

If the daemon ends meanwhile, the command waits for the next daemon: jobs
continue without one.`

func waitCommand() *cobra.Command {
	var p place.Place
	cmd := &cobra.Command{
		Use:   "wait JOB...",
		Short: "Wait until jobs have ended",
		Long:  waitLong,
		Example: `  bellows wait 7
  job=$(bellows run -d --memory 1GiB -- make)
  bellows wait $job && make install`,
		Args:              someJobs,
		RunE:              p.Run(waitFor),
		ValidArgsFunction: completeJobs(&p),
	}
	p.Flags(cmd, false)
	return cmd
}

func waitFor(cmd *cobra.Command, client *client.Client, args []string) error {
	ids, err := parseJobs(args)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	for _, id := range ids {
		// An unknown job is reported before waiting for the other jobs.
		if _, err := client.Job(ctx, id, false); err != nil {
			return err
		}
	}
	var first error
	for _, id := range ids {
		a := attached{client: client, id: id, err: cmd.ErrOrStderr()}
		job, err := a.wait(ctx)
		if err != nil {
			return err
		}
		if err := a.result(&job, false); first == nil {
			first = err
		}
	}
	return first
}
