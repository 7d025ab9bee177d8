// Package top has the command that shows the machine and its jobs on a terminal while they change.
package top

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
)

const long = `Show the machine and the jobs that have not ended, as they change, until q. The
daemon sends what changes; after a restart of the daemon, top connects again.

STATE is as in "bellows ps". ASKED is the limit that was asked for the tasks
that have started, RESV what is reserved for them, USED what they use without
page cache, PEAK their peak with it. CORES are reserved, CPU was used in the
last second. DONE is the number of tasks that succeeded, of all, or the phase of
the forecast, as p2/5. docs/watching.md describes all of it, and the bars.

h shows the keys: e explains the selected job, p and r pause and resume it, K
kills it, s sorts, / filters, u and f choose a user and a state, t shows tasks.`

// Command returns the command.
func Command() *cobra.Command {
	var p place.Place
	var c choice
	var by string
	var asText bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the machine and its jobs",
		Long:  long,
		Example: `  bellows top
  bellows top --user ada --sort used
  bellows top --once --state paused`,
		Args: cobra.NoArgs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error {
			if err := c.check(by); err != nil {
				return err
			}
			s := newState(c)
			if !asText {
				return show(cmd, "top", client, s, func(ctx context.Context) watched { return s.watching(ctx, client) })
			}
			s.columns = terminal.Columns(cmd.OutOrStdout())
			text, err := once(cmd.Context(), client, s)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		}),
	}
	cmd.Flags().BoolVar(&asText, "once", false, "print it once, as text, with all jobs")
	cmd.Flags().StringVar(&c.user, "user", "", "only jobs of this `user`")
	cmd.Flags().StringVar(&c.state, "state", "", "only jobs in this `state`, such as paused")
	cmd.Flags().StringVar(&by, "sort", "job", "sort by this `column`, or after a - the other way round: "+jobTable.names())
	cmd.Flags().BoolVar(&c.tasks, "tasks", false, "tasks instead of jobs")
	p.Flags(cmd, false)
	return cmd
}

// check checks what flags chose, and sets the column to sort by.
func (c *choice) check(by string) error {
	name, reversed := strings.CutPrefix(by, "-")
	at, ok := jobTable.find(name)
	switch {
	case !ok:
		return command.Usagef("--sort %q: must be one of %s, or one of them after a -", by, jobTable.names())
	case c.state != "" && !slices.Contains(states, c.state):
		return command.Usagef("--state %q: must be one of %s", c.state, strings.Join(states, ", "))
	}
	c.by, c.reversed = at, reversed
	return nil
}

// show shows a screen on the terminal of a command, which has a name.
func show(cmd *cobra.Command, name string, client *client.Client, s screen, watch func(context.Context) watched) error {
	in, readable := cmd.InOrStdin().(*os.File)
	out, writable := cmd.OutOrStdout().(*os.File)
	switch {
	case !readable || !writable || !terminal.Is(in) || !terminal.Is(out):
		return command.Usagef("%s: needs a terminal; --once prints the screen as text", name)
	case !drawable(os.Getenv):
		return command.Usagef("%s: $TERM is %q, a terminal on which nothing can be drawn; --once prints the screen as text",
			name, os.Getenv("TERM"))
	}
	// The end of the terminal and Ctrl-\ end the program, too, which gives the terminal back first.
	ctx, stop := command.Heed(cmd.Context(), unix.SIGHUP, unix.SIGQUIT)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return newProgram(client, s, watch(ctx), colourful(os.Getenv)).run(ctx, func() (*terminal.Console, error) {
		return terminal.OpenConsole(in, out)
	})
}

// drawable reports whether the terminal can show lines at any place of its screen.
func drawable(getenv func(string) string) bool {
	return getenv("TERM") != "" && getenv("TERM") != "dumb"
}

// colourful reports whether the terminal has colours, and the user wants them: https://no-color.org.
func colourful(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && !strings.HasPrefix(getenv("TERM"), "vt") &&
		!strings.HasSuffix(getenv("TERM"), "-mono")
}
