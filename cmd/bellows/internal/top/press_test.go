package top

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// keys presses the keys of a text; \r is Enter and \x1b Escape.
func keys(s *state, text string) (quit bool) {
	for _, r := range text {
		k := terminal.Key(r)
		switch r {
		case '\r':
			k = terminal.KeyEnter
		case '\x1b':
			k = terminal.KeyEscape
		}
		quit = s.press(k)
		s.settle()
	}
	return quit
}

// ids returns the ids of the rows.
func ids(s *state) string {
	var all []string
	for i := range s.rows {
		all = append(all, s.rows[i].id)
	}
	return strings.Join(all, " ")
}

func TestMoves(t *testing.T) {
	s := cannedState(80, 24)
	for _, tt := range []struct {
		keys []terminal.Key
		want cluster.JobID
	}{
		{[]terminal.Key{'j', terminal.KeyDown}, 3}, {[]terminal.Key{'k'}, 2},
		{[]terminal.Key{terminal.KeyUp, terminal.KeyUp, 'k'}, 1},
		{[]terminal.Key{terminal.KeyEnd}, 12345}, {[]terminal.Key{'j', terminal.KeyPageDown}, 12345},
		{[]terminal.Key{'g'}, 1}, {[]terminal.Key{'G'}, 12345}, {[]terminal.Key{terminal.KeyHome}, 1},
		{[]terminal.Key{terminal.KeyPageDown}, 12345}, {[]terminal.Key{terminal.KeyPageUp}, 1},
	} {
		for _, k := range tt.keys {
			if s.press(k) {
				t.Errorf("key %d quits", k)
			}
			s.settle()
		}
		if s.selected.job != tt.want {
			t.Errorf("after %d, job %d is selected, want %d", tt.keys, s.selected.job, tt.want)
		}
	}
	empty := newState(choice{})
	empty.settle()
	keys(empty, "jkgGprKe[]uft\x1b")
	if wanted := empty.take(); len(wanted) > 0 || empty.mode != browsing {
		t.Errorf("without jobs, %v is asked for", wanted)
	}
	for _, k := range []terminal.Key{'q', terminal.KeyInterrupt} {
		if !s.press(k) {
			t.Errorf("key %d does not quit", k)
		}
	}
}

// What is selected stays selected when the order changes; when it ends, what comes next is.
func TestSelectionStays(t *testing.T) {
	s := cannedState(80, 24)
	keys(s, "jjs") // job 3, by user
	if s.selected.job != 3 || s.at == 2 {
		t.Errorf("job %d is selected, in row %d", s.selected.job, s.at)
	}
	keys(s, "SSt")
	if s.selected != (subject{3, cluster.TaskID{Job: 3}}) {
		t.Errorf("%v is selected", s.selected)
	}
	keys(s, "tsssssssssss")
	if jobTable.columns[s.by].name != "job" || s.selected.job != 3 {
		t.Errorf("by %s, job %d is selected", jobTable.columns[s.by].name, s.selected.job)
	}
	ended := s.jobs[3]
	ended.Ended = true
	s.see(&client.Seen{Update: &api.Update{Revision: 6, Jobs: []api.Job{ended}}})
	s.settle()
	if s.selected.job != 4 {
		t.Errorf("job %d is selected", s.selected.job)
	}
}

func TestOrderAndFilters(t *testing.T) {
	for _, tt := range []struct{ sort, keys, want string }{
		{"job", "", "1 2 3 4 5 6 7 8 9 10 11 12 13 12345"},
		{"-job", "", "12345 13 12 11 10 9 8 7 6 5 4 3 2 1"},
		{"job", "S", "12345 13 12 11 10 9 8 7 6 5 4 3 2 1"},
		{"used", "", "2 1 7 3 5 6 4 8 9 10 11 12 13 12345"},
		{"-used", "/ada", "8 9 11 12 13 12345 4 5 3 7 1"},
		{"state", "", "1 2 7 13 6 5 4 3 11 8 9 10 12345 12"},
		{"time", "", "13 7 6 5 4 3 2 1 8 9 10 11 12 12345"},
		{"done", "", "1 7 2 3 4 5 6 8 9 10 11 12 13 12345"},
		{"cpu", "", "7 6 5 4 3 2 1 8 9 10 11 12 13 12345"},
		{"job", "u", "1 3 4 5 7 8 9 11 12 13 12345"},
		{"job", "uu", "1 2 3 4 5 6 7 8 9 10 11 12 13 12345"},
		{"job", "ju", "2 10"},
		{"job", "f", "1 2 7 13"},
		{"job", "fff", "5"},
		{"job", "/HUNG\r", "12345"},
		{"job", "/le", "2 5 6 10 12"},
		{"job", "/hungq\x1b", "1 2 3 4 5 6 7 8 9 10 11 12 13 12345"},
		{"job", "uf/s\r\x1b", "1 2 3 4 5 6 7 8 9 10 11 12 13 12345"},
		{"job", "t", "1.0.3 1.0.4 2.0.0 3.0.0 4.0.0 5.0.0 6.0.0 7.0.0 8.0.0 12.0.0 13.0.0"},
		{"used", "t/bob", "2.0.0"},
	} {
		s := cannedState(80, 24)
		if err := s.check(tt.sort); err != nil {
			t.Fatal(err)
		}
		s.settle()
		keys(s, "g"+tt.keys)
		if got := ids(s); got != tt.want {
			t.Errorf("sorted by %s, after %q: %s, want %s", tt.sort, tt.keys, got, tt.want)
		}
	}
	s := cannedState(80, 24)
	seen := map[string]bool{}
	for range jobTable.columns { // s goes through all columns that rows can be sorted by, and f through all states
		keys(s, "s")
		seen[jobTable.columns[s.by].name] = true
	}
	for range 10 {
		keys(s, "f")
	}
	if len(seen) != 12 || len(s.rows) != 14 {
		t.Errorf("sorted by %v; %d rows", seen, len(s.rows))
	}
}

func TestTyping(t *testing.T) {
	s := cannedState(80, 24)
	keys(s, "/qKp日"+strings.Repeat("x", 100))
	if n := len([]rune(s.text)); n != longestText || len(s.take()) > 0 {
		t.Errorf("typed %q", s.text)
	}
	for range 100 {
		s.press(terminal.KeyBackspace)
	}
	s.press(terminal.KeyUp)
	if s.text != "" || s.mode != typing {
		t.Errorf("typed %q", s.text)
	}
}

// What the user wants done is asked of the daemon about what was selected then. Nothing is killed without a
// confirmation.
func TestRequests(t *testing.T) {
	task := cluster.TaskID{Job: 1, Index: 4}
	for _, tt := range []struct {
		keys string
		want []request
	}{
		{"jjp", []request{{pausing, subject{job: 3}}}},
		{"jjr", []request{{resuming, subject{job: 3}}}},
		{"tjpr", []request{{pausing, subject{1, task}}, {resuming, subject{1, task}}}},
		{"jjK", nil}, {"jjKn", nil}, {"jjK\r", nil}, {"jjK\x1b", nil}, {"jjKjy", nil},
		{"jjKy", []request{{killing, subject{job: 3}}}},
		{"jjKY", []request{{killing, subject{job: 3}}}},
		{"tjKy", []request{{killing, subject{job: 1}}}},
	} {
		s := cannedState(80, 24)
		if keys(s, tt.keys); !slices.Equal(s.take(), tt.want) {
			t.Errorf("after %q, want %v", tt.keys, tt.want)
		}
	}
	s := cannedState(80, 24)
	keys(s, "jjK")
	ended := s.jobs[3]
	ended.Ended = true
	s.see(&client.Seen{Update: &api.Update{Revision: 6, Jobs: []api.Job{ended}}})
	s.settle()
	if keys(s, "y"); !slices.Equal(s.take(), []request{{killing, subject{job: 3}}}) {
		t.Error("another job is killed than the one that was asked about")
	}
	s.hear(&answer{request: request{killing, subject{job: 3}}})
	if !strings.Contains(fits(t, s), "job 3: killed") {
		t.Error(fits(t, s))
	}
	s.hear(&answer{request: request{pausing, subject{job: 2}}, err: api.Errorf(api.Denied, "job 2: belongs to bob")})
	if !strings.Contains(fits(t, s), "job 2: belongs to bob") {
		t.Error(fits(t, s))
	}
	s.now = s.now.Add(messageTime)
	if strings.Contains(fits(t, s), "belongs to bob") {
		t.Error("the message stays")
	}
}

// The explanation is asked for when the pane is opened, when another job is selected, and when its job has changed,
// one at a time.
func TestExplanations(t *testing.T) {
	inUTC(t)
	s := cannedState(80, 30)
	expect := func(when string, want ...cluster.JobID) {
		t.Helper()
		var got []cluster.JobID
		for _, r := range s.take() {
			if r.what != explaining {
				t.Errorf("%s: asked to %v", when, r)
			}
			got = append(got, r.job)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: asked to explain %d, want %d", when, got, want)
		}
	}
	hear := func(id cluster.JobID, why string, err error) {
		s.hear(&answer{request{explaining, subject{job: id}}, api.Explanation{Job: s.jobs[id], Why: why}, err})
		s.settle()
	}
	changes := func(id cluster.JobID, revision int64) {
		s.see(&client.Seen{Update: &api.Update{Revision: revision, Jobs: []api.Job{s.jobs[id]}}})
		s.settle()
	}
	expect("closed")
	keys(s, "e")
	expect("opened", 1)
	keys(s, "jj")
	expect("while it waits for the first")
	hear(1, "The first.", nil)
	expect("after the first", 3)
	hear(3, "Paused by its owner.", nil)
	if text := fits(t, s); !strings.Contains(text, "explanation of job 3") ||
		!strings.Contains(text, "Paused by its owner.") {
		t.Error(text)
	}
	changes(3, 7)
	expect("changed just now")
	s.now = s.now.Add(explainAgain)
	s.settle()
	expect("a second later", 3)
	hear(3, "", api.Errorf(api.Denied, "job 3: belongs to bob"))
	if text := fits(t, s); !strings.Contains(text, "job 3: belongs to bob") {
		t.Error(text)
	}
	s.now = s.now.Add(time.Minute)
	changes(4, 8)
	expect("another job has changed")
	keys(s, "t")
	expect("tasks of the same job")
	keys(s, "e")
	changes(3, 9)
	expect("closed again")
}

// What containers do follows from two measurements.
func TestRates(t *testing.T) {
	s := cannedState(80, 24)
	id := cluster.ContainerID{Task: cluster.TaskID{Job: 2}, Run: 1}
	if got := s.use[id].cpu; got != 500 {
		t.Errorf("%d millicores, want 500", got)
	}
	again := *s.machine // the same measurement
	s.see(&client.Seen{Machine: &again})
	if got := s.use[id].cpu; got != 500 {
		t.Errorf("%d millicores, want 500", got)
	}
	next := *s.machine
	next.At = next.At.Add(2 * time.Second)
	next.Tasks = slices.Clone(next.Tasks)
	next.Tasks[2] = used(next.Tasks[2], gib, gib, 0, time.Hour+500*time.Millisecond+3*time.Second)
	next.Tasks[3].Usage = nil
	s.see(&client.Seen{Machine: &next})
	if got, none := s.use[id].cpu, s.use[cluster.ContainerID{Task: cluster.TaskID{Job: 3}, Run: 1}].cpu; got != 1500 ||
		none != unknown {
		t.Errorf("%d and %d millicores, want 1500, and none", got, none)
	}
}

// Without a connection what was known stays; afterwards the user sees how long that was, and whether the daemon is
// another.
func TestReconnects(t *testing.T) {
	s := cannedState(80, 24)
	for range 3 {
		s.see(&client.Seen{Lost: api.Errorf(api.Unavailable, "the daemon ends; connect again to the next")})
		s.now = s.now.Add(2 * time.Second)
		s.settle()
	}
	if text := fits(t, s); !strings.Contains(text, "no daemon for 6.0s; connecting again: the daemon ends") ||
		!strings.Contains(text, "sort") {
		t.Error(text)
	}
	m := *s.machine
	m.Status.PID = 77
	s.see(&client.Seen{Machine: &m})
	s.see(&client.Seen{Update: &api.Update{Revision: 1 << 33, Snapshot: true,
		Jobs: []api.Job{jobOf(9, "queued", "ada", cluster.StatusPending, 1, gib)}}})
	s.settle()
	text := fits(t, s)
	if !strings.Contains(text, "connected again after 6s, to a new daemon (process 77)") ||
		!strings.Contains(text, "healthy") || ids(s) != "9" || s.revisions[9] != 1<<33 || len(s.revisions) != 1 {
		t.Error(text, s.revisions)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for sort, state := range map[string]string{"bar": "", "-": "", "why": "", "": "", "job": "lazy"} {
		c := choice{state: state}
		if err := c.check(sort); err == nil || !strings.Contains(err.Error(), "must be one of") {
			t.Errorf("--sort %q --state %q: %v", sort, state, err)
		}
	}
	env := func(term, colour string) func(string) string {
		return func(name string) string { return map[string]string{"TERM": term, "NO_COLOR": colour}[name] }
	}
	for _, tt := range []struct {
		term, colour     string
		draws, colourful bool
	}{{"xterm-256color", "", true, true}, {"xterm", "1", true, false}, {"vt100", "", true, false},
		{"dumb", "", false, true}, {"", "", false, true}} {
		getenv := env(tt.term, tt.colour)
		if draws := drawable(getenv); draws != tt.draws || draws && colourful(getenv) != tt.colourful {
			t.Errorf("TERM=%s NO_COLOR=%s: draws %v, colours %v", tt.term, tt.colour, draws, colourful(getenv))
		}
	}
}

// Styles are colours only where there are colours.
func TestStyles(t *testing.T) {
	l := line{{"a", plain}, {"b", good}, {"c", bad}, {"d", reverse}}
	if got := l.ansi(true); got != "a\033[32mb\033[0m\033[1;31mc\033[0m\033[7md\033[0m" {
		t.Errorf("with colours %q", got)
	}
	if got := l.ansi(false); got != "ab\033[1mc\033[0m\033[7md\033[0m" {
		t.Errorf("without colours %q", got)
	}
	s := cannedState(80, 24)
	for _, l := range s.view() {
		if text := l.ansi(false); strings.Contains(text, "[3") || strings.Contains(text, ";3") {
			t.Errorf("a colour without colours: %q", text)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    []string
	}{
		{"short", 10, []string{"short"}},
		{"one two three", 9, []string{"one two", "  three"}},
		{"  one two three", 10, []string{"  one two", "    three"}},
		{"abcdefghij", 5, []string{"abcd", "  ef", "  gh", "  ij"}},
		{"日本語日本語", 3, []string{"日", " 本語日本語"}},
		{"any", 1, []string{"any"}},
	} {
		if got := wrap(tt.text, tt.columns); !slices.Equal(got, tt.want) {
			t.Errorf("%q in %d columns is %q, want %q", tt.text, tt.columns, got, tt.want)
		}
	}
}
