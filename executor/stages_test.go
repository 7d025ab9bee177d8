package executor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// driver returns an application that starts its own tasks, without a daemon.
func driver() *Application {
	return &Application{changed: make(chan struct{}),
		driving: &driving{held: map[int64]Attachment{}, changed: map[int]bool{}}}
}

// told takes the next message of an application, if there is one, as a daemon does that knows some stages. The answer
// may be lost: then the same message comes again.
func told(t *testing.T, a *Application, knows []StageGrowth) []StageGrowth {
	t.Helper()
	g, _ := a.growth()
	if g.Number == 0 {
		return knows
	}
	last := -1
	for _, s := range g.Stages {
		switch {
		case s.Stage <= last || s.Stage > len(knows):
			t.Fatalf("stage %d comes after %d, of %d", s.Stage, last, len(knows))
		case s.Stage == len(knows) && s.Function != "" && !s.Anew:
			if slices.ContainsFunc(s.After, func(parent int) bool { return parent >= s.Stage }) {
				t.Fatalf("%+v comes after stages that are not known", s)
			}
			knows = append(knows, s)
		case s.Stage == len(knows) || s.Function != "":
			t.Fatalf("%+v: %d stages are known", s, len(knows))
		case s.Anew:
			s.Function = knows[s.Stage].Function
			knows[s.Stage] = s
		default:
			knows[s.Stage].Demand, knows[s.Stage].Tasks = s.Demand, s.Tasks
		}
		last = s.Stage
		knows[s.Stage].Anew = false
	}
	a.grew(a.lease, &g, Room{})
	return knows
}

// ends says that no stage comes after one any more.
func ends(all []StageGrowth, stage int) {
	for i := range all {
		all[i].After = without(all[i].After, func(parent int) bool { return parent == stage })
	}
}

// Whatever an application demands, begins and ends, and however often the daemon is another one, the daemon knows what
// the application wants as soon as all was said, and a number is that of one stage at a time.
func TestStagesAreTold(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		a := driver()
		var knows, want []StageGrowth
		live := map[int]bool{}
		for step := range 60 {
			switch n := random.IntN(len(want) + 2); {
			case random.IntN(12) == 0: // another daemon
				knows, a.growths = nil, 0
				a.driving.begin()
			case random.IntN(3) == 0:
				knows = told(t, a, knows)
			case n >= len(want):
				s := Stage{Name: fmt.Sprint(step), Function: fmt.Sprint("f", random.IntN(2)), Tasks: random.IntN(3)}
				for parent := range live {
					if random.IntN(2) == 0 {
						s.After = append(s.After, parent)
					}
				}
				n := a.NewStage(s)
				if live[n] {
					t.Fatalf("seed %d: stage %d is given twice", seed, n)
				}
				if live[n] = true; n == len(want) {
					want = append(want, StageGrowth{})
				}
				want[n] = StageGrowth{Stage: n, Name: s.Name, Function: s.Function, After: s.After, Tasks: s.Tasks}
			case live[n] && random.IntN(3) == 0:
				a.EndStage(n)
				ends(want, n)
				delete(live, n)
				want[n] = StageGrowth{Stage: n, Function: want[n].Function}
			case live[n]:
				want[n].Demand = random.IntN(3)
				a.Demand(n, want[n].Demand)
			}
		}
		for range 3 {
			knows = told(t, a, knows)
		}
		for i := range want {
			if want[i].Demand > 0 || knows[i].Demand == 0 && knows[i].Tasks == 0 {
				want[i].Tasks, knows[i].Tasks = 0, 0 // A stage that has demanded something is not about to start.
			}
		}
		if got, want := fmt.Sprintf("%+v", knows), fmt.Sprintf("%+v", want); got != want {
			t.Fatalf("seed %d: the daemon knows\n%s\nwant\n%s", seed, got, want)
		}
		if g, _ := a.growth(); g.Number != 0 {
			t.Fatalf("seed %d: it says the same again: %+v", seed, g)
		}
	}
}

// What changes is said, and looked for, however many stages there are.
func TestDemandIsCheap(t *testing.T) {
	allocations := func(stages int) float64 {
		a := driver()
		for range stages {
			a.NewStage(Stage{Function: "f"})
		}
		told(t, a, nil)
		demand := 0
		return testing.AllocsPerRun(100, func() {
			demand = 1 - demand
			a.Demand(stages-1, demand)
			g, _ := a.growth()
			if len(g.Stages) != 1 {
				t.Fatalf("%d stages are told", len(g.Stages))
			}
			a.grew(a.lease, &g, Room{})
		})
	}
	if few, many := allocations(100), allocations(20_000); many > few {
		t.Errorf("%v allocations with 100 stages, %v with 20,000", few, many)
	}
}

// A stage takes the number of one that has ended and calls the same function.
func TestEndedStage(t *testing.T) {
	a := driver()
	var numbers []int
	for range 5 {
		n := a.NewStage(Stage{Function: "f"})
		a.Demand(n, 1)
		numbers = append(numbers, n, a.NewStage(Stage{Function: "g", After: []int{n}}))
		a.EndStage(n)
	}
	if want := []int{0, 1, 0, 2, 0, 3, 0, 4, 0, 5}; !slices.Equal(numbers, want) {
		t.Errorf("the stages are %v, want %v", numbers, want)
	}
}
