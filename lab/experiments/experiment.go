package experiments

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/lab/chart"
)

// Experiment is a table or a figure of a paper that can be made again.
type Experiment struct {
	Name  string // PAPER/FIGURE, such as yarn-me/fig6a
	Title string // what it shows, in a few words
	Paper string // where it stands: paper, section, figure
	// Setup says how we run it, and which values we chose where the paper gives none.
	Setup []string
	// Unit is what is counted as a run, such as "traces per configuration"; empty if there is nothing to repeat.
	Unit string
	// Runs is how many of Unit are run by default, and Full how many the paper has, or we take for it.
	Runs, Full int
	// Takes and TakesFull are how long that took on the two cores of a small machine; empty if it was not measured.
	Takes, TakesFull string

	run func(l *lab) (*Findings, error)
}

// Findings is what came of an experiment.
type Findings struct {
	Claims   []Claim
	Tables   []Table // for people: they stand in the report
	Data     []Table // for programs: written as CSV and JSON
	Pictures []Picture
	// Notes say what an experiment taught: why numbers differ, what a reader might misread.
	Notes []string
}

// Picture is a chart of the findings.
type Picture struct {
	Name    string // what tells it from others of the experiment, in a file's name
	Caption string
	chart.Picture
}

// Verdict says whether a claim of a paper holds here.
type Verdict string

const (
	Holds    Verdict = "yes"
	Partly   Verdict = "partly"
	Fails    Verdict = "no"
	Untested Verdict = "not tested"
)

// Claim is a sentence or a number of a paper beside ours.
type Claim struct {
	Says  string `json:"says"`  // the paper's sentence, or what its figure shows
	Where string `json:"where"` // section
	Paper string `json:"paper"` // its number
	Ours  string `json:"ours"`
	// Criterion says when the claim counts as holding, and when in part; empty if it was not tested.
	Criterion string  `json:"criterion"`
	Holds     Verdict `json:"holds"`
	// Why says what is behind a claim that does not hold, or not quite.
	Why string `json:"why,omitempty"`
}

// judge is Holds if whole, else Partly if half, else Fails. why is kept unless the claim holds.
func (c Claim) judge(whole, half bool, why string) Claim {
	switch {
	case whole:
		c.Holds = Holds
	case half:
		c.Holds, c.Why = Partly, why
	default:
		c.Holds, c.Why = Fails, why
	}
	return c
}

// Table is rows below heads.
type Table struct {
	Name  string     `json:"name"` // a caption in the report; part of a file's name for data
	Heads []string   `json:"heads"`
	Rows  [][]string `json:"rows"`
}

func newTable(name string, heads ...string) Table {
	return Table{Name: name, Heads: heads, Rows: [][]string{}}
}

func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Settings are how an experiment is to be run.
type Settings struct {
	Runs    int  // of the experiment's Unit; 0 is its default
	Full    bool // the paper's scale
	Seed    uint64
	Workers int // 0: one per core
	// Journal is the file that keeps what was computed until the experiment ends, so that one that was interrupted goes on where
	// it stopped; "" keeps nothing.
	Journal string
	// Program tells builds apart: a journal that another build wrote is not continued.
	Program string
	// Progress, if not nil, is told how many simulations of a part are done.
	Progress func(part string, done, all int)

	// quick makes an experiment as small as shows that it works, for tests.
	quick bool
	// part makes an experiment of the first and the last point alone of what it sweeps, for tests.
	part bool
}

// Run makes an experiment and returns what came of it. It ends early with the error of ctx.
func (e *Experiment) Run(ctx context.Context, s Settings) (*Result, error) {
	if s.Runs < 0 {
		return nil, fmt.Errorf("runs %d: must be at least 1", s.Runs)
	}
	s.Runs = e.runs(s)
	l, err := newLab(ctx, e, s)
	if err != nil {
		return nil, err
	}
	found, err := e.run(l)
	if closing := l.close(err == nil); err == nil {
		err = closing
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return &Result{Summary: e.summary(s, found), Data: found.Data, Pictures: found.Pictures}, nil
}

// All returns every experiment, in the order of the papers.
func All() []Experiment {
	all := []Experiment{}
	all = append(all, yarnME()...)
	all = append(all, pufferfish()...)
	return all
}

// runs is how many runs the settings ask of e.
func (e *Experiment) runs(s Settings) int {
	switch {
	case s.Runs > 0:
		return s.Runs
	case s.Full:
		return e.Full
	}
	return e.Runs
}

// Find returns the experiments that a name or a pattern such as "yarn-me/*" means; "yarn-me/..." is all below yarn-me. The
// error says that there is none.
func Find(pattern string) ([]Experiment, error) {
	var found []Experiment
	below, tree := strings.CutSuffix(pattern, "/...")
	for _, e := range All() {
		ok, err := path.Match(pattern, e.Name)
		if err != nil {
			return nil, fmt.Errorf("experiment %q: is no pattern", pattern)
		}
		if ok || tree && strings.HasPrefix(e.Name, below+"/") || pattern == "..." {
			found = append(found, e)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("experiment %q: there is none of that name; `bellows-lab experiment list` has them all", pattern)
	}
	return found, nil
}

// Names returns the names of all experiments.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	return slices.Clip(names)
}
