package jobs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
)

func parseJob(text string) (cluster.JobID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, command.Usagef("job %q: must be the id of a job, such as 7; `bellows ps --all` lists them", text)
	}
	return cluster.JobID(id), nil
}

// The arguments of commands that take the id of one job, and of those that take several.
var (
	oneJob   = command.OneArgument("job: must be the id of one job")
	someJobs = command.SomeArguments("job: must be the id of at least one job")
)

// parseJobs reads the ids of jobs.
func parseJobs(args []string) ([]cluster.JobID, error) {
	ids := make([]cluster.JobID, len(args))
	for i, text := range args {
		var err error
		if ids[i], err = parseJob(text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// eachOf calls a function for each job or task, also after an error. It returns the first error and prints the other
// errors.
func eachOf[ID any](cmd *cobra.Command, ids []ID, do func(ID) error) (first error) {
	for _, id := range ids {
		switch err := do(id); {
		case err == nil:
		case first == nil:
			first = err
		default:
			fmt.Fprintln(cmd.ErrOrStderr(), "bellows:", err)
		}
	}
	return first
}

// completeJobs offers the ids of jobs that have not ended to a shell.
func completeJobs(p *place.Place) place.Completion {
	return p.Complete(func(ctx context.Context, client *client.Client) (ids []string, err error) {
		jobs, err := client.Jobs(ctx)
		for _, j := range jobs {
			ids = append(ids, strconv.FormatInt(int64(j.ID), 10)+"\t"+j.Name)
		}
		return ids, err
	})
}
