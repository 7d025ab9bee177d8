package pooling

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/top"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/server"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/pool/pools"
)

const topLong = `Show a pool, its executors and its applications, as they change, until q. After
a restart of the daemon, it connects again.

The states of an executor:

  queued      its job waits for its start: "bellows explain JOB" says why
  starting    its program has begun
  registered  it has run nothing yet, and belongs to no application
  assigned    it belongs to the application APP, and runs nothing
  attached    it runs a task of APP; TASK is STAGE.TASK. Or it serves APP, which
              starts its own tasks
  parked      it has run tasks, and belongs to no application
  draining    it ends when its task has ended
  expired     it has not been heard of; if it lives, it registers again
  lost        its process has ended

FOR is for how long it has run the task, has run nothing, or is gone; DONE how
many tasks it has run; JOB the job that it is. Of an application, HELD are the
executors that belong to it, WAITING and RUNNING the tasks that have not ended,
and RESULTS those that it has not collected yet. One that starts its own tasks
runs attachments of executors, as many as it demands; WHY says how many, and how
many of its executors it is asked for, because others are entitled to them.

`

func topCommand() *cobra.Command {
	var p place.Place
	var user string
	var asText, asJSON bool
	cmd := &cobra.Command{
		Use:   "top POOL",
		Short: "Watch the executors and applications of a pool",
		Long:  topLong + "Keys:\n  " + strings.Join(top.PoolKeys, "\n  "),
		Example: `  bellows pool top sums
  bellows pool top sums --once
  bellows pool top sums --once --json`,
		Args: onePool,
		RunE: p.Run(func(cmd *cobra.Command, client *server.Client, args []string) error {
			out := cmd.OutOrStdout()
			switch {
			case asJSON && !asText:
				return command.Usagef("--json: needs --once")
			case !asText:
				return top.ShowPool(cmd, client, explanation, func(ctx context.Context) (pools.Detail, error) { return client.Pool(ctx, user, args[0]) })
			}
			d, err := client.Pool(cmd.Context(), user, args[0])
			switch {
			case err != nil:
				return err
			case asJSON:
				return terminal.WriteJSON(out, d)
			}
			return printPool(out, &d)
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asText, "once", false, "print it once, as text")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --once: print JSON")
	userFlag(cmd, &user)
	cmd.ValidArgsFunction = p.CompletePools()
	p.Flags(cmd, false)
	return cmd
}

// printPool prints a pool, its applications and its executors.
func printPool(w io.Writer, d *pools.Detail) error {
	if _, err := fmt.Fprint(w, head(d, terminal.Columns(w))); err != nil {
		return err
	}
	return top.WritePoolTables(w, d)
}

// head returns the lines about the pool itself.
func head(d *pools.Detail, columns int) string {
	var text strings.Builder
	say := func(format string, values ...any) {
		text.WriteString(fold(fmt.Sprintf(format, values...), columns) + "\n")
	}
	say("pool %s of %s: %s, policy %s", d.Name, d.User, sizeWords(&d.Summary), d.Spec.Policy)
	if d.Why != "" {
		say("%s", d.Why)
	}
	if trouble := top.PoolTrouble(d); trouble != "" {
		say("%s", trouble)
	}
	say("%s", top.PoolRuns(d))
	return text.String()
}

// sizeWords says how many executors there are, and should be.
func sizeWords(s *pools.Summary) string {
	return fmt.Sprintf("%s (%d busy, %d idle, %d starting), %d wanted, from %d to %d", terminal.Count(s.Executors, "executor"), s.Busy, s.Idle, s.Starting, s.Wanted, s.Spec.Min, s.Spec.Max)
}
