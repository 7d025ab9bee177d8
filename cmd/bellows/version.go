package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/internal/terminal"
)

// version is set when a release is built.
var version = ""

// versionText returns the version, from the build if no release named it.
func versionText() string {
	if version != "" {
		return version
	}
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

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), map[string]string{"version": versionText(), "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "bellows %s (%s)\n", versionText(), runtime.Version())
			return err
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
