// Package kept is a cache of bounded size.
package kept

import "sync"

// Cache keeps what was put or found most recently: at least half of its size, at most all of it. It may be used by several goroutines
// at once.
type Cache[K comparable, V any] struct {
	mu         sync.Mutex
	most       int
	young, old map[K]entry[V]
	size       int // of young
}

type entry[V any] struct {
	value V
	size  int
}

// New returns a cache of a size, in the unit of the sizes that are put into it.
func New[K comparable, V any](most int) *Cache[K, V] {
	return &Cache[K, V]{most: most, young: map[K]entry[V]{}}
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
