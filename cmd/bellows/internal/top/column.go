package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/internal/terminal"
)

// column is a column of the table.
type column struct {
	name    string // for --sort
	head    string
	width   int  // at least
	right   bool // aligned
	largest bool // the largest comes first
	cell    func(r *row, now time.Time) string
	compare func(a, b *row) int // nil: rows are not sorted by it
}

const barWidth = 6

// columns are those of the table from left to right.
var columns = []column{
	{"job", "JOB", 5, true, false, func(r *row, _ time.Time) string { return r.id }, func(a, b *row) int { return cmp.Compare(a.job, b.job) }},
	{"user", "USER", 8, false, false, func(r *row, _ time.Time) string { return r.user }, func(a, b *row) int { return cmp.Compare(a.user, b.user) }},
	{"name", "NAME", 8, false, false, func(r *row, _ time.Time) string { return r.name }, func(a, b *row) int { return cmp.Compare(a.name, b.name) }},
	{"state", "STATE", 9, false, false, func(r *row, _ time.Time) string { return r.state }, func(a, b *row) int { return cmp.Compare(rankOf(a.state), rankOf(b.state)) }},
	{"granted", "GRANT", 5, true, true, func(r *row, _ time.Time) string { return size(orUnknown(r.granted)) }, func(a, b *row) int { return cmp.Compare(a.granted, b.granted) }},
	{"bar", "", barWidth, false, false, func(r *row, _ time.Time) string { return bar(r.used, r.peak, r.granted, barWidth) }, nil},
	{"used", "USED", 5, true, true, func(r *row, _ time.Time) string { return size(r.used) }, func(a, b *row) int { return cmp.Compare(a.used, b.used) }},
	{"peak", "PEAK", 5, true, true, func(r *row, _ time.Time) string { return size(r.peak) }, func(a, b *row) int { return cmp.Compare(a.peak, b.peak) }},
	{"cores", "CORES", 5, true, true, func(r *row, _ time.Time) string { return cores(orUnknown(r.cores)) }, func(a, b *row) int { return cmp.Compare(a.cores, b.cores) }},
	{"cpu", "CPU", 4, true, true, func(r *row, _ time.Time) string { return cores(r.cpu) }, func(a, b *row) int { return cmp.Compare(a.cpu, b.cpu) }},
	{"time", "TIME", 6, true, true, (*row).took, func(a, b *row) int { return compareAges(a.started, b.started) }},
	{"done", "DONE", 6, true, true, func(r *row, _ time.Time) string { return r.done }, func(a, b *row) int { return cmp.Compare(a.share, b.share) }},
	{"why", "WHY", 12, false, false, func(r *row, _ time.Time) string { return r.why }, nil},
}

// narrow has the names of the columns in the order in which they are given up on a narrow screen, the last first.
var narrow = []string{"job", "state", "name", "used", "time", "granted", "user", "cores", "cpu", "bar", "done", "peak", "why"}

// states are the states of jobs and tasks in the order in which rows are sorted by them.
var states = []string{"running", "throttled", "starting", "leveled", "suspended", "paused", "waiting", "pending", "ending", "set-aside", "succeeded", "failed", "cancelled"}

// rankOf returns the place of a state in that order; others come last.
func rankOf(state string) int {
	if i := slices.Index(states, state); i >= 0 {
		return i
	}
	return len(states)
}

// compareAges compares how long ago two rows started; those that have not come before.
func compareAges(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return -1
	case b.IsZero():
		return 1
	}
	return b.Compare(a)
}

// columnOf returns the index of a column that rows can be sorted by; ok is false if there is none of that name.
func columnOf(name string) (at int, ok bool) {
	at = slices.IndexFunc(columns, func(c column) bool { return c.name == name && c.compare != nil })
	return at, at >= 0
}

// sortNames are the names of the columns that rows can be sorted by.
func sortNames() string {
	var names []string
	for i := range columns {
		if columns[i].compare != nil {
			names = append(names, columns[i].name)
		}
	}
	return strings.Join(names, ", ")
}

// fit returns how wide each column is on a screen with that many columns; 0 is not shown.
func fit(rows []row, room int) []int {
	widths := make([]int, len(columns))
	longest := func(text func(*row) string, least, most int) int {
		for i := range rows {
			least = max(least, min(most, terminal.Cells(text(&rows[i]))))
		}
		return least
	}
	at := func(name string) int { return slices.IndexFunc(columns, func(c column) bool { return c.name == name }) }
	left := room + 1 // a space follows each column but the last
	for i, name := range narrow {
		c := at(name)
		w := columns[c].width
		if name == "job" {
			w = longest(func(r *row) string { return r.id }, w, 24)
		}
		if i == 0 {
			w = min(w, room)
		}
		if w+1 > left {
			break
		}
		widths[c], left = w, left-w-1
	}
	name, why := at("name"), at("why")
	if widths[name] > 0 {
		w := longest(func(r *row) string { return r.name }, widths[name], 24)
		w = min(w, widths[name]+left)
		widths[name], left = w, left-(w-widths[name])
	}
	if widths[why] > 0 {
		widths[why] += left
	}
	return widths
}
