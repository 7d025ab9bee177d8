package comparison

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/sim/trial"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// example has two policies on three seeds; on the second seed the first policy fails, on the third the second policy.
func example() *Comparison {
	c := New([]trial.Contender{{Label: "fair"},
		{Label: "yarn-me:a=b", Policy: "yarn-me", Settings: map[string]string{"yarn-me.timeline": "resimulate"}}})
	run := func(contender int, seed uint64, average float64, runtimes ...float64) Run {
		return Run{Outcome: trial.Outcome{Contender: contender, Seed: seed, Jobs: 2, Tasks: 9, Average: average,
			Makespan: 2 * average, Utilisation: 0.5, BoundAverage: 10, BoundMakespan: 20, FailedJobs: contender},
			Runtimes: runtimes}
	}
	first := run(0, 1, 100, 80, 120)
	first.Picture = &Schedule{End: 10, Nodes: []string{"n1", "n2"}, Resources: []string{"memory"}, Capacity: []float64{4},
		Tasks: []Task{{0, 0, 0, 10, false, []float64{2}}, {0, 1, 0, 5, true, []float64{1}},
			{1, 1, 2, 4, false, []float64{1}}}}
	c.Add(first)
	c.Add(run(1, 1, 50, 20, 240))
	c.Add(Run{Outcome: trial.Outcome{Contender: 0, Seed: 2, Error: "no room <anywhere>"}})
	c.Add(run(1, 2, 60, 60, math.NaN()))
	c.Add(run(0, 3, 200, 100, 300))
	c.Add(Run{Outcome: trial.Outcome{Contender: 1, Seed: 3, Error: "stuck"}})
	return c
}

// TestRatios: ratios of jobs are only of seeds on which both contenders have a result.
func TestRatios(t *testing.T) {
	if got := example().ratios[1]; len(got) != 2 || got[0] != 0.25 || got[1] != 2 {
		t.Errorf("ratios of jobs: %v", got)
	}
}

// TestPage: one file that fetches nothing, with labels of users escaped.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	c := example()
	if err := c.WritePage(&b, "a <b> & c", []Setting{{"version", "1"}}, c.Figures()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, part := range []string{"a &lt;b&gt; &amp; c", "no room &lt;anywhere&gt;", "prefers-color-scheme:dark",
		"Tasks on nodes, fair", "Memory granted over time", "yarn-me.timeline=resimulate"} {
		if !strings.Contains(page, part) {
			t.Errorf("no %s in the page", part)
		}
	}
	rest := strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, "")
	for _, part := range []string{"http", "src=", "<script", "@import", "url(", "ZgotmplZ"} {
		if strings.Contains(rest, part) {
			t.Errorf("%s in the page", part)
		}
	}
}

// TestUtilisation: the area below the line is the granted resource over time.
func TestUtilisation(t *testing.T) {
	s := example().pictures[0]
	line := s.used(0, 10, 1, "x", 1)
	area := 0.0
	for i := range len(line.X) - 1 {
		area += line.Y[i] / 100 * s.Capacity[0] * (line.X[i+1] - line.X[i])
	}
	near(t, "held", area, 2*10+1*5+1*2, 1e-9)
	if got := s.peaks(); got[0] != 2 || got[1] != 1 {
		t.Errorf("peaks %v", got)
	}
}
