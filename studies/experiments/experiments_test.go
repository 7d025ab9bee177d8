package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/studies/experiments/bellows"
	"github.com/bellows-rm/bellows/studies/experiments/ecs"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
	"github.com/bellows-rm/bellows/studies/experiments/mira"
	"github.com/bellows-rm/bellows/studies/experiments/prophet"
	"github.com/bellows-rm/bellows/studies/experiments/pufferfish"
	"github.com/bellows-rm/bellows/studies/experiments/yarnme"
	"github.com/bellows-rm/bellows/studies/prediction"
)

// sharedData is the folder of recorded data next to the project.
const sharedData = "../../../shared/data"

// needsData skips a test of an experiment whose recorded data is not there.
func needsData(t *testing.T, e *lab.Experiment) {
	t.Helper()
	if e.Lacks(sharedData) != "" {
		t.Skipf("needs %s of ../shared/data, recorded by others", strings.Join(e.Needs, ", "))
	}
}

// everything returns all bytes of a result.
func everything(t *testing.T, r *lab.Result) []byte {
	t.Helper()
	text, err := r.Summary.JSON()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r.Data)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, data...)
	for _, p := range r.Pictures {
		svg, err := p.SVG()
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, svg...)
	}
	return text
}

// TestSameBytes: a small version of every experiment gives the same bytes with one worker and with several,
// interrupted and continued from its journal or not. With the race detector it runs with several workers only: one
// worker has nobody to race with.
func TestSameBytes(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			needsData(t, &e)
			t.Parallel()
			s := lab.Settings{Runs: 1, Seed: 7, Workers: 1, Data: sharedData, Quick: true}
			var one *lab.Result
			if !raced {
				var err error
				if one, err = e.Run(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			s.Workers, s.Journal = 3, filepath.Join(t.TempDir(), "journal")
			ctx, interrupt := context.WithCancel(t.Context())
			interrupted := false
			s.Progress = func(_ string, done, all int) {
				if done >= (all+1)/2 {
					interrupted = true
					interrupt()
				}
			}
			several, err := e.Run(ctx, s)
			if interrupted && err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				s.Progress = nil
				several, err = e.Run(t.Context(), s)
			}
			interrupt()
			if err != nil {
				t.Fatal(err)
			}
			if made := everything(t, several); !raced && !bytes.Equal(everything(t, one), made) {
				t.Error("one worker and three, interrupted, give different bytes")
			}
			if _, err := os.Stat(s.Journal); !os.IsNotExist(err) {
				t.Errorf("the journal is still there: %v", err)
			}
		})
	}
}

// TestSeed: another seed gives other numbers, so runs are not all the same.
func TestSeed(t *testing.T) {
	e, err := Find("yarn-me/fig6c")
	if err != nil {
		t.Fatal(err)
	}
	var data [2]string
	for i := range data {
		r, err := e[0].Run(t.Context(), lab.Settings{Runs: 2, Seed: uint64(i), Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Data[0].Rows) != 8 || strings.Join(r.Data[0].Rows[0][2:], " ") == strings.Join(r.Data[0].Rows[2][2:], " ") {
			t.Fatalf("two runs of two penalties and distributions give %q", r.Data[0].Rows)
		}
		data[i] = strings.Join(r.Data[0].Rows[0], " ")
	}
	if data[0] == data[1] {
		t.Errorf("two seeds give %s", data[0])
	}
}

// TestDeclared: every experiment has the descriptions that readers need.
func TestDeclared(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if seen[e.Name] {
			t.Errorf("%s is there twice", e.Name)
		}
		seen[e.Name] = true
		if e.Title == "" || e.Paper == "" || len(e.Setup) == 0 || e.Do == nil {
			t.Errorf("%s: lacks title, paper, setup or run", e.Name)
		}
		for _, c := range e.Claims {
			if c.ID == "" || c.Says == "" || c.Where == "" || c.Paper == "" || c.Holds != "" &&
				(c.Holds != lab.Untested || c.Ours == "") {
				t.Errorf("%s: claim %q lacks its text, or has a verdict", e.Name, c.ID)
			}
			switch c.Label {
			case lab.CanFail:
			case lab.OneSided, lab.PutIn:
				if c.LabelWhy == "" {
					t.Errorf("%s: claim %q is %s, and does not say why", e.Name, c.ID, c.Label)
				}
			default:
				t.Errorf("%s: claim %q has label %q", e.Name, c.ID, c.Label)
			}
		}
		if (e.Unit == "") != (e.Runs == 0) || e.Full < e.Runs {
			t.Errorf("%s: %d to %d of %q", e.Name, e.Runs, e.Full, e.Unit)
		}
	}
	if runs := len(yarnme.Runs) + len(pufferfish.Runs) + len(prophet.Runs) + len(ecs.Runs) +
		len(mira.Runs) + len(bellows.Runs) + len(prediction.Runs); len(seen) != runs {
		t.Errorf("%d experiments are declared, and %d can be run", len(seen), runs)
	}
	for pattern, want := range map[string]int{"yarn-me/fig6a": 1, "yarn-me/*": len(yarnme.Runs),
		"yarn-me/...":   len(yarnme.Runs),
		"yarn-me/fig7?": 3} {
		if found, err := Find(pattern); err != nil || len(found) != want {
			t.Errorf("%s finds %d, %v", pattern, len(found), err)
		}
	}
	for _, pattern := range []string{"", "fig6a", "yarn-me/[", "yarn"} {
		if found, err := Find(pattern); err == nil {
			t.Errorf("%q finds %d", pattern, len(found))
		}
	}
}

// TestDataThatIsNotThere: an experiment says which data it needs.
func TestDataThatIsNotThere(t *testing.T) {
	e, err := Find("ecs/real")
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"", t.TempDir()} {
		if _, err := e[0].Run(t.Context(), lab.Settings{Data: data}); err == nil ||
			!strings.Contains(err.Error(), "ecs/real: needs bitbrains, ") {
			t.Errorf("data %q: %v", data, err)
		}
	}
}

// TestReport: docs/results.md and the pages of the experiments are rendered from the stored summaries, no other page
// is there, and their pictures exist. The table of all verdicts is short enough to be read.
func TestReport(t *testing.T) {
	stored, err := ReadSummaries("../../docs/results")
	if err != nil {
		t.Fatal(err)
	}
	if len(stored) == 0 {
		t.Fatal("no results are stored")
	}
	table := lab.Report(stored, "results")
	if words := len(strings.Fields(string(table))); words > 3000 {
		t.Errorf("docs/results.md has %d words, want at most 3000", words)
	}
	want := map[string][]byte{"../../docs/results.md": table}
	for i := range stored {
		want[filepath.Join("../../docs/results", stored[i].PageName())] = stored[i].Page()
	}
	pages, err := filepath.Glob("../../docs/results/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range pages {
		if want[file] == nil {
			t.Errorf("%s is the page of no stored experiment", file)
		}
	}
	for file, text := range want {
		if testfile.Rewriting() {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, text) {
			t.Errorf("%s is not what its summary renders to; run `bellows-lab experiment report`", file)
		}
	}
	for _, m := range stored {
		for _, p := range m.Pictures {
			if _, err := os.Stat(filepath.Join("../../docs/results", p.File)); err != nil {
				t.Error(err)
			}
		}
		for _, c := range m.Claims {
			if made := strings.Contains(c.Criterion, "the models are made so"); made && c.Label != lab.PutIn {
				t.Errorf("%s: %q is what the models are made for, and is labelled %q", m.Experiment, c.Says, c.Label)
			}
			if c.Holds != lab.Holds && c.Why == "" {
				t.Errorf("%s: %q does not hold, and has no explanation", m.Experiment, c.Says)
			}
		}
	}
}
