package timeline

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// twin is the slow and obvious Timeline: a value for each cell of time. Cell 0 reaches back to Earliest and the last one
// on to Never; those between are all equally long. Every span used with it begins and ends at cell borders.
type twin struct {
	borders []Time // len(value)+1 of them
	value   []resource.Vector
}

const twinCells = 20

// newTwin returns a twin whose inner borders are the multiples of width from -5 to twinCells-7.
func newTwin(width Time) *twin {
	w := &twin{borders: []Time{Earliest}, value: make([]resource.Vector, twinCells)}
	for i := range Time(twinCells - 1) {
		w.borders = append(w.borders, (i-5)*width)
	}
	w.borders = append(w.borders, Never)
	return w
}

func (w *twin) cell(i int) Span { return Span{w.borders[i], w.borders[i+1]} }

func (w *twin) at(x Time) resource.Vector {
	for i, v := range w.value {
		if w.cell(i).Contains(x) {
			return v
		}
	}
	return w.value[twinCells-1]
}

// change calls f on the value of every cell in s.
func (w *twin) change(s Span, f func(*resource.Vector)) {
	for i := range w.value {
		if c := w.cell(i); s.From <= c.From && c.To <= s.To {
			f(&w.value[i])
		}
	}
}

// overlapping returns the values of the cells that share time with s, or of the one at s.From if s is empty.
func (w *twin) overlapping(s Span) (values []resource.Vector) {
	if s.IsEmpty() {
		return []resource.Vector{w.at(s.From)}
	}
	for i, v := range w.value {
		if !w.cell(i).Intersect(s).IsEmpty() {
			values = append(values, v)
		}
	}
	return values
}

// firstFit tries from and then the beginning of every later cell: where a need fits at the end of a cell only, it
// fits no better in the middle of one.
func (w *twin) firstFit(need resource.Vector, length time.Duration, from Time) (Time, bool) {
	for _, x := range append([]Time{from}, w.borders...) {
		if x < from || x == Never {
			continue
		}
		span := For(x, length)
		if !slices.ContainsFunc(w.overlapping(span), func(v resource.Vector) bool { return !need.FitsIn(v) }) {
			return x, true
		}
	}
	return Never, false
}

// area sums f(value of w, value of o) * nanoseconds of component k over the cells' parts in s.
func (w *twin) area(o *twin, s Span, k resource.Kind, f func(x, y int64) int64) *big.Int {
	sum := new(big.Int)
	for i := range w.value {
		part := w.cell(i).Intersect(s)
		if part.IsEmpty() {
			continue
		}
		ns := new(big.Int).Sub(big.NewInt(int64(part.To)), big.NewInt(int64(part.From)))
		height := big.NewInt(f(int64(w.value[i][k]), int64(o.value[i][k])))
		sum.Add(sum, ns.Mul(ns, height))
	}
	return sum
}

// bigOf returns component k of a in base units times nanoseconds.
func bigOf(a Area, k resource.Kind) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(a.hi[k]), 64)
	return x.Add(x, new(big.Int).SetUint64(a.lo[k]))
}

// failer is what a testing.T and a rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkForm fails unless t has the one form that its type's comment promises.
func checkForm(tb failer, t *Timeline) {
	tb.Helper()
	if t.dropped > len(t.buf)/2 {
		tb.Fatalf("%d of %d steps are dropped ones", t.dropped, len(t.buf))
	}
	var before resource.Vector
	for i := range t.Len() {
		s := t.Step(i)
		if s.At == Never {
			tb.Fatalf("step %d is at Never: %v", i, t)
		}
		if i > 0 && s.At <= t.Step(i-1).At {
			tb.Fatalf("step %d does not ascend: %v", i, t)
		}
		if s.Value == before {
			tb.Fatalf("step %d at %v repeats the value before it: %v", i, s.At, t)
		}
		before = s.Value
	}
}

// pair is a Timeline and its twin, which take the same changes.
type pair struct {
	tb    failer
	line  *Timeline
	twin  *twin
	width Time
	unit  resource.Amount // all amounts are small multiples of it
}

// draw chooses a number in [0, n); what says what for.
type draw func(what string, n int) int

func newPair(tb failer, d draw) *pair {
	widths := []Time{1, 7, Time(time.Second), Time(24 * time.Hour)}
	units := []resource.Amount{1, 3, resource.GiB, 10 * resource.TB}
	width := widths[d("cell width", len(widths))]
	return &pair{tb, new(Timeline), newTwin(width), width, units[d("unit", len(units))]}
}

func (p *pair) fresh() *pair {
	return &pair{p.tb, new(Timeline), newTwin(p.width), p.width, p.unit}
}

func (p *pair) drawVector(d draw) (v resource.Vector) {
	// One component often, so that equal neighbours and cancelled steps are frequent; all of them at times.
	if d("all components", 4) == 0 {
		for k := range v {
			v[k] = p.unit * resource.Amount(d("amount+2", 5)-2)
		}
		return v
	}
	return v.With(resource.Kind(d("kind", int(resource.NumKinds))), p.unit*resource.Amount(d("amount+2", 5)-2))
}

func (p *pair) drawSpan(d draw) Span {
	return Span{p.twin.borders[d("from", twinCells+1)], p.twin.borders[d("to", twinCells+1)]}
}

// drawTime returns a cell border or a neighbour of one.
func (p *pair) drawTime(d draw) Time {
	return p.twin.borders[d("border", twinCells+1)].Add(time.Duration(d("offset+1", 3) - 1))
}

// change applies one drawn change to both.
func (p *pair) change(d draw) {
	p.tb.Helper()
	switch op := d("operation", 12); op {
	case 0, 1, 2, 3:
		s, v := p.drawSpan(d), p.drawVector(d)
		p.line.Add(s, v)
		p.twin.change(s, func(x *resource.Vector) { *x = x.Add(v) })
	case 4, 5, 6:
		s, v := p.drawSpan(d), p.drawVector(d)
		p.line.Sub(s, v)
		p.twin.change(s, func(x *resource.Vector) { *x = x.Sub(v) })
	case 7, 8:
		s, v := p.drawSpan(d), p.drawVector(d)
		if d("value from elsewhere", 2) == 1 { // often one that a neighbour has
			v = p.twin.value[d("cell", twinCells)]
		}
		p.line.Set(s, v)
		p.twin.change(s, func(x *resource.Vector) { *x = v })
	case 9:
		x := p.twin.borders[d("trim at", twinCells+1)]
		p.line.Trim(x)
		p.twin.change(Span{Earliest, x}, func(x *resource.Vector) { *x = resource.Vector{} })
		if x == Never {
			p.twin.change(Always, func(x *resource.Vector) { *x = resource.Vector{} })
		}
	case 10:
		p.combine(p.other(d), d("subtract", 2) == 1)
	case 11:
		p.rare(d)
	}
}

func (p *pair) rare(d draw) {
	switch d("rare operation", 5) {
	case 0:
		p.line.Reset()
		p.twin.change(Always, func(x *resource.Vector) { *x = resource.Vector{} })
	case 1:
		p.line = p.line.Clone()
	case 2:
		o := p.other(d)
		p.line.CopyFrom(o.line)
		copy(p.twin.value, o.twin.value)
	case 3:
		if p.line.Max(Always).FitsIn(resource.Vector{1 << 50, 1 << 50, 1 << 50, 1 << 50}) {
			p.combine(p, false)
		}
	case 4:
		p.combine(p, true)
	}
}

// other returns an independent pair after a few simple changes.
func (p *pair) other(d draw) *pair {
	o := p.fresh()
	for range d("other's changes", 6) {
		s, v := o.drawSpan(d), o.drawVector(d)
		o.line.Set(s, v)
		o.twin.change(s, func(x *resource.Vector) { *x = v })
	}
	return o
}

func (p *pair) combine(o *pair, subtract bool) {
	theirs := slices.Clone(o.twin.value)
	kept := o.line.Clone()
	if subtract {
		p.line.SubTimeline(o.line)
	} else {
		sum := Sum(p.line, o.line)
		checkForm(p.tb, sum)
		p.line.AddTimeline(o.line)
		if !sum.Equal(p.line) {
			p.tb.Fatalf("Sum gives %v, AddTimeline %v", sum, p.line)
		}
	}
	if p != o && !kept.Equal(o.line) {
		p.tb.Fatalf("the other timeline changed from %v to %v", kept, o.line)
	}
	for i := range p.twin.value {
		if subtract {
			p.twin.value[i] = p.twin.value[i].Sub(theirs[i])
		} else {
			p.twin.value[i] = p.twin.value[i].Add(theirs[i])
		}
	}
}

// checkValues fails unless both are the same function and the Timeline has the canonical form, text included.
func (p *pair) checkValues() {
	p.tb.Helper()
	checkForm(p.tb, p.line)
	for _, b := range p.twin.borders {
		for off := -1; off <= 1; off++ {
			x := b.Add(time.Duration(off))
			if got, want := p.line.At(x), p.twin.at(x); got != want {
				p.tb.Fatalf("At(%v) = %v, want %v, in %v", x, got, want, p.line)
			}
		}
	}
	// Built anew from its values, backwards, it must come out the same.
	again := new(Timeline)
	for i := twinCells - 1; i >= 0; i-- {
		again.Add(p.twin.cell(i), p.twin.value[i])
	}
	if !again.Equal(p.line) || !p.line.Equal(again) || again.String() != p.line.String() {
		p.tb.Fatalf("%v is not the same as %v", p.line, again)
	}
}

// checkReads fails unless every reading operation, with drawn arguments, gives what the twin gives.
func (p *pair) checkReads(d draw) {
	p.tb.Helper()
	s := Span{p.drawTime(d), p.drawTime(d)}
	lo, hi := p.line.Min(s), p.line.Max(s)
	values := p.twin.overlapping(s)
	wantLo, wantHi := values[0], values[0]
	for _, v := range values {
		wantLo, wantHi = wantLo.Min(v), wantHi.Max(v)
	}
	if lo != wantLo || hi != wantHi {
		p.tb.Fatalf("Min, Max(%v) = %v, %v, want %v, %v, in %v", s, lo, hi, wantLo, wantHi, p.line)
	}
	p.checkPieces(s)
	p.checkAreas(d, s)

	need, from := p.drawVector(d), p.drawTime(d)
	length := time.Duration(d("length in cells", 8))*time.Duration(p.width) + time.Duration(d("offset+1", 3)-1)
	if d("for ever", 10) == 0 {
		length = Never.Sub(from)
	}
	p.checkFirstFit(need, length, from)
}

func (p *pair) checkFirstFit(need resource.Vector, length time.Duration, from Time) {
	p.tb.Helper()
	x, ok := p.line.FirstFit(need, length, from)
	wantX, wantOK := p.twin.firstFit(need, max(length, 1), from)
	if x != wantX || ok != wantOK {
		p.tb.Fatalf("FirstFit(%v, %v, %v) = %v, %v, want %v, %v, in %v", need, length, from, x, ok, wantX, wantOK, p.line)
	}
}

func (p *pair) checkPieces(s Span) {
	p.tb.Helper()
	next, before, seen := s.From, resource.Vector{}, 0
	for piece, v := range p.line.Pieces(s) {
		if piece.From != next || piece.IsEmpty() || piece.To > s.To {
			p.tb.Fatalf("piece %v does not continue at %v in %v of %v", piece, next, s, p.line)
		}
		if seen > 0 && v == before {
			p.tb.Fatalf("piece %v could be joined with the one before, in %v", piece, p.line)
		}
		for _, want := range p.twin.overlapping(piece) {
			if v != want {
				p.tb.Fatalf("piece %v is %v, want %v, in %v", piece, v, want, p.line)
			}
		}
		next, before = piece.To, v
		seen++
	}
	if !s.IsEmpty() && next != s.To {
		p.tb.Fatalf("the pieces of %v end at %v, in %v", s, next, p.line)
	}
}

func (p *pair) checkAreas(d draw, s Span) {
	p.tb.Helper()
	o, level := p.other(d), p.fresh()
	capacity := p.drawVector(d)
	level.twin.change(Always, func(x *resource.Vector) { *x = capacity })
	above := func(x, y int64) int64 { return max(0, x-y) }
	below := func(x, y int64) int64 { return max(0, y-x) }
	first := func(x, _ int64) int64 { return x }
	for _, c := range []struct {
		name string
		got  Area
		than *twin
		f    func(x, y int64) int64
	}{
		{"Integral", p.line.Integral(s), p.twin, first},
		{"AreaAbove", p.line.AreaAbove(o.line, s), o.twin, above},
		{"AreaBelow", p.line.AreaBelow(o.line, s), o.twin, below},
		{"AreaAboveLevel", p.line.AreaAboveLevel(capacity, s), level.twin, above},
		{"AreaBelowLevel", p.line.AreaBelowLevel(capacity, s), level.twin, below},
	} {
		for k := range resource.NumKinds {
			if got, want := bigOf(c.got, k), p.twin.area(c.than, s, k, c.f); got.Cmp(want) != 0 {
				p.tb.Fatalf("%s(%v) of %v is %v unit-ns, want %v, in %v and %v, capacity %v",
					c.name, s, k, got, want, p.line, o.line, capacity)
			}
		}
	}
	// What is above, less what is below, is the difference of the integrals.
	diff := p.line.Integral(s).Sub(o.line.Integral(s))
	if got := p.line.AreaAbove(o.line, s).Sub(p.line.AreaBelow(o.line, s)); got != diff {
		p.tb.Fatalf("above - below = %v, integrals differ by %v", fmt.Sprint(got), diff)
	}
}
