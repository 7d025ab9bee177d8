package keeper

import (
	"fmt"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// shown is what people see of containers. The goroutine of the keeper notes it, and whoever asks does not wait for the
// work of the manager.
type shown struct {
	mu  sync.Mutex
	all map[cluster.ContainerID]keptState
}

// keptState is what people see of a container that is FLEX, or that waits for memory.
type keptState struct {
	waiting   bool // it has not started, or its memory was paged out
	suspended bool
	why       string
	since     time.Time
	locked    int64 // bytes that its programs locked
	fullGrown bool  // it had all that it may have
	// beyond says what it held with what was in swap, if that was more than its limit; else it is empty.
	beyond string
}

func newShown() *shown { return &shown{all: map[cluster.ContainerID]keptState{}} }

// of returns what people see of a container; ok is false if it is neither FLEX nor waits.
func (s *shown) of(id cluster.ContainerID) (is keptState, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, ok = s.all[id]
	return is, ok
}

// drop forgets a container.
func (s *shown) drop(id cluster.ContainerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// wait notes why a container waits for memory. noWait notes that it does not, or not any more.
func (s *shown) wait(id cluster.ContainerID, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, known := s.all[id]
	if !known {
		is.since = time.Now()
	}
	is.waiting, is.why = true, why.Error()
	s.all[id] = is
}

func (s *shown) noWait(id cluster.ContainerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[id].waiting {
		delete(s.all, id)
	}
}

// waiting adds the containers to readings that have not started for lack of memory.
func (s *shown) waiting(readings map[cluster.ContainerID]cluster.Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, is := range s.all {
		if _, runs := readings[id]; is.waiting && !runs {
			readings[id] = cluster.Reading{State: cluster.ContainerWaiting, Why: is.why, Since: is.since}
		}
	}
}

// suspend notes whether the manager has suspended a container, and why: of one that stays suspended the first reason
// stays, not why it grew meanwhile.
func (s *shown) suspend(id cluster.ContainerID, suspended bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, known := s.all[id]
	if !known || is.suspended != suspended {
		is.since = time.Now()
	}
	if !known || !is.suspended || !suspended {
		is.why = why
	}
	is.waiting, is.suspended = false, suspended
	s.all[id] = is
}

// read notes the reading of a container that says why the kernel kills, if it does: how much memory the programs
// locked, whether the container has all that it may have, and what it holds beyond that in swap.
func (s *shown) read(c *kept) {
	beyond := ""
	if holds := resource.Amount(c.held.InMemory() + c.held.SwapBytes); c.held.SwapBytes > 0 && holds > c.limit {
		beyond = fmt.Sprintf("it held %s with what was in swap, and could hold %s", resource.FormatMemory(holds),
			resource.FormatMemory(c.limit))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if is, ok := s.all[c.container.ID]; ok {
		is.locked, is.fullGrown, is.beyond = c.held.LockedBytes, c.limit >= c.envelope.Max, beyond
		s.all[c.container.ID] = is
	}
}
