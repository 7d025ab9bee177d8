package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/framework"
)

const modelLong = `Compute what less memory costs a task of Hadoop, Spark or Tez, from the settings
of its framework and two runs: one in which the task did not spill, and one in
which it did. Without runs, print how much is spilled at which size.

Sizes are heap sizes. Settings have the names and defaults of the framework;
with "--preset paper" they have the values of YARN-ME, section 2.`

const modelExample = `  bellows-lab model hadoop-reducer --input 10GB --preset paper \
    --well 16GiB=120s --under 8GiB=190s --svg reducer.svg
  bellows-lab model hadoop-mapper --output 200MB --records 2000000 \
    --well 640MiB=50s --under 200MiB=65s
  bellows-lab model spark-sort --input 2010MB \
    --well 16GiB=60s --under 4GiB=85s --spilled 2100MB --spills 2`

// modelOptions are the flags of model that all frameworks have.
type modelOptions struct {
	preset      string
	well, under runValue
	spilled     resource.Amount
	spills      int
	least       resource.Amount
	svg, png    string
}

func modelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "model",
		Short:   "Compute what less memory costs a task of Hadoop, Spark or Tez",
		Long:    modelLong,
		Example: modelExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usagef("framework %q: must be one of hadoop-mapper, hadoop-reducer, spark-sort, tez-reducer",
					args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(mapperModel(), reducerModel(), tezModel(), sparkModel())
	return cmd
}

// modelOf returns the command of one framework. task returns its settings after the flags are parsed; settings are the
// flags with a different value in the paper's reading.
func modelOf(name, short string, add func(*pflag.FlagSet, *modelOptions), task func() framework.Task,
	paper map[string]string) *cobra.Command {
	o := modelOptions{preset: "framework"}
	cmd := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.preset == "paper" {
			for setting, value := range paper {
				if f := cmd.Flags().Lookup(setting); !f.Changed {
					if err := f.Value.Set(value); err != nil {
						return fmt.Errorf("preset paper: %s: %w", setting, err)
					}
				}
			}
		}
		return o.run(cmd, task())
	}
	f := cmd.Flags()
	add(f, &o)
	f.Var(flags.Choice(&o.preset, "framework", "paper"), "preset",
		"values of settings that are not given: framework, or paper")
	f.Var(&o.well, "well", "memory and time of a run that did not spill")
	f.Var(&o.under, "under", "memory and time of a run that spilled")
	f.Var(flags.Memory(&o.least), "min-memory", "smallest size; default: a tenth of the ideal")
	f.StringVar(&o.svg, "svg", "", "`file` for the picture as SVG")
	f.StringVar(&o.png, "png", "", "`file` for the picture as PNG")
	return cmd
}

func mapperModel() *cobra.Command {
	m := framework.HadoopMapperDefaults(0, 0)
	return modelOf(m.Name(), "Model a Hadoop mapper: a step", func(f *pflag.FlagSet, _ *modelOptions) {
		f.Var(flags.Memory(&m.Output), "output", "size of the mapper's output")
		f.Var(flags.Count(&m.Records, 0, 1<<50), "records", "`number` of records in the output")
		f.Var(flags.Number(&m.SortBufferPercent, 0, 1), "sort-buffer-percent", "io.sort.mb as a `share` of the heap")
		f.Var(flags.Number(&m.SpillPercent, 0, 1), "spill-percent", "`share` of the sort buffer at which it is spilled")
		f.Var(flags.Count(&m.RecordBytes, 0, 1<<50), "record-bytes", "`bytes` for each record besides its data")
		f.Var(flags.Count(&m.SortFactor, 0, 10_000), "sort-factor", "number of `files` merged at once; 0: no limit")
	}, func() framework.Task { return m }, map[string]string{"sort-factor": "0"})
}

// reducerPaper are the settings of the paper's reading of a Hadoop reducer.
var reducerPaper = map[string]string{"merge-percent": "1", "reduce-input-buffer-percent": "1", "sort-factor": "0"}

func reducerFlags(f *pflag.FlagSet, r *framework.HadoopReducer) {
	f.Var(flags.Memory(&r.Input), "input", "size of all map outputs for the reducer")
	f.Var(flags.Memory(&r.Segment), "segment", "size of one map's output for the reducer")
	f.Var(flags.Number(&r.InputBufferPercent, 0, 1), "input-buffer-percent", "`share` of the heap that is shuffle buffer")
	f.Var(flags.Number(&r.MergePercent, 0, 1), "merge-percent", "`share` of the shuffle buffer at which it is spilled")
	f.Var(flags.Number(&r.MemoryLimitPercent, 0, 1), "memory-limit-percent",
		"`share` of the shuffle buffer above which a segment goes straight to disk")
	f.Var(flags.Number(&r.ReduceInputBufferPercent, 0, 1), "reduce-input-buffer-percent",
		"`share` of the heap in which input may stay when the reduce function starts")
	f.Var(flags.Count(&r.SortFactor, 0, 10_000), "sort-factor", "number of `files` merged at once; 0: no limit")
}

func reducerModel() *cobra.Command {
	r := framework.HadoopReducerDefaults(0, 10*resource.MB)
	return modelOf(r.Name(), "Model a Hadoop reducer: a saw-tooth, if its settings allow",
		func(f *pflag.FlagSet, _ *modelOptions) {
			reducerFlags(f, &r)
		}, func() framework.Task { return r }, reducerPaper)
}

func tezModel() *cobra.Command {
	t := framework.TezReducer{HadoopReducer: framework.HadoopReducerDefaults(0, 10*resource.MB)}
	return modelOf(t.Name(), "Model a Tez reducer: its memory holds no local input",
		func(f *pflag.FlagSet, _ *modelOptions) {
			reducerFlags(f, &t.HadoopReducer)
			f.Var(flags.Number(&t.LocalShare, 0, 1), "local-share", "`share` of the input on the reducer's node")
		}, func() framework.Task { return t }, reducerPaper)
}

func sparkModel() *cobra.Command {
	s := framework.SparkSortDefaults(0)
	return modelOf(s.Name(), "Model a Spark task that sorts by key: a saw-tooth", func(f *pflag.FlagSet, o *modelOptions) {
		f.Var(flags.Memory(&s.Input), "input", "size of the serialised input")
		f.Var(flags.Number(&s.Expansion, 0, 1000), "expansion",
			"`bytes` in memory for a byte of input; 0: from --spilled and --spills")
		f.Var(flags.Number(&s.MemoryFraction, 0, 1), "memory-fraction", "`share` of the heap for execution")
		f.Var(flags.Memory(&s.Reserved).OrZero(), "reserved", "memory that Spark reserves")
		f.Var(flags.Count(&s.Tasks, 1, 10_000), "tasks", "`number` of tasks that share the heap")
		f.Var(flags.Memory(&o.spilled), "spilled", "size of the data that the run --under spilled")
		f.Var(flags.Count(&o.spills, 1, 1<<30), "spills", "number of spills of the run --under")
	}, func() framework.Task { return s }, map[string]string{"memory-fraction": "1", "reserved": "0"})
}

// runValue is a flag for MEMORY=TIME.
type runValue struct {
	memory resource.Amount
	time   time.Duration
}

func (v *runValue) String() string {
	if v.memory == 0 {
		return ""
	}
	return resource.FormatMemoryExact(v.memory) + "=" + v.time.String()
}

func (v *runValue) Type() string { return "memory=time" }

func (v *runValue) Set(text string) error {
	memory, took, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("must be MEMORY=TIME, such as 2GiB=90s")
	}
	if err := flags.Memory(&v.memory).Set(memory); err != nil {
		return err
	}
	return flags.Duration(&v.time, 1).Set(took)
}

func (o *modelOptions) run(cmd *cobra.Command, f framework.Task) error {
	if err := f.Check(); err != nil {
		return command.Usage(err)
	}
	if (o.well.memory == 0) != (o.under.memory == 0) {
		return command.Usagef("well, under: must be given both, or neither")
	}
	var model *framework.Model
	if o.well.memory > 0 {
		m, err := framework.Fit(f, framework.Run{Memory: o.well.memory, Duration: o.well.time},
			framework.Run{Memory: o.under.memory, Duration: o.under.time, Spilled: o.spilled, Spills: o.spills})
		if err != nil {
			return command.Usage(err)
		}
		model, f = &m, m.Task
	}
	r, err := framework.NewSpan(f, model, o.least)
	if err != nil {
		return command.Usage(err)
	}
	if err := printModel(cmd.OutOrStdout(), r); err != nil {
		return err
	}
	return o.draw(r)
}

// printModel prints a table over sizes, and the fields for a job file.
func printModel(w io.Writer, r *framework.Span) error {
	t := terminal.NewTable(">MEMORY", ">OF IDEAL", ">BUFFER", ">SPILLED", ">TIME", ">SLOWDOWN", ">DISK")
	for _, memory := range r.Sizes() {
		row := []string{resource.FormatMemory(memory), fmt.Sprintf("%.0f%%", 100*float64(memory)/float64(r.Ideal)),
			resource.FormatMemory(r.Task.Buffer(memory) / resource.MB * resource.MB),
			terminal.MemoryOrDash(r.Task.SpilledBytes(memory) / resource.MB * resource.MB)}
		if r.Model == nil {
			row = append(row, "-", "-", "-")
		} else {
			rate := "-"
			if n := r.Model.DiskRate(memory); n > 0 {
				rate = fmt.Sprintf("%.0fMB/s", float64(n)/1e6)
			}
			row = append(row, fmt.Sprintf("%.1fs", r.Model.Duration(memory).Seconds()),
				fmt.Sprintf("%.2fx", r.Model.Slowdown(memory)), rate)
		}
		t.Add(row...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	say := func(format string, args ...any) {
		fmt.Fprintln(w, terminal.Fold(fmt.Sprintf(format, args...), terminal.Width-2, "  "))
	}
	fmt.Fprintln(w)
	if r.Model == nil {
		say("ideal memory %s; give --well and --under, a run each, for times", resource.FormatMemory(r.Ideal))
		return nil
	}
	if s, ok := r.Task.(framework.SparkSort); ok {
		say("a byte of input takes %.2f bytes in memory", s.Expansion)
	}
	best := r.Best()
	say("ideal memory %s; it loses a second for every %.0f MB that it spills; best with less: %s, %.2f times as long",
		resource.FormatMemory(r.Ideal), r.Model.SpillRate/1e6, resource.FormatMemory(best), r.Model.Slowdown(best))
	fmt.Fprintf(w, "\nFor a job file:\n\n%s", r.JobFields())
	return nil
}

// draw writes the requested pictures.
func (o *modelOptions) draw(r *framework.Span) error {
	for _, p := range []struct {
		file string
		draw func(chart.Picture) ([]byte, error)
	}{{o.svg, chart.Picture.SVG}, {o.png, chart.Picture.PNG}} {
		if p.file == "" {
			continue
		}
		if r.Model == nil {
			return command.Usagef("picture: needs --well and --under")
		}
		if err := writePicture(p.file, func() ([]byte, error) { return p.draw(r.Picture()) }); err != nil {
			return err
		}
	}
	return nil
}
