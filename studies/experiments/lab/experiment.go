package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bellows-rm/bellows/studies/chart"
)

// Experiment is a table or a figure of a paper that can be reproduced. Its texts are in the file of the paper.
type Experiment struct {
	Name  string // PAPER/FIGURE, such as yarn-me/fig6a
	Title string // what it shows, in a few words
	Paper string // source: paper, section, figure
	// Setup says how we run the experiment, and which values we chose where the paper gives none.
	Setup []string
	// Unit is the unit of runs, such as "traces per configuration"; empty if there is nothing to repeat.
	Unit string
	// Runs is the default number of runs, and Full the number in the paper, or our choice for it.
	Runs, Full int
	// Takes and TakesFull are how long these runs took on the two cores of a small machine; empty if it was not
	// measured.
	Takes     string
	TakesFull string `yaml:"takes_full"`
	// Claims are what the paper claims.
	Claims []Statement
	// Notes are further findings: why numbers differ, what a reader might misread.
	Notes []string
	// Needs are the folders of recorded data, in that of the settings, that the experiment reads.
	Needs []string

	Do Run
}

// Run runs an experiment.
type Run func(l *Lab) (*Findings, error)

// Findings are the findings of an experiment.
type Findings struct {
	Claims   []Claim
	Tables   []Table // for people: in the report
	Data     []Table // for programs: written as CSV and JSON
	Pictures []Picture
	Notes    []string // those with numbers of this run
}

// Picture is a chart of the findings.
type Picture struct {
	Name    string // its part of a file's name, unique in the experiment
	Caption string
	chart.Picture
}

// Table is rows below heads.
type Table struct {
	Name  string     `json:"name"` // a caption in the report; part of a file's name for data
	Heads []string   `json:"heads"`
	Rows  [][]string `json:"rows"`
}

// NewTable returns a table without rows.
func NewTable(name string, heads ...string) Table {
	return Table{Name: name, Heads: heads, Rows: [][]string{}}
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Put adds a row of texts, and of numbers that read back exactly.
func (t *Table) Put(values ...any) {
	var cells []string
	for _, v := range values {
		if number, ok := v.(float64); ok {
			v = Exact(number)
		}
		cells = append(cells, fmt.Sprint(v))
	}
	t.Add(cells...)
}

// Settings say how to run an experiment.
type Settings struct {
	Runs    int  // of the experiment's Unit; 0 is its default
	Full    bool // the paper's scale
	Seed    uint64
	Workers int // 0: one per core
	// Data is the folder of recorded data, for experiments that need some; "" means none.
	Data string
	// Journal is the file that keeps results until the experiment ends, so that an interrupted experiment continues
	// where it stopped; "" keeps nothing.
	Journal string
	// Program identifies the build: a journal that another build wrote is not continued.
	Program string
	// Progress, if not nil, is called with the number of finished simulations of a part.
	Progress func(part string, done, all int)

	// quick makes an experiment just large enough to show that it works, for tests.
	Quick bool
	// part runs only the first and the last point of a sweep, for tests.
	Part bool
}

// Run runs an experiment and returns its result. When ctx ends, it returns early with the error of ctx.
func (e *Experiment) Run(ctx context.Context, s Settings) (*Result, error) {
	if s.Runs < 0 {
		return nil, fmt.Errorf("runs %d: must be at least 1", s.Runs)
	}
	if lacks := e.Lacks(s.Data); lacks != "" {
		return nil, fmt.Errorf("%s: %s", e.Name, lacks)
	}
	s.Runs = e.runs(s)
	l, err := newLab(ctx, e, s)
	if err != nil {
		return nil, err
	}
	found, err := e.Do(l)
	if closing := l.close(err == nil); err == nil {
		err = closing
	}
	if err == nil {
		found.Claims, err = e.judged(found.Claims)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return &Result{Summary: e.summary(s, found), Data: found.Data, Pictures: found.Pictures}, nil
}

// Lacks says which recorded data of the experiment is not in a folder; "" if all of it is there.
func (e *Experiment) Lacks(data string) string {
	for _, name := range e.Needs {
		if _, err := os.Stat(filepath.Join(data, name)); data == "" || err != nil {
			return fmt.Sprintf("needs %s, recorded data that is not part of bellows, in the folder --data",
				strings.Join(e.Needs, ", "))
		}
	}
	return ""
}

// runs returns the number of runs of e that the settings request.
func (e *Experiment) runs(s Settings) int {
	switch {
	case s.Runs > 0:
		return s.Runs
	case s.Full:
		return e.Full
	}
	return e.Runs
}
