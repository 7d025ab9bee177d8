package leveling

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
)

// named is a problem of testdata/reference/problems.json.
type named struct {
	Name    string
	Problem *Problem
}

// references returns the problems that another solver solved too.
func references() (all []named) {
	for _, k := range kinds {
		for seed := range uint64(3) {
			all = append(all, named{fmt.Sprintf("tableV-%s-%d", k, seed), k.tableV(rand.New(rand.NewPCG(seed, 3)))})
		}
		for seed := range uint64(3) {
			all = append(all, named{fmt.Sprintf("n5-T8-%s-%d", k, seed), k.random(rand.New(rand.NewPCG(seed, 4)), 5, 8)})
		}
		all = append(all, named{fmt.Sprintf("n6-T15-%s", k), k.random(rand.New(rand.NewPCG(1, 5)), 6, 15)})
		if !k.Precedence {
			all = append(all, named{fmt.Sprintf("n10-T15-%s", k), k.random(rand.New(rand.NewPCG(1, 6)), 10, 15)})
		}
	}
	return all
}

// solved is what the other solver says of a problem: the least value, or how far it came.
type solved struct {
	Name     string
	Proved   bool
	Value    float64 // of the best schedule, in full: equation 14 with F, O and η = 0.4
	Bound    float64
	Constant float64 // η times the sum of F - O, which is the same for all schedules
	Seconds  float64
}

// TestReference compares Solve with HiGHS, which solved equation 14 as it is printed: see testdata/reference/solve.py.
func TestReference(t *testing.T) {
	text, err := json.MarshalIndent(references(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	testfile.Golden(t, filepath.Join("reference", "problems.json"), append(text, '\n'))
	text, err = os.ReadFile(filepath.Join("testdata", "reference", "values.json"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Solver, Command string
		Solved          []solved
	}
	if err := json.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	if len(values.Solved) != len(references()) {
		t.Fatalf("%d values for %d problems: run solve.py again", len(values.Solved), len(references()))
	}
	equal := 0
	for i, r := range references() {
		s, err := Solve(r.Problem, math.MaxInt)
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		verify(t, r.Problem, s)
		c, _ := r.Problem.Cost(s.Runs)
		want, value := values.Solved[i], c.Objective(r.Problem, 0.4)
		if want.Name != r.Name {
			t.Fatalf("values are of %s, problems of %s: run solve.py again", want.Name, r.Name)
		}
		const slack = 1e-3 // of the other solver, in millicores over an interval: α and β are whole ones
		switch {
		case !s.Proved:
			t.Errorf("%s: not proved: %d to %d", r.Name, s.Bound, s.Value)
		case math.Abs(want.Constant-(value-float64(s.Value))) > slack:
			t.Errorf("%s: the constant part is %v, want %v", r.Name, value-float64(s.Value), want.Constant)
		case want.Proved && math.Abs(value-want.Value) > slack:
			t.Errorf("%s: value %v, %s has %v", r.Name, value, values.Solver, want.Value)
		case value > want.Value+slack || value < want.Bound-slack:
			t.Errorf("%s: value %v, %s has %v to %v", r.Name, value, values.Solver, want.Bound, want.Value)
		case want.Proved:
			equal++
		}
	}
	t.Logf("%d of %d problems have the value that %s proved; the others are within its bounds", equal, len(references()),
		values.Solver)
	if equal < 24 {
		t.Errorf("%d problems were proved by both, want at least 24", equal)
	}
}
