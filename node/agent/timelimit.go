package agent

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// timedOut is the exit code of a program that was killed by its time limit, the same as timeout(1)'s.
const timedOut = 124

// timeLimit kills a program that has run for its whole time limit, including time in suspension. The supervisor
// enforces it, so that it also works without an agent.
type timeLimit struct {
	cancel  context.CancelFunc
	done    chan struct{}
	reached atomic.Bool
}

// keepTimeLimit starts the time limit. 0 is no limit.
func keepTimeLimit(f folder, s *spec) *timeLimit {
	l := &timeLimit{done: make(chan struct{})}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(l.done)
		if s.Launch.Timeout > 0 && passes(ctx, s.Launch.Timeout) {
			l.reached.Store(true)
			l.enforce(ctx, f, s)
		}
	}()
	return l
}

// end is called when the program has ended; it returns whether the time limit caused that.
func (l *timeLimit) end() bool {
	l.cancel()
	<-l.done
	return l.reached.Load()
}

// enforce requests every process to end and kills the rest after their grace, until the program has ended.
func (l *timeLimit) enforce(ctx context.Context, f folder, s *spec) {
	var g *cgroup.Group
	for {
		var err error
		if g, err = openGroup(s); err == nil {
			break
		}
		fmt.Fprintf(os.Stderr, "end a program that has reached its time limit: %v\n", err)
		if !passes(ctx, time.Second) {
			return
		}
	}
	g.Terminate()
	for over := time.Now().Add(s.Grace); time.Now().Before(over); {
		// A suspended process does not handle the request to end; and the memory manager, which does not know about it,
		// may suspend the process again.
		r, _ := keeper.RecordOf(f) // Of one that cannot be read, the size of the start counts.
		free := s.sized(&r).granted()
		free.Lift = r.Device
		_ = free.CarryOut(ctx, g)
		if !passes(ctx, min(time.Second/5, time.Until(over))) {
			return
		}
	}
	for {
		_ = g.Kill(ctx) // A process may have been forked, or hang in the kernel.
		if !passes(ctx, time.Second) {
			return
		}
	}
}

// passes returns true when the given time has passed, and false if ctx ends before.
func passes(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
