package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootLong = `bellows runs memory-hungry batch work so that it shares memory instead of
waiting for fixed boxes: a task that would have to wait may run now with less
memory than its ideal, at a known price in time, if its job ends no later.

On one machine, as root:

  bellows up --memory 4GiB --detach       manage 4 GiB of this machine
  bellows run --memory 1GiB --min-memory 256MiB -- sort -S {memory} big.txt
  bellows ps

Without a machine:

  bellows simulate --workload uniform --policy fair,yarn-me

Exit codes: 0 done, 1 the work failed, 2 the input or the usage was wrong;
an attached run returns the exit code of its command.`

// usageTemplate is laid out for terminals of 80 columns, without what nobody needs to read twice.
const usageTemplate = `Usage:{{if and .Runnable (not .HasAvailableSubCommands)}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$commands := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $commands}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .Groups}}

More:{{else}}

Commands:{{end}}{{range $commands}}{{if (and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{wrapped .LocalFlags | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

"{{.CommandPath}} COMMAND --help" says more about a command.{{end}}
`

// newRoot returns the command tree. *started becomes true when the flags and arguments of a command were accepted.
func newRoot(io streams) (root *cobra.Command, started *bool) {
	started = new(bool)
	cobra.AddTemplateFunc("wrapped", func(f *pflag.FlagSet) string { return f.FlagUsagesWrapped(width) })
	root = &cobra.Command{
		Use:           "bellows",
		Short:         "Run memory-hungry batch work so that it shares memory",
		Long:          rootLong,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(*cobra.Command, []string) {
			*started = true
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	cobra.EnableCommandSorting = false
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see `%s --help`", plainer(err), cmd.CommandPath())
	})
	root.SetUsageTemplate(usageTemplate)
	root.AddGroup(
		&cobra.Group{ID: "machine", Title: "This machine:"},
		&cobra.Group{ID: "jobs", Title: "Jobs:"},
		&cobra.Group{ID: "study", Title: "Learn and compare:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("machine", upCommand(), statusCommand(), downCommand(), pruneCommand(), swapCommand())
	add("jobs", runCommand(), submitCommand(), psCommand(), logsCommand(), explainCommand(), waitCommand(), killCommand())
	add("study", demoCommand(), simulateCommand(), compareCommand(), traceCommand(), experimentCommand(), profileCommand(), policiesCommand())
	add("", versionCommand(), superviseCommand())
	return root, started
}

// plainer puts a wrong value of a flag into fewer words: the flag, the value, the limit.
func plainer(err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	name, cause := wrong.GetFlag().Name, wrong.Unwrap().Error()
	if strings.Contains(cause, strconv.Quote(wrong.GetValue())) {
		return fmt.Errorf("--%s: %s", name, cause)
	}
	return fmt.Errorf("--%s %q: %s", name, wrong.GetValue(), cause)
}

// place is where a daemon keeps its state and listens.
type place struct{ state, socket string }

// flags adds the flags that say where the daemon is.
func (p *place) flags(cmd *cobra.Command, withState bool) {
	if withState {
		cmd.Flags().StringVar(&p.state, "state", "", "`directory` for what must survive (or $BELLOWS_STATE)")
	}
	cmd.Flags().StringVar(&p.socket, "socket", "", "`file` where the daemon listens (or $BELLOWS_SOCKET)")
}

// fill sets what no flag has set: from the environment, else below the places that the system keeps for such things.
// A socket that nobody named stands in the state directory if that was named.
func (p *place) fill() error {
	if p.state == "" {
		p.state = os.Getenv("BELLOWS_STATE")
	}
	if p.socket == "" {
		p.socket = os.Getenv("BELLOWS_SOCKET")
	}
	if p.state != "" && p.socket == "" {
		p.socket = filepath.Join(p.state, "bellows.sock")
	}
	state, socket, err := usualPlace()
	if err != nil {
		return err
	}
	if p.state == "" {
		p.state = state
	}
	if p.socket == "" {
		p.socket = socket
	}
	for _, path := range []*string{&p.state, &p.socket} {
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("find the working directory: %w", err)
		}
	}
	// The kernel takes no longer name for a socket.
	// A little is left for the name that it has at first.
	const longest = 100
	if len(p.socket) > longest {
		return usagef("socket %q: must be at most %d characters long, not %d", p.socket, longest, len(p.socket))
	}
	return nil
}

// usualPlace returns the state directory and socket of this user.
func usualPlace() (state, socket string, err error) {
	if os.Geteuid() == 0 {
		return "/var/lib/bellows", "/run/bellows/bellows.sock", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", "", usagef("state: must be named by --state, because this user has no home directory")
	}
	state = filepath.Join(home, ".local", "state", "bellows")
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		state = filepath.Join(dir, "bellows")
	}
	socket = filepath.Join(state, "bellows.sock")
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		socket = filepath.Join(dir, "bellows", "bellows.sock")
	}
	return state, socket, nil
}
