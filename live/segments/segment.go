package segments

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/format/eventlog"
)

// Segment is the record of the steps of one engine. Lines are collected and written together. A failed write is taken
// back, so that the file never contains half a line while the process lives. A segment that has reached its bound ends
// there, after a complete step. While the disk is full, lines wait in memory, and the segment may have no file yet.
type Segment struct {
	file *durable.File // nil if it has none yet
	path string
	own  os.FileInfo // of the file
	most int64       // bytes; 0 is any number
	good int64       // bytes written
	head int64       // bytes of the header and the inventory
	text bytes.Buffer
	to   *eventlog.Writer
	over bool // it has ended
}

// mostWaiting is how many bytes of a log wait for the disk before the log ends.
const mostWaiting = 16 << 20

// NewSegment returns a segment, without a file, with a header and the events of a first step, if there are any.
func NewSegment(header eventlog.Header, now timeline.Time, first []cluster.Event) (l *Segment, err error) {
	l = &Segment{}
	if l.to, err = eventlog.NewWriter(&l.text, header); err != nil {
		return nil, err
	}
	if len(first) > 0 {
		if err := l.to.Events(now, first...); err != nil {
			return nil, err
		}
	}
	l.head = int64(l.text.Len())
	return l, nil
}

// create makes the file of a segment, with all that was collected. Until all of that is written, the file is not at its
// path.
func (l *Segment) create(path string) (err error) {
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make the folder of event logs: %w", err)
	}
	if err := durable.Replace(path, l.text.Bytes()); err != nil {
		return fmt.Errorf("make the event log: %w", err)
	}
	file, err := durable.Open(path)
	if err != nil {
		return errors.Join(fmt.Errorf("make the event log: %w", err), durable.RemoveAll(path))
	}
	if l.own, err = os.Stat(path); err != nil {
		return errors.Join(fmt.Errorf("make the event log: %w", err), file.Close(), durable.RemoveAll(path))
	}
	l.file, l.path, l.good = file, path, int64(l.text.Len())
	l.text.Reset()
	return nil
}

// Bound sets the largest size of the segment, bytes; 0 is any. It is at least three times the beginning, so that
// inventories are at most a third of all logs.
func (l *Segment) Bound(most int64) {
	if l.most = most; most > 0 {
		l.most = max(most, 3*l.head)
	}
}

// full reports whether the log has ended.
func (l *Segment) full() bool {
	l.over = l.over || l.text.Len() >= mostWaiting || l.most > 0 && l.good+int64(l.text.Len()) >= l.most
	return l.over
}

// Record and Decided collect lines: Record the events of a step, Decided its decisions if the segment accepted the
// events. Encoding plain values into memory does not fail.
func (l *Segment) Record(now timeline.Time, e cluster.Event) (taken bool) {
	if l.full() {
		return false
	}
	if err := l.to.Events(now, e); err != nil {
		panic(err)
	}
	return true
}

// Decided is described with Record.
func (l *Segment) Decided(now timeline.Time, decisions []cluster.Decision) {
	if err := l.to.Decisions(now, decisions); err != nil {
		panic(err)
	}
}

// Flush writes the collected lines. If it fails, the file is as before, and the lines are kept for the next attempt.
func (l *Segment) Flush() error {
	if l.text.Len() == 0 || l.file == nil {
		return nil
	}
	n, err := l.file.WriteAt(l.text.Bytes(), l.good)
	if err != nil {
		_ = l.file.Truncate(l.good) // If that fails, too, the next write overwrites the rest.
		return fmt.Errorf("write the event log: %w", err)
	}
	l.good += int64(n)
	l.text.Reset()
	return nil
}

// There returns an error if the file is no longer at its path: the state directory, or a part of it, was removed, and
// all further writes are lost when this process ends.
func (l *Segment) There() error {
	if l.file == nil {
		return nil
	}
	switch now, err := os.Stat(l.path); {
	case errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(l.own, now):
		return fmt.Errorf("%s was removed while bellows ran, probably with the state directory: end bellows with a "+
			"signal, and start it again", l.path)
	case err != nil:
		return fmt.Errorf("check the event log: %w", err)
	}
	return nil
}

// HasFile reports whether the segment was begun on the disk.
func (l *Segment) HasFile() bool { return l.file != nil }

// Path is where its file is; empty if it has none yet.
func (l *Segment) Path() string { return l.path }

// Most is the largest number of bytes that it may have; 0 is any.
func (l *Segment) Most() int64 { return l.most }

// Size is how many bytes are written.
func (l *Segment) Size() int64 { return l.good }

// Close closes the file.
func (l *Segment) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// isLarge reports whether the next segment should begin: half of what a segment may have, and more than twice its
// inventory, has been written; or this one has ended.
func (l *Segment) isLarge() bool {
	size := l.good + int64(l.text.Len())
	return l.full() || l.most > 0 && size >= l.most/2 && size >= 2*l.head
}
