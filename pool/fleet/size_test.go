package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// of returns executors in stages, with the numbers from 1 on.
func of(stages ...stage) (all []member) {
	for i, s := range stages {
		all = append(all, member{number: i + 1, stage: s})
	}
	return all
}

// idleFor makes all executors that run nothing do so for a time.
func idleFor(d time.Duration, all []member) []member {
	for i := range all {
		all[i].since = d
	}
	return all
}

// told writes the executors that are to end, those whose jobs are cancelled with a mark.
func told(end []ending) (text string) {
	for _, e := range end {
		text += fmt.Sprintf(" %d", e.number)
		if e.now {
			text += "!"
		}
	}
	return strings.TrimSpace(text)
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		name   string
		state  state
		target int
		launch int
		end    string
		why    string
	}{
		{name: "one for each task", state: state{demand: 3, max: 10, limits: unlimited}, target: 3, launch: 3,
			why: "3 tasks run or could run"},
		{name: "not more than allowed", state: state{demand: 30, max: 10, limits: unlimited, members: of(busy, busy)},
			target: 10, launch: 8, why: "30 tasks run or could run; the pool may have 10"},
		{name: "those that end count until they have", state: state{demand: 4, max: 4, limits: unlimited,
			members: of(leaving, leaving, busy)}, target: 4, launch: 1},
		{name: "some are kept", state: state{min: 2, max: 10, limits: unlimited}, target: 2, launch: 2,
			why: "0 tasks run or could run; 2 executors are kept"},
		{name: "idle for less than a minute",
			state: state{max: 10, limits: unlimited, members: idleFor(59*time.Second, of(idle, idle))}, target: 0},
		{name: "idle for a minute",
			state: state{min: 1, max: 10, limits: unlimited, members: idleFor(time.Minute, of(idle, idle))}, target: 1,
			end: "2"},
		{name: "the longest idle ends, then the newest", state: state{min: 1, max: 10, limits: unlimited, members: []member{
			{number: 1, stage: idle, since: 2 * time.Minute}, {number: 2, stage: idle, since: 3 * time.Minute},
			{number: 3, stage: idle, since: 2 * time.Minute}}}, target: 1, end: "2 3"},
		{name: "queued without tasks, for a while", state: state{max: 10, limits: unlimited, surplus: 30 * time.Second,
			members: of(queued, starting)}, target: 0},
		{name: "queued without tasks, for long", state: state{max: 10, limits: unlimited, surplus: time.Minute,
			members: of(queued, starting)}, target: 0, end: "1! 2!"},
		{name: "others wait: busy ones end, the queued first", state: state{demand: 9, max: 10, limits: limits{2, 1, true},
			members: of(busy, busy, busy, idle, queued)}, target: 2, end: "5! 4 3",
			why: "9 tasks run or could run; other owners wait, and this is the fair share of its owner"},
		{name: "others wait: not even the kept are kept", state: state{min: 3, max: 10, limits: limits{2, 1, true},
			members: of(idle, idle, idle)}, target: 1, end: "3 2"},
		{name: "others wait: what fits the share stays", state: state{demand: 3, max: 10, limits: limits{3, 2, true},
			members: of(busy, busy, idle)}, target: 3},
		{name: "others wait: what no task needs ends at once", state: state{demand: 1, max: 10, limits: limits{3, 2, true},
			members: of(busy, idle, queued)}, target: 1, end: "3! 2"},
		{name: "others have waited: fewer are kept for a while",
			state: state{min: 3, max: 10, limits: limits{NoLimit, 1, false}, members: of(idle)}, target: 1},
		{name: "changed", state: state{demand: 3, max: 3, limits: unlimited,
			members: []member{{number: 1, stage: busy, old: true}, {number: 2, stage: queued, old: true},
				{number: 3, stage: idle}}}, target: 3, end: "1 2!"},
		{name: "large after a task", state: state{demand: 2, max: 3, recycle: resource.GiB, limits: unlimited,
			members: []member{{number: 1, stage: busy, tasks: 1, memory: resource.GiB + 1},
				{number: 2, stage: idle, memory: 2 * resource.GiB}}}, target: 2, launch: 1, end: "1"},
		{name: "does not register", state: state{demand: 2, max: 3, limits: unlimited,
			members: idleFor(registersWithin, of(starting, starting))}, target: 2, launch: 1, end: "1! 2!"},
		{name: "cannot register, because it is stopped", state: state{demand: 1, max: 3, limits: unlimited,
			members: []member{{number: 1, stage: starting, since: time.Hour, still: true}}}, target: 1},
		{name: "executors ended young", state: state{demand: 2, max: 3, holds: time.Second, why: "executor 1 ended",
			limits: unlimited}, target: 2, why: "2 tasks run or could run; executor 1 ended"},
	} {
		if c.state.idle == 0 {
			c.state.idle = time.Minute
		}
		got := size(&c.state)
		if got.target != c.target || got.launch != c.launch || told(got.end) != c.end || c.why != "" && got.why != c.why {
			t.Errorf("%s: target %d, launch %d, end %q, why %q; want %d, %d, %q, %q", c.name, got.target, got.launch,
				told(got.end), got.why, c.target, c.launch, c.end, c.why)
		}
	}
}

// The answer changes with time alone when the decision says so.
func TestLookAgain(t *testing.T) {
	s := state{idle: time.Minute, max: 3, limits: unlimited, members: idleFor(50*time.Second, of(idle, idle))}
	if got := size(&s); got.again != 10*time.Second {
		t.Errorf("idle executors: again after %v", got.again)
	}
	s = state{idle: time.Minute, demand: 1, max: 3, limits: unlimited, members: idleFor(time.Minute, of(starting))}
	if got := size(&s); got.again != time.Minute {
		t.Errorf("an executor that starts: again after %v", got.again)
	}
	s = state{idle: time.Minute, demand: 1, max: 3, limits: unlimited, holds: 3 * time.Second}
	if got := size(&s); got.again != 3*time.Second {
		t.Errorf("none may be launched: again after %v", got.again)
	}
}

// Executors that end young are launched again after 1 s, 2 s and so on; those that were launched together count once.
func TestBackoff(t *testing.T) {
	var b backoff
	now := time.Unix(0, 0)
	var pauses []time.Duration
	for range 9 {
		b.failed(now, 3, "x")
		b.failed(now, 3, "x")
		b.worked(3)
		pauses = append(pauses, b.holds(now))
		now = now.Add(b.holds(now))
	}
	if s := time.Second; !slices.Equal(pauses, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s,
		60 * s}) {
		t.Errorf("pauses are %v", pauses)
	}
	b.worked(4)
	if b.failed(now, 4, "x"); b.holds(now) != time.Second {
		t.Errorf("after a success: %v", b.holds(now))
	}
}

// Whatever happens, there are never more executors than the pool may have, kept ones are kept while others do not
// wait, nothing is launched in a step that ends others for want of tasks, and when nothing changes any more nothing
// is done any more.
func TestSizeIsStable(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := state{min: r.IntN(4), idle: time.Duration(1+r.IntN(60)) * time.Second, limits: unlimited}
		s.max = s.min + 1 + r.IntN(8)
		next := 0
		var trace []string
		step := func() (acts int) {
			out := size(&s)
			trace = append(trace, fmt.Sprintf("%+v -> %+v", s, out))
			soft := slices.ContainsFunc(out.end, func(e ending) bool { return e.why == "no task needs it" })
			switch {
			case out.launch > 0 && soft:
				t.Fatalf("seed %d: launches and ends: %s", seed, strings.Join(trace, "\n"))
			case len(s.members)+out.launch > max(s.max, len(s.members)):
				t.Fatalf("seed %d: too many: %s", seed, strings.Join(trace, "\n"))
			case out.target < min(s.min, s.max) && s.limits == unlimited:
				t.Fatalf("seed %d: too few are kept: %s", seed, strings.Join(trace, "\n"))
			}
			for _, e := range out.end {
				i := slices.IndexFunc(s.members, func(m member) bool { return m.number == e.number })
				if s.members[i].stage == leaving {
					t.Fatalf("seed %d: told twice: %s", seed, strings.Join(trace, "\n"))
				}
				s.members[i].stage = leaving
			}
			for range out.launch {
				next++
				s.members = append(s.members, member{number: next, stage: queued})
			}
			if s.surplus = s.surplus + time.Second; !out.over {
				s.surplus = 0
			}
			return out.launch + len(out.end)
		}
		// pass lets executors go on, and tasks find executors.
		pass := func(d time.Duration) {
			s.members = slices.DeleteFunc(s.members, func(m member) bool { return m.stage == leaving })
			free := s.demand
			for i := range s.members {
				m := &s.members[i]
				if m.stage < idle {
					m.stage, m.since = m.stage+1, 0
				} else if m.since += d; free > 0 {
					m.stage, m.since = busy, 0
				} else {
					m.stage = idle
				}
				if m.stage == busy {
					free--
				}
			}
		}
		for range 60 {
			switch r.IntN(6) {
			case 0:
				s.demand = r.IntN(12)
			case 1:
				s.limits = unlimited
			case 2:
				most := r.IntN(5)
				s.limits = limits{most, max(0, most-r.IntN(2)), true}
			case 3:
				if n := len(s.members); n > 0 { // One dies.
					s.members = slices.Delete(s.members, n-1, n)
				}
			}
			pass(time.Second)
			step()
		}
		for range 70 { // idle at most a minute
			pass(time.Second)
			s.surplus += time.Second
			step()
		}
		pass(time.Second)
		if n := step(); n > 0 {
			t.Fatalf("seed %d: still %d changes: %s", seed, n, strings.Join(trace[len(trace)-5:], "\n"))
		}
	}
}
