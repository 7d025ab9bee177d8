package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/internal/sandbox"
	"github.com/bellows-rm/bellows/profile"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/store"
)

// learned is what runs of the programs alone have taught.
type learned struct {
	Programs string        `json:"programs"` // what was run; see DemandResult.aloneIdentity
	Alone    []AloneResult `json:"alone"`
}

func (l *learned) of() string { return l.Programs }

// AloneResult is a program that ran alone.
type AloneResult struct {
	Name string `json:"name"`
	// Took is the time of each run, Typical the use over time of the run whose time is the median.
	Took    []time.Duration `json:"took_ns"`
	Typical curve           `json:"typical"`
	// Peak is the most that the program demands of the disk at any time, by its forecast, bytes per second.
	Peak resource.Amount `json:"peak_disk_bytes_per_s"`
	// Forecast is the history of the application, as it is stored.
	Forecast json.RawMessage `json:"history"`
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
	_, err := sandbox.Run(ctx, d.work, "fifo", nil, d.result.Node, time.Second, func(*sandbox.Session) {}, func(ctx context.Context, s *sandbox.Session) (time.Duration, error) {
		curves := map[string][]curve{}
		for i := range d.Repeats {
			for k := range d.jobs {
				j := &d.jobs[k]
				d.Show(fmt.Sprintf("alone: run %d of %d of %s", i+1, d.Repeats, j.Name))
				c, err := d.runAlone(ctx, s, j)
				if err != nil {
					return 0, fmt.Errorf("%s alone: %w", j.Name, err)
				}
				disk, cpu := c.totals()
				d.say("alone: %-8s run %d of %d, %5.1f s, %4.0f MB of the disk, %4.1f s of CPU", j.Name, i+1, d.Repeats, c.length().Seconds(), disk/1e6, cpu)
				curves[j.Name] = append(curves[j.Name], c)
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

// runAlone runs one job, with no input in memory, and returns what it used.
func (d *demandDemonstration) runAlone(ctx context.Context, s *sandbox.Session, j *cluster.Job) (curve, error) {
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

// prepare removes what earlier runs wrote, and what memory holds of files, except for the programs themselves: these lie on
// another disk.
func (d *demandDemonstration) prepare(ctx context.Context, input string) error {
	if err := d.disk.Hasten(func() error { return clearResults(input) }); err != nil {
		return err
	}
	if err := d.disk.DropCaches(); err != nil {
		return err
	}
	return load(ctx)
}

// taught waits until the history of a job's application has all runs, and sums it up.
func (d *demandDemonstration) taught(ctx context.Context, s *sandbox.Session, j *cluster.Job, runs []curve) (AloneResult, error) {
	a := AloneResult{Name: j.Name}
	for _, c := range runs {
		a.Took = append(a.Took, c.length())
	}
	slices.SortFunc(runs, func(a, b curve) int { return cmp.Compare(a.length(), b.length()) })
	a.Typical = runs[(len(runs)-1)/2]
	for end := time.Now().Add(time.Minute); ; {
		known, err := s.Store.App(ctx, sandbox.Caller().UID, j.App)
		if err == nil && known.Learned != nil {
			h, _, err := profile.ReadHistory(known.Learned)
			if err != nil {
				return a, err
			}
			app := h.Apps()[0]
			stage := &j.Stages[0]
			e, ok := h.Estimate(app, profile.Features{Cores: stage.Ideal[resource.CPU], Input: stage.Input, Memory: stage.Ideal[resource.Memory]})
			if _, n := h.Runs(app); ok && n >= len(runs) {
				forecast := cluster.Stage{Phases: e.Variants[0].Phases}
				a.Forecast, a.Peak = known.Learned, min(d.result.Speed, forecast.Peak()[resource.Disk])
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

// remember stores what was learned where a machine finds it.
func (l *learned) remember(ctx context.Context, s *sandbox.Session) error {
	as := sandbox.Caller()
	for i := range l.Alone {
		a := &l.Alone[i]
		if err := s.Store.PutLearned(ctx, store.App{UID: as.UID, User: as.User, Name: a.Name, Learned: a.Forecast, LearnedAt: 1}); err != nil {
			return err
		}
	}
	return nil
}

// by returns what is known of a program.
func (l *learned) by(name string) *AloneResult {
	i := slices.IndexFunc(l.Alone, func(a AloneResult) bool { return a.Name == name })
	return &l.Alone[i]
}
