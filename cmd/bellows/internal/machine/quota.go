package machine

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

func quotaCommand() *cobra.Command {
	var p place.Place
	var user string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Show your quotas, and how much of each is taken",
		Long: `Show your quotas and those of queues, and how much of each is taken now; for
operators the quotas of all users. What would exceed a quota waits or is
refused, as ABOVE IT says. docs/multi-user.md says what each quota counts.

Output is measured every 10 s; "-" means that it has not been measured yet.`,
		Example: `  bellows quota
  bellows quota --user ada    (as an operator)`,
		Args: cobra.NoArgs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error {
			all, err := client.Quotas(cmd.Context(), user)
			switch {
			case err != nil:
				return err
			case asJSON:
				return terminal.WriteJSON(cmd.OutOrStdout(), map[string]any{"quotas": terminal.OrEmpty(all)})
			}
			return printQuotas(cmd.OutOrStdout(), all)
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "only the quotas of the user of this `name`; operators may name any")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, false)
	return cmd
}

// printQuotas prints one row per quota.
func printQuotas(w io.Writer, all []api.QuotaUse) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no quotas")
		return err
	}
	t := terminal.NewTable("OF", "QUOTA", ">TAKEN", ">LIMIT", "ABOVE IT")
	t.Shrinks = 0
	for _, q := range all {
		limit, taken := q.Kind.Format(q.Most), "-"
		if q.Kind == cluster.QuotaSubmissions {
			limit += " a minute"
		}
		if q.Taken != nil {
			taken = q.Kind.Format(*q.Taken)
		}
		above := "waits"
		if q.Refuses {
			above = "refused"
		}
		t.Add(cluster.Party{Queue: q.Queue != "", Name: q.User + q.Queue}.String(), q.Kind.String(), taken, limit, above)
	}
	return t.Write(w)
}
