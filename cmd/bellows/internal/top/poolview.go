package top

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// executorTable has the columns of executors.
var executorTable = table[api.PoolExecutor]{
	columns: []column[api.PoolExecutor]{
		{name: "executor", head: "EXECUTOR", width: 8, right: true, cell: func(e *api.PoolExecutor, _ time.Time) string {
			return strconv.Itoa(e.Executor)
		}, compare: func(a, b *api.PoolExecutor) int { return cmp.Compare(a.Executor, b.Executor) }},
		{name: "state", head: "STATE", width: 10, cell: func(e *api.PoolExecutor, _ time.Time) string {
			return string(e.State)
		}, look: executorLook, compare: func(a, b *api.PoolExecutor) int {
			return cmp.Compare(slices.Index(executorStates, a.State), slices.Index(executorStates, b.State))
		}},
		{name: "app", head: "APP", width: 4, most: 12, right: true, cell: appCell, compare: func(a, b *api.PoolExecutor) int {
			return cmp.Compare(a.Application, b.Application)
		}},
		{name: "task", head: "TASK", width: 6, most: 16, right: true, cell: taskCell},
		{name: "for", head: "FOR", width: 6, right: true, largest: true, cell: forCell,
			compare: func(a, b *api.PoolExecutor) int {
				return cmp.Compare(since(a), since(b))
			}},
		{name: "done", head: "DONE", width: 5, most: 12, right: true, largest: true,
			cell: func(e *api.PoolExecutor, _ time.Time) string {
				return strconv.FormatInt(e.Tasks, 10)
			}, compare: func(a, b *api.PoolExecutor) int { return cmp.Compare(a.Tasks, b.Tasks) }},
		{name: "memory", head: "MEMORY", width: 8, right: true, largest: true,
			cell: func(e *api.PoolExecutor, _ time.Time) string {
				return terminal.MemoryOrDash(e.Memory)
			}, compare: func(a, b *api.PoolExecutor) int { return cmp.Compare(a.Memory, b.Memory) }},
		{name: "job", head: "JOB", width: 5, most: 12, right: true, cell: jobCell, compare: func(a, b *api.PoolExecutor) int {
			return cmp.Compare(a.Job, b.Job)
		}},
		{name: "why", head: "WHY", width: 10, most: math.MaxInt, cell: func(e *api.PoolExecutor, _ time.Time) string {
			return terminal.OneLine(e.Why)
		}, look: func(*api.PoolExecutor) style { return faint }},
	},
	narrow: []string{"executor", "state", "app", "for", "done", "memory", "job", "task", "why"},
}

func appCell(e *api.PoolExecutor, _ time.Time) string { return orDash(e.Application) }

func jobCell(e *api.PoolExecutor, _ time.Time) string { return orDash(int64(e.Job)) }

// orDash prints a number; "-" for 0.
func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func taskCell(e *api.PoolExecutor, _ time.Time) string {
	if e.Running == 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%d", e.Stage, e.Task)
}

func forCell(e *api.PoolExecutor, _ time.Time) string {
	if d := since(e); d > 0 {
		return terminal.Age(d)
	}
	return "-"
}

// since is for how long an executor has done what it does.
func since(e *api.PoolExecutor) time.Duration { return cmp.Or(e.Gone, e.Running, e.Idle) }

func executorLook(e *api.PoolExecutor) style {
	switch e.State {
	case api.ExecutorAttached:
		return good
	case api.ExecutorExpired, api.ExecutorLost:
		return bad
	case api.ExecutorDraining, api.ExecutorQueued, api.ExecutorStarting:
		return warning
	}
	return plain
}

// applicationTable has the columns of applications.
var applicationTable = table[api.PoolApplication]{
	columns: []column[api.PoolApplication]{
		{name: "app", head: "APP", width: 3, most: 12, right: true, cell: func(a *api.PoolApplication, _ time.Time) string {
			return strconv.FormatInt(a.Application, 10)
		}},
		{name: "name", head: "NAME", width: 8, most: 24, cell: func(a *api.PoolApplication, _ time.Time) string {
			return cluster.Printable(a.Name)
		}},
		{name: "state", head: "STATE", width: 9, cell: func(a *api.PoolApplication, _ time.Time) string { return a.State }},
		{name: "held", head: "HELD", width: 4, right: true, cell: func(a *api.PoolApplication, _ time.Time) string {
			return strconv.Itoa(a.Executors)
		}},
		{name: "waiting", head: "WAITING", width: 7, right: true, cell: func(a *api.PoolApplication, _ time.Time) string {
			return strconv.Itoa(a.Waiting)
		}},
		{name: "running", head: "RUNNING", width: 7, right: true, cell: func(a *api.PoolApplication, _ time.Time) string {
			return strconv.Itoa(a.Running)
		}},
		{name: "done", head: "DONE", width: 4, most: 12, right: true, cell: func(a *api.PoolApplication, _ time.Time) string {
			return strconv.FormatInt(a.Ended, 10)
		}},
		{name: "results", head: "RESULTS", width: 7, right: true, cell: func(a *api.PoolApplication, _ time.Time) string {
			return strconv.Itoa(a.Results)
		}},
		{name: "why", head: "WHY", width: 10, most: math.MaxInt, cell: func(a *api.PoolApplication, _ time.Time) string {
			return terminal.OneLine(a.Why)
		}, look: func(*api.PoolApplication) style { return faint }},
	},
	narrow: []string{"app", "name", "state", "held", "waiting", "running", "done", "results", "why"},
}

// unsorted is the order of a table that keeps the order of its rows.
var unsorted = order{by: -1}

// running returns the applications that have not ended.
func running(all []api.PoolApplication) []api.PoolApplication {
	return slices.DeleteFunc(slices.Clone(all), func(a api.PoolApplication) bool {
		return a.State != "open" && a.State != "closed"
	})
}

// view returns the lines of the screen: as many as it has, none wider than it is.
func (s *poolState) view() []line {
	if s.pool == nil {
		return exactly(s.lines, nil)
	}
	return s.layout(s.head(), s.foot(), s.body)
}

// head returns the lines about the pool, the most important first.
func (s *poolState) head() []line {
	d := s.pool
	name := span{fmt.Sprintf("pool %s of %s", d.Name, d.User), bold}
	if s.lost != nil {
		return []line{s.away(name), nil}
	}
	first := line{name}
	for _, text := range []string{terminal.Count(d.Executors, "executor"), fmt.Sprintf("%d busy", d.Busy),
		fmt.Sprintf("%d idle", d.Idle), fmt.Sprintf("%d starting", d.Starting), fmt.Sprintf("%d wanted", d.Wanted),
		fmt.Sprintf("%d to %d", d.Spec.Min, d.Spec.Max), "policy " + d.Spec.Policy} {
		first = first.more(s.columns, text)
	}
	lines := []line{first}
	if text := PoolTrouble(d); text != "" {
		lines = append(lines, words(text, bad))
	}
	const most = 3 // lines of a reason
	why := wrap(d.Why, s.columns)
	for _, l := range why[:min(len(why), most)] {
		lines = append(lines, words(l, plain))
	}
	return append(lines, words(PoolRuns(d), faint), nil)
}

// PoolTrouble says why a pool decides nothing; empty if it does.
func PoolTrouble(d *api.PoolDetail) string {
	switch {
	case d.Broken != "":
		return "broken: " + d.Broken
	case !d.Synced:
		return "it waits for executors of an earlier daemon"
	}
	return ""
}

// PoolRuns says what has happened since the daemon began.
func PoolRuns(d *api.PoolDetail) string {
	c := &d.Counters
	return fmt.Sprintf("%d runs since the daemon began, %d after one of another application; %d lost", c.Started,
		c.Switched, c.Lost)
}

// body returns what is between head and foot, in that many lines.
func (s *poolState) body(lines int) []line {
	switch {
	case lines <= 0:
		return nil
	case s.mode == helping:
		return exactly(lines, s.helpLines(poolKeys))
	case s.pane != nil:
		return exactly(lines, s.pane.view("explanation", s.columns, lines))
	}
	const least = 8 // lines, for both tables
	var apps []line
	if all := running(s.pool.Enrolled); len(all) > 0 && lines >= least {
		most := lines/2 - 2
		apps = applicationTable.view(&s.frame, all, -1, min(most, len(all)+1), unsorted, "")
		if more := len(all) + 1 - most; more > 0 {
			apps[most-1] = words(fmt.Sprintf("and %s more", terminal.Count(more+1, "application")), faint)
		}
		apps = append(apps, nil)
	}
	if len(s.rows) == 0 {
		return exactly(lines, append(apps, words("no executors", faint)))
	}
	return exactly(lines, append(apps, executorTable.view(&s.frame, s.rows, s.at, lines-len(apps), s.order, "")...))
}

// foot returns the last lines: what the user is asked, else what happened, else why the selected executor is in its
// state; and how to get help.
func (s *poolState) foot() []line {
	switch s.mode {
	case confirming:
		return []line{words(fmt.Sprintf("kill job %d, executor %d of this pool? y kills it, any other key does not",
			s.doomed.Job, s.doomed.Executor), bad)}
	case helping:
		return []line{words("any key goes back", faint)}
	}
	shown := words("h help  q quit", faint)
	if len(s.rows) > 0 {
		shown = shown.more(s.columns, fmt.Sprintf("%d of %s", s.at+1, terminal.Count(len(s.rows), "executor")))
	}
	shown = shown.more(s.columns, "by "+executorTable.columns[s.by].name)
	return []line{s.news(), shown}
}

// news says what happened or, after a while, why the selected executor is in its state.
func (s *poolState) news() line {
	if s.talks() {
		return words(s.message.text, s.message.style)
	}
	e := s.current()
	if e == nil {
		return nil
	}
	text := fmt.Sprintf("executor %d is %s", e.Executor, e.State)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return words(text, plain)
}

// WritePoolTables prints the applications and the executors of a pool as text.
func WritePoolTables(w io.Writer, d *api.PoolDetail) error {
	if len(d.Enrolled) > 0 {
		fmt.Fprintln(w)
		if err := applicationTable.text(d.Enrolled, "name").Write(w); err != nil {
			return err
		}
	}
	if len(d.Members) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return executorTable.text(d.Members, "").Write(w)
}
