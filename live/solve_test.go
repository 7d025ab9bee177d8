package live

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// asker asks about the node whenever it has changed.
type asker struct {
	policy.Policy
	solve func(states int) cluster.Answer
}

func (p *asker) Decide(now timeline.Time, plan *book.Plan) {
	p.Policy.Decide(now, plan)
	if n := plan.Nodes[0]; n.Asked == nil || n.Asked.Version != n.Version {
		plan.Ask(n, solving(p.solve), cluster.BecauseFits(0))
	}
}

type solving func(states int) cluster.Answer

func (s solving) Solve(states int) cluster.Answer { return s(states) }

// asked returns the newest question, when nothing is left to do but to solve it.
func (r *rig) asked() (q book.Asked) {
	r.t.Helper()
	synctest.Wait()
	if err := r.do(r.t.Context(), func() { q = *r.engine.Snapshot().Nodes[0].Asked }); err != nil {
		r.t.Fatal(err)
	}
	return q
}

// replays checks that an engine whose questions nobody solves takes the same decisions from the log.
func (r *rig) replays(log string) {
	r.t.Helper()
	header, records := readLog(r.t.(*testing.T), log)
	unasked := func(p policy.Policy) policy.Policy {
		return &asker{p, func(int) cluster.Answer { panic("a replay solves nothing") }}
	}
	if at, ok := replayBy(r.t.(*testing.T), header, records, unasked); !ok {
		r.t.Errorf("record %d differs", at)
	}
}

// A question is solved while the loop handles events, which go by unnoticed by it; its answer is in the log.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var budget atomic.Int32
		now := timeline.Time(time.Now().UnixNano())
		shift := cluster.Shift{Task: cluster.TaskID{Job: 1}, From: now.Add(time.Minute), To: now.Add(time.Hour)}
		r := newRig(t, &asker{fifo(t), func(states int) cluster.Answer {
			budget.Store(int32(states))
			time.Sleep(time.Second)
			begun := cluster.Shift{Task: shift.Task, From: now, To: shift.From}
			return cluster.Answer{Shifts: []cluster.Shift{begun, shift, {Task: cluster.TaskID{Job: 9}, From: shift.From,
				To: shift.To}}, Value: 2, Bound: 1, States: 9}
		}})
		defer r.end()
		if q := r.asked(); q.Answer != nil {
			t.Fatalf("at first it is %+v", q)
		}
		id := r.submit(submission(1))
		r.fake.launched(r.order(cluster.Start))
		time.Sleep(time.Second)
		if q := r.asked(); q.Answer != nil || q.Decision == 1 {
			t.Errorf("after an answer about a changed node it is %+v", q)
		}
		time.Sleep(time.Second)
		if q := r.asked(); q.Answer == nil || q.Stale || q.Answer.Value != 2 || budget.Load() != cluster.SolverStates {
			t.Errorf("after the second answer it is %+v, by %d states", q, budget.Load())
		}
		status, err := r.Status(t.Context())
		if err != nil || status.Nodes[0].Leveling == nil {
			t.Fatal(err, status.Nodes)
		}
		e, err := r.Explain(t.Context(), id)
		want := api.Schedule{Value: 2, Bound: 1, Gap: 0.5, States: 9}
		if l := status.Nodes[0].Leveling; err != nil || l.Result != "value 2, bound 1, gap 50 %, 9 states" ||
			*l.Newest != want || *l.Used != want || l.Answered.Sub(l.Asked) != time.Second ||
			len(e.Levelings) != 1 || e.Levelings[0].Result != l.Result {
			t.Errorf("status has %+v, and explain %+v", l, e.Levelings)
		}
		if s := e.Tasks[0].Shifts; len(s) != 1 || !s[0].From.Equal(instant(shift.From)) || !s[0].To.Equal(instant(shift.To)) {
			t.Errorf("the task is to stand still %+v, want %+v", s, shift)
		}
		log, stale := r.EventLog(), 0
		_, records := readLog(t, log)
		for i := range records {
			for _, e := range records[i].Events {
				if e.Kind == cluster.Answered && e.Answer.Value == 2 {
					stale++
				}
			}
		}
		if stale != 2 {
			t.Errorf("%d answers are in the log, want 2", stale)
		}
		r.replays(log)
	})
}

// A driver ends while a question is open, and does not wait. The next one asks again.
func TestRestartWithOpenQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var solved atomic.Int32
		p := &asker{fifo(t), func(int) cluster.Answer {
			time.Sleep(time.Hour)
			solved.Add(1)
			return cluster.Answer{Proved: true}
		}}
		r := newRig(t, p)
		first, log := r.asked(), r.EventLog()
		began := time.Now()
		r.end()
		if time.Since(began) > time.Minute {
			t.Errorf("it took %v to end", time.Since(began))
		}
		r.replays(log)
		r.fake = newFake()
		r.open()
		r.start(p)
		defer r.end()
		if q := r.asked(); first.Answer != nil || q.Answer != nil {
			t.Errorf("after the restart the question is %+v, and before it was %+v", q, first)
		}
		time.Sleep(time.Hour)
		if q := r.asked(); q.Answer == nil || q.Stale || solved.Load() != 2 {
			t.Errorf("the answer is %+v, and %d questions were solved", q, solved.Load())
		}
	})
}

// A solver that panics harms nothing: the question has no answer.
func TestSolverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(), logTo: &log}
		r.open()
		r.start(&asker{fifo(t), func(int) cluster.Answer { panic("no idea") }})
		if q := r.asked(); q.Answer == nil || q.Words() != "not solved: panic: no idea" {
			t.Errorf("it is %+v", q)
		}
		r.end()
		if !strings.Contains(log.String(), "a question about a node has no answer") {
			t.Errorf("logged %s", log.String())
		}
	})
}
