package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/timeline"
)

// TestAgendaAgainstSortedList compares the agenda with a list that is sorted anew for each look. Times are near and
// far, equal and in the past, as far back as the open millisecond.
func TestAgendaAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a agenda
		var list []item
		now := timeline.Time(0)
		var turns []uint64
		for range rapid.IntRange(1, 2000).Draw(t, "calls") {
			if rapid.IntRange(0, 2).Draw(t, "call") > 0 {
				span := rapid.SampledFrom([]timeline.Time{0, 1, 1e5, 1e6, 1e9, 2.5e9, 1e13, 1e17}).Draw(t, "span")
				at := now + span*timeline.Time(rapid.IntRange(0, 3).Draw(t, "spans"))
				what := rapid.SampledFrom([]happening{arrival, nodeHeartbeat, jobPoll, woken, ended}).Draw(t, "what")
				turn := a.turn()
				if what == jobPoll {
					at = now + 1e9 // always equally far ahead
				} else if len(turns) > 0 && rapid.IntRange(0, 9).Draw(t, "turn") == 0 {
					// A turn that was taken before, of an entry that is no longer ahead.
					turn, turns = turns[0], turns[1:]
				}
				a.pushAt(at, turn, what, 7)
				list = append(list, item{at, turn, 7, what})
				continue
			}
			got, ok := a.pop()
			if any := slices.ContainsFunc(list, func(e item) bool { return e.what != jobPoll && e.what != woken }); ok != any {
				t.Fatalf("something moves: %v, want %v", ok, any)
			}
			if !ok {
				continue
			}
			slices.SortFunc(list, compareItems)
			if got != list[0] {
				t.Fatalf("next is %+v, want %+v", got, list[0])
			}
			now, list = got.at, list[1:]
			turns = append(turns, got.seq)
		}
	})
}
