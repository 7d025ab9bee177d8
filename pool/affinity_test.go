package pool_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// turns are executors and applications that drive, which demand more and fewer executors in turn.
type turns struct {
	*testing.T
	random    *rand.Rand
	executors []*attachable
	apps      []*client
	most      int // applications of which an executor keeps something
	demand    int // executors that an application demands at most
	attached  int // how often an executor was attached
	anew      int // of these, to an application of which it kept nothing
}

func newTurns(t *testing.T, p *pool.Pool, executors, applications, most, demand int) *turns {
	x := &turns{T: t, random: rand.New(rand.NewPCG(1, 2)), most: most, demand: demand}
	for i := range executors {
		x.executors = append(x.executors, registerAttachable(t, p, i, nil))
	}
	for i := range applications {
		x.apps = append(x.apps, enrolDriver(t, p, string(rune('a'+i))))
		x.apps[i].demands(0, 0)
	}
	return x
}

// round changes what one application demands, and goes on until everybody does what the pool wants.
func (x *turns) round() {
	some := x.random.IntN(len(x.apps))
	x.apps[some].demands(0, x.random.IntN(x.demand+1))
	for range 4 {
		for i, a := range x.apps {
			x.listen(i, a)
		}
		for _, e := range x.executors {
			for x.ask(e) {
			}
		}
	}
}

// listen takes what has happened to the executors of an application, which gives back at once what it is asked for.
func (x *turns) listen(i int, a *client) {
	ctx, cancel := context.WithTimeout(x.Context(), time.Millisecond)
	defer cancel()
	out, _, _ := a.pool.Collect(ctx, a.lease.Application, executor.Collect{Lease: a.lease.Lease, After: a.after})
	for _, c := range out.Changes {
		a.after = c.Number
		switch c.What {
		case executor.AskedFor:
			a.say(executor.Growth{GivesBack: []int64{c.Attachment.Attachment}})
		case executor.Ended:
			if c.Failed {
				x.Errorf("%+v", c)
			}
		}
	}
}

// ask asks for work once. It reports whether there was any.
func (x *turns) ask(e *attachable) bool {
	ctx, cancel := context.WithTimeout(x.Context(), time.Millisecond)
	defer cancel()
	e.knows.Lease = e.lease
	work, _, err := e.pool.Next(ctx, e.number, e.knows, nil)
	if err != nil {
		return false
	}
	switch work.Do {
	case executor.DoAttach:
		x.attached++
		if !slices.Contains(e.knows.Keeps, work.Task.Key) {
			x.anew++
		}
		keeps := slices.DeleteFunc(slices.Clone(e.knows.Keeps), func(key string) bool { return key == work.Task.Key })
		keeps = append(keeps, work.Task.Key)
		e.knows = executor.Next{Attached: work.Work, Keeps: keeps[max(0, len(keeps)-x.most):]}
	case executor.DoPark:
		e.knows.Attached, e.knows.Released = 0, false
	case executor.DoRelease:
		e.knows.Released = true
	}
	return work.Do != executor.DoWait
}

// Executors go back to the applications of which they keep something. With three applications on four executors, fewer
// than one in twenty attachments connect anew once all have been here, if executors keep all applications, or keep one
// and need not change. If they keep two and must change, it would be 29 % by their numbers alone, and 18 % if others do
// not count; at least 9.5 % on average by any rule that does not know what will be demanded, and 5.5 % of this very
// stream by one that does.
func TestExecutorsGoBackToWhatTheyKeep(t *testing.T) {
	for _, c := range []struct {
		keeps, demand int
		most          float64 // share of attachments anew
	}{{4, 4, 0.05}, {1, 1, 0.05}, {2, 2, 0.13}} {
		synctest.Test(t, func(t *testing.T) {
			x := newTurns(t, start(t, nil), 4, 3, c.keeps, c.demand)
			for range 50 {
				x.round()
			}
			x.attached, x.anew = 0, 0
			for range 500 {
				x.round()
			}
			share := float64(x.anew) / float64(x.attached)
			t.Logf("executors keep %d applications of at most %d executors: %d of %d attachments anew, %.1f %%", c.keeps,
				c.demand, x.anew, x.attached, 100*share)
			if share >= c.most || x.attached < 100 {
				t.Errorf("%d of %d attachments are anew, want fewer than %v of them", x.anew, x.attached, c.most)
			}
		})
	}
}
