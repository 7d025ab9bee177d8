package jobs

import (
	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
)

const waitLong = `Wait until jobs have ended. The exit code is that of the job: 0 if it succeeded;
if it failed, that of the task that made it fail; 1 if it was killed before it
began. Of several jobs it is that of the first, in the order given, that did
not succeed; all are waited for. It is 2 if there is no such job.

A daemon that goes away meanwhile is waited for: jobs go on without it.`

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
		RunE:              func(cmd *cobra.Command, args []string) error { return waitFor(cmd, &p, args) },
		ValidArgsFunction: completeJobs(&p),
	}
	cmd.Flags().SortFlags = false
	p.Flags(cmd, false)
	return cmd
}

func waitFor(cmd *cobra.Command, p *place.Place, args []string) error {
	ids, err := parseJobs(args)
	if err != nil {
		return err
	}
	client, err := p.Client()
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
