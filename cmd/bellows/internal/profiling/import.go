package profiling

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/recordings"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/live/api"
)

const importLong = `Add runs of Spark applications, from event logs as Spark's history server keeps
them, to what runs of your applications taught: one run for each stage whose
tasks all succeeded, with the mean run time of its tasks, their mean demand of
CPU, disk and network, the memory of the largest task, and the input.
What a log does not have is unknown. LOG may be compressed by gzip, or by zstd,
lz4 or snappy as Spark writes them, and be a folder of logs or of a log's parts.

The application has the name that Spark's application has, or that of --app. A
stage is named by its number and Spark's name for it, as in "bellows trace
import"; the stage of an application with one stage has no name. Importing a log
again adds nothing.`

// importOptions are the flags of import.
type importOptions struct {
	place                 place.Place
	spark                 *importer.Spark
	app                   string
	dryRun, asJSON, quiet bool
}

func importCommand() *cobra.Command {
	o := importOptions{spark: importer.DefaultSpark()}
	cmd := &cobra.Command{
		Use:   "import LOG...",
		Short: "Learn from event logs of Spark applications",
		Long:  importLong,
		Example: `  bellows profile import application_1_0001.zstd
  bellows profile import --app nightly --remote-input logs/*.zstd
  bellows profile import --dry-run application_1_0001.zstd`,
		Args: command.SomeArguments("log: must name at least one event log, or - for standard input"),
		RunE: func(cmd *cobra.Command, files []string) error { return o.run(cmd, files) },
	}
	f := cmd.Flags()
	f.StringVar(&o.app, "app", "", "`name` of the application; default: its name in the log")
	f.Var(flags.Memory(&o.spark.TaskBase).OrZero(), "task-base",
		"memory of a task besides execution memory; 0: its share of the executor's")
	f.BoolVar(&o.spark.InputOverNetwork, "remote-input", false,
		"input and output are in an object store, not on local disks")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be learned of each stage, and learn nothing")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	o.place.Flags(cmd, false)
	return cmd
}

func (o *importOptions) run(cmd *cobra.Command, files []string) error {
	if err := cluster.CheckName("app", o.app); err != nil {
		return command.Usage(err)
	}
	runs, notes, err := o.read(cmd, files)
	if err != nil {
		return err
	}
	doc := importJSON{Stages: make([]stageRunJSON, len(runs)), Notes: notes}
	for i := range runs {
		doc.Stages[i] = stageRunOf(&runs[i])
	}
	if !o.dryRun {
		if err := o.learn(cmd, runs, &doc); err != nil {
			return err
		}
	}
	doc.Notes = append([]string{}, doc.Notes...)
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), doc)
	}
	return doc.print(cmd.OutOrStdout(), o.dryRun)
}

func (o *importOptions) read(cmd *cobra.Command, files []string) ([]importer.StageRun, []string, error) {
	sources, closeAll, err := recordings.Open(cmd.Context(), cmd.InOrStdin(), files)
	defer closeAll()
	if err != nil {
		return nil, nil, err
	}
	shown, done := recordings.Progress(cmd.ErrOrStderr(), o.quiet)
	defer done()
	runs, notes, err := o.spark.Runs(sources, o.app, shown)
	return runs, notes, recordings.Wrong(cmd.Context(), err)
}

// mostAtOnce is how many runs the daemon gets in one request, of which it bounds the size.
const mostAtOnce = 1000

// learn adds the runs to what the daemon knows.
func (o *importOptions) learn(cmd *cobra.Command, runs []importer.StageRun, doc *importJSON) error {
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(runs, mostAtOnce) {
		h := &profile.History{}
		for i := range some {
			said, err := h.Observe(some[i].App, some[i].Run)
			if err != nil {
				said = append(said, err.Error())
			}
			for _, s := range said {
				doc.Notes = append(doc.Notes, fmt.Sprintf("%s, stage %q: %s.", some[i].App.Name, some[i].App.Stage, s))
			}
		}
		done, err := client.Import(cmd.Context(), h)
		if err != nil {
			return err
		}
		doc.Notes = append(doc.Notes, done.Notes...)
		for _, a := range done.Apps {
			doc.add(a)
		}
	}
	return nil
}

// importJSON is the output of import --json; docs/reference/output.md describes it.
type importJSON struct {
	Apps   []api.Imported `json:"apps,omitempty" doc:"what the daemon added, by application; omitted with --dry-run"`
	Stages []stageRunJSON `json:"stages" doc:"the runs of stages in the logs"`
	Notes  []string       `json:"notes" doc:"what was left out, and what was not sound"`
}

// add adds what was learned of an application.
func (d *importJSON) add(a api.Imported) {
	at := slices.IndexFunc(d.Apps, func(b api.Imported) bool { return a.Name == b.Name })
	if at < 0 {
		d.Apps = append(d.Apps, a)
		return
	}
	d.Apps[at].Runs, d.Apps[at].Known = d.Apps[at].Runs+a.Runs, d.Apps[at].Known+a.Known
}

// stageRunJSON is the run of the mean task of a stage. Amounts that are unknown are nil.
type stageRunJSON struct {
	App      string           `json:"app" doc:"the application"`
	Stage    string           `json:"stage,omitempty" doc:"the stage; omitted if it is the only one"`
	Tasks    int              `json:"tasks" doc:"tasks that succeeded"`
	Ended    time.Time        `json:"ended" doc:"when the last task ended"`
	Duration float64          `json:"duration_s" doc:"mean duration of the tasks"`
	Input    resource.Amount  `json:"input_bytes,omitempty" doc:"mean input of the tasks; omitted if it is 0 or unknown"`
	CPU      *resource.Amount `json:"cpu_millicores,omitempty" doc:"demand of the [mean task](importers.md#runs-that-spark-recorded); omitted if unknown"`
	Memory   *resource.Amount `json:"memory_bytes,omitempty" doc:"the same"`
	Disk     *resource.Amount `json:"disk_bytes_per_s,omitempty" doc:"the same"`
	Network  *resource.Amount `json:"network_bytes_per_s,omitempty" doc:"the same"`
	Unknown  []string         `json:"unknown,omitempty" doc:"resources that the log does not have"`
}

func stageRunOf(r *importer.StageRun) stageRunJSON {
	demand := r.Run.Phases[0].Demand
	known := func(k resource.Kind) *resource.Amount {
		if r.Run.Unknown.Has(k) {
			return nil
		}
		return &demand[k]
	}
	return stageRunJSON{App: r.App.Name, Stage: r.App.Stage, Tasks: r.Tasks,
		Ended: time.Unix(0, int64(r.Run.Ended)).UTC(), Duration: r.Run.Duration.Seconds(), Input: r.Run.Input,
		CPU: known(resource.CPU), Memory: known(resource.Memory), Disk: known(resource.Disk),
		Network: known(resource.Network), Unknown: r.Run.Unknown.Fields()}
}

// print prints a row for each stage of a dry run, otherwise a line for each application; and the notes.
func (d *importJSON) print(w io.Writer, dry bool) error {
	if dry {
		if err := d.printStages(w); err != nil {
			return err
		}
	}
	for _, a := range d.Apps {
		text := fmt.Sprintf("%s: learned from %s of stages", cluster.Printable(a.Name), terminal.Count(a.Runs, "run"))
		if a.Known > 0 {
			text += fmt.Sprintf("; %d were known already", a.Known)
		}
		fmt.Fprintln(w, terminal.Fold(text, terminal.Width, "  "))
	}
	for _, n := range d.Notes {
		if _, err := fmt.Fprintln(w, terminal.Fold("note: "+cluster.Printable(n), terminal.Width, "  ")); err != nil {
			return err
		}
	}
	return nil
}

func (d *importJSON) printStages(w io.Writer) error {
	t := terminal.NewTable("APPLICATION", "STAGE", ">TASKS", ">TIME", ">INPUT", ">CPUS", ">MEMORY", ">DISK", ">NETWORK")
	for i := range d.Stages {
		s := &d.Stages[i]
		cell := func(k resource.Kind, a *resource.Amount) string {
			switch {
			case a == nil:
				return "?"
			case *a == 0:
				return "-"
			}
			return k.Format(*a)
		}
		input := "?"
		if s.Input > 0 {
			input = resource.FormatMemory(s.Input)
		}
		cpus := cell(resource.CPU, s.CPU)
		if s.CPU != nil && *s.CPU > 0 {
			cpus = resource.FormatCPU(*s.CPU)
		}
		t.Add(terminal.Cut(cluster.Printable(s.App), 16), terminal.Cut(cluster.Printable(s.Stage), 20), fmt.Sprint(s.Tasks),
			fmt.Sprintf("%.1fs", s.Duration), input, cpus, cell(resource.Memory, s.Memory), cell(resource.Disk, s.Disk),
			cell(resource.Network, s.Network))
	}
	return t.Write(w)
}
