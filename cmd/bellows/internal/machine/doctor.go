package machine

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/doctor"
	"github.com/bellows-rm/bellows/door/terminal"
)

// examined is the output of `doctor --json`.
type examined struct {
	Findings []doctor.Finding `json:"findings" doc:"at least one for each check"`
	Problems int              `json:"problems" doc:"findings of level problem; above 0 the exit code is 1"`
	Warnings int              `json:"warnings" doc:"findings of level warning"`
}

func doctorCommand() *cobra.Command {
	var p place.Place
	var asJSON bool
	cmd := &cobra.Command{
		Use:        "doctor",
		SuggestFor: []string{"check"},
		Short:      "Check whether this machine is ready",
		Long: `Check whether this machine is ready for a daemon, and what a daemon on it
lacks: kernel, control groups, swap, permissions, limits, disk, clock, and the
daemon, if one runs. No daemon is needed, and nothing is changed. Run it as the
user who runs "bellows up", with the same --state and --socket, and in the same
control group. A user whom another user's daemon serves gets findings about that
daemon only.

A warning means that bellows works with less than it could, a problem that it
does not start or does not work. The line below a finding says what to do. The
exit code is 1 if there is a problem.`,
		Example: `  bellows doctor
  systemd-run --user --scope -p Delegate=yes bellows doctor
  bellows doctor --json | jq '.findings[] | select(.level != "ok")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := p.Client(); err != nil { // which finds the daemon of root for a user who has none
				return err
			}
			if _, err := os.Stat(p.Socket); err != nil { // so that the daemon would be this user's
				if err := p.Fill(); err != nil {
					return err
				}
			}
			all := count(doctor.Examine(cmd.Context(),
				doctor.Config{State: p.State, Socket: p.Socket, Version: command.VersionText()}))
			write := all.print
			if asJSON {
				write = func(w io.Writer) error { return terminal.WriteJSON(w, all) }
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return err
			}
			if all.Problems > 0 {
				return command.Code(command.Failed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, true)
	return cmd
}

func count(findings []doctor.Finding) examined {
	all := examined{Findings: findings}
	for _, f := range findings {
		switch f.Level {
		case doctor.Problem:
			all.Problems++
		case doctor.Warning:
			all.Warnings++
		}
	}
	return all
}

// print prints a line for each finding, and a line below it with its remedy.
func (e *examined) print(w io.Writer) error {
	const heads, gap = "CHECK", "  "
	check, level := utf8.RuneCountInString(heads), len(doctor.Problem.String())
	for _, f := range e.Findings {
		check = max(check, utf8.RuneCountInString(f.Check))
	}
	indent := strings.Repeat(" ", check+level+2*len(gap))
	fold := func(text string) string {
		return terminal.Fold(text, terminal.Columns(w)-len(indent), indent)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-*s%s%-*s%s%s\n", check, heads, gap, level, "RESULT", gap, "FOUND")
	for _, f := range e.Findings {
		fmt.Fprintf(&text, "%-*s%s%-*s%s%s\n", check, f.Check, gap, level, f.Level, gap, fold(f.Found))
		if f.Remedy != "" {
			fmt.Fprintf(&text, "%s%s\n", indent, fold("-> "+f.Remedy))
		}
	}
	fmt.Fprintf(&text, "\n%s, %s\n", terminal.Count(e.Problems, "problem"), terminal.Count(e.Warnings, "warning"))
	_, err := io.WriteString(w, text.String())
	return err
}
