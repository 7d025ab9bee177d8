package paging

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func ran(seconds ...float64) Times { return Times{Seconds: seconds} }

func point(share, spill, page float64) Point {
	return Point{Share: share, Spill: ran(spill), Page: ran(page)}
}

func curve(points ...Point) Curve {
	return Curve{Pattern: "merge", Ideal: 1 << 28, IdealSeconds: 1, Points: append(points, point(1, 1, 1))}
}

func TestBreakEven(t *testing.T) {
	givenUp := point(0.5, 2, 0)
	givenUp.Page = Times{Over: 20}
	killed := point(0.5, 2, 1.5)
	killed.Page.Failures = 1
	cannotSpill := point(0.25, 0, 9)
	cannotSpill.Spill = Times{Failed: "exit status 3", Failures: 2}
	for _, tt := range []struct {
		name string
		c    Curve
		want float64
		ok   bool
	}{
		{"lines cross half way", curve(point(0.5, 2, 3), point(0.75, 2, 1)), 0.625, true},
		{"spilling always wins", curve(point(0.5, 2, 9), point(0.9, 1.1, 2)), 0, false},
		{"paging always wins", curve(point(0.25, 9, 3), point(0.9, 2, 1.5)), 0.25, true},
		{"equal is no slower", curve(point(0.5, 2, 2)), 0.5, true},
		{"a run that was given up is slower by at least that", curve(givenUp, point(0.75, 2, 1)), 0.75 - 0.25/19, true},
		{"what was killed once is no choice", curve(killed, point(0.75, 2, 1)), 0.75, true},
		{"what cannot spill must page", curve(cannotSpill, point(0.5, 2, 1)), 0.25, true},
		{"better again further down does not count", curve(point(0.25, 5, 3), point(0.5, 2, 3), point(0.75, 2, 1)), 0.625,
			true},
	} {
		got, ok := tt.c.BreakEven()
		if ok != tt.ok || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v %v, want %v %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// Lines go through what was measured, stay between their ends, and from the break-even on paging is no slower.
func TestPagingLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "points")
		var points []Point
		for i := range n {
			seconds := rapid.Float64Range(1, 30)
			points = append(points, point(float64(i+1)/float64(n+1), seconds.Draw(t, "spill"), seconds.Draw(t, "page")))
		}
		c := curve(points...)
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		for _, p := range c.Points {
			if s, ok := c.PageSlowdown(p.Share); !ok || math.Abs(s.Factor-p.Page.Median()) > 1e-9 {
				t.Fatalf("page at %v: %v, want %v", p.Share, s, p.Page.Median())
			}
			if s, ok := c.SpillSlowdown(p.Share); !ok || math.Abs(s.Factor-p.Spill.Median()) > 1e-9 {
				t.Fatalf("spill at %v: %v, want %v", p.Share, s, p.Spill.Median())
			}
		}
		from, ok := c.BreakEven()
		for share := points[0].Share; share < 1; share += 1.0 / 512 {
			page, _ := c.PageSlowdown(share)
			spill, _ := c.SpillSlowdown(share)
			if ok && share >= from && page.Factor > spill.Factor+1e-9 {
				t.Fatalf("at %v: says page, but it costs %v and spilling %v", share, page.Factor, spill.Factor)
			}
		}
		if ok && from > points[0].Share { // just below the break-even it is the other way round
			page, _ := c.PageSlowdown(from - 1e-6)
			spill, _ := c.SpillSlowdown(from - 1e-6)
			if page.Factor < spill.Factor {
				t.Fatalf("break-even %v, but just below it paging costs %v and spilling %v", from, page.Factor, spill.Factor)
			}
		}
	})
}

func TestNothingIsExtrapolated(t *testing.T) {
	c := curve(point(0.5, 2, 3))
	if s, ok := c.PageSlowdown(0.49); ok {
		t.Errorf("below what was measured: %v", s)
	}
	if s, ok := c.PageSlowdown(1.5); !ok || s.Factor != 1 {
		t.Errorf("above the ideal: %v %v", s, ok)
	}
}

func TestReadPagingRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"swap":""}`, "swap: must be given"},
		{`{"swap":"file","speed":3}`, `unknown field "speed"`},
		{`{"swap":"file","curves":[{"pattern":"a","ideal_memory_bytes":1,"ideal_duration_s":1,"points":[{"share":0.5}]}]}`,
			"curves[0].points: must end at share 1"},
		{`{"swap":"file","curves":[{"pattern":"a","ideal_memory_bytes":0}]}`, "curves[0].ideal_memory_bytes 0: must be 1 to"},
		{`{"swap":"file","curves":[{"pattern":"a","ideal_memory_bytes":1,"ideal_duration_s":1,"points":[{"share":1,"page":{"seconds_each":[-1]}}]}]}`, "curves[0].points[0]: seconds_each -1"},
	} {
		if _, err := Read([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
	}
}

func FuzzReadPaging(f *testing.F) {
	f.Add([]byte(`{"date":"2026-01-01","swap":"file","curves":[{"pattern":"a","ideal_memory_bytes":1,"ideal_duration_s":1,"points":[{"share":0.5,"page":{"given_up_after_s":3}},{"share":1,"page":{"seconds_each":[1]}}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Read(text)
		if err != nil {
			return
		}
		for _, c := range p.Curves {
			from, ok := c.BreakEven()
			if ok && !(from > 0 && from <= 1) {
				t.Errorf("break-even %v", from)
			}
			for _, share := range []float64{0.1, 0.5, 0.99} {
				if s, ok := c.PageSlowdown(share); ok && !(s.Factor >= 1) {
					t.Errorf("slowdown %v at %v", s, share)
				}
			}
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(again); err != nil {
			t.Errorf("what was written cannot be read: %v", err)
		}
	})
}
