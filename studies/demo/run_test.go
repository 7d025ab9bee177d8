package demo

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// idealModels are models of all programs with the ideal memory of their inputs and twice the time with less memory.
func idealModels(t *testing.T) models {
	t.Helper()
	all, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	m := models{}
	for _, p := range all {
		if p.input.name == "" {
			t.Fatalf("program %s: its command names no input", p.name)
		}
		sizes := sizesOf(p.input)
		m[p.name] = profile.Model{Version: 1, Kind: profile.Step, IdealMemory: p.input.ideal(), MinMemory: sizes[0],
			IdealDuration: time.Second, UnderSized: 2 * time.Second}
	}
	return m
}

func TestFigure(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   Figure
	}{
		{[]float64{3}, Figure{3, 3, 3}},
		{[]float64{4, 1}, Figure{2.5, 1, 4}},
		{[]float64{9, 1, 2}, Figure{2, 1, 9}},
	} {
		if got := figure(test.values); got != test.want {
			t.Errorf("figure(%v) = %v, want %v", test.values, got, test.want)
		}
	}
	a, b := Figure{2, 1, 3}, Figure{4, 3, 5}
	if a.Clearly(b) || b.Clearly(a) {
		t.Error("rounds that touch are not clearly different")
	}
	if !a.Clearly(Figure{4, 3.1, 5}) {
		t.Error("rounds that do not touch are clearly different")
	}
}

// twoTasks is a run in which a task of 10 s with ideal memory is followed by a task that takes twice as long with half
// of it.
func twoTasks() *Run {
	const s = time.Second
	return &Run{
		Jobs: []JobRun{{Name: "a", Ended: 10 * s}, {Name: "b", Submitted: 5 * s, Ended: 20 * s}},
		Tasks: []TaskRun{
			{Job: 0, Memory: 100, Booked: 0, Started: 0, Ended: 10 * s, Ideal: 10 * s},
			{Job: 1, Memory: 50, Booked: 8 * s, Started: 10 * s, Ended: 20 * s, Ideal: 5 * s, Killed: true},
		},
		Usage: []Usage{{At: 0, Anonymous: 40}, {At: 10 * s, Anonymous: 20}, {At: 30 * s, Anonymous: 1000}},
	}
}

func TestRunFigures(t *testing.T) {
	r := twoTasks()
	used := r.Used()
	for _, test := range []struct {
		what      string
		got, want float64
	}{
		{"makespan", r.Makespan().Seconds(), 20},
		{"average job runtime", r.AverageJobRuntime().Seconds(), (10 + 15) / 2.0},
		{"granted", r.Granted(), (100*10 + 50*12) / 20.0},
		{"used", *used, (40*10 + 20*10) / 20.0},
		{"at a time", r.AtATime(), 1},
		{"slowdown", r.Slowdown(), 20.0 / 15},
		{"kills", float64(r.Kills()), 1},
		{"under-sized", float64(r.UnderSized([]resource.Amount{100, 100})), 1},
	} {
		if test.got != test.want {
			t.Errorf("%s is %v, want %v", test.what, test.got, test.want)
		}
	}
	r.Usage = nil
	if r.Used() != nil {
		t.Error("used is known, though it was not sampled")
	}
}

func TestTypicalRun(t *testing.T) {
	var runs []*Run
	for _, seconds := range []time.Duration{30, 10, 20} {
		runs = append(runs, &Run{Round: int(seconds), Jobs: []JobRun{{Ended: seconds * time.Second}}})
	}
	if got := typical(runs, (*Run).Makespan).Round; got != 20 {
		t.Errorf("of three runs the one of %d s, want the middle one", got)
	}
	if got := typical(runs[:2], (*Run).Makespan).Round; got != 10 {
		t.Errorf("of two runs the one of %d s, want the faster one", got)
	}
}

func TestNeighbours(t *testing.T) {
	// The two tasks run one after the other, so the share of time with a neighbour is 0.
	r := twoTasks()
	if got := r.beside(); got != 0 {
		t.Errorf("beside each other for %v of the time, want 0", got)
	}
	r.Tasks[1].Started, r.Tasks[1].Ended = 5*time.Second, 15*time.Second
	if got := r.beside(); got != 0.5 {
		t.Errorf("beside each other for %v of the time, want half", got)
	}
	m := idealModels(t)
	alone, err := simulate(elastic, m, Machine{Neighbour: 1})
	if err != nil {
		t.Fatal(err)
	}
	beside, err := simulate(elastic, m, Machine{Neighbour: 1.2})
	if err != nil {
		t.Fatal(err)
	}
	if ratio := beside.Makespan().Seconds() / alone.Makespan().Seconds(); ratio < 1.1 || ratio > 1.25 {
		t.Errorf("with neighbours that cost 1.2 the makespan is %.2f times as long, want a little less than that", ratio)
	}
}
