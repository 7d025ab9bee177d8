// Package eventlog reads and writes event logs: the events that an engine received and the decisions that it took, step
// by step, so that the same engine can reproduce them.
package eventlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
)

// eventLogVersion is the version of the format that is read and written; programs from before 0.1.0 wrote versions 1
// and 2.
const eventLogVersion = 3

// Header is the first line of an event log: the complete configuration of an engine, so that the same events give the
// same decisions.
type Header struct {
	Version  int               `json:"bellows_event_log"` // set by the writer
	Policy   string            `json:"policy"`
	Settings map[string]string `json:"settings,omitempty"` // settings of the policy, "POLICY.NAME" to value

	// The configuration of the engine's Snapshot.
	Heartbeat          time.Duration `json:"heartbeat_ns,omitempty"`
	StartsPerHeartbeat int           `json:"starts_per_heartbeat,omitempty"`
	ContainersPerCore  int           `json:"containers_per_core,omitempty"`
	Lends              bool          `json:"lends,omitempty"`
	LaunchDelay        time.Duration `json:"launch_delay_ns,omitempty"`
	LaunchHeartbeat    time.Duration `json:"launch_heartbeat_ns,omitempty"`
}

// NewHeader returns the header for an engine with the given policy, settings and snapshot.
func NewHeader(policy string, settings map[string]string, s *book.Snapshot) Header {
	return Header{Policy: policy, Settings: settings, Heartbeat: s.Heartbeats.Every,
		StartsPerHeartbeat: s.Heartbeats.Starts, ContainersPerCore: s.ContainersPerCore, Lends: s.Lends,
		LaunchDelay: s.LaunchDelay, LaunchHeartbeat: s.Heartbeats.Launch}
}

// Configure sets in s the configuration in the header.
func (h *Header) Configure(s *book.Snapshot) {
	s.Heartbeats.Every, s.Heartbeats.Starts = h.Heartbeat, h.StartsPerHeartbeat
	s.ContainersPerCore, s.Lends = h.ContainersPerCore, h.Lends
	s.LaunchDelay, s.Heartbeats.Launch = h.LaunchDelay, h.LaunchHeartbeat
}

// Record is one line of an event log after the first: the events of one step of the engine, or the decisions of the
// step before it. Exactly one of the two is not nil; a step can have no events.
type Record struct {
	Now       timeline.Time
	Events    []cluster.Event
	Decisions []cluster.Decision
}

// logLine is Record in a file. Pointers distinguish an empty list from a missing one.
type logLine struct {
	Now       *timeline.Time      `json:"now_ns"`
	Events    *[]cluster.Event    `json:"events,omitempty"`
	Decisions *[]cluster.Decision `json:"decisions,omitempty"`
}

// Writer writes an event log, JSON lines, one Write per line. A log belongs to one engine: another engine needs another
// log.
type Writer struct{ out io.Writer }

// NewWriter writes the header.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	h.Version = eventLogVersion
	w := &Writer{out}
	return w, w.line(&h)
}

// Events records the events of one step, before the engine handles them.
func (w *Writer) Events(now timeline.Time, events ...cluster.Event) error {
	if events == nil {
		events = []cluster.Event{}
	}
	return w.line(&logLine{Now: &now, Events: &events})
}

// Decisions records the decisions of the step, before they are carried out. A step without decisions is not recorded.
func (w *Writer) Decisions(now timeline.Time, decisions []cluster.Decision) error {
	if len(decisions) == 0 {
		return nil
	}
	return w.line(&logLine{Now: &now, Decisions: &decisions})
}

func (w *Writer) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("event log: encode: %w", err)
	}
	if _, err := w.out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("event log: write %d bytes: %w", len(text)+1, err)
	}
	return nil
}

// Reader reads an event log. An incomplete last line, as a crash leaves it, is not an error: the log ends before it.
type Reader struct {
	Header Header

	file string
	in   *bufio.Reader
	line int
	last timeline.Time
	err  error
}

// NewReader reads the header. name is used in errors, which are a *fault.Fault if the content of the log is wrong. A
// log with an incomplete first line has no header and is a fault.
func NewReader(in io.Reader, name string) (*Reader, error) {
	r := &Reader{file: name, in: bufio.NewReader(in), last: timeline.Earliest}
	text, err := r.next()
	if err == io.EOF {
		return nil, r.fault("must begin with a header, but holds no whole line")
	}
	if err != nil {
		return nil, err
	}
	// The version decides the meaning of everything else, so it is read first.
	var version struct {
		Version *int `json:"bellows_event_log"`
	}
	if err := json.Unmarshal(text, &version); err != nil || version.Version == nil {
		return nil, r.fault("must be an event log, but its first line is no header with bellows_event_log")
	}
	if *version.Version != eventLogVersion {
		return nil, r.fault(
			"bellows_event_log %d: must be %d, the version of the format: read it with the program that wrote it",
			*version.Version, eventLogVersion)
	}
	if err := fault.DecodeLine(text, &r.Header); err != nil {
		return nil, r.fault("header %s", fault.OfJSON(err))
	}
	return r, nil
}

// Next returns the next record; io.EOF if there is none.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	record, err := r.record()
	r.err = err
	return record, err
}

func (r *Reader) record() (Record, error) {
	text, err := r.next()
	if err != nil {
		return Record{}, err
	}
	var l logLine
	if err := fault.DecodeLine(text, &l); err != nil {
		return Record{}, r.fault("record %s", fault.OfJSON(err))
	}
	switch {
	case l.Now == nil:
		return Record{}, r.fault("now_ns is missing: must be a time in nanoseconds")
	case *l.Now < r.last:
		return Record{}, r.fault("now_ns %d: must not be before that of the line above, %d", int64(*l.Now), int64(r.last))
	case (l.Events == nil) == (l.Decisions == nil):
		return Record{}, r.fault("record: must have either events or decisions")
	case l.Events != nil && slices.ContainsFunc(*l.Events, func(e cluster.Event) bool { return e.Kind == 0 }):
		return Record{}, r.fault("event: kind is missing")
	case l.Decisions != nil && slices.ContainsFunc(*l.Decisions, func(d cluster.Decision) bool { return d.Kind == 0 }):
		return Record{}, r.fault("decision: kind is missing")
	}
	r.last = *l.Now
	record := Record{Now: *l.Now}
	if l.Events != nil {
		record.Events = *l.Events
	} else {
		record.Decisions = *l.Decisions
	}
	return record, nil
}

// next returns the next complete line.
func (r *Reader) next() ([]byte, error) {
	text, err := r.in.ReadBytes('\n')
	r.line++
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("read event log %s: %w", r.file, err)
	}
	return text, nil
}

func (r *Reader) fault(format string, operands ...any) error {
	return fault.At(r.file, r.line, format, operands...)
}
