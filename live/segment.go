package live

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/format/eventlog"
)

// A run of the daemon has as many event logs, its segments, as it has engines: when a log has become large, another
// engine learns from an inventory what the engine knows, and takes its place. So each segment is a whole event log,
// and is replayed alone.

// retryRoll is how long after a failure the next segment is tried again.
const retryRoll = time.Minute

// rolls says which segment of the event log is written, and when the next may begin. Only the loop uses it.
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

// allSteps are the steps of all engines of the run, of which the newest has taken some.
func (s *rolls) allSteps(newest int64) int64 { return s.steps + newest }

func (s *rolls) hasEnded() bool { return s.ended }

func (s *rolls) mayBegin(now timeline.Time) bool { return now >= s.next }

// tried notes that it was tried to begin the next segment.
func (s *rolls) tried(now timeline.Time) { s.next = now.Add(retryRoll) }

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

// isLarge reports whether the next segment should begin: half of what a segment may have, and more than twice its
// inventory, has been written; or the log has ended.
func (l *eventLog) isLarge() bool {
	size := l.good + int64(l.text.Len())
	return l.full() || l.most > 0 && size >= l.most/2 && size >= 2*l.head
}

// newEngine returns an engine for an empty cluster.
func (d *Driver) newEngine() *engine.Engine {
	return engine.New(d.config.Policy, func(s *book.Snapshot) {
		s.ContainersPerCore = cmp.Or(d.config.ContainersPerCore, cluster.ContainersPerCore)
		s.Lends = !d.config.Keeps
	})
}

// roll begins the next segment if the log is large, with another engine. It waits for a moment in which no order but
// starts is under way. If something fails, everything stays as it was.
func (d *Driver) roll() {
	now := d.now()
	if !d.inventory.over() || d.broken != nil || d.trouble != nil || d.short != nil || !d.rolls.mayBegin(now) ||
		!d.events.isLarge() || !d.engine.Snapshot().Quiet() {
		return
	}
	d.rolls.tried(now)
	if d.events.there() != nil || d.events.flush() != nil {
		return // Step 3 of the loop says so. A segment must not hide that the state directory was removed.
	}
	begun := time.Now()
	found := d.engine.TakeOver(now)
	next := d.newEngine()
	decisions, err := d.begin(next, now, found)
	var log *eventLog
	if err == nil {
		if log, err = d.newLog(next, now, found); err == nil {
			err = log.create(d.segmentPath(d.run.Load(), d.rolls.following()))
		}
	}
	if err != nil {
		d.newEngine() // drops what the policy has cached of the other engine
		if d.rolls.fail() {
			d.log.Warn("cannot begin the next segment of the event log, trying again every minute", "error", err)
		}
		return
	}
	if err := d.events.close(); err != nil {
		d.log.Warn("cannot close the event log", "error", err)
	}
	if d.rolls.begin(d.engine.Steps()) {
		d.log.Info("the event log goes on in another segment", "event_log", log.path)
	}
	d.engine, d.events = next, log
	d.logPath.Store(&log.path)
	for _, j := range d.jobs {
		if j.state != nil {
			j.state, _ = next.Snapshot().Job(j.ID)
		}
		d.touch(j.ID) // What is not in an inventory, such as estimates of ends, is shown no more.
	}
	log.decided(now, decisions)
	d.takeAll(now, decisions)
	d.log.Debug("segment begun", "event_log", log.path, "bytes", log.good, "took", time.Since(begun))
	d.dropSegments()
}

// newLog returns the log of an engine that begins with the events found at now. It has no file yet.
func (d *Driver) newLog(e *engine.Engine, now timeline.Time, found []cluster.Event) (*eventLog, error) {
	log, err := newEventLog(eventlog.NewHeader(d.config.Policy.Name(), d.config.Settings, e.Snapshot()), now, found)
	if err == nil {
		log.bound(d.keeping.rule().ofSegment())
	}
	return log, err
}

// begin tells an engine what was found.
func (d *Driver) begin(e *engine.Engine, now timeline.Time, found []cluster.Event) (decisions []cluster.Decision,
	err error) {
	d.watchdog.StepBegins(d.noteOf(&cluster.Event{Kind: cluster.Continued}))
	defer d.watchdog.StepEnds()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("engine: inventory at %v: panic: %v", now, p)
		}
	}()
	return e.Step(now, found...)
}

// dropUnfinished removes what a daemon has left that was killed while it began a segment.
func (d *Driver) dropUnfinished() error {
	for _, path := range d.logsNamed("*.jsonl.tmp") {
		if err := durable.RemoveAll(path); err != nil {
			return fmt.Errorf("remove an unfinished event log: %w", err)
		}
	}
	return nil
}

// dropSegments removes the oldest segments of this run while there are more bytes than it may have.
func (d *Driver) dropSegments() {
	paths, most := d.segments(d.run.Load()), d.keeping.rule().ofEvents()
	if most == 0 {
		return
	}
	left := most - d.events.most
	for _, path := range slices.Backward(paths[:max(0, len(paths)-1)]) {
		info, err := os.Stat(path)
		if err != nil {
			continue // It is gone.
		}
		if left -= info.Size(); left >= 0 {
			continue
		}
		if err := durable.RemoveAll(path); err != nil {
			d.log.Warn("cannot remove a segment of the event log", "error", err)
		}
	}
}

// segmentPath returns the path of a segment of a run, from 1.
func (d *Driver) segmentPath(run int64, segment int) string {
	name := fmt.Sprintf("%06d.jsonl", run)
	if segment > 1 {
		name = fmt.Sprintf("%06d.%06d.jsonl", run, segment)
	}
	return filepath.Join(d.config.Dir, "events", name)
}

// segments returns the paths of the segments of a run that are there, the oldest first.
func (d *Driver) segments(run int64) []string {
	return slices.Concat(d.logsNamed(fmt.Sprintf("%06d.jsonl", run)), d.logsNamed(fmt.Sprintf("%06d.??????.jsonl", run)))
}

// logsNamed returns the paths of the event logs whose names match a pattern, sorted.
func (d *Driver) logsNamed(pattern string) []string {
	dir := filepath.Join(d.config.Dir, "events")
	paths, _ := fs.Glob(os.DirFS(dir), pattern) // It fails only for a wrong pattern.
	slices.Sort(paths)
	for i := range paths {
		paths[i] = filepath.Join(dir, paths[i])
	}
	return paths
}

// sizeOf returns how many bytes the segments of a run have, and when the newest was last written; ok is false if
// there is none.
func sizeOf(segments []string) (size int64, written time.Time, ok bool) {
	for _, path := range segments {
		if info, err := os.Stat(path); err == nil {
			size, written, ok = size+info.Size(), info.ModTime(), true
		}
	}
	return size, written, ok
}
