// Package kept keeps what callers asked for, for those who ask soon after: a cache of bounded size, and a value that
// takes long to make.
package kept

import (
	"hash/maphash"
	"sync"
)

// Cache keeps what was put or found most recently: at least half of its size, at most all of it. It may be used by
// several goroutines at once.
type Cache[K comparable, V any] struct {
	mu         sync.Mutex
	most       int
	young, old map[K]entry[V]
	size       int // of young

	seed    maphash.Seed
	offered [mostOffered]uint32 // the hash of the key that was offered last, of those that have the same index
}

// mostOffered bounds the keys of which a cache knows that they were offered.
const mostOffered = 1 << 15

type entry[V any] struct {
	value V
	size  int
}

// New returns a cache of a size, in the unit of the sizes that are put into it.
func New[K comparable, V any](most int) *Cache[K, V] {
	return &Cache[K, V]{most: most, young: map[K]entry[V]{}, seed: maphash.MakeSeed()}
}

// Get returns the value of a key, if it is kept.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.young[key]
	if !ok {
		if e, ok = c.old[key]; ok {
			delete(c.old, key)
			c.put(key, e)
		}
	}
	return e.value, ok
}

// Put keeps a value that takes size. One that takes more than half of the cache is not kept.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.old, key)
	c.put(key, entry[V]{value, size})
}

// Offer keeps a value if its key has been offered before and was not forgotten since: what is wanted only once takes
// no room. Of every two keys with the same index the older one is forgotten, so that some 20,000 other keys may be
// offered in between.
func (c *Cache[K, V]) Offer(key K, value V, size int) {
	hash := maphash.Comparable(c.seed, key)
	index, mark := hash%mostOffered, uint32(hash>>32)|1 // an index without a key has 0
	c.mu.Lock()
	again := c.offered[index] == mark
	c.offered[index] = mark
	c.mu.Unlock()
	if again {
		c.Put(key, value, size)
	}
}

func (c *Cache[K, V]) put(key K, e entry[V]) {
	c.size -= c.young[key].size
	delete(c.young, key)
	if e.size > c.most/2 {
		return
	}
	if c.size+e.size > c.most/2 {
		c.old, c.young, c.size = c.young, map[K]entry[V]{}, 0
	}
	c.young[key] = e
	c.size += e.size
}

// Drop forgets a key.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size -= c.young[key].size
	delete(c.young, key)
	delete(c.old, key)
}
