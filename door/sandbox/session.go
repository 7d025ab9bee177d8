package sandbox

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/profiler"
)

// Session is a machine during one run.
type Session struct {
	*Machine
	Begun time.Time
	Input string // the directory in which programs run
}

// Run manages capacity in the folder work, calls look every interval while play runs, and removes everything
// afterwards. play returns the CPU time of the programs that it ran. others is how many cores other work on the machine
// used, on average; nil is unknown.
func Run(ctx context.Context, work, policy string, settings map[string]string, capacity resource.Vector,
	every time.Duration, look func(*Session), play func(context.Context, *Session) (time.Duration, error)) (
	others *float64, err error) {
	m, err := Open(work, policy, settings, capacity)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.End(ctx)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &Session{m, time.Now(), filepath.Join(work, InputDir)}
	before, known := profiler.BusyTime()
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			look(s)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	ours, err := play(ctx, s)
	cancel()
	looking.Wait()
	if err != nil {
		return nil, err
	}
	after, ok := profiler.BusyTime()
	if !known || !ok {
		return nil, nil
	}
	busy := max(0, (after-before-ours).Seconds()/time.Since(s.Begun).Seconds())
	return &busy, nil
}
