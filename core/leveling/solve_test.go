package leveling

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// slowest returns the least value of all schedules, by trying all of them. ok is false if there is none.
func slowest(p *Problem) (value resource.Amount, ok bool) {
	runs := make([][]bool, len(p.Sets))
	var try func(j int)
	try = func(j int) {
		if j == len(p.Sets) {
			if c, err := p.Cost(runs); err == nil && (!ok || c.Value(p) < value) {
				value, ok = c.Value(p), true
			}
			return
		}
		for bits := range 1 << len(p.Fixed) {
			runs[j] = make([]bool, len(p.Fixed))
			n := 0
			for t := range runs[j] {
				if runs[j][t] = bits>>t&1 == 1; runs[j][t] {
					n++
				}
			}
			if n == len(p.Sets[j].Demand) {
				try(j + 1)
			}
		}
	}
	try(0)
	return value, ok
}

// tiny returns a problem that can be tried out. number draws from least to most.
func tiny(number func(what string, least, most int) int) *Problem {
	amount := func(what string, most int) resource.Amount { return resource.Amount(number(what, 0, most)) }
	intervals := number("intervals", 1, 5)
	p := &Problem{Capacity: amount("capacity", 6), Suspension: amount("suspension", 3), Delay: amount("delay", 2)}
	for range intervals {
		p.Fixed = append(p.Fixed, amount("fixed", 4))
	}
	for j := range number("sets", 0, 3) {
		var s Set
		for range number("duration", 1, intervals) {
			s.Demand = append(s.Demand, amount("demand", 4))
		}
		s.Float = number("float", 0, intervals-len(s.Demand))
		s.Shuffle = number("shuffle", 0, len(s.Demand))
		s.Ready = max(0, number("ready", -4, intervals))
		s.Suspended = number("still", 0, 1) == 1
		for m := range j {
			if number("after", 0, 1) == 1 {
				s.After = append(s.After, m)
			}
		}
		p.Sets = append(p.Sets, s)
	}
	return p
}

// Solve finds the least value of all schedules, and knows it.
func TestSolveIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		exact(rt, tiny(func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }))
	})
	possible := 0
	for seed := range uint64(2000) { // rapid likes small ones
		r := rand.New(rand.NewPCG(seed, 9))
		if exact(t, tiny(func(_ string, least, most int) int { return least + r.IntN(most-least+1) })) {
			possible++
		}
	}
	if possible < 1000 {
		t.Errorf("%d of 2000 problems are possible", possible)
	}
}

func exact(t tester, p *Problem) (possible bool) {
	t.Helper()
	want, possible := slowest(p)
	got, err := Solve(p, 1e6)
	if !possible {
		if !errors.Is(err, ErrImpossible) {
			t.Fatalf("there is no schedule of %+v: got %+v, %v", p, got, err)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	verify(t, p, got)
	if !got.Proved || got.Value != want || got.Bound != want {
		t.Fatalf("%+v: got %+v, want value %d", p, got, want)
	}
	return true
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatalf(string, ...any)
}

// verify checks a solution against the constraints, and its value against the equations.
func verify(t tester, p *Problem, s Solution) {
	t.Helper()
	c, err := p.Cost(s.Runs)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	if c.Value(p) != s.Value || s.Bound > s.Value || s.Proved != (s.Bound == s.Value) {
		t.Fatalf("a schedule that comes to %+v, value %d, has solution %+v", c, c.Value(p), s)
	}
}

// With little to look at, the bound stays one, and more makes neither the value nor the bound worse.
func TestSolveAnytime(t *testing.T) {
	for seed := range uint64(20) {
		p := kinds[seed%8].random(rand.New(rand.NewPCG(seed, 1)), 7, 15)
		best, err := Solve(p, 1e7)
		if err != nil {
			t.Fatal(err)
		}
		for _, budget := range []int{0, 1, 30, 1000, 10_000, 100_000} {
			s, err := Solve(p, budget)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, p, s)
			if s.Value < best.Bound || s.Bound > best.Value {
				t.Errorf("seed %d: with %d states %d to %d, with many %d to %d", seed, budget, s.Bound, s.Value, best.Bound,
					best.Value)
			}
		}
	}
}

// The same for problems as they occur.
func TestSolveIsExactOnSmallProblems(t *testing.T) {
	for seed := range uint64(40) {
		p := kinds[seed%8].random(rand.New(rand.NewPCG(seed, 7)), 4, 5)
		want, possible := slowest(p)
		got, err := Solve(p, 1e6)
		if !possible || err != nil || got.Value != want || !got.Proved {
			t.Errorf("seed %d: got %+v, %v, want %d, %v", seed, got, err, want, possible)
		}
	}
}

// The joint bound is above that of prices alone, and not above the optimum.
func TestJointBound(t *testing.T) {
	above, better := 0, 0
	for seed := range uint64(80) {
		p := kinds[seed%8].random(rand.New(rand.NewPCG(seed, 8)), 4+int(seed%3), 10)
		best, err := Solve(p, 1e7)
		if err != nil || !best.Proved {
			t.Fatal(best, err)
		}
		g, err := newProgram(p)
		if err != nil {
			t.Fatal(err)
		}
		g.earliest(g.schedule)
		g.descend(g.schedule)
		g.ascend()
		alone := g.priced(g.prices)
		s := search{program: g}
		if !s.layout() {
			t.Fatal("the sets do not fit into a key")
		}
		s.tails()
		b, optimum := g.newJoint(s.order), int64(best.Value/g.unit)*one
		atStart := b.atStart(g, make([]int64, len(g.prices)))
		b.finish(g, s.tail)
		gain := b.gainAt(s.fields, key{}, 0)
		if gain > 0 {
			above++
		}
		if gain < 0 || alone+gain > optimum || atStart != alone+gain && gain > 0 {
			t.Errorf("seed %d: prices alone give %d, the joint bound %d and %d, the optimum is %d", seed, alone, alone+gain,
				atStart, optimum)
		}
		b.ascend(g, 1e6)
		higher := b.atStart(g, make([]int64, len(g.prices)))
		if higher > atStart {
			better++
		}
		if higher < atStart || higher > optimum {
			t.Errorf("seed %d: better prices give %d, after %d, and the optimum is %d", seed, higher, atStart, optimum)
		}
		// No state of a best schedule has a bound above its value.
		s.tails()
		b.finish(g, s.tail)
		if at := s.along(b, best.Runs); at > optimum {
			t.Errorf("seed %d: on the way of a best schedule of %d the bound is %d", seed, optimum, at)
		}
	}
	if above < 20 {
		t.Errorf("the joint bound is better for %d of 80 problems, want 20", above)
	}
	if better < 20 {
		t.Errorf("better prices are found for %d of 80 problems, want 20", better)
	}
}

// along returns the highest bound of the states of a schedule.
func (s *search) along(b *joint, runs [][]bool) (highest int64) {
	idle, still, paid, ended := make([]int, len(runs)), make([]bool, len(runs)), int64(0), make([]bool, len(runs))
	for j := range s.sets {
		still[j] = s.sets[j].still
	}
	for t := range len(s.excess) + 1 {
		var at key
		low := paid + s.tail[t]
		over := int64(0)
		if t < len(s.excess) {
			over = s.excess[t]
		}
		for j := range s.sets {
			w, f := &s.sets[j], &s.fields[j]
			if ended[j] = t-idle[j] >= len(w.demand); ended[j] {
				f.set(&at, f.ended, 0)
				continue
			}
			stands := 0
			if still[j] {
				stands = 1
			}
			f.set(&at, uint64(idle[j]), uint64(stands))
			low += s.tables[j][w.at(t, idle[j], stands)]
			switch {
			case runs[j][t]:
				over += w.demand[t-idle[j]]
				still[j] = false
			default:
				if paid += w.delay; !still[j] {
					paid += w.suspend
				}
				idle[j]++
				still[j] = true
			}
		}
		highest = max(highest, low+b.gainAt(s.fields, at, t))
		paid += max(0, over) * one
	}
	return highest
}

// pattern returns the intervals in which a schedule runs, as the paper's binary vectors.
func pattern(s string) (runs []bool) {
	for _, c := range s {
		runs = append(runs, c == '1')
	}
	return runs
}

// Figure 5: a task of 4 intervals with a float of 2 that stands still in interval 3 has S = 1 and L = 1.
func TestFigure5(t *testing.T) {
	p := &Problem{Fixed: make([]resource.Amount, 6), Sets: []Set{{Demand: []resource.Amount{1, 1, 1, 1}, Float: 2}}}
	c, err := p.Cost([][]bool{pattern("110110")})
	if err != nil || c.Suspensions != 1 || c.Delay != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	// With room everywhere but in the third interval, it is the best schedule.
	p.Capacity, p.Suspension, p.Delay = 10, 3, 1
	p.Fixed = []resource.Amount{0, 0, 10, 0, 0, 0}
	p.Sets[0].Demand = []resource.Amount{9, 9, 9, 9}
	s, err := Solve(p, DefaultStates)
	if err != nil || !s.Proved || s.Value != 4 || fmt.Sprint(s.Runs) != fmt.Sprint([][]bool{pattern("110110")}) {
		t.Errorf("got %+v, %v", s, err)
	}
}

// Figure 6: a reduce may shuffle while the map runs that it waits for, but not reduce before the map's sort has ended.
func TestFigure6(t *testing.T) {
	p := &Problem{Capacity: 1, Fixed: make([]resource.Amount, 7), Suspension: 1, Delay: 1, Sets: []Set{
		{Demand: []resource.Amount{0, 0, 0}, Float: 2},
		{Demand: []resource.Amount{0, 0, 0, 0}, Float: 3, Shuffle: 2, After: []int{0}},
	}}
	for _, c := range []struct {
		maps, reduces string
		want          string
	}{
		{"1110000", "1101100", ""},
		{"1110000", "1111000", "set 1: runs in interval 2, before interval 3"},
		{"1101000", "1100110", ""},
		{"1101000", "1101100", "set 1: runs in interval 3, before interval 4"},
		{"1110000", "0110110", "set 1: stands still in interval 0 of its shuffle"},
		{"1110000", "1100000", "set 1: has done 2 of 4 intervals of work after 2: must end within 7"},
		{"1110001", "1101100", "set 0: runs in interval 6 after its 3 intervals of work"},
		{"1000011", "1101100", "set 0: has done 3 of 3 intervals of work after 7: must end within 5"},
	} {
		_, err := p.Cost([][]bool{pattern(c.maps), pattern(c.reduces)})
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("%s, %s: got %s, want %s", c.maps, c.reduces, got, c.want)
		}
	}
	s, err := Solve(p, DefaultStates)
	if err != nil || !s.Proved || fmt.Sprint(s.Runs) != fmt.Sprint([][]bool{pattern("1110000"), pattern("1101100")}) {
		t.Fatalf("got %+v, %v", s, err)
	}
	if c, _ := p.Cost(s.Runs); c.Suspensions != 1 || c.Delay != 1 {
		t.Errorf("got %+v, want S = 1 and L = 1", c)
	}
	// A set that waits anyway goes on waiting without a suspension.
	p.Sets[1].Shuffle, p.Sets[1].Suspended = 0, true
	if s, err = Solve(p, DefaultStates); err != nil || s.Value != 3 {
		t.Errorf("got %+v, %v, want a delay of 3 and no suspension", s, err)
	}
}

func TestProblemIsRefused(t *testing.T) {
	for want, change := range map[string]func(p *Problem){
		"0 intervals: must be 1 to 240":                                     func(p *Problem) { p.Fixed = nil },
		"capacity -1: must be at least 0, and all":                          func(p *Problem) { p.Capacity = -1 },
		"suspension -2: must be at least 0, and all":                        func(p *Problem) { p.Suspension = -2 },
		"delay 281474976710656: must be at least 0, and all":                func(p *Problem) { p.Delay = MostDemand },
		"fixed 281474976710656: must be at least 0, and all":                func(p *Problem) { p.Fixed[1] = MostDemand },
		"set 0: demand of 0 intervals: must be 1 to 4":                      func(p *Problem) { p.Sets[0].Demand = nil },
		"demand -1: must be at least 0, and all":                            func(p *Problem) { p.Sets[0].Demand[0] = -1 },
		"set 0: float 3: must be 0 to 2":                                    func(p *Problem) { p.Sets[0].Float = 3 },
		"set 0: shuffle 3: must be 0 to 2":                                  func(p *Problem) { p.Sets[0].Shuffle = 3 },
		"set 0: ready 5: must be 0 to 4":                                    func(p *Problem) { p.Sets[0].Ready = 5 },
		"set 0: after 0: must be 0 to -1":                                   func(p *Problem) { p.Sets[0].After = []int{0} },
		"no schedule: a set has too little float for the sets that it wait": func(p *Problem) { p.Sets[0].Ready = 4 },
	} {
		p := &Problem{Capacity: 2, Fixed: make([]resource.Amount, 4),
			Sets: []Set{{Demand: []resource.Amount{1, 1}, Float: 1}}}
		change(p)
		if _, err := Solve(p, 10); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
