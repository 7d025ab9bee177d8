// Package pattern has small real programs, one per way of using memory, that either keep all their data in memory or
// spill data that do not fit into a buffer. `bellows-lab paging` without a command measures them: the same program can
// spill by itself, or can be configured for enough memory while the kernel pages.
//
// They do little besides touching memory, so spilling and paging cost them more than most programs.
package pattern

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// Config is one run of a program.
type Config struct {
	Pattern string          // one of Names
	Input   resource.Amount // bytes of data in memory, at least MinInput
	// bytes of data the program may keep in memory, at least MinBuffer; Input or more: it does not spill
	Buffer resource.Amount
	Dir    string // where it spills
}

// Result is the result of a run.
type Result struct {
	Spilled resource.Amount // bytes written to spill files
	Digest  uint64          // of the result; the same for every buffer
}

// Limits of Config.
const (
	MinInput  = resource.MiB
	MinBuffer = resource.MiB
)

var programs = map[string]func(Config) (Result, error){
	"merge": mergeSegments,
	"sort":  sortRecords,
	"hash":  aggregate,
	"scan":  iterate,
}

var says = []struct{ name, what string }{
	{"merge", "sorted segments arrive one after the other and are merged once, as in a Hadoop reducer: many " +
		"streams, each read in order"},
	{"sort", "records arrive in any order and are sorted in place: passes over ever smaller parts"},
	{"hash", "records are counted by key in a hash table: every access at a random place"},
	{"scan", "data are read from the first byte to the last five times over, as by an iterative program on cached data"},
}

// Names lists the programs.
func Names() []string {
	var names []string
	for _, s := range says {
		names = append(names, s.name)
	}
	return names
}

// Describe returns one line about the named program, or "" for an unknown name.
func Describe(name string) string {
	for _, s := range says {
		if s.name == name {
			return s.what
		}
	}
	return ""
}

// Run runs a program.
func Run(c Config) (Result, error) {
	program, ok := programs[c.Pattern]
	switch {
	case !ok:
		return Result{}, fmt.Errorf("pattern %q: must be one of %s", c.Pattern, strings.Join(Names(), ", "))
	case c.Input < MinInput:
		return Result{}, fmt.Errorf("input %s: must be at least %s", resource.FormatMemory(c.Input),
			resource.FormatMemory(MinInput))
	case c.Buffer < MinBuffer:
		return Result{}, fmt.Errorf("buffer %s: must be at least %s", resource.FormatMemory(c.Buffer),
			resource.FormatMemory(MinBuffer))
	}
	return program(c)
}

// buffer returns space for all of the input, or for as much of it as the program may keep in memory.
func (c Config) buffer() []record { return make([]record, min(c.Input, c.Buffer)/recordBytes) }

// windows divides memory into one window for each of n runs.
func windows(memory []record, n int) [][]record {
	const most = 4096 // 256 KiB; larger reads are no faster
	var w [][]record
	size := min(len(memory)/max(n, 1), most)
	for i := range n {
		w = append(w, memory[i*size:(i+1)*size])
	}
	return w
}

// cursors returns one cursor per run of s, with windows made of memory.
func (s *spillFile) cursors(memory []record) []*cursor {
	var all []*cursor
	for i, w := range windows(memory, len(s.runs)) {
		all = append(all, &cursor{file: s.file, left: s.runs[i], window: w})
	}
	return all
}

// readWindow is the share of the buffer, 1 / this number, through which the final merge reads runs.
const readWindow = 8

// finish merges the spilled runs with the sorted parts that are still in memory.
func (s *spillFile) finish(parts [][]record, spare []record) (digest uint64, err error) {
	cursors := s.cursors(spare)
	for _, p := range parts {
		cursors = append(cursors, &cursor{have: p})
	}
	last := uint64(0)
	err = merge(cursors, func(r *record) error {
		if r[0] < last {
			return fmt.Errorf("key %d came after %d", r[0], last)
		}
		last = r[0]
		digest += r.digest()
		return nil
	})
	return digest, err
}

// mergeSegments receives sorted segments. When the buffer is full, it merges and spills all segments in it; at the end
// it merges the rest (YARN-ME, section 2.3).
func mergeSegments(c Config) (Result, error) {
	const segments = 256
	all := int(c.Input / recordBytes)
	size := max(all/segments, 1)
	memory, spare := c.split()
	size = min(size, len(memory))
	var s spillFile
	defer s.close()
	var held [][]record
	used := 0
	out := make([]record, 1024)
	for from, segment := 0, uint64(0); from < all; from, segment = from+size, segment+1 {
		n := min(size, all-from)
		if used+n > len(memory) {
			if err := s.writeMerged(c.Dir, held, out); err != nil {
				return Result{}, err
			}
			held, used = held[:0], 0
		}
		part := memory[used : used+n]
		key := mix(segment) >> 40
		for i := range part {
			key += mix(key+segment) >> 40
			part[i] = made(key)
		}
		held, used = append(held, part), used+n
	}
	digest, err := s.finish(held, spare)
	return Result{s.bytes(), digest}, err
}

// split divides the buffer into memory for data, and a spare part through which a merge reads spilled runs. A program
// that need not spill has no spare part.
func (c Config) split() (memory, spare []record) {
	b := c.buffer()
	if c.Buffer >= c.Input {
		return b, nil
	}
	spare = b[:len(b)/readWindow]
	return b[len(spare):], spare
}

// writeMerged spills parts as one sorted run.
func (s *spillFile) writeMerged(dir string, parts [][]record, out []record) error {
	return s.write(dir, func(write func([]record) error) error {
		var cursors []*cursor
		for _, p := range parts {
			cursors = append(cursors, &cursor{have: p})
		}
		n := 0
		err := merge(cursors, func(r *record) error {
			out[n] = *r
			if n++; n < len(out) {
				return nil
			}
			n = 0
			return write(out)
		})
		if err != nil {
			return err
		}
		return write(out[:n])
	})
}

// writeOne spills one sorted part as a run.
func (s *spillFile) writeOne(dir string, part []record) error {
	return s.write(dir, func(write func([]record) error) error { return write(part) })
}

// sortRecords sorts the buffer in place and spills it whenever it is full, and merges all at the end.
func sortRecords(c Config) (Result, error) {
	memory, spare := c.split()
	var s spillFile
	defer s.close()
	used := 0
	for i := range c.Input / recordBytes {
		if used == len(memory) {
			slices.SortFunc(memory, byKey)
			if err := s.writeOne(c.Dir, memory); err != nil {
				return Result{}, err
			}
			used = 0
		}
		memory[used] = made(mix(uint64(i)))
		used++
	}
	slices.SortFunc(memory[:used], byKey)
	digest, err := s.finish([][]record{memory[:used]}, spare)
	return Result{s.bytes(), digest}, err
}

// iterate reads its data five times: the part that fits from memory, the rest from a file that is written once and read
// again, because the data never change.
func iterate(c Config) (Result, error) {
	const times = 5
	memory, window := c.split()
	all := c.Input / recordBytes
	for i := range memory {
		memory[i] = made(uint64(i))
	}
	var s spillFile
	defer s.close()
	if resource.Amount(len(memory)) < all {
		err := s.write(c.Dir, func(write func([]record) error) error {
			for from := resource.Amount(len(memory)); from < all; from += resource.Amount(len(window)) {
				part := window[:min(resource.Amount(len(window)), all-from)]
				for i := range part {
					part[i] = made(uint64(from) + uint64(i))
				}
				if err := write(part); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return Result{}, err
		}
	}
	digest := uint64(0)
	for range times {
		digest = mix(digest)
		for i := range memory {
			digest += memory[i].digest()
		}
		for _, r := range s.runs {
			c := cursor{file: s.file, left: r, window: window}
			for {
				ok, err := c.fill()
				if err != nil {
					return Result{}, err
				}
				if !ok {
					break
				}
				for i := range c.have {
					digest += c.have[i].digest()
				}
				c.have = nil
			}
		}
	}
	return Result{s.bytes(), digest}, nil
}
