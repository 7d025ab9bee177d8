package heap_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/heap"
)

// TestAgainstSortedList compares a heap with a list that is sorted anew after each call.
func TestAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type item = heap.Item[int, int]
		var h heap.Heap[int, int]
		var list []item
		for i := range rapid.IntRange(1, 200).Draw(t, "calls") {
			e := item{Value: i, Key: rapid.IntRange(-3, 3).Draw(t, "key"),
				Rank: uint64(rapid.IntRange(0, 1).Draw(t, "rank"))<<32 + uint64(i)}
			switch call := rapid.IntRange(0, 5).Draw(t, "call"); {
			case call < 3 || len(list) == 0:
				h.Push(e.Key, e.Rank, e.Value)
				list = append(list, e)
			case call == 3:
				h[0], list[0] = e, e
				h.Fix()
			default:
				if got := h.Pop(); got != list[0] {
					t.Fatalf("the first item is %+v, want %+v", got, list[0])
				}
				list = list[1:]
			}
			slices.SortFunc(list, func(a, b item) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Rank, b.Rank)) })
			if len(h) != len(list) || len(list) > 0 && h[0] != list[0] {
				t.Fatalf("the heap is %+v, want the items %+v", h, list)
			}
		}
	})
}
