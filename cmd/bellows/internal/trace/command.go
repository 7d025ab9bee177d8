// Package trace has the commands for workload files: they import, inspect and convert workloads.
package trace

import "github.com/spf13/cobra"

const traceLong = `Work with workloads in files: import what other systems recorded, see what is in
a workload, and convert between the formats of the project.

A workload file has one line per job and takes workloads of any size; job files
(YAML) are for people. Both go into "bellows simulate --workload FILE", packed
by gzip or zstd or not.`

// Command returns the command trace.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Import, inspect and convert workloads",
		Long:  traceLong,
		Example: `  bellows trace import swim FB-2009.tsv.gz -o day.jsonl.zst
  bellows trace info day.jsonl.zst
  bellows trace convert jobs.yaml -o jobs.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(importCommand(), infoCommand(), convertCommand())
	return cmd
}
