// Package trace has the commands for workload files: they import, inspect and convert workloads.
package trace

import "github.com/spf13/cobra"

const traceLong = `Work with files of workloads: import traces of other systems, describe a
workload, and convert between the formats of bellows.

A workload file has one line per job and takes workloads of any size; job files
(YAML) are for people. "bellows simulate --workload FILE" reads both, also
compressed by gzip or zstd.`

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
