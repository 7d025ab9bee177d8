package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
)

const long = `Run a workload under one or more policies on a simulated cluster, and print for
each policy the mean time from submission to end of a job and the makespan, each
also as a multiple of its lower bound, the share of memory that was granted, and
the share of tasks that were under-sized.

A workload is a file or is generated: uniform, exponential (as YARN-ME section
6), or flex, with ranges as in uniform:tasks=1:20,memory=1GB:4GB. --seeds N runs
N draws, and prints means with confidence intervals. A policy may be NAME@pool
(one node as large as all), NAME@SIZE or NAME@peak (FLEX jobs in fixed
containers), with settings as in yarn-me:timeline=resimulate. Ctrl-C prints the
results so far. See docs/getting-started.md and docs/reference/simulation.md.`

const example = `  bellows simulate --workload uniform --jobs 50 --nodes 50 --policy fair,yarn-me
  bellows simulate --workload uniform --penalty sawtooth:1.5 \
      --policy fair,yarn-me,srjf@pool --seeds 10 --csv runs.csv
  bellows simulate --workload flex --policy pufferfish,fair@4GB,fair@peak
  bellows simulate --workload mix.yaml --node-memory 4GiB --node-cpus 2
  bellows simulate --workload day.jsonl.zst --cluster cluster.yaml
  bellows simulate --workload nights.yaml --policy fair,prophet --history
  bellows simulate --workload mix.yaml --policy tetris,prophet --json --series
  bellows simulate --workload u100.trace --format dss --nodes 100 \
      --policy fair,yarn-me --set fair.reservations=true \
      --penalty sawtooth:1.5 --json`

// printing is the flags for the output of results.
type printing struct {
	csv                    string
	asJSON, perJob, series bool
}

// check returns an error if a flag would change nothing, or two of them want the same output.
func (p *printing) check(seeds int) error {
	switch {
	case p.series && (!p.asJSON || seeds > 1):
		return command.Usagef("series: needs --json, and one seed")
	case p.perJob && (!p.asJSON || seeds > 1):
		return command.Usagef("per-job: needs --json, and one seed")
	case p.csv == standardOutput && p.asJSON:
		return command.Usagef("csv -: cannot be combined with --json, which is also printed: give a file")
	}
	return nil
}

// standardOutput is the name of the CSV file that is printed instead of the table.
const standardOutput = "-"

// Command returns `bellows simulate`, which looks up the profiles of job files in profiles.
func Command(profiles Profiles) *cobra.Command {
	o := NewOptions(profiles)
	var p printing
	cmd := &cobra.Command{
		Use:     "simulate --workload FILE|uniform|exponential|flex",
		Short:   "Simulate a workload under several policies",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A run keeps most of its allocations and ends soon: collecting garbage a quarter as often saves a tenth of
			// the time.
			defer debug.SetGCPercent(debug.SetGCPercent(400))
			s, err := o.Open(cmd)
			if err != nil {
				return err
			}
			if err := p.check(s.Seeds); err != nil {
				return err
			}
			return s.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), &p)
		},
	}
	o.Flags(cmd, 1)
	f := cmd.Flags()
	f.BoolVar(&o.history, "history", false,
		"learn from the jobs that end what later jobs of their applications will do (docs/forecasts.md)")
	f.BoolVar(&p.asJSON, "json", false, "print JSON")
	f.BoolVar(&p.perJob, "per-job", false, "add the times of each job to the JSON of one seed")
	f.BoolVar(&p.series, "series", false, "add what each node had, granted and used over time to the JSON of one seed")
	f.StringVar(&p.csv, "csv", "", "CSV `file` to write, a row per run; -: standard output, instead of the table")
	return cmd
}

// run runs all trials, prints their results, and returns the error that sets the exit code.
func (s *Study) run(ctx context.Context, out, errOut io.Writer, p *printing) error {
	doc := s.describe()
	if !p.asJSON {
		warn(errOut, doc.Workload.Beyond)
	}
	sum := &trial.Comparison{Contenders: s.Contenders}
	s.forecasts = make([]sim.Forecasts, len(s.Contenders))
	record := func(_ int, t *trial.Trial) { t.Cluster.Series.Nodes = p.series }
	s.RunAll(ctx, errOut, record, func(i int, r Run) {
		if r.Interrupted() {
			return
		}
		if c, _ := s.Place(i); r.Result != nil {
			s.forecasts[c].Add(r.Result.Forecasts)
		}
		sum.Add(s.Outcome(i, &r))
		if s.Seeds == 1 {
			doc.Results = append(doc.Results, s.result(i, doc.Workload, &r, p))
		}
	})
	return s.finish(out, errOut, p, doc, sum)
}

// finish prints the finished runs. If runs are missing, the user interrupted the command.
func (s *Study) finish(out, errOut io.Writer, p *printing, doc simulationJSON, sum *trial.Comparison) error {
	done := len(sum.Outcomes)
	if done < s.Runs() {
		fmt.Fprintf(errOut, "bellows: interrupted after %d of %s\n", done, terminal.Count(s.Runs(), "run"))
	}
	if done == 0 {
		return context.Canceled
	}
	if p.csv != "" && p.csv != standardOutput {
		if err := WriteFile(p.csv, sum.WriteCSV); err != nil {
			return err
		}
	}
	if err := s.print(out, p, doc, sum); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	failures := sum.Errors()
	for _, text := range failures {
		fmt.Fprintf(errOut, "bellows: %s\n", text)
	}
	switch {
	case done < s.Runs():
		return context.Canceled
	case len(failures) > 0:
		return command.Code(command.Failed)
	}
	return nil
}

// print prints the results; the results of one seed are in doc.
func (s *Study) print(out io.Writer, p *printing, doc simulationJSON, sum *trial.Comparison) error {
	switch {
	case p.csv == standardOutput:
		return sum.WriteCSV(out)
	case s.Seeds == 1 && p.asJSON:
		return terminal.WriteJSON(out, doc)
	case s.Seeds == 1:
		return errors.Join(printOneSeed(out, doc), s.printForecasts(out))
	case !p.asJSON:
		return errors.Join(s.PrintOverSeeds(out, sum), s.printForecasts(out))
	}
	doc.Seeds, doc.Confidence = s.Seeds, trial.Confidence
	for c := range s.Contenders {
		doc.Results = append(doc.Results, s.overSeeds(c, doc.Workload, sum))
	}
	return terminal.WriteJSON(out, doc)
}

// WriteFile writes a file with the output of write; if write fails, there is no file.
func WriteFile(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	err := write(&b)
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o666)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
