package agent

import (
	"context"
	"sync"
)

// goroutines are those of an agent that stay with containers. Each ends soon after the agent is closed, and none
// begins then.
type goroutines struct {
	closed context.Context
	close  context.CancelFunc
	mu     sync.Mutex // held where closed ends, and where a goroutine begins
	all    sync.WaitGroup
}

func newGoroutines() *goroutines {
	g := new(goroutines)
	g.closed, g.close = context.WithCancel(context.Background())
	return g
}

// begin starts a goroutine; if the agent is closed, it does nothing.
func (g *goroutines) begin(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Err() == nil {
		g.all.Go(do)
	}
}

// end closes the agent.
func (g *goroutines) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.close()
}

// done returns a channel that is closed when all goroutines have ended.
func (g *goroutines) done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.all.Wait()
	}()
	return done
}
