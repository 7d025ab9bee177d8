package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/recordings"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/workloadfile"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
)

// importFormat is a format as a command: its flags set assumptions about what the files of the format do not say.
type importFormat struct {
	format  importer.Format
	short   string
	long    string
	example string
	flags   func(f *pflag.FlagSet)
	// prepare opens further files that the format needs; it may be nil.
	prepare func(files []string) (close func(), err error)
}

// importFormats returns new formats for each command tree, because flags write to them.
func importFormats() []importFormat {
	return []importFormat{swimFormat(), alibabaFormat(), sparrowFormat(), decimaFormat(), sparkFormat(), bitbrainsFormat(),
		googleFormat(), nextflowFormat(), swfFormat(), slurmFormat()}
}

func swimFormat() importFormat {
	s := importer.DefaultSWIM()
	return importFormat{format: s, short: "Import MapReduce jobs of SWIM (Facebook, Cloudera)",
		long: `Import workload samples of SWIM: lines of tab-separated values with the bytes
that a MapReduce job reads, shuffles and writes. They have no tasks: the flags
below determine how many there are, how long they run and what memory they need.`,
		example: `  bellows trace import swim FB-2009_0.tsv.gz -o day.jsonl.zst
  bellows trace import swim day.tsv -o hour.jsonl --from 9h --to 10h`,
		flags: func(f *pflag.FlagSet) {
			f.Var(flags.Memory(&s.Split), "split", "input of a map task (HDFS: dfs.blocksize)")
			f.Var(flags.Memory(&s.ReducerInput), "reducer-input",
				"shuffled bytes of a reducer (Hive: exec.reducers.bytes.per.reducer)")
			f.Var(flags.Count(&s.MostReducers, 1, 1<<20), "most-reducers",
				"largest number of reducers of a job (Hive: exec.reducers.max)")
			f.Var(flags.Rate(&s.MapRate), "map-rate", "rate at which a map task reads or writes")
			f.Var(flags.Rate(&s.ReduceRate), "reduce-rate", "rate at which a reducer reads or writes")
			f.Var(flags.Duration(&s.Startup, time.Millisecond), "startup", "time that every task takes besides")
			f.Var(flags.Memory(&s.MapMemory), "map-memory", "memory of a map task (mapreduce.map.memory.mb)")
			f.Var(flags.Memory(&s.ReduceMemory), "reduce-memory", "least memory of a reducer (mapreduce.reduce.memory.mb)")
			f.Var(flags.Number(&s.BufferShare, 0, 1), "buffer-share",
				"share of a reducer's memory that buffers its input (Hadoop: 0.8 heap, 0.7 of it)")
			f.Var(flags.Number(&s.SpillSlowdown, 1, 1e6), "spill-slowdown",
				"slowdown of a reducer that spills all its input; 1: no task is elastic")
		}}
}

func alibabaFormat() importFormat {
	a := importer.DefaultAlibaba()
	return importFormat{format: a, short: "Import batch jobs of Alibaba's cluster-trace-v2018",
		long: `Import batch tasks of Alibaba's cluster-trace-v2018: batch_task.csv as it is
published, or a table with job,task,instances,start_s,end_s,avg_instance_s,
plan_cpu,plan_mem. The names of tasks hold the DAG. Times of single tasks are
not replayed: a job is submitted when its first task started, and its stages
follow from the DAG and the mean duration of instances.`,
		example: `  bellows trace import alibaba2018 batch_task.csv -o a.jsonl.zst --jobs 10000
  bellows trace import alibaba2018 random6600.csv.gz -o day.jsonl.zst --to 24h`,
		flags: func(f *pflag.FlagSet) {
			f.Var(flags.Memory(&a.MachineMemory), "machine-memory",
				"memory that a plan_mem of 100 % stands for; the trace does not have it")
			f.Var(flags.CPU(&a.MachineCPU), "machine-cpus", "cores of a machine")
			f.Var(flags.CPU(&a.TaskCPU), "task-cpus", "cores of an instance without plan_cpu")
			f.Var(flags.Memory(&a.TaskMemory), "task-memory", "memory of an instance without plan_mem")
			f.BoolVar(&a.KeepFailed, "keep-failed", false, "keep tasks with status Failed")
			f.BoolVar(&a.KeepRunning, "keep-running", false, "keep tasks that had not ended, or have no duration")
			f.BoolVar(&a.Usage, "usage", false, "take the truth from cpu_usage_sum and mem_usage_sum")
		}}
}

func sparrowFormat() importFormat {
	s := importer.DefaultSparrow()
	return importFormat{format: s, short: "Import jobs with task durations, of Sparrow, Hawk and Eagle",
		long: `Import .tr files: a line per job with its arrival, the number of its tasks,
their mean duration and the duration of each. The mean is the estimate.`,
		example: `  bellows trace import sparrow YH1_sub.tr.gz -o yahoo.jsonl.zst`,
		flags: func(f *pflag.FlagSet) {
			f.Var(flags.CPU(&s.CPU), "task-cpus", "cores of a task")
			f.Var(flags.Memory(&s.Memory), "task-memory", "memory of a task")
		}}
}

func decimaFormat() importFormat {
	d := importer.DefaultDecima()
	return importFormat{format: d, short: "Import TPC-H queries on Spark, of Decima",
		long: `Import DAGs of TPC-H queries with measured task durations: a JSON object per
line. Arrivals form a Poisson process, drawn from --seed.`,
		example: `  bellows trace import decima tpch-spark-dags.jsonl.gz -o tpch.jsonl.zst
  bellows trace import decima tpch.jsonl -o busy.jsonl --draw 1000`,
		flags: func(f *pflag.FlagSet) {
			f.Var(flags.Count(&d.Executors, 1, 1_000_000), "executors",
				"take the durations measured with this number of executors")
			f.BoolVar(&d.Waves, "waves", false, "tasks on new executors take as long as such tasks did")
			f.Var(flags.Count(&d.Jobs, 0, 1_000_000), "draw", "number of jobs to draw; 0: each query once")
			f.Var(flags.Duration(&d.Interarrival, 0), "interarrival", "mean time between submissions")
			f.Var(flags.CPU(&d.CPU), "task-cpus", "cores of a task")
			f.Var(flags.Memory(&d.Memory), "task-memory", "memory of a task")
		}}
}

func sparkFormat() importFormat {
	s := importer.DefaultSpark()
	return importFormat{format: s, short: "Import event logs of Spark applications",
		long: `Import event logs as Spark's history server keeps them, one application each,
also such that were cut off or lack events. The parts of a log that was rolled,
in a folder eventlog_v2_APPLICATION, are one log; so are Databricks' eventlog
and eventlog-DATE.gz. A folder may hold many logs.

Stages, what they wait for, durations, CPU, disk, network and execution memory
of each task are measured. A stage that spilled gives a point of what less
memory costs; stages that ran with different memory in several logs give more.`,
		example: `  bellows trace import spark-eventlog application_1_0001.zstd -o app.jsonl
  bellows trace import spark-eventlog eventlog_v2_app-1_0001 -o app.jsonl
  bellows trace import spark-eventlog little.zstd much.zstd -o two.jsonl`,
		flags: func(f *pflag.FlagSet) {
			f.Var(flags.Memory(&s.TaskBase).OrZero(), "task-base",
				"memory of a task besides execution memory; 0: its share of the executor's")
			f.Var(flags.Rate(&s.SpillRate), "spill-rate", "rate at which spilled bytes were written and read")
			f.BoolVar(&s.InputOverNetwork, "remote-input", false, "input and output are in an object store, not on local disks")
			f.BoolVar(&s.NameApps, "name-apps", false, "name the application of each job, so that its runs can teach")
			f.BoolVar(&s.IndependentJobs, "independent-jobs", false,
				"the Spark jobs of an application do not wait for each other")
		}}
}

func bitbrainsFormat() importFormat {
	b := importer.DefaultBitbrains()
	vms := ""
	return importFormat{format: b, short: "Import virtual machines of Bitbrains (GWA-T-12)",
		long: `Import virtual machines: the files of the trace as it is published, one for each
machine, or lines of vm,metric,values with a sample every 300 s and a file with
the provisioned resources of each machine. A machine is a job of one task; the
provisioned resources are the estimate, the used ones the truth.`,
		example: `  bellows trace import bitbrains rnd/2013-8 -o vms.jsonl.zst
  bellows trace import bitbrains rnd-2013-08.csv.gz -o vms.jsonl.zst`,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&vms, "vms", "", "`file` with vm, cores, cpu_capacity_mhz and mem_provisioned_mb; "+
				"default: vms.csv in the folder of FILE, if there")
			f.Var(flags.Duration(&b.Interval, time.Second), "interval", "time between samples")
		},
		prepare: func(files []string) (func(), error) {
			name := vms
			if name == "" {
				name = filepath.Join(filepath.Dir(files[0]), "vms.csv")
			}
			data, err := os.ReadFile(name)
			switch {
			case vms == "" && errors.Is(err, fs.ErrNotExist): // files as they are published need none
				return func() {}, nil
			case err != nil:
				return nil, command.Usagef("vms: %w", err)
			}
			b.VMs = importer.Source{Name: name, Data: bytes.NewReader(data)}
			return func() {}, nil
		}}
}

func googleFormat() importFormat {
	g := importer.DefaultGoogleVMs()
	return importFormat{format: g, short: "Import virtual machines of the Google trace of 2011",
		long: `Import parts of the tables task_usage and task_events of the trace, as they are
published: a job is a stage of its tasks, requests are the estimate, usage the
truth. Or import virtual machines that were made of it: lines of
vm,metric,values with the CPU and the memory, in percent, every 300 s. The flags
--vm-cpus and --vm-memory say what 100 % is: in the tables, the largest machine
of the trace.`,
		example: `  bellows trace import google-vms task_events task_usage -o g.jsonl.zst
  bellows trace import google-vms vms-24h.csv.gz -o google.jsonl.zst --jobs 400`,
		flags: func(f *pflag.FlagSet) {
			f.Var(flags.Duration(&g.Interval, time.Second), "interval", "time between samples")
			f.Var(flags.CPU(&g.CPU), "vm-cpus", "cores that 100 % of the CPU stands for")
			f.Var(flags.Memory(&g.Memory), "vm-memory", "memory that 100 % stands for")
		}}
}

func nextflowFormat() importFormat {
	n := importer.DefaultNextflow()
	return importFormat{format: n, short: "Import tasks of Nextflow workflows",
		long: `Import trace files of Nextflow (nextflow run -with-trace), with or without
trace.raw, or a table of the tasks of several workflows, separated by commas,
with a column for the workflow. A workflow is a job. Requested memory (the field
memory, which trace.fields adds) is the estimate, peak memory the truth. A trace
has no edges: a stage waits for the stages whose last task had ended when the
first task of the stage was submitted.`,
		example: `  bellows trace import nextflow trace.txt -o workflow.jsonl
  bellows trace import nextflow tasks-merged.csv.gz -o workflows.jsonl.zst`,
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&n.KeepDates, "keep-dates", false, "submit workflows on their days; default: all at once")
			f.BoolVar(&n.KeepFailed, "keep-failed", false, "keep tasks that did not complete")
		}}
}

func swfFormat() importFormat {
	s := importer.DefaultSWF()
	return importFormat{format: s, short: "Import jobs of the Parallel Workloads Archive (SWF)",
		long: `Import jobs in the Standard Workload Format, one a line, with 18 numbers. A job
is a stage with a task of one core for each of its processors; unlike on the
machine of the log, these tasks may run one after another. What was requested is
the estimate, what was used the truth.`,
		example: `  bellows trace import swf SDSC-SP2-1998-4.2-cln.swf.gz -o sp2.jsonl.zst`,
		flags: func(f *pflag.FlagSet) {
			f.Var(flags.Memory(&s.Memory), "task-memory", "memory of a processor of a job that does not say it")
			f.BoolVar(&s.KeepFailed, "keep-failed", false, "keep jobs that failed or were cancelled")
		}}
}

func slurmFormat() importFormat {
	s := importer.DefaultSlurm()
	return importFormat{format: s, short: "Import jobs that Slurm accounted for (sacct)",
		long: `Import what "sacct --parsable2" prints, with its head. JobID, State, Submit,
Elapsed and AllocCPUS must be among its fields; Timelimit, NNodes, ReqMem,
MaxRSS, NTasks, TotalCPU, JobName and User are read if they are there. A job is
a stage with a task for each of its nodes. What was requested is the estimate,
what was used the truth.`,
		example: `  sacct -P -o JobID,State,Submit,Elapsed,NCPUS,NNodes,ReqMem,MaxRSS >jobs.txt
  bellows trace import slurm jobs.txt -o jobs.jsonl.zst`,
		flags: func(f *pflag.FlagSet) {
			f.Var(flags.Memory(&s.Memory), "task-memory", "memory on a node of a job that does not say it")
			f.BoolVar(&s.KeepFailed, "keep-failed", false, "keep jobs that did not complete")
		}}
}

// importOptions are the flags of every format.
type importOptions struct {
	importer.Options
	out       string
	bandwidth string
	class     string
	asJSON    bool
	quiet     bool
}

func importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FORMAT FILE... -o OUT",
		Short: "Convert traces of other systems to a workload",
		Long: `Convert a trace of another system to a workload, and suggest a cluster for it.
Files may be compressed by gzip or zstd, or by lz4 or snappy as Spark writes
them; a folder stands for the files in it. Facts that a format lacks are
assumed: each assumption is a flag of the format, and has the source of its
default in docs/reference/importers.md.`,
		Example: `  bellows trace import swim FB-2009_0.tsv.gz -o day.jsonl.zst
  bellows trace import swim --help`,
		Args: cobra.ArbitraryArgs,
		// The flags belong to a format; without a format, the error is about the missing format.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var names []string
			for _, f := range importFormats() {
				names = append(names, f.format.Name())
			}
			return command.Usagef("format %q: must be one of %s", args[0], strings.Join(names, ", "))
		},
	}
	for _, f := range importFormats() {
		cmd.AddCommand(f.command())
	}
	return cmd
}

func (f importFormat) command() *cobra.Command {
	o := &importOptions{bandwidth: "truth", class: workloadfile.Auto}
	o.Options = importer.Options{ArrivalsScale: 1, TasksScale: 1, MemoryScale: 1, Seed: 1}
	cmd := &cobra.Command{
		Use:     f.format.Name() + " FILE... -o OUT",
		Short:   f.short,
		Long:    f.long,
		Example: f.example,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			if o.out == "" {
				return command.Usagef("out: must name the file to write, or - for standard output")
			}
			return o.run(cmd, f, files)
		},
	}
	flags := cmd.Flags()
	f.flags(flags)
	o.flags(flags)
	return cmd
}

func (o *importOptions) flags(f *pflag.FlagSet) {
	f.StringVarP(&o.out, "out", "o", "",
		"workload `file` to write, compressed if it ends in .gz or .zst; -: standard output")
	f.Var(flags.Duration(&o.From, 0), "from", "leave out jobs submitted earlier than this after the first job")
	f.Var(flags.Duration(&o.To, 0), "to", "leave out jobs submitted this long or longer after the first job")
	f.Var(flags.Count(&o.Jobs, 0, 100_000_000), "jobs", "keep only the first `n` jobs; 0: all")
	f.BoolVar(&o.Sample, "sample", false, "draw --jobs at random instead of keeping the first")
	f.Var(flags.Number(&o.ArrivalsScale, 0, 1e6), "arrivals-scale",
		"factor for the times of submission; 0: all jobs at once")
	f.Var(flags.Number(&o.TasksScale, 1e-6, 1e6), "tasks-scale", "factor for the number of tasks of each stage")
	f.Var(flags.Number(&o.MemoryScale, 1e-6, 1e6), "memory-scale", "factor for the memory of each task")
	f.Var(flags.Choice(&o.class, workloadfile.Auto, "regular", "flex"), "class",
		"class of the jobs: regular or flex; auto: by the format")
	f.Var(flags.Choice(&o.bandwidth, "truth", "estimate", "none"), "bandwidth",
		"where disk and network demands go: the truth alone, the estimates too (estimate), or none")
	f.Var(flags.Number(&o.Load, 0, 1e6), "load",
		"load of the suggested cluster: work of the jobs over the capacity of the cluster; default: by the number of "+
			"nodes in the trace, else 0.8")
	f.Var(flags.Memory(&o.Node[resource.Memory]), "node-memory",
		"memory of a node of the suggested cluster; default: by the format")
	f.Var(flags.CPU(&o.Node[resource.CPU]), "node-cpus",
		"cores of a node of the suggested cluster; default: by the format")
	f.Var(flags.Seed(&o.Seed), "seed", "seed of the random generator")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
}

func (o *importOptions) run(cmd *cobra.Command, f importFormat, files []string) error {
	o.AtOnce = o.ArrivalsScale == 0
	if o.class != workloadfile.Auto {
		o.Class = new(cluster.Class)
		if err := o.Class.UnmarshalText([]byte(o.class)); err != nil {
			return command.Usage(err)
		}
	}
	o.Bandwidth = map[string]importer.Bandwidth{"truth": importer.TruthOnly, "estimate": importer.Estimated,
		"none": importer.Ignored}[o.bandwidth]
	if f.prepare != nil {
		done, err := f.prepare(files)
		if err != nil {
			return err
		}
		defer done()
	}
	sources, closeAll, err := recordings.Open(cmd.Context(), os.Stdin, files)
	defer closeAll()
	if err != nil {
		return err
	}
	shown, done := recordings.Progress(cmd.ErrOrStderr(), o.quiet)
	defer done()
	o.Progress = shown
	r, err := importer.Import(f.format, sources, o.Options)
	if err := recordings.Wrong(cmd.Context(), err); err != nil {
		return err
	}
	header := workload.Header{Cluster: &r.Cluster}
	if o.out == "-" {
		return workload.Write(cmd.OutOrStdout(), r.Workload, header)
	}
	if err := workload.Save(o.out, r.Workload, header); err != nil {
		return err
	}
	done()
	return o.report(cmd.OutOrStdout(), f.format.Name(), r)
}

// importJSON is the output of import --json.
type importJSON struct {
	Format   string            `json:"format" doc:"format of the trace"`
	Out      string            `json:"out" doc:"the written workload"`
	Size     int64             `json:"out_bytes" doc:"its size"`
	Workload summaryJSON       `json:"workload" doc:"the fields of trace info"`
	Cluster  importClusterJSON `json:"cluster" doc:"the suggested cluster"`
	Notes    []string          `json:"notes" doc:"on omitted and repaired records"`
	Simulate string            `json:"simulate" doc:"a command that simulates the workload"`
}

type importClusterJSON struct {
	Nodes      int             `json:"nodes" doc:"number of nodes"`
	CPUs       resource.Amount `json:"node_cpu_millicores" doc:"cores of a node"`
	Memory     resource.Amount `json:"node_memory_bytes" doc:"memory of a node"`
	AskedCPU   float64         `json:"asked_cpu_share" doc:"estimated work / (capacity of the cluster × span_s)"`
	AskedMem   float64         `json:"asked_memory_share" doc:"the same"`
	OverSecond float64         `json:"span_s" doc:"time for which the shares are"`
}

func (o *importOptions) report(w io.Writer, format string, r *importer.Result) error {
	info, err := os.Stat(o.out)
	if err != nil {
		return fmt.Errorf("read back the workload file: %w", err)
	}
	s := workload.Summarise(r.Workload)
	line := simulateLine(o.out, &r.Cluster, r.Workload.Jobs)
	if o.asJSON {
		c := importClusterJSON{r.Cluster.Nodes, r.Cluster.Node[resource.CPU], r.Cluster.Node[resource.Memory],
			r.Asked[resource.CPU], r.Asked[resource.Memory], r.Span.Seconds()}
		return terminal.WriteJSON(w, importJSON{format, o.out, info.Size(), summaryOf(&s), c,
			append([]string{}, r.Notes...), strings.Join(strings.Fields(strings.ReplaceAll(line, "\\", "")), " ")})
	}
	fmt.Fprintf(w, "%s: %s, %s over %s, %s\n", o.out, terminal.Count(s.Jobs, "job"),
		terminal.Count(int(s.Tasks), "task"), terminal.Span(s.Span), resource.FormatMemory(resource.Amount(info.Size())))
	for _, n := range r.Notes {
		fmt.Fprintln(w, terminal.Fold("note: "+n, terminal.Width, "  "))
	}
	fmt.Fprintln(w, terminal.Fold(
		fmt.Sprintf("On %s of %s and %s, the workload needs %.0f %% of the CPU and %.0f %% of the memory over %s:",
			terminal.Count(r.Cluster.Nodes, "node"), countCores(r.Cluster.Node[resource.CPU]),
			resource.FormatMemory(r.Cluster.Node[resource.Memory]), 100*r.Asked[0], 100*r.Asked[1], terminal.Span(r.Span)),
		terminal.Width, ""))
	_, err = fmt.Fprintln(w, line)
	return err
}

func countCores(a resource.Amount) string { return resource.CPU.Format(a) }

// simulateLine returns the command that simulates the workload on a cluster, under a policy for the elasticity that its
// jobs have: by their class, or by what less memory costs.
func simulateLine(file string, c *workload.ClusterShape, jobs []workload.Job) string {
	elastic := "yarn-me"
	if !slices.ContainsFunc(jobs, func(j workload.Job) bool { return j.Class != cluster.Flex }) {
		elastic = "pufferfish"
	}
	return fmt.Sprintf("  bellows simulate --workload %s --nodes %d \\\n      --node-cpus %s --node-memory %s "+
		"--policy fair,%s", terminal.Quote(file), c.Nodes, resource.FormatCPU(c.Node[resource.CPU]),
		resource.FormatMemoryExact(c.Node[resource.Memory]), elastic)
}
