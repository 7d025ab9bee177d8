package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/internal/terminal"
)

// VersionText returns the version that the go command recorded in the program: the version of the module, else the
// commit.
func VersionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// NewVersionCommand returns the command `version` of a tree.
func NewVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), map[string]string{"version": VersionText(), "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%s)\n", cmd.Root().Name(), VersionText(), runtime.Version())
			return err
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
