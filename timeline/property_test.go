package timeline

import (
	"fmt"
	"math/big"
	"math/rand"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/resource"
	"pgregory.net/rapid"
)

func rapidDraw(rt *rapid.T) draw {
	return func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, what) }
}

// Whatever the changes, the Timeline is the function that its twin is, in its one form, and every reading agrees.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapidDraw(rt)
		p := newPair(rt, d)
		for range d("changes", 30) {
			p.change(d)
			p.checkValues()
			p.checkReads(d)
		}
	})
}

// As TestTwin, with evenly drawn and longer lists of changes: rapid prefers small numbers, so that it can shrink.
func TestTwinAtLength(t *testing.T) {
	for seed := range int64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewSource(seed))
			d := func(_ string, n int) int { return r.Intn(n) }
			p := newPair(t, d)
			for range 60 {
				p.change(d)
				p.checkValues()
				p.checkReads(d)
			}
		})
	}
}

// Every argument of FirstFit in a small world, rather than drawn ones.
func TestFirstFitEverywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapidDraw(rt)
		p := &pair{tb: rt, line: new(Timeline), twin: newTwin(1), width: 1, unit: 1}
		for range d("changes", 12) {
			p.change(d)
		}
		need := p.drawVector(d)
		for from := Time(-8); from < twinCells; from++ {
			for length := time.Duration(-1); length < 8; length++ {
				p.checkFirstFit(need, length, from)
			}
		}
	})
}

// A Timeline does not depend on the order of its changes, and Sub undoes Add.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapidDraw(rt)
		p := newPair(rt, d)
		type change struct {
			s Span
			v resource.Vector
		}
		var changes []change
		forth, back := new(Timeline), new(Timeline)
		for range d("changes", 20) {
			changes = append(changes, change{p.drawSpan(d), p.drawVector(d)})
		}
		for i, c := range changes {
			forth.Add(c.s, c.v)
			last := changes[len(changes)-1-i]
			back.Add(last.s, last.v)
		}
		if !forth.Equal(back) {
			rt.Fatalf("forwards %v, backwards %v", forth, back)
		}
		for _, c := range changes {
			forth.Sub(c.s, c.v)
			checkForm(rt, forth)
		}
		if !forth.IsZero() {
			rt.Fatalf("left over: %v", forth)
		}
	})
}

// Also where amounts wrap around, changes keep the form and undo each other.
func TestWrapAround(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		amount := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{1 << 62, -1 << 62, -1 << 63, 1<<63 - 1}))
		line, sum := new(Timeline), new(Timeline)
		for range rapid.IntRange(0, 12).Draw(rt, "changes") {
			s := Span{Time(rapid.Int64().Draw(rt, "from")), Time(rapid.Int64().Draw(rt, "to"))}
			one := Of(s, resource.Vector{resource.Memory: resource.Amount(amount.Draw(rt, "memory"))})
			line.Add(s, one.At(s.From))
			sum.AddTimeline(one)
			checkForm(rt, line)
			checkForm(rt, sum)
		}
		if !line.Equal(sum) {
			rt.Fatalf("spans give %v, timelines %v", line, sum)
		}
		line.AddTimeline(line)
		checkForm(rt, line)
		line.SubTimeline(line)
		if !line.IsZero() {
			rt.Fatalf("t - t = %v", line)
		}
	})
}

func TestShiftProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapidDraw(rt)
		p := newPair(rt, d)
		for range d("changes", 12) {
			p.change(d)
		}
		by := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64()).Draw(rt, "by")
		shifted := p.line.Clone()
		shifted.Shift(time.Duration(by))
		checkForm(rt, shifted)
		for range 10 {
			x := p.drawTime(d)
			y := x.Add(time.Duration(by))
			if y == Never || y == Earliest || x == Earliest {
				continue // what lies there came from several times
			}
			if got, want := shifted.At(y), p.line.At(x); got != want {
				rt.Fatalf("At(%v) after a shift by %v is %v, want %v", y, time.Duration(by), got, want)
			}
		}
	})
}

// Area arithmetic against that of math/big.
func TestAreaArithmetic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := resource.Memory
		area := func(label string) (a Area) {
			a.hi[k], a.lo[k] = rapid.Int64Range(-1<<61, 1<<61).Draw(rt, label+".hi"), rapid.Uint64().Draw(rt, label+".lo")
			return a
		}
		a, b := area("a"), area("b")
		if rapid.Bool().Draw(rt, "same high half") {
			b.hi = a.hi
		}
		x, y := bigOf(a, k), bigOf(b, k)
		if got, want := bigOf(a.Add(b), k), new(big.Int).Add(x, y); got.Cmp(want) != 0 {
			rt.Fatalf("%v + %v = %v, want %v", x, y, got, want)
		}
		if got, want := bigOf(a.Sub(b), k), new(big.Int).Sub(x, y); got.Cmp(want) != 0 {
			rt.Fatalf("%v - %v = %v, want %v", x, y, got, want)
		}
		if a.Compare(b, k) != x.Cmp(y) {
			rt.Fatalf("Compare(%v, %v) = %d", x, y, a.Compare(b, k))
		}
		want, _ := new(big.Float).Quo(new(big.Float).SetInt(x), big.NewFloat(1e9)).Float64()
		if got := a.UnitSeconds(k); got-want > 1e-15*max(got, -got) || want-got > 1e-15*max(got, -got) {
			rt.Fatalf("%v unit-ns are %v unit-s, want %v", x, got, want)
		}
	})
}
