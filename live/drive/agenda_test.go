package drive_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/drive"
)

// Whatever is added and taken out, each event is due once, at its time, and Next says when.
func TestAgenda(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var a drive.Agenda
	var wakes []timeline.Time
	held := map[cluster.JobID]timeline.Time{}
	for now, id := timeline.Time(0), cluster.JobID(1); now < 20_000; now++ {
		at := now + timeline.Time(random.IntN(20))
		switch random.IntN(6) {
		case 0:
			a.Wake(at)
			wakes = append(wakes, at)
		case 1:
			a.Hold(at, cluster.Event{Kind: cluster.JobCancelled, Job: id})
			held[id] = at
			id++
		case 2:
			one := cluster.JobID(random.IntN(int(id)))
			if e, ok := a.TakeHeld(func(e *cluster.Event) bool { return e.Job == one }); ok != (held[one] != 0) || ok &&
				e.Job != one {
				t.Fatalf("took %v %v", e, ok)
			}
			delete(held, one)
		case 3:
			one := cluster.JobID(random.IntN(int(id)))
			a.DropHeld(func(e *cluster.Event) bool { return e.Job == one })
			delete(held, one)
		}
		if random.IntN(500) == 0 {
			a.DropWakes()
			wakes = nil
		}
		next := timeline.Never
		for _, at := range wakes {
			next = min(next, at)
		}
		for _, at := range held {
			next = min(next, at)
		}
		if got := a.Next(); got != next {
			t.Fatalf("the next is due at %d, want %d", got, next)
		}
		for at, e := range a.Held() {
			if held[e.Job] != at {
				t.Fatalf("job %d is held until %d, want %d", e.Job, at, held[e.Job])
			}
		}
		due := a.Due(now, nil)
		var want []cluster.JobID
		for id, at := range held {
			if at <= now {
				want = append(want, id)
				delete(held, id)
			}
		}
		slices.Sort(want)
		woken := slices.ContainsFunc(wakes, func(at timeline.Time) bool { return at <= now })
		wakes = slices.DeleteFunc(wakes, func(at timeline.Time) bool { return at <= now })
		var got []cluster.JobID
		for _, e := range due {
			if e.Kind == cluster.JobCancelled {
				got = append(got, e.Job)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || len(due)-len(got) != map[bool]int{true: 1}[woken] {
			t.Fatalf("at %d: due are %v, want jobs %v, woken %v", now, due, want, woken)
		}
	}
}

// The clock goes on from when it began.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := drive.NewClock()
		began := c.Now()
		time.Sleep(time.Minute)
		if c.Now() != began.Add(time.Minute) || c.Begun().UnixNano() != int64(began) {
			t.Errorf("a minute after %v it is %v", began, c.Now())
		}
	})
}

// A policy that panics is an error.
func TestStepSurvives(t *testing.T) {
	e := engine.New(broken{}, nil)
	_, err := drive.Step(e, 1, cluster.Event{Kind: cluster.Synced})
	if err == nil || !strings.Contains(err.Error(), "event synced") || !strings.Contains(err.Error(), "panic: broken") {
		t.Errorf("got %v", err)
	}
}

// broken is a policy with a bug.
type broken struct{}

func (broken) Name() string                     { return "broken" }
func (broken) Traits() policy.Traits            { return policy.Traits{} }
func (broken) Decide(timeline.Time, *book.Plan) { panic("broken") }
