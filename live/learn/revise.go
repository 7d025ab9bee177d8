package learn

import (
	"context"
	"reflect"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/store"
)

// Waiting are the jobs whose forecasts and reservations may still change, because they wait and none of their tasks
// has started. Its methods may be called from any goroutine; an error says that whoever has the jobs ends, or does
// not answer.
type Waiting interface {
	// Apps returns the applications of these jobs. It waits until it is known what runs.
	Apps(context.Context) ([]App, error)
	// Of returns the jobs of an application, in the order of their submission.
	Of(context.Context, App) ([]store.Request, error)
	// Revise gives jobs other forecasts and reservations, if they still wait.
	Revise(context.Context, []cluster.Job)
	// MostMemory returns the memory of the largest node, bytes; 0 if no node is known.
	MostMemory() resource.Amount
}

// MostRevised is how many jobs of an application are revised at a time, in the order of their submission. Each
// revision is stored and decided on, so thousands of waiting jobs would keep the daemon busy after every run. Further
// jobs are revised after later runs, when fewer jobs wait before them.
const MostRevised = 100

// reviseAll revises the forecasts of all waiting jobs: the Learner before may have ended before it did.
func (l *Learner) reviseAll(ctx context.Context) {
	apps, err := l.jobs.Apps(ctx)
	if err != nil {
		return
	}
	for _, key := range apps {
		l.revise(ctx, key)
	}
}

// revise changes the forecasts and the reservations of the jobs of an application that wait.
func (l *Learner) revise(ctx context.Context, key App) {
	waiting, err := l.jobs.Of(ctx, key)
	if err != nil || len(waiting) == 0 {
		return
	}
	var revised []cluster.Job
	if err := l.Read(ctx, key, func(h *profile.History, _ error) error {
		for i := range waiting {
			j := &waiting[i].Job
			now := j.Revised(j)
			h.ReserveFor(&now, l.jobs.MostMemory())
			if h.Forecast(&now, waiting[i].Untimed); !reflect.DeepEqual(&now, j) {
				if revised = append(revised, now); len(revised) == MostRevised {
					break
				}
			}
		}
		return nil
	}); err != nil {
		l.log.Warn("cannot revise the forecasts of jobs that wait", "app", key.Name, "error", err)
		return
	}
	l.jobs.Revise(ctx, revised)
}
