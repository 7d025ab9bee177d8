// Package lab has what every experiment needs: claims and verdicts, runs on all cores, tables, and numbers.
package lab

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bellows-rm/bellows/sim/sweep"
)

// Lab is what an experiment works with: the number of runs, the seed, and functions that run many simulations.
type Lab struct {
	Ctx context.Context
	Settings
	journal *journal
}

func newLab(ctx context.Context, e *Experiment, s Settings) (*Lab, error) {
	l := &Lab{Ctx: ctx, Settings: s}
	if s.Journal == "" {
		return l, nil
	}
	var err error
	l.journal, err = openJournal(s.Journal, journalHead{Version: 1, Experiment: e.Name, Runs: s.Runs, Full: s.Full,
		Seed: s.Seed, Program: s.Program})
	return l, err
}

// close ends the lab; it removes the journal if the experiment is done.
func (l *Lab) close(done bool) error {
	if l.journal == nil {
		return nil
	}
	return l.journal.close(done)
}

// Unseen returns a lab whose runs have other workloads than those of the experiments by which a default was chosen.
func (l *Lab) Unseen() *Lab {
	other := *l
	other.Seed ^= 1 << 63
	return &other
}

// RunSeed returns the seed of a run. Runs with the same number have the same workload under all schedulers.
func (l *Lab) RunSeed(run int) uint64 { return l.Seed + uint64(run)*1_000_003 }

// Size returns the number of nodes of a simulated cluster, which is also the number of jobs of a trace (YARN-ME section
// 6.1).
func (l *Lab) Size() int {
	if l.Quick {
		return 20
	}
	return 100
}

// Each calls f for 0 to n-1 on all cores, and take with the results, in order. The results of f are kept in the
// journal, as JSON, under the name of the part, which must be unique in the experiment; results that are in the journal
// already are not computed again.
func Each[T any](l *Lab, part string, n int, f func(i int) (T, error), take func(i int, t T)) error {
	begun := 0
	if l.journal != nil {
		for _, line := range l.journal.kept[part] {
			var t T
			if begun >= n || json.Unmarshal(line, &t) != nil {
				return fmt.Errorf("journal %s: is not of this experiment; remove it", l.Settings.Journal)
			}
			take(begun, t)
			begun++
		}
	}
	l.progress(part, begun, n)
	var failed error
	ctx, stop := context.WithCancel(l.Ctx)
	defer stop()
	err := sweep.Run(ctx, n-begun, l.Workers, func(i int) (T, error) { return f(begun + i) }, func(i int, t T) {
		if failed != nil {
			return
		}
		if l.journal != nil {
			if failed = l.journal.keep(part, t); failed != nil {
				stop()
				return
			}
		}
		take(begun+i, t)
		l.progress(part, begun+i+1, n)
	})
	if failed != nil {
		return failed
	}
	return err
}

// EachRun calls f for each of the experiment's runs at each of n points, and returns the results by point and run. part
// is as for each.
func EachRun[T any](l *Lab, part string, n int, f func(point, run int) (T, error)) ([][]T, error) {
	all := make([][]T, n)
	err := Each(l, part, n*l.Runs, func(i int) (T, error) { return f(i/l.Runs, i%l.Runs) },
		func(i int, t T) { all[i/l.Runs] = append(all[i/l.Runs], t) })
	return all, err
}

func (l *Lab) progress(part string, done, all int) {
	if l.Settings.Progress != nil {
		l.Settings.Progress(part, done, all)
	}
}
