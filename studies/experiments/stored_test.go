package experiments

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// storedResults is the folder of the results in docs/results.md.
const storedResults = "../../docs/results"

var remake = flag.Bool("results", false,
	"make stored results anew, the whole of those that take up to 15 s and the first traces of each longer one, "+
		"and compare every byte")

// The time limits, on the two cores of a small machine, of experiments that are reproduced as a whole: in every run of
// the tests, and with -results.
const (
	brief      = time.Second
	affordable = 15 * time.Second
)

// TestStoredResults: this program reproduces the stored results. Experiments that take at most 1 s, with -results (make
// results-check) at most 15 s, are reproduced as a whole, and every byte is compared. The other experiments are
// compared by their texts: setup, claims and criteria. For experiments that take more than 15 s, the verdicts are
// computed again from the stored numbers, and with -results their first traces are reproduced and compared with
// testdata. With -rewrite, reproduced results are stored; of the other experiments only the setup and the labels of
// claims, because a changed criterion needs a new run. With the race detector nothing is compared: TestSameBytes runs
// the same functions, with several workers.
func TestStoredResults(t *testing.T) {
	if raced {
		t.Skip("compares bytes, in which the race detector finds nothing")
	}
	limit := brief
	if *remake {
		limit = affordable
	}
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			s, ok, err := e.Stored(storedResults)
			if err != nil || !ok {
				t.Fatalf("is not stored: %v", err)
			}
			needsData(t, &e)
			s.Data = sharedData
			if !*remake {
				t.Parallel()
			}
			took := duration(t, &e, s)
			if took <= limit {
				compareWhole(t, &e, s)
				return
			}
			compareTexts(t, &e)
			if took > affordable {
				compareLong(t, &e)
			}
		})
	}
}

// TestCountsOfTesting: the page on tests has the numbers of experiments that are reproduced as a whole, and in part.
func TestCountsOfTesting(t *testing.T) {
	whole, part := 0, 0
	for _, e := range All() {
		s, _, err := e.Stored(storedResults)
		if err != nil {
			t.Fatal(err)
		}
		if duration(t, &e, s) > affordable {
			part++
		} else {
			whole++
		}
	}
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("the %d that take at most 15 s each are run completely, of the %d longer ones the first traces",
		whole, part)
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/testing.md must have %q", want)
	}
	if part != len(longOnes) {
		t.Errorf("%d experiments are long, and %d have parts", part, len(longOnes))
	}
}

// duration is how long the stored result took: the time of the experiment with its default runs, times stored runs /
// default runs.
func duration(t *testing.T, e *lab.Experiment, stored lab.Settings) time.Duration {
	takes, runs := e.Takes, e.Runs
	if stored.Full {
		takes, runs = e.TakesFull, e.Full
	}
	d, err := time.ParseDuration(strings.ReplaceAll(takes, " ", ""))
	if err != nil {
		t.Fatalf("takes %q: how long it takes to make again is not known", takes)
	}
	return d * time.Duration(max(stored.Runs, 1)) / time.Duration(max(runs, 1))
}

func compareWhole(t *testing.T, e *lab.Experiment, s lab.Settings) {
	r, err := e.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if testfile.Rewriting() {
		if err := r.Save(storedResults, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := sameAs(r, storedResults); err != nil {
		t.Errorf("%v\n`make results`, and say in docs/results.md why a number moved", err)
	}
}

// sameAs returns an error that names the difference between a result and the result in a folder: in the summary with
// its verdicts, or in a picture.
func sameAs(r *lab.Result, dir string) error {
	text, err := r.Summary.JSON()
	if err != nil {
		return err
	}
	differ := []error{sameFile(filepath.Join(dir, lab.FileName(r.Summary.Experiment)+".json"), text)}
	for _, p := range r.Pictures {
		svg, err := p.SVG()
		if err != nil {
			return err
		}
		differ = append(differ, sameFile(filepath.Join(dir, lab.PictureFile(r.Summary.Experiment, p.Name)), svg))
	}
	return errors.Join(differ...)
}

// sameFile returns an error that names the first line in which a file differs from made.
func sameFile(file string, made []byte) error {
	stored, err := os.ReadFile(file)
	if err != nil || bytes.Equal(stored, made) {
		return err
	}
	there, here := bytes.Split(stored, []byte("\n")), bytes.Split(made, []byte("\n"))
	i := 0
	for i < len(there) && i < len(here) && bytes.Equal(there[i], here[i]) {
		i++
	}
	there, here = append(there, []byte("(end)")), append(here, []byte("(end)"))
	return fmt.Errorf("%s, line %d, is not what is made now\nstored: %s\nmade:   %s", filepath.Base(file), i+1, there[i],
		here[i])
}

// compareTexts compares the texts of a small version of the experiment with the stored texts.
func compareTexts(t *testing.T, e *lab.Experiment) {
	stored, _, err := lab.ReadSummary(storedResults, e.Name)
	if err != nil {
		t.Fatal(err)
	}
	small, err := e.Run(t.Context(), lab.Settings{Runs: 1, Seed: 7, Workers: 1, Data: sharedData, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	made := small.Summary
	if testfile.Rewriting() {
		stored.Title, stored.Paper, stored.Setup, stored.Needs, stored.Unit, stored.FullRuns = made.Title, made.Paper,
			made.Setup, made.Needs, made.Unit, made.FullRuns
		for i := range stored.Claims {
			for _, declared := range e.Claims {
				if c := &stored.Claims[i]; c.Says == declared.Says {
					c.Label, c.LabelWhy = declared.Label, declared.LabelWhy
				}
			}
		}
		text, err := stored.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(storedResults, lab.FileName(e.Name)+".json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	there := textsOf(&stored)
	for _, text := range textsOf(&made) { // a small version may have fewer claims
		if !slices.Contains(there, text) {
			t.Errorf("is not stored, so that it must be made anew: %s", text)
		}
	}
}

// textsOf returns the texts of a result that do not depend on its number of runs.
func textsOf(m *lab.Summary) []string {
	texts := slices.Concat([]string{m.Title, m.Paper, m.Unit}, m.Setup, m.Needs)
	for _, c := range m.Claims {
		texts = append(texts, c.Says, c.Where, c.Paper, c.Criterion, fmt.Sprint(c.Says, c.Label, c.LabelWhy))
	}
	for _, p := range m.Pictures {
		texts = append(texts, p.File)
	}
	return texts
}

// TestStoredResultsThatDiffer: in a reproduced result, a changed verdict (either way), number or line of a picture is
// noticed.
func TestStoredResultsThatDiffer(t *testing.T) {
	found, err := Find("yarn-me/fig1b") // has claims that hold and claims that fail
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := found[0].Stored(storedResults)
	if err != nil {
		t.Fatal(err)
	}
	r, err := found[0].Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := r.Save(dir, true); err != nil {
		t.Fatal(err)
	}
	if err := sameAs(r, dir); err != nil {
		t.Error(err)
	}
	summary, picture := lab.FileName(found[0].Name)+".json", lab.PictureFile(found[0].Name, "profiles")
	for _, c := range []struct{ file, from, to string }{
		{summary, `"holds": "no"`, `"holds": "yes"`},
		{summary, `"holds": "yes"`, `"holds": "no"`},
		{summary, `"holds": "yes"`, `"holds": "partly"`},
		{summary, `"2.01"`, `"2.02"`},
		{summary, `"criterion": "`, `"criterion": "nearly `},
		{summary, "\n}\n", "\n}\n\n"},
		{picture, "</svg>", "</svg>\n"},
		{picture, "width=\"640\"", "width=\"641\""},
	} {
		mutated(t, filepath.Join(dir, c.file), c.from, c.to, func() {
			if err := sameAs(r, dir); err == nil || !strings.Contains(err.Error(), c.file) {
				t.Errorf("%s with %q instead of %q: %v", c.file, c.to, c.from, err)
			}
		})
	}
}

// mutated calls f while the first occurrence of from in a file is replaced by to.
func mutated(t *testing.T, file, from, to string, f func()) {
	t.Helper()
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(good, []byte(from), []byte(to), 1)
	if bytes.Equal(good, bad) {
		t.Fatalf("%s has no %q", file, from)
	}
	if err := os.WriteFile(file, bad, 0o644); err != nil {
		t.Fatal(err)
	}
	f()
	if err := os.WriteFile(file, good, 0o644); err != nil {
		t.Fatal(err)
	}
}
