package lab

import (
	"strings"
	"testing"
)

// TestOnlyWhatCanFailCounts: of each paper and of each experiment the report has the verdicts that count, those on
// claims that are one-sided, and how many are put in, whatever their verdict.
func TestOnlyWhatCanFailCounts(t *testing.T) {
	of := func(name string, claims ...Claim) Summary {
		return Summary{Experiment: name, Title: "what", Claims: claims}
	}
	claim := func(l Label, v Verdict) Claim { return Claim{Label: l, Holds: v} }
	got := string(Report([]Summary{
		of("ecs/fig1", claim(CanFail, Holds), claim(CanFail, Holds), claim(CanFail, Untested), claim(PutIn, Holds)),
		of("ecs/fig10", claim(CanFail, Fails), claim(OneSided, Holds), claim(PutIn, Untested)),
		of("ecs-like/fig1", claim(CanFail, Partly), claim(OneSided, Fails), claim(PutIn, Fails)),
	}, "results"))
	for _, row := range []string{
		"\n| ecs | 2 | 0 | 1 | 1 | 1/0/0 | 2 |\n", "\n| ecs-like | 0 | 1 | 0 | 0 | 0/0/1 | 1 |\n",
		"\n| together | 2 | 1 | 1 | 1 | 1/0/1 | 3 |\n",
		"\n| [ecs/fig1](results/ecs-fig1.md) | what | 1 | 2 | 0 | 0 | 1 | – | 1 |\n",
		"\n| [ecs/fig10](results/ecs-fig10.md) | what | 1 | 0 | 0 | 1 | 0 | 1/0/0 | 1 |\n",
	} {
		if !strings.Contains(got, row) {
			t.Errorf("the report does not have %q:\n%s", row, got[len(reportHead):])
		}
	}
}
