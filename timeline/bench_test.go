package timeline

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

var benchSizes = []int{10, 100, 10_000}

// sized returns a Timeline of n steps, one per second from 0 on, each with 1 to 16 GiB and cores.
func sized(n int) *Timeline {
	r := rand.New(rand.NewSource(1))
	t, last := new(Timeline), resource.Amount(0)
	for i := range n {
		amount := 1 + (last+resource.Amount(r.Intn(14)))%16
		last = amount
		t.Set(Span{Seconds(float64(i)), Never}, resource.Of(amount*resource.Core, amount*resource.GiB))
	}
	if t.Len() != n {
		panic("neighbours are equal")
	}
	return t
}

func perSize(b *testing.B, run func(b *testing.B, t *Timeline, n int)) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := sized(n)
			b.ReportAllocs()
			run(b, t, n)
		})
	}
}

// spans returns random ones of up to 30 s within n seconds, as tasks have.
func spans(n int) []Span {
	r := rand.New(rand.NewSource(2))
	out := make([]Span, 1024)
	for i := range out {
		out[i] = For(Time(r.Int63n(int64(n)*int64(time.Second))), time.Duration(1+r.Int63n(int64(30*time.Second))))
	}
	return out
}

// One Add and the Sub that undoes it.
func BenchmarkAdd(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, n int) {
		s, v := spans(n), resource.Of(resource.Core, resource.GiB)
		for i := 0; b.Loop(); i++ {
			t.Add(s[i%len(s)], v)
			t.Sub(s[i%len(s)], v)
		}
	})
}

// As BenchmarkAdd, but from the span's begin without end, which changes every later step.
func BenchmarkAddForEver(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, n int) {
		s, v := spans(n), resource.Of(resource.Core, resource.GiB)
		for i := 0; b.Loop(); i++ {
			t.Add(Span{s[i%len(s)].From, Never}, v)
			t.Sub(Span{s[i%len(s)].From, Never}, v)
		}
	})
}

func BenchmarkAt(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, n int) {
		s := spans(n)
		for i := 0; b.Loop(); i++ {
			t.At(s[i%len(s)].From)
		}
	})
}

// The need fits at the last step only, and all others are looked at.
func BenchmarkFirstFit(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, n int) {
		t.Add(Span{Seconds(float64(n)), Never}, resource.Of(100*resource.Core, 100*resource.GiB))
		need := resource.Of(20*resource.Core, 20*resource.GiB)
		for b.Loop() {
			if x, ok := t.FirstFit(need, time.Minute, 0); !ok || x != Seconds(float64(n)) {
				b.Fatal(x, ok)
			}
		}
	})
}

func BenchmarkMin(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, _ int) {
		for b.Loop() {
			t.Min(Always)
		}
	})
}

func BenchmarkIntegral(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, _ int) {
		for b.Loop() {
			t.Integral(Always)
		}
	})
}

// Between two Timelines with all their steps at the same times.
func BenchmarkAreaAbove(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, _ int) {
		o := t.Clone()
		o.Add(Always, resource.Of(-resource.Core, resource.GiB))
		for b.Loop() {
			t.AreaAbove(o, Always)
		}
	})
}

// A demand of five steps is added to, and taken from, an aggregate of n.
func BenchmarkAddTimeline(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, _ int) {
		o := sized(5)
		for b.Loop() {
			t.AddTimeline(o)
			t.SubTimeline(o)
		}
	})
}

// One step recorded at the end.
func BenchmarkRecord(b *testing.B) {
	b.ReportAllocs()
	t := new(Timeline)
	for i := 0; b.Loop(); i++ {
		t.Set(Span{Time(i), Never}, resource.Of(resource.Amount(1+i%7), 0))
	}
}

// A window of n steps moves on by one: a step is added at the end and one falls out of the past.
func BenchmarkWindow(b *testing.B) {
	perSize(b, func(b *testing.B, t *Timeline, n int) {
		for i := 0; b.Loop(); i++ {
			t.Set(Span{Seconds(float64(n + i)), Never}, resource.Of(resource.Amount(1+i%7), 0))
			t.Trim(Seconds(float64(i)))
		}
	})
}
