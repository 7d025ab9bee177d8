package timeline

import (
	"testing"

	"github.com/bellows-rm/bellows/resource"
)

// A world so small that every change of every function in it can be tried: cell c is the nanosecond from c on, the last
// one has no end, and amounts are 0 to 2 bytes. Random changes seldom meet the case that a value set is the one already there.
const smallCells = 5

type smallWorld [smallCells]resource.Amount

func everySmallWorld(visit func(smallWorld)) {
	var w smallWorld
	for {
		visit(w)
		c := 0
		for ; c < smallCells && w[c] == 2; c++ {
			w[c] = 0
		}
		if c == smallCells {
			return
		}
		w[c]++
	}
}

func everySmallSpan(visit func(Span)) {
	for from := range Time(smallCells) {
		for to := from + 1; to < smallCells; to++ {
			visit(Span{from, to})
		}
		visit(Span{from, Never})
	}
}

// fill makes t the function w by appending, without the operations that are tested.
func (w smallWorld) fill(t *Timeline) {
	t.Reset()
	var before resource.Amount
	for c, a := range w {
		if a != before {
			t.buf = append(t.buf, Step{Time(c), memory(a)})
		}
		before = a
	}
}

func (w smallWorld) change(s Span, f func(resource.Amount) resource.Amount) smallWorld {
	for c := range w {
		if s.Contains(Time(c)) {
			w[c] = f(w[c])
		}
	}
	return w
}

func TestEveryChangeOfASmallWorld(t *testing.T) {
	var got, want Timeline
	check := func(name string, w, expect smallWorld, s Span, v resource.Amount) {
		expect.fill(&want)
		if !got.Equal(&want) {
			t.Fatalf("%s(%v, %d) of %v gives %v, want %v", name, s, v, w, &got, &want)
		}
	}
	everySmallWorld(func(w smallWorld) {
		everySmallSpan(func(s Span) {
			for v := range resource.Amount(3) {
				w.fill(&got)
				got.Add(s, memory(v))
				check("Add", w, w.change(s, func(a resource.Amount) resource.Amount { return a + v }), s, v)
				w.fill(&got)
				got.Sub(s, memory(v))
				check("Sub", w, w.change(s, func(a resource.Amount) resource.Amount { return a - v }), s, v)
				w.fill(&got)
				got.Set(s, memory(v))
				check("Set", w, w.change(s, func(resource.Amount) resource.Amount { return v }), s, v)
			}
			w.fill(&got)
			got.Trim(s.From)
			expect := w.change(Span{Earliest, s.From}, func(resource.Amount) resource.Amount { return 0 })
			check("Trim", w, expect, Span{s.From, s.From}, 0)
		})
	})
}

func TestEverySumOfSmallWorlds(t *testing.T) {
	var a, b, got, want Timeline
	everySmallWorld(func(w smallWorld) {
		w.fill(&a)
		everySmallWorld(func(o smallWorld) {
			o.fill(&b)
			for c := range o {
				o[c] += w[c]
			}
			o.fill(&want)
			got.CopyFrom(&a)
			if got.AddTimeline(&b); !got.Equal(&want) {
				t.Fatalf("%v + %v = %v, want %v", &a, &b, &got, &want)
			}
			if got.SubTimeline(&b); !got.Equal(&a) {
				t.Fatalf("%v - %v = %v, want %v", &want, &b, &got, &a)
			}
		})
	})
}
