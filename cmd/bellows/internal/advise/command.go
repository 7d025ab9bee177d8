// Package advise has the command that says what a record of work asked for, what it used, and how it would have gone if
// memory were reserved in other ways.
package advise

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/recordings"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/simulate"
	"github.com/bellows-rm/bellows/door/cli/workloadfile"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim/trial"
)

const long = `Say what a record of work asked for and what it used, and simulate how it would
have gone: in boxes as asked, in boxes of the peaks, which are unknown before,
and with memory that is reserved by what earlier runs taught and may grow to
what was asked. No daemon is needed, and nothing is run.

FILE is a trace.txt of Nextflow, event logs of Spark or folders of them, what
"sacct --parsable2" prints, a log in the Standard Workload Format, or a workload
that "bellows trace import" made of another trace; packed by gzip, zstd or not.
Without FILE it is what the daemon has of jobs that have ended.`

type options struct {
	place    place.Place
	policies simulate.Policies
	format   string
	nodes    int
	node     resource.Vector
	swap     resource.Amount
	tasks    int
	html     string
	asJSON   bool
	quiet    bool
}

// Command returns `bellows advise`.
func Command() *cobra.Command {
	o := options{format: workloadfile.Auto, tasks: 20_000}
	cmd := &cobra.Command{
		Use:   "advise [FILE...]",
		Short: "Say what a record of work wastes, and what would have gone better",
		Long:  long,
		Example: `  bellows advise trace.txt
  sacct -P -o JobID,JobName,User,State,ReqMem,MaxRSS,Elapsed,Submit,AllocCPUS \
      >jobs.txt && bellows advise jobs.txt --nodes 10 --node-memory 256GiB
  bellows advise spark-events/ --html advice.html
  bellows advise                                   the jobs of the daemon here`,
		RunE: func(cmd *cobra.Command, files []string) error { return o.run(cmd, files) },
	}
	f := cmd.Flags()
	f.Var(flags.Choice(&o.format, append([]string{workloadfile.Auto}, formatNames()...)...), "format",
		"format of FILE; auto: by its content")
	f.Var(flags.Count(&o.nodes, 1, 1<<20), "nodes", "number of nodes; default: as recorded, or suggested by the load")
	f.Var(flags.Memory(&o.node[resource.Memory]), "node-memory", "memory of a node; default: as recorded, or usual")
	f.Var(flags.CPU(&o.node[resource.CPU]), "node-cpus", "cores of a node; default: as recorded, or usual")
	f.Var(flags.Memory(&o.swap).OrZero(), "swap", "swap of a node; 0B: none; default: as much as its memory")
	f.Var(flags.Count(&o.tasks, 1, 1_000_000), "tasks", "most tasks that count, the first ones")
	f.StringVar(&o.html, "html", "", "`file` to write: the page in HTML, with a picture, in need of no other file")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	o.policies.Flags(cmd)
	o.place.Flags(cmd, false)
	return cmd
}

// run reads the record, simulates and prints.
func (o *options) run(cmd *cobra.Command, files []string) error {
	r, chosen, err := o.read(cmd, files)
	if err != nil {
		return err
	}
	o.settle(cmd, r)
	if len(r.tasks) == 0 {
		return command.Usagef("advise: no task of the record fits on a node of %s and %s",
			resource.CPU.Format(r.machine.Node[resource.CPU]), resource.FormatMemory(r.machine.Node[resource.Memory]))
	}
	d := r.document()
	d.Policy = chosen.Label
	d.Machine = machineJSON{Nodes: r.machine.Nodes, CPUs: r.machine.Node[resource.CPU],
		Memory: r.machine.Node[resource.Memory], Swap: o.swap, From: r.said}
	var show *terminal.Progress
	if !o.quiet {
		show = terminal.NewProgress(cmd.ErrOrStderr(), "simulate")
	}
	var all []course
	for _, name := range r.ways() {
		show.Show(name)
		c, err := simulate.Until(cmd.Context(), func() (course, error) { return r.simulate(chosen, name, o.swap), nil })
		if err != nil {
			return err
		}
		all = append(all, c)
		d.Ways = append(d.Ways, c.way)
	}
	show.Clear()
	if o.html != "" {
		if err := o.writePage(d, all); err != nil {
			return err
		}
	}
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), d)
	}
	return d.print(cmd.OutOrStdout(), o.html)
}

// ways are those that can be simulated: without requests there are no boxes as asked.
func (r *record) ways() []string {
	all := []string{asAsked, ofPeaks, asLearned}
	if r.askless {
		return all[1:]
	}
	return all
}

// settle sets the machine: flags win.
func (o *options) settle(cmd *cobra.Command, r *record) {
	given := cmd.Flags().Changed
	if given("nodes") {
		r.machine.Nodes = o.nodes
	}
	for k, a := range o.node {
		if a > 0 {
			r.machine.Node[k] = a
		}
	}
	if given("nodes") || given("node-memory") || given("node-cpus") {
		r.said += ", and flags"
	}
	// What tasks do beside each other on disks and the network is not simulated.
	r.machine.Node = resource.Of(r.machine.Node[resource.CPU], r.machine.Node[resource.Memory])
	if !given("swap") {
		o.swap = r.machine.Node[resource.Memory]
	}
	r.fit()
}

// format is a kind of file: how it is imported, and whether the beginning of a file is that of one.
type format struct {
	name  string
	make  func() importer.Format
	is    func(start string) bool
	label string
	// byStage says that the name of a stage is that of its program.
	byStage bool
	box     func(a *appJSON, most resource.Amount) string
	// said is where the machine is from; empty if it is suggested for the load.
	said string
	// teaches says that "bellows profile import" reads such files.
	teaches bool
}

// formats are those that need no further assumptions. Others come as workloads, from `bellows trace import`.
var formats = []format{
	{name: "spark-eventlog", label: "event logs of Spark", said: "the executors of the logs", teaches: true,
		make: func() importer.Format {
			f := importer.DefaultSpark()
			f.NameApps, f.Granted = true, true
			return f
		},
		is: func(start string) bool { return strings.Contains(start, `"SparkListener`) }},
	{name: "nextflow", label: "a trace of Nextflow", byStage: true,
		make: func() importer.Format {
			f := importer.DefaultNextflow()
			f.NameStages = true
			return f
		},
		is: func(start string) bool { return strings.Contains(start, "task_id") },
		box: func(a *appJSON, most resource.Amount) string {
			return fmt.Sprintf("process { withName: '%s' { memory = '%d MB' } }", strings.ReplaceAll(a.label(), "'", ""),
				roundUp(most, resource.MiB))
		}},
	{name: "slurm", label: "accounting of Slurm",
		make: func() importer.Format { return importer.DefaultSlurm() },
		is:   func(start string) bool { return strings.Contains(start, "JobID") },
		box: func(a *appJSON, most resource.Amount) string {
			return fmt.Sprintf("#SBATCH --job-name=%s --mem=%dM", terminal.Quote(a.label()), roundUp(most, resource.MiB))
		}},
	{name: "swf", label: "a log in the Standard Workload Format", said: "those of the log, if it says so",
		make: func() importer.Format { return importer.DefaultSWF() },
		is:   func(start string) bool { return strings.HasPrefix(start, ";") }},
}

func formatNames() (names []string) {
	for i := range formats {
		names = append(names, formats[i].name)
	}
	return append(names, workloadfile.Compact)
}

// read returns the record, and the policy under which it is to be simulated.
func (o *options) read(cmd *cobra.Command, files []string) (*record, trial.Contender, error) {
	if len(files) == 0 {
		return o.own(cmd)
	}
	chosen, err := o.policy(policy.Default, nil)
	if err != nil {
		return nil, chosen, err
	}
	name := o.format
	if name == workloadfile.Auto {
		if name, err = recognise(cmd.Context(), cmd.InOrStdin(), files); err != nil {
			return nil, chosen, err
		}
	}
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	var r *record
	if i < 0 {
		r, err = o.workload(files)
	} else {
		r, err = o.imported(cmd, &formats[i], files)
	}
	return r, chosen, err
}

// policy returns the policy of the flags, or else the usual one.
func (o *options) policy(usual string, settings map[string]string) (trial.Contender, error) {
	all, err := o.policies.Contenders(usual, settings, simulate.Exists)
	switch {
	case err != nil:
		return trial.Contender{}, err
	case len(all) != 1:
		return trial.Contender{}, command.Usagef("policy: must be one, but %d are given", len(all))
	}
	return all[0], nil
}

// hardly is the load on the suggested cluster below which jobs are submitted at once.
const hardly = 0.01

// flagsOfImport are hints on flags that `bellows trace import` has.
var flagsOfImport = regexp.MustCompile(` \(--[^)]*\)`)

func (o *options) imported(cmd *cobra.Command, f *format, files []string) (*record, error) {
	sources, closeAll, err := recordings.Open(cmd.Context(), cmd.InOrStdin(), files)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	flex := cluster.Flex // no hint on classes is wanted
	shown, done := recordings.Progress(cmd.ErrOrStderr(), o.quiet)
	defer done()
	options := importer.Options{Bandwidth: importer.Ignored, Class: &flex, Progress: shown}
	made, err := importer.Import(f.make(), sources, options)
	if err := recordings.Wrong(cmd.Context(), err); err != nil {
		return nil, err
	}
	r := &record{source: f.label, machine: made.Cluster, ends: made.Ends, byStage: f.byStage, box: f.box,
		said: cmp.Or(f.said, "suggested for the load of the record")}
	for _, n := range made.Notes {
		if !strings.Contains(n, "--arrivals-scale") {
			r.notes = append(r.notes, flagsOfImport.ReplaceAllString(n, ""))
		}
	}
	if len(made.Workload.Jobs) > 1 && max(made.Asked[resource.CPU], made.Asked[resource.Memory]) < hardly {
		r.notes = append(r.notes, "What was recorded hardly overlaps: all of it is submitted at once.")
		for i := range made.Workload.Jobs {
			made.Workload.Jobs[i].Submitted = 0
		}
	}
	tasks := 0
	for i := range made.Workload.Jobs {
		tasks += made.Workload.Jobs[i].Tasks()
	}
	if f.teaches {
		r.teach = "bellows profile import"
		for _, name := range files {
			r.teach += " " + terminal.Quote(name)
		}
	}
	r.askless = made.Unasked > 0 && made.Unasked >= tasks
	r.take(made.Workload, o.tasks)
	return r, nil
}

// workload reads a workload file or a job file, whose requests are the estimates of memory.
func (o *options) workload(files []string) (*record, error) {
	if len(files) > 1 {
		return nil, command.Usagef("FILE: a workload must be one file, but there are %d", len(files))
	}
	f, err := workloadfile.Open(files[0], workloadfile.Auto)
	if err != nil {
		return nil, err
	}
	r := &record{source: "a workload", machine: workload.ClusterShape{Nodes: 1, Node: resource.Of(16*resource.Core,
		64*resource.GiB)}, said: "assumed"}
	if f.Jobs != nil && f.Jobs.Header.Cluster != nil {
		r.machine, r.said = *f.Jobs.Header.Cluster, "suggested by the workload"
	}
	w, err := f.Read(nil)
	if err != nil {
		return nil, err
	}
	r.take(w, o.tasks)
	if len(r.tasks) == 0 {
		return nil, command.Usagef("%s: must have at least one task", files[0])
	}
	return r, nil
}

// recognise returns the format of files by the content of the first of them that tells it.
func recognise(ctx context.Context, in io.Reader, files []string) (string, error) {
	if slices.Contains(files, "-") {
		return "", command.Usagef("format: must be given for standard input: --format %s", strings.Join(formatNames(), "|"))
	}
	sources, closeAll, err := recordings.Open(ctx, in, files)
	defer closeAll()
	if err != nil {
		return "", err
	}
	const few = 20
	for _, s := range sources[:min(few, len(sources))] {
		if strings.HasPrefix(path.Base(s.Name), "appstatus_") {
			continue // beside the parts of a log of Spark, and empty
		}
		start, err := startOf(s)
		if err != nil {
			return "", recordings.Wrong(ctx, workloadfile.FaultOf(err))
		}
		if workload.IsFile(start) || strings.HasPrefix(string(start), "bellows:") {
			return workloadfile.Compact, nil
		}
		head, _, _ := strings.Cut(string(start), "\n")
		if strings.Contains(head, "JobID") && !strings.Contains(head, "|") {
			return "", command.Usagef("%s: head: must separate its columns by |, as \"sacct --parsable2\" does", s.Name)
		}
		for i := range formats {
			if formats[i].is(string(start)) {
				return formats[i].name, nil
			}
		}
	}
	return "", command.Usagef("format of %s: is not one that is recognised: name it by --format %s, or make a workload "+
		"of it with \"bellows trace import\"", files[0], strings.Join(formatNames(), "|"))
}

// startOf returns the beginning of a file, unpacked.
func startOf(s importer.Source) ([]byte, error) {
	content, err := workload.Unpack(s.Data, s.Name)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	start, err := bufio.NewReaderSize(content, 4<<10).Peek(4 << 10)
	if err == io.EOF || errors.Is(err, bufio.ErrBufferFull) || workload.IsTruncated(err) {
		err = nil
	}
	return start, err
}
