// Package segments keeps the event logs of a daemon's runs. A run has as many, its segments, as it has engines: when a
// log has become large, another engine learns from an inventory what the engine knows, and takes its place. So each
// segment is a whole event log, and is replayed alone.
package segments

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
)

// Log is the event log of one run: its newest segment, and which of the others there are. Only the loop of the engine
// uses it, but for Run, EventLog, Of and Remove.
type Log struct {
	*Segment // the newest
	dir      string
	log      *slog.Logger
	run      atomic.Int64           // of the store; 0 while the disk has been full since the start
	begun    atomic.Pointer[string] // path of the newest that has a file
	rolls
}

// New returns the log of a run that is not recorded yet, with its first segment, which has no file. Event logs are in
// a folder of the state directory.
func New(state string, log *slog.Logger, first *Segment) *Log {
	l := &Log{Segment: first, dir: filepath.Join(state, "events"), log: log}
	l.begun.Store(new(string))
	return l
}

// Run is the run in the store; 0 while it is not recorded.
func (l *Log) Run() int64 { return l.run.Load() }

// EventLog returns the path of the file in which steps are recorded now; empty if there is none yet.
func (l *Log) EventLog() string { return *l.begun.Load() }

// Begin makes the file of the first segment of a run, once what a daemon has left is removed that was killed while it
// began a segment. If that fails, it can be called again.
func (l *Log) Begin(run int64) error {
	l.run.Store(run)
	for _, path := range l.named("*.jsonl.tmp") {
		if err := durable.RemoveAll(path); err != nil {
			return fmt.Errorf("remove an unfinished event log: %w", err)
		}
	}
	if err := l.create(l.pathOf(run, l.first())); err != nil {
		return err
	}
	l.begun.Store(&l.path)
	return nil
}

// Create makes the file of the segment that is to follow the newest.
func (l *Log) Create(next *Segment) error { return next.create(l.pathOf(l.run.Load(), l.following())) }

// Continue goes on in another segment, whose file is made, after an engine that took some steps.
func (l *Log) Continue(next *Segment, steps int64) {
	if err := l.Close(); err != nil {
		l.log.Warn("cannot close the event log", "error", err)
	}
	if l.begin(steps) {
		l.log.Info("the event log goes on in another segment", "event_log", next.path)
	}
	l.Segment = next
	l.begun.Store(&next.path)
}

// Stays says that the next segment could not be begun.
func (l *Log) Stays(why error) {
	if l.fail() {
		l.log.Warn("cannot begin the next segment of the event log, trying again every minute", "error", why)
	}
}

// Record collects the events of a step, unless the newest segment has reached its bound, which the log says once.
func (l *Log) Record(now timeline.Time, e cluster.Event) (taken bool) {
	taken = l.Segment.Record(now, e)
	if !taken && l.end() {
		l.log.Warn("the event log has reached its bound: it goes on in another segment once no order is under way",
			"event_log", l.EventLog(), "bytes", l.most)
	}
	return taken
}

// Bound sets the largest size of the newest segment: see Segment.Bound. One that has ended at its bound stays as it
// is: steps are missing after its end.
func (l *Log) Bound(most int64) {
	if !l.ended {
		l.Segment.Bound(most)
	}
}

// Due reports whether the next segment should begin.
func (l *Log) Due(now timeline.Time) bool { return l.mayBegin(now) && l.isLarge() }

// DropOldest removes the oldest segments of this run while they and the newest may have more bytes than most.
func (l *Log) DropOldest(most int64) {
	paths := l.Of(l.run.Load())
	left := most - l.most
	for _, path := range slices.Backward(paths[:max(0, len(paths)-1)]) {
		info, err := os.Stat(path)
		if err != nil {
			continue // It is gone.
		}
		if left -= info.Size(); left >= 0 {
			continue
		}
		if err := durable.RemoveAll(path); err != nil {
			l.log.Warn("cannot remove a segment of the event log", "error", err)
		}
	}
}

// Remove removes the event logs of another run.
func (l *Log) Remove(run int64) error {
	for _, path := range l.Of(run) {
		if err := durable.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the event log of run %d: %w", run, err)
		}
	}
	return nil
}

// pathOf returns the path of a segment of a run, from 1.
func (l *Log) pathOf(run int64, segment int) string {
	name := fmt.Sprintf("%06d.jsonl", run)
	if segment > 1 {
		name = fmt.Sprintf("%06d.%06d.jsonl", run, segment)
	}
	return filepath.Join(l.dir, name)
}

// Of returns the paths of the segments of a run that are there, the oldest first.
func (l *Log) Of(run int64) []string {
	return slices.Concat(l.named(fmt.Sprintf("%06d.jsonl", run)), l.named(fmt.Sprintf("%06d.??????.jsonl", run)))
}

// named returns the paths of the event logs whose names match a pattern, sorted.
func (l *Log) named(pattern string) []string {
	paths, _ := fs.Glob(os.DirFS(l.dir), pattern) // It fails only for a wrong pattern.
	slices.Sort(paths)
	for i := range paths {
		paths[i] = filepath.Join(l.dir, paths[i])
	}
	return paths
}

// Size returns how many bytes segments have, and when the newest was last written; ok is false if none is there.
func Size(segments []string) (size int64, written time.Time, ok bool) {
	for _, path := range segments {
		if info, err := os.Stat(path); err == nil {
			size, written, ok = size+info.Size(), info.ModTime(), true
		}
	}
	return size, written, ok
}

// Retry is how long after a failure the next segment is tried again.
const Retry = time.Minute

// rolls says which segment of the event log is written, and when the next may begin.
type rolls struct {
	newest int           // from 1
	next   timeline.Time // the next one does not begin earlier
	ended  bool          // the log has ended, and the next segment has not begun
	fails  bool          // the next one could not be begun when that was last tried
	steps  int64         // of engines of earlier segments
}

// first begins with the first segment, and returns its number.
func (s *rolls) first() int {
	s.newest = 1
	return s.newest
}

// following is the number of the segment after the newest.
func (s *rolls) following() int { return s.newest + 1 }

// Steps are the steps of all engines of the run, of which the newest has taken some.
func (s *rolls) Steps(newest int64) int64 { return s.steps + newest }

// Number is that of the newest segment, from 1.
func (s *rolls) Number() int { return s.newest }

// HasEnded reports whether the newest segment has reached its bound.
func (s *rolls) HasEnded() bool { return s.ended }

func (s *rolls) mayBegin(now timeline.Time) bool { return now >= s.next }

// Tried notes that it was tried to begin the next segment.
func (s *rolls) Tried(now timeline.Time) { s.next = now.Add(Retry) }

// end notes that the log has ended, and reports whether that is news.
func (s *rolls) end() bool {
	was := s.ended
	s.ended = true
	return !was
}

// fail notes that the next segment could not be begun, and reports whether that is news.
func (s *rolls) fail() bool {
	was := s.fails
	s.fails = true
	return !was
}

// begin notes that another segment has begun, after an engine that took some steps, and reports whether steps or
// attempts were lost before.
func (s *rolls) begin(steps int64) (late bool) {
	late = s.ended || s.fails
	*s = rolls{newest: s.newest + 1, steps: s.steps + steps}
	return late
}
