package live

import (
	"context"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/live/view"
)

// spansInAnswer is the largest number of spans in one answer, which the runs share: some 20 MB of JSON.
const spansInAnswer = 100_000

// Usage returns what each run of a job's tasks used over time, by task and run, in at most most spans each; 0 sets no
// limit. Runs whose program has not begun are left out.
func (d *Driver) Usage(ctx context.Context, id cluster.JobID, most int) ([]api.TaskUsage, error) {
	j, err := d.Job(ctx, id, false)
	if err != nil {
		return nil, err
	}
	now := instant(d.now())
	out := []api.TaskUsage{}
	at := map[cluster.ContainerID]int{}
	for _, t := range j.Runs() {
		if t.Started.IsZero() {
			continue
		}
		until := t.Ended
		if t.State != api.TaskEnded {
			until = now
		}
		at[cluster.ContainerID{Task: t.Task, Run: t.Run}] = len(out)
		out = append(out, api.TaskUsage{Task: t.Task, Run: t.Run, State: t.State, Outcome: t.Outcome, Started: t.Started,
			CPUMillicores: t.CPUMillicores, MemoryBytes: t.MemoryBytes, DurationSeconds: max(0, until.Sub(t.Started).Seconds())})
	}
	each := max(1, spansInAnswer/max(1, len(out)))
	if most > 0 {
		each = min(each, most)
	}
	put := make([]bool, len(out))
	running := func(ended bool) {
		for id, i := range at {
			if put[i] || (out[i].State == api.TaskEnded) != ended {
				continue
			}
			u, err := d.backend.Usage(id)
			view.SetUsage(&out[i], u, each)
			if put[i] = true; err != nil {
				out[i].Missing = err.Error()
			}
		}
	}
	running(false)
	// A run that ended meanwhile is in the store by now.
	if err := d.store.Usage(ctx, id, func(u store.Usage) error {
		if i, ok := at[u.Container]; ok {
			view.SetUsage(&out[i], u.Usage, each)
			out[i].Missing, put[i] = u.Missing, true
		}
		return nil
	}); err != nil {
		return nil, err
	}
	running(true) // runs whose end is not stored yet, or that were not measured
	return out, nil
}

// measured returns the usage of containers that are to be forgotten. On a full disk it is lost, because the reserved
// space is kept for the ends of tasks.
func (d *Driver) measured(forgotten []cluster.ContainerID) []store.Usage {
	if d.health.short != nil {
		return nil
	}
	var all []store.Usage
	for _, id := range forgotten {
		u, err := d.backend.Usage(id)
		if len(u.Spans) == 0 {
			continue // Its program did not run, or was not measured.
		}
		stored := store.Usage{Container: id, Ended: d.now(), Usage: u.Stored()}
		if err != nil {
			stored.Missing = err.Error()
		}
		all = append(all, stored)
	}
	return all
}
