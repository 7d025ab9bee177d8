package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/experiments"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

const experimentLong = `Reproduce tables and figures of papers, and compare the papers' numbers with
ours. Clusters are simulated. The same seed gives the same bytes on any machine.`

func experimentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Reproduce tables and figures of papers",
		Long:  experimentLong,
		Example: `  bellows-lab experiment list
  bellows-lab experiment run yarn-me/fig6a
  bellows-lab experiment run 'yarn-me/*' --out results
  bellows-lab experiment show yarn-me/fig6a`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(experimentListCommand(), experimentRunCommand(), experimentShowCommand(), experimentReportCommand())
	return cmd
}

func experimentListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the experiments",
		Long: `List the experiments: what each shows, and how long a default run and a run at
the scale of the paper took on two cores of a small machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := terminal.NewTable("EXPERIMENT", "WHAT", ">TAKES", ">IN FULL")
			t.Shrinks = 1
			for _, e := range experiments.All() {
				t.Add(e.Name, e.Title, terminal.OrDash(e.Takes), terminal.OrDash(e.TakesFull))
			}
			return t.Write(cmd.OutOrStdout())
		},
	}
}

// experimentOptions are the flags of experiment run.
type experimentOptions struct {
	lab.Settings
	out                 string
	again, small, quiet bool
}

const experimentRunLong = `Run experiments, print their results, and write them into a folder: for each
experiment a summary (NAME.json), pictures (SVG), and data (CSV, and
NAME-data.json).

An interrupted experiment leaves a journal in the folder (NAME.journal). The
same program with the same flags continues it where it stopped. Results are
written when they are complete, and do not replace results of more runs.`

func experimentRunCommand() *cobra.Command {
	o := experimentOptions{Settings: lab.Settings{Seed: 1}, out: "results"}
	cmd := &cobra.Command{
		Use:   "run NAME...",
		Short: "Run experiments",
		Long:  experimentRunLong,
		Example: `  bellows-lab experiment run yarn-me/fig6a
  bellows-lab experiment run yarn-me/fig6c --runs 500 --out results
  bellows-lab experiment run 'yarn-me/*' --full`,
		Args:              someExperiments,
		ValidArgsFunction: cobra.FixedCompletions(experiments.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.again && (o.Runs > 0 || o.Full || cmd.Flags().Changed("seed")) {
				return command.Usagef("again: cannot be combined with --runs, --full and --seed")
			}
			return o.run(cmd, names)
		},
	}
	f := cmd.Flags()
	f.Var(flags.Count(&o.Runs, 1, 1<<30), "runs",
		"number of runs, in the unit of the experiment; default: by the experiment")
	f.BoolVar(&o.Full, "full", false, "as many runs as the paper has; this can take hours")
	f.BoolVar(&o.again, "again", false, "as many runs as the result in the folder, with the same seed")
	f.Var(flags.Seed(&o.Seed), "seed", "seed of the runs; the same seed gives the same results")
	f.StringVarP(&o.out, "out", "o", o.out, "`folder` to write into")
	f.BoolVar(&o.small, "summary-only", false, "write the summary and pictures, and no data")
	f.StringVar(&o.Data, "data", "", "`folder` with the recorded data of experiments")
	f.Var(flags.Count(&o.Workers, 0, 1<<10), "workers", "number of simulations at the same time; 0: one per core")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// someExperiments returns an error unless there is at least one name.
func someExperiments(_ *cobra.Command, names []string) error {
	if len(names) == 0 {
		return command.Usagef("experiment: must be named, such as yarn-me/fig6a or 'yarn-me/*'")
	}
	return nil
}

func (o *experimentOptions) run(cmd *cobra.Command, names []string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as in simulate
	list, err := findExperiments(names)
	if err != nil {
		return err
	}
	if list, err = o.possible(cmd.ErrOrStderr(), list); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make the folder of results: %w", err)
	}
	if o.Program, err = thisProgram(); err != nil {
		return err
	}
	for i := range list { // before the first run
		if _, err := o.settings(&list[i]); err != nil {
			return err
		}
	}
	for i := range list {
		if err := o.one(cmd, &list[i], i > 0); err != nil {
			return err
		}
	}
	return nil
}

// possible returns the experiments whose recorded data is there, and says which are left out. It returns an error if it
// is the only one.
func (o *experimentOptions) possible(w io.Writer, list []lab.Experiment) (some []lab.Experiment,
	err error) {
	for i := range list {
		lacks := list[i].Lacks(o.Data)
		switch {
		case lacks == "":
			some = append(some, list[i])
		case len(list) == 1:
			return nil, command.Usagef("%s: %s", list[i].Name, lacks)
		default:
			fmt.Fprintf(w, "%s is left out: it %s\n", list[i].Name, lacks)
		}
	}
	return some, nil
}

// findExperiments returns the experiments that match the names and patterns, each once.
func findExperiments(names []string) ([]lab.Experiment, error) {
	var list []lab.Experiment
	seen := map[string]bool{}
	for _, name := range names {
		found, err := experiments.Find(name)
		if err != nil {
			return nil, command.Usage(err)
		}
		for _, e := range found {
			if !seen[e.Name] {
				seen[e.Name] = true
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// one runs one experiment, writes its results and prints the summary.
func (o *experimentOptions) one(cmd *cobra.Command, e *lab.Experiment, further bool) error {
	s, err := o.settings(e)
	if err != nil {
		return err
	}
	s.Journal = filepath.Join(o.out, lab.FileName(e.Name)+".journal")
	var shown *terminal.Progress
	if !o.quiet {
		shown = terminal.NewProgress(cmd.ErrOrStderr(), e.Name)
		s.Progress = shown.Set
	}
	r, err := e.Run(cmd.Context(), s)
	shown.Clear()
	if err != nil {
		if cmd.Context().Err() != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: interrupted; the same command continues where it stopped\n", e.Name)
		}
		return err
	}
	if err := r.Save(o.out, o.small); err != nil {
		return err
	}
	if further {
		fmt.Fprintln(cmd.OutOrStdout())
	}
	return printExperiment(cmd.OutOrStdout(), &r.Summary)
}

// settings returns the settings of the flags, or of the stored result.
func (o *experimentOptions) settings(e *lab.Experiment) (lab.Settings, error) {
	s := o.Settings
	if !o.again {
		return s, command.Usage(e.CheckOverwrite(o.out, s))
	}
	stored, ok, err := e.Stored(o.out)
	if err == nil && ok {
		s.Runs, s.Full, s.Seed = stored.Runs, stored.Full, stored.Seed
	}
	return s, err
}

// thisProgram returns an identity of this build.
func thisProgram() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// printExperiment prints the findings of an experiment.
func printExperiment(w io.Writer, m *lab.Summary) error {
	fmt.Fprintf(w, "%s: %s\n%s\n", m.Experiment, m.Title, m.Paper)
	if m.Unit != "" {
		fmt.Fprintf(w, "%d %s, seed %d\n", m.Runs, m.Unit, m.Seed)
	}
	for _, c := range m.Claims {
		fmt.Fprintf(w, "\n  %s\n", terminal.Fold("“"+strings.Trim(c.Says, "“”")+"” ("+c.Where+")", terminal.Width-2, "  "))
		for _, line := range [][2]string{{"paper", c.Paper}, {"ours", c.Ours}, {"holds", verdict(c)},
			{"label", c.LabelText()}, {"why not", c.Why}} {
			if line[1] != "" {
				fmt.Fprintf(w, "    %-8s %s\n", line[0], terminal.Fold(line[1], terminal.Width-13, strings.Repeat(" ", 13)))
			}
		}
	}
	for _, t := range m.Tables {
		fmt.Fprintf(w, "\n%s:\n\n", terminal.Fold(t.Name, terminal.Width, ""))
		if err := printExperimentTable(w, t); err != nil {
			return err
		}
	}
	for _, n := range m.Notes {
		fmt.Fprintf(w, "\n%s\n", terminal.Fold(n, terminal.Width, ""))
	}
	return nil
}

// verdict says whether a claim holds, and by which criterion.
func verdict(c lab.Claim) string {
	if c.Criterion == "" {
		return string(c.Holds)
	}
	return string(c.Holds) + " (if " + c.Criterion + ")"
}

// printExperimentTable prints a table; if it is too wide, each row becomes a paragraph.
func printExperimentTable(w io.Writer, t lab.Table) error {
	heads := []string{t.Heads[0]}
	for _, h := range t.Heads[1:] {
		heads = append(heads, ">"+h)
	}
	out := terminal.NewTable(heads...)
	for _, row := range t.Rows {
		out.Add(row...)
	}
	if out.Fits(w) {
		return out.Write(w)
	}
	for _, row := range t.Rows {
		fmt.Fprintf(w, "%s %s\n", t.Heads[0], row[0])
		for i, cell := range row[1:] {
			fmt.Fprintf(w, "    %s: %s\n", t.Heads[i+1], terminal.Fold(cell, terminal.Width-len(t.Heads[i+1])-6, "      "))
		}
	}
	return nil
}

func experimentShowCommand() *cobra.Command {
	from := "results"
	cmd := &cobra.Command{
		Use:               "show NAME...",
		Short:             "Print stored results",
		Long:              `Print the claims and tables of experiments from stored results.`,
		Example:           `  bellows-lab experiment show yarn-me/fig6a --from docs/results`,
		Args:              someExperiments,
		ValidArgsFunction: cobra.FixedCompletions(experiments.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, names []string) error {
			return showExperiments(cmd.OutOrStdout(), from, names)
		},
	}
	cmd.Flags().StringVar(&from, "from", from, "`folder` with results")
	return cmd
}

func showExperiments(w io.Writer, from string, names []string) error {
	list, err := findExperiments(names)
	if err != nil {
		return err
	}
	stored, err := experiments.ReadSummaries(from)
	if err != nil {
		return err
	}
	byName := map[string]*lab.Summary{}
	for i := range stored {
		byName[stored[i].Experiment] = &stored[i]
	}
	shown := 0
	for _, e := range list {
		m, ok := byName[e.Name]
		if !ok {
			continue
		}
		if shown++; shown > 1 {
			fmt.Fprintln(w)
		}
		if err := printExperiment(w, m); err != nil {
			return err
		}
	}
	if shown == 0 {
		return command.Usagef("from %q: has no results of %s; `bellows-lab experiment run` writes them", from,
			strings.Join(names, ", "))
	}
	return nil
}

func experimentReportCommand() *cobra.Command {
	from, out := "docs/results", "docs/results.md"
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write documents of all stored results",
		Long: `Write documents, in Markdown, of all results in a folder: a table that says how
many claims of the papers hold and, beside the result of each experiment, a page
with the claims, our numbers, and why claims do not hold.`,
		Example: `  bellows-lab experiment run 'yarn-me/*' --out docs/results --summary-only
  bellows-lab experiment report`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return writeReport(from, out) },
	}
	cmd.Flags().StringVar(&from, "from", from, "`folder` with results")
	cmd.Flags().StringVarP(&out, "out", "o", out, "`file` to write")
	return cmd
}

func writeReport(from, out string) error {
	stored, err := experiments.ReadSummaries(from)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		return command.Usagef("from %q: has no results; `bellows-lab experiment run` writes them", from)
	}
	folder, err := filepath.Rel(filepath.Dir(out), from)
	if err != nil {
		return command.Usagef("from %q: must be given as out %q is, both absolute or neither", from, out)
	}
	for i := range stored {
		if err := writeDocument(filepath.Join(from, stored[i].PageName()), stored[i].Page()); err != nil {
			return err
		}
	}
	return writeDocument(out, lab.Report(stored, filepath.ToSlash(folder)))
}

func writeDocument(file string, text []byte) error {
	return workload.SaveFile(file, workload.Plain, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
