package live

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

// eventLog is the record of one run's steps. Lines are collected and written together. A failed write is taken back, so
// that the file never contains half a line while the Driver lives. A log that has reached its bound ends there, after a
// complete step. While the disk is full, lines wait in memory, and the log may have no file yet.
type eventLog struct {
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

// newEventLog returns a log, without a file, with a header and the events of a first step, if there are any.
func newEventLog(header eventlog.Header, now timeline.Time, first []cluster.Event) (l *eventLog, err error) {
	l = &eventLog{}
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

// create makes the file of a log, with all that was collected. Until all of that is written, the file is not at its
// path.
func (l *eventLog) create(path string) (err error) {
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

// bound sets the largest size of the log, bytes; 0 is any. It is at least three times the beginning, so that
// inventories are at most a third of all logs.
func (l *eventLog) bound(most int64) {
	if l.most = most; most > 0 {
		l.most = max(most, 3*l.head)
	}
}

// full reports whether the log has ended.
func (l *eventLog) full() bool {
	l.over = l.over || l.text.Len() >= mostWaiting || l.most > 0 && l.good+int64(l.text.Len()) >= l.most
	return l.over
}

// record and decided collect lines: record the events of a step, decided its decisions if the log accepted the events.
// Encoding plain values into memory does not fail.
func (l *eventLog) record(now timeline.Time, e cluster.Event) (taken bool) {
	if l.full() {
		return false
	}
	if err := l.to.Events(now, e); err != nil {
		panic(err)
	}
	return true
}

func (l *eventLog) decided(now timeline.Time, decisions []cluster.Decision) {
	if err := l.to.Decisions(now, decisions); err != nil {
		panic(err)
	}
}

// flush writes the collected lines. If it fails, the file is as before, and the lines are kept for the next attempt.
func (l *eventLog) flush() error {
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

// there returns an error if the file is no longer at its path: the state directory, or a part of it, was removed, and
// all further writes are lost when this process ends.
func (l *eventLog) there() error {
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

func (l *eventLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
