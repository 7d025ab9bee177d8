package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/simulate"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/comparison"
)

const compareLong = `Run policies on many seeds of a workload, as "bellows simulate --seeds" does,
print the same table, and draw pictures: results over their lower bounds,
distributions of job runtimes, each job compared with the first policy, granted
resources over time, and the tasks of each policy on nodes. --html writes all of
them to one file. The same seeds give the same files, byte by byte, on any
number of cores.

Ctrl-C draws the results so far.`

const compareExample = `  bellows-lab compare --policy fair,yarn-me --workload uniform \
      --penalty sawtooth:1.5 --svg pictures
  bellows-lab compare --policy yarn-me,yarn-me:timeline=resimulate \
      --workload uniform --jobs 50 --nodes 50 --seeds 30 --html timelines.html
  bellows-lab compare --policy pufferfish,fair@4GB,fair@peak --workload flex`

// pictures are the flags with the destinations of pictures.
type pictures struct{ svgDir, pngDir, page string }

func compareCommand() *cobra.Command {
	o := simulate.NewOptions(nil)
	var to pictures
	cmd := &cobra.Command{
		Use:     "compare --workload WORKLOAD --policy A,B,...",
		Short:   "Draw how policies compare on many seeds",
		Long:    compareLong,
		Example: compareExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := o.Open(cmd)
			if err != nil {
				return err
			}
			return to.compare(cmd, s)
		},
	}
	o.Flags(cmd, 10)
	f := cmd.Flags()
	f.StringVar(&to.svgDir, "svg", "", "`directory` for the pictures as SVG")
	f.StringVar(&to.pngDir, "png", "", "`directory` for the pictures as PNG")
	f.StringVar(&to.page, "html", "", "`file` for one page with the table and all pictures")
	return cmd
}

// compare runs all trials, prints and draws their results, and returns the error that sets the exit code.
func (to *pictures) compare(cmd *cobra.Command, s *simulate.Study) error {
	all := comparison.New(s.Contenders)
	grants := make([]comparison.Grants, len(s.Contenders)) // on the first seed
	prepare := func(i int, t *trial.Trial) {
		if c, k := s.Place(i); k == 0 {
			grants[c] = comparison.GrantsOf(&t.Cluster)
		}
	}
	s.RunAll(cmd.Context(), cmd.ErrOrStderr(), prepare, func(i int, r simulate.Run) {
		if r.Interrupted() {
			return
		}
		run := comparison.Run{Outcome: s.Outcome(i, &r)}
		if run.Error == "" {
			run.Runtimes = comparison.Runtimes(r.Result)
			if c, k := s.Place(i); k == 0 {
				run.Picture = grants[c].Schedule(r.Trial.Cluster, r.Result)
			}
		}
		all.Add(run)
	})
	done := len(all.Outcomes)
	if done < s.Runs() {
		fmt.Fprintf(cmd.ErrOrStderr(), "bellows-lab: interrupted after %d of %s\n", done, terminal.Count(s.Runs(), "run"))
	}
	if done == 0 {
		return command.Code(command.Interrupted)
	}
	if err := to.draw(s, all); err != nil {
		return err
	}
	if err := s.PrintOverSeeds(cmd.OutOrStdout(), &all.Comparison); err != nil {
		return fmt.Errorf("print the comparison: %w", err)
	}
	failures := all.Errors()
	for _, text := range failures {
		fmt.Fprintf(cmd.ErrOrStderr(), "bellows-lab: %s\n", text)
	}
	switch {
	case done < s.Runs():
		return command.Code(command.Interrupted)
	case len(failures) > 0:
		return command.Code(command.Failed)
	}
	return nil
}

// draw writes all requested pictures.
func (to *pictures) draw(s *simulate.Study, all *comparison.Comparison) error {
	figures := all.Figures()
	for _, f := range figures {
		for _, form := range []struct {
			dir, ending string
			draw        func() ([]byte, error)
		}{{to.svgDir, ".svg", f.Picture.SVG}, {to.pngDir, ".png", f.Picture.PNG}} {
			if form.dir == "" {
				continue
			}
			if err := writePicture(filepath.Join(form.dir, f.Name+form.ending), form.draw); err != nil {
				return err
			}
		}
	}
	if to.page == "" {
		return nil
	}
	var about []comparison.Setting
	for _, row := range s.About() {
		about = append(about, comparison.Setting{Name: row[0], Value: row[1]})
	}
	about = append(about, comparison.Setting{Name: "bellows", Value: command.VersionText() + ", " + runtime.Version()})
	return simulate.WriteFile(to.page, func(w io.Writer) error { return all.WritePage(w, s.Headline(), about, figures) })
}

func writePicture(path string, draw func() ([]byte, error)) error {
	picture, err := draw()
	if err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("write pictures: %w", err)
	}
	return simulate.WriteFile(path, func(w io.Writer) error { _, err := w.Write(picture); return err })
}
