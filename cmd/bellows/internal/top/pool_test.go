package top

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
)

// cannedPool is a pool with executors in several states, and names that are meant to harm.
func cannedPool() *api.PoolDetail {
	d := &api.PoolDetail{Synced: true, PoolSummary: api.PoolSummary{PoolRef: api.PoolRef{UID: 1000, User: "ada",
		Name: "sums"},
		Executors: 5, Starting: 1, Busy: 2, Idle: 2, Wanted: 9, Spec: api.PoolSpec{Min: 1, Max: 12, Idle: time.Minute,
			Policy: "mira"}, Why: "9 tasks run or could run; other owners wait, and this is the fair share of its owner"},
		Counters: api.PoolCounters{Started: 1234, Switched: 56, Lost: 1},
		Enrolled: []api.PoolApplication{
			{Application: 1, Name: "nightly", State: "closed", Executors: 2, Waiting: 5, Running: 1, Ended: 40, Results: 3,
				Why: "all executors run tasks of other applications"},
			{Application: 2, Name: "slow\x1b[2J\x1b]0;owned\a\r\ndown", State: "open", Executors: 1, Running: 1},
			{Application: 3, Name: "over", State: "ended", Ended: 7}}}
	for n, e := range []api.PoolMember{
		{State: api.ExecutorAttached, Application: 1, Stage: 1, Task: 23456, Running: 90 * time.Second, Tasks: 7,
			Memory: 70 * mib},
		{State: api.ExecutorAssigned, Application: 2, Idle: 150 * time.Millisecond, Tasks: 3, Memory: 90 * mib},
		{State: api.ExecutorParked, Idle: 42 * time.Second, Tasks: 9, Memory: 80 * mib},
		{State: api.ExecutorDraining, Application: 2, Running: time.Second, Why: "other owners wait for room"},
		{State: api.ExecutorQueued, Why: "node here has 100MiB free, \x1b[31mand 64MiB more are needed"},
		{State: api.ExecutorLost, Gone: 8 * time.Second, Why: "its process ended"},
	} {
		e.Executor = n + 1
		one := api.PoolExecutor{PoolMember: e, Job: cluster.JobID(100 + n)}
		if e.State == api.ExecutorLost {
			one.Job = 0
		}
		d.Members = append(d.Members, one)
	}
	return d
}

func cannedPoolState(columns, lines int) *poolState {
	s := &poolState{explain: func(d *api.PoolDetail) []string {
		return []string{fmt.Sprintf("pool %s has %d executors.", d.Name, d.Executors), "more: not beyond --max 12"}
	}}
	s.columns, s.lines, s.now = columns, lines, noon
	s.see(cannedPool())
	s.settle()
	return s
}

// fits returns a screen as text, and checks that it has as many lines as it should, that they fit, and that no
// terminal takes a part of them for a command.
func fits(t interface {
	Helper()
	Errorf(string, ...any)
}, s screen) string {
	t.Helper()
	f := s.base()
	var text strings.Builder
	lines := s.view()
	if f.lines > 0 && len(lines) != f.lines {
		t.Errorf("%d lines on a screen of %d", len(lines), f.lines)
	}
	for _, l := range lines {
		if n := terminal.Cells(l.text()); n > f.columns ||
			strings.ContainsFunc(l.text(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%d columns on a screen of %d: %q", n, f.columns, l.text())
		}
		text.WriteString(strings.TrimRight(l.text(), " ") + "\n")
	}
	return text.String()
}

// pressAll presses the keys of a text.
func pressAll(s *poolState, text string) (quit bool) {
	for _, r := range text {
		quit = s.press(terminal.Key(r))
		s.settle()
	}
	return quit
}

// Screens of a pool.
func TestPoolScreens(t *testing.T) {
	for name, change := range map[string]func(*poolState){
		"80x24":   func(*poolState) {},
		"40x10":   func(s *poolState) { s.columns, s.lines = 40, 10 },
		"memory":  func(s *poolState) { pressAll(s, "sssss") },
		"explain": func(s *poolState) { pressAll(s, "e") },
		"help":    func(s *poolState) { pressAll(s, "h") },
		"kill":    func(s *poolState) { pressAll(s, "jK") },
		"lost": func(s *poolState) {
			s.lose(api.Errorf(api.Unavailable, "no daemon listens"))
			s.now = s.now.Add(7 * time.Second)
		},
	} {
		s := cannedPoolState(80, 24)
		change(s)
		s.settle()
		testfile.Golden(t, "pool-"+name+".txt", []byte(fits(t, s)))
	}
}

// Keys order something about the job of the selected executor, which stays selected when the order changes.
func TestPoolKeys(t *testing.T) {
	s := cannedPoolState(80, 24)
	for _, tt := range []struct {
		keys string
		want []request
	}{
		{"GKp", nil}, // The lost one has no job.
		{"gp", []request{{pausing, subject{job: 100}}}},
		{"jr", []request{{resuming, subject{job: 101}}}},
		{"sSr", []request{{resuming, subject{job: 101}}}},
		{"Ky", []request{{killing, subject{job: 101}}}},
		{"Kn", nil},
		{"ss", nil},
	} {
		if pressAll(s, tt.keys); fmt.Sprint(s.take()) != fmt.Sprint(tt.want) {
			t.Errorf("after %s, something else is asked for than %v", tt.keys, tt.want)
		}
	}
	if !pressAll(s, "q") || !s.press(terminal.KeyInterrupt) {
		t.Error("it goes on")
	}
}

// Whatever is pressed and however small the screen is, its lines fit, and nothing in them is a command to the terminal.
func TestPoolScreensFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cannedPoolState(80, 24)
		t.Repeat(map[string]func(*rapid.T){
			"resize": func(t *rapid.T) {
				s.columns, s.lines = rapid.IntRange(1, 130).Draw(t, "columns"), rapid.IntRange(1, 40).Draw(t, "lines")
			},
			"press": func(t *rapid.T) {
				s.press(rapid.OneOf(rapid.SampledFrom([]terminal.Key{terminal.KeyUp, terminal.KeyPageDown, terminal.KeyEnd,
					terminal.KeyEscape, terminal.KeyEnter}), rapid.Map(rapid.SampledFrom([]rune("jk e[]prKysSh?日")),
					func(r rune) terminal.Key { return terminal.Key(r) })).Draw(t, "key"))
			},
			"see": func(t *rapid.T) {
				d := cannedPool()
				d.Members = d.Members[:rapid.IntRange(0, len(d.Members)).Draw(t, "executors")]
				for i := range rapid.IntRange(0, 30).Draw(t, "more applications") {
					d.Enrolled = append(d.Enrolled,
						api.PoolApplication{Application: int64(i) << 40, Name: rapid.String().Draw(t, "name"), State: "open"})
				}
				d.Why, d.Broken = rapid.String().Draw(t, "why"), rapid.String().Draw(t, "broken")
				s.see(d)
			},
			"lose": func(t *rapid.T) { s.lose(api.Errorf(api.Unavailable, "%s", rapid.String().Draw(t, "why"))) },
			"answer": func(t *rapid.T) {
				for _, r := range s.take() {
					s.hear(&answer{request: r})
				}
			},
			"": func(t *rapid.T) {
				s.settle()
				fits(t, s)
				if e := s.current(); (e == nil) != (len(s.rows) == 0) || e != nil && e.Executor != s.selected {
					t.Errorf("row %d of %d is selected: %v", s.at, len(s.rows), s.selected)
				}
			},
		})
	})
}

// While the daemon is away the screen says so; it ends when the pool is gone.
func TestPoolIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cannedPoolState(80, 24)
		asked, last := 0, error(nil)
		var screens []string
		for tell, err := range s.watching(t.Context(), func(context.Context) (api.PoolDetail, error) {
			switch asked++; asked {
			case 1, 3:
				return *cannedPool(), nil
			case 2:
				return api.PoolDetail{}, api.Errorf(api.Unavailable, "no daemon listens")
			}
			return api.PoolDetail{}, api.Errorf(api.NotFound, "no pool")
		}) {
			if last = err; err == nil {
				tell()
				s.now = time.Now()
				s.settle()
				screens = append(screens, fits(t, s))
			}
		}
		if api.KindOf(last) != api.NotFound || len(screens) != 3 || !strings.Contains(screens[1], "no daemon for") ||
			!strings.Contains(screens[2], "connected again after") {
			t.Errorf("%v after %q", last, screens)
		}
	})
}
