package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// stage is a stage of Prophet's equations: of a demand, or of what is available.
type stage struct {
	start, end Time
	amount     resource.Amount
}

// formula is Formula(s, k) of Prophet's equations 3 to 7, with one line for each, without weight.
func formula(k, s stage) resource.Amount {
	height := k.amount - s.amount
	if height < 0 {
		height = -height
	}
	switch {
	case k.end <= s.start || s.end <= k.start:
		return 0 // (3)
	case k.start <= s.start && s.start <= s.end && s.end <= k.end:
		return height * resource.Amount(s.end-s.start) // (4)
	case k.start <= s.start && s.start <= k.end && k.end <= s.end:
		return height * resource.Amount(k.end-s.start) // (5)
	case s.start <= k.start && k.start <= s.end && s.end <= k.end:
		return height * resource.Amount(s.end-k.start) // (6)
	case s.start <= k.start && k.start <= k.end && k.end <= s.end:
		return height * resource.Amount(k.end-k.start) // (7)
	}
	panic(fmt.Sprintf("equations 3 to 7 have no case for %v and %v", k, s))
}

// drawRates draws rates of the disk and the network, from least to 5.
func drawRates(t *rapid.T, what string, least int) (v resource.Vector) {
	for _, k := range []resource.Kind{resource.Disk, resource.Network} {
		v[k] = resource.Amount(rapid.IntRange(least, 5).Draw(t, what))
	}
	return v
}

// TestOverlapIsTheEquations compares one walk with the sums over all pairs of stages.
func TestOverlapIsTheEquations(t *testing.T) {
	kinds := []resource.Kind{resource.Network, resource.Disk}
	rapid.Check(t, func(rt *rapid.T) {
		number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }
		rates := func(what string, least int) resource.Vector { return drawRates(rt, what, least) }
		var changes []Step
		for range number("changes", 0, 6) {
			changes = append(changes, Step{Time(number("at", -3, 12)), rates("change", -3)})
		}
		slices.SortFunc(changes, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
		var line Timeline
		var supply Supply
		before := rates("before", -2)
		line.Sum(before, changes)
		supply.Set(before, changes, kinds)
		from := Time(number("from", -4, 12))
		var spans []Span
		for range number("spans", 0, 5) {
			spans = append(spans, Span{time.Duration(number("length", 0, 5)), rates("demand", 0), int64(number("weight", 0, 3))})
		}
		gaps := make([]Gap, len(kinds))
		others := number("others", 0, 2)
		supply.Overlap(from, spans, others, kinds, gaps)
		for g, kind := range kinds {
			var idle, over resource.Amount
			start := from
			for _, span := range spans {
				k := stage{start, start.Add(span.Length), span.Demand[kind]}
				start = k.end
				for i := -1; i < len(line.steps); i++ {
					s := stage{-100, 100, before[kind]}
					if i >= 0 {
						s.start, s.amount = line.steps[i].At, line.steps[i].Value[kind]
					}
					if i+1 < len(line.steps) {
						s.end = line.steps[i+1].At
					}
					s.amount = max(0, s.amount-span.Demand[kind]*resource.Amount(others))
					if k.amount <= s.amount {
						idle += formula(k, s) * resource.Amount(span.Weight) // (1)
					} else {
						over += formula(k, s) * resource.Amount(span.Weight) // (2)
					}
				}
			}
			if want := (Gap{AreaOf(idle, 1), AreaOf(over, 1)}); gaps[g] != want {
				rt.Fatalf("the gap of %v is %v, want %v", kind, gaps[g], want)
			}
		}
	})
}

// The cases of equations 4 to 7 share their borders. Wherever more than one holds, they give the same.
func TestEquationsAgreeOnTheirBorders(t *testing.T) {
	cases := []func(k, s stage) (Time, bool){
		func(k, s stage) (Time, bool) { return 0, k.end <= s.start || s.end <= k.start },
		func(k, s stage) (Time, bool) {
			return s.end - s.start, k.start <= s.start && s.start <= s.end && s.end <= k.end
		},
		func(k, s stage) (Time, bool) {
			return k.end - s.start, k.start <= s.start && s.start <= k.end && k.end <= s.end
		},
		func(k, s stage) (Time, bool) {
			return s.end - k.start, s.start <= k.start && k.start <= s.end && s.end <= k.end
		},
		func(k, s stage) (Time, bool) {
			return k.end - k.start, s.start <= k.start && k.start <= k.end && k.end <= s.end
		},
	}
	const last = 4
	for i := range last * last * last * last {
		k, s := stage{Time(i % last), Time(i / last % last), 0},
			stage{Time(i / last / last % last), Time(i / last / last / last), 0}
		if k.start >= k.end || s.start >= s.end {
			continue
		}
		want := max(0, min(k.end, s.end)-max(k.start, s.start))
		held := 0
		for equation, c := range cases {
			if length, holds := c(k, s); holds {
				held++
				if length != want {
					t.Errorf("equation %d gives %d for %v and %v, want %d", equation+3, length, k, s, want)
				}
			}
		}
		if held == 0 {
			t.Errorf("no equation holds for %v and %v", k, s)
		}
	}
}

// TestNet: on each span, Net is the difference of the areas of Overlap.
func TestNet(t *testing.T) {
	kinds := []resource.Kind{resource.Network, resource.Disk}
	rapid.Check(t, func(rt *rapid.T) {
		number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }
		rates := func(what string, least int) resource.Vector { return drawRates(rt, what, least) }
		var changes []Step
		for at, i := -3, number("changes", 0, 6); i > 0; i-- {
			at += number("later", 0, 4)
			changes = append(changes, Step{Time(at), rates("change", -3)})
		}
		var supply Supply
		supply.Set(rates("before", -2), changes, kinds)
		from := Time(number("from", -4, 12))
		var spans []Span
		for range number("spans", 0, 5) {
			spans = append(spans, Span{Length: time.Duration(number("length", 0, 5)), Demand: rates("demand", 0),
				Weight: int64(number("weight", 0, 3))})
		}
		got, want := make([]Gap, len(kinds)), make([]Gap, len(kinds))
		supply.Net(from, spans, kinds, got)
		for i, span := range spans {
			gaps := make([]Gap, len(kinds))
			supply.Overlap(from, spans[i:i+1], 0, kinds, gaps)
			for g := range gaps {
				if left := gaps[g].Idle.Sub(gaps[g].Over); left.hi >= 0 {
					want[g].Idle = want[g].Idle.Add(left)
				} else {
					want[g].Over = want[g].Over.Sub(left)
				}
			}
			from = from.Add(span.Length)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("the gaps are %v, want %v", got, want)
		}
	})
}

func TestOverlapOfLongTimes(t *testing.T) {
	kinds, gaps := []resource.Kind{resource.Disk}, make([]Gap, 1)
	var supply Supply
	supply.Set(resource.Vector{}.With(resource.Disk, 1<<50), nil, kinds)
	supply.Overlap(0, []Span{{Length: 1 << 62, Weight: 3}}, 0, kinds, gaps)
	want := AreaOf(1<<50, 1<<62)
	if want = want.Add(want).Add(want); gaps[0] != (Gap{Idle: want}) {
		t.Errorf("it is %v, want %v", gaps[0], want)
	}
}

// BenchmarkOverlap compares a demand of six phases with what a node of some 20 tasks has: for each resource, exactly
// and net.
func BenchmarkOverlap(b *testing.B) {
	var changes []Step
	for i := range 120 {
		changes = append(changes,
			Step{Seconds(float64(i)), resource.Vector{}.With(resource.Disk, resource.Amount(i%7-3)*resource.MB)})
	}
	kinds, gaps := []resource.Kind{resource.Disk, resource.Network}, make([]Gap, 2)
	var supply Supply
	supply.Set(resource.Vector{0, 0, 100 * resource.MB, 100 * resource.MB}, changes, kinds)
	var spans []Span
	for i := range 6 {
		demand := resource.Vector{}.With(resource.Disk, resource.Amount(i)*20*resource.MB)
		spans = append(spans, Span{Length: 20 * time.Second, Demand: demand, Weight: int64(6 - i)})
	}
	b.Run("exact", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			supply.Overlap(0, spans, 0, kinds, gaps)
		}
	})
	b.Run("net", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			supply.Net(0, spans, kinds, gaps)
		}
	})
}
