package timeline

import (
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// TestSumAgainstDefinition: the value at any time is what was there before and all changes up to then, and the first
// time at which something fits is the first of all times at which it does.
func TestSumAgainstDefinition(t *testing.T) {
	var line Timeline // one for all, so that what the last run left in it shows
	rapid.Check(t, func(rt *rapid.T) {
		vector := func(what string) resource.Vector {
			return resource.Of(resource.Amount(rapid.IntRange(-2, 3).Draw(rt, what)),
				resource.Amount(rapid.IntRange(-2, 3).Draw(rt, what)))
		}
		before := vector("before")
		var changes []Step
		for range rapid.IntRange(0, 6).Draw(rt, "changes") {
			at := Time(rapid.IntRange(0, 9).Draw(rt, "at"))
			if at == 9 {
				at = Never
			}
			changes = append(changes, Step{at, vector("change")})
		}
		given := slices.Clone(changes)
		line.Sum(before, changes)
		if !slices.Equal(changes, given) {
			rt.Fatalf("changes are %v, were %v", changes, given)
		}
		need := vector("need")
		from := Time(rapid.IntRange(-1, 9).Draw(rt, "from"))
		first, found := Never, false
		for x := Time(-1); x < 10; x++ {
			want := before
			for _, c := range changes {
				if c.At <= x {
					want = want.Add(c.Value)
				}
			}
			if got := line.At(x); got != want {
				rt.Fatalf("at %d it is %v, want %v", x, got, want)
			}
			if x >= from && !found && need.FitsIn(want) {
				first, found = x, true
			}
		}
		if got, ok := line.First(from, need.FitsIn); got != first || ok != found {
			rt.Fatalf("it fits first at %d, %v; want %d, %v", got, ok, first, found)
		}
		earliest, next := Never, Never
		for _, c := range changes {
			if earliest = min(earliest, c.At); c.At > from {
				next = min(next, c.At)
			}
		}
		if got := line.NextStep(from); got != next {
			rt.Fatalf("the step after %d is at %d, want %d", from, got, next)
		}
		if got := line.FirstStep(); got != earliest {
			rt.Fatalf("the first step is at %d, want %d", got, earliest)
		}
	})
}

func TestNothingFitsAtNever(t *testing.T) {
	var line Timeline
	if x, ok := line.First(Never, func(resource.Vector) bool { return true }); ok {
		t.Errorf("something fits at %v", x)
	}
}
