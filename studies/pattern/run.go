package pattern

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bellows-rm/bellows/core/heap"
	"github.com/bellows-rm/bellows/core/resource"
)

// run is a stretch of spilled records in a file.
type run struct{ from, to resource.Amount } // bytes

// spillFile is the file to which a program spills. It has no name, so that it is gone with the process, however the
// process ends.
type spillFile struct {
	file *os.File
	runs []run
}

// write spills the given batches one after the other as one run. The file is made in dir.
func (s *spillFile) write(dir string, batches func(func([]record) error) error) error {
	if s.file == nil {
		f, err := os.CreateTemp(dir, "spill-")
		if err != nil {
			return fmt.Errorf("make a spill file: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return fmt.Errorf("make a spill file: %w", err)
		}
	}
	at := s.bytes()
	r := run{at, at}
	err := batches(func(b []record) error {
		n, err := s.file.WriteAt(bytesOf(b), int64(r.to))
		r.to += resource.Amount(n)
		return err
	})
	if err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	s.runs = append(s.runs, r)
	return nil
}

// bytes returns the number of spilled bytes.
func (s *spillFile) bytes() resource.Amount {
	if len(s.runs) == 0 {
		return 0
	}
	return s.runs[len(s.runs)-1].to
}

func (s *spillFile) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// cursor walks over sorted records: records in memory, or the records of a run, through a window of memory.
type cursor struct {
	have   []record // not yet consumed; the first is the current one
	window []record
	file   *os.File
	left   run
}

// fill reads the next window if the last is consumed; ok is false at the end.
func (c *cursor) fill() (ok bool, err error) {
	if len(c.have) > 0 || c.left.from >= c.left.to {
		return len(c.have) > 0, nil
	}
	n := min(resource.Amount(len(c.window)), (c.left.to-c.left.from)/recordBytes)
	c.have = c.window[:n]
	if _, err := c.file.ReadAt(bytesOf(c.have), int64(c.left.from)); err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read spilled records: %w", err)
	}
	c.left.from += n * recordBytes
	return true, nil
}

// merge calls each with the records of all cursors, in ascending order of keys.
func merge(cursors []*cursor, each func(*record) error) error {
	var first heap.Heap[uint64, *cursor]
	for i, c := range cursors {
		ok, err := c.fill()
		if err != nil {
			return err
		}
		if ok {
			first.Push(c.have[0][0], uint64(i), c)
		}
	}
	for len(first) > 0 {
		c := first[0].Value
		if err := each(&c.have[0]); err != nil {
			return err
		}
		c.have = c.have[1:]
		ok, err := c.fill()
		if err != nil {
			return err
		}
		if !ok {
			first.Pop()
			continue
		}
		first[0].Key = c.have[0][0]
		first.Fix()
	}
	return nil
}
