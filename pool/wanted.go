package pool

import (
	"context"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
)

// Wanted says how many executors the applications of a pool could use, and what each executor does: what the size of
// the pool depends on.
type Wanted struct {
	Synced  bool
	Broken  string // why nothing more is decided; empty if it is
	Tasks   int    // that run or could run now: an executor could be used for each
	Members []Member
}

// Member is an executor that has registered.
type Member struct {
	Number   int
	Busy     bool          // it runs a task, or serves an application that starts its own
	Serves   bool          // it does the latter
	Draining bool          // it ends when its task has ended
	Idle     time.Duration // for how long it has run nothing; 0 if it is busy
	Tasks    int64         // that it has ended, and the application that it serves
	Memory   int64         // bytes when it last ran no task of its own pool; 0 is unknown
}

// Wanted returns what the size of the pool depends on. It is cheap.
func (p *Pool) Wanted(ctx context.Context) (w Wanted, err error) {
	err = p.do(ctx, func() error {
		w.Synced = p.synced
		if p.broken != nil {
			w.Broken = p.broken.Error()
		}
		for _, j := range p.loop.Engine().Snapshot().Jobs {
			w.Tasks += couldRun(j)
		}
		now := p.loop.Now()
		for _, m := range p.members {
			one := Member{Number: m.number, Busy: m.work != nil || m.earlier != nil, Draining: m.draining != "",
				Tasks: m.tasks, Memory: m.after}
			if !one.Busy {
				one.Idle = now.Sub(m.idle)
			}
			if w := m.work; w != nil && w.app.driving != nil && w.delivered {
				one.Serves = true
				one.Tasks++
			}
			w.Members = append(w.Members, one)
		}
		slices.SortFunc(w.Members, func(a, b Member) int { return a.Number - b.Number })
		return nil
	})
	return w, err
}

// couldRun is how many tasks of a job run or could run now.
func couldRun(j *book.JobState) (n int) {
	n = len(j.Tasks)
	for i := j.FirstLeft(); i < len(j.Stages); i++ {
		n += j.MayStart(i)
	}
	return n
}
