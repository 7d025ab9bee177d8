package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/live/store"
)

// lesson is one run of a task that succeeded, or that ended for want of memory.
type lesson struct {
	container cluster.ContainerID // zero for a run that was imported
	app       profile.App
	run       profile.Run
	short     *profile.Shortfall // in place of run; nil for one that succeeded
}

func (l *lesson) ended() timeline.Time {
	if l.short != nil {
		return l.short.Ended
	}
	return l.run.Ended
}

// which names the run in the log.
func (l *lesson) which() slog.Attr {
	if l.container == (cluster.ContainerID{}) {
		return slog.Time("imported_run_ended", drive.Instant(l.ended()))
	}
	return slog.Any("container", l.container)
}

// lessonsOf returns what the runs of a job teach, in the order in which they ended, and the application that they
// belong to. Of a job that has not ended only those teach that ended for want of memory: the next job should not
// repeat it.
func (l *Learner) lessonsOf(ctx context.Context, id cluster.JobID) (key App, runs []lesson, from store.Lessons,
	err error) {
	j, err := l.store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		from.Jobs = []cluster.JobID{id}
		return key, nil, from, nil // It has been removed already.
	}
	if err != nil {
		return key, nil, from, err
	}
	if j.State.Ended {
		from.Jobs = []cluster.JobID{id}
	}
	short, err := l.store.Short(ctx, id)
	for i := range short {
		from.Short = append(from.Short, short[i].Container)
	}
	if err != nil || j.Request.Job.App == "" {
		return key, nil, from, err
	}
	if j.State.Ended {
		if runs, err = l.runsOf(ctx, &j); err != nil {
			return key, nil, from, err
		}
	}
	runs = append(runs, shortfallsOf(&j, short)...)
	slices.SortStableFunc(runs, func(a, b lesson) int { return cmp.Compare(a.ended(), b.ended()) })
	return AppOf(j.Request.As, j.Request.Job.App), runs, from, nil
}

// shortfallsOf returns what runs of a job teach that ended for want of memory.
func shortfallsOf(j *store.Job, runs []store.Task) (all []lesson) {
	for i := range runs {
		t := &runs[i]
		stage := int(t.Container.Task.Stage)
		if stage >= len(j.Request.Job.Stages) {
			continue
		}
		all = append(all, lesson{container: t.Container, app: profile.AppOf(&j.Request.Job, stage),
			short: &profile.Shortfall{Ended: t.Ended, Held: t.Exit.Held,
				Features: featuresOf(t, &j.Request.Job.Stages[stage])}})
	}
	return all
}

// featuresOf returns what was known of a run of a stage before it started.
func featuresOf(t *store.Task, s *cluster.Stage) profile.Features {
	f := profile.Features{Cores: profile.CoresOf(s), Input: s.Input, Memory: t.Grant[resource.Memory]}
	if t.Progress != nil && t.Progress.Renewed > 0 && t.Exit != nil { // its last grant is not what it had
		f.Memory = max(f.Memory, resource.Amount(t.Exit.Used))
	}
	return f
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
		if why := leastCPU(u.Usage, most); why != "" {
			run.AtLeast |= resource.KindsOf(resource.CPU)
			run.Notes = append(run.Notes, "what it used of CPU is a lower bound: "+why)
		}
		if !run.Unknown.Has(resource.Memory) { // also while its programs stood still, and between two samples
			run.Peak[resource.Memory] = max(run.Peak[resource.Memory], u.Usage.MostHeld(), exitOf(t).Used)
		}
		if why := leastMemory(u.Usage, t, &j.Request.Job, run.Peak[resource.Memory]); why != "" {
			run.AtLeast |= resource.KindsOf(resource.Memory)
			run.Notes = append(run.Notes, "what it held of memory is a lower bound: "+why)
		}
		count[stage]++
		run.Features = featuresOf(t, &j.Request.Job.Stages[stage])
		run.Ended = u.Ended
		all = append(all, lesson{container: u.Container, app: profile.AppOf(&j.Request.Job, stage), run: run})
		return nil
	}); err != nil {
		return nil, err
	}
	slices.Reverse(all)
	return all, nil
}

// exitOf returns how a task ended; the zero Exit if that is unknown.
func exitOf(t *store.Task) (exit cluster.Exit) {
	if t.Exit != nil {
		exit = *t.Exit
	}
	return exit
}

// mostHindered is the largest share of a run for which its disk may be bounded, or pressed by others. Above it, the
// run took longer than it needs, by an unknown amount, and transferred less per second than it demands.
const mostHindered = 0.1

// leastCPU says why a run would have used more CPU; empty if it would not have. most is for how long a run may be
// hindered.
func leastCPU(u usage.Usage, most time.Duration) string {
	if curbed := u.Curbed(); curbed > most {
		return fmt.Sprintf("for %v it got less than it would have used", curbed)
	}
	if swapped := u.Swapped(); swapped > most {
		return fmt.Sprintf("for %v some of its memory was in swap", swapped)
	}
	return ""
}

// leastMemory says why a run may have needed more memory than the largest sample, peak; empty if it did not. What is in
// swap counts in samples, so a container that was squeezed or suspended needs no more.
func leastMemory(u usage.Usage, t *store.Task, j *cluster.Job, peak resource.Amount) string {
	exit := exitOf(t)
	s := &j.Stages[t.Container.Task.Stage]
	switch gap := u.Gap(); {
	case exit.OOMKills > 0:
		return "the kernel killed a process of it for memory"
	case j.Reserve == cluster.ReserveStated && s.Elastic() && t.Grant[resource.Memory] < s.Ideal[resource.Memory]:
		return "it was granted less than its ideal memory"
	case gap > 0 && (exit.Peak == 0 || exit.Peak > peak || u.Swapped() > 0): // the kernel counts no swap
		return fmt.Sprintf("no samples were taken for %v", gap)
	}
	return ""
}

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
