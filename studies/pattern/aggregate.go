package pattern

import (
	"math/bits"
	"slices"
)

// table counts records by key: open addressing, linear probing, an empty slot has no count. Each slot is a record: key,
// count, sum.
type table struct {
	slots []record
	used  int
}

// fullest is the share of used slots, in quarters, at which a table is full.
const fullest = 3

func (t *table) full() bool { return 4*t.used >= fullest*len(t.slots) }

// add counts a key.
func (t *table) add(key uint64) {
	at, _ := bits.Mul64(mix(key), uint64(len(t.slots)))
	for {
		s := &t.slots[at]
		if s[1] == 0 {
			s[0] = key
			t.used++
		} else if s[0] != key {
			if at++; at == uint64(len(t.slots)) {
				at = 0
			}
			continue
		}
		s[1]++
		s[2] += key >> 3
		return
	}
}

// sorted moves the groups to the front, in order of keys.
func (t *table) sorted() []record {
	n := 0
	for i := range t.slots {
		if t.slots[i][1] > 0 {
			t.slots[n], n = t.slots[i], n+1
		}
	}
	slices.SortFunc(t.slots[:n], byKey)
	return t.slots[:n]
}

// aggregate counts three records per group on average, in random order. A full table is spilled, sorted by key, and at
// the end the runs are merged and groups of the same key added up.
func aggregate(c Config) (Result, error) {
	t := table{slots: c.buffer()}
	// slightly fewer than fill a table as large as the input
	groups := uint64(c.Input/recordBytes) * (fullest*16 - 1) / (4 * 16)
	var s spillFile
	defer s.close()
	for i := range 3 * groups {
		high, _ := bits.Mul64(mix(i), groups)
		t.add(mix(high))
		if t.full() {
			if err := s.writeOne(c.Dir, t.sorted()); err != nil {
				return Result{}, err
			}
			clear(t.slots)
			t.used = 0
		}
	}
	if len(s.runs) == 0 {
		digest := uint64(0)
		for i := range t.slots {
			if t.slots[i][1] > 0 {
				digest += t.slots[i].digest()
			}
		}
		return Result{0, digest}, nil
	}
	if err := s.writeOne(c.Dir, t.sorted()); err != nil {
		return Result{}, err
	}
	var digest uint64
	var group record
	err := merge(s.cursors(t.slots), func(r *record) error {
		if r[0] == group[0] && group[1] > 0 {
			group[1] += r[1]
			group[2] += r[2]
			return nil
		}
		if group[1] > 0 {
			digest += group.digest()
		}
		group = *r
		return nil
	})
	digest += group.digest()
	return Result{s.bytes(), digest}, err
}
