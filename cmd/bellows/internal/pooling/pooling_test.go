package pooling

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
)

// sums is a pool with executors in every state.
func sums() *api.PoolDetail {
	d := &api.PoolDetail{Synced: true, PoolSummary: api.PoolSummary{PoolRef: api.PoolRef{UID: 1000, User: "ada",
		Name: "sums"},
		Executors: 8, Starting: 2, Busy: 2, Idle: 4, Wanted: 9, Applications: 2,
		Spec: api.PoolSpec{Min: 1, Max: 12, Memory: 256 * resource.MiB, CPU: resource.Core / 2, Idle: time.Minute,
			Policy: "mira"}, Why: "9 tasks run or could run"},
		Counters: api.PoolCounters{Started: 1234, Switched: 56, Lost: 1},
		Enrolled: []api.PoolApplication{
			{Application: 1, Name: "nightly", State: "closed", Executors: 2, Waiting: 5, Running: 1, Ended: 40, Results: 3,
				Why: "all executors run tasks of other applications, to which they belong by their fair shares"},
			{Application: 2, Name: "a very long name \033[31m of an application that nobody can read", State: "open",
				Executors: 1, Running: 1},
			{Application: 3, State: "cancelled", Why: "it was requested"},
			{Application: 4, Name: "spark", State: "open", Executors: 3, Waiting: 4, Running: 3, Drives: true, Demand: 7,
				Asked: 1, Why: "starts its own tasks: demands 7, asked for 1; the application holds 3 executors, and all of " +
					"them work; it is entitled to 2 of 8"}}}
	add := func(number int, state api.ExecutorState, change func(e *api.PoolExecutor)) {
		e := api.PoolExecutor{PoolMember: api.PoolMember{Executor: number, State: state, Tasks: int64(number),
			Memory: int64(number) << 26}, Job: 100}
		change(&e)
		d.Members = append(d.Members, e)
	}
	add(1, api.ExecutorRegistered, func(e *api.PoolExecutor) { e.Idle = 3 * time.Second })
	add(2, api.ExecutorAssigned, func(e *api.PoolExecutor) { e.Application, e.Idle = 1, 150*time.Millisecond })
	add(3, api.ExecutorAttached, func(e *api.PoolExecutor) {
		e.Application, e.Stage, e.Task, e.Running = 1, 1, 23456, 90*time.Second
	})
	add(4, api.ExecutorParked, func(e *api.PoolExecutor) { e.Idle, e.Why = 42*time.Second, "" })
	add(5, api.ExecutorDraining, func(e *api.PoolExecutor) {
		e.Application, e.Running, e.Why = 2, time.Second, "other owners wait for room"
	})
	add(6, api.ExecutorQueued, func(e *api.PoolExecutor) { e.Tasks, e.Memory, e.Why = 0, 0, "node here has 100MiB free" })
	add(7, api.ExecutorStarting, func(e *api.PoolExecutor) { e.Tasks, e.Memory = 0, 0 })
	add(8, api.ExecutorLost, func(e *api.PoolExecutor) { e.Gone, e.Job, e.Why = 8*time.Second, 0, "its job has ended" })
	return d
}

// What people see fits into 80 columns, and has no control characters of others.
func TestViews(t *testing.T) {
	d := sums()
	var text bytes.Buffer
	if err := printPools(&text,
		[]api.PoolSummary{d.PoolSummary, {PoolRef: api.PoolRef{User: "a-user-with-a-long-name",
			Name: strings.Repeat("long", 16)},
			Spec: api.PoolSpec{Memory: 10 * resource.GiB, Max: 10_000}}}); err != nil {
		t.Fatal(err)
	}
	if err := printPools(&text, nil); err != nil {
		t.Fatal(err)
	}
	text.WriteString("\n")
	if err := printPool(&text, d); err != nil {
		t.Fatal(err)
	}
	say := func(lines ...string) {
		text.WriteString("\n")
		for _, line := range lines {
			text.WriteString(fold(line, terminal.Width) + "\n")
		}
	}
	say(explanation(d)...)
	for _, change := range []func(*api.PoolDetail){
		func(d *api.PoolDetail) { d.Members = d.Members[:5] },
		func(d *api.PoolDetail) { d.Members, d.Starting, d.Executors = nil, 0, 1 },
		func(d *api.PoolDetail) { d.Members, d.Starting, d.Executors, d.Wanted = nil, 0, 12, 12 },
		func(d *api.PoolDetail) { d.Members, d.Starting, d.Executors, d.Wanted = d.Members[:2], 0, 2, 2 },
	} {
		d := sums()
		change(d)
		say(whenMore(d), whenFewer(d))
	}
	testfile.Golden(t, "views.txt", text.Bytes())
	for line := range strings.Lines(text.String()) {
		if terminal.Cells(strings.TrimSuffix(line, "\n")) > terminal.Width || strings.Contains(line, "\033") {
			t.Errorf("%q", line)
		}
	}
}

// An interpreter of Python without arguments runs functions of Python; any other command is taken as it is.
func TestLanguage(t *testing.T) {
	for command, want := range map[string]string{"": api.PoolPython, "venv/bin/python": api.PoolPython,
		"/usr/bin/python3.12": api.PoolPython, "pypy3": api.PoolPython, "python3 worker.py": "", "pythonic": "",
		"./python3.sh": "", "./hasher": ""} {
		o := createOptions{spec: api.PoolSpec{Name: "p", Command: strings.Fields(command), Max: 1, CPU: resource.Core,
			Memory: resource.MiB, Idle: time.Minute, Policy: "mira"}, class: "regular"}
		if err := o.complete(); err != nil || o.spec.Language != want {
			t.Errorf("%q: language %q, %v; want %q", command, o.spec.Language, err, want)
		}
	}
}
