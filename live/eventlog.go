package live

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/eventlog"
	"github.com/bellows-rm/bellows/timeline"
)

// eventLog is the record of one run's steps. Lines are collected and written together; a write that fails is taken back,
// so that the file never holds half a line while the Driver lives. A log that has reached its bound ends there, after a
// whole step.
type eventLog struct {
	file *durable.File
	path string
	own  os.FileInfo // of the file
	most int64       // bytes; 0 is any number
	good int64       // bytes that are written
	text bytes.Buffer
	to   *eventlog.Writer
}

func createEventLog(path string, most int64, header eventlog.Header) (*eventLog, error) {
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("make the folder of event logs: %w", err)
	}
	file, err := durable.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make the event log: %w", err)
	}
	l := &eventLog{file: file, path: path, most: most}
	if l.own, err = os.Stat(path); err != nil {
		return nil, errors.Join(fmt.Errorf("make the event log: %w", err), file.Close())
	}
	l.to, err = eventlog.NewWriter(&l.text, header)
	if err == nil {
		err = l.flush()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// full tells whether the log has ended.
func (l *eventLog) full() bool { return l.most > 0 && l.good+int64(l.text.Len()) >= l.most }

// record and decided collect lines: decided those of the step that record began, if the log took that. Encoding plain values
// into memory does not fail.
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

// flush writes what was collected. If it fails the file is as before, and everything is still there to be tried again.
func (l *eventLog) flush() error {
	if l.text.Len() == 0 {
		return nil
	}
	n, err := l.file.WriteAt(l.text.Bytes(), l.good)
	if err != nil {
		_ = l.file.Truncate(l.good) // What it cannot cut off the next write goes over.
		return fmt.Errorf("write the event log: %w", err)
	}
	l.good += int64(n)
	l.text.Reset()
	return nil
}

// there returns an error if the file is no longer at its path: somebody has removed the state directory, or its parts, and
// what is written is lost with this process.
func (l *eventLog) there() error {
	switch now, err := os.Stat(l.path); {
	case errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(l.own, now):
		return fmt.Errorf("%s was removed while bellows ran, and with it, it seems, the state directory: end bellows with a signal, and start it again", l.path)
	case err != nil:
		return fmt.Errorf("look at the event log: %w", err)
	}
	return nil
}

func (l *eventLog) close() error { return l.file.Close() }
