package command

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/terminal"
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

// versionText returns what a program of that name says of its version.
func versionText(name string) string {
	return fmt.Sprintf("%s %s (%s)\n", name, VersionText(), runtime.Version())
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
			_, err := io.WriteString(cmd.OutOrStdout(), versionText(cmd.Root().Name()))
			return err
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
