// Package heap is a priority queue: the item with the least key comes first.
package heap

import "cmp"

// Heap has its first item at index 0; the other items are in no particular order. Each item has up to four children,
// which needs fewer cache lines than two. The keys are compared in place rather than by a function, because simulations
// spend much of their time in heaps. The zero Heap is empty.
type Heap[K cmp.Ordered, V any] []Item[K, V]

// Item is a value with its place in the order: by Key and then, among equal keys, by Rank.
type Item[K cmp.Ordered, V any] struct {
	Value V
	Key   K
	Rank  uint64
}

func (a *Item[K, V]) before(b *Item[K, V]) bool {
	return a.Key < b.Key || a.Key == b.Key && a.Rank < b.Rank
}

// Push adds an item, in O(log items).
func (h *Heap[K, V]) Push(key K, rank uint64, value V) {
	e := Item[K, V]{value, key, rank}
	items := append(*h, e)
	*h = items
	i := len(items) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&items[up]) {
			break
		}
		items[i] = items[up]
		i = up
	}
	items[i] = e
}

// Pop removes and returns the first item, in O(log items). The heap must not be empty.
func (h *Heap[K, V]) Pop() Item[K, V] {
	items := *h
	first, last := items[0], len(items)-1
	e := items[last]
	*h = items[:last]
	if last > 0 {
		h.sink(e)
	}
	return first
}

// Fix restores the order after the first item has changed, in O(log items). The heap must not be empty.
func (h Heap[K, V]) Fix() { h.sink(h[0]) }

// sink puts e in place of the first item and moves it to where it belongs.
func (items Heap[K, V]) sink(e Item[K, V]) {
	i := 0
	for {
		least := 4*i + 1
		if least >= len(items) {
			break
		}
		for below := least + 1; below < min(4*i+5, len(items)); below++ {
			if items[below].before(&items[least]) {
				least = below
			}
		}
		if !items[least].before(&e) {
			break
		}
		items[i] = items[least]
		i = least
	}
	items[i] = e
}
