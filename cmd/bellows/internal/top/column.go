package top

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// jobTable has the columns of jobs and tasks.
var jobTable = table[row]{
	columns: []column[row]{
		{name: "job", head: "JOB", width: 5, most: 24, right: true, cell: func(r *row, _ time.Time) string { return r.id },
			compare: func(a, b *row) int { return cmp.Compare(a.job, b.job) }},
		{name: "user", head: "USER", width: 8, cell: func(r *row, _ time.Time) string { return r.user },
			compare: func(a, b *row) int { return cmp.Compare(a.user, b.user) }},
		{name: "name", head: "NAME", width: 8, most: 24, cell: func(r *row, _ time.Time) string { return r.name },
			compare: func(a, b *row) int { return cmp.Compare(a.name, b.name) }, look: (*row).nameLook},
		{name: "state", head: "STATE", width: 9, cell: func(r *row, _ time.Time) string { return r.state },
			compare: func(a, b *row) int { return cmp.Compare(rankOf(a.state), rankOf(b.state)) },
			look:    func(r *row) style { return lookOf(r.state) }},
		{name: "asked", head: "ASKED", width: 5, right: true, largest: true, cell: func(r *row, _ time.Time) string {
			return size(orUnknown(r.asked))
		}, compare: func(a, b *row) int { return cmp.Compare(a.asked, b.asked) }},
		{name: "reserved", head: "RESV", width: 5, right: true, largest: true, cell: func(r *row, _ time.Time) string {
			return size(orUnknown(r.reserved))
		}, compare: func(a, b *row) int { return cmp.Compare(a.reserved, b.reserved) }},
		{name: "bar", width: barWidth, cell: func(r *row, _ time.Time) string {
			return bar(r.used, r.peak, r.limit, barWidth)
		}, look: func(*row) style { return accent }},
		{name: "used", head: "USED", width: 5, right: true, largest: true, cell: func(r *row, _ time.Time) string {
			return size(r.used)
		}, compare: func(a, b *row) int { return cmp.Compare(a.used, b.used) }},
		{name: "peak", head: "PEAK", width: 5, right: true, largest: true, cell: func(r *row, _ time.Time) string {
			return size(r.peak)
		}, compare: func(a, b *row) int { return cmp.Compare(a.peak, b.peak) }},
		{name: "cores", head: "CORES", width: 5, right: true, largest: true, cell: func(r *row, _ time.Time) string {
			return cores(orUnknown(r.cores))
		}, compare: func(a, b *row) int { return cmp.Compare(a.cores, b.cores) }},
		{name: "cpu", head: "CPU", width: 4, right: true, largest: true, cell: func(r *row, _ time.Time) string {
			return cores(r.cpu)
		}, compare: func(a, b *row) int { return cmp.Compare(a.cpu, b.cpu) }},
		{name: "time", head: "TIME", width: 6, right: true, largest: true, cell: (*row).took,
			compare: func(a, b *row) int { return compareAges(a.started, b.started) }},
		{name: "done", head: "DONE", width: 6, right: true, largest: true, cell: func(r *row, _ time.Time) string {
			return r.done
		}, compare: func(a, b *row) int { return cmp.Compare(a.share, b.share) }},
		{name: "why", head: "WHY", width: 12, most: math.MaxInt, cell: func(r *row, _ time.Time) string { return r.why },
			look: func(*row) style { return faint }},
	},
	narrow: []string{"job", "state", "name", "used", "time", "reserved", "user", "asked", "cpu", "bar", "done", "cores",
		"peak", "why"},
}

const barWidth = 6

// states are the states of jobs and tasks in the order in which rows are sorted by them.
var states = []string{"running", "throttled", "starting", "leveled", "suspended", "paused", "waiting", "pending",
	"ending", "set-aside", "succeeded", "failed", "cancelled"}

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
