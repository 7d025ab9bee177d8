package trial

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestEstimates compares with results worked out by hand: 1 to 5 have the mean 3 and the standard error √(2.5/5), and t
// for 4 degrees of freedom is 2.7764.
func TestEstimates(t *testing.T) {
	e := Mean([]float64{1, 2, 3, 4, 5})
	near(t, "mean", e.Mean, 3, 1e-12)
	near(t, "low", e.Low, 3-2.7764*math.Sqrt(0.5), 1e-4)
	near(t, "high", e.High, 3+2.7764*math.Sqrt(0.5), 1e-4)
	near(t, "geometric mean", GeometricMean([]float64{1, 4}).Mean, 2, 1e-12)
	if e := Mean([]float64{7}); e.Mean != 7 || e.Interval() {
		t.Errorf("one value: %v", e)
	}
	if Mean(nil).Known() || GeometricMean(nil).Known() || Mean([]float64{1, math.Inf(1)}).Known() {
		t.Error("nothing is known of nothing")
	}
	// From tables of the distribution, by degrees of freedom. Alternating -1 and 1 have the mean 0.
	for freedom, want := range map[int]float64{1: 12.7062, 9: 2.2622, 31: 2.0395, 119: 1.9801, 999: 1.9623} {
		values := make([]float64, freedom+1)
		for i := range values {
			values[i] = float64(i%2*2 - 1)
		}
		near(t, "quantile", Mean(values).High*math.Sqrt(float64(freedom)), want, 1e-4)
	}
}

// TestGeometricMeanOfInverse: the order of the two policies does not matter.
func TestGeometricMeanOfInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ratios := rapid.SliceOfN(rapid.Float64Range(0.01, 100), 2, 20).Draw(t, "ratios")
		inverse := make([]float64, len(ratios))
		for i, r := range ratios {
			inverse[i] = 1 / r
		}
		a, b := GeometricMean(ratios), GeometricMean(inverse)
		for _, pair := range [][2]float64{{a.Mean, b.Mean}, {a.Low, b.High}, {a.High, b.Low}} {
			if math.Abs(pair[0]*pair[1]-1) > 1e-9 {
				t.Fatalf("%v and %v", a, b)
			}
		}
	})
}

// example has two policies on three seeds; the first policy fails on the second seed, the other on the third.
func example() *Comparison {
	c := &Comparison{Contenders: []Contender{{Label: "fair"},
		{Label: "yarn-me:a=b", Settings: map[string]string{"yarn-me.a": "b"}}}}
	run := func(contender int, seed uint64, average float64) Outcome {
		return Outcome{Contender: contender, Seed: seed, Jobs: 2, Tasks: 9, Average: average, Makespan: 2 * average,
			Utilisation: 0.5, BoundAverage: 10, BoundMakespan: 20, FailedJobs: contender}
	}
	c.Add(run(0, 1, 100))
	c.Add(run(1, 1, 50))
	c.Add(Outcome{Contender: 0, Seed: 2, Error: "no room <anywhere>"})
	c.Add(run(1, 2, 60))
	c.Add(run(0, 3, 200))
	c.Add(Outcome{Contender: 1, Seed: 3, Error: "stuck"})
	return c
}

// TestPairs: ratios and differences use only seeds on which both policies have a result.
func TestPairs(t *testing.T) {
	s := example().Summaries()
	near(t, "mean of fair", s[0].Average.Mean, 150, 1e-9)
	near(t, "mean of yarn-me", s[1].Average.Mean, 55, 1e-9)
	near(t, "over bound", s[1].AverageOver.Mean, math.Sqrt(30), 1e-9)
	near(t, "ratio", s[1].AverageRatio.Mean, 0.5, 1e-12)
	near(t, "difference", s[1].MakespanDifference.Mean, -100, 1e-12)
	near(t, "ratio of the first to itself", s[0].AverageRatio.Mean, 1, 1e-12)
	if s[1].AverageRatio.Interval() || s[0].Runs != 2 || s[0].Failed != 1 {
		t.Errorf("%+v", s)
	}
	c := example()
	if got := strings.Join(c.Notes(),
		"\n"); got != "yarn-me:a=b: 2 jobs failed over all runs; job runtimes leave them out." {
		t.Error(got)
	}
	if got := strings.Join(c.Errors(),
		"\n"); got != "policy fair, seed 2: no room <anywhere>\npolicy yarn-me:a=b, seed 3: stuck" {
		t.Error(got)
	}
}

func TestFiles(t *testing.T) {
	var b bytes.Buffer
	c := example()
	if err := c.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := strings.Join(columns, ",") + `
fair,1,2,0,9,0,100,200,0.5,0,10,20,
yarn-me:a=b,1,2,1,9,0,50,100,0.5,0,10,20,
fair,2,,,,,,,,,,,no room <anywhere>
yarn-me:a=b,2,2,1,9,0,60,120,0.5,0,10,20,
fair,3,2,0,9,0,200,400,0.5,0,10,20,
yarn-me:a=b,3,,,,,,,,,,,stuck
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	text, err := json.Marshal([]any{c.Summaries(), c.PerSeed(1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`{"runs":2,"failed_runs":1`, `"average_job_runtime_ratio":{"mean":0.5}`,
		`{"error":"stuck","seed":3}`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
}
