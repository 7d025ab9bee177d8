package experiments

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/studies/experiments/bellows"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
	"github.com/bellows-rm/bellows/studies/experiments/prophet"
	"github.com/bellows-rm/bellows/studies/experiments/yarnme"
)

// long is an experiment whose stored result takes too long to reproduce. Two parts are reproduced instead: its first
// traces, whose numbers are all in testdata, and its claims, from the stored numbers.
type long struct {
	runs   int                                  // traces to reproduce of each point of a sweep
	claims []func(numbers [4]float64) lab.Claim // a stored claim, from the numbers in its text, in order
}

var longOnes = map[string]long{
	"yarn-me/fig6a":            {1, fig6aLong},
	"yarn-me/fig6a-resimulate": {1, fig6aLong},
	"yarn-me/fig6c": {3, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return yarnme.Fig6cUniformWins(n[0], n[1]) },
		func(n [4]float64) lab.Claim { return yarnme.Fig6cExponentialWins(n[0], n[1]) },
		func(n [4]float64) lab.Claim { return yarnme.Fig6cMeganodeWins(n[0], n[1]) },
	}},
	"yarn-me/fig7a": {10, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return yarnme.Fig7aSimilar(n[0]) },
		func(n [4]float64) lab.Claim { return yarnme.Fig7aComparable(n[0], n[1]) },
	}},
	"yarn-me/fig7b": {10, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return yarnme.Fig7bUpTo(n[0], n[1]) },
		func(n [4]float64) lab.Claim { return yarnme.Fig7bNegligible(n[0]) },
	}},
	"yarn-me/fig7c": {10, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return yarnme.Fig7cReduced(n[1]) },
		func(n [4]float64) lab.Claim { return yarnme.Fig7cOthers(n[1]) },
	}},
	"bellows/ablation": {1, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return bellows.OwnGround(int(n[0]), int(n[1])) },
		func(n [4]float64) lab.Claim { return bellows.Meet(int(n[0]), int(n[1])) },
		func(n [4]float64) lab.Claim { return bellows.Counts(int(n[0]), int(n[1])) },
		func(n [4]float64) lab.Claim { return bellows.Harmless(int(n[0]), int(n[1])) },
		func(n [4]float64) lab.Claim { return bellows.Acts(int(n[0])) },
	}},
	"bellows/headline": {1, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return bellows.MoreWork(int(n[0]), int(n[1])) },
		func(n [4]float64) lab.Claim { return bellows.NoFailure(n[0]) },
	}},
	"prophet/fig11": {1, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return prophet.Fig11Claims(n[0], 0)[0] },
		func(n [4]float64) lab.Claim { return prophet.Fig11Claims(0, n[0])[1] },
	}},
	"prophet/eta": {1, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return prophet.EtaClaims(int(n[1]), int(n[2]))[0] },
	}},
	"prophet/assumed": {1, []func([4]float64) lab.Claim{
		func(n [4]float64) lab.Claim { return prophet.AssumedClaims(n[:2], []float64{1})[0] },
		func(n [4]float64) lab.Claim { return prophet.AssumedClaims([]float64{0}, n[:2])[1] },
	}},
}

var fig6aLong = []func([4]float64) lab.Claim{
	func(n [4]float64) lab.Claim { return yarnme.Fig6aShare(n[0]) },
	func(n [4]float64) lab.Claim { return yarnme.Fig6aDistributions(n[0], n[1], n[2], n[3]) },
	func(n [4]float64) lab.Claim { return yarnme.Fig6aPenalties(n[0], n[1], n[2], n[3]) },
}

func compareLong(t *testing.T, e *lab.Experiment) {
	l, ok := longOnes[e.Name]
	if !ok {
		t.Fatalf("takes more than %v, and of no part of it is known what it gives", affordable)
	}
	stored, _, err := lab.ReadSummary(storedResults, e.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.judgeAgain(stored.Claims); err != nil {
		t.Error(err)
	}
	if !*remake {
		return
	}
	part, err := l.firstTraces(t, e, lab.Settings{Seed: stored.Seed, Full: stored.Full, Data: sharedData})
	if err != nil {
		t.Fatal(err)
	}
	file := longFile(e.Name)
	if testfile.Rewriting() {
		if err := os.WriteFile(file, part, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := sameFile(file, part); err != nil {
		t.Errorf("%v\nthe stored result must be made again, and %s too: the test with -results -rewrite", err, file)
	}
}

func longFile(experiment string) string {
	return filepath.Join("testdata", "first-traces", lab.FileName(experiment)+".json")
}

// firstTraces runs an experiment with its first traces alone, at the ends of its sweep. The whole experiment has the
// same traces, because it draws each trace by a seed of its own.
func (l long) firstTraces(t *testing.T, e *lab.Experiment, s lab.Settings) ([]byte, error) {
	s.Runs, s.Part = l.runs, true
	r, err := e.Run(t.Context(), s)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(struct {
		Claims []lab.Claim `json:"claims"`
		Tables []lab.Table `json:"tables"`
		Traces []lab.Table `json:"traces"`
	}{r.Summary.Claims, r.Summary.Tables, r.Data}, "", " ")
	return append(text, '\n'), err
}

// judgeAgain computes each claim from the numbers in the text of the stored claim, and returns an error that names the
// claims that differ, in their verdict or in any text.
func (l long) judgeAgain(stored []lab.Claim) error {
	if len(stored) != len(l.claims) {
		return fmt.Errorf("%d claims are stored, and %d are judged", len(stored), len(l.claims))
	}
	var differ []error
	for i, c := range stored {
		if made := l.claims[i](numbersIn(c.Ours)); made != c {
			differ = append(differ, fmt.Errorf("claim %d is not what its numbers say\nstored: %+v\nmade:   %+v", i+1, c, made))
		}
	}
	return errors.Join(differ...)
}

var number = regexp.MustCompile(`(?:^| )(-?[0-9]+(?:\.[0-9]+)?)( %|,|;| |$)`)

// numbersIn returns the numbers in a text, percentages as shares; 1.5x does not count as a number.
func numbersIn(text string) (all [4]float64) {
	for i, m := range number.FindAllStringSubmatch(text, len(all)) {
		all[i], _ = strconv.ParseFloat(m[1], 64)
		if m[2] == " %" {
			all[i] /= 100
		}
	}
	return all
}

// TestVerdictsOfLongExperiments: every wrong verdict of a stored claim is noticed, and so is a number that would change
// the verdict.
func TestVerdictsOfLongExperiments(t *testing.T) {
	claims := func(name string) []lab.Claim {
		stored, ok, err := lab.ReadSummary(storedResults, name)
		if err != nil || !ok {
			t.Fatalf("%s is not stored: %v", name, err)
		}
		return stored.Claims
	}
	for name, l := range longOnes {
		for i, c := range claims(name) {
			for _, other := range []lab.Verdict{lab.Holds, lab.Partly, lab.Fails, lab.Untested} {
				bad := slices.Clone(claims(name))
				bad[i].Holds = other
				if err := l.judgeAgain(bad); (err != nil) != (other != c.Holds) {
					t.Errorf("%s: %q is %s; with %s: %v", name, c.Says, c.Holds, other, err)
				}
			}
		}
	}
	for _, c := range []struct {
		name     string
		claim    int
		from, to string
		verdict  lab.Verdict // the verdict with the other number
	}{
		{"yarn-me/fig6a", 0, "80 %", "39 %", lab.Partly},
		{"yarn-me/fig6a", 0, "80 %", "29 %", lab.Fails},
		{"yarn-me/fig6a", 1, "1.00, at 3x 0.41", "1.00, at 3x 1.41", lab.Partly},
		{"yarn-me/fig6a-resimulate", 2, "1.006", "1.000", lab.Holds},
		{"yarn-me/fig6c", 0, "0 % at 3x", "40 % at 3x", lab.Holds},
		{"yarn-me/fig6c", 1, "64 %", "19 %", lab.Fails},
		{"yarn-me/fig6c", 2, "36 %", "51 %", lab.Partly},
		{"yarn-me/fig7a", 0, "0.000", "0.051", lab.Partly},
		{"yarn-me/fig7a", 1, "93 %", "95 %", lab.Holds},
		{"yarn-me/fig7a", 1, "44 %", "51 %", lab.Fails},
		{"yarn-me/fig7b", 0, "59 %", "44 %", lab.Partly},
		{"yarn-me/fig7b", 1, "0.000", "0.051", lab.Fails},
		{"yarn-me/fig7c", 0, "6.5 %", "4.0 %", lab.Holds},
		{"yarn-me/fig7c", 1, "3.2 %", "1.0 %", lab.Holds},
		{"prophet/fig11", 0, "5 %", "8 %", lab.Holds},
		{"prophet/fig11", 1, "7 %", "4 %", lab.Partly},
		{"prophet/eta", 0, "0 are worse", "1 are worse", lab.Holds},
		{"prophet/eta", 0, "0 better", "1 better", lab.Fails},
		{"prophet/assumed", 0, "-1 %", "22 %", lab.Holds},
		{"prophet/assumed", 0, "41 %", "21 %", lab.Fails},
		{"prophet/assumed", 1, "0.86 to 2.28", "1.20 to 4.30", lab.Holds},
		{"prophet/assumed", 1, "0.86 to 2.28", "1.20 to 4.40", lab.Partly},
	} {
		bad := claims(c.name)
		was := bad[c.claim].Ours
		bad[c.claim].Ours = strings.Replace(was, c.from, c.to, 1)
		if bad[c.claim].Ours == was {
			t.Errorf("%s: %q has no %q", c.name, was, c.from)
		}
		if err := longOnes[c.name].judgeAgain(bad); err == nil {
			t.Errorf("%s: %q is still %s with %s", c.name, bad[c.claim].Says, bad[c.claim].Holds, c.to)
		}
		if made := longOnes[c.name].claims[c.claim](numbersIn(bad[c.claim].Ours)); made.Holds != c.verdict {
			t.Errorf("%s: %q is %s, want %s", c.name, bad[c.claim].Ours, made.Holds, c.verdict)
		}
	}
}
