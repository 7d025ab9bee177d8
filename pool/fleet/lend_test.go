package fleet

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

func TestLend(t *testing.T) {
	core := resource.Core
	for _, c := range []struct {
		name    string
		members []member
		lends   map[int]bool
		lacking resource.Amount
		want    string
		again   time.Duration
	}{
		{"nobody waits", idleFor(time.Minute, of(idle, idle)), nil, 0, "[] []", 0},
		{"no more than what lacks", idleFor(time.Minute, of(idle, idle, idle)), nil, core + core/2, "[3 2] []", 0},
		{"the longest idle first", []member{{number: 1, stage: idle, since: time.Hour},
			{number: 2, stage: idle, since: time.Minute}}, nil, 1, "[1] []", 0},
		{"not between two tasks", idleFor(lendsAfter/4, of(idle)), nil, core, "[] []", lendsAfter * 3 / 4},
		{"only those that run nothing", idleFor(time.Minute, of(queued, starting, busy, leaving)), nil, core, "[] []", 0},
		{"it goes on when nobody waits any more", idleFor(time.Minute, of(idle)), map[int]bool{1: true}, 0, "[] []", 0},
		{"who has a task takes its cores back, whoever waits", of(busy, idle), map[int]bool{1: true, 2: true}, core,
			"[] [1]", 0},
		{"and who is to end", of(leaving), map[int]bool{1: true}, core, "[] [1]", 0},
	} {
		got := lend(c.members, c.lends, core, c.lacking)
		if text := fmt.Sprint(got.lend, got.take); text != c.want || got.again != c.again {
			t.Errorf("%s: %s, again after %v; want %s, %v", c.name, text, got.again, c.want, c.again)
		}
	}
}

// A job of the same owner gets the cores that a kept executor does not use, with this daemon and with the next. The
// executor takes them back when it has a task.
func TestIdleExecutorLends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 1)
		defer m.stop()
		m.open()
		p := m.put(ada, func(s *api.PoolSpec) { s.Min, s.Max = 1, 1 })
		m.later(time.Minute)
		if e := m.detail(p).Members[0]; e.Lends || e.Why != "" {
			t.Errorf("nobody waits, and it lends: %+v", e)
		}
		runs := func(id cluster.JobID) {
			t.Helper()
			m.later(2 * lendsAfter)
			j, _ := m.Job(t.Context(), id, false)
			if e := m.detail(p).Members[0]; j.Started.IsZero() || !e.Lends || e.Why != lendsWhy {
				t.Errorf("the job is %v, the executor %+v", j.Status, e)
			}
			m.finish(id, cluster.StatusSucceeded, "")
		}
		runs(m.submit(ada))
		m.expect("lent", 1, 1)
		m.enrol(p, 1)
		m.later(m.taskFor / 2)
		if e := m.detail(p).Members[0]; e.Lends {
			t.Errorf("it has a task, and lends: %+v", e)
		}
		waits := m.submit(ada)
		m.later(m.taskFor)
		runs(waits)
	})
}
