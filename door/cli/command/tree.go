package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/fault"
)

// Streams are the input and the outputs of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Tree is a program with its commands.
type Tree struct {
	// Invalid reports whether an error of another package is a mistake of the user; it may be nil.
	Invalid func(error) bool
	root    *cobra.Command
	started bool // the flags and arguments of a command were accepted
}

// usage prints how a command is used, for terminals of 80 columns, without repetitions. It is no template of cobra:
// with package text/template the linker keeps every method of every type, as one could be called by its name.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	more := cmd.HasAvailableSubCommands()
	fmt.Fprint(w, "Usage:")
	if cmd.Runnable() && (!more || cmd.Use != cmd.Name()) {
		fmt.Fprintf(w, "\n  %s", cmd.UseLine())
	}
	if more {
		fmt.Fprintf(w, "\n  %s COMMAND", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\n\nExamples:\n%s", cmd.Example)
	}
	if more {
		usageOfCommands(w, cmd)
	}
	if cmd.HasAvailableLocalFlags() {
		flags := cmd.LocalFlags().FlagUsagesWrapped(terminal.Width)
		fmt.Fprintf(w, "\n\nFlags:\n%s", strings.TrimRightFunc(flags, unicode.IsSpace))
	}
	if more {
		fmt.Fprintf(w, "\n\n\"%s COMMAND --help\" says more about a command.", cmd.CommandPath())
	}
	fmt.Fprintln(w)
	return nil
}

// usageOfCommands prints the commands below cmd: those of each group, and then the others.
func usageOfCommands(w io.Writer, cmd *cobra.Command) {
	widest := 11 // at least, in all programs alike
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			widest = max(widest, len(c.Name()))
		}
	}
	list := func(title, group string) {
		fmt.Fprintf(w, "\n\n%s", title)
		for _, c := range cmd.Commands() {
			if c.GroupID == group && (c.IsAvailableCommand() || group == "" && c.Name() == "help") {
				fmt.Fprintf(w, "\n  %-*s %s", widest, c.Name(), c.Short)
			}
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	if len(cmd.Groups()) > 0 {
		list("More:", "")
	} else {
		list("Commands:", "")
	}
}

// NewTree returns a program without commands, with its name and a short and a long description.
func NewTree(name, short, long string) *Tree {
	t := &Tree{}
	cobra.EnableCommandSorting = false
	t.root = &cobra.Command{
		Use:               name,
		Short:             short,
		Long:              long,
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { t.started = true },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	t.root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		near := ""
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
			near = "--" + fault.Nearest(unknown.GetSpecifiedName(), flagsOf(cmd))
		}
		return Usagef("%w%s", plainer(err), seeHelp(cmd, strings.TrimSuffix(near, "--")))
	})
	t.root.InitDefaultHelpFlag()
	asked := t.root.Flags().BoolP("version", "v", false, "version for "+name)
	t.root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *asked {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine(name))
			return err
		}
		return cmd.Help()
	}
	t.root.SetUsageFunc(usage)
	return t
}

// Add adds commands below a title; commands without a title come last in the help text.
func (t *Tree) Add(title string, commands ...*cobra.Command) {
	if title != "" {
		t.root.AddGroup(&cobra.Group{ID: title, Title: title})
	}
	for _, c := range commands {
		c.GroupID = title
		t.root.AddCommand(c)
	}
	for _, c := range t.Commands() { // help has flags in the order in which they are declared
		c.Flags().SortFlags = false
	}
}

// Commands returns all commands, hidden ones too, the program itself first.
func (t *Tree) Commands() []*cobra.Command {
	all := []*cobra.Command{t.root}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	return all
}

// completeWords lets a shell complete the values of flags that take one of a few words.
func (t *Tree) completeWords() {
	for _, cmd := range t.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if value, ok := f.Value.(interface{ Words() []string }); ok {
				_ = cmd.RegisterFlagCompletionFunc(f.Name,
					cobra.FixedCompletions(value.Words(), cobra.ShellCompDirectiveNoFileComp))
			}
		})
	}
}

// Execute runs one command line and returns the exit code.
func (t *Tree) Execute(args []string, io Streams) int {
	// When the reader of its output ends, SIGPIPE ends a command that prints, as with other programs. The first
	// interrupt ends the command's context, so that the command can clean up; an interrupt after the time for that ends
	// the process. Earlier ones are ignored, because a program that signals a process and then its group sends each
	// signal twice.
	ctx, stop := Heed(context.Background(), os.Interrupt, syscall.SIGTERM)
	const tidyingUp = 10 * time.Second
	context.AfterFunc(ctx, func() { time.AfterFunc(tidyingUp, stop) })
	defer stop()
	t.root.SetIn(io.In)
	t.root.SetOut(io.Out)
	t.root.SetErr(io.Err)
	t.root.SetArgs(args)
	t.completeWords()
	t.refuseHelpOnUnknown()
	err := t.root.ExecuteContext(ctx)
	if err != nil && !t.started {
		if unknown := t.unknown(args); unknown != nil {
			err = unknown
		}
	}
	if text := errorText(err); text != "" {
		fmt.Fprintf(io.Err, "%s: %s\n", t.root.Name(), text)
	}
	code := ExitCode(err)
	// An error before the command begins is a wrong usage.
	if code == Failed && (!t.started || t.Invalid != nil && t.Invalid(err)) {
		return WrongUsage
	}
	return code
}

// refuseHelpOnUnknown lets "help NAME" fail as NAME would, where there is no such command.
func (t *Tree) refuseHelpOnUnknown() {
	t.root.InitDefaultHelpCmd()
	for _, c := range t.root.Commands() {
		if show := c.Run; c.Name() == "help" {
			c.Run, c.RunE = nil, func(cmd *cobra.Command, args []string) error {
				if unknown := t.unknown(args); unknown != nil {
					return unknown
				}
				show(cmd, args)
				return nil
			}
		}
	}
}

// unknown returns the error for a command line that names a command that does not exist; nil if it names none. It
// asks for the near command, or for the one that does what other programs call so.
func (t *Tree) unknown(args []string) error {
	cmd, rest, err := t.root.Find(args)
	if err != nil || !cmd.HasAvailableSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil
	}
	// Some commands with commands have arguments, or say themselves what is wrong with them.
	if err := cmd.ValidateArgs(rest[:1]); err == nil || !strings.HasPrefix(err.Error(), "unknown command") {
		return nil
	}
	var names, meant []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
			if slices.Contains(c.SuggestFor, rest[0]) {
				meant = append(meant, fmt.Sprintf("`%s`", c.CommandPath()))
			}
		}
	}
	if near := fault.Nearest(rest[0], names); near != "" && len(meant) == 0 {
		meant = append(meant, fmt.Sprintf("`%s %s`", cmd.CommandPath(), near))
	}
	return Usagef("unknown command %q for %q%s", rest[0], cmd.CommandPath(), seeHelp(cmd, strings.Join(meant, " or ")))
}

// flagsOf returns the names of the flags of a command, except for removed ones.
func flagsOf(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// seeHelp returns the end of a message on a wrong word: what was meant, if that is known, and where the right ones are.
func seeHelp(cmd *cobra.Command, meant string) string {
	if meant == "" {
		return fmt.Sprintf("; see `%s --help`", cmd.CommandPath())
	}
	return fmt.Sprintf("; did you mean %s? See `%s --help`", meant, cmd.CommandPath())
}

// Heed returns a context that ends with the first of the signals. Signals that the caller of this program ignores are
// not among them: nohup ignores some, and the shell of a script does for the commands that it puts into the
// background. Of an ignored SIGTERM the runtime of Go does not know, so that one ends the context in any case.
func Heed(ctx context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	signals = slices.DeleteFunc(signals, signal.Ignored)
	if len(signals) == 0 { // which would be all signals to NotifyContext
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, signals...)
}

// plainer shortens the error of a wrong value of a flag to the flag, the value and the limit.
func plainer(err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	name, cause := wrong.GetFlag().Name, wrong.Unwrap().Error()
	if wrong.GetFlag().Value.Type() == "bool" {
		cause = "must be true or false"
	}
	if strings.Contains(cause, strconv.Quote(wrong.GetValue())) {
		return fmt.Errorf("--%s: %s", name, cause)
	}
	return fmt.Errorf("--%s %q: %s", name, wrong.GetValue(), cause)
}
