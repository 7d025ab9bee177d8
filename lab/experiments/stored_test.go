package experiments

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// storedResults are what docs/results.md is made of.
const storedResults = "../../docs/results"

var remake = flag.Bool("results", false, "make stored results anew, those that take up to 15 s, and compare every byte")

// TestStoredResults: what is stored is what this program makes. With -results (make results-check) the experiments that take
// at most 15 s are made again as they are stored, and every byte is compared; the others, and all without it, by
// their texts alone: how they were made, what they claim and by which criterion. With -rewrite too, what is made again is stored;
// of the others only how they were made, since a criterion that changed needs a new run.
func TestStoredResults(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			s, ok, err := e.Stored(storedResults)
			if err != nil || !ok {
				t.Fatalf("is not stored: %v", err)
			}
			if takes, err := time.ParseDuration(strings.ReplaceAll(e.Takes, " ", "")); *remake && err == nil && takes <= 15*time.Second && s.Runs <= e.Runs {
				compareBytes(t, &e, s)
				return
			}
			t.Parallel()
			compareTexts(t, &e)
		})
	}
}

func compareBytes(t *testing.T, e *Experiment, s Settings) {
	r, err := e.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := r.Save(storedResults, true); err != nil {
			t.Fatal(err)
		}
	}
	text, err := r.Summary.JSON()
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, FileName(e.Name)+".json", text)
	for _, p := range r.Pictures {
		svg, err := p.SVG()
		if err != nil {
			t.Fatal(err)
		}
		compareFile(t, pictureFile(e.Name, p.Name), svg)
	}
}

func compareFile(t *testing.T, name string, want []byte) {
	got, err := os.ReadFile(filepath.Join(storedResults, name))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.Split(want, []byte("\n")) {
		stored, rest, _ := bytes.Cut(got, []byte("\n"))
		if !bytes.Equal(stored, line) {
			t.Fatalf("%s, line %d, is not what is made now: `make results`, and say in %s why a number moved\nstored: %s\nmade:   %s", name, i+1, "docs/results.md", stored, line)
		}
		got = rest
	}
}

// compareTexts compares what a small version of the experiment says with what is stored.
func compareTexts(t *testing.T, e *Experiment) {
	stored, _, err := readSummary(storedResults, e.Name)
	if err != nil {
		t.Fatal(err)
	}
	small, err := e.Run(t.Context(), Settings{Runs: 1, Seed: 7, Workers: 1, quick: true})
	if err != nil {
		t.Fatal(err)
	}
	made := small.Summary
	if *rewrite {
		stored.Title, stored.Paper, stored.Setup, stored.Unit, stored.FullRuns = made.Title, made.Paper, made.Setup, made.Unit, made.FullRuns
		text, err := stored.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(storedResults, FileName(e.Name)+".json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	there := textsOf(&stored)
	for _, text := range textsOf(&made) { // a small version may claim less
		if !slices.Contains(there, text) {
			t.Errorf("is not stored, so that it must be made anew: %s", text)
		}
	}
}

// textsOf are the texts of a result that do not depend on how many runs it has.
func textsOf(m *Summary) []string {
	texts := append([]string{m.Title, m.Paper, m.Unit}, m.Setup...)
	for _, c := range m.Claims {
		texts = append(texts, c.Says, c.Where, c.Paper, c.Criterion)
	}
	for _, p := range m.Pictures {
		texts = append(texts, p.File)
	}
	return texts
}

// TestCheckOverwrite: a result of more runs, or of the paper's scale, is not replaced by one of fewer.
func TestCheckOverwrite(t *testing.T) {
	e := Experiment{Name: "yarn-me/fig6a", Unit: "traces", Runs: 2, Full: 100}
	dir := t.TempDir()
	store := func(runs int, full bool) {
		r := Result{Summary: Summary{Version: summaryVersion, Experiment: e.Name, Runs: runs, Full: full, Claims: []Claim{}, Tables: []Table{}}}
		if err := r.Save(dir, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.CheckOverwrite(dir, Settings{}); err != nil {
		t.Errorf("nothing is stored: %v", err)
	}
	for _, c := range []struct {
		stored     int
		storedFull bool
		made       Settings
		refused    bool
	}{
		{10, false, Settings{}, true},
		{10, false, Settings{Runs: 9}, true},
		{10, false, Settings{Runs: 10}, false},
		{10, false, Settings{Full: true}, false},
		{2, false, Settings{}, false},
		{2, true, Settings{Runs: 2}, true},
		{2, true, Settings{Runs: 2, Full: true}, false},
	} {
		store(c.stored, c.storedFull)
		if err := e.CheckOverwrite(dir, c.made); (err != nil) != c.refused {
			t.Errorf("%d stored (full %v), %+v: %v", c.stored, c.storedFull, c.made, err)
		}
	}
}
