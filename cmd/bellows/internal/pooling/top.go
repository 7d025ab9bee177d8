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
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

const topLong = `Show a pool, its executors and its applications, as they change, until q. After
a restart of the daemon, it connects again. docs/pools.md describes the states
of executors: queued, starting, registered, assigned, attached, parked,
draining, expired and lost.

FOR is how long an executor has run its task, has run nothing, or is gone; DONE
the number of tasks it has run; JOB its job. Of an application, HELD are its
executors, WAITING and RUNNING its tasks, and RESULTS those not yet collected.
h shows the keys: e explains the number of executors, p and r pause and resume
the job of the selected executor, and K kills it.`

func topCommand() *cobra.Command {
	var p place.Place
	var user string
	var asText, asJSON bool
	cmd := &cobra.Command{
		Use:   "top POOL",
		Short: "Watch the executors and applications of a pool",
		Long:  topLong,
		Example: `  bellows pool top sums
  bellows pool top sums --once
  bellows pool top sums --once --json`,
		Args: onePool,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
			out := cmd.OutOrStdout()
			switch {
			case asJSON && !asText:
				return command.Usagef("--json: needs --once")
			case !asText:
				return top.ShowPool(cmd, client, explanation, func(ctx context.Context) (api.PoolDetail, error) {
					return client.Pool(ctx, user, args[0])
				})
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
	cmd.Flags().BoolVar(&asText, "once", false, "print it once, as text")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --once: print JSON")
	userFlag(cmd, &user)
	cmd.ValidArgsFunction = p.CompletePools()
	p.Flags(cmd, false)
	return cmd
}

// printPool prints a pool, its applications and its executors.
func printPool(w io.Writer, d *api.PoolDetail) error {
	if _, err := fmt.Fprint(w, head(d, terminal.Columns(w))); err != nil {
		return err
	}
	return top.WritePoolTables(w, d)
}

// head returns the lines about the pool itself.
func head(d *api.PoolDetail, columns int) string {
	var text strings.Builder
	say := func(format string, values ...any) {
		text.WriteString(fold(fmt.Sprintf(format, values...), columns) + "\n")
	}
	say("pool %s of %s: %s, policy %s", d.Name, d.User, sizeWords(&d.PoolSummary), d.Spec.Policy)
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
func sizeWords(s *api.PoolSummary) string {
	return fmt.Sprintf("%s (%d busy, %d idle, %d starting), %d wanted, from %d to %d",
		terminal.Count(s.Executors, "executor"), s.Busy, s.Idle, s.Starting, s.Wanted, s.Spec.Min, s.Spec.Max)
}
