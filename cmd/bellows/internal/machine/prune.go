package machine

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
)

func pruneCommand() *cobra.Command {
	var p place.Place
	var olderThan time.Duration
	var keep int
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:        "prune",
		SuggestFor: []string{"clean", "rm"},
		Short:      "Remove jobs that have ended",
		Long: `Remove ended jobs, with their tasks and their output: the jobs that ended longer
ago than --older-than, except for the newest --keep. Jobs that wait or run stay,
as do jobs that ended within the last 10 seconds.

The daemon itself removes jobs by the flags --keep-... of "bellows up". Its log
says how many jobs were removed. The space is used again; the file of the store
does not become smaller.`,
		Example: `  bellows prune --older-than 168h --dry-run
  bellows prune --keep 100
  bellows prune --older-than 24h --keep 100`,
		Args: cobra.NoArgs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error {
			if !cmd.Flags().Changed("older-than") && !cmd.Flags().Changed("keep") {
				return command.Usagef("older-than, keep: one of them must be given, to say what stays")
			}
			pruned, err := client.Prune(cmd.Context(), olderThan, keep, dry)
			if err != nil {
				return err
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), pruned)
			}
			text := "nothing to remove"
			if n := len(pruned.Jobs); n > 0 {
				text = fmt.Sprintf("removed %s and %s of output: %s", terminal.Count(n, "job"),
					resource.FormatMemory(resource.Amount(pruned.OutputBytes)), cluster.JobRanges(pruned.Jobs))
				if dry {
					text = "would have " + text
				}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		}),
	}
	f := cmd.Flags()
	f.Var(flags.Duration(&olderThan, 0), "older-than", "remove only jobs that ended at least this long ago")
	f.Var(flags.Count(&keep, 0, 1<<30), "keep", "number of newest ended jobs to keep in any case")
	f.BoolVar(&dry, "dry-run", false, "print what would be removed, and remove nothing")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, false)
	return cmd
}
