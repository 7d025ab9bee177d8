package eventlog

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// Every field of the header has a row in docs/reference/recordings.md.
func TestEveryFieldIsDocumented(t *testing.T) {
	for _, name := range testfile.Undocumented(t, "../../docs/reference/recordings.md", "Event log",
		append(fault.Names(&Header{}), fault.Names(&logLine{})...)) {
		t.Errorf("no row for %s", name)
	}
}

// loggedRun is a header and a few records with every field set somewhere.
func loggedRun() (Header, []Record) {
	s := book.NewBook(nil).Snapshot()
	s.Heartbeats.Every, s.Heartbeats.Starts, s.LaunchDelay, s.Heartbeats.Launch = time.Second, 1, time.Millisecond,
		2*time.Second
	h := NewHeader("yarn-me", map[string]string{"yarn-me.timeline": "sum"}, s)
	stage := cluster.Stage{Name: "map", Tasks: 2, Ideal: resource.Of(1000, resource.GiB), MinMemory: resource.MiB,
		Duration: time.Minute, Elasticity: cluster.Elasticity{Kind: cluster.Points,
			Points: []cluster.ElasticityPoint{{Memory: resource.MiB, Slowdown: 1.1}}}}
	id := cluster.TaskID{Job: 7, Index: 1}
	grant := resource.Of(1000, resource.MiB)
	return h, []Record{
		{Now: 5, Events: []cluster.Event{
			{Kind: cluster.NodeJoined, NewNode: &cluster.Node{Name: "a", Capacity: resource.Of(2000, resource.GiB)}},
			{Kind: cluster.JobSubmitted, NewJob: &cluster.Job{ID: 7, Name: "logs", Class: cluster.Flex, Weight: 0.5,
				Stages: []cluster.Stage{stage}}},
			{Kind: cluster.TaskAdopted, Task: id, Grant: grant, Launched: 3},
			{Kind: cluster.Synced}}},
		{Now: 5, Decisions: []cluster.Decision{{ID: 1, Kind: cluster.Start, Task: id, Grant: grant, Duration: time.Minute,
			Reason: cluster.BecauseFitsUnderSized(1, 2, 3)}, {ID: 2, Kind: cluster.Wake, At: 9}}},
		{Now: 6, Events: []cluster.Event{}},
		{Now: 6, Events: []cluster.Event{{Kind: cluster.NodeMemory, Held: resource.GiB}}},
		{Now: 6, Events: []cluster.Event{{Kind: cluster.TaskPhase, Task: id, Phase: 1},
			{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByMemory}}},
		{Now: 7, Events: []cluster.Event{{Kind: cluster.TaskResumed, Task: id}}},
		{Now: 7, Events: []cluster.Event{{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.OutOfMemory,
			Detail: "line\nbreak"}}},
	}
}

func writeLog(t testing.TB, h Header, records []Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, h)
	for _, r := range records {
		if err == nil && r.Events != nil {
			err = w.Events(r.Now, r.Events...)
		} else if err == nil {
			err = w.Decisions(r.Now, r.Decisions)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func readLog(text []byte) (*Reader, []Record, error) {
	r, err := NewReader(bytes.NewReader(text), "x")
	if err != nil {
		return nil, nil, err
	}
	var records []Record
	for {
		record, err := r.Next()
		if err == io.EOF {
			return r, records, nil
		}
		if err != nil {
			return r, records, err
		}
		records = append(records, record)
	}
}

func TestEventLog(t *testing.T) {
	h, records := loggedRun()
	text := writeLog(t, h, records)
	testfile.Golden(t, "events.jsonl", text)
	r, got, err := readLog(text)
	if err != nil {
		t.Fatal(err)
	}
	h.Version = eventLogVersion
	if !reflect.DeepEqual(r.Header, h) || !reflect.DeepEqual(got, records) {
		t.Errorf("got  %+v %+v\nwant %+v %+v", r.Header, got, h, records)
	}
	s := book.NewBook(nil).Snapshot()
	r.Header.Configure(s)
	if s.Heartbeats.Every != time.Second || s.Heartbeats.Starts != 1 || s.LaunchDelay != time.Millisecond ||
		s.Heartbeats.Launch != 2*time.Second {
		t.Errorf("configured: %+v", s)
	}
}

// Wherever a crash truncates a log, all complete lines are read and the incomplete line is reported.
func TestEventLogTornAnywhere(t *testing.T) {
	h, records := loggedRun()
	text := writeLog(t, h, records)
	first := bytes.IndexByte(text, '\n') + 1
	for cut := range len(text) {
		r, got, err := readLog(text[:cut])
		if cut < first {
			if err == nil {
				t.Fatalf("cut at %d: no header, but no error", cut)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(got) != bytes.Count(text[:cut], []byte{'\n'})-1 {
			t.Fatalf("cut at %d: %d records", cut, len(got))
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("after the end: %v", err)
		}
	}
}

func TestEventLogRefuses(t *testing.T) {
	const header = `{"bellows_event_log":3,"policy":"fifo"}` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "x:1: must begin with a header, but holds no whole line"},
		{"no header", `{"now_ns":1,"events":[]}` + "\n",
			"x:1: must be an event log, but its first line is no header with bellows_event_log"},
		{"not JSON", "hello\n", "x:1: must be an event log, but its first line is no header with bellows_event_log"},
		{"older version", `{"bellows_event_log":2}` + "\n",
			"x:1: bellows_event_log 2: must be 3, the version of the format: read it with the program that wrote it"},
		{"later version", `{"bellows_event_log":4}` + "\n",
			"x:1: bellows_event_log 4: must be 3, the version of the format: read it with the program that wrote it"},
		{"header field", `{"bellows_event_log":3,"polizei":""}` + "\n",
			`x:1: header polizei: unknown field; must be one of bellows_event_log, policy, settings, heartbeat_ns, starts_per_heartbeat, containers_per_core, lends, launch_delay_ns, launch_heartbeat_ns`},
		{"broken line", header + "{\n", "x:2: record must be a JSON object, but the line ends within it"},
		{"blank line", header + "\n", "x:2: record must be a JSON object, but the line is empty"},
		{"two values", header + `{"now_ns":1,"events":[]} {}` + "\n",
			"x:2: record must be one value in a line, but more follows"},
		{"no time", header + `{"events":[]}` + "\n", "x:2: now_ns is missing: must be a time in nanoseconds"},
		{"neither", header + `{"now_ns":1}` + "\n", "x:2: record: must have either events or decisions"},
		{"event without a kind", header + `{"now_ns":1,"events":[{}]}` + "\n", "x:2: event: kind is missing"},
		{"decision without a kind", header + `{"now_ns":1,"decisions":[{}]}` + "\n", "x:2: decision: kind is missing"},
		{"both", header + `{"now_ns":1,"events":[],"decisions":[]}` + "\n",
			"x:2: record: must have either events or decisions"},
		{"backwards", header + `{"now_ns":2,"events":[]}` + "\n" + `{"now_ns":1,"events":[]}` + "\n",
			"x:3: now_ns 1: must not be before that of the line above, 2"},
		{"kind", header + `{"now_ns":2,"events":[{"kind":"party"}]}` + "\n", `x:2: record event kind "party": unknown`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readLog([]byte(c.text))
			if err == nil || err.Error() != c.want || !fault.Is(err) {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
		})
	}
}

type fullDisk struct{ room int }

var errFull = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.room -= len(p); d.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestEventLogOnFullDisk(t *testing.T) {
	w, err := NewWriter(&fullDisk{100}, Header{Policy: "fifo"})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err = w.Events(1, cluster.Event{Kind: cluster.Synced}); err != nil {
			break
		}
	}
	if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "event log: write ") {
		t.Error(err)
	}
}

func FuzzEventLog(f *testing.F) {
	h, records := loggedRun()
	f.Add(writeLog(f, h, records))
	f.Add([]byte(`{"bellows_event_log":3,"policy":"fifo","settings":{}}` + "\n" + `{"now_ns":-1,"decisions":[]}` + "\n{"))
	f.Add([]byte(`{"bellows_event_log":3,"policy":"fifo","settings":{}}` + "\n" + `{"now_ns":0,"events":[{}]}` + "\n"))
	f.Add([]byte(`{"bellows_event_log":3,"policy":"fifo","settings":{}}` + "\n" + `{"now_ns":0,"decisions":[{}]}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, records, err := readLog(text)
		if err != nil {
			if !fault.Is(err) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one sentence about the log: %v", err)
			}
			return
		}
		last := timeline.Earliest
		for _, record := range records {
			if record.Now < last || (record.Events == nil) == (record.Decisions == nil) {
				t.Fatalf("record %+v after %v", record, last)
			}
			last = record.Now
		}
		again := writeLog(t, r.Header, records)
		r2, _, err := readLog(again)
		if err != nil {
			t.Fatalf("%v in\n%s", err, again)
		}
		if once := writeLog(t, r2.Header, records); !bytes.Equal(once, again) {
			t.Fatalf("written twice:\n%s\n%s", again, once)
		}
	})
}

func TestDocumentedEventLog(t *testing.T) {
	for i, text := range testfile.Examples(t, "../../docs/reference/recordings.md", "jsonl") {
		if _, records, err := readLog([]byte(text)); err != nil || len(records) != 3 {
			t.Errorf("example %d: %d records, %v", i+1, len(records), err)
		}
	}
}
