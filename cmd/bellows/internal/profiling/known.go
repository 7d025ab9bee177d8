package profiling

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/phases"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// knownCommands returns the commands about what is known of applications: what was measured, and what runs taught.
func knownCommands() []*cobra.Command {
	return []*cobra.Command{listCommand(), showCommand(), importCommand(), forgetCommand()}
}

func listCommand() *cobra.Command {
	var p place.Place
	var asJSON bool
	var user string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what is known of your applications",
		Long: `List what is known of your applications: what "bellows profile" measured, and
what runs taught. RUNS is the number of runs that taught, TIME the expected run
time of a run like the latest one, IDEAL the ideal memory as it was measured,
and SLOWDOWN how many times as long it takes with the least memory.`,
		Example: `  bellows profile list`,
		Args:    cobra.NoArgs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error {
			apps, err := client.Apps(cmd.Context(), user)
			switch {
			case err != nil:
				return err
			case asJSON:
				return terminal.WriteJSON(cmd.OutOrStdout(), map[string]any{"apps": terminal.OrEmpty(apps)})
			}
			return printApps(cmd.OutOrStdout(), apps, time.Now())
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	userFlag(cmd, &user)
	p.Flags(cmd, false)
	return cmd
}

// userFlag adds the flag with which operators name a user.
func userFlag(cmd *cobra.Command, user *string) {
	cmd.Flags().StringVar(user, "user", "",
		"the applications of the user of this `name`, for operators; by default your own")
}

// printApps prints one row per application.
func printApps(w io.Writer, apps []api.Application, now time.Time) error {
	t := terminal.NewTable("NAME", ">RUNS", ">LAST", ">TIME", ">PHASES", ">ERROR", ">IDEAL", ">SLOWDOWN", "")
	t.Notes = true
	for i := range apps {
		a := &apps[i]
		row := []string{terminal.Cut(a.Name, 40), "-", "-", "-", "-", "-", "-", "-", a.Trouble}
		if len(a.Learned) > 0 {
			l := &a.Learned[0]
			v := &l.Variants[0]
			row[1], row[2], row[3], row[4] = fmt.Sprint(l.Runs), terminal.Age(now.Sub(l.Last))+" ago",
				terminal.Age(seconds(v.DurationSeconds)), fmt.Sprint(len(v.Phases))
			if v.Told.Samples > 1 {
				row[5] = fmt.Sprintf("%.0f%%", 100*v.Told.Error)
			}
			if len(a.Learned) > 1 {
				row[8] = fmt.Sprintf("the first of %d stages", len(a.Learned))
			}
		}
		if m := a.Measured; m != nil {
			row[6], row[7] = resource.FormatMemory(m.IdealMemory), fmt.Sprintf("%.2f", m.Elasticity.Worst())
		}
		t.Add(row...)
	}
	return t.Write(w)
}

func showCommand() *cobra.Command {
	var p place.Place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show what is known of an application",
		Long: `Show what is known of an application: what less memory costs, as "bellows
profile" measured it, and the phases that its runs taught, for a run with the
cores, the input and the memory of the latest one.`,
		Example: `  bellows profile show sort-big
  bellows profile show 'sort -S # *.txt'`,
		Args: command.OneArgument("name: must be one name of `bellows profile list`"),
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
			a, err := client.App(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case asJSON:
				return terminal.WriteJSON(cmd.OutOrStdout(), a)
			}
			return printApp(cmd.OutOrStdout(), &a)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.ValidArgsFunction = p.CompleteApps()
	p.Flags(cmd, false)
	return cmd
}

// printApp prints what was measured of an application, and then what its runs taught, stage by stage.
func printApp(w io.Writer, a *api.Application) error {
	say := func(text string) {
		fmt.Fprintf(w, "  %s\n", terminal.Fold(cluster.Printable(text), terminal.Width-2, "  "))
	}
	fmt.Fprintln(w, cluster.Printable(a.Name))
	if a.Trouble != "" {
		say(a.Trouble)
	}
	if m := a.Measured; m != nil {
		say(fmt.Sprintf("measured %s: ideal memory %s, %v there, at most %.2f times as long with less, down to %s",
			m.Made.Local().Format(time.DateTime), resource.FormatMemory(m.IdealMemory), m.Duration.Round(10*time.Millisecond),
			m.Elasticity.Worst(), resource.FormatMemory(m.MinMemory)))
	}
	if len(a.Learned) == 0 {
		say("no run has taught when it demands what")
	}
	for i := range a.Learned {
		l := &a.Learned[i]
		head := fmt.Sprintf("%s taught, the latest ended %s", terminal.Count(l.Runs, "run"),
			l.Last.Local().Format(time.DateTime))
		if l.Stage != "" {
			head = "stage " + l.Stage + ": " + head
		}
		fmt.Fprintln(w)
		say(head + "; a run like the latest, with " + featuresOf(l) + ", should go like this:")
		for k := range l.Variants {
			if err := printVariant(w, &l.Variants[k], say); err != nil {
				return err
			}
		}
		if len(l.Notes) > 0 {
			fmt.Fprintln(w)
		}
		for _, n := range l.Notes {
			say(n)
		}
		sayDoubtful(w, l, say)
	}
	return nil
}

// sayDoubtful prints the runs that were not wholly measured or are not sound, and why.
func sayDoubtful(w io.Writer, l *api.Learned, say func(string)) {
	if l.DoubtfulRuns == 0 {
		return
	}
	fmt.Fprintln(w)
	say(fmt.Sprintf("%s taught with reservations; the latest:", terminal.Count(l.DoubtfulRuns, "run")))
	for _, r := range l.Doubtful {
		say("ended " + r.Ended.Local().Format(time.DateTime) + ": " + strings.Join(r.Notes, "; "))
	}
}

func printVariant(w io.Writer, v *api.LearnedVariant, say func(string)) error {
	text := fmt.Sprintf("%s, model %s, from %s", terminal.Age(seconds(v.DurationSeconds)), v.Told.Model,
		terminal.Count(v.Told.Samples, "run"))
	if v.Told.Samples > 1 {
		text += fmt.Sprintf(", mean error %.0f %%", 100*v.Told.Error)
	}
	if v.Why != "" {
		text = fmt.Sprintf("or, as %.0f %% of runs (%s): %s", 100*v.Share, v.Why, text)
	}
	fmt.Fprintln(w)
	say(text)
	if len(v.Phases) == 0 {
		return nil
	}
	return phases.Print(w, v.Phases, v.Unknown)
}

// featuresOf says what the latest run had.
func featuresOf(l *api.Learned) string {
	text := resource.FormatMemory(resource.Amount(l.MemoryBytes)) + " and " +
		resource.CPU.Format(resource.Amount(l.CPUMillicores))
	if l.InputBytes > 0 {
		return text + " for " + resource.FormatMemory(resource.Amount(l.InputBytes)) + " of input"
	}
	return text + " for an unknown input"
}

func forgetCommand() *cobra.Command {
	var p place.Place
	var user string
	var all bool
	cmd := &cobra.Command{
		Use:   "forget NAME...",
		Short: "Forget what is known of applications",
		Long:  "Forget all that is known of applications: what was measured, and what their runs\ntaught.",
		Example: `  bellows profile forget sort-big
  bellows profile forget --all --user ada    (as an operator)`,
		Args: func(_ *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return command.Usagef("name: must be names of `bellows profile list`, or else --all must be given")
			}
			return nil
		},
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, names []string) error {
			if all {
				apps, err := client.Apps(cmd.Context(), user)
				if err != nil {
					return err
				}
				for i := range apps {
					names = append(names, apps[i].Name)
				}
			}
			for _, name := range slices.Compact(names) {
				if err := client.ForgetApp(cmd.Context(), user, name); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "forget all applications")
	userFlag(cmd, &user)
	cmd.ValidArgsFunction = p.CompleteApps()
	p.Flags(cmd, false)
	return cmd
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
