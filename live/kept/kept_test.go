package kept

import (
	"math/rand/v2"
	"testing"
)

// However it is used, a cache never exceeds its size, returns what was put last, and has what was used most recently.
func TestCacheIsBounded(t *testing.T) {
	const most = 100
	random := rand.New(rand.NewPCG(1, 2))
	c, last := New[int, int](most), map[int]entry[int]{}
	var used []int // keys, the latest last
	for i := range 100_000 {
		key := random.IntN(60)
		size := 1 + key%10
		if key == 7 {
			size = most/2 + 1 // It is never kept.
		}
		switch random.IntN(10) {
		case 0:
			c.Drop(key)
			delete(last, key)
		case 1, 2, 3:
			c.Put(key, i, size)
			last[key] = entry[int]{i, size}
			if size > most/2 {
				delete(last, key)
			}
			used = append(used, key)
		default:
			got, ok := c.Get(key)
			if want := last[key]; ok && got != want.value {
				t.Fatalf("key %d is %d, want %d", key, got, want.value)
			}
			if ok {
				used = append(used, key)
			}
		}
		sum := 0
		for _, part := range []map[int]entry[int]{c.young, c.old} {
			for _, e := range part {
				sum += e.size
			}
		}
		if sum > most {
			t.Fatalf("it has %d of at most %d", sum, most)
		}
		recent, room := map[int]bool{}, most/2-10 // of the greatest size of a value
		for k := len(used) - 1; k >= 0 && room >= 1+used[k]%10; k-- {
			if !recent[used[k]] {
				recent[used[k]] = true
				room -= 1 + used[k]%10
			}
		}
		for key := range recent {
			_, young := c.young[key]
			_, old := c.old[key]
			if want, here := last[key]; here && !young && !old {
				t.Fatalf("key %d of size %d is gone, although it was used recently", key, want.size)
			}
		}
		used = used[max(0, len(used)-200):]
	}
}

// What is offered once takes no room. What is offered again is kept, even if many others were offered in between.
func TestOfferedAgain(t *testing.T) {
	c := New[int, string](10)
	for key := range 10_000 {
		c.Offer(key, "once", 1)
	}
	if _, ok := c.Get(9_999); ok || len(c.young)+len(c.old) > 0 {
		t.Errorf("%d values are kept that were offered once", len(c.young)+len(c.old))
	}
	kept := 0
	for key := range 10 {
		c.Offer(key, "again", 1)
		if value, ok := c.Get(key); ok && value == "again" {
			kept++
		}
	}
	if kept < 4 { // each of 10 others is forgotten with a probability of a quarter
		t.Errorf("%d of 10 values are kept that were offered again", kept)
	}
}
