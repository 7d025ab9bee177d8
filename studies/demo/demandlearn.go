package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/live/store"
)

// learned is what runs of the programs alone have taught.
type learned struct {
	Programs string        `json:"programs"` // what was run; see DemandResult.aloneIdentity
	Alone    []AloneResult `json:"alone"`
}

func (l *learned) of() string { return l.Programs }

// AloneResult is a job that ran alone.
type AloneResult struct {
	Name   string       `json:"name"`
	Stages []AloneStage `json:"stages"`
	// Forecast is the history of the application, as it is stored.
	Forecast json.RawMessage `json:"history"`
}

// AloneStage is a stage of a job that ran alone: one program.
type AloneStage struct {
	// Took is the time of each run, Typical the use over time of the run whose time is the median.
	Took    []time.Duration `json:"took_ns"`
	Typical curve           `json:"typical"`
	// Peak is the most that the program demands of the disk at any time, by its forecast, bytes per second, and PeakCPU
	// the most of the cores, millicores. Phases is how many phases it has.
	Peak    resource.Amount `json:"peak_disk_bytes_per_s"`
	PeakCPU resource.Amount `json:"peak_cpu_millicores"`
	Phases  int             `json:"phases"`
}

// learn runs every program alone, several times, unless the results are kept.
func (d *demandDemonstration) learn(ctx context.Context) error {
	path := d.keep("alone")
	d.learned = &learned{}
	if found, err := readKept(path, d.result.aloneIdentity(), d.learned); found || err != nil {
		if found {
			d.say("what the programs do alone is kept in %s", path)
		}
		return err
	}
	d.learned.Programs = d.result.aloneIdentity()
	_, err := sandbox.Run(ctx, d.work, "fifo", nil, d.result.Node, time.Second, func(*sandbox.Session) {},
		func(ctx context.Context, s *sandbox.Session) (time.Duration, error) {
			curves := map[string][][]curve{} // of each job, run by run those of its stages
			for i := range d.Repeats {
				for k := range d.jobs {
					j := &d.jobs[k]
					d.Show(fmt.Sprintf("alone: run %d of %d of %s", i+1, d.Repeats, j.Name))
					used, err := d.runAlone(ctx, s, j)
					if err != nil {
						return 0, fmt.Errorf("%s alone: %w", j.Name, err)
					}
					for stage, c := range used {
						disk, cpu := c.totals()
						d.say("alone: %-8s run %d of %d, %5.1f s, %4.0f MB of the disk, %4.1f s of CPU", programName(j, stage), i+1,
							d.Repeats, c.length().Seconds(), disk/1e6, cpu)
					}
					curves[j.Name] = append(curves[j.Name], used)
				}
			}
			for k := range d.jobs {
				a, err := d.taught(ctx, s, &d.jobs[k], curves[d.jobs[k].Name])
				if err != nil {
					return 0, err
				}
				d.learned.Alone = append(d.learned.Alone, a)
			}
			return 0, nil
		})
	if err != nil {
		return err
	}
	return writeKept(path, d.learned)
}

// runAlone runs one job, with no input in memory, and returns what its stages used.
func (d *demandDemonstration) runAlone(ctx context.Context, s *sandbox.Session, j *cluster.Job) ([]curve, error) {
	if err := d.prepare(ctx, s.Input); err != nil {
		return nil, err
	}
	id, err := submitDemand(ctx, s, *j)
	if err != nil {
		return nil, err
	}
	_, c, err := awaitDemand(ctx, s, id)
	return c, err
}

// prepare removes what earlier runs wrote, and what memory holds of files, except for the programs themselves: these
// lie on another disk.
func (d *demandDemonstration) prepare(ctx context.Context, input string) error {
	if err := d.disk.Hasten(func() error { return clearResults(input) }); err != nil {
		return err
	}
	if err := d.disk.DropCaches(); err != nil {
		return err
	}
	return d.mix.warm(ctx)
}

// taught waits until the history of a job's application has all runs, and sums it up. runs are the curves of its
// stages, run by run.
func (d *demandDemonstration) taught(ctx context.Context, s *sandbox.Session, j *cluster.Job,
	runs [][]curve) (AloneResult, error) {
	a := AloneResult{Name: j.Name}
	for end := time.Now().Add(time.Minute); ; {
		me := sandbox.Caller()
		known, err := s.Store.App(ctx, me.UID, me.User, j.App)
		if err == nil && known.Learned != nil {
			h, _, err := profile.ReadHistory(known.Learned)
			if err != nil {
				return a, err
			}
			if forecast := forecastOf(h, *j, len(runs)); forecast != nil {
				a.Forecast = known.Learned
				for i := range forecast.Stages {
					a.Stages = append(a.Stages, d.sumUp(&forecast.Stages[i], i, runs))
				}
				return a, nil
			}
		}
		if time.Now().After(end) {
			return a, fmt.Errorf("the runs of %s taught nothing: %w", j.Name, err)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return a, err
		}
	}
}

// forecastOf returns j with its forecasts; nil if h has not all runs of each stage yet.
func forecastOf(h *profile.History, j cluster.Job, runs int) *cluster.Job {
	j.Stages, j.Owner = slices.Clone(j.Stages), h.Apps()[0].Owner
	for i := range j.Stages {
		if _, n := h.Runs(profile.AppOf(&j, i)); n < runs {
			return nil
		}
	}
	if !h.Forecast(&j, profile.Untimed(&j)) {
		return nil
	}
	return &j
}

// sumUp sums up the runs of a stage, which has its forecast.
func (d *demandDemonstration) sumUp(stage *cluster.Stage, i int, runs [][]curve) AloneStage {
	peak := stage.Peak()
	a := AloneStage{Peak: min(d.result.Speed, peak[resource.Disk]), PeakCPU: peak[resource.CPU], Phases: len(stage.Phases)}
	var all []curve
	for _, run := range runs {
		a.Took = append(a.Took, run[i].length())
		all = append(all, run[i])
	}
	slices.SortFunc(all, func(a, b curve) int { return cmp.Compare(a.length(), b.length()) })
	a.Typical = all[(len(all)-1)/2]
	return a
}

// remember stores what was learned where a machine finds it.
func (l *learned) remember(ctx context.Context, s *sandbox.Session) error {
	as := sandbox.Caller()
	for i := range l.Alone {
		a := &l.Alone[i]
		if err := s.Store.PutLearned(ctx, store.App{UID: as.UID, User: as.User, Name: a.Name, Learned: a.Forecast,
			LearnedAt: 1}, store.Lessons{}); err != nil {
			return err
		}
	}
	return nil
}

// by returns what is known of a stage of a job.
func (l *learned) by(j *cluster.Job, stage int) *AloneStage {
	i := slices.IndexFunc(l.Alone, func(a AloneResult) bool { return a.Name == j.Name })
	return &l.Alone[i].Stages[stage]
}

// programName is the name of the program that a stage runs: that of the job, with that of the stage if it has several.
func programName(j *cluster.Job, stage int) string {
	if len(j.Stages) == 1 {
		return j.Name
	}
	return j.Name + "/" + j.StageName(stage)
}

// pause waits for the given time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
