package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/fault"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the settings of the daemon",
		Long: `Check a configuration file of "bellows up", and show the settings that follow
from the file, from flags and from defaults. No daemon is needed. The file is
YAML, with the flags of "bellows up" as fields, _ for -, and the values that
flags have: see docs/reference/settings.md. It must belong to root or to the
user of the daemon, and must not be writable by everybody:

  bellows_config: 1
  memory: 4GiB
  policy: fair
  set: {fair.reservations: false}
  keep_for: 168h`,
		Example: `  bellows config check
  bellows config show --config bellows.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configCheckCommand(), configShowCommand())
	return cmd
}

func configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "List all mistakes of a configuration file",
		Long: `List all mistakes of a configuration file, each with its line. The default is
` + place.UsualConfig + `. The exit code is 2 if there are any.`,
		Example: `  bellows config check
  bellows config check bellows.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := place.UsualConfig
			if len(args) == 1 {
				path = args[0]
			}
			settings, err := checkConfig(path)
			if mistakes, ok := errors.AsType[*fault.All](err); ok {
				fmt.Fprintln(cmd.ErrOrStderr(), mistakes)
				return command.Code(command.WrongUsage)
			}
			if err != nil {
				return command.Usage(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: no mistakes in %s\n", path, terminal.Count(settings, "setting"))
			return err
		},
	}
}

// checkConfig returns the number of settings in a configuration file, or its mistakes: those of single settings,
// otherwise that of the settings together.
func checkConfig(path string) (settings int, err error) {
	entries, err := readConfig(path)
	if err != nil {
		return 0, err
	}
	o := newUpOptions()
	if err := o.apply(path, entries); err != nil {
		return 0, err
	}
	if _, err := o.listen.load(); err != nil {
		i := slices.IndexFunc(entries, func(e entry) bool {
			return slices.Contains([]string{"listen", "tls_cert", "tls_key"}, e.name)
		})
		return 0, fault.At(path, entries[i].line, "%v", err)
	}
	if _, err := o.daemon(); err != nil {
		return 0, fault.At(path, 0, "%v", err)
	}
	return len(entries), nil
}

func configShowCommand() *cobra.Command {
	o := newUpOptions()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show all settings, and where each comes from",
		Long: `Show the settings that "bellows up" with the same flags would have, and where
each comes from: a flag, a line of the configuration file, or the default. All
flags of "bellows up" for settings are allowed. A dash is a default that the
daemon works out: see "bellows up --help".`,
		Example: `  bellows config show
  bellows config show --config bellows.yaml --memory 8GiB --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.configure(cmd.Flags()); err != nil {
				return err
			}
			if _, err := o.daemon(); err != nil {
				return err
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), shownConfig{o.origins.file, o.rows()})
			}
			return o.show(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	o.flags(f)
	f.VisitAll(func(f *pflag.Flag) { f.Hidden = true }) // the help of up has them
	o.configFlag(f)
	o.place.StateFlag(cmd)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// shownConfig is the output of `config show --json`.
type shownConfig struct {
	File     string `json:"file,omitempty" doc:"the configuration file; omitted if there is none"`
	Settings []row  `json:"settings" doc:"all settings of the daemon"`
}

// show prints all settings.
func (o *upOptions) show(w io.Writer) error {
	fmt.Fprintf(w, "configuration file: %s\n\n", cmp.Or(o.origins.file, "none"))
	t := terminal.NewTable("SETTING", "VALUE", "FROM")
	t.Shrinks = 2
	for _, r := range o.rows() {
		t.Add(r.Setting, terminal.OrDash(r.Value), filepath.Base(r.From))
	}
	return t.Write(w)
}
