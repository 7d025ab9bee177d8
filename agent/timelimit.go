package agent

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cgroup"
	"github.com/bellows-rm/bellows/resource"
)

// timedOut is the exit code of a program that was ended by its time limit, as that of timeout(1).
const timedOut = 124

// timeLimit ends a program that has run for as long as it may, standing still included. The supervisor keeps it, so that it
// holds without an agent too.
type timeLimit struct {
	cancel  context.CancelFunc
	done    chan struct{}
	reached atomic.Bool
}

// keepTimeLimit begins to count. A limit of 0 is none.
func keepTimeLimit(s *spec) *timeLimit {
	l := &timeLimit{done: make(chan struct{})}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(l.done)
		if s.Launch.Timeout > 0 && passes(ctx, s.Launch.Timeout) {
			l.reached.Store(true)
			l.enforce(ctx, s)
		}
	}()
	return l
}

// end is called once the program has ended; it returns whether that was for its time limit.
func (l *timeLimit) end() bool {
	l.cancel()
	<-l.done
	return l.reached.Load()
}

// enforce asks every process to end and, when their grace is over, ends them, until the program has ended.
func (l *timeLimit) enforce(ctx context.Context, s *spec) {
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
	g.Signal(unix.SIGTERM)
	for over := time.Now().Add(s.Grace); time.Now().Before(over); {
		// What is suspended does not see that it is to end; and the memory manager, which knows nothing of this, may suspend it again.
		_ = unthrottle(ctx, g, resource.Of(s.Grant[resource.CPU], 0))
		_ = thaw(ctx, g)
		if !passes(ctx, min(time.Second/5, time.Until(over))) {
			return
		}
	}
	for {
		_ = g.Kill(ctx) // Something may have been forked, or hang in the kernel.
		if !passes(ctx, time.Second) {
			return
		}
	}
}

// passes returns true once some time has passed, and false if ctx ends before.
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
