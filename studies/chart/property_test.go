package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// odd draws numbers of all kinds, including NaN and infinities.
func odd() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(-10, 1000), rapid.Float64(),
		rapid.SampledFrom([]float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
			math.SmallestNonzeroFloat64, 1e-300, 1e300, 3, 3 + 1e-15}))
}

func anySeries(t *rapid.T) Series {
	n := rapid.IntRange(0, 12).Draw(t, "n")
	list := func(name string) []float64 { return rapid.SliceOfN(odd(), n, n).Draw(t, name) }
	s := Series{Name: rapid.String().Draw(t, "name"), X: list("x"), Y: list("y"), Step: rapid.Bool().Draw(t, "step"),
		Points: rapid.Bool().Draw(t, "points"), Dashed: rapid.Bool().Draw(t, "dashed"),
		Color: rapid.IntRange(-3, 12).Draw(t, "color")}
	return s
}

// checkDrawn fails unless a picture is a valid document with valid numbers, and the same bytes when drawn again.
func checkDrawn(t *rapid.T, p Picture) {
	got, err := p.SVG()
	if err != nil {
		t.Fatalf("a picture that can be meant: %v", err)
	}
	again, _ := p.SVG()
	if !bytes.Equal(got, again) {
		t.Fatal("the same picture gave other bytes")
	}
	for d := xml.NewDecoder(bytes.NewReader(got)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range element.Attr {
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
				t.Fatalf("%s=%q in %s", a.Name.Local, a.Value, element.Name.Local)
			}
		}
	}
}

func TestAnyPlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Plot{Title: rapid.String().Draw(t, "title"), X: "x", Y: rapid.String().Draw(t, "label"),
			LogX: rapid.Bool().Draw(t, "log x"), LogY: rapid.Bool().Draw(t, "log y"),
			Width: rapid.Float64Range(smallest, 900).Draw(t, "width"), Height: rapid.Float64Range(smallest, 900).Draw(t,
				"height")}
		for range rapid.IntRange(0, 3).Draw(t, "series") {
			p.Series = append(p.Series, anySeries(t))
		}
		p.Lines = []Rule{{At: odd().Draw(t, "rule"), Vertical: rapid.Bool().Draw(t, "vertical"), Label: "here"}}
		if end := odd().Draw(t, "end"); rapid.Bool().Draw(t, "ranged") && (scale{log: p.LogX}).shows(end) {
			p.XMax = &end
		}
		checkDrawn(t, p)
	})
}

func TestAnyBars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 9).Draw(t, "groups")
		b := &Bars{Groups: rapid.SliceOfN(rapid.String(), n, n).Draw(t, "names")}
		for range rapid.IntRange(0, 3).Draw(t, "series") {
			list := func(name string) []float64 { return rapid.SliceOfN(odd(), n, n).Draw(t, name) }
			b.Series = append(b.Series, BarSeries{Values: list("values"), Low: list("low"), High: list("high")})
		}
		checkDrawn(t, b)
	})
}

func TestAnyTracks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Tracks{To: rapid.Float64Range(0, 1000).Draw(t, "to")}
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			n := rapid.IntRange(0, 9).Draw(t, "n")
			list := func(name string) []float64 { return rapid.SliceOfN(odd(), n, n).Draw(t, name) }
			x := rapid.SliceOfN(rapid.Float64Range(0, 1000), n, n).Draw(t, "x")
			slices.Sort(x)
			p.Rows = append(p.Rows,
				Track{Name: rapid.String().Draw(t, "name"), Top: rapid.Float64Range(1e-9, 1e9).Draw(t, "top"), X: x,
					Areas: []Area{{"a", list("a"), 1}, {"b", list("b"), 0}}, Lines: []Series{anySeries(t)}})
		}
		checkDrawn(t, p)
	})
}

// TestAnyGantt: with any spans, no two spans of a row are in one lane at the same time.
func TestAnyGantt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &Gantt{Rows: []string{"a", "b", "c"}}
		for range rapid.IntRange(0, 20).Draw(t, "spans") {
			ends := []float64{odd().Draw(t, "from"), odd().Draw(t, "to")}
			if finite(ends[0]) && finite(ends[1]) {
				slices.Sort(ends)
			}
			g.Spans = append(g.Spans, Span{Row: rapid.IntRange(0, 2).Draw(t, "row"), From: ends[0], To: ends[1],
				Color: rapid.Int().Draw(t, "color"), Faint: rapid.Bool().Draw(t, "faint"), Label: "x"})
		}
		l, err := g.stack()
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range g.Spans {
			for k, b := range g.Spans[:i] {
				if l.span[i] >= 0 && l.span[i] == l.span[k] && a.Row == b.Row && a.From < b.To && b.From < a.To {
					t.Fatalf("%v and %v are in lane %d", a, b, l.span[i])
				}
			}
		}
		checkDrawn(t, g)
	})
}

// TestCDF: the distribution at x is the share of values that are at most x.
func TestCDF(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(0, 9).Draw(t, "v"))
		})).Draw(t, "values")
		s := CDF("", append(values, math.NaN()))
		for x := -1.0; x < 11; x++ {
			got, want := 0.0, 0.0
			for i := range s.X {
				if s.X[i] <= x {
					got = s.Y[i]
				}
			}
			for _, v := range values {
				if v <= x {
					want += 1 / float64(len(values))
				}
			}
			if math.Abs(got-want) > 1e-9 {
				t.Fatalf("at %v: %v, want %v", x, got, want)
			}
		}
	})
}

// TestNumbers: the numbers on an axis.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v, step float64
		want    string
	}{{0, 1, "0"}, {12000, 2000, "12,000"}, {1500, 500, "1500"}, {0.25, 0.05, "0.25"}, {-0.5, 0.5, "−0.5"},
		{2e7, 5e6, "20M"}, {1e-7, 1e-7, "1e-07"}, {3, 1, "3"}, {2.5, 0.5, "2.5"}, {3e9, 1e9, "3G"}} {
		if got := number(c.v, c.step); got != c.want {
			t.Errorf("%v by %v: %s, want %s", c.v, c.step, got, c.want)
		}
	}
}
