package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/studies/demo"
)

const demoLong = `Run real programs on a small part of this machine under fixed and under elastic
allocations of memory, and say which is best and why. The parts are:

elastic   sorts with fixed sizes and under yarn-me, beside what the simulator
          predicts from profiles and the job file alone
flex      programs whose memory comes and goes, in REGULAR and FLEX containers
real      the same with a JVM, a sort, Python and memcached on 3 GiB; it takes
          25 minutes, and runs only with --part real

It needs what "bellows demo" needs, and leaves only its pictures. Where
containers are impossible, elastic is simulated. docs/demo.md says more.`

const demoExample = `  bellows-lab demo
  bellows-lab demo --part flex --rounds 1
  bellows-lab demo --part real --jobs 2,8 --rounds 1 --out results
  bellows-lab demo --rounds 1 --svg picture.svg --flex-svg flex.svg
  bellows-lab demo --simulate-only --json`

// The parts of demo.
const (
	elasticPart = "elastic"
	flexPart    = "flex"
	realPart    = "real"
	bothParts   = "both" // without real
)

// flexLimit is the time limit of the part flex, unless --limit is less.
const flexLimit = 3 * time.Minute

// flexEvery is the default time from one job of the part flex to the next. All nine jobs have been submitted after 2.4
// s, and their peaks together are twice the node's memory, so that FLEX has to suspend containers. With a job a second,
// most jobs find memory that earlier jobs have already released: on a quiet machine no container was suspended. With
// 500 ms and with 200 ms about as many containers were suspended as with 300 ms (studies/measured.md). On a faster
// machine, 500 ms act like a job a second; 200 ms gain nothing, because the cores let six jobs run at a time.
const flexEvery = 300 * time.Millisecond

// demoOptions are the flags of demo.
type demoOptions struct {
	part            string
	rounds, repeats int
	limit, every    time.Duration
	dir             string
	svg, flexSVG    string
	jobs            []int
	out             string
	simulate        bool
	asJSON, quiet   bool
}

// demoResult is the output of --json; a part that was not requested is nil.
type demoResult struct {
	Elastic *demo.ElasticResult `json:"elastic,omitempty"`
	Flex    *demo.FlexResult    `json:"flex,omitempty"`
	Real    *demo.RealResult    `json:"real,omitempty"`
}

func demoCommand() *cobra.Command {
	o := demoOptions{part: bothParts, rounds: 3, repeats: 3, limit: 7*time.Minute + 40*time.Second, every: flexEvery,
		jobs: []int{0, 1, 2, 4, 8}}
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Repeat, judge and draw how real programs share memory",
		Long:    demoLong,
		Example: demoExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(flags.Choice(&o.part, bothParts, elasticPart, flexPart, realPart), "part",
		"part to run: elastic, flex, both of these, or real")
	f.Var(flags.Count(&o.rounds, 1, 100), "rounds", "number of runs of a mix under each allocation")
	f.Var(flags.Count(&o.repeats, 1, 100), "repeats",
		"number of measurements of a program of the part elastic at each size")
	f.Var(flags.Duration(&o.limit, 0), "limit",
		"leave out rounds of a part that would end later than this (part flex: than 3m; part real: only if given, for "+
			"each number of jobs); 0: no limit")
	f.Var(flags.Duration(&o.every, time.Millisecond), "every", "time from one job of the part flex to the next")
	f.Var(flags.Counts(&o.jobs, 0, 64), "jobs",
		"numbers of jobs that the part real runs at a time; 0: the short jobs alone, for a minute")
	f.StringVar(&o.out, "out", "bellows-demo-real",
		"`directory` for results and pictures of the part real; runs whose results are there are not repeated")
	f.StringVar(&o.dir, "dir", "", "`directory` to work in, on a disk; default: that for temporary files")
	f.StringVar(&o.svg, "svg", "bellows-demo.svg",
		"`file` for the picture of the part elastic, memory and tasks over time; empty: none")
	f.StringVar(&o.flexSVG, "flex-svg", "bellows-demo-flex.svg",
		"`file` for the picture of the part flex, the memory of each container over time; empty: none")
	f.BoolVar(&o.simulate, "simulate-only", false,
		"simulate the part elastic with profiles recorded elsewhere, and run no program")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func (o *demoOptions) run(cmd *cobra.Command) error {
	var line *terminal.Progress // none
	if !o.quiet {
		line = terminal.NewProgress(cmd.ErrOrStderr(), "demo")
	}
	with := demo.Options{Rounds: o.rounds, Repeats: o.repeats, Limit: o.limit, Dir: o.dir, Simulate: o.simulate,
		Say: line.Say, Show: line.Show}
	var res demoResult
	out := cmd.OutOrStdout()
	if o.asJSON {
		out = io.Discard
	}
	// shown prints and draws what a part came to.
	shown := func(part demoPart, err error, where func(name string) string, said string) error {
		line.Clear()
		if err != nil {
			return err
		}
		return show(out, part, where, said)
	}
	if o.part == realPart {
		if !cmd.Flags().Changed("limit") {
			with.Limit = 0
		}
		var err error
		res.Real, err = demo.Real(cmd.Context(), with, o.jobs, o.out)
		where := func(name string) string { return filepath.Join(o.out, name+".svg") }
		if err := shown(res.Real, err, where, "Every run is in "+o.out+", and so are the pictures"); err != nil {
			return err
		}
	}
	if o.part == elasticPart || o.part == bothParts {
		var err error
		res.Elastic, err = demo.Elastic(cmd.Context(), with)
		if err := shown(res.Elastic, err, func(string) string {
			return o.svg
		}, "The picture of memory and tasks over time is"); err != nil {
			return err
		}
	}
	if o.part == flexPart || o.part == bothParts {
		if o.limit > 0 {
			with.Limit = min(o.limit, flexLimit)
		}
		var err error
		res.Flex, err = demo.Flex(cmd.Context(), with, o.every)
		if err := shown(res.Flex, err, func(string) string {
			return o.flexSVG
		}, "The picture of each container's memory over time is"); err != nil {
			return err
		}
	}
	if o.asJSON {
		return terminal.WriteJSON(cmd.OutOrStdout(), res)
	}
	return nil
}

// demoPart is the result of a part.
type demoPart interface {
	Write(w io.Writer) error
	Pictures() []demo.Picture
}

// show prints a result and writes its pictures to the files that where names; an empty name means none.
func show(out io.Writer, part demoPart, where func(name string) string, said string) error {
	if err := part.Write(out); err != nil {
		return err
	}
	var files []string
	for _, p := range part.Pictures() {
		file := where(p.Name)
		if file == "" {
			continue
		}
		if err := writePicture(file, p.SVG); err != nil {
			return err
		}
		files = append(files, file)
	}
	if files == nil {
		return nil
	}
	_, err := fmt.Fprintf(out, "\n%s %s.\n", said, strings.Join(files, ", "))
	return err
}
