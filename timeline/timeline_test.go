package timeline

import (
	"math"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

func memory(a resource.Amount) resource.Vector { return resource.Vector{resource.Memory: a} }

// build returns the sum of the spans, each given as from, to, and bytes.
func build(spans ...[3]int64) *Timeline {
	t := new(Timeline)
	for _, s := range spans {
		t.Add(Span{Time(s[0]), Time(s[1])}, memory(resource.Amount(s[2])))
	}
	return t
}

const never = int64(Never)

func TestChangesKeepOneForm(t *testing.T) {
	for _, c := range []struct {
		name string
		got  *Timeline
		want string
	}{
		{"nothing", build(), "0"},
		{"one span", build([3]int64{0, 10, 1}), "[0s,10ns) memory=1B"},
		{"without end", build([3]int64{5, never, 1}), "[5ns,never) memory=1B"},
		{"empty span", build([3]int64{5, 5, 1}), "0"},
		{"reversed span", build([3]int64{6, 5, 1}), "0"},
		{"from Never", build([3]int64{never, never, 1}), "0"},
		{"zero amount", build([3]int64{0, 10, 0}), "0"},
		{"neighbours join", build([3]int64{0, 5, 1}, [3]int64{5, 10, 1}), "[0s,10ns) memory=1B"},
		{"neighbours join backwards", build([3]int64{5, 10, 1}, [3]int64{0, 5, 1}), "[0s,10ns) memory=1B"},
		{"a gap is filled", build([3]int64{0, 4, 1}, [3]int64{6, 9, 1}, [3]int64{4, 6, 1}), "[0s,9ns) memory=1B"},
		{"overlap", build([3]int64{0, 6, 1}, [3]int64{4, 9, 2}), "[0s,4ns) memory=1B; [4ns,6ns) memory=3B; [6ns,9ns) memory=2B"},
		{"a hole", build([3]int64{0, 9, 1}, [3]int64{3, 5, -1}), "[0s,3ns) memory=1B; [5ns,9ns) memory=1B"},
		{"below zero", build([3]int64{0, 9, -1}), "[0s,9ns) memory=-1B"},
		{"from the beginning of time", Of(Always, memory(1)), "[-2562047h47m16.854775808s,never) memory=1B"},
	} {
		checkForm(t, c.got)
		if got := c.got.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTrim(t *testing.T) {
	for _, c := range []struct {
		at   Time
		want string
	}{
		{Earliest, "[0s,4ns) memory=1B; [6ns,9ns) memory=2B"},
		{0, "[0s,4ns) memory=1B; [6ns,9ns) memory=2B"},
		{1, "[1ns,4ns) memory=1B; [6ns,9ns) memory=2B"},
		{4, "[6ns,9ns) memory=2B"},
		{5, "[6ns,9ns) memory=2B"},
		{6, "[6ns,9ns) memory=2B"},
		{8, "[8ns,9ns) memory=2B"},
		{9, "0"},
		{Never, "0"},
	} {
		line := build([3]int64{0, 4, 1}, [3]int64{6, 9, 2})
		line.Trim(c.at)
		checkForm(t, line)
		if got := line.String(); got != c.want {
			t.Errorf("Trim(%v): got %s, want %s", c.at, got, c.want)
		}
	}
	endless := build([3]int64{0, never, 1})
	if endless.Trim(Never); !endless.IsZero() {
		t.Errorf("Trim(Never) left %v", endless)
	}
}

func TestShift(t *testing.T) {
	for _, c := range []struct {
		name string
		line *Timeline
		by   time.Duration
		want string
	}{
		{"later", build([3]int64{0, 4, 1}), 3, "[3ns,7ns) memory=1B"},
		{"earlier", build([3]int64{0, 4, 1}), -3, "[-3ns,1ns) memory=1B"},
		{"end goes beyond Never", build([3]int64{0, never - 1, 1}), 2, "[2ns,never) memory=1B"},
		{"all goes beyond Never", build([3]int64{never - 2, never - 1, 1}), 2, "0"},
		{"begin is cut", build([3]int64{math.MinInt64, 0, 1}), -2, "[-2562047h47m16.854775808s,-2ns) memory=1B"},
		{"the first is cut", build([3]int64{math.MinInt64, math.MinInt64 + 1, 1}, [3]int64{math.MinInt64 + 1, 0, 2}), -2,
			"[-2562047h47m16.854775808s,-2ns) memory=2B"},
		{"all but the last is cut", build([3]int64{math.MinInt64, math.MinInt64 + 1, 1}), -2, "0"},
	} {
		c.line.Shift(c.by)
		checkForm(t, c.line)
		if got := c.line.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestFirstFit(t *testing.T) {
	// Free memory: 4 until 10, 1 until 20, 3 until 30, 2 until 40, 5 until 50, nothing after.
	free := build([3]int64{0, 10, 4}, [3]int64{10, 20, 1}, [3]int64{20, 30, 3}, [3]int64{30, 40, 2}, [3]int64{40, 50, 5})
	for _, c := range []struct {
		need   resource.Amount
		length time.Duration
		from   Time
		want   Time
		ok     bool
	}{
		{4, 10, 0, 0, true},
		{4, 11, 0, Never, false},
		{4, 10, 1, 40, true},
		{1, 50, 0, 0, true},
		{1, 51, 0, Never, false},
		{2, 30, 3, 20, true},
		{2, 8, 3, 20, true},
		{2, 7, 3, 3, true},
		{3, 1, 10, 20, true},
		{3, 11, 0, Never, false},
		{5, 0, 0, 40, true},  // a moment
		{5, -1, 0, 40, true}, // also a moment
		{5, 0, 50, Never, false},
		{0, Never.Sub(0), 7, 7, true},
		{0, math.MaxInt64, -9, -9, true},
		{1, 1, -9, 0, true},
		{-1, 1, -9, -9, true},
		{0, 1, Never, Never, false},
		{0, 5, Never - 1, Never - 1, true},
	} {
		x, ok := free.FirstFit(memory(c.need), c.length, c.from)
		if x != c.want || ok != c.ok {
			t.Errorf("FirstFit(%d, %d, %d) = %v, %v; want %v, %v", c.need, c.length, c.from, x, ok, c.want, c.ok)
		}
	}
}

// FirstFit wants all components at the same time.
func TestFirstFitComponents(t *testing.T) {
	free := Of(Span{0, 10}, resource.Of(4000, 1))
	free.Add(Span{10, 20}, resource.Of(1000, 4))
	free.Add(Span{20, 30}, resource.Of(4000, 4))
	if x, ok := free.FirstFit(resource.Of(2000, 2), 5, 0); x != 20 || !ok {
		t.Errorf("got %v, %v", x, ok)
	}
}

func TestAreaDoesNotOverflow(t *testing.T) {
	const year = 365 * 24 * time.Hour
	line := Of(For(0, year), memory(10*resource.TB))
	if got, want := line.Integral(Span{0, Never}).UnitSeconds(resource.Memory), 10e12*365*86400.0; got != want {
		t.Errorf("10 TB for a year: got %g, want %g", got, want)
	}
	// The outermost values for all of time still fit.
	for _, a := range []resource.Amount{math.MaxInt64, math.MinInt64} {
		got := Of(Always, memory(a)).Integral(Always).UnitSeconds(resource.Memory)
		if want := float64(a) * 0x1p64 / 1e9; math.Abs(got-want) > 1e-15*math.Abs(want) {
			t.Errorf("%d for ever: got %g, want %g", a, got, want)
		}
	}
	small := Of(Span{0, 1}, memory(-1)).Integral(Always)
	if got := small.UnitSeconds(resource.Memory); got != -1e-9 {
		t.Errorf("-1 for a nanosecond: got %g", got)
	}
}

func TestAreaText(t *testing.T) {
	a := Of(For(0, time.Second), resource.Of(2000, -resource.GiB)).Integral(Always)
	if got, want := a.String(), "cpu=2000 memory=-1.07374e+09"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := (Area{}).String(); got != "0" || !(Area{}).IsZero() || a.IsZero() {
		t.Errorf("zero area: got %s", got)
	}
}

// An area does not depend on where other components put their steps.
func TestAreaDoesNotDependOnSteps(t *testing.T) {
	plain := build([3]int64{0, 90, 7})
	cut := plain.Clone()
	for x := Time(0); x < 90; x += 3 {
		cut.Add(Span{x, x + 1}, resource.Vector{resource.CPU: 5})
	}
	s := Span{1, 77}
	got := cut.Integral(s)
	got.lo[resource.CPU] = 0
	if want := plain.Integral(s); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is handed out or made from a Timeline shares nothing with it.
func TestNothingIsShared(t *testing.T) {
	a := build([3]int64{0, 10, 1}, [3]int64{5, 20, 2})
	want := a.String()
	var copied Timeline
	copied.CopyFrom(a)
	copied.CopyFrom(&copied)
	for _, o := range []*Timeline{a.Clone(), &copied, Sum(a, new(Timeline)), Sum(new(Timeline), a)} {
		if !o.Equal(a) {
			t.Errorf("got %v, want %v", o, a)
		}
		o.Add(Span{3, 15}, memory(100))
		o.Trim(4)
	}
	if a.String() != want {
		t.Errorf("changed to %v", a)
	}
}

func TestStepsAndPieces(t *testing.T) {
	line := build([3]int64{0, 4, 1}, [3]int64{6, 9, 2})
	i := 0
	for at, v := range line.Steps() {
		if line.Step(i) != (Step{at, v}) {
			t.Errorf("step %d is %v, want %v", i, Step{at, v}, line.Step(i))
		}
		i++
	}
	if i != 4 || line.Len() != 4 {
		t.Errorf("%d steps, Len %d, want 4", i, line.Len())
	}
	for range line.Steps() {
		break
	}
	for range line.Pieces(Always) {
		break
	}
	for s := range line.Pieces(Span{3, 3}) {
		t.Errorf("an empty span has the piece %v", s)
	}
}

// Readers allocate nothing, and neither do changes once the memory is there.
func TestNoAllocation(t *testing.T) {
	line, other := new(Timeline), build([3]int64{50, 250, 7}, [3]int64{100, 300, 1})
	for x := Time(0); x < 1000; x += 10 {
		line.Add(Span{x, x + 25}, memory(resource.Amount(x+1)))
	}
	span, v := Span{95, 555}, memory(3)
	full := line.Clone()
	line.AddTimeline(other)
	line.SubTimeline(other)
	now := Time(1000)
	for _, c := range []struct {
		name string
		call func()
	}{
		{"At", func() { line.At(500) }},
		{"Min", func() { line.Min(span) }},
		{"Max", func() { line.Max(span) }},
		{"FirstFit", func() { line.FirstFit(memory(1<<40), 5, 0) }},
		{"Integral", func() { line.Integral(span) }},
		{"AreaAbove", func() { line.AreaAbove(other, span) }},
		{"AreaBelow", func() { line.AreaBelow(other, span) }},
		{"AreaAboveLevel", func() { line.AreaAboveLevel(v, span) }},
		{"AreaBelowLevel", func() { line.AreaBelowLevel(v, span) }},
		{"UnitSeconds", func() { line.Integral(span).UnitSeconds(resource.Memory) }},
		{"Equal", func() { line.Equal(other) }},
		{"Steps", func() {
			for range line.Steps() {
				continue
			}
		}},
		{"Pieces", func() {
			for range line.Pieces(span) {
				continue
			}
		}},
		{"Add and Sub", func() { line.Add(span, v); line.Sub(span, v) }},
		{"AddTimeline and SubTimeline", func() { line.AddTimeline(other); line.SubTimeline(other) }},
		{"Set and CopyFrom", func() { line.Set(span, v); line.CopyFrom(full) }},
		{"Shift", func() { line.Shift(5); line.Shift(-5) }},
		{"a window that moves on", func() {
			line.Add(Span{now, now + 25}, v)
			line.Trim(now - 1000)
			now += 10
		}},
	} {
		for range 300 {
			c.call() // reach the steady state
		}
		if n := testing.AllocsPerRun(200, c.call); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// Recording n steps allocates some log n times, and moves no step but when it grows.
func TestRecordingIsAmortised(t *testing.T) {
	const n = 20_000
	allocs := testing.AllocsPerRun(3, func() {
		line := new(Timeline)
		for i := range Time(n) {
			line.Set(Span{i, Never}, memory(resource.Amount(1+i%7)))
		}
		if line.Len() != n {
			t.Fatalf("%d steps", line.Len())
		}
	})
	if allocs > 45 {
		t.Errorf("%v allocations for %d steps", allocs, n)
	}
}
