package trace

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/workloadfile"
	"github.com/bellows-rm/bellows/format/jobfile"
	"github.com/bellows-rm/bellows/format/workload"
)

// convertOptions are the flags of convert.
type convertOptions struct {
	from, to, out, penalty string
	lossy                  bool
}

func convertCommand() *cobra.Command {
	o := convertOptions{from: workloadfile.Auto, to: workloadfile.Auto, penalty: "none"}
	cmd := &cobra.Command{
		Use:   "convert FILE -o OUT",
		Short: "Write a workload in another format",
		Long: `Write a workload as a workload file or as a job file (YAML). Without --to, a
name that ends in .yaml or .yml requests a job file. A workload with facts that
the format cannot hold is refused, unless --lossy is given.`,
		Example: `  bellows trace convert jobs.yaml -o jobs.jsonl.zst
  bellows trace convert u100.trace -o u100.jsonl --penalty sawtooth:1.5
  bellows trace convert jobs.jsonl.zst -o jobs.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if o.out == "" {
				return command.Usagef("out: must name the file to write")
			}
			return o.run(args[0])
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "`file` to write, compressed if it ends in .gz or .zst")
	f.Var(flags.Choice(&o.to, workloadfile.Auto, workloadfile.Bellows, workloadfile.Compact), "to",
		"format to write: bellows (a job file) or workload; auto: by the name")
	f.Var(flags.Choice(&o.from, workloadfile.Formats...), "format",
		"format of FILE: bellows (a job file), workload or dss; auto: by its content")
	f.StringVar(&o.penalty, "penalty", o.penalty,
		"`shape` of the slowdown with less memory, for tasks without elasticity: none, step:FACTOR or sawtooth:FACTOR")
	f.BoolVar(&o.lossy, "lossy", false, "leave out the facts that the format cannot hold")
	return cmd
}

func (o *convertOptions) run(file string) error {
	penalty, err := workload.ParsePenalty(o.penalty)
	if err != nil {
		return command.Usage(err)
	}
	f, err := workloadfile.Open(file, o.from)
	if err != nil {
		return err
	}
	var h workload.Header
	if f.Jobs != nil {
		h.Cluster = f.Jobs.Header.Cluster
	}
	w, err := f.Read(nil)
	if err != nil {
		return err
	}
	if o.penalty != "none" {
		w.SetPenalty(penalty, workload.DefaultMinShare, workload.DefaultGranularity)
	}
	plain := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(o.out, ".gz"), ".zst"), ".zstd")
	if o.to == workloadfile.Bellows || o.to == workloadfile.Auto &&
		(strings.HasSuffix(plain, ".yaml") || strings.HasSuffix(plain, ".yml")) {
		return o.writeJobs(w)
	}
	return workload.Save(o.out, w, h)
}

// writeJobs writes a job file, and reads it back to find out what the format cannot express.
func (o *convertOptions) writeJobs(w *workload.Workload) error {
	var text bytes.Buffer
	if err := jobfile.Write(&text, w); err != nil {
		return command.Usage(err)
	}
	if !o.lossy {
		again, err := jobfile.Read(bytes.NewReader(text.Bytes()), o.out, nil)
		if err != nil {
			return fmt.Errorf("read back the job file: %w", err)
		}
		for i := range w.Jobs {
			if i >= len(again.Jobs) || !reflect.DeepEqual(again.Jobs[i], w.Jobs[i]) {
				return command.Usagef(
					"job %q: a job file cannot hold all of it, such as owners and ids; write a workload file, or allow it with "+
						"--lossy", w.Jobs[i].Name)
			}
		}
	}
	return workload.SaveFile(o.out, workload.CompressionOf(o.out), func(out io.Writer) error {
		_, err := text.WriteTo(out)
		return err
	})
}
