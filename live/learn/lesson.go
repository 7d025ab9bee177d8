package learn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/live/store"
)

// lesson is one run of a task that succeeded.
type lesson struct {
	container cluster.ContainerID // zero for a run that was imported
	app       profile.App
	run       profile.Run
}

// which names the run in the log.
func (l *lesson) which() slog.Attr {
	if l.container == (cluster.ContainerID{}) {
		return slog.Time("imported_run_ended", drive.Instant(l.run.Ended))
	}
	return slog.Any("container", l.container)
}

// lessonsOf returns what the runs of a job teach, and the application that they belong to.
func (l *Learner) lessonsOf(ctx context.Context, id cluster.JobID) (key App, runs []lesson, err error) {
	j, err := l.store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return key, nil, nil // It has been removed already.
	}
	if err == nil && j.Request.Job.App != "" {
		runs, err = l.runsOf(ctx, &j)
	}
	return AppOf(j.Request.As, j.Request.Job.App), runs, err
}

// runsOf returns the measured runs of the tasks of a job that succeeded, in the order in which they ended: of each
// stage at most profile.MostRuns, the latest.
func (l *Learner) runsOf(ctx context.Context, j *store.Job) ([]lesson, error) {
	tasks, err := l.store.Tasks(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	ran := map[cluster.ContainerID]*store.Task{}
	for i := range tasks {
		if t := &tasks[i]; t.Outcome == cluster.Succeeded {
			ran[t.Container] = t
		}
	}
	count := make([]int, len(j.Request.Job.Stages))
	var all []lesson
	if err := l.store.Usage(ctx, j.ID, func(u store.Usage) error {
		t, stage := ran[u.Container], int(u.Container.Task.Stage)
		if t == nil || stage >= len(count) || count[stage] == profile.MostRuns {
			return nil
		}
		most := time.Duration(mostHindered * float64(u.Usage.Length()-u.Usage.Suspended()))
		which := slog.Any("container", u.Container)
		var missing []string
		if u.Missing != "" {
			missing = append(missing, u.Missing)
		}
		if gap := u.Usage.Gap(); gap > 0 {
			missing = append(missing, fmt.Sprintf("no samples were taken for %v of %v", gap, u.Usage.Length()))
		}
		if bounded := u.Usage.Bounded(); bounded > most {
			l.teachesNothing(which, fmt.Sprintf("its disk was bounded for %v, more than a tenth of its time", bounded), missing)
			return nil
		}
		if pressed := u.Usage.Pressed(); pressed > most {
			l.teachesNothing(which, fmt.Sprintf("others hindered it on the disk for %v, more than a tenth of its time",
				pressed), missing)
			return nil
		}
		run, notes := profile.Segment(Stretches(u.Usage))
		run.Notes = slices.Concat(missing, notes)
		if run.Duration == 0 {
			l.teachesNothing(which, "nothing of it was measured", run.Notes)
			return nil
		}
		count[stage]++
		s := &j.Request.Job.Stages[stage]
		run.Features = profile.Features{Cores: t.Grant[resource.CPU], Input: s.Input, Memory: t.Grant[resource.Memory]}
		run.Ended = u.Ended
		all = append(all, lesson{u.Container, profile.AppOf(&j.Request.Job, stage), run})
		return nil
	}); err != nil {
		return nil, err
	}
	slices.Reverse(all)
	return all, nil
}

// mostHindered is the largest share of a run for which its disk may be bounded, or pressed by others. Above it, the
// run took longer than it needs, by an unknown amount, and transferred less per second than it demands.
const mostHindered = 0.1

// Stretches returns a usage in the form in which phases are found in it: without the time in which the programs were
// stopped.
func Stretches(u usage.Usage) (all []profile.Stretch) {
	for i := range u.Spans {
		s := &u.Spans[i]
		if s.Active() == 0 {
			continue
		}
		demand, known := s.Demand()
		all = append(all, profile.Stretch{Length: s.Active(), Usage: demand, Unknown: ^known & resource.AllKinds,
			Idle: s.Idle.Seconds() / s.Active().Seconds()})
	}
	return all
}
